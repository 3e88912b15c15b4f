"""Seven points in a row, a few times over: where the noise of answers is measured.

The points lie so near each other that a kink between them is unlikely.  An affine function has
no fourth differences; a smooth one has ``f'''' h^4``, which is below rounding; what remains is
the noise of one answer times ``sqrt(70)``, the norm of (1, -4, 6, -4, 1).
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.types import BoolArray, FloatArray, IntArray


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
    n_more : int
        Stencils of radius 1 that are asked, too, where answers have few digits.  The error of a
        float32 answer differs from place to place by a factor of two, and ``n`` places give its
        mean square to ``0.8 / sqrt(n)``: a tenth of its root with these.
    grid : float
        Inputs of N(0, I) are multiples of this, if of any: float32 numbers hold those up to
        ``2**24`` times that.
    half_step : float
        The step where answers are half-precision numbers: shorter ones lead to inputs that round
        to the same number, whose answers do not differ.
    places : float
        The error of an answer that is computed in few digits differs from place to place: at a few
        in a hundred it is ``places`` times the root mean square of all, which tests of single
        answers have to allow for.
    few_digits_ratio : float
        There, kinks make what a stencil shows larger than the median by more than this.
    curved_factor : float
        By how much second differences exceed the noise where a target curves.
    """

    radii: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 0.3, 30.0)
    n_points: int = 7
    step: float = 1e-4
    near: float = 1.5
    kink_ratio: float = 1e4
    curved_factor: float = 16.0
    n_more: int = 20
    grid: float = 0.0
    half_step: float = 2.0**-8
    places: float = 2.0
    few_digits_ratio: float = 8.0

    @property
    def n_queries(self) -> int:
        """How many queries they take, with those that are asked again."""
        return len(self.radii) * (self.n_points + 1)

    @property
    def more(self) -> "Stencils":
        """Where to ask, too, where answers have few digits."""
        return replace(self, radii=(1.0,) * self.n_more, grid=2.0**-20)

    @property
    def more_of_half_precision(self) -> "Stencils":
        """Where to ask, too, where answers are half-precision numbers."""
        return replace(self, radii=(1.0,) * self.n_more, step=self.half_step)

    @property
    def again(self) -> IntArray:
        """Rows that are asked again: the first point of each stencil, and no far one.

        What is beside a row is another then, where rows are normalised or quantised together:
        the far ones decide by how much.  In place of the farthest the last point of the first.
        """
        firsts = np.arange(len(self.radii)) * self.n_points
        firsts[np.argmax(self.radii)] = self.n_points - 1
        return firsts

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
        steps = self.step * rng.standard_normal(shape)
        if self.grid:
            centres, steps = (self.grid * np.round(A / self.grid) for A in (centres, steps))
        return np.asarray((radii * (centres + turns * steps)).reshape(-1, d))

    def growth(self, X: FloatArray, box: tuple[float, float] | None) -> FloatArray:
        """How terms grow with the radius, by input, one factor a stencil.

        An affine function stays affine along it so.  Answers do not grow in a box: the scale is
        that of ``|x|^2 = d``.
        """
        if box is not None:
            return np.full(len(X), np.sqrt(2.0))
        return np.repeat(growth_of(self.centres(X)), self.n_points)

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

    def scatter(self, Y: FloatArray) -> FloatArray:
        """Standard error of an answer by stencil and output, from what a parabola leaves.

        Of the ``n_points`` degrees of freedom it takes three; fourth differences take four.
        """
        powers = self._turns[:, None] ** np.arange(3)
        basis = np.linalg.qr(powers)[0]
        # Neighbours differ by a number without error, which the parabola's own rounding is small
        # beside: of float64 answers themselves it would be larger than what they err by.
        with np.errstate(invalid="ignore"):
            Y = Y - Y[:, self.n_points // 2, None]
            rest = Y - np.einsum("ij,sjk->sik", basis @ basis.T, Y)
        return np.asarray(np.sqrt((rest**2).sum(axis=1) / self.n_free))

    def grow(self, Y: FloatArray, growth: FloatArray) -> bool:
        """Whether errors are larger far out, as terms are, or the same everywhere.

        Parameters
        ----------
        Y : ndarray, shape (n_stencils, n_points, k)
            Lifted: what grows has one scatter, and what does not is smaller by the growth.
        growth : ndarray, shape (n_stencils,)
        """
        scatter, far = np.linalg.norm(self.scatter(Y), axis=1), int(np.argmax(growth))
        near = float(np.median(np.delete(scatter, far))) if len(scatter) > 1 else 0.0
        # Half-way between the two, by their ratio.
        return bool(scatter[far] * np.sqrt(growth[far] / np.sqrt(2.0)) >= near)

    @property
    def n_free(self) -> int:
        """Degrees of freedom of what a parabola leaves of one stencil."""
        return self.n_points - 3

    def pooled_noise(self, Y: FloatArray) -> FloatArray:
        """Standard error of an answer by output, (n_stencils, n_points, k) -> (k,)."""
        return self.pooled(self.scatter(Y))

    def pooled(self, scatter: FloatArray) -> FloatArray:
        """Standard error of an answer by output, root mean square of those without a kink.

        It is 0 where all have one.  Where all neurons are off, nothing errs, which says nothing of
        the rest.

        Parameters
        ----------
        scatter : ndarray, shape (n_stencils, k)
            As :meth:`scatter` gives it.
        """
        errs = scatter > 0.0
        typical = np.nanmedian(np.where(errs | ~errs.any(axis=0), scatter, np.nan), axis=0)
        # A kink that shows in one output is in all.
        straight = (scatter <= self.few_digits_ratio * typical).all(axis=1, keepdims=True)
        is_noise = (errs & straight) | (typical == 0.0)
        n_noise = np.maximum(is_noise.sum(axis=0), 1)
        return np.asarray(np.sqrt((scatter**2).sum(axis=0, where=is_noise) / n_noise))

    def is_near(self, alive: BoolArray) -> BoolArray:
        """Which stencils that are ``alive`` lie where noise is measured that is drawn anew."""
        near = alive & (np.asarray(self.radii) < self.near)
        return near if near.any() else alive

    def is_gaussian(self, alive: BoolArray) -> BoolArray:
        """Which stencils that are ``alive`` lie at N(0, I), if more than one does."""
        gaussian = alive & (np.asarray(self.radii) == 1.0)
        return gaussian if gaussian.sum() > 1 else alive

    @staticmethod
    def spread(Y: FloatArray) -> FloatArray:
        """The standard deviation by output over N(0, I), exactly 0 for a constant.

        A stencil is hardly more than one place, but its mean is less noisy than an answer.

        Parameters
        ----------
        Y : ndarray, shape (n_stencils, n_points, k)
            At N(0, I), as far as there are any.
        """
        places = Y.mean(axis=1) if len(Y) > 1 else Y[0]
        varies = np.ptp(Y, axis=(0, 1)) > 0
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

    @staticmethod
    def fraction_steady(Y: FloatArray) -> float:
        """The share of neighbouring points with the same answers; 0 where all answers are.

        Parameters
        ----------
        Y : ndarray, shape (n_stencils, n_points, k)
        """
        if not np.ptp(Y, axis=(0, 1)).any():
            return 0.0
        return float((Y[:, 1:] == Y[:, :-1]).all(axis=2).mean())


def growth_of(X: FloatArray) -> FloatArray:
    """How terms grow with the radius, ``sqrt(1 + |x|^2 / d)`` of each row, (..., d) -> (...)."""
    return np.asarray(np.sqrt(1.0 + (X**2).mean(axis=-1)))
