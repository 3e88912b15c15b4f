"""The flat faces of a convex region that answers yes or no, each from label queries alone.

Along a ray from a place inside, a convex region is left once.  Where the border is crossed,
its normal comes from the heights of the border beside that place: first roughly, then,
looking along the rough normal from the middle of the face, to the last digits (about 60
queries for each input).  More heights than unknowns tell a face from an edge or a curve.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.types import BoolArray, FloatArray

Inside = Callable[[FloatArray], BoolArray]

# Steps beside a crossing for the rough normal, in units of its distance, the farthest first,
# and how precisely heights are wanted, in units of the step.
_ROUGH_STEPS = (0.01, 0.001, 0.0001)
_ROUGH = 0.02
_ROUGH_REACH = 4.0

# The same for the fine normal; the reach is what the rough one's error may make.
_FINE_STEPS = (0.3, 0.06, 0.01, 0.001)
_FINE_REACH = 0.15

# Places on a face beyond those that determine it.
_SPARE = 3

# What spare places may be off, in units of the step: flat, as far as float32 heights tell.
_FLAT = 1e-5
_ROUGHLY_FLAT = 0.1

# Rounding of a point x, in units of |x|; bisection ends there.
_ROUNDING = 16.0 * np.finfo(np.float64).eps
_MAX_HALVINGS = 80


@dataclass(frozen=True)
class Facet:
    """A face of the region: ``normal x <= threshold`` inside.

    Attributes
    ----------
    normal : ndarray, shape (d,)
        Of norm 1, leading out.
    threshold : float
    error : float
        Standard error of its angle, in radians.
    threshold_error : float
    """

    normal: FloatArray
    threshold: float
    error: float
    threshold_error: float


def crossings(
    inside: Inside, centre: FloatArray, V: FloatArray, lo: FloatArray, hi: FloatArray, rtol: float
) -> FloatArray:
    """Bisect rays ``centre + r v`` between a radius inside and one outside, all together.

    Parameters
    ----------
    inside : callable, (m, d) -> (m,) of bool
    centre : ndarray, shape (d,)
    V : ndarray, shape (m, d)
        Directions of norm 1.
    lo, hi : ndarray, shape (m,)
        Radii, inside and outside.
    rtol : float
        How precisely radii are wanted, relative to ``hi``.

    Returns
    -------
    ndarray, shape (m,)
    """
    lo, hi = lo.copy(), hi.copy()
    atol = rtol * hi
    for _ in range(_MAX_HALVINGS):
        open_ = np.flatnonzero(hi - lo > atol)
        if not len(open_):
            break
        middle = (lo[open_] + hi[open_]) / 2.0
        within = inside(centre + middle[:, None] * V[open_])
        lo[open_[within]], hi[open_[~within]] = middle[within], middle[~within]
    return np.asarray((lo + hi) / 2.0)


def find_facet(
    inside: Inside, centre: FloatArray, v: FloatArray, radius: float, rng: np.random.Generator
) -> Facet | None:
    """Measure the face that a ray leaves through.

    Parameters
    ----------
    inside : callable
    centre : ndarray, shape (d,)
        Inside.
    v : ndarray, shape (d,)
        Direction of norm 1.
    radius : float
        Where the ray leaves, to within a thousandth of the smallest step.
    rng : numpy.random.Generator
        Of the places beside it.

    Returns
    -------
    Facet or None
        None where the border is not flat at any step tried: an edge, or a curve.
    """
    x = centre + radius * v
    rough = None
    for step in _ROUGH_STEPS:
        rough = _plane(inside, x, v, step * radius, _ROUGH_REACH, _ROUGH, _ROUGHLY_FLAT, rng)
        if rough is not None:
            break
    if rough is None:
        return None
    w = rough[0]
    distance = float(w @ (x - centre))
    # The foot of the perpendicular is far from edges, where it is on the face at all.
    for base in (centre + distance * w, x):
        for step in _FINE_STEPS:
            h = step * distance
            atol = _ROUNDING * (np.linalg.norm(base) + h) / h
            fine = _plane(inside, base, w, h, _FINE_REACH, atol, _FLAT, rng)
            if fine is not None:
                normal, height, angle = fine
                threshold = float(normal @ (base + height * w))
                # The face is known at the base; beside it the angle's error counts.
                aside = float(np.linalg.norm(base - (normal @ base) * normal))
                error = angle * (h + aside) + _ROUNDING * abs(threshold)
                return Facet(normal, threshold, angle, error)
    return None


def _plane(
    inside: Inside,
    base: FloatArray,
    e: FloatArray,
    h: float,
    reach: float,
    rtol: float,
    flat: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, float, float] | None:
    """Normal, height along e above the base, and angle error of the border near a base.

    Heights are sought within ``reach * h``, at ``rtol * h``, beside the base at ``h``; None
    where the spare ones are off by more than ``flat * h``.
    """
    d = len(base)
    U = np.linalg.qr(np.column_stack([e, rng.standard_normal((d, d - 1))]))[0][:, 1:].T
    spare = rng.standard_normal((_SPARE, d - 1))
    # Opposite places: whatever d, a bend between them shows.
    spare[1] = -spare[0]
    spare /= np.linalg.norm(spare, axis=1, keepdims=True)
    places = h * np.vstack([np.zeros((1, d - 1)), np.eye(d - 1), spare])
    heights = _heights(inside, base, e, U, places, reach * h, rtol * h)
    if heights is None:
        return None
    # height = height_0 + slope . place, by least squares over all places.
    A = np.column_stack([np.ones(len(places)), places])
    solution = np.linalg.lstsq(A, heights, rcond=None)[0]
    rest = A @ solution - heights
    if np.abs(rest).max() > flat * h:
        return None
    noise = max(float(np.sqrt(np.sum(rest**2) / _SPARE)), rtol * h)
    normal = e - solution[1:] @ U
    size = float(np.linalg.norm(normal))
    return normal / size, float(solution[0]), float(np.sqrt(2.0 * d) * noise / h)


def _heights(
    inside: Inside,
    base: FloatArray,
    e: FloatArray,
    U: FloatArray,
    places: FloatArray,
    reach: float,
    atol: float,
) -> FloatArray | None:
    """Heights of the border above places, or None where one is out of reach.

    A place whose border is out of reach is turned to its other side first, in ``places``, and
    half as far, so that it falls on no other one.
    """
    n = len(places)
    todo = np.arange(n)
    for attempt in range(2):
        points = base + places[todo] @ U
        below = inside(points - reach * e)
        above = inside(points + reach * e)
        todo = todo[~(below & ~above)]
        if not len(todo):
            break
        if attempt or todo[0] == 0:
            return None
        places[todo] *= -0.5
    points = base + places @ U
    lo, hi = np.full(n, -reach), np.full(n, reach)
    for _ in range(_MAX_HALVINGS):
        if hi[0] - lo[0] <= atol:
            break
        middle = (lo + hi) / 2.0
        within = inside(points + middle[:, None] * e)
        lo, hi = np.where(within, middle, lo), np.where(within, hi, middle)
    return np.asarray((lo + hi) / 2.0)
