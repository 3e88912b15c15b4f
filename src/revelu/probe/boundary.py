"""Where labels change: points on the border of a class, and the border's slopes there.

Near a point ``x`` on the border of a class take a line ``x + t e`` that crosses it.  Beside
it, at ``x + u + t e``, the border is met at the *height* ``t(u)``: with ``f`` the function
whose sign decides, ``t(u) = -(∇f·u) / (∇f·e)`` to first order.  So heights give the gradient
up to a factor, from labels alone, and a vector is as good as its multiple for a span.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.oracle import Oracle
from revelu.types import BoolArray, FloatArray

# A bracket that holds no border is widened by this factor, so often.
_WIDEN = 4.0
_MAX_WIDENINGS = 6

# Halvings of a segment until its ends are neighbours in float64.
_MAX_HALVINGS = 60

# Lines that measure how precisely a label tells a height, and how far off they run.
_N_NOISE_LINES = 2
_NEAR = 1e-9

Inside = Callable[[FloatArray], BoolArray]


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
    open_below, open_above = np.ones(len(lo), bool), np.ones(len(lo), bool)
    width = half_width
    for attempt in range(_MAX_WIDENINGS):
        asked = np.concatenate([np.flatnonzero(open_below), np.flatnonzero(open_above)])
        n_below = int(open_below.sum())
        t = np.concatenate([lo[open_below], hi[open_above]])
        inside = border.is_inside(oracle, offsets[asked], t)
        # An end on the wrong side becomes the other end.
        below, above = asked[:n_below], asked[n_below:]
        wrong_below, wrong_above = below[~inside[:n_below]], above[inside[n_below:]]
        both = np.intersect1d(wrong_below, wrong_above)
        wrong_below = np.setdiff1d(wrong_below, both)
        wrong_above = np.setdiff1d(wrong_above, both)
        open_below[:], open_above[:] = False, False
        width *= _WIDEN
        hi[wrong_below], lo[wrong_below] = lo[wrong_below], lo[wrong_below] - width
        lo[wrong_above], hi[wrong_above] = hi[wrong_above], hi[wrong_above] + width
        open_below[wrong_below], open_above[wrong_above] = True, True
        lo[both] = hi[both] = np.nan
        if attempt == _MAX_WIDENINGS - 1:
            lo[wrong_below] = lo[wrong_above] = np.nan
        if not (len(wrong_below) or len(wrong_above)):
            break
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


def height_noise(oracle: Oracle, border: Border, rng: np.random.Generator, atol: float) -> float:
    """Standard error of a height: what rounding makes of a label so near to the border.

    Parameters
    ----------
    oracle : Oracle
    border : Border
        ``x`` on it to within ``atol``.
    rng : numpy.random.Generator
    atol : float
        As precisely as numbers near ``x`` differ.

    Returns
    -------
    float
        NaN where the labels beside the place contradict each other.
    """
    U = rng.standard_normal((_N_NOISE_LINES, len(border.x)))
    U *= _NEAR / np.linalg.norm(U, axis=1)[:, None]
    t = heights(oracle, border, np.vstack([U, -U]), np.zeros(2 * len(U)), 8.0 * _NEAR, atol)
    # The border is flat to within rounding over so short a distance: t(u) + t(-u) - 2 t(0)
    # is the noise of three heights, times the root of 6.
    rest = t[: len(U)] + t[len(U) :]
    return float(np.sqrt((rest**2).mean() / 6.0 + atol**2 / 12.0))
