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
    """Neurons that were replaced by one.

    Attributes
    ----------
    n_neurons : int
    delta : float
        The least Δ for which each is close to another (Definition 3.7).
    error : float
        L2 distance of the two functions under N(0, I).
    """

    n_neurons: int
    delta: float
    error: float


def close_groups(network: Network, delta: float, alpha: float | None = None) -> list[IntArray]:
    """The neurons of a two-layer network, those together that a chain of close ones joins.

    Parameters
    ----------
    network : Network
        No row is zero.
    delta, alpha : float
        See :func:`revelu.recover.close.closeness.closeness`; ``alpha`` is ``delta`` by default.
    """
    W, b = network.weights[0], network.biases[0]
    if not len(W):
        return []
    apart, shifted = closeness(W, b)
    joined = (apart <= delta) & (shifted <= (delta if alpha is None else alpha))
    _, labels = connected_components(csr_array(joined), directed=False)
    return [np.flatnonzero(labels == i) for i in range(int(labels.max()) + 1)]


def turned(network: Network, rows: IntArray, n: FloatArray) -> Network:
    """The same function, with some neurons on where ``n x`` is large; the rest is skip.

    ``a relu(z) = a relu(-z) + a z``.

    Parameters
    ----------
    network : Network
        Two layers.
    rows : ndarray of int
    n : ndarray, shape (d,)
    """
    (W, A), (b, c) = network.weights, network.biases
    V, e = network.skip or (np.zeros((network.dim_out, network.dim_in)), np.zeros(network.dim_out))
    back = rows[W[rows] @ n < 0]
    signs = np.ones(len(b))
    signs[back] = -1.0
    skip = (V + A[:, back] @ W[back], e + A[:, back] @ b[back])
    return Network([W * signs[:, None], A], [b * signs, c], skip=skip)


def without(network: Network, rows: IntArray) -> Network:
    """A two-layer network less some of its neurons."""
    (W, A), (b, c) = network.weights, network.biases
    return Network(
        [np.delete(W, rows, 0), np.delete(A, rows, 1)], [np.delete(b, rows), c], network.skip
    )


def merge_close(network: Network, delta: float, atol: float) -> tuple[Network, list[Merge]]:
    """Replace close neurons by one where that changes the function by no more than ``atol``.

    Their hyperplane becomes that of the change of the gradient across all of them, so that
    the function stays as it is but for a strip (Lemma 3.21); what cancels becomes affine
    (Lemma 3.19).

    Parameters
    ----------
    network : Network
        Two layers.
    delta : float
        How close.
    atol : float
        Largest L2 distance under N(0, I) that one merge may make.
    """
    merges = []
    for group in close_groups(network, delta):
        if len(group) < 2:
            continue
        merged = _merged(network, group)
        error = l2_distance(_only(network, group), merged)
        if error > atol:
            continue
        apart, _ = closeness(network.weights[0][group], network.biases[0][group])
        nearest = float((apart + np.eye(len(group))).min(axis=1).max())
        merges.append((group, merged, Merge(len(group), nearest, error)))
    gone = np.concatenate([rows for rows, _, _ in merges]) if merges else np.empty(0, int)
    new = without(network, gone) if merges else network
    for _, merged, _ in merges:
        new = add_networks(new, merged)
    return new, [merge for _, _, merge in merges]


def _only(network: Network, rows: IntArray) -> Network:
    (W, A), b = network.weights, network.biases[0]
    return Network([W[rows], A[:, rows]], [b[rows], np.zeros(network.dim_out)])


def _merged(network: Network, rows: IntArray) -> Network:
    """One neuron and an affine map for some that are close."""
    some = turned(_only(network, rows), np.arange(len(rows)), network.weights[0][rows[0]])
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
