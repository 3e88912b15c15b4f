"""How high borders of classes lie along lines that cross them: many lines, bisected together.

How precisely a place is told, and how far beside it is looked, goes with its size.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from revelu.numerics.bisection import find_changes
from revelu.types import BoolArray, FloatArray, IntArray

Ask: TypeAlias = Callable[[FloatArray], FloatArray]
"""Takes inputs (n, d) and gives their labels (n,); one round."""


def input_sizes(X: FloatArray) -> FloatArray:
    """Return the largest coordinates of inputs ``X (n, d)``, 1 at least, (n,)."""
    return np.asarray(np.maximum(np.abs(X).max(axis=1, initial=0.0), 1.0))


def are_between(
    ask: Ask, X: FloatArray, step: FloatArray, a: FloatArray, b: FloatArray
) -> BoolArray:
    """Whether borders pass so near: labels are a at ``X - step`` and b at ``X + step``; one round.

    Parameters
    ----------
    X, step : ndarray, shape (..., n, d)
    a, b : ndarray, shape (n,)

    Returns
    -------
    ndarray of bool, shape (..., n)
    """
    labels = ask(np.stack([X - step, X + step]).reshape(-1, X.shape[-1]))
    before, behind = labels.reshape(2, *X.shape[:-1])
    return np.asarray((before == a) & (behind == b))


def heights(
    ask: Ask,
    X: FloatArray,
    E: FloatArray,
    labels: FloatArray,
    half_width: FloatArray | float,
    atol: FloatArray | float,
    *,
    centres: FloatArray | None = None,
    max_widenings: int = 6,
    first_halvings: int = 0,
) -> FloatArray:
    """Find where lines ``x + t e`` leave their classes.

    Parameters
    ----------
    X, E : ndarray, shape (n, d)
    labels : ndarray, shape (n,)
        The class that a line is in at low ``t``.
    half_width : float or ndarray, shape (n,)
        How far from there the border may be; one that is not there is sought farther out.
    atol : float or ndarray, shape (n,)
        How precisely heights are wanted.
    centres : ndarray, shape (n,), optional
        Where it is expected in place of 0.
    max_widenings, first_halvings : int
        As of :func:`revelu.numerics.bisection.find_changes`.

    Returns
    -------
    ndarray, shape (n,)
        NaN where no border was found.
    """

    def is_inside(rows: IntArray, t: FloatArray) -> BoolArray:
        return np.asarray(ask(X[rows] + t[:, None] * E[rows]) == labels[rows])

    return find_changes(
        is_inside,
        np.zeros(len(X)) if centres is None else centres,
        half_width,
        atol,
        max_widenings=max_widenings,
        first_halvings=first_halvings,
    )
