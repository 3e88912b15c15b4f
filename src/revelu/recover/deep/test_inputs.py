"""Inputs at which a network of several layers would show what it lacks.

They are chosen among many that are not asked.
"""

import numpy as np

from revelu.network import Network
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.state import DeepSearch
from revelu.types import BoolArray, FloatArray

_POOL = 20_000

# How often a neuron may be in its rarer state, and how many inputs at which it is are asked.
_RARELY = 200
_MOST_RARE = 8

# The spreads of inputs that tell of an entry, how many for each and for all.
_SPREADS = (1.0, 2.0)
_TELLING = 4
_MOST_TELLING = 60

# A gradient is another one if it differs by so much of its size; inputs of such that are asked.
_ANOTHER = 1e-4
_MOST_SUSPECTS = 16

# Points that must be right in the end.
_LAST_LOOK = 40_000
_LOOKS_A_PARAMETER = 100


def n_last_look(network: Network) -> int:
    """How many inputs in a row must be right in the end.

    In proportion to the queries of a search, which several outputs shorten.
    """
    looks = _LOOKS_A_PARAMETER * network.n_parameters / np.sqrt(network.dim_out)
    return int(min(_LAST_LOOK, looks))


def rare_inputs(network: Network, rng: np.random.Generator) -> FloatArray:
    """Inputs of N(0, I) at which a neuron is on that rarely is, or off, shape (n, d)."""
    X = rng.standard_normal((_POOL, network.dim_in))
    stack = Stack(network.dim_in, network.weights[:-1], network.biases[:-1])
    chosen = [np.empty(0, dtype=np.intp)]
    for on in stack.states(X):
        rarer = np.where(on.mean(axis=0) < 0.5, on, ~on)
        rare = np.flatnonzero(rarer.sum(axis=0) < _RARELY)
        chosen += [np.flatnonzero(rarer[:, j])[:_MOST_RARE] for j in rare]
    return np.asarray(X[np.unique(np.concatenate(chosen))])


def telling_inputs(
    network: Network, unseen: list[BoolArray], rng: np.random.Generator
) -> FloatArray:
    """Inputs of N(0, I), or a little further out, at which entries that are not known matter.

    Parameters
    ----------
    network : Network
    unseen : list of ndarray of bool
        Which entries of every hidden layer's weights.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (n, d)
        A few for each entry; for some there may be none.
    """
    X = rng.standard_normal((_POOL, network.dim_in)) * rng.choice(_SPREADS, _POOL)[:, None]
    states = Stack(network.dim_in, network.weights[:-1], network.biases[:-1]).states(X)
    chosen = [np.empty(0, dtype=np.intp)]
    for i, rows in enumerate(unseen):
        for j, k in np.argwhere(rows):
            below = states[i - 1][:, k] if i else np.ones(_POOL, dtype=bool)
            own = states[i][:, j]
            kinds = (own, ~own) if network.skip is not None and i == len(unseen) - 1 else (own,)
            chosen += [np.flatnonzero(below & kind)[:_TELLING] for kind in kinds]
    return np.asarray(X[rng.permutation(np.unique(np.concatenate(chosen)))[:_MOST_TELLING]])


def suspects(network: Network, search: DeepSearch) -> FloatArray:
    """Inputs beside kinks at which gradients were measured that are not the network's."""
    X, J = search.witnesses.points, search.witnesses.gradients
    unit = search.noise.unit[:, None]
    stack = Stack(X.shape[1], network.weights[:-1], network.biases[:-1])
    expected = network.weights[-1] @ stack.maps(X)[0]
    if network.skip is not None:
        expected += network.skip[0] @ stack[:-1].maps(X)[0]
    apart, size = (np.linalg.norm(a / unit, axis=(1, 2)) for a in (expected - J, J))
    rows = np.flatnonzero(apart > _ANOTHER * np.maximum(size, 1.0))
    return np.asarray(X[search.rng.permutation(rows)[:_MOST_SUSPECTS]])
