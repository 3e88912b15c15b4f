"""Bisection of many brackets at once, where each place answers yes or no."""

from collections.abc import Callable

import numpy as np

from revelu.types import BoolArray, FloatArray, IntArray


def bisect(
    is_inside: Callable[[IntArray, FloatArray], BoolArray],
    lo: FloatArray,
    hi: FloatArray,
    atol: FloatArray | float,
    *,
    max_halvings: int = 60,
) -> FloatArray:
    """Halve brackets, all that are wider than a tolerance in one round.

    Parameters
    ----------
    is_inside : callable, (m,) of int, (m,) -> (m,) of bool
        Of bracket ``i`` whether a place in it is on the side of ``lo[i]``.
    lo, hi : ndarray, shape (n,)
        NaN where there is no bracket.
    atol : float or ndarray, shape (n,)
        How precisely places are wanted.
    max_halvings : int
        After 60 the ends of a bracket as wide as its places are large are neighbours in float64.

    Returns
    -------
    ndarray, shape (n,)
        The middles.
    """
    lo, hi = lo.copy(), hi.copy()
    for _ in range(max_halvings):
        rows = np.flatnonzero(hi - lo > atol)
        if not len(rows):
            break
        middle = (lo[rows] + hi[rows]) / 2.0
        inside = is_inside(rows, middle)
        lo[rows[inside]], hi[rows[~inside]] = middle[inside], middle[~inside]
    return np.asarray((lo + hi) / 2.0)
