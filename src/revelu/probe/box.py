"""A box that queries must stay in, bounded or not: chords and inward derivatives."""

from dataclasses import dataclass

import numpy as np

from revelu.errors import SaturatedError
from revelu.numerics.confidence import SIGMAS
from revelu.probe.gradient import Stencil
from revelu.probe.line import Ask, Askable, Line
from revelu.probe.view import View
from revelu.types import FloatArray


@dataclass(frozen=True)
class Box:
    """All ``x`` with ``lo <= x <= hi``, coordinate by coordinate.

    Attributes
    ----------
    lo, hi : ndarray, shape (d,)
        ``hi`` may be infinite.
    """

    lo: FloatArray
    hi: FloatArray

    @staticmethod
    def cube(lo: float, hi: float, d: int) -> "Box":
        """Return ``[lo, hi]^d``."""
        return Box(np.full(d, float(lo)), np.full(d, float(hi)))

    @property
    def size(self) -> float:
        """The longest side."""
        return float((self.hi - self.lo).max())

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw points of a bounded box, shape (n, d): every other one is a corner."""
        X = rng.uniform(self.lo, self.hi, (n, len(self.lo)))
        corners = np.where(rng.random((n // 2, len(self.lo))) < 0.5, self.lo, self.hi)
        X[1::2] = corners
        return np.asarray(X)

    def clip(self, X: FloatArray) -> FloatArray:
        """Move points that rounding took out of the box back into it."""
        return np.asarray(np.clip(X, self.lo, self.hi))

    def inward(self, x: FloatArray, h: float) -> FloatArray:
        """Signed steps, one a coordinate, of length ``h``, or of half the room in the box."""
        above, below = self.hi - x, x - self.lo
        room = np.maximum(above, below)
        return np.where(above >= below, 1.0, -1.0) * np.minimum(h, room / 2.0)


class Confined(View):
    """A target in a box; queries that rounding took out of it are moved back."""

    def __init__(self, target: Askable, box: Box) -> None:
        super().__init__(target, target.dim_in)
        self.box = box

    def inputs(self, Z: FloatArray) -> FloatArray:
        """Return queries in the box, (n, d) -> (n, d)."""
        return self.box.clip(Z)


def segment(start: FloatArray, end: FloatArray) -> tuple[Line, tuple[float, float]]:
    """The line through two points, and the interval of it that lies between them.

    The middle is at ``t = 0`` and the ends are at ``t = -1`` and ``t = 1``.
    """
    return Line((start + end) / 2, (end - start) / 2), (-1.0, 1.0)


def inward_jacobian(
    ask: Ask,
    x: FloatArray,
    h: float,
    box: Box,
    error: FloatArray,
    rng: np.random.Generator,
    *,
    cuts: tuple[float, ...] = (1.0, 0.1, 0.01, 0.001),
) -> FloatArray | None:
    """The derivatives at a point by differences that stay in a box (DG21, Algorithm 2).

    One more query in a random direction tells whether a kink came between.

    Parameters
    ----------
    ask : callable, (n, d) -> (n, k)
    x : ndarray, shape (d,)
    h : float
        The step; shorter where the box has no room for it.
    error : ndarray, shape (k,)
        Standard error of an answer.
    cuts : tuple of float
        Shares of the step, tried one after another while a kink shows.

    Returns
    -------
    ndarray, shape (k, d), or None
        None where kinks are too near at every step tried.

    Raises
    ------
    SaturatedError
        If the target is saturated there.
    """
    axes = np.eye(len(x))
    for cut in cuts:
        steps = box.inward(x, cut * h)
        aside = steps * np.abs(rng.standard_normal(len(x)))
        aside *= np.linalg.norm(steps) / (np.linalg.norm(aside) * np.sqrt(len(x)))
        aside = np.clip(aside, -np.abs(steps), np.abs(steps))
        slopes = Stencil(x, axes, steps, aside=aside).measure(ask)
        if not slopes.is_finite:
            raise SaturatedError("the target is saturated beside a line")
        if (slopes.apart <= SIGMAS * slopes.apart_error * error).all():
            return slopes.values.T
    return None
