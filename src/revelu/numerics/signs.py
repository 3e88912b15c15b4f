"""Which neurons are to be flipped: 0/1 solutions of a linear system.

A neuron of the last hidden layer may be turned round at the price of an affine
term, ``relu(z) = relu(-z) + z``.  The plain network has none left, so the flips
``x`` solve ``G x = y`` with one column a neuron, which is linear over the reals
when there are equations enough, and a small subset-sum problem when there are not.
"""

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from revelu.types import FloatArray

# At most 2^20 combinations of the neurons that the equations leave free are tried.
MAX_FREE = 20
_CHUNK_BITS = 14

# A real solution this near 0 and 1 is worth checking; the check itself is `atol`.
ROUNDING = 1e-2

# Columns are dependent when the pivoted QR leaves less than this of a unit column.
_RANK_RTOL = 1e-7


def find_binary_solutions(
    G: FloatArray, y: FloatArray, atol: float, rounding: float = ROUNDING, most: int = 2
) -> list[FloatArray]:
    """Find every ``x`` in {0, 1}^m with ``|G x - y| <= atol``.

    Parameters
    ----------
    G : ndarray, shape (n, m)
    y : ndarray, shape (n,)
    atol : float
        On the Euclidean norm of the remainder.
    rounding : float
        How far from 0 and 1 a solution over the reals may be.
    most : int
        How many to look for: two already mean that the answer is ambiguous.

    Returns
    -------
    list of ndarray, shape (m,)
        Empty where there is none, or where more than ``MAX_FREE`` unknowns are free.
    """
    m = G.shape[1]
    if m == 0:
        return [np.zeros(0)] if np.linalg.norm(y) <= atol else []
    norms = np.linalg.norm(G, axis=0)
    unit = np.where(norms > 0, norms, 1.0)
    Q, R, order = scipy.linalg.qr(G / unit, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > _RANK_RTOL * diagonal[0]).sum()) if len(diagonal) else 0
    n_free = m - rank
    if n_free > MAX_FREE:
        return []
    # G x = y  <=>  x_basic = R11^-1 (Q' y - R12 x_free), in units of the columns.
    R11, R12 = R[:rank, :rank], R[:rank, rank:]
    basic, free = unit[order[:rank]], unit[order[rank:]]
    start = scipy.linalg.solve_triangular(R11, Q[:, :rank].T @ y) / basic
    effect = scipy.linalg.solve_triangular(R11, R12) * free / basic[:, None]
    found: list[FloatArray] = []
    for bits in _bit_chunks(n_free):
        guesses = start - bits @ effect.T
        near = (np.abs(guesses - np.rint(np.clip(guesses, 0, 1))) <= rounding).all(axis=1)
        for row in np.flatnonzero(near):
            x = np.empty(m)
            x[order[:rank]] = np.rint(guesses[row])
            x[order[rank:]] = bits[row]
            if np.linalg.norm(G @ x - y) <= atol:
                found.append(x)
                if len(found) >= most:
                    return found
    return found


def _bit_chunks(n: int) -> Iterator[FloatArray]:
    """Yield all rows of {0, 1}^n, in chunks that fit the cache."""
    for start in range(0, 2**n, 2**_CHUNK_BITS):
        numbers = np.arange(start, min(start + 2**_CHUNK_BITS, 2**n))[:, None]
        yield np.asarray((numbers >> np.arange(n)) & 1, dtype=np.float64)
