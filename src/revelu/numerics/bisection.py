"""Bisection of many brackets at once, where each place answers yes or no.

A bracket that holds no change is made longer first (:func:`find_changes`).
"""

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


def find_changes(
    is_inside: Callable[[IntArray, FloatArray], BoolArray],
    centres: FloatArray,
    half_width: FloatArray | float,
    atol: FloatArray | float,
    *,
    widen: float = 4.0,
    max_widenings: int = 6,
    first_halvings: int = 0,
) -> FloatArray:
    """Find where lines leave what they are inside of at low ``t``, all bisected together.

    Parameters
    ----------
    is_inside : callable, (m,) of int, (m,) -> (m,) of bool
        As of :func:`bisect`.
    centres : ndarray, shape (n,)
        Where changes are expected.
    half_width : float or ndarray, shape (n,)
        How far off they may be; one that is not there is sought farther out.
    atol : float or ndarray, shape (n,)
        How precisely places are wanted.
    widen, max_widenings : float, int
        By what factor, and how often, a bracket that holds no change is made longer: to ``4^6`` of
        what was expected in the end.
    first_halvings : int
        Halvings before the ends of brackets are asked: where most brackets hold a change, few of
        their ends are then still unasked.

    Returns
    -------
    ndarray, shape (n,)
        NaN where no change was found.
    """
    width = np.broadcast_to(half_width, centres.shape)
    lo, hi = centres - width, centres + width
    # An end that a halving has moved was asked; the other ends are asked after.
    open_below, open_above = np.ones(len(lo), bool), np.ones(len(lo), bool)
    everything = np.arange(len(lo))
    for _ in range(first_halvings):
        middle = (lo + hi) / 2.0
        inside = is_inside(everything, middle)
        lo, hi = np.where(inside, middle, lo), np.where(inside, hi, middle)
        open_below &= ~inside
        open_above &= inside
    below, above = np.flatnonzero(open_below), np.flatnonzero(open_above)
    for _ in range(max_widenings):
        if not len(below) + len(above):
            break
        asked = np.concatenate([below, above])
        inside = is_inside(asked, np.concatenate([lo[below], hi[above]]))
        # An end on the wrong side becomes the other end.
        below, above = below[~inside[: len(below)]], above[inside[len(below) :]]
        width = widen * width
        hi[below], lo[below] = lo[below], lo[below] - width[below]
        lo[above], hi[above] = hi[above], hi[above] + width[above]
    lo[below] = lo[above] = np.nan
    return bisect(is_inside, lo, hi, atol)
