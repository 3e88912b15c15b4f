"""Signs of a first layer, told by rows above it that were traced without them.

A row of what neurons give, ``v``, and of inputs, ``l``: where neuron ``i`` turns on on the other
side, ``relu(-z_i) = relu(z_i) - z_i`` leaves ``-v_i w_i`` in ``l``.  With the right signs nothing
is left of it in any row, and that tells more of the row, too.
"""

from dataclasses import replace

import numpy as np

from revelu.numerics.float64 import EPS
from revelu.recover.deep.rough_traces import TracedRow
from revelu.recover.deep.trace import Below
from revelu.types import BoolArray, FloatArray


def signs_by_most(
    V: FloatArray, L: FloatArray, W: FloatArray, *, least: float = 1e-4
) -> tuple[BoolArray, FloatArray]:
    """Which rows below are turned round, as most rows' linear parts tell; some may be false.

    Least squares, reweighted to what most agree on, then one by one: the sum of logarithms of what
    is left counts a false row little.

    Parameters
    ----------
    V, L : ndarray, shape (r, m) and (r, d)
        What rows make of neurons, and of inputs.
    W : ndarray, shape (m, d)

    Returns
    -------
    turned : ndarray of bool, shape (m,)
    margins : ndarray, shape (m,)
        By how much that sum grows with each turned otherwise.
    """
    size = np.abs(V) @ np.linalg.norm(W, axis=1)
    m = V.shape[1]

    def left(phi: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.norm(L + (V * phi) @ W, axis=1) / size)

    weights = 1.0 / size
    for _ in range(30):
        A = ((V * weights[:, None])[:, None, :] * W.T[None]).reshape(-1, m)
        phi = np.linalg.lstsq(A, -(L * weights[:, None]).ravel())[0]
        weights = 1.0 / size / (left(phi) + least)
    phi = np.round(phi).clip(0.0, 1.0)
    best, improves, margins = np.log(left(phi) + least).sum(), True, np.zeros(m)
    while improves:
        improves = False
        for i in range(m):
            other = phi.copy()
            other[i] = 1.0 - other[i]
            found = np.log(left(other) + least).sum()
            margins[i] = found - best
            if found < best:
                best, phi, improves = found, other, True
    return np.asarray(phi > 0.5), margins


def are_read(rows: list[TracedRow], faint: float) -> BoolArray:
    """Which neurons below some row reads, or may read, shape (m,)."""
    m = rows[0].n_weights
    V = np.abs(np.array([row.row[:m] for row in rows]))
    errors = np.array([np.linalg.norm(row.law.spread[:m], axis=1) for row in rows])
    is_read = faint * V.max(axis=1, keepdims=True) < V
    is_read &= errors < rows[0].least
    # What no row has told may be read.
    return np.asarray(is_read.any(axis=0) | (errors >= rows[0].least).all(axis=0))


def signed(
    below: Below, rows: list[TracedRow], turned: BoolArray, kept: BoolArray
) -> tuple[Below, list[TracedRow]]:
    """The layer below as its neurons turn on, those alone that are kept; and its rows above.

    Of linear parts nothing is left but what rows below err by.
    """
    W, b = below.W, below.b
    m, d = W.shape
    # Linear parts, and constants, as the neurons turn on.
    T = np.eye(m + d + 1)
    T[m:-1, :m] = (W * turned[:, None]).T
    T[-1, :m] = b * turned
    columns = np.append(np.flatnonzero(kept), m + d)
    errors = below.errors * np.linalg.norm(W, axis=1) * turned / np.sqrt(d)
    found = []
    for row in rows:
        # The part below the diagonal blocks, alone, is its own opposite's inverse.
        law = row.law.moved(T, 2.0 * np.eye(len(T)) - T)
        error = float(np.linalg.norm(row.row[:m] * errors))
        law = law.given(np.eye(len(T))[m:-1], max(error, EPS * float(np.linalg.norm(row.row[:m]))))
        found.append(replace(row, law=law.of_some(columns), n_weights=int(kept.sum())))
    signs = np.where(turned, -1.0, 1.0)[kept]
    return Below(W[kept] * signs[:, None], b[kept] * signs, below.errors[kept]), found
