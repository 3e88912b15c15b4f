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
