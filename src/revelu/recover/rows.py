"""Rows of hidden neurons as lines show them, each with its error."""

from dataclasses import dataclass, replace

import numpy as np

from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Rows:
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

    def __len__(self) -> int:
        return len(self.b)

    def joined(self, other: "Rows") -> "Rows":
        """Both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Rows(*(np.concatenate(pair) for pair in pairs))

    def turned(self, signs: FloatArray | IntArray) -> "Rows":
        """The same rows, turned round where their sign is negative."""
        return replace(self, W=signs[:, None] * self.W, b=signs * self.b)

    def take(self, which: BoolArray | IntArray) -> "Rows":
        """Some of them."""
        return Rows(*(values[which] for values in vars(self).values()))
