"""Merge neurons that are nearly one, and measure what that changes (CKM21, Lemma 3.12)."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from revelu.network.distance import l2_distance
from revelu.network.network import Network
from revelu.network.sums import add_networks
from revelu.recover.close.closeness import closeness
from revelu.types import FloatArray, IntArray


@dataclass(frozen=True)
class Merge:
    """Neurons that were replaced by one."""

    n_neurons: int
    error: float
    """L2 distance of the two functions under N(0, I)."""


def close_groups(network: Network, delta: float) -> list[IntArray]:
    """The neurons of one hidden layer, those together that a chain of close ones joins.

    Parameters
    ----------
    network : Network
        No row is zero.
    delta : float
        Close ones are (Δ, Δ)-close (Definition 3.7).
    """
    W, b = network.weights[0], network.biases[0]
    if not len(W):
        return []
    apart, shifted = closeness(W, b)
    joined = (apart <= delta) & (shifted <= delta)
    _, labels = connected_components(csr_array(joined), directed=False)
    return [np.flatnonzero(labels == i) for i in range(int(labels.max()) + 1)]


def turned(network: Network, rows: IntArray, n: FloatArray) -> Network:
    """The same function, with some neurons on where ``n x`` is large; the rest is skip."""
    return network.turn_round(rows[network.weights[0][rows] @ n < 0])


def without(network: Network, rows: IntArray) -> Network:
    """A network of one hidden layer less some of its neurons."""
    return network.take(np.setdiff1d(np.arange(len(network.biases[0])), rows))


def merge_close(network: Network, delta: float, atol: float) -> tuple[Network, list[Merge]]:
    """Replace close neurons by one where that changes the function by no more than ``atol``.

    Their hyperplane becomes that of the change of the gradient across all of them, so that
    the function stays as it is but for a strip (Lemma 3.21); what cancels becomes affine
    (Lemma 3.19).

    Parameters
    ----------
    network : Network
        One hidden layer.
    delta : float
        How close.
    atol : float
        Largest L2 distance under N(0, I) that one merge may make.
    """
    merges = []
    for group in close_groups(network, delta):
        if len(group) < 2:
            continue
        (W, A), b = network.weights, network.biases[0]
        some = Network([W[group], A[:, group]], [b[group], np.zeros(network.dim_out)])
        merged = _merged(some)
        error = l2_distance(some, merged)
        if error > atol:
            continue
        merges.append((group, merged, Merge(len(group), error)))
    gone = np.concatenate([rows for rows, _, _ in merges]) if merges else np.empty(0, int)
    new = without(network, gone) if merges else network
    for _, merged, _ in merges:
        new = add_networks(new, merged)
    return new, [merge for _, _, merge in merges]


def _merged(some: Network) -> Network:
    """One neuron and an affine map for some that are close."""
    some = turned(some, np.arange(len(some.biases[0])), some.weights[0][0])
    (W, A), (b, c) = some.weights, some.biases
    rows_with_bias = np.column_stack([W, b])
    # The change across all of them is A [W b], of rank one but for Δ.
    U, sizes, Vt = np.linalg.svd(A @ rows_with_bias, full_matrices=False)
    row, column = Vt[0], U[:, 0] * sizes[0]
    if row[:-1] @ W[0] < 0:
        row, column = -row, -column
    if not np.linalg.norm(row[:-1]):
        row, column = rows_with_bias[0], np.zeros(len(c))
    return Network([row[None, :-1], column[:, None]], [row[-1:], c], skip=some.skip)
