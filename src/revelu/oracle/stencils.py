"""Seven points in a row, a few times over: where the noise of answers is measured.

The points lie so near each other that a kink between them is unlikely.  An affine function has
no fourth differences; a smooth one has ``f'''' h^4``, which is below rounding; what remains is
the noise of one answer times ``sqrt(70)``, the norm of (1, -4, 6, -4, 1).
"""

from dataclasses import dataclass

import numpy as np

from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Stencils:
    """Where the points lie, and what their answers say.

    Answers are arrays ``(n_stencils, n_points, k)``.

    Attributes
    ----------
    radii : tuple of float
        By how much the centres, drawn from N(0, I), are stretched.  Rounding is relative to the
        terms of a sum, which grow with the radius.
    n_points : int
        Of one stencil, an odd number.
    step : float
        Of neighbouring points, relative to the radius or to the sides of a box.
    near : float
        Noise that is drawn anew for every answer is measured inside this radius.
    kink_ratio : float
        Noise differs less than this from place to place; the differences at a kink, more.
    curved_factor : float
        By how much second differences exceed the noise where a target curves.
    """

    radii: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 0.3, 30.0)
    n_points: int = 7
    step: float = 1e-4
    near: float = 1.5
    kink_ratio: float = 1e4
    curved_factor: float = 16.0

    @property
    def firsts(self) -> np.ndarray:
        """Rows of the first point of each stencil."""
        return np.arange(len(self.radii)) * self.n_points

    @property
    def _turns(self) -> FloatArray:
        return np.arange(self.n_points, dtype=np.float64) - self.n_points // 2

    def inputs(
        self, rng: np.random.Generator, d: int, box: tuple[float, float] | None
    ) -> FloatArray:
        """Draw the points, shape (n_stencils * n_points, d), one stencil after another."""
        shape = (len(self.radii), 1, d)
        turns = self._turns[None, :, None]
        if box is not None:
            lo, hi = box
            margin = self.step * self.n_points / 2 * (hi - lo)
            inner = rng.uniform(lo + margin, hi - margin, shape)
            steps = self.step * (hi - lo) * rng.uniform(-1.0, 1.0, shape)
            return np.asarray(np.clip(inner + turns * steps, lo, hi).reshape(-1, d))
        radii = np.asarray(self.radii)[:, None, None]
        centres = rng.standard_normal(shape)
        directions = rng.standard_normal(shape)
        return np.asarray((radii * (centres + self.step * turns * directions)).reshape(-1, d))

    def centres(self, X: FloatArray) -> FloatArray:
        """The middle points, shape (n_stencils, d)."""
        return X[self.n_points // 2 :: self.n_points]

    def grouped(self, Y: FloatArray) -> FloatArray:
        """Answers ``(n, k)`` by stencil and point."""
        return Y.reshape(len(self.radii), self.n_points, -1)

    def noise(self, Y: FloatArray) -> FloatArray:
        """Standard error of an answer by stencil and output, from fourth differences."""
        weights = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
        windows = np.lib.stride_tricks.sliding_window_view(Y, 5, axis=1) @ weights
        return np.asarray(np.sqrt((windows**2).mean(axis=1)) / np.linalg.norm(weights))

    def typical(self, sigma: FloatArray) -> FloatArray:
        """The upper quartile of :meth:`noise` by output, unless a kink made it what it is.

        Where neurons that are off cost no rounding, the median would be too low; where all
        are off, nothing errs, which says nothing of the rest.
        """
        varies = np.where(sigma > 0, sigma, np.nan)
        varies[:, ~(sigma > 0).any(axis=0)] = 0.0
        median, upper = np.nanquantile(varies, [0.5, 0.75], axis=0)
        floor = np.finfo(np.float64).eps * sigma.max(axis=0)
        is_noise = upper <= self.kink_ratio * np.maximum(median, floor)
        return np.asarray(np.where(is_noise, upper, median))

    def scatter(self, Y: FloatArray, alive: BoolArray) -> FloatArray:
        """Standard error of an answer by output, from what an affine map leaves of a stencil.

        Of the ``n_points`` degrees of freedom it takes two.

        Parameters
        ----------
        Y : ndarray, shape (n_stencils, n_points, k)
        alive : ndarray of bool, shape (n_stencils,)
            Which stencils to look at.
        """
        basis = np.linalg.qr(np.column_stack([np.ones(self.n_points), self._turns]))[0]
        near = alive & (np.asarray(self.radii) < self.near)
        chosen = Y[near if near.any() else alive]
        rest = chosen - np.einsum("ij,sjk->sik", basis @ basis.T, chosen)
        n_free = len(chosen) * (self.n_points - 2)
        return np.asarray(np.sqrt((rest**2).sum(axis=(0, 1)) / n_free))

    def spread(self, Y: FloatArray, alive: BoolArray) -> FloatArray:
        """The standard deviation by output over N(0, I), exactly 0 for a constant.

        A stencil is hardly more than one place, but its mean is less noisy than an answer.

        Parameters
        ----------
        Y, alive
            As for :meth:`scatter`.
        """
        gaussian = alive & (np.asarray(self.radii) == 1.0)
        chosen = Y[gaussian if gaussian.sum() > 1 else alive]
        places = chosen.mean(axis=1) if len(chosen) > 1 else chosen[0]
        varies = np.ptp(chosen, axis=(0, 1)) > 0
        return np.asarray(np.where(varies, places.std(axis=0, ddof=1), 0.0))

    def fraction_curved(self, Y: FloatArray, sigma: FloatArray) -> float:
        """The share of the stencils on which some output curves.

        All five second differences must exceed their own noise, ``sqrt(6)`` times that of an
        answer, with one sign: a kink disturbs two of the five at most.
        """
        second = np.diff(Y, 2, axis=1)
        one_sign = np.abs(np.sign(second).sum(axis=1)) == second.shape[1]
        large = np.abs(second).min(axis=1) > self.curved_factor * 6.0**0.5 * sigma
        return float((one_sign & large).any(axis=1).mean())
