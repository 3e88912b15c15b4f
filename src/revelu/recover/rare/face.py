"""The flat faces of a convex region that answers yes or no, each from label queries alone.

Along a ray from a place inside, a convex region is left once.  Where the border is crossed,
its normal comes from the heights of the border beside that place: first roughly, then,
looking along the rough normal from the middle of the face, to the last digits (about 60
queries for each input).  More heights than unknowns tell a face from an edge or a curve.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtri, stdtrit

from revelu.numerics.bisection import bisect
from revelu.numerics.confidence import CONFIDENCE
from revelu.recover.rare.units import Units
from revelu.types import BoolArray, FloatArray, IntArray

Inside = Callable[[FloatArray], BoolArray]
"""Tells which inputs are inside the region, (m, d) -> (m,); asks."""


def crossings(
    inside: Inside, base: FloatArray, V: FloatArray, lo: FloatArray, hi: FloatArray, atol: float
) -> FloatArray:
    """Bisect rays ``base + r v`` between a radius inside and one outside, all together, (m,).

    Parameters
    ----------
    inside : callable, (m, d) -> (m,) of bool
    base : ndarray, shape (d,) or (m, d)
    V : ndarray, shape (m, d)
    lo, hi : ndarray, shape (m,)
        Radii, inside and outside.
    atol : float
        Length at which an interval is short enough.
    """
    base = np.broadcast_to(base, V.shape)

    def is_inside(rows: IntArray, r: FloatArray) -> BoolArray:
        return inside(base[rows] + r[:, None] * V[rows])

    return bisect(is_inside, lo, hi, atol)


@dataclass(frozen=True)
class Look:
    """Measures the border beside a place, by its heights along a direction.

    Lengths are in units of the step: how far the places beside the base are.
    """

    steps: tuple[float, ...]
    """In units of the border's distance, the farthest first: far places give a precise normal,
    near ones are on a small face, too."""
    reach: float
    """How far up and down heights are sought."""
    rtol: float
    """How precisely heights are wanted; 0 where rounding alone limits them."""
    flat: float
    """Largest deviation of a place from the plane."""
    n_spare: int = 3
    """Places beyond those that determine the plane."""

    def plane(
        self,
        inside: Inside,
        base: FloatArray,
        e: FloatArray,
        h: float,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, float, float] | None:
        """Normal, height along e above the base, and angle error of the border near a base.

        None where a height is out of reach, or the border is not flat.

        Parameters
        ----------
        inside : callable
        base : ndarray, shape (d,)
        e : ndarray, shape (d,)
            Direction of norm 1 along which heights are measured.
        h : float
            The step.
        """
        d = len(base)
        U = np.linalg.qr(np.column_stack([e, rng.standard_normal((d, d - 1))]))[0][:, 1:].T
        spare = rng.standard_normal((self.n_spare, d - 1))
        # Opposite places: whatever d, a bend between them shows.
        spare[1] = -spare[0]
        spare /= np.linalg.norm(spare, axis=1, keepdims=True)
        places = h * np.vstack([np.zeros((1, d - 1)), np.eye(d - 1), spare])
        atol = max(self.rtol * h, rounding(float(np.linalg.norm(base)) + h))
        heights = _heights(inside, base, e, U, places, self.reach * h, atol)
        if heights is None:
            return None
        # height = height_0 + slope . place, by least squares over all places.
        A = np.column_stack([np.ones(len(places)), places])
        solution = np.linalg.lstsq(A, heights, rcond=None)[0]
        rest = A @ solution - heights
        if np.abs(rest).max() > self.flat * h:
            return None
        noise = max(float(np.sqrt(np.sum(rest**2) / self.n_spare)), atol)
        normal = e - solution[1:] @ U
        size = float(np.linalg.norm(normal))
        # Each of d - 1 slopes errs by that of two heights over the step.
        return normal / size, float(solution[0]), float(np.sqrt(2.0 * d) * noise / h)


ROUGH = Look(steps=(0.01, 0.001, 0.0001), reach=4.0, rtol=0.02, flat=0.1)
"""From where a ray leaves: a face seen at up to 75 degrees, its normal to a few hundredths."""

FINE = Look(steps=(0.3, 0.06, 0.01, 0.001), reach=0.15, rtol=0.0, flat=1e-5)
"""Along the rough normal, within what its error may make; flat as far as float32 tells."""


def find_facet(
    inside: Inside, centre: FloatArray, v: FloatArray, radius: float, rng: np.random.Generator
) -> Units | None:
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
    Units or None
        A unit that fires beyond the face; None where the border is not flat at any step tried:
        an edge, or a curve.
    """
    x = centre + radius * v
    looks = (ROUGH.plane(inside, x, v, step * radius, rng) for step in ROUGH.steps)
    rough = next((plane for plane in looks if plane is not None), None)
    if rough is None:
        return None
    w = rough[0]
    distance = float(w @ (x - centre))
    # The foot of the perpendicular is far from edges, where it is on the face at all.
    for base in (centre + distance * w, x):
        for step in FINE.steps:
            h = step * distance
            fine = FINE.plane(inside, base, w, h, rng)
            if fine is not None:
                normal, height, angle = fine
                threshold = float(normal @ (base + height * w))
                # The face is known at the base; beside it the angle's error counts.
                aside = float(np.linalg.norm(base - (normal @ base) * normal))
                error = angle * (h + aside) + rounding(threshold)
                bounds = _bounds(angle, error, len(normal), FINE.n_spare)
                return Units.one(normal, threshold, angle, error, bounds)
    return None


def _bounds(angle: float, error: float, d: int, n_spare: int) -> tuple[float, float]:
    """What an angle and a threshold are off by at most, at 95% confidence.

    Their noise is known from ``n_spare`` places alone: F is the law of an angle's d - 1
    directions over it, and Student's t that of the threshold.
    """
    wide = float(np.sqrt(fdtri(max(d - 1, 1), n_spare, CONFIDENCE)))
    return wide * angle, float(stdtrit(n_spare, 0.5 + 0.5 * CONFIDENCE)) * error


def rounding(size: float) -> float:
    """How far rounding may move a point of this norm: it is a sum of terms, each rounded."""
    return 16.0 * float(np.finfo(np.float64).eps) * abs(size)


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
    ends = np.full(n, reach)
    return crossings(inside, base + places @ U, np.tile(e, (n, 1)), -ends, ends, atol)
