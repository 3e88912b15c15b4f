"""Where the largest of some linear forms is least, in a box: a linear programme (Chebyshev)."""

import numpy as np
from scipy.optimize import linprog

from revelu.types import FloatArray

__all__ = ["least_maximum"]


def least_maximum(W: FloatArray, box: tuple[float, float]) -> FloatArray:
    """Return the ``x`` of a box with the least ``t`` such that ``W x <= t``.

    Parameters
    ----------
    W : ndarray, shape (m, n)
        A form a row.
    box : (lo, hi)

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> least_maximum(np.array([[1.0, 1.0], [-1.0, 1.0]]), (-1.0, 3.0)).round(9) + 0.0
    array([ 0., -1.])
    """
    m, n = W.shape
    cost = np.append(np.zeros(n), 1.0)
    bounds = [*[box] * n, (None, None)]
    A = np.column_stack([W, -np.ones(m)])
    solved = linprog(cost, A_ub=A, b_ub=np.zeros(m), bounds=bounds)
    return np.asarray(np.clip(solved.x[:n], *box))
