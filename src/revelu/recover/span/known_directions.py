"""Directions that normals of borders have shown one after another, and how far off they are.

Each normal is known along the directions before it, and its part outside of them, measured anew,
is the next one: the normals are ``T Q``, with T triangular and rows of Q orthonormal, and errors N
of the normals make ``E = T^-1 N`` of Q.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.numerics.complement import Complement
from revelu.types import FloatArray


@dataclass(eq=False)
class KnownDirections:
    """Directions, and their complement."""

    rest: Complement
    triangle: FloatArray = field(init=False)
    """Shape (r, r).  T."""
    noise: FloatArray = field(init=False)
    """Shape (r,).  Sizes of N's rows."""
    leaks: FloatArray = field(init=False)
    """Shape (r,).  How much of its known part each normal's complement saw."""

    def __post_init__(self) -> None:
        self.triangle, self.noise, self.leaks = np.empty((0, 0)), np.empty(0), np.empty(0)

    @property
    def rank(self) -> int:
        """How many there are."""
        return len(self.noise)

    def take(self, normal: FloatArray, error: float, known: FloatArray, leak: float) -> None:
        """Take in a normal.

        Parameters
        ----------
        normal : ndarray, shape (n - r,)
            Its coordinates in the complement.
        error : float
            Of those, in all.
        known : ndarray, shape (r,)
            Its slopes along the directions so far.
        leak : float
            As :meth:`leak` tells it.
        """
        r, size = self.rank, float(np.linalg.norm(normal))
        self.triangle = np.pad(self.triangle, (0, 1))
        self.triangle[r, :r], self.triangle[r, r] = known, size
        self.noise, self.leaks = np.append(self.noise, error), np.append(self.leaks, leak)
        self.rest.take((normal / size)[None])

    def leak(self, known: FloatArray) -> float:
        """How much of slopes ``known (r,)`` along the directions the complement sees."""
        return float(np.linalg.norm(np.linalg.solve(self.triangle.T, known) * self.noise))

    @property
    def angles(self) -> FloatArray:
        """About how far off each direction is, in radians, shape (r,)."""
        return np.asarray(np.linalg.norm(np.linalg.inv(self.triangle) * self.noise, axis=1))

    @property
    def angle(self) -> float:
        """About how far off the span is, in radians: the norm of all errors of its basis."""
        return float(np.linalg.norm(self.angles))

    @property
    def usual_error(self) -> float:
        """What a direction is off by its own normal alone, at the median; infinite of none."""
        return float(np.median(self.noise / np.diag(self.triangle))) if self.rank else np.inf

    @property
    def usual_leak(self) -> float:
        """What leaks at the median; 0 of none."""
        return float(np.median(self.leaks)) if self.rank else 0.0
