"""Rows of hidden neurons as lines show them, each with its error."""

from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.records import Records
from revelu.types import FloatArray, IntArray


@dataclass(frozen=True)
class Rows(Records):
    """Neurons whose orientation is open.

    Attributes
    ----------
    W : ndarray, shape (m, d)
    b : ndarray, shape (m,)
    A : ndarray, shape (m, k)
        Output columns.
    errors : ndarray, shape (m,)
        Standard error of each row of ``W``, relative to it.
    X : ndarray, shape (m, d)
        Where on its line each was found.
    """

    W: FloatArray
    b: FloatArray
    A: FloatArray
    errors: FloatArray
    X: FloatArray

    @classmethod
    def none(cls, d: int, k: int) -> "Rows":
        """Return no row."""
        return cls(np.empty((0, d)), np.empty(0), np.empty((0, k)), np.empty(0), np.empty((0, d)))

    def turned(self, signs: FloatArray | IntArray) -> "Rows":
        """The same rows, turned round where their sign is negative."""
        return replace(self, W=signs[:, None] * self.W, b=signs * self.b)
