"""Normals of borders: a border's slopes along a basis, from heights that are checked.

Beside a place on a border the height along ``u`` is ``t(u)`` (see
:mod:`revelu.recover.span.boundary`),
and ``t(h u) / h`` is the slope along ``u``.  On a piece of a plane the longest step is the best;
on a smooth border one that balances curvature against noise.
"""

from dataclasses import dataclass

import numpy as np

from revelu.oracle import Oracle
from revelu.recover.span.boundary import Bend, Border, heights
from revelu.types import BoolArray, FloatArray

# A tolerance is this many standard errors of a height; bisection ends at a bracket of a few,
# whose own error is a sqrt(12)th of it.
SIGMAS = 16.0
_BRACKET = 3.0
HEIGHT_ERROR = (1.0 + _BRACKET**2 / 12.0) ** 0.5

# Slopes that only weigh a place are told to this share of a step's height.
_ROUGHLY = 0.01

# Steps that are balanced, in units of an input's coordinates; curvature is measured at the
# longest.
COARSE, _NEAREST = 2e-2, 1e-7

# Steps tried beside a place, in the same units, from the longest on.
# Hundreds of directions follow the two lines that choose it, some steeper: the reserve.
_LONGEST, _SHRINK, _SHORTEST = 0.4, 4.0, 1e-5
_RESERVE = 16.0
_MAX_RETRIES = 2
_BLOCK, _N_MIXES = 64, 6


@dataclass(frozen=True)
class Step:
    """How far beside a place heights are to be measured.

    Attributes
    ----------
    h : float
    slopes : ndarray, shape (m,)
        Of the border along the lines that chose it.
    noise : float
        Standard error of a height.
    curvature : float
        Largest even part of a height over h²; 0 where the border is a piece of a plane.
    truncation : float
        By how much curvature alone puts a slope off.
    """

    h: float
    slopes: FloatArray
    noise: float
    curvature: float = 0.0
    truncation: float = 0.0

    @property
    def error(self) -> float:
        """Standard error of a slope at this step."""
        return float(np.hypot(self.noise * HEIGHT_ERROR / self.h, self.truncation))

    @property
    def steepest(self) -> float:
        """More than most slopes are, by those that chose the step."""
        return 3.0 * float(np.abs(self.slopes).max())


@dataclass(frozen=True, eq=False)
class Place:
    """A place on a border, and how well it shows a direction outside of those known.

    Attributes
    ----------
    border : Border
    step : Step
    known : ndarray, shape (r,)
        The border's slopes along the directions known.
    leak : float
        How much of them, which are known not quite, the complement sees.
    lines : ndarray, shape (m, d)
        Unit rows of the complement.
    slopes : ndarray, shape (m,)
        Along the lines.
    n_left : int
        Dimensions of the complement.
    """

    border: Border
    step: Step
    known: FloatArray
    leak: float
    lines: FloatArray
    slopes: FloatArray
    n_left: int

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
        return float(np.hypot(self.error, self.leak)) / max(self.size, 1e-300)


def flat_step(
    oracle: Oracle, border: Border, lines: FloatArray, noise: float, radius: float
) -> Step | None:
    """Find the longest step whose heights on both sides are one plane's.

    Parameters
    ----------
    oracle : Oracle
    border : Border
    lines : ndarray, shape (m, d)
        Unit rows.
    noise : float
        Standard error of a height.
    radius : float
        Length of an input's coordinates.

    Returns
    -------
    Step or None
        None where even the shortest step crosses a kink.
    """
    h = _LONGEST * radius
    while h >= _SHORTEST * radius:
        t = heights(oracle, border, h * lines, np.zeros(len(lines)), h, _BRACKET * noise)
        if _is_mirrored(oracle, border, h * lines, t, noise).all():
            return Step(h / _RESERVE, t / h, noise)
        h /= _SHRINK
    return None


def balanced_step(bend: Bend, noise: float, radius: float) -> Step:
    """Return the step where a smooth border's slope, in error by A h² + noise / (√2 h), errs least.

    Parameters
    ----------
    bend : Bend
    noise : float
        Standard error of a height.
    radius : float
        Length of an input's coordinates.
    """
    h = float(np.cbrt(noise / (2.0 * 2.0**0.5 * bend.third)))
    h = min(max(h, _NEAREST * radius), COARSE * radius)
    return Step(h, bend.slopes, noise, bend.curvature, bend.third * h * h)


def flat_normal(
    oracle: Oracle, rng: np.random.Generator, border: Border, basis: FloatArray, step: Step
) -> FloatArray | None:
    """Measure slopes of a border that is a piece of a plane; nearer, where it bends.

    Parameters
    ----------
    oracle : Oracle
    rng : numpy.random.Generator
    border : Border
    basis : ndarray, shape (m, d)
        Orthonormal rows.
    step : Step

    Returns
    -------
    ndarray, shape (m,), or None
        None where kinks are too near, or heights are not those of one plane.
    """
    h, noise, steepest = step.h, step.noise, step.steepest
    zeros = np.zeros(len(basis))
    t = heights(oracle, border, h * basis, zeros, steepest * h, _BRACKET * noise)
    steps = np.full(len(basis), h)
    kinked = np.flatnonzero(~_is_mirrored(oracle, border, h * basis, t, noise))
    for _ in range(_MAX_RETRIES):
        if not len(kinked):
            atol = 2.0 * SIGMAS * noise
            mixes = _mixes(rng, len(t))
            flat = _adds_up(oracle, border, mixes @ (steps[:, None] * basis), mixes @ t, atol)
            return np.asarray(t / steps) if flat else None
        # A border bent there: once more, nearer.
        h /= _SHRINK
        near = basis[kinked] * h
        t[kinked] = heights(oracle, border, near, zeros[kinked], steepest * h, _BRACKET * noise)
        steps[kinked] = h
        kinked = kinked[~_is_mirrored(oracle, border, near, t[kinked], noise)]
    return None


def smooth_normal(
    oracle: Oracle, rng: np.random.Generator, border: Border, basis: FloatArray, step: Step
) -> FloatArray | None:
    """Measure slopes of a smooth border, by the odd part of its heights.

    Parameters
    ----------
    oracle, rng, border, basis, step
        As of :func:`flat_normal`.

    Returns
    -------
    ndarray, shape (m,), or None
        None where the odd parts are not linear.
    """
    h, noise = step.h, step.noise
    offsets, zeros = h * basis, np.zeros(len(basis))
    t = heights(oracle, border, offsets, zeros, step.steepest * h, _BRACKET * noise)
    # Heights on the other side are near -t, for the border is smooth.
    room = max(3.0 * step.curvature * h * h, 4.0 * SIGMAS * noise)
    back = heights(oracle, border, -offsets, -t, room, _BRACKET * noise)
    odd = (t - back) / 2.0
    if np.isnan(odd).any():
        return None
    mixes = _mixes(rng, len(odd))
    beside, expected = mixes @ offsets, mixes @ odd
    # Where a mix curves more than the lines that told the curvature did, its own odd part
    # is measured, too: what is curved that much is no reason to give a place up.
    if _adds_up(oracle, border, beside, expected, room) or _odd_parts_are(
        oracle, border, beside, expected, room, noise
    ):
        return np.asarray(odd / h)
    return None


def rough_slopes(oracle: Oracle, border: Border, basis: FloatArray, step: Step) -> FloatArray:
    """Measure slopes along ``basis (m, d)`` to two digits, unchecked, shape (m,).

    Along directions that are known they may be far more than along those that chose the step.
    """
    room = max(step.steepest, 1.0) * step.h
    zeros = np.zeros(len(basis))
    return heights(oracle, border, step.h * basis, zeros, room, _ROUGHLY * room) / step.h


def _is_mirrored(
    oracle: Oracle, border: Border, offsets: FloatArray, t: FloatArray, noise: float
) -> BoolArray:
    """Whether the border is as far down on one side as it is up on the other.

    On a plane t(-u) = -t(u), and each is a free test for the kinks of ReLU.
    """
    return _passes_through(oracle, border, -offsets, -t, SIGMAS * noise)


def _mixes(rng: np.random.Generator, m: int) -> FloatArray:
    """Random signs of blocks of rows, a unit vector a row, shape (some, m).

    Where borders are stairs, of rounded scores, each height may be of another step, and
    such sums of them are no height.
    """
    blocks = _N_MIXES * np.array_split(np.arange(m), -(-m // _BLOCK))
    mixes = np.zeros((len(blocks), m))
    for mix, block in zip(mixes, blocks, strict=True):
        mix[block] = rng.choice([-1.0, 1.0], len(block)) / np.sqrt(len(block))
    return mixes


def _adds_up(
    oracle: Oracle, border: Border, offsets: FloatArray, expected: FloatArray, atol: float
) -> bool:
    """Whether all heights beside a place are as expected."""
    return bool(_passes_through(oracle, border, offsets, expected, atol).all())


def _odd_parts_are(
    oracle: Oracle,
    border: Border,
    offsets: FloatArray,
    expected: FloatArray,
    room: float,
    noise: float,
) -> bool:
    """Whether odd parts (t(u) - t(-u)) / 2 of heights are as expected, to within noise."""
    t = heights(oracle, border, offsets, expected, room, _BRACKET * noise)
    # Heights err by twice the noise, and t(-u) is to be t(u) less twice what is expected.
    return _adds_up(oracle, border, -offsets, t - 2.0 * expected, 4.0 * SIGMAS * noise)


def _passes_through(
    oracle: Oracle, border: Border, offsets: FloatArray, t: FloatArray, atol: float
) -> BoolArray:
    """Whether the border's heights beside a place are ``t`` to within ``atol``, shape (m,)."""
    ends = np.concatenate([t - atol, t + atol])
    known = np.where(np.isnan(ends), 0.0, ends)
    inside = border.is_inside(oracle, np.vstack([offsets, offsets]), known)
    return np.asarray(inside[: len(t)] & ~inside[len(t) :] & ~np.isnan(t))
