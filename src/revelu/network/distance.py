"""The L2 distance of two known networks under N(0, I), computed and not sampled."""

import numpy as np

from revelu.errors import InputError
from revelu.network.network import Network
from revelu.network.sums import add_networks
from revelu.numerics.gaussian_relu import squared_norm


def l2_norm(network: Network) -> float:
    """Return ``sqrt(E |f(x)|^2)`` for ``x ~ N(0, I)``.

    Raises
    ------
    InputError
        Unless the network has one hidden layer, which may have width 0.

    Examples
    --------
    >>> round(l2_norm(Network([[[1.0]], [[2.0]]], [[0.0], [0.0]])), 12)
    1.414213562373
    """
    _check(network)
    (W, A), (b, c) = network.weights, network.biases
    V, e = network.affine
    return float(np.sqrt(squared_norm(A, W, b, V, c + e)))


def l2_distance(first: Network, second: Network) -> float:
    """Return ``sqrt(E |f(x) - g(x)|^2)`` for ``x ~ N(0, I)``.

    Raises
    ------
    InputError
        Unless both have one hidden layer, the same inputs and outputs.
    """
    _check(first, second)
    if (first.dim_in, first.dim_out) != (second.dim_in, second.dim_out):
        raise InputError(f"{first!r} and {second!r} have different inputs or outputs")
    return l2_norm(add_networks(first, second.then(-np.eye(second.dim_out))))


def _check(*networks: Network) -> None:
    for network in networks:
        if network.n_hidden != 1:
            raise InputError(f"one hidden layer is needed, got {network!r}")
