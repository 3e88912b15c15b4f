"""Tell smooth functions from piecewise affine ones where answers have few digits.

On a short segment a smooth function is a polynomial but for less than rounding, and no affine map;
what it leaves of an affine map falls with the square of the segment's length.  A piecewise affine
function is affine there, or has kinks, and what a kink leaves falls with the length alone, or is
nothing once the kink is outside.  So each segment is made as short as answers allow: until an
affine map leaves just ``clear`` times what noise does.  Few kinks are left inside then, and a cubic
does not explain them.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Smoothness:
    """How a function is told to be smooth.

    A segment is smooth where a cubic leaves what noise does, `SIGMAS` standard errors, and an
    affine map ``clear`` times that.  By simulation, 20,000 times each, this holds of 12 kinks of
    one strength and sign on a segment once in a thousand times, of 20 once in 200; of 20 of random
    strengths of one sign once in 3,000, and of both signs once in 10,000, however many they are.
    Four of sixteen segments have to be smooth: with 20 kinks on each the probability of that is
    ``1820 / 200^4 = 1e-6`` at most (`FALSE_ALARM`).  Segments that float32 resolves have 20 kinks
    where a layer has ten thousand neurons that all bend the answers the same way; where neurons
    bend them either way, any number.

    Attributes
    ----------
    longest : float
        Half of the length of a segment, in standard deviations of the inputs, at first and at most.
    coarse : float
        Answers that err by a larger share do not show the bend of a segment of that length.
    n_segments : int
        A turn.
    n_turns : int
        Further ones where the first has shown some smooth segments, and too few.
    n_points : int
        Queries on each segment.
    degree : int
        Of the polynomial.
    clear : float
        An affine map has to leave ``clear`` times what the polynomial may.
    spare : float
        Segments are made no shorter than for an affine map to leave ``spare`` times what it has to.
    n_lengths : int
        Lengths of one segment.
    least_smooth : int
        Segments that have to be smooth.
    """

    longest: float = 0.1
    coarse: float = 4e-6
    n_segments: int = 4
    n_turns: int = 4
    n_points: int = 13
    degree: int = 3
    clear: float = 50.0
    spare: float = 1.6
    n_lengths: int = 3
    least_smooth: int = 4

    def is_smooth(self, ask: Ask, noise: NoiseFloor, dim_in: int, rng: np.random.Generator) -> bool:
        """Whether that number of segments shows a smooth function that no other is.

        Parameters
        ----------
        ask : callable, (n, d) -> (n, k)
        """
        n_smooth = 0
        if noise.relative > self.coarse:
            return False
        for _ in range(self.n_turns):
            n_smooth += int(self._turn(ask, noise, dim_in, rng).sum())
            if n_smooth >= self.least_smooth:
                return True
            if not n_smooth:
                break
        return False

    def _turn(
        self, ask: Ask, noise: NoiseFloor, dim_in: int, rng: np.random.Generator
    ) -> BoolArray:
        """Which of as many segments, at the shortest lengths that show a bend, are smooth."""
        centres, V = rng.standard_normal((2, self.n_segments, dim_in))
        lengths = np.full(self.n_segments, self.longest)
        smooth = np.zeros(self.n_segments, dtype=bool)
        todo = np.arange(self.n_segments)
        t = np.linspace(-1.0, 1.0, self.n_points)
        for _ in range(self.n_lengths):
            moves = (lengths[todo, None] * t)[:, :, None] * V[todo, None]
            X = (centres[todo, None] + moves).reshape(-1, dim_in)
            Y = (ask(X) / noise.unit).reshape(len(todo), self.n_points, -1)
            errors = SIGMAS * noise.relative * noise.growth(X)
            limit = errors.reshape(len(todo), -1).max(axis=1)
            answered = np.isfinite(Y).all(axis=(1, 2))
            todo, Y, limit = todo[answered], Y[answered], limit[answered]
            if not len(todo):
                break
            bend = _left(Y, t, 1) / (self.clear * limit)
            smooth[todo] = (bend > 1.0) & (_left(Y, t, self.degree) <= limit)
            # What a smooth function leaves of an affine map goes with the square of the length.
            wanted = lengths[todo] * np.sqrt(self.spare / np.maximum(bend, 1e-9))
            wanted = np.minimum(wanted, self.longest)
            is_due = (bend > self.spare**2) | ((bend <= 1.0) & (wanted > lengths[todo]))
            smooth[todo[is_due]] = False
            lengths[todo] = wanted
            todo = todo[is_due]
            if not len(todo):
                break
        return smooth


def _left(Y: FloatArray, t: FloatArray, degree: int) -> FloatArray:
    """What polynomials leave of answers ``Y (s, n, k)`` at most, by segment, shape (s,)."""
    basis = np.linalg.qr(np.vander(t, degree + 1))[0]
    left = Y - np.einsum("ij,sjk->sik", basis @ basis.T, Y)
    return np.asarray(np.abs(left).max(axis=(1, 2)))
