"""A normal law by the square root of its information.

What is known to 1e-7 stands beside what is known to 10: of a covariance's entries rounding leaves
16 digits of the largest alone, of its inverse's root each direction has its own (Bierman 1977).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from revelu.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Gaussian:
    """``root (x - mean)`` has independent coordinates of variance 1."""

    mean: FloatArray
    """Shape (n,)."""
    root: FloatArray
    """Shape (n, n), upper triangular.  ``root.T root`` is the inverse of the covariance."""

    @classmethod
    def of(cls, A: FloatArray, y: FloatArray) -> "Gaussian":
        """Return the law of x by equations ``A x = y`` of variance 1 that determine it.

        Parameters
        ----------
        A : ndarray, shape (m, n)
        y : ndarray, shape (m,)
        """
        Q, root = scipy.linalg.qr(A, mode="economic", check_finite=False)
        return cls(scipy.linalg.solve_triangular(root, Q.T @ y), root)

    @cached_property
    def spread(self) -> FloatArray:
        """Shape (n, n): the covariance is ``spread spread.T``."""
        return np.asarray(scipy.linalg.solve_triangular(self.root, np.eye(len(self.root))))

    @property
    def covariance(self) -> FloatArray:
        """Shape (n, n)."""
        return np.asarray(self.spread @ self.spread.T)

    def errors_of(self, F: FloatArray) -> FloatArray:
        """Standard errors of ``F x``, of rows of ``F (m, n)``, shape (m,)."""
        return np.asarray(np.linalg.norm(F @ self.spread, axis=1))

    def wider(self, factor: float) -> "Gaussian":
        """The same with all errors larger by a factor."""
        return replace(self, root=self.root / factor)

    def given(self, A: FloatArray, error: float) -> "Gaussian":
        """The same where ``A x`` is 0 but for independent errors; ``A`` is (m, n)."""
        equations = np.vstack([self.root, A / error])
        return Gaussian.of(equations, np.append(self.root @ self.mean, np.zeros(len(A))))

    def moved(self, T: FloatArray, inverse: FloatArray) -> "Gaussian":
        """The law of ``T x``; both matrices are (n, n)."""
        root = scipy.linalg.qr(self.root @ inverse, mode="r", check_finite=False)[0]
        return Gaussian(T @ self.mean, root)

    def of_some(self, which: IntArray) -> "Gaussian":
        """The law of some coordinates, whatever the others are."""
        order = np.append(np.setdiff1d(np.arange(len(self.mean)), which), which)
        root = scipy.linalg.qr(self.root[:, order], mode="r", check_finite=False)[0]
        return Gaussian(self.mean[which], root[-len(which) :, -len(which) :])
