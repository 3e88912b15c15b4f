"""Midpoints with radii: floating-point results that say how far off they may be.

A ball is every real array within ``rad`` of ``mid``, entry by entry.  Operations round outward:
their ball holds what exact arithmetic makes of any members.  A float64 result errs by ``UNIT`` of
itself at most, and a sum of n products by ``n UNIT / (1 - n UNIT)`` of the sum of their sizes, in
whatever order it was added (Higham, Accuracy and Stability of Numerical Algorithms, 3.1).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from revelu.types import BoolArray, FloatArray, IntArray

UNIT = float(np.finfo(np.float64).epsneg)
# More than underflow may lose of a result: the smallest normal number.
TINY = float(np.finfo(np.float64).tiny)


def product_error(n: int) -> float:
    """How far a sum of n products may be off, as a share of the sum of their sizes.

    Twice as much as one sum needs, since the sum of sizes is computed, too.
    """
    return 2.0 * (n + 2) * UNIT


def outward(radius: FloatArray) -> FloatArray:
    """Return radii that are no smaller than the exact value of a short sum that was computed."""
    return np.asarray(radius * (1.0 + 16.0 * UNIT) + TINY)


@dataclass(frozen=True)
class Ball:
    """Every real array within ``rad`` of ``mid``.

    Attributes
    ----------
    mid, rad : ndarray
        Of one shape; radii are not negative.
    """

    mid: FloatArray
    rad: FloatArray

    @classmethod
    def exactly(cls, values: ArrayLike) -> "Ball":
        """Return the ball of one array."""
        mid = np.asarray(values, dtype=np.float64)
        return cls(mid, np.zeros_like(mid))

    @classmethod
    def between(cls, low: FloatArray, high: FloatArray) -> "Ball":
        """Return a ball that holds everything from ``low`` to ``high``."""
        mid = 0.5 * low + 0.5 * high
        rad = np.where(low == high, 0.0, outward(np.maximum(high - mid, mid - low)))
        return cls(np.where(low == high, low, mid), rad)

    @property
    def low(self) -> FloatArray:
        """What no member is below."""
        return np.where(self.rad > 0.0, np.nextafter(self.mid - self.rad, -np.inf), self.mid)

    @property
    def high(self) -> FloatArray:
        """What no member is above."""
        return np.where(self.rad > 0.0, np.nextafter(self.mid + self.rad, np.inf), self.mid)

    @property
    def size(self) -> FloatArray:
        """What no member is larger than, by its absolute value."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def __neg__(self) -> "Ball":
        return Ball(-self.mid, self.rad)

    def __add__(self, other: "Ball") -> "Ball":
        mid = self.mid + other.mid
        exact = (self.mid == 0.0) | (other.mid == 0.0) | (mid == 0.0)
        own = np.where(exact, 0.0, UNIT * np.abs(mid))
        rad = self.rad + other.rad + own
        return Ball(mid, np.where(rad > 0.0, outward(rad), 0.0))

    def __sub__(self, other: "Ball") -> "Ball":
        return self + -other

    def __mul__(self, other: "Ball") -> "Ball":
        mid = self.mid * other.mid
        exact = (_keeps_digits(self.mid) | _keeps_digits(other.mid)) & ~_underflows(mid)
        exact |= (self.mid == 0.0) | (other.mid == 0.0)
        own = np.where(exact, 0.0, UNIT * np.abs(mid) + TINY)
        spread = np.abs(self.mid) * other.rad + self.rad * (np.abs(other.mid) + other.rad)
        rad = spread + own
        return Ball(mid, np.where(rad > 0.0, outward(rad), 0.0))

    def __matmul__(self, other: "Ball") -> "Ball":
        n = self.mid.shape[-1]
        sizes = np.abs(self.mid) @ np.abs(other.mid)
        spread = np.abs(self.mid) @ other.rad + self.rad @ (np.abs(other.mid) + other.rad)
        rad = (spread + product_error(n) * sizes) * (1.0 + product_error(n)) + n * TINY
        return Ball(self.mid @ other.mid, outward(rad))

    def scaled(self, factor: float) -> "Ball":
        """Return it times a power of 2, which is exact where nothing underflows."""
        mid = self.mid * factor
        rad = self.rad * factor + np.where(self.rad > 0.0, TINY, 0.0)
        return Ball(mid, rad + np.where((self.mid != 0.0) & _underflows(mid), TINY, 0.0))

    def column(self) -> "Ball":
        """Return a row as a column."""
        return Ball(self.mid[:, None], self.rad[:, None])

    def row(self) -> "Ball":
        """Return a column as a row."""
        return Ball(self.mid[:, 0], self.rad[:, 0])

    def take(self, rows: IntArray) -> "Ball":
        """Return some of the rows."""
        return Ball(self.mid[rows], self.rad[rows])


def _keeps_digits(values: FloatArray) -> BoolArray:
    """Whether a product with it has the digits of the other factor: a power of 2."""
    return np.asarray(np.abs(np.frexp(values)[0]) == 0.5)


def _underflows(values: FloatArray) -> BoolArray:
    """Whether a result is so small that digits of it may be lost."""
    return np.asarray(np.abs(values) < 1e-290)
