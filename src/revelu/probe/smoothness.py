"""Tell smooth functions from piecewise affine ones where answers have few digits.

On a short segment a smooth function is a polynomial but for less than rounding, and no affine map.
A piecewise affine one is affine there, or has kinks.  Of a single kink a quintic through 13 points
leaves a twentieth at least of what an affine map leaves, wherever it lies, and of many random ones
a fiftieth, but once in a thousand times.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask
from revelu.types import FloatArray


@dataclass(frozen=True)
class Smoothness:
    """How a function is told to be smooth.

    Attributes
    ----------
    half_lengths : tuple of float
        Of segments, in standard deviations of the inputs, tried in turn: a long one shows slight
        curvature, a short one is a polynomial also where a function changes fast.
    n_segments, n_points : int
        Of one length, a round, and queries on each.
    degree : int
        Of the polynomial.
    rounder : float
        Where large terms cancel, answers may err so many times as much as was measured.
    clear : float
        An affine map has to leave so many times what the polynomial may.
    least_smooth : int
        Segments, of any length, that have to be smooth.
    n_first : int
        Where none is of so many lengths, that ends it.
    """

    half_lengths: tuple[float, ...] = (0.4, 0.16, 1.0, 0.06)
    n_segments: int = 4
    n_points: int = 13
    degree: int = 5
    rounder: float = 30.0
    clear: float = 50.0
    least_smooth: int = 4
    n_first: int = 2

    def is_smooth(self, ask: Ask, noise: NoiseFloor, dim_in: int, rng: np.random.Generator) -> bool:
        """Whether so many segments show a smooth function that no other is.

        Parameters
        ----------
        ask : callable, (n, d) -> (n, k)
        """
        n_smooth, t = 0, np.linspace(-1.0, 1.0, self.n_points)
        for turn, half_length in enumerate(self.half_lengths):
            if turn == self.n_first and not n_smooth:
                break
            centres, V = rng.standard_normal((2, self.n_segments, 1, dim_in))
            X = (centres + half_length * t[:, None] * V).reshape(-1, dim_in)
            Y = ask(X) / noise.unit
            if not np.isfinite(Y).all():
                break
            errors = self.rounder * SIGMAS * noise.relative * noise.growth(X)
            limit = errors.reshape(self.n_segments, -1).max(axis=1)
            Y = Y.reshape(self.n_segments, self.n_points, -1)
            is_polynomial = _left(Y, t, self.degree) <= limit
            n_smooth += int((is_polynomial & (_left(Y, t, 1) > self.clear * limit)).sum())
            if n_smooth >= self.least_smooth:
                return True
        return False


def _left(Y: FloatArray, t: FloatArray, degree: int) -> FloatArray:
    """What polynomials leave of answers ``Y (s, n, k)`` at most, by segment, shape (s,)."""
    basis = np.linalg.qr(np.vander(t, degree + 1))[0]
    left = Y - np.einsum("ij,sjk->sik", basis @ basis.T, Y)
    return np.asarray(np.abs(left).max(axis=(1, 2)))
