"""How high borders of classes lie along lines that cross them: many lines, bisected together."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from revelu.numerics.bisection import find_changes
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
    max_widenings : int
        How often a bracket that holds no border is made longer.

    Returns
    -------
    ndarray, shape (n,)
        NaN where no border was found.
    """

    def is_inside(rows: IntArray, t: FloatArray) -> BoolArray:
        return np.asarray(ask(X[rows] + t[:, None] * E[rows]) == labels[rows])

    return find_changes(is_inside, np.zeros(len(X)), half_width, atol, max_widenings=max_widenings)
