"""How high borders of classes lie along lines that cross them: many lines, bisected together."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from revelu.numerics.bisection import bisect
from revelu.types import BoolArray, FloatArray, IntArray

Ask: TypeAlias = Callable[[FloatArray], FloatArray]
"""Takes inputs (n, d) and gives their labels (n,); one round."""


def heights(
    ask: Ask,
    X: FloatArray,
    E: FloatArray,
    labels: FloatArray,
    half_width: FloatArray,
    atol: FloatArray,
    *,
    widen: float = 4.0,
    max_widenings: int = 6,
) -> FloatArray:
    """Find where lines ``x + t e`` leave their classes.

    Parameters
    ----------
    X, E : ndarray, shape (n, d)
    labels : ndarray, shape (n,)
        The class that a line is in at low ``t``.
    half_width : ndarray, shape (n,)
        How far from ``t = 0`` the border may be; one that is not there is sought farther out.
    atol : ndarray, shape (n,)
        How precisely heights are wanted.
    widen, max_widenings : float, int
        By what factor, and how often, a bracket that holds no border is made longer.

    Returns
    -------
    ndarray, shape (n,)
        NaN where no border was found.
    """

    def is_inside(rows: IntArray, t: FloatArray) -> BoolArray:
        return np.asarray(ask(X[rows] + t[:, None] * E[rows]) == labels[rows])

    lo, hi, width = -half_width, half_width.copy(), half_width.copy()
    below = above = np.arange(len(X))
    for _ in range(max_widenings):
        if not len(below) + len(above):
            break
        rows = np.concatenate([below, above])
        inside = is_inside(rows, np.concatenate([lo[below], hi[above]]))
        # An end on the wrong side becomes the other end.
        below, above = below[~inside[: len(below)]], above[inside[len(below) :]]
        width *= widen
        hi[below], lo[below] = lo[below], lo[below] - width[below]
        lo[above], hi[above] = hi[above], hi[above] + width[above]
    lo[below] = lo[above] = np.nan
    return bisect(is_inside, lo, hi, atol)
