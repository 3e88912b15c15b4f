"""Which neurons are to be flipped: 0/1 solutions of a linear system.

A neuron of the last hidden layer may be turned round at the price of an affine
term, ``relu(z) = relu(-z) + z``.  The plain network has none left, so the flips
``x`` solve ``G x = y`` with one column a neuron, which is linear over the reals
when there are equations enough, and a subset-sum problem when there are not.

    Q R = G,  pivoted:  R x = Q' y  is a staircase of ``rank`` equations.

The last equation knows ``m - rank + 1`` of the unknowns: a subset sum, solved by
meeting in the middle (Horowitz and Sahni 1974), 2^(n/2) sums on either side.  Each
equation above it has one unknown more, which the ones below determine.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from revelu.numerics.interruption import check_cancelled
from revelu.types import FloatArray, IntArray


@dataclass(frozen=True)
class BinarySolutions:
    """What a search found.

    Attributes
    ----------
    found : list of ndarray, shape (m,)
        At most as many as were looked for.
    complete : bool
        Whether there are no others, up to that number; False where the limit of work was met.
    """

    found: list[FloatArray]
    complete: bool = True

    @property
    def every(self) -> list[FloatArray]:
        """What was found, if that is all there is; else nothing."""
        return self.found if self.complete else []


def find_binary_solutions(
    G: FloatArray,
    y: FloatArray,
    atol: float,
    rounding: float = 1e-2,
    most: int = 2,
    *,
    max_bits: int = 44,
    max_pairs: int = 2**22,
    rank_rtol: float = 1e-7,
) -> BinarySolutions:
    """Find every ``x`` in {0, 1}^m with ``|G x - y| <= atol``.

    Parameters
    ----------
    G : ndarray, shape (n, m)
    y : ndarray, shape (n,)
    atol : float
        On the Euclidean norm of the remainder.
    rounding : float
        Under 1/2: how far from 0 and 1 an unknown may be that the others determine, to be worth
        checking; the check itself is `atol`.
    most : int
        How many to look for: two already mean that the answer is ambiguous.
    max_bits : int
        The most unknowns that may be tried out: 2^22 sums on either side of the middle take
        300 MB and seconds.
    max_pairs : int
        Pairs of sums that agree in one equation and are looked at in the others.
    rank_rtol : float
        Columns are dependent when the pivoted QR leaves less than this of a unit column.
    """
    m = G.shape[1]
    norms = np.linalg.norm(G, axis=0)
    unit = np.where(norms > 0, norms, 1.0)
    Q, R, order = scipy.linalg.qr(G / unit, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > rank_rtol * diagonal[0]).sum()) if len(diagonal) else 0
    R, q = R[:rank] * unit[order], Q[:, :rank].T @ y
    if np.linalg.norm(y - Q[:, :rank] @ q) > atol:
        return BinarySolutions([])
    if m - rank + 1 > max_bits:
        return BinarySolutions([], complete=False)
    found: list[FloatArray] = []
    n_pairs = 0
    for chunk in _last_unknowns(R, q, atol, rounding):
        check_cancelled()
        n_pairs += len(chunk)
        if n_pairs > max_pairs:
            return BinarySolutions(found, complete=False)
        bits = chunk
        for i in reversed(range(rank - 1)):
            bits = _with_one_more(bits, R[i], q[i], atol, rounding)
        for row in bits:
            x = np.empty(m)
            x[order] = row
            if np.linalg.norm(G @ x - y) <= atol:
                found.append(x)
                if len(found) >= most:
                    return BinarySolutions(found)
    return BinarySolutions(found)


def expected_coincidences(G: FloatArray, atol: float) -> float:
    """How many ``x`` in {0, 1}^m put ``G x`` within ``atol`` of a point by chance.

    Parameters
    ----------
    G : ndarray, shape (n, m)

    Returns
    -------
    float
        An upper bound for columns of random signs: a solution found where it is not small
        is no evidence that it is the true one.

    Notes
    -----
    Over random bits ``G x`` has covariance ``G G' / 4``; along each principal direction, of
    singular value s, its density is at most ``1 / (sqrt(2 pi) s / 2)``.
    """
    s = np.linalg.svd(G, compute_uv=False) if G.size else np.zeros(0)
    s = s[s > 0]
    shares = np.minimum(4.0 * atol / (np.sqrt(2.0 * np.pi) * np.maximum(s, atol)), 1.0)
    # Without a tolerance nothing that varies is met by chance; its logarithm is kept finite.
    shares = np.maximum(shares, np.finfo(np.float64).tiny)
    return float(np.exp2(G.shape[1] + np.log2(shares).sum()))


def _last_unknowns(
    R: FloatArray, q: FloatArray, atol: float, rounding: float
) -> Iterator[FloatArray]:
    """Yield all values of the unknowns that the last equation knows, (n, m - rank + 1)."""
    if not len(R):
        yield from _pairs(np.zeros(R.shape[1]), 0.0, 0.0)
        return
    i = len(R) - 1
    yield from _pairs(R[i, i:], q[i], min(atol, rounding * abs(R[i, i])))


def _with_one_more(
    bits: FloatArray, row: FloatArray, q: float, atol: float, rounding: float
) -> FloatArray:
    """Prepend the unknown that an equation determines, where that is 0 or 1."""
    i = len(row) - bits.shape[1] - 1
    value = (q - bits @ row[i + 1 :]) / row[i]
    bit = np.rint(np.clip(value, 0.0, 1.0))
    near = np.abs(value - bit) <= min(rounding, atol / abs(row[i]))
    return np.column_stack([bit[near], bits[near]])


def _pairs(
    values: FloatArray, total: float, atol: float, chunk: int = 2**14
) -> Iterator[FloatArray]:
    """Yield, in chunks, all bits with ``|bits @ values - total| <= atol``."""
    half = len(values) // 2
    left, right = _subset_sums(values[:half]), _subset_sums(values[half:])
    left_order, right_order = np.argsort(left), np.argsort(right)
    left, right = left[left_order], right[right_order]
    start = np.searchsorted(right, total - left - atol, side="left")
    # For most there is none: the next sum on the right is too large already.
    some = np.flatnonzero(np.append(right, np.inf)[start] <= total - left + atol)
    if not len(some):
        return
    left, left_order, start = left[some], left_order[some], start[some]
    stop = np.searchsorted(right, total - left + atol, side="right")
    ends = np.cumsum(stop - start)
    for first in range(0, int(ends[-1]), chunk):
        numbers = np.arange(first, min(first + chunk, int(ends[-1])))
        i = np.searchsorted(ends, numbers, side="right")
        j = stop[i] - (ends[i] - numbers)
        yield np.hstack([_bits(left_order[i], half), _bits(right_order[j], len(values) - half)])


def _subset_sums(values: FloatArray) -> FloatArray:
    """Sums of all subsets, shape (2^n,): bit j of an index takes ``values[j]``."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


def _bits(numbers: IntArray, n: int) -> FloatArray:
    return np.asarray((numbers[:, None] >> np.arange(n)) & 1, dtype=np.float64)
