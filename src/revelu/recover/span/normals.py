"""Normals of borders: a border's slopes along a basis, from heights that are checked.

Beside a place on a border the height along ``u`` is ``t(u)``
(:mod:`revelu.recover.span.boundary`), and ``t(h u) / h`` is the slope along ``u``.  On a piece
of a plane the longest step is the best; on a smooth border one that balances curvature against
noise.  On a plane, and nearly so on a smooth border, ``t(-u) = -t(u)``, and to ask whether it is
takes two labels where a height takes a bisection.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.numerics.float64 import TINY
from revelu.recover.span.boundary import Bend, Border
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class StepLength:
    """How far beside a place heights are measured."""

    h: float
    slopes: FloatArray
    """Shape (m,).  Of the border along the lines that chose it."""
    noise: float
    """Standard error of a height."""
    error: float
    """Standard error of a slope."""
    curvature: float = 0.0
    """Largest even part of a height over h²; 0 where the border is a piece of a plane."""

    @property
    def steepest(self) -> float:
        """More than most slopes are, by those that chose the step."""
        return 3.0 * float(np.abs(self.slopes).max())


@dataclass(frozen=True, eq=False)
class BorderPlace:
    """A place on a border, and how well it shows a direction outside of those known."""

    border: Border
    step: StepLength
    known: FloatArray
    """Shape (r,).  The border's slopes along the directions known."""
    leak: float
    """How much of them, which are known not quite, the complement sees."""
    lines: FloatArray
    """Shape (m, d).  Unit rows of the complement."""
    slopes: FloatArray
    """Shape (m,).  Along the lines."""
    n_left: int
    """Dimensions of the complement."""

    @property
    def error(self) -> float:
        """Of a normal measured here in the complement."""
        return self.step.error * float(np.sqrt(self.n_left))

    @property
    def size(self) -> float:
        """About the normal's length in the complement."""
        return float(np.linalg.norm(self.slopes) * np.sqrt(self.n_left / len(self.lines)))

    @property
    def angle(self) -> float:
        """About how far off a direction from here would be, in radians; NaN if unknown."""
        return float(np.hypot(self.error, self.leak)) / max(self.size, TINY)


@dataclass(frozen=True)
class Normals:
    """How slopes of borders are measured; lengths in units of an input's coordinates."""

    sigmas: float = 2.0 * SIGMAS
    """Standard errors of a height that pass for noise: twice as many as of an answer, since the
    noise of a height is itself read off two lines."""
    bracket: float = 3.0
    """Bisection ends at a bracket this many standard errors wide; its own error is 1/sqrt(12) of
    its width."""
    roughly: float = 0.01
    """Slopes that only weigh a place are told to this share of a step's height."""
    longest: float = 0.4
    shrink: float = 4.0
    shortest: float = 1e-5
    """Steps tried beside a place, from the longest on, each ``shrink`` times shorter."""
    reserve: float = 16.0
    """How much shorter a step is then made: two lines choose it, and of the hundreds of directions
    that follow some are steeper."""
    max_retries: int = 2
    """How often heights where the border bends are measured again, nearer."""
    block: int = 64
    n_mixes: int = 6
    """Heights that one query checks together, and how often each is checked."""
    coarse: float = 2e-2
    nearest: float = 1e-7
    """The longest step where a border is smooth, at which its curvature is measured, and the
    shortest."""

    def flat_step(
        self, border: Border, lines: FloatArray, noise: float, radius: float
    ) -> StepLength | None:
        """Find the longest step whose heights on both sides are one plane's.

        Parameters
        ----------
        lines : ndarray, shape (m, d)
            Unit rows.
        noise : float
            Standard error of a height.
        radius : float
            Length of an input's coordinates.

        Returns
        -------
        StepLength or None
            None where even the shortest step crosses a kink.
        """
        h = self.longest * radius
        while h >= self.shortest * radius:
            t = border.heights(h * lines, np.zeros(len(lines)), h, self.bracket * noise)
            if self._is_mirrored(border, h * lines, t, noise).all():
                reach = h / self.reserve
                return StepLength(reach, t / h, noise, self._height_error(noise) / reach)
            h /= self.shrink
        return None

    def balanced_step(self, bend: Bend, noise: float, radius: float) -> StepLength:
        """Return the step where a smooth border's slope errs least, by A h² + noise / (√2 h)."""
        h = float(np.cbrt(noise / (2.0 * 2.0**0.5 * bend.third)))
        h = min(max(h, self.nearest * radius), self.coarse * radius)
        error = float(np.hypot(self._height_error(noise) / h, bend.third * h * h))
        return StepLength(h, bend.slopes, noise, error, bend.curvature)

    def measure(
        self, border: Border, basis: FloatArray, step: StepLength, rng: np.random.Generator
    ) -> FloatArray | None:
        """Measure the border's slopes along a basis, and check them.

        Parameters
        ----------
        basis : ndarray, shape (m, d)
            Orthonormal rows.
        rng : numpy.random.Generator
            Draws the combinations of heights that are checked.

        Returns
        -------
        ndarray, shape (m,), or None
            None where kinks are too near, or heights are not those of one plane; of a smooth
            border, where its odd parts are not linear.
        """
        slopes = self._smooth_slopes if step.curvature else self._flat_slopes
        return slopes(border, basis, step, rng)

    def rough_slopes(self, border: Border, basis: FloatArray, step: StepLength) -> FloatArray:
        """Measure slopes along ``basis (m, d)`` to two digits, unchecked, shape (m,).

        Along known directions slopes may be far steeper than along those that chose the step.
        """
        room = max(step.steepest, 1.0) * step.h
        zeros = np.zeros(len(basis))
        return border.heights(step.h * basis, zeros, room, self.roughly * room) / step.h

    def _flat_slopes(
        self, border: Border, basis: FloatArray, step: StepLength, rng: np.random.Generator
    ) -> FloatArray | None:
        """Slopes of a piece of a plane; nearer, where it bends."""
        t, steps = np.empty(len(basis)), np.full(len(basis), step.h)
        kinked = np.arange(len(basis))
        for _ in range(1 + self.max_retries):
            near = steps[kinked, None] * basis[kinked]
            room = step.steepest * float(steps[kinked].max())
            t[kinked] = border.heights(near, np.zeros(len(kinked)), room, self.bracket * step.noise)
            kinked = kinked[~self._is_mirrored(border, near, t[kinked], step.noise)]
            if not len(kinked):
                mixes = self._mixes(rng, len(t))
                atol = 2.0 * self.sigmas * step.noise
                beside = mixes @ (steps[:, None] * basis)
                flat = border.passes_through(beside, mixes @ t, atol).all()
                return np.asarray(t / steps) if flat else None
            steps[kinked] /= self.shrink
        return None

    def _smooth_slopes(
        self, border: Border, basis: FloatArray, step: StepLength, rng: np.random.Generator
    ) -> FloatArray | None:
        """Slopes of a smooth border, by the odd part of its heights."""
        h, precision = step.h, self.bracket * step.noise
        offsets = h * basis
        t = border.heights(offsets, np.zeros(len(basis)), step.steepest * h, precision)
        # Heights on the other side are near -t, for the border is smooth.
        room = max(3.0 * step.curvature * h * h, 4.0 * self.sigmas * step.noise)
        odd = (t - border.heights(-offsets, -t, room, precision)) / 2.0
        if np.isnan(odd).any():
            return None
        mixes = self._mixes(rng, len(odd))
        beside, expected = mixes @ offsets, mixes @ odd
        if not border.passes_through(beside, expected, room).all():
            # A mix may curve more than the lines that told the curvature.  That alone is no
            # reason to give a place up, so its own odd part (t(u) - t(-u)) / 2 is measured, too.
            # Heights err by twice the noise.
            t = border.heights(beside, expected, room, precision)
            atol = 4.0 * self.sigmas * step.noise
            if not border.passes_through(-beside, t - 2.0 * expected, atol).all():
                return None
        return np.asarray(odd / h)

    def _height_error(self, noise: float) -> float:
        return noise * float(np.sqrt(1.0 + self.bracket**2 / 12.0))

    def _is_mirrored(
        self, border: Border, offsets: FloatArray, t: FloatArray, noise: float
    ) -> BoolArray:
        """Whether the border is as far down on one side as it is up on the other."""
        return border.passes_through(-offsets, -t, self.sigmas * noise)

    def _mixes(self, rng: np.random.Generator, m: int) -> FloatArray:
        """Random signs of blocks of rows, a unit vector a row, shape (some, m).

        Borders of rounded scores are stairs: heights may belong to different steps, and such
        sums of them are then no height.
        """
        blocks = self.n_mixes * np.array_split(np.arange(m), -(-m // self.block))
        mixes = np.zeros((len(blocks), m))
        for mix, block in zip(mixes, blocks, strict=True):
            mix[block] = rng.choice([-1.0, 1.0], len(block)) / np.sqrt(len(block))
        return mixes
