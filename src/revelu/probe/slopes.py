"""Directional derivatives at the step that suits a place.

On a piecewise affine function the longest step that crosses no kink is the best: the
noise of a difference falls with it, and nothing else does.  On a smooth one the step
balances noise against curvature.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.types import BoolArray, FloatArray

# Steps shrink by this factor until two random lines show no kink, and are this much
# shorter than what those lines allow: of hundreds of directions some are steeper.
_SHRINK = 3.0
RESERVE = 4.0

# Directions are measured so often, each time at a shorter step, and checked in blocks of so
# many.  A kink that moves one derivative by e moves a check over two steps by h e / 6:
# what escapes is under 100 errors of a derivative, a few times what noise makes of a gradient
# of hundreds of coordinates.
_MAX_TRIES = 3
_BLOCK = 128

# Third derivatives are read off central differences at this step and its double.
_COARSE = 1e-2

# The norm of (1, -2, 1).
_SECOND_NORM = 6.0**0.5


@dataclass(frozen=True)
class Step:
    """A step for differences at one point.

    Attributes
    ----------
    h : float
    central : bool
        Whether differences are to be taken on both sides.
    slopes : ndarray, shape (m, k)
        Derivatives along the lines that chose it, in units of ``unit_of(noise)``.
    error : float
        Standard error of a derivative at this step, in the same units.
    """

    h: float
    central: bool
    slopes: FloatArray
    error: float

    def scaled(self, factor: float) -> "Step":
        """Return a step so many times as long, where noise is all that errs."""
        return replace(self, h=self.h * factor, error=self.error / factor)


def unit_of(noise: NoiseFloor) -> FloatArray:
    """Return what each output is measured in, shape (k,): its scale, or 1 where that is 0."""
    return np.where(noise.scale > 0, noise.scale, 1.0)


def error_at(noise: NoiseFloor, x: FloatArray) -> float:
    """Return the standard error of an answer at ``x (d,)``, in units, of the worst output."""
    share = float((noise.nu * noise.scale / unit_of(noise)).max())
    return share * float(np.sqrt(1.0 + (x**2).mean()))


def find_step(
    oracle: Oracle,
    noise: NoiseFloor,
    x: FloatArray,
    fx: FloatArray,
    directions: FloatArray,
    steps: tuple[float, float],
    *,
    smooth: bool,
) -> Step | None:
    """Find a step at ``x``.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
    x : ndarray, shape (d,)
    fx : ndarray, shape (k,)
        The answer at ``x``, in units.
    directions : ndarray, shape (m, d)
        Unit rows: the lines to look along.
    steps : (float, float)
        The shortest and the longest step worth trying.
    smooth : bool
        Whether the target curves everywhere.

    Returns
    -------
    Step or None
        None where no step is short enough, or the target is saturated.
    """
    sigma = error_at(noise, x)
    if smooth:
        return _balanced(oracle, noise, x, directions, sigma, steps[0])
    h = steps[1] * RESERVE
    while h >= steps[0] * RESERVE:
        after, before = _both_sides(oracle, noise, x, directions, h)
        if not (np.isfinite(after).all() and np.isfinite(before).all()):
            return None
        second = after + before - 2.0 * fx
        if (np.abs(second) <= SIGMAS * _SECOND_NORM * sigma).all():
            slopes = (after - before) / (2.0 * h)
            return Step(h / RESERVE, False, slopes, 2.0**0.5 * sigma * RESERVE / h)
        h /= _SHRINK
    return None


def _balanced(
    oracle: Oracle,
    noise: NoiseFloor,
    x: FloatArray,
    directions: FloatArray,
    sigma: float,
    shortest: float,
) -> Step | None:
    """The step of a central difference whose error A h² + sigma / (√2 h) is least.

    D(2h) - D(h) is 3 A h² to leading order; the least is where h³ = sigma / (2 √2 A).
    """
    with oracle.round():
        near = np.subtract(*_both_sides(oracle, noise, x, directions, _COARSE))
        far = np.subtract(*_both_sides(oracle, noise, x, directions, 2.0 * _COARSE))
    if not (np.isfinite(near).all() and np.isfinite(far).all()):
        return None
    slopes = near / (2.0 * _COARSE)
    bend = np.abs(far / (4.0 * _COARSE) - slopes).max() / (3.0 * _COARSE**2)
    h = _COARSE if bend == 0 else float(np.cbrt(sigma / (2.0 * 2.0**0.5 * bend)))
    h = min(max(h, shortest), _COARSE)
    # At the least the truncation is half of the noise.
    return Step(h, True, slopes, 1.5 * sigma / (2.0**0.5 * h))


def differences(
    oracle: Oracle,
    noise: NoiseFloor,
    x: FloatArray,
    fx: FloatArray,
    directions: FloatArray,
    step: Step,
) -> FloatArray | None:
    """Derivatives along ``directions (m, d)`` in one round, shape (m, k), in units.

    Returns
    -------
    ndarray or None
        None where the target is saturated at one of the points.
    """
    if step.central:
        slopes = np.subtract(*_both_sides(oracle, noise, x, directions, step.h)) / (2.0 * step.h)
    else:
        slopes = (oracle(x + step.h * directions) / unit_of(noise) - fx) / step.h
    return np.asarray(slopes) if np.isfinite(slopes).all() else None


def measure_gradient(
    oracle: Oracle,
    noise: NoiseFloor,
    rng: np.random.Generator,
    x: FloatArray,
    fx: FloatArray,
    basis: FloatArray,
    step: Step,
) -> tuple[FloatArray, Step] | None:
    """Measure derivatives along a basis and check them; once more, nearer, beside a kink.

    Parameters
    ----------
    oracle, noise, x, fx
        As of :func:`find_step`.
    rng : numpy.random.Generator
        Draws the combinations that are checked.
    basis : ndarray, shape (m, d)
        Orthonormal rows.
    step : Step

    Returns
    -------
    (slopes, step) or None
        Derivatives (m, k) in units, and the shortest step that was taken, with the root mean
        square of their errors; None where the point has a kink too near.
    """
    m = len(basis)
    slopes = np.empty((m, noise.scale.size))
    if not m:
        return slopes, step
    errors = np.empty(m)
    blocks = np.array_split(np.arange(m), -(-m // _BLOCK))
    for _ in range(_MAX_TRIES):
        rows = np.concatenate(blocks)
        found = differences(oracle, noise, x, fx, basis[rows], step)
        if found is None:
            return None
        slopes[rows], errors[rows] = found, step.error
        # Signs weigh every direction of a block alike.
        mixes = [rng.choice([-1.0, 1.0], len(block)) / np.sqrt(len(block)) for block in blocks]
        lines = np.array([mix @ basis[b] for mix, b in zip(mixes, blocks, strict=True)])
        expected = np.array([mix @ slopes[b] for mix, b in zip(mixes, blocks, strict=True)])
        good = holds(oracle, noise, x, fx, lines, expected, step)
        blocks = [block for block, is_good in zip(blocks, good, strict=True) if not is_good]
        if not blocks:
            return slopes, replace(step, error=float(np.sqrt((errors**2).mean())))
        step = step.scaled(1.0 / RESERVE)
    return None


def unit_rows(rng: np.random.Generator, m: int, n: int) -> FloatArray:
    """Return random unit vectors, shape (m, n)."""
    rows = rng.standard_normal((m, n))
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


def holds(
    oracle: Oracle,
    noise: NoiseFloor,
    x: FloatArray,
    fx: FloatArray,
    directions: FloatArray,
    slopes: FloatArray,
    step: Step,
) -> BoolArray:
    """Check derivatives for kinks, along combinations of many, shape (m,).

    A difference that crossed a kink is wrong by far more than noise, and so is the
    combination.  A smooth function has no kinks.

    Parameters
    ----------
    oracle, noise, x, fx, step
        As the derivatives were measured.
    directions : ndarray, shape (m, d)
        Unit combinations of their directions.
    slopes : ndarray, shape (m, k)
        The same combinations of the derivatives.
    """
    if step.central:
        return np.ones(len(directions), bool)
    h = 2.0 * step.h
    answers = oracle(x + h * directions) / unit_of(noise)
    # Two answers, and twice the error of a unit combination of differences.
    error = error_at(noise, x) * np.sqrt(2.0 + 8.0)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(answers - fx - h * slopes) <= SIGMAS * error).all(axis=1))


def _both_sides(
    oracle: Oracle, noise: NoiseFloor, x: FloatArray, directions: FloatArray, h: float
) -> tuple[FloatArray, FloatArray]:
    Y = oracle(np.vstack([x + h * directions, x - h * directions])) / unit_of(noise)
    return Y[: len(directions)], Y[len(directions) :]
