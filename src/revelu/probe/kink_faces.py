"""Faces: where kinks of one unit are along a pixel, as an affine function of the other pixels.

Of means a unit's kinks are one face, its row; of the largest of a window there is a face for each
place that the first one ties with, and one where the others are under 0.  A face is measured at one
kink, a pixel at a time, and again by every kink that lies on it (Kalman 1960).
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["Face"]


@dataclass(frozen=True)
class Face:
    """The place of a kink is ``x . (p, 1)``, in spacings, where the other pixels are p.

    Attributes
    ----------
    x : ndarray, shape (d,)
    covariance : ndarray, shape (d, d)
    """

    x: FloatArray
    covariance: FloatArray

    @classmethod
    def at(
        cls, ratios: FloatArray, errors: FloatArray, p: FloatArray, place: float, spread: float
    ) -> "Face":
        """Return the face through a kink.

        Parameters
        ----------
        ratios, errors : ndarray, shape (d - 1,)
            How far the kink moves with each pixel, and their standard errors.
        p : ndarray, shape (d - 1,)
        place, spread : float
            Where the kink is, and its standard error.
        """
        M = np.eye(len(ratios) + 1)
        M[-1, :-1] = -p
        x = M @ np.append(ratios, place)
        return cls(x, (M * np.append(errors, spread) ** 2) @ M.T)

    def agrees(self, P: FloatArray, places: FloatArray, spread: FloatArray) -> BoolArray:
        """Which kinks lie on it, (n,), where the other pixels and a one are ``P (n, d)``."""
        variance = np.einsum("ni,ij,nj->n", P, self.covariance, P)
        return np.asarray(np.abs(places - P @ self.x) <= SIGMAS * np.sqrt(variance + spread**2))

    def joined(self, P: FloatArray, places: FloatArray, spread: FloatArray) -> "Face":
        """Return it as all kinks that lie on it tell, those first of which it is surest."""
        x, C = self.x.copy(), self.covariance.copy()
        for i in np.argsort(np.einsum("ni,ij,nj->n", P, C, P)):
            gain = C @ P[i]
            variance = P[i] @ gain + spread[i] ** 2
            apart = places[i] - P[i] @ x
            if abs(apart) <= SIGMAS * np.sqrt(variance):
                x = x + gain * (apart / variance)
                C = C - np.outer(gain, gain) / variance
        return Face(x, C)

    def without(self, pixels: IntArray) -> "Face":
        """Return it where it is known not to depend on some pixels."""
        C = self.covariance
        gain = np.linalg.solve(C[np.ix_(pixels, pixels)], C[pixels]).T
        x, C = self.x - gain @ self.x[pixels], C - gain @ C[pixels]
        x[pixels], C[pixels], C[:, pixels] = 0.0, 0.0, 0.0
        return Face(x, C)
