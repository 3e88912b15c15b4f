"""Derivatives by differences, each with its error.

A difference over a step h errs by the noise of two answers over h.  On a piecewise affine
function that is all, and the longest step that crosses no kink is the best; on a smooth one the
step balances noise against curvature.  A :class:`Stencil` serves where a step is known, from the
pieces of a line or a box, and :class:`CheckedGradients` where one is known roughly;
:class:`Differences` finds one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.line import Ask
from revelu.types import FloatArray


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives at one point.

    Attributes
    ----------
    values : ndarray, shape (m, k)
        Along each direction; not finite where the target is saturated.
    errors : ndarray, shape (m,)
        Standard errors, in units of an answer's.
    apart : ndarray, shape (k,)
        How far the answer aside is off the one that the derivatives predict; 0 if not asked.
    apart_error : float
        Standard error of that, in units of an answer's.
    answer : ndarray, shape (k,)
        The target's answer at the point itself.
    """

    values: FloatArray
    errors: FloatArray
    apart: FloatArray
    apart_error: float
    answer: FloatArray

    @property
    def is_finite(self) -> bool:
        """Whether the target answered with numbers everywhere."""
        return bool(np.isfinite(self.values).all() and np.isfinite(self.apart).all())


@dataclass(frozen=True, eq=False)
class Stencil:
    """Points around ``x`` whose answers tell its derivatives along some directions.

    Attributes
    ----------
    x : ndarray, shape (d,)
    directions : ndarray, shape (m, d)
        Orthonormal rows.
    steps : ndarray, shape (m,)
        Signed; differences are forward.
    fx : ndarray, shape (k,), optional
        The answer at ``x``, where it is known and need not be asked.
    aside : ndarray, shape (d,), optional
        A further move, whose answer the derivatives predict unless a kink came between.
    """

    x: FloatArray
    directions: FloatArray
    steps: FloatArray
    fx: FloatArray | None = None
    aside: FloatArray | None = None

    def points(self) -> FloatArray:
        """Return the queries, shape (p, d)."""
        parts = [self.x + self.steps[:, None] * self.directions]
        if self.fx is None:
            parts.insert(0, self.x[None])
        if self.aside is not None:
            parts.append((self.x + self.aside)[None])
        return np.concatenate(parts)

    def read(self, Y: FloatArray) -> Slopes:
        """Derivatives from the answers at :meth:`points`."""
        fx = Y[0] if self.fx is None else self.fx
        m = len(self.steps)
        with np.errstate(invalid="ignore"):
            values = (Y[len(Y) - m - (self.aside is not None) :][:m] - fx) / self.steps[:, None]
            apart, apart_error = np.zeros(Y.shape[1]), 0.0
            if self.aside is not None:
                along = self.directions @ self.aside
                apart = np.abs(Y[-1] - fx - along @ values)
                # Of the answer aside, of that at x, which every difference takes, and of others.
                shares = along / self.steps
                apart_error = float(np.linalg.norm([1.0, 1.0 - shares.sum(), *shares]))
        return Slopes(values, 2.0**0.5 / np.abs(self.steps), apart, apart_error, fx)

    def measure(self, ask: Ask) -> Slopes:
        """Ask and read."""
        return self.read(ask(self.points()))


def measure(ask: Ask, stencils: Sequence[Stencil]) -> list[Slopes]:
    """Measure derivatives at many points, all in one round."""
    points = [stencil.points() for stencil in stencils]
    ends = np.cumsum([len(X) for X in points])[:-1]
    answers = np.split(ask(np.concatenate(points)), ends)
    return [stencil.read(Y) for stencil, Y in zip(stencils, answers, strict=True)]


def both_sides(ask: Ask, X: FloatArray, moves: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ask at ``X + moves`` and at ``X - moves``, (m, d) each, in one round."""
    Y = ask(np.concatenate([X + moves, X - moves]))
    return Y[: len(moves)], Y[len(moves) :]


def unit_rows(rng: np.random.Generator, m: int, n: int) -> FloatArray:
    """Draw random unit vectors, shape (m, n)."""
    rows = rng.standard_normal((m, n))
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


@dataclass(frozen=True)
class CheckedGradients:
    """Gradients at many points, by the longest differences that cross no kink.

    Attributes
    ----------
    steps : tuple of float
        Steps of a difference, as shares of the way to the nearest kink known: where a derivative
        in a random direction, over twice the step, shows that a hyperplane was crossed, the next
        is taken.
    at_once : float
        Numbers of inputs that are asked at once, times 2: that takes some 0.2 GB.
    """

    steps: tuple[float, ...] = (0.04, 0.006, 0.001)
    at_once: float = 4e6

    def measure(
        self,
        ask: Ask,
        noise: NoiseFloor,
        points: FloatArray,
        reach: FloatArray,
        rng: np.random.Generator,
        directions: FloatArray | None = None,
        spans: Sequence[FloatArray] | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return gradients, shape (n, k, m), and their errors, shape (n,).

        Errors are standard ones, in units of the outputs' scales, the root mean square of all
        outputs; infinite where every step crossed a kink.

        Parameters
        ----------
        points : ndarray, shape (n, d)
        reach : ndarray, shape (n,)
            How far each point is from the nearest hyperplane, about.
        directions : ndarray, shape (m, d), optional
            Orthonormal rows, along which derivatives are asked; all coordinates by default.
        spans : sequence of ndarray, shape (m_i, m), optional
            For each point orthonormal rows, in these directions, that the gradient is a
            combination of, as far as is known: others are asked where the check says otherwise.
        """
        n, d = points.shape
        Q = np.eye(d) if directions is None else directions
        unit, m = noise.unit, len(Q)
        own = [np.eye(m)] * n if spans is None else list(spans)
        J, errors = np.zeros((n, len(unit), m)), np.full(n, np.inf)
        todo = np.arange(n)
        for share in self.steps:
            if not len(todo):
                break
            aside, steps = _signs(rng, len(todo), m) @ Q, share * reach[todo]
            stencils = [
                Stencil(x, own[i] @ Q, np.full(len(own[i]), step), aside=2.0 * step * w)
                for i, x, step, w in zip(todo, points[todo], steps, aside, strict=True)
            ]
            n_blocks = max(1, round(len(todo) * m * d / self.at_once))
            blocks = np.array_split(np.arange(len(todo)), n_blocks)
            measured = [g for block in blocks for g in measure(ask, [stencils[i] for i in block])]
            failed = []
            for i, found in zip(todo, measured, strict=True):
                at = points[i : i + 1], found.answer[None]
                sigma = noise.sigma_at(*at)[0]
                if found.is_finite and (found.apart <= SIGMAS * found.apart_error * sigma).all():
                    J[i] = found.values.T @ own[i]
                    usual = float(np.sqrt(((noise.typical_at(*at) / unit) ** 2).mean()))
                    errors[i] = usual * np.linalg.norm(found.errors) / np.sqrt(m)
                else:
                    failed.append(i)
                    own[i] = np.eye(m)
            todo = np.array(failed, dtype=np.intp)
        return J, errors


def _signs(rng: np.random.Generator, n: int, m: int) -> FloatArray:
    """Draw unit vectors of entries of one size, (n, m): what is wrong with any direction shows.

    Over two steps their sum of 1/2 takes the answer at the point itself out of the check, which
    every difference errs by.
    """
    n_plus = round((m + np.sqrt(m) / 2) / 2)
    signs = np.where(np.arange(m) < n_plus, 1.0, -1.0) / np.sqrt(m)
    return rng.permuted(np.tile(signs, (n, 1)), axis=1)


@dataclass(frozen=True, eq=False)
class Step:
    """A point, and a step for differences there; answers in units of the outputs.

    Attributes
    ----------
    x : ndarray, shape (d,)
    fx : ndarray, shape (k,)
        The answer.
    h : float
    slopes : ndarray, shape (m, k)
        Derivatives along the lines that chose the step.
    error : float
        Standard error of a derivative at this step.
    """

    x: FloatArray
    fx: FloatArray
    h: float
    slopes: FloatArray
    error: float

    def scaled(self, factor: float) -> "Step":
        """Return a step ``factor`` times as long, its error being that of noise alone."""
        return replace(self, h=self.h * factor, error=self.error / factor)


@dataclass(frozen=True)
class Differences:
    """Derivatives of a target where nothing is known of it, in units of its outputs.

    Attributes
    ----------
    smooth : bool
        Whether the target curves everywhere: differences are then central.
    shrink : float
        Steps are divided by this until random lines through a point show no kink.
    reserve : float
        A step is made this much shorter than those lines allow: of hundreds of directions
        some are steeper.
    max_tries : int
        How often a direction is measured, each time at a step ``reserve`` times shorter.
    block : int
        Directions that one query checks together.  A kink that moves one derivative by e
        moves the check, over two steps, by ``2 h e / sqrt(block)``, h e / 6: what escapes is
        about 100 errors of a derivative, a few times what noise makes of a gradient of
        hundreds of coordinates.
    coarse : float
        Curvature is read off central differences at this step and its double; the longest
        step for a smooth target.
    """

    oracle: Oracle
    noise: NoiseFloor
    smooth: bool = False
    shrink: float = 3.0
    reserve: float = 4.0
    max_tries: int = 3
    block: int = 128
    coarse: float = 1e-2

    def answers(self, X: FloatArray) -> FloatArray:
        """Ask one round, (n, d) -> (n, k), in units."""
        return self.oracle(X) / self.noise.unit

    def error_at(self, x: FloatArray) -> float:
        """Return the standard error of an answer at ``x``, in units, of the worst output."""
        share = self.noise.relative
        return share * float(self.noise.growth(x))

    def find_step(
        self, x: FloatArray, fx: FloatArray, directions: FloatArray, shortest: float, longest: float
    ) -> Step | None:
        """Find a step at ``x``.

        Parameters
        ----------
        x : ndarray, shape (d,)
        fx : ndarray, shape (k,)
            The answer there, in units.
        directions : ndarray, shape (m, d)
            Unit rows: the lines to look along.
        shortest, longest : float
            Steps worth trying.

        Returns
        -------
        Step or None
            None where no step is short enough, or the target is saturated.
        """
        sigma = self.error_at(x)
        if self.smooth:
            return self._balanced_step(x, fx, directions, sigma, shortest)
        h = longest * self.reserve
        while h >= shortest * self.reserve:
            after, before = both_sides(self.answers, x, h * directions)
            if not (np.isfinite(after).all() and np.isfinite(before).all()):
                return None
            # The norm of (1, -2, 1) is sqrt(6).
            if (np.abs(after + before - 2.0 * fx) <= SIGMAS * 6.0**0.5 * sigma).all():
                far = Step(x, fx, h, (after - before) / (2.0 * h), 2.0**0.5 * sigma / h)
                return far.scaled(1.0 / self.reserve)
            h /= self.shrink
        return None

    def _balanced_step(
        self, x: FloatArray, fx: FloatArray, directions: FloatArray, sigma: float, shortest: float
    ) -> Step | None:
        """The step of a central difference whose error A h² + sigma / (√2 h) is least.

        D(2h) - D(h) is 3 A h² to leading order; the least is where h³ = sigma / (2 √2 A).
        """
        with self.oracle.round():
            near, far = (
                np.subtract(*both_sides(self.answers, x, h * directions)) / (2.0 * h)
                for h in (self.coarse, 2.0 * self.coarse)
            )
        if not (np.isfinite(near).all() and np.isfinite(far).all()):
            return None
        bend = np.abs(far - near).max() / (3.0 * self.coarse**2)
        h = self.coarse if bend == 0 else float(np.cbrt(sigma / (2.0 * 2.0**0.5 * bend)))
        h = min(max(h, shortest), self.coarse)
        # At the least the truncation is half of the noise.
        return Step(x, fx, h, near, 1.5 * sigma / (2.0**0.5 * h))

    def along(self, step: Step, directions: FloatArray) -> FloatArray | None:
        """Derivatives along unit rows (m, d) in one round, (m, k); None where saturated."""
        if self.smooth:
            sides = both_sides(self.answers, step.x, step.h * directions)
            slopes = np.subtract(*sides) / (2.0 * step.h)
        else:
            steps = np.full(len(directions), step.h)
            slopes = Stencil(step.x, directions, steps, step.fx).measure(self.answers).values
        return np.asarray(slopes) if np.isfinite(slopes).all() else None

    def gradient(
        self, step: Step, basis: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, Step] | None:
        """Measure derivatives along a basis and check them; once more, nearer, beside a kink.

        A difference that crossed a kink is wrong by far more than noise, and so is a
        combination of many, which one more query checks.  A smooth function has no kinks.

        Parameters
        ----------
        basis : ndarray, shape (m, d)
            Orthonormal rows.
        rng : numpy.random.Generator
            Draws the combinations.

        Returns
        -------
        (slopes, step) or None
            Derivatives (m, k), and the shortest step that was taken, with the root mean square
            of their errors; None where a kink is too near, or the target is saturated.
        """
        m = len(basis)
        slopes, errors = np.empty((m, len(step.fx))), np.empty(m)
        if not m:
            return slopes, step
        blocks = np.array_split(np.arange(m), -(-m // self.block))
        for _ in range(self.max_tries):
            rows = np.concatenate(blocks)
            found = self.along(step, basis[rows])
            if found is None:
                return None
            slopes[rows], errors[rows] = found, step.error
            # Signs weigh every direction of a block alike.
            mixes = [rng.choice([-1.0, 1.0], len(block)) / np.sqrt(len(block)) for block in blocks]
            if self.smooth:
                blocks = []
            else:
                lines = np.array([mix @ basis[b] for mix, b in zip(mixes, blocks, strict=True)])
                mixed = np.array([mix @ slopes[b] for mix, b in zip(mixes, blocks, strict=True)])
                Y = self.answers(step.x + 2.0 * step.h * lines)
                # Two answers, and twice the error of a unit combination of differences.
                atol = SIGMAS * self.error_at(step.x) * np.sqrt(2.0 + 8.0)
                with np.errstate(invalid="ignore"):
                    bad = ~(np.abs(Y - step.fx - 2.0 * step.h * mixed) <= atol).all(axis=1)
                blocks = [block for block, is_bad in zip(blocks, bad, strict=True) if is_bad]
            if not blocks:
                return slopes, replace(step, error=float(np.sqrt((errors**2).mean())))
            step = step.scaled(1.0 / self.reserve)
        return None
