"""Linear equations with errors for unknowns of which something is known before.

With ``E u = y + noise``, the noise of variances ``S``, and ``u ~ N(u0, P)`` before, ``u`` has a
mean and a variance, in a system of as many unknowns as there are equations::

    u = u0 + P E' (E P E' + S)^-1 (y - E u0).
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from revelu.numerics.records import Records
from revelu.types import FloatArray


@dataclass(frozen=True)
class Equations(Records):
    """Equations ``E u = y`` for unknowns ``u (e,)``; before, these have variances ``P (e,)``.

    Attributes
    ----------
    E : ndarray, shape (q, e)
    y : ndarray, shape (q,)
    errors : ndarray, shape (q,)
        Standard errors of the right-hand sides.

    Examples
    --------
    >>> once = Equations(np.array([[1.0, 1.0]]), np.array([4.0]), np.array([1e-9]))
    >>> once.mean(np.array([1.0, 1.0]), np.array([1.0, 1.0])).round(6).tolist()
    [2.0, 2.0]
    >>> round(once.variance(np.array([1.0, 1.0]), np.array([1.0, 0.0])), 6)
    0.5
    """

    E: FloatArray
    y: FloatArray
    errors: FloatArray

    def mean(self, P: FloatArray, u0: FloatArray) -> FloatArray:
        """Return the mean of the unknowns, (e,), which is ``u0`` before."""
        return np.asarray(u0 + P * (self.E.T @ self._solved(P, self.y - self.E @ u0)))

    def variance(self, P: FloatArray, c: FloatArray) -> float:
        """Return the variance of ``c' u`` for ``c (e,)``."""
        across = self.E @ (P * c)
        told = across @ self._solved(P, across) if len(across) else 0.0
        return max(float(c**2 @ P - told), 0.0)

    def strain(self, P: FloatArray, u0: FloatArray, n_free: int = 0) -> float:
        """By how much more than their errors and ``P`` explain they disagree, 1 at least.

        Their reduced chi-squared, whose root is the scale of errors that explain it (Birge 1932).

        Parameters
        ----------
        n_free : int
            Unknowns of which nothing is known before: as many equations only determine them.
        """
        off, spare = self.y - self.E @ u0, len(self.y) - n_free
        if spare < 1:
            return 1.0
        return float(np.sqrt(max(float(off @ self._solved(P, off)) / spare, 1.0)))

    def factor(self, P: FloatArray) -> FloatArray:
        """Return ``R`` with ``R'R`` the precision of the unknowns, shape (e, e)."""
        told = self.E / self.errors[:, None]
        return np.asarray(np.linalg.qr(np.vstack([np.diag(1.0 / np.sqrt(P)), told]), mode="r"))

    def _solved(self, P: FloatArray, y: FloatArray) -> FloatArray:
        """Return ``(E P E' + S)^-1 y``."""
        M = (self.E * P) @ self.E.T + np.diag(self.errors**2)
        size = np.sqrt(np.diag(M))
        M = M / size / size[:, None]
        # Equations of lines that are all but one say the same to within rounding.
        M[np.diag_indices_from(M)] += len(M) * np.finfo(np.float64).eps
        return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(M), y / size) / size)
