"""Logits and log-ratios: the outputs of a classifier, known up to a common shift."""

import numpy as np

from revelu.errors import InputError
from revelu.network.network import Network


def to_log_ratios(network: Network) -> Network:
    """Return the network of the first outputs less the last one, ``z_i - z_last``.

    Of the softmax of the outputs these are the log-ratios against the last class.

    Raises
    ------
    InputError
        If there are fewer than two outputs.
    """
    if network.dim_out < 2:
        raise InputError(f"log-ratios need two outputs, and there is {network.dim_out}")
    n = network.dim_out - 1
    return network.then(np.column_stack([np.eye(n), np.full(n, -1.0)]))


def from_log_ratios(network: Network) -> Network:
    """Return the network of logits whose last one is 0, one output more."""
    return network.then(np.eye(network.dim_out + 1, network.dim_out))


def without_shift(network: Network) -> Network:
    """Return the network whose outputs have the mean 0: less what all of them have in common.

    Two networks have the same softmax if these are one function.
    """
    k = network.dim_out
    return network.then(np.eye(k) - 1.0 / k)
