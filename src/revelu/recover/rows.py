"""Rows of hidden neurons as lines show them, each with its error."""

from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.records import Records
from revelu.types import FloatArray, IntArray


@dataclass(frozen=True)
class Rows(Records):
    """Neurons whose orientation is open."""

    W: FloatArray
    """Shape (m, d)."""
    b: FloatArray
    """Shape (m,)."""
    A: FloatArray
    """Shape (m, k).  Output columns."""
    errors: FloatArray
    """Shape (m,).  Standard error of each row of ``W``, relative to it."""
    X: FloatArray
    """Shape (m, d).  Where on its line each was found."""

    @classmethod
    def none(cls, d: int, k: int) -> "Rows":
        """Return no row."""
        return cls(np.empty((0, d)), np.empty(0), np.empty((0, k)), np.empty(0), np.empty((0, d)))

    def turned(self, signs: FloatArray | IntArray) -> "Rows":
        """The same rows, turned round where their sign is negative."""
        return replace(self, W=signs[:, None] * self.W, b=signs * self.b)
