"""Where labels change: points on the border of a class, and the border's slopes there.

Near a point ``x`` on the border of a class take a line ``x + t e`` that crosses it.  Beside
it, at ``x + u + t e``, the border is met at the *height* ``t(u)``: with ``f`` the function
whose sign decides, ``t(u) = -(∇f·u) / (∇f·e)`` to first order.  So heights give the gradient
up to a factor, from labels alone, and a vector is as good as its multiple for a span.
"""

from dataclasses import dataclass

import numpy as np

from revelu.oracle import Oracle
from revelu.types import BoolArray, FloatArray

# A bracket that holds no border is widened by this factor, so often.
_WIDEN = 4.0
_MAX_WIDENINGS = 6

# Most brackets hold a border: after so many halvings few of their ends are still unasked.
_FIRST_HALVINGS = 3

# Halvings of a segment until its ends are neighbours in float64.
_MAX_HALVINGS = 60

# Lines that measure how precisely a label tells a height, and about how precisely that is,
# in units of what numbers there differ by.
_N_NOISE_LINES, _ROUNDINGS = 2, 16.0

# Points of a line through a place that show whether it crosses one border.
_N_ALONG = 24

# Heights that tell curvature are bisected to this share of a step's square.
_DIGITS = 8e-7


@dataclass(frozen=True)
class Border:
    """A place on the border of a class.

    Attributes
    ----------
    x : ndarray, shape (d,)
    e : ndarray, shape (d,)
        Unit vector that leads out of the class.
    label : float
        The class.
    """

    x: FloatArray
    e: FloatArray
    label: float

    def is_inside(self, oracle: Oracle, offsets: FloatArray, t: FloatArray) -> BoolArray:
        """Whether ``x + offsets + t e`` are in the class, shape (m,); one round.

        Parameters
        ----------
        oracle : Oracle
            Of labels, (m, d) -> (m, 1).
        offsets : ndarray, shape (m, d)
        t : ndarray, shape (m,)
        """
        X = self.x + offsets + t[:, None] * self.e
        return np.asarray(oracle(X)[:, 0] == self.label)


def find_borders(
    oracle: Oracle, A: FloatArray, B: FloatArray, labels: FloatArray, width: float
) -> list[Border]:
    """Bisect segments whose ends have different labels, all at once.

    Parameters
    ----------
    oracle : Oracle
    A, B : ndarray, shape (m, d)
        Ends; the class is that of A's.
    labels : ndarray, shape (m,)
        Of A.
    width : float
        How near to the border to come, relative to the length of the segment.

    Returns
    -------
    list of Border
    """
    lo, hi = np.zeros(len(A)), np.ones(len(A))
    for _ in range(_MAX_HALVINGS):
        if (hi - lo).max(initial=0.0) <= width:
            break
        middle = (lo + hi) / 2.0
        inside = oracle(A + middle[:, None] * (B - A))[:, 0] == labels
        lo, hi = np.where(inside, middle, lo), np.where(inside, hi, middle)
    X = A + ((lo + hi) / 2.0)[:, None] * (B - A)
    E = (B - A) / np.linalg.norm(B - A, axis=1)[:, None]
    return [Border(x, e, float(label)) for x, e, label in zip(X, E, labels, strict=True)]


def heights(
    oracle: Oracle,
    border: Border,
    offsets: FloatArray,
    centres: FloatArray,
    half_width: float,
    atol: float,
) -> FloatArray:
    """Heights of the border beside a place on it, all bisected together.

    Parameters
    ----------
    oracle : Oracle
    border : Border
    offsets : ndarray, shape (m, d)
    centres : ndarray, shape (m,)
        Where they are expected.
    half_width : float
        How far off they may be; what is not found there is sought farther out.
    atol : float
        How precisely they are wanted.

    Returns
    -------
    ndarray, shape (m,)
        NaN where no border was found.
    """
    centres = np.where(np.isnan(centres), 0.0, centres)
    lo, hi = centres - half_width, centres + half_width
    # An end that a few halvings have moved was asked; the other ends are asked now.
    open_below, open_above = np.ones(len(lo), bool), np.ones(len(lo), bool)
    for _ in range(_FIRST_HALVINGS):
        middle = (lo + hi) / 2.0
        inside = border.is_inside(oracle, offsets, middle)
        lo, hi = np.where(inside, middle, lo), np.where(inside, hi, middle)
        open_below &= ~inside
        open_above &= inside
    width = half_width
    for attempt in range(_MAX_WIDENINGS):
        below, above = np.flatnonzero(open_below), np.flatnonzero(open_above)
        asked = np.concatenate([below, above])
        if not len(asked):
            break
        inside = border.is_inside(oracle, offsets[asked], np.concatenate([lo[below], hi[above]]))
        # An end on the wrong side becomes the other end.
        below, above = below[~inside[: len(below)]], above[inside[len(below) :]]
        width *= _WIDEN
        hi[below], lo[below] = lo[below], lo[below] - width
        lo[above], hi[above] = hi[above], hi[above] + width
        open_below[:], open_above[:] = False, False
        open_below[below], open_above[above] = True, True
        if attempt == _MAX_WIDENINGS - 1:
            lo[below] = lo[above] = np.nan
    return _bisect(oracle, border, offsets, lo, hi, atol)


def _bisect(
    oracle: Oracle,
    border: Border,
    offsets: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
    atol: float,
) -> FloatArray:
    for _ in range(_MAX_HALVINGS):
        active = np.flatnonzero(hi - lo > atol)
        if not len(active):
            break
        middle = (lo[active] + hi[active]) / 2.0
        inside = border.is_inside(oracle, offsets[active], middle)
        lo[active[inside]] = middle[inside]
        hi[active[~inside]] = middle[~inside]
    return np.asarray((lo + hi) / 2.0)


def height_noise(
    oracle: Oracle, border: Border, rng: np.random.Generator, near: float, atol: float
) -> float:
    """Standard error of a height: what rounding makes of a label so near to the border.

    Parameters
    ----------
    oracle : Oracle
    border : Border
        ``x`` on it to within ``atol``.
    rng : numpy.random.Generator
    near : float
        How far off to look: so near that the border is flat, but farther than a target
        rounds its inputs, or all that is seen is one number's rounding.
    atol : float
        As precisely as numbers near ``x`` differ.

    Returns
    -------
    float
        NaN where the labels beside the place contradict each other.
    """
    U = rng.standard_normal((_N_NOISE_LINES, len(border.x)))
    U *= near / np.linalg.norm(U, axis=1)[:, None]
    t = heights(oracle, border, U, np.zeros(len(U)), 8.0 * near, atol)
    # The border is flat to within rounding over so short a distance: t(u) + t(-u) - 2 t(0)
    # is the noise of three heights, times the root of 6.
    back = heights(oracle, border, -U, -t, _ROUNDINGS * atol, atol)
    if np.isnan(back).any():
        # Inputs are rounded: a step that is not the other's mirror.
        back = heights(oracle, border, -U, np.zeros(len(U)), 8.0 * near, atol)
    rest = t + back
    return float(np.sqrt((rest**2).mean() / 6.0 + atol**2 / 12.0))


def crosses_once(oracle: Oracle, border: Border, rng: np.random.Generator, reach: float) -> bool:
    """Whether the line through a place seems to cross one border only.

    Labels of rounded scores change to and fro, and bisection ends at any of the changes.

    Parameters
    ----------
    oracle : Oracle
    border : Border
    rng : numpy.random.Generator
    reach : float
        How far to either side to look.
    """
    t = reach * rng.uniform(0.0, 1.0, _N_ALONG) * np.where(np.arange(_N_ALONG) % 2, 1.0, -1.0)
    inside = border.is_inside(oracle, np.zeros((_N_ALONG, len(border.x))), t)
    return bool((inside == (t < 0.0)).all())


@dataclass(frozen=True)
class Bend:
    """How a smooth border bends.

    Attributes
    ----------
    slopes : ndarray, shape (m,)
        Along the lines that tell it.
    curvature : float
        The largest even part of a height, over the step's square.
    third : float
        The largest A, where a central difference errs by A h².
    """

    slopes: FloatArray
    curvature: float
    third: float


def find_bend(
    oracle: Oracle, border: Border, lines: FloatArray, h: float, *, smooth: bool = False
) -> Bend | None:
    """Measure a smooth border by Richardson's extrapolation; None where it is not smooth.

    With D(h) = (t(h) - t(-h)) / 2h, D(2h) - D(h) is 3 A h² to leading order.  The even part
    of the heights is curvature, four times as much at twice the step; where it is not, or
    there is none, the border is flat with kinks.

    Parameters
    ----------
    oracle : Oracle
    border : Border
    lines : ndarray, shape (m, d)
        Unit rows.
    h : float
        The shorter of two steps, the other its double.
    smooth : bool
        Whether borders are thought to be smooth: then one line that curves will do.
    """
    atol, offsets = _DIGITS * h * h, h * lines
    up = heights(oracle, border, offsets, np.zeros(len(lines)), 4.0 * h, atol)
    # Where a border is smooth each height tells nearly where the next one is.
    down = heights(oracle, border, -offsets, -up, h * h, atol)
    near = up + down
    room = float(np.nanmax(np.abs(near), initial=0.0)) / 4.0 + 4.0 * atol
    up_far = heights(oracle, border, 2.0 * offsets, up - down + 2.0 * near, room, atol)
    down_far = heights(oracle, border, -2.0 * offsets, 4.0 * near - up_far, room, atol)
    far = up_far + down_far
    curves = np.abs(near) > 4.0 * atol
    with np.errstate(invalid="ignore", divide="ignore"):
        as_expected = curves & (np.abs(far / near - 4.0) < 1.0)
    if smooth and as_expected.any():
        as_expected |= (np.abs(near) <= 4.0 * atol) & (np.abs(far) <= 20.0 * atol)
    if not as_expected.all():
        return None
    odd, wide = (up - down) / (2.0 * h), (up_far - down_far) / (4.0 * h)
    third = float(np.nanmax(np.abs(wide - odd))) / (3.0 * h * h)
    # No less of it can be told than the digits allow.
    curvature = max(float(np.nanmax(np.abs(near))), 4.0 * atol) / (h * h)
    return Bend(odd, curvature, max(third, _DIGITS / (2.0 * h)))
