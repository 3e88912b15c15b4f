"""Functions that are no ReLU network: what a solver must refuse.

Each is drawn for ``widths``, inputs first and outputs last, and is a callable
``(n, widths[0]) -> (n, widths[-1])`` that can be pickled.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from revelu.network.network import Network
from revelu.network.zoo.plain import random_network
from revelu.types import FloatArray

Function = Callable[[FloatArray], FloatArray]


def tanh_network(widths: Sequence[int], seed: int = 0) -> Function:
    """Draw a network with tanh in place of relu."""
    return partial(_with_activation, np.tanh, random_network(widths, seed))


def square(widths: Sequence[int], seed: int = 0) -> Function:
    """Draw ``x -> (W x + b)²``, elementwise, of the first and the last width."""
    return partial(_square, random_network([widths[0], widths[-1]], seed))


def step(widths: Sequence[int], seed: int = 0) -> Function:
    """Draw a network with steps in place of relu: piecewise constant, not continuous."""
    return partial(_with_activation, _is_positive, random_network(widths, seed))


def random_answers(widths: Sequence[int], seed: int = 0) -> Function:
    """Make a target that answers N(0, 1), whatever and however often it is asked.

    Of ``widths`` only the last is used; ``seed`` is that of the stream of answers.
    """
    return partial(_random_answers, np.random.default_rng(seed), widths[-1])


def _with_activation(activation: Function, network: Network, X: FloatArray) -> FloatArray:
    h = X
    for W, b in zip(network.weights[:-1], network.biases[:-1], strict=True):
        h = activation(h @ W.T + b)
    return h @ network.weights[-1].T + network.biases[-1]


def _is_positive(z: FloatArray) -> FloatArray:
    return (z > 0).astype(np.float64)


def _square(network: Network, X: FloatArray) -> FloatArray:
    return np.asarray(network(X) ** 2, dtype=np.float64)


def _random_answers(rng: np.random.Generator, dim_out: int, X: FloatArray) -> FloatArray:
    return rng.normal(size=(len(X), dim_out))
