"""The noise floor of an image model, along a pixel that few neurons see."""

from dataclasses import dataclass, replace

import numpy as np

from revelu.network.images import Image
from revelu.oracle import NoiseFloor, Oracle
from revelu.types import FloatArray

__all__ = ["PixelNoise"]


@dataclass(frozen=True)
class PixelNoise:
    """How the floor is measured.

    A small convolution has thousands of neurons.  Where answers are compared along a general
    direction, hundreds of them bend the function, and what is measured is those; along a pixel
    hardly any.
    """

    n_places: int = 4
    """At each of which ``n_places`` answers are fitted by an affine function:"""
    n_points: int = 8
    """of a pixel"""
    span: float = 1e-2
    """that moves so far."""
    factor: float = 2.0
    """Neighbouring answers share some of their rounding."""

    def measured(
        self, oracle: Oracle, noise: NoiseFloor, image: Image, rng: np.random.Generator
    ) -> NoiseFloor:
        """Return the floor with the smaller of both relative errors, by 32 queries."""
        pixel = image.pixel(0, 0, 0)
        X = np.repeat(rng.standard_normal((self.n_places, 1, image.size)), self.n_points, axis=1)
        X[:, :, pixel] += self.span * rng.uniform(-1.0, 1.0, X.shape[:2])
        flat = oracle.in_float32(X.reshape(-1, image.size))
        Y = oracle(flat).reshape(self.n_places, self.n_points, -1)
        t = flat.reshape(X.shape)[:, :, pixel]
        left = [_left(t[i], Y[i]) for i in range(self.n_places)]
        sigma = self.factor * np.median(np.array(left), axis=0) / np.sqrt(2.0)
        floor = 0.5 * noise.numbers.eps * (np.sqrt(oracle.dim_in) if noise.law == "float64" else 1)
        nu = np.minimum(noise.nu, np.maximum(sigma / noise.unit, floor))
        return replace(noise, nu=nu)


def _left(t: FloatArray, Y: FloatArray) -> FloatArray:
    """Standard errors of answers that lie on a line, (k,)."""
    P = np.column_stack([t - t.mean(), np.ones(len(t))])
    rest = Y - P @ np.linalg.lstsq(P, Y, rcond=None)[0]
    return np.asarray(np.sqrt((rest**2).sum(axis=0) / (len(t) - 2)))
