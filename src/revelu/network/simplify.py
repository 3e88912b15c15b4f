"""Remove the neurons that no answer can tell apart."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from revelu.network.network import Network
from revelu.types import BoolArray, FloatArray, IntArray

# Rounding leaves a duplicate's row, or a column that cancels, about 1e-16 off; the closest kinks
# that float64 can tell apart are 1e-10 apart.
RTOL = 1e-12


def simplify(network: Network, rtol: float = RTOL) -> Network:
    """Remove what no query can identify, the function staying as it is.

    - Neurons on one hyperplane are merged: in every layer those of the same
      orientation, in the last hidden layer also those of opposite orientation,
      whose difference is affine and goes to ``skip``.
    - Neurons whose weights, or whose outgoing weights after merging, are zero or
      negligible are folded into constants.

    The depth is kept, even where a layer is left with width 0.

    Parameters
    ----------
    rtol : float
        Two rows ``(w, b)`` of norm 1 are one hyperplane if no entry differs by
        more.  A neuron is negligible if in every row that reads it ``|a| norm(w)``
        is at most ``rtol`` times the row's largest.

    Returns
    -------
    Network
        Its ``skip``, where there is one, has ``c = 0``: the constant is in the
        last bias.

    Examples
    --------
    >>> import revelu.network as rn
    >>> network = rn.Network([[[1.0], [2.0], [0.0]], [[3.0, 4.0, 5.0]]], [[1, 2, 6], [0]])
    >>> rn.simplify(network)([[0.0]]).tolist(), rn.simplify(network).architecture
    ([[41.0]], (1, 1, 1))
    """
    return simplify_tracked(network, rtol)[0]


def simplify_tracked(network: Network, rtol: float = RTOL) -> tuple[Network, tuple[IntArray, ...]]:
    """Simplify, and tell which neurons stayed.

    Parameters
    ----------
    network, rtol
        As for :func:`simplify`.

    Returns
    -------
    simplified : Network
    kept : tuple of ndarray of int
        For each hidden layer, the indices in ``network`` of the neurons that
        stayed; the first of a merged group stands for it.
    """
    network = network.to_dense().folded()
    kept = [np.arange(k, dtype=np.intp) for k in network.architecture[1:-1]]
    # Removing a neuron may leave one of an earlier layer unread, hence the loop; every pass but
    # the last removes at least one.
    removed = True
    while removed:
        removed = False
        for i in range(network.n_hidden):
            network, gone = _remove_from(network, i, rtol)
            kept[i] = kept[i][~gone]
            removed = removed or bool(gone.any())
    return network.folded(), tuple(kept)


def _remove_from(network: Network, i: int, rtol: float) -> tuple[Network, BoolArray]:
    """Merge and fold hidden layer ``i``; with the network, which neurons went, (k_i,)."""
    # The largest term of a row is taken before merging: afterwards, if the whole row cancels,
    # only rounding is left of it.
    largest = _terms(network, i).max(axis=1, initial=0.0)
    is_last = i == network.n_hidden - 1
    rows = np.column_stack([network.weights[i], network.biases[i]])
    leaders, signs, ratios = _groups(rows, rtol, up_to_sign=is_last)
    if is_last and (signs < 0).any():
        network = network.turn_round(signs < 0)
    # relu(r z) = r relu(z): the column of j is added, r-fold, to its leader's.
    M = np.zeros((len(leaders), len(leaders)))
    M[np.arange(len(leaders)), leaders] = ratios
    network = network.with_layer(i, network.weights[i], network.biases[i], M)
    gone: BoolArray = (_terms(network, i) <= rtol * largest[:, None]).all(axis=0)
    return _without(network, i, gone), gone


def _terms(network: Network, i: int) -> FloatArray:
    """``|a_rj| norm(w_j)`` for each row r that reads neuron j of hidden layer i."""
    norms: FloatArray = np.linalg.norm(network.weights[i], axis=1)
    return np.abs(network.readers(i)) * norms


def _without(network: Network, i: int, constant: BoolArray) -> Network:
    """Remove neurons of hidden layer ``i``, taking each for the constant ``relu(b)``."""
    values = np.maximum(network.biases[i], 0.0) * constant
    biases = list(network.biases)
    biases[i + 1] = biases[i + 1] + network.weights[i + 1] @ values
    if i == network.n_hidden - 2:
        biases[-1] = biases[-1] + network.affine[0] @ values
    shifted = Network(network.weights, biases, network.skip)
    stay = ~constant
    M = np.eye(len(constant))[:, stay]
    return shifted.with_layer(i, network.weights[i][stay], biases[i][stay], M)


def _groups(
    rows: FloatArray, rtol: float, *, up_to_sign: bool
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Group rows ``(w, b)`` by hyperplane.

    Row j is ``signs[j] * ratios[j]`` times row ``leaders[j]``, the first of its group.
    """
    unit = unit_rows(rows)
    distance = cdist(unit, unit, "chebyshev")
    if up_to_sign:
        distance = np.minimum(distance, cdist(unit, -unit, "chebyshev"))
    _, labels = connected_components(csr_array(distance <= rtol), directed=False)
    first = np.unique(labels, return_index=True)[1].astype(np.intp)
    leaders = first[labels]
    norms = np.linalg.norm(rows, axis=1)
    ratios = np.divide(norms, norms[leaders], out=np.ones(len(rows)), where=norms[leaders] > 0)
    signs = np.where((unit * unit[leaders]).sum(axis=1) < 0, -1.0, 1.0)
    return leaders, signs, ratios


def unit_rows(rows: FloatArray) -> FloatArray:
    """Divide each row, (k, d), by its norm; a zero row stays zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)
