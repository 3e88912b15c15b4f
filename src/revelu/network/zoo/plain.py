"""Random networks, their rescaled copies, and those without a neuron."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from revelu.errors import InputError
from revelu.network.network import Network
from revelu.network.sums import affine_network


def random_network(widths: Sequence[int], seed: int = 0, bias_std: float = 0.5) -> Network:
    """Draw a network as He initialisation does, with biases.

    Parameters
    ----------
    widths : sequence of int
        Inputs, hidden layers, outputs.  Weights are N(0, 2 / fan_in).
    seed : int
    bias_std : float
        Every bias, the output's included, is N(0, bias_std²).

    Raises
    ------
    InputError
        If ``widths`` are not at least two positive whole numbers.

    Examples
    --------
    >>> random_network([784, 32, 1], seed=0)
    <Network 784-32-1, 25,153 parameters>
    """
    if len(widths) < 2 or any(int(k) != k or k < 1 for k in widths):
        raise InputError(f"widths must be two or more positive whole numbers, got {widths!r}")
    rng = np.random.default_rng(seed)
    shapes = [(int(k), int(d)) for d, k in pairwise(widths)]
    weights = [rng.normal(scale=np.sqrt(2.0 / d), size=(k, d)) for k, d in shapes]
    biases = [rng.normal(scale=bias_std, size=k) for k, _ in shapes]
    return Network(weights, biases)


def scaled(network: Network, input_scale: float = 1.0, output_scale: float = 1.0) -> Network:
    """Change the units: ``output_scale * network(x / input_scale)``.

    Parameters
    ----------
    network : Network
    input_scale, output_scale : float
        Not zero.  Hyperplanes move ``input_scale`` times as far from the origin.

    Raises
    ------
    InputError
        If a scale is zero or not finite.
    """
    if not (np.isfinite([input_scale, output_scale]).all() and input_scale and output_scale):
        raise InputError(f"scales must be finite, not zero: {input_scale!r}, {output_scale!r}")
    weights, skip = list(network.weights), network.skip
    weights[0] = weights[0] / input_scale
    # V reads the input itself where at most one hidden layer lies between.
    if skip is not None and network.n_hidden <= 1:
        skip = (skip[0] / input_scale, skip[1])
    return Network(weights, network.biases, skip).then(output_scale * np.eye(network.dim_out))


def affine(dim_in: int, dim_out: int, seed: int = 0) -> Network:
    """Draw an affine map, as a network of hidden width 0 whose skip is the map."""
    layer = random_network([dim_in, dim_out], seed)
    return affine_network(layer.weights[0], layer.biases[0])


def constant(dim_in: int, dim_out: int, seed: int = 0) -> Network:
    """Draw a constant, as a network of hidden width 0."""
    c = random_network([dim_in, dim_out], seed).biases[0]
    return Network([np.empty((0, dim_in)), np.empty((dim_out, 0))], [np.empty(0), c])
