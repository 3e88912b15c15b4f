"""Entries of rows that no kink has shown, from answers.

A row's entry for an input that is rarely on may have no kink of its own where that is on.  There
the answers are linear in it as long as nothing else turns, and robust regression on what a
network leaves unexplained gives it, or what matters of it.

Below a last hidden neuron that hardly ever rests, a skip has taken the entry's part: there the
answers lack it only where the neuron rests, and both move, ``A relu((w + e) h) - A e h``.
"""

from typing import NamedTuple

import numpy as np

from revelu.network import Network
from revelu.numerics.least_deviations import least_deviations
from revelu.recover.deep.output_layer import is_faint, without_skip
from revelu.recover.deep.stack import Stack
from revelu.recover.signs import resolve_signs
from revelu.types import BoolArray, FloatArray

# The step of derivatives, relative to a row; steps of regression; most entries at a time, and
# equations for them.
_STEP = 1e-7
_MAX_STEPS = 6
_MOST_ENTRIES = 60
_MOST_EQUATIONS = 4000

# A point shows entries if an answer changes by so much of the largest change.
_SHOWS = 1e-6

# An entry so many times as large as those of its row is none.
_WILD = 50.0

# What a missing neuron leaves of an answer, relative to the most.
_MISSING = 1e-3

# What is left of a skip, relative to the neuron's own map, if it is that of its entries.
_NO_SKIP = 1e-6


class Place(NamedTuple):
    """An entry of a hidden layer's weights, and whether the skip moves against it."""

    layer: int
    row: int
    column: int
    with_skip: bool = False


def fill_entries(
    network: Network, unseen: list[BoolArray], X: FloatArray, Y: FloatArray
) -> Network:
    """Fit the entries that are not known to answers.

    Parameters
    ----------
    network : Network
        Right but for these entries, or nearly.
    unseen : list of ndarray of bool
        Which entries of every hidden layer's weights.
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)

    Returns
    -------
    Network
        The one that explains most; that given where none explains more.
    """
    places = [Place(i, j, k) for i, rows in enumerate(unseen) for j, k in np.argwhere(rows)]
    if network.skip is not None:
        places += [p._replace(with_skip=True) for p in places if p.layer == len(unseen) - 1]
    if not places or len(places) > _MOST_ENTRIES:
        return network
    spread = Y.std(axis=0)
    unit = np.where(spread > 0, spread, 1.0)
    best, least = network, np.inf
    for _ in range(_MAX_STEPS):
        residual = ((Y - network(X)) / unit).ravel()
        cost = float(np.median(np.abs(residual))), float(np.abs(residual).mean())
        if sum(cost) < least and not _is_wild(network, places):
            best, least = network, sum(cost)
        J = np.column_stack([(_derivative(network, y, X) / unit).ravel() for y in places])
        sizes = np.abs(J).max(axis=0)
        live = sizes > 0
        if not live.any():
            break
        J = J[:, live] / sizes[live]
        rows = np.flatnonzero((np.abs(J) > _SHOWS).any(axis=1))
        if len(rows) <= J.shape[1]:
            break
        rows = rows[:: -(-len(rows) // _MOST_EQUATIONS)]
        step = least_deviations(J[rows], residual[rows]).x / sizes[live]
        chosen = [place for place, is_live in zip(places, live, strict=True) if is_live]
        network = _moved(network, chosen, step)
    return best


def wake(network: Network, unseen: BoolArray, X: FloatArray, Y: FloatArray) -> Network:
    """Fit entries of last neurons to points at which those rest and should not.

    Nothing tells there what the entries change.  But if neuron j alone is missing, what the
    network leaves of the answer is ``a_j z_j``, and its sum is linear in the entries.

    Parameters
    ----------
    network : Network
        Right but for entries, or nearly.
    unseen : ndarray of bool, shape (k, m)
        Which entries of the last hidden layer's weights.
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, outputs)

    Returns
    -------
    Network
    """
    left = Y - network(X)
    sizes = np.linalg.norm(left, axis=1)
    h = Stack(network.dim_in, network.weights[:-2], network.biases[:-2]).outputs(X)
    (W, A), b = network.weights[-2:], network.biases[-2]
    W, sums = W.copy(), h @ W.T + b
    for j in np.flatnonzero(unseen.any(axis=1) & A.any(axis=0)):
        a = A[:, j]
        z = left @ a / (a @ a)
        alone = np.linalg.norm(left - np.outer(z, a), axis=1) <= _NO_SKIP * sizes
        rows = (sizes > _MISSING * sizes.max(initial=0.0)) & (z > 0) & (sums[:, j] < 0) & alone
        columns = np.flatnonzero(unseen[j] & (h[rows] > 0).any(axis=0))
        if rows.sum() > len(columns) > 0:
            W[j, columns] += least_deviations(h[rows][:, columns], (z - sums[:, j])[rows]).x
    weights = [*network.weights[:-2], W, A]
    return Network(weights, network.biases, skip=network.skip)


def fill_steady(
    network: Network,
    unseen: list[BoolArray],
    X: FloatArray,
    Y: FloatArray,
    rng: np.random.Generator,
) -> Network:
    """Take a skip for neurons that never rest, and fit their entries, too.

    No kink shows those of an input that no kink of the others has met either.

    Parameters
    ----------
    network, unseen, X, Y
        As for :func:`fill_entries`.
    rng : numpy.random.Generator

    Returns
    -------
    Network
        As given where it has no skip, or none of such neurons.
    """
    whole = without_skip(network, rng)
    if network.skip is None or whole.skip is not None:
        return network
    n_steady = len(whole.biases[-2]) - len(unseen[-1])
    more = np.tile(unseen[-1].any(axis=0), (n_steady, 1))
    return fill_entries(whole, [*unseen[:-1], np.vstack([unseen[-1], more])], X, Y)


def absorb_skip(network: Network, unseen: BoolArray) -> Network:
    """Take an affine skip for the entries that are not known of neurons that never rest.

    Parameters
    ----------
    network : Network
    unseen : ndarray of bool, shape (k, m)
        Which entries of the last hidden layer's weights.

    Returns
    -------
    Network
        Without a skip where that is all it is, but for the signs of neurons; otherwise as given.
    """
    if network.skip is None:
        return network
    (V, e), A = network.skip, network.weights[-1]
    W, b, c = network.weights[-2], network.biases[-2], network.biases[-1]
    kept = ~is_faint(network)
    unseen = unseen & kept[:, None]
    seen = ~unseen.any(axis=0)
    if not unseen.any() or not seen.any():
        return network
    # On the other entries it must vanish, with some signs.
    rest = Network([W[kept][:, seen], A[:, kept]], [b[kept], c], skip=(V[:, seen], e))
    plain = resolve_signs(rest, _NO_SKIP)[0]
    if plain.skip is not None:
        return network
    flip = np.zeros(len(W), dtype=bool)
    flip[kept] = (plain.weights[0] * W[kept][:, seen]).sum(axis=1) < 0
    # a relu(z) = a relu(-z) + a z
    taken = _taken((V + (A * flip) @ W) * ~seen, A, unseen)
    if taken is None:
        return network
    signs = np.where(flip, -1.0, 1.0)
    weights = [*network.weights[:-2], W * signs[:, None] + taken, A]
    return Network(weights, [*network.biases[:-2], b * signs, c + e + A @ (b * flip)])


def _taken(V: FloatArray, A: FloatArray, unseen: BoolArray) -> FloatArray | None:
    """Entries whose neurons, always on, make a skip; None where it is not of such entries."""
    sizes = np.linalg.norm(A, axis=0)
    left, entries = V.copy(), np.zeros(unseen.shape)
    for i in np.flatnonzero(unseen.any(axis=0)):
        for j in np.flatnonzero(unseen[:, i] & (sizes > 0)):
            entry = A[:, j] @ left[:, i] / sizes[j] ** 2
            rest = left[:, i] - entry * A[:, j]
            if np.linalg.norm(rest) <= _NO_SKIP * np.linalg.norm(left[:, i]):
                entries[j, i], left[:, i] = entry, 0.0
                break
    return entries if np.linalg.norm(left) <= _NO_SKIP * np.linalg.norm(V) else None


def _is_wild(network: Network, places: list[Place]) -> bool:
    """Whether entries are far larger than their rows' others, and stand for something else."""
    for place in places:
        row = network.weights[place.layer][place.row]
        if abs(row[place.column]) > _WILD * np.median(np.abs(row[row != 0])):
            return True
    return False


def _derivative(network: Network, place: Place, X: FloatArray) -> FloatArray:
    size = _STEP * float(np.linalg.norm(network.weights[place.layer][place.row]))
    moved = _moved(network, [place], np.array([size]))
    return np.asarray((moved(X) - network(X)) / size)


def _moved(network: Network, places: list[Place], step: FloatArray) -> Network:
    weights = [W.copy() for W in network.weights]
    V, constant = network.skip or (np.empty((0, 0)), np.empty(0))
    V = V.copy()
    for place, change in zip(places, step, strict=True):
        weights[place.layer][place.row, place.column] += change
        if place.with_skip:
            V[:, place.column] -= change * weights[-1][:, place.row]
    return Network(weights, network.biases, skip=(V, constant) if network.skip else None)
