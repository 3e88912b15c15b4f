"""Matching the rows of two matrices one to one."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from revelu.types import FloatArray, IntArray


def match_rows(
    A: FloatArray, B: FloatArray, *, up_to_sign: bool = False
) -> tuple[IntArray, FloatArray]:
    """Pair rows of ``A`` with rows of ``B`` at the least sum of distances.

    Parameters
    ----------
    A : ndarray, shape (m, d)
    B : ndarray, shape (n, d)
    up_to_sign : bool
        Whether a row of ``A`` may be negated first.

    Returns
    -------
    rows : ndarray of int, shape (n,)
        ``signs[j] * A[rows[j]]`` is the partner of ``B[j]``; -1 where ``m < n``
        left none.
    signs : ndarray, shape (n,)
        +1 or -1; +1 wherever ``up_to_sign`` is false.
    """
    # Distances, not their squares: by the triangle inequality a row that is far
    # off cannot make it worth while to part two rows that are equal.
    cost = cdist(A, B)
    negated = cdist(A, -B) if up_to_sign else np.full_like(cost, np.inf)
    i, j = linear_sum_assignment(np.minimum(cost, negated))
    rows = np.full(len(B), -1, dtype=np.intp)
    signs = np.ones(len(B))
    rows[j] = i
    signs[j] = np.where(negated[i, j] < cost[i, j], -1.0, 1.0)
    return rows, signs


def match_within(cost: FloatArray) -> IntArray:
    """Pair as many rows with columns as go together, and those at the least sum of costs.

    Parameters
    ----------
    cost : ndarray, shape (m, n)
        At most 1 where a row and a column may be a pair.

    Returns
    -------
    ndarray of int, shape (m,)
        The column of each row; -1 where none is left.
    """
    found = np.full(len(cost), -1, dtype=np.intp)
    # A pair that fits is worth more than any number of pairs that do not.
    i, j = linear_sum_assignment(np.where(cost <= 1.0, cost - len(found), 0.0))
    fits = cost[i, j] <= 1.0
    found[i[fits]] = j[fits]
    return found
