"""Targets that know their truth: random ones, adversarial ones, ones outside the class.

``KINDS[name](widths, seed=0)`` is a :class:`revelu.Network`;
``OUTSIDE[name](widths, seed=0)`` is a callable ``(n, widths[0]) -> (n, widths[-1])``
that is no ReLU network.  Both are what tests and benchmarks iterate over.
"""

from collections.abc import Callable

from revelu.network.network import Network
from revelu.network.zoo.adversarial import (
    sign_ambiguous,
    with_bumps,
    with_cancelling_pairs,
    with_close_kinks,
    with_clusters,
    with_dead_neurons,
    with_duplicates,
    with_far_biases,
    with_near_duplicates,
    with_tiny_weights,
)
from revelu.network.zoo.outside import random_answers, square, step, tanh_network
from revelu.network.zoo.plain import affine, constant, random_network, scaled
from revelu.types import FloatArray

__all__ = [
    "KINDS",
    "OUTSIDE",
    "affine",
    "constant",
    "random_answers",
    "random_network",
    "scaled",
    "sign_ambiguous",
    "square",
    "step",
    "tanh_network",
    "with_bumps",
    "with_cancelling_pairs",
    "with_close_kinks",
    "with_clusters",
    "with_dead_neurons",
    "with_duplicates",
    "with_far_biases",
    "with_near_duplicates",
    "with_tiny_weights",
]


KINDS: dict[str, Callable[..., Network]] = {
    "random": random_network,
    "dead_neurons": with_dead_neurons,
    "duplicates": with_duplicates,
    "near_duplicates": with_near_duplicates,
    "tiny_weights": with_tiny_weights,
    "close_kinks": with_close_kinks,
    "bumps": with_bumps,
    "clusters": with_clusters,
    "cancelling_pairs": with_cancelling_pairs,
    "far_biases": with_far_biases,
    "sign_ambiguous": lambda widths, seed=0: sign_ambiguous(widths[0], seed=seed),
    "affine": lambda widths, seed=0: affine(widths[0], widths[-1], seed=seed),
    "constant": lambda widths, seed=0: constant(widths[0], widths[-1], seed=seed),
}

OUTSIDE: dict[str, Callable[..., Callable[[FloatArray], FloatArray]]] = {
    "tanh": tanh_network,
    "square": square,
    "step": step,
    "random_answers": random_answers,
}
