"""The noise floor of a target's answers: the unit of every tolerance.

The floor is read off fourth differences of the answers at seven equally spaced
points, so near each other that a kink between them is unlikely.  An affine
function has none; a smooth one has ``f'''' h^4``, which is below rounding; what
remains is the noise of one answer times ``sqrt(70)``, the norm of (1, -4, 6, -4, 1).
"""

from dataclasses import dataclass

import numpy as np

from revelu.errors import SaturatedError, TargetError
from revelu.oracle.grid import Grid
from revelu.oracle.log_ratios import SMALLEST_DIFFERENCE, log_ratios, smallest_with_digits
from revelu.oracle.numbers import Numbers, read_numbers
from revelu.oracle.oracle import Oracle
from revelu.oracle.sentinels import Sentinels
from revelu.types import BoolArray, FloatArray

# Eight stencils of seven points, and eight rows asked again: 64 queries.
_RADII = (1.0, 1.0, 1.0, 1.0, 1.0, 3.0, 0.3, 30.0)
_STENCIL = 7
_STEP = 1e-4
_FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0])
_FOURTH_NORM = float(np.linalg.norm(_FOURTH))
_SECOND_NORM = 6.0**0.5

# A row answered alone and inside a batch may be summed in another order, which
# moves its last bits; what moves more than this many units is not rounding.  On a grid it
# moves to the next number at most.
_REPEAT_ULPS = 256.0
_REPEAT_UNITS = 1.5

# Noise drawn anew exceeds this many times the largest of eight earlier differences once in
# 1e9: half-normal numbers, the largest of eight of which is tiny that rarely.
_SENTINEL_FACTOR = 64.0

# Noise differs less than this from place to place; the differences at a kink, more.
_KINK_RATIO = 1e4

# Larger numbers, or the inverses of smaller ones, overflow when squared and summed.
_LARGEST = 1e140

# Rounding to a grid of spacing u has a standard error of u / sqrt(12).
_UNIFORM = 12.0**-0.5

# Noise that is drawn anew for every answer is measured where N(0, I) lies.
_NEAR = 1.5

# How much more a float32 answer errs than its neighbours show.
_FLOAT32_SHARED = 2.0

# Half of the digits of noisier answers than this are fewer than five: too few for
# derivatives by differences.
_EXACT = 1e-10

# An output that varies by less than this many times its error has too few digits to count
# as exact: 32 errors, the tolerance of what is exact, would be a hundredth of all that
# varies.
_FEWEST_DIGITS = 3200.0

# A constant may vary by this many units in the last place.
_CONSTANT_ULPS = 4.0

# Second differences count as curvature when all five of a stencil exceed the noise
# by this factor with one sign: a kink disturbs two of the five at most.
_CURVED_FACTOR = 16.0


@dataclass(frozen=True)
class NoiseFloor:
    """How precisely a target answers.

    The standard error of output ``k`` at ``x`` is modelled as
    ``nu[k] * scale[k] * sqrt(1 + |x|^2 / d)``: rounding is relative to the terms
    that are summed, and those grow with the radius.

    Attributes
    ----------
    law : str
        ``"float64"``, ``"float32"``, ``"rounded"`` to a grid of few digits, or
        ``"random"`` where repeated rows differ.
    nu : ndarray, shape (k,)
        Relative standard error of an answer.
    scale : ndarray, shape (k,)
        Root mean square of ``|f(x)| / sqrt(1 + |x|^2 / d)``; in a box, of ``|f(x)| / sqrt(2)``.
    spread : ndarray, shape (k,)
        Standard deviation of the outputs over N(0, I), or the box, from the few inputs seen.
    curved : float
        Fraction of the places seen at which the target curves.
    repeat_difference : float
        Largest difference between two answers to one row, relative to ``scale``.
    numbers : Numbers
        What is answered, before log-ratios are taken.
    of_log_ratios : bool
        Whether the answers are probabilities, and all this is of their log-ratios.
    """

    law: str
    nu: FloatArray
    scale: FloatArray
    spread: FloatArray
    curved: float
    repeat_difference: float
    numbers: Numbers
    of_log_ratios: bool = False

    @property
    def grid(self) -> Grid | None:
        """What rounded answers were rounded to; None of what is not rounded any more."""
        is_rounded = self.law == "rounded" and not self.of_log_ratios
        return self.numbers.grid if is_rounded else None

    def sigma(self, Y: FloatArray) -> FloatArray:
        """Standard errors of answers at N(0, I), shape (n, k), or (k,) where all are alike.

        Parameters
        ----------
        Y : ndarray, shape (n, k)
        """
        if self.grid is None:
            return self.errors
        # Where a spacing is tiny, the target's own arithmetic is what is left.
        floor = np.finfo(np.float32).eps * self.errors
        return np.asarray(np.maximum(_UNIFORM * self.grid.spacing(Y), floor))

    @property
    def coarseness(self) -> float:
        """Largest error of an answer over the variation of its output.

        A constant that hides the variation makes an answer coarse, however many digits
        it has.
        """
        varies = self.spread > 0
        error = (self.nu * self.scale)[varies]
        return float((error / self.spread[varies]).max(initial=0.0))

    @property
    def is_exact(self) -> bool:
        """Whether answers are precise enough for steps that divide them by small ones."""
        return self.law == "float64" and bool(self.nu.max() <= _EXACT)

    @property
    def unit(self) -> FloatArray:
        """What to divide each output by: its scale, or 1 where it is always 0, shape (k,)."""
        return np.where(self.scale > 0, self.scale, 1.0)

    @property
    def errors(self) -> FloatArray:
        """Standard errors of answers at N(0, I), typical ones, shape (k,)."""
        # |x|^2 = d on N(0, I), so the terms of an answer are sqrt(2) times the scale.
        return np.asarray(self.nu * self.scale * np.sqrt(2.0))

    def varies(self, spread: FloatArray) -> BoolArray:
        """Tell which outputs of standard deviation ``spread (k,)`` are no constants."""
        ulp = np.finfo(np.float64).eps * self.scale
        return np.asarray(spread > _CONSTANT_ULPS * ulp)

    def has_all_digits(self, spread: FloatArray) -> BoolArray:
        """Tell which outputs of standard deviation ``spread (k,)`` the exact method can take.

        A constant that hides the variation takes its digits.
        """
        hidden = self.varies(spread) & (spread < _FEWEST_DIGITS * self.errors)
        return np.asarray(~hidden & self.is_exact)

    @property
    def is_smooth(self) -> bool:
        """Whether the target is no piecewise affine function.

        Half of the places curving is a smooth function; a quarter may be kinks.
        """
        return self.curved >= 0.5

    @property
    def is_deterministic(self) -> bool:
        """Whether repeated rows got the same answer up to rounding."""
        return self.law != "random"

    @property
    def half_digits(self) -> float:
        """The square root of the floor: half of the digits that an answer has."""
        return float(np.sqrt(self.nu.max()))


def measure_noise(oracle: Oracle, seed: int | np.random.SeedSequence) -> NoiseFloor:
    """Measure the noise floor with 64 queries in two rounds.

    Where the answers turn out to be probabilities, the oracle is switched to
    log-ratios, and the floor is that of the log-ratios.

    Parameters
    ----------
    oracle : Oracle
    seed : int or SeedSequence

    Raises
    ------
    TargetError
        If the answers are too large or too small to be squared.
    SaturatedError
        If the target is saturated everywhere.
    LimitReachedError
        If the budget is under 64.
    """
    rng = np.random.default_rng(seed)
    X = _stencils(rng, oracle.dim_in, oracle.box)
    again = np.arange(8) * _STENCIL
    with oracle.phase("noise"), oracle.as_answered():
        Y = oracle(X)
        Y_again = oracle(X[again])
    numbers = read_numbers(Y)
    answered, answered_again = Y, Y_again
    size = float(np.abs(Y).max())
    if size > _LARGEST or (size > 0.0 and 1.0 / size > _LARGEST):
        raise TargetError(
            f"{oracle.name} answers numbers of size {size:.1g}: their squares overflow"
        )
    oracle.watch(_sentinels(X[again], Y[again], Y_again, numbers))
    if numbers.are_probabilities(Y).all() and (Y[0] != Y).any():
        oracle.takes_log_ratios = True
        smallest = oracle.smallest_probability = smallest_with_digits(Y, numbers.format)
        Y, Y_again = log_ratios(Y, smallest), log_ratios(Y_again, smallest)
    alive = np.asarray(np.isfinite(Y).all(axis=1).reshape(-1, _STENCIL).all(axis=1))
    if not alive.any():
        raise SaturatedError(
            f"{oracle.name} is saturated: at every input seen some class has a probability "
            f"under {oracle.smallest_probability:g}, whose digits are lost; ask it for logits, "
            "or scale its inputs so that N(0, I) is where it decides"
        )
    # One factor a stencil: an affine function must stay affine along it.
    centres = X[_STENCIL // 2 :: _STENCIL]
    growth = np.repeat(np.sqrt(1.0 + (centres**2).mean(axis=1)), _STENCIL)
    if oracle.box is not None:
        # Nothing grows in a box: scale is to be what it is where |x|^2 = d.
        growth = np.full(len(X), np.sqrt(2.0))
    lifted = (Y / growth[:, None]).reshape(len(_RADII), _STENCIL, -1)[alive]
    scale = np.sqrt((lifted**2).mean(axis=(0, 1)))
    unit = np.where(scale > 0, scale, 1.0)
    differences = np.abs(Y_again[alive] - Y[again][alive]) / growth[again][alive, None] / unit
    repeat_difference = float(differences.max())
    if numbers.grid is not None:
        is_random = _leave_the_grid(numbers.grid, answered[again], answered_again)
    else:
        is_random = repeat_difference > _REPEAT_ULPS * numbers.eps * np.sqrt(oracle.dim_in)
    sigma = _fourth_difference_noise(lifted)
    nu = _relative_error(numbers, _typical(sigma) / unit, oracle.dim_in)
    if oracle.takes_log_ratios:
        # The logarithm of p errs by eps / p where p is 1 minus something.
        is_difference = oracle.smallest_probability == SMALLEST_DIFFERENCE
        nu = np.maximum(nu, numbers.eps / (SMALLEST_DIFFERENCE if is_difference else 1.0) / unit)
    if is_random:
        nu = np.maximum(nu, _scatter(Y, alive) / (np.sqrt(2.0) * unit))
    elif numbers.grid is not None:
        nu = _rounding_error(Y, answered, numbers.grid, growth) / unit
    return NoiseFloor(
        law="random" if is_random else numbers.law,
        nu=nu,
        scale=scale,
        spread=_spread(Y, alive),
        curved=_fraction_curved(lifted, np.maximum(sigma, nu * scale)),
        repeat_difference=repeat_difference,
        numbers=numbers,
        of_log_ratios=oracle.takes_log_ratios,
    )


def _stencils(rng: np.random.Generator, d: int, box: tuple[float, float] | None) -> FloatArray:
    """Return the stencils, shape (len(_RADII) * _STENCIL, d), one after another."""
    if box is not None:
        lo, hi = box
        margin = _STEP * _STENCIL / 2 * (hi - lo)
        inner = rng.uniform(lo + margin, hi - margin, (len(_RADII), 1, d))
        steps = _STEP * (hi - lo) * rng.uniform(-1.0, 1.0, (len(_RADII), 1, d))
        turns = (np.arange(_STENCIL) - _STENCIL // 2)[None, :, None]
        return np.asarray(np.clip(inner + turns * steps, lo, hi).reshape(-1, d))
    radii = np.asarray(_RADII)[:, None, None]
    centres = rng.standard_normal((len(_RADII), 1, d))
    directions = rng.standard_normal((len(_RADII), 1, d))
    offsets = _STEP * (np.arange(_STENCIL) - _STENCIL // 2)[None, :, None]
    return np.asarray((radii * (centres + offsets * directions)).reshape(-1, d))


def _sentinels(X: FloatArray, Y: FloatArray, Y_again: FloatArray, numbers: Numbers) -> Sentinels:
    """The rows asked twice, as what a target is known by."""
    differences = np.abs(Y_again - Y).max(axis=0)
    # Rounding is relative to the terms of a sum, which an answer near zero does not show.
    size = np.maximum(np.abs(Y_again), np.sqrt((Y_again**2).mean(axis=0)))
    atol = _SENTINEL_FACTOR * differences + _REPEAT_ULPS * numbers.eps * np.sqrt(X.shape[1]) * size
    if numbers.grid is not None:
        atol = np.maximum(atol, _REPEAT_UNITS * numbers.grid.spacing(np.abs(Y_again)))
    return Sentinels(X, Y_again, np.asarray(atol))


def _leave_the_grid(grid: Grid, Y: FloatArray, Z: FloatArray) -> bool:
    """Whether answers to the same rows differ by more than a number of the grid."""
    unit = grid.spacing(np.maximum(np.abs(Y), np.abs(Z)))
    return bool((np.abs(Y - Z) > _REPEAT_UNITS * unit).any())


def _relative_error(numbers: Numbers, measured: FloatArray, d: int) -> FloatArray:
    """What fourth differences measured, but no less than rounding makes of a sum.

    Neighbouring points share most of their rounding, the more so the shorter the
    numbers: in float32 differences see about half of it.
    """
    if numbers.law == "float32":
        return np.asarray(np.maximum(_FLOAT32_SHARED * measured, 0.5 * numbers.eps))
    # The rounding of an inner product of length d.
    return np.asarray(np.maximum(measured, 0.5 * numbers.eps * np.sqrt(d)))


def _rounding_error(
    Y: FloatArray, answered: FloatArray, grid: Grid, growth: FloatArray
) -> FloatArray:
    """Standard error by output of lifted answers that lie on a grid.

    Of log-ratios, ``log(p_i / p_last)``, it is that of both probabilities.
    """
    error = _UNIFORM * grid.spacing(answered)
    if Y.shape != answered.shape:
        relative = error / np.where(answered > 0, answered, 1.0)
        error = np.hypot(relative[:, :-1], relative[:, -1:])
    finite = np.isfinite(Y).all(axis=1)
    return np.asarray(np.sqrt(np.mean((error / growth[:, None])[finite] ** 2, axis=0)))


def _scatter(Y: FloatArray, alive: BoolArray) -> FloatArray:
    """Standard error of an answer by output, from what an affine map leaves of a stencil.

    Seven points have five degrees of freedom left.
    """
    t = np.arange(_STENCIL) - _STENCIL // 2
    basis = np.linalg.qr(np.column_stack([np.ones(_STENCIL), t]))[0]
    near = alive & (np.asarray(_RADII) < _NEAR)
    stencils = Y.reshape(len(_RADII), _STENCIL, -1)[near if near.any() else alive]
    rest = stencils - np.einsum("ij,sjk->sik", basis @ basis.T, stencils)
    return np.asarray(np.sqrt((rest**2).sum(axis=(0, 1)) / (len(stencils) * (_STENCIL - 2))))


def _spread(Y: FloatArray, alive: BoolArray) -> FloatArray:
    """The standard deviation by output over N(0, I), exactly 0 for a constant.

    A stencil is hardly more than one place, but its mean is less noisy than an answer.
    """
    gaussian = alive & (np.asarray(_RADII) == 1.0)
    chosen = gaussian if gaussian.sum() > 1 else alive
    stencils = Y.reshape(len(_RADII), _STENCIL, -1)[chosen]
    places = stencils.mean(axis=1) if len(stencils) > 1 else stencils[0]
    varies = np.ptp(stencils, axis=(0, 1)) > 0
    return np.asarray(np.where(varies, places.std(axis=0, ddof=1), 0.0))


def _fourth_difference_noise(lifted: FloatArray) -> FloatArray:
    """Standard error of an answer, by stencil and output."""
    windows = np.lib.stride_tricks.sliding_window_view(lifted, 5, axis=1) @ _FOURTH
    return np.asarray(np.sqrt((windows**2).mean(axis=1)) / _FOURTH_NORM)


def _typical(sigma: FloatArray) -> FloatArray:
    """The upper quartile over the stencils, unless a kink made it what it is.

    Where neurons that are off cost no rounding, the median would be too low; where all
    are off, nothing errs, which says nothing of the rest.
    """
    varies = np.where(sigma > 0, sigma, np.nan)
    varies[:, ~(sigma > 0).any(axis=0)] = 0.0
    median, upper = np.nanquantile(varies, [0.5, 0.75], axis=0)
    floor = np.finfo(np.float64).eps * sigma.max(axis=0)
    return np.asarray(np.where(upper <= _KINK_RATIO * np.maximum(median, floor), upper, median))


def _fraction_curved(lifted: FloatArray, sigma: FloatArray) -> float:
    second = np.diff(lifted, 2, axis=1)
    one_sign = np.abs(np.sign(second).sum(axis=1)) == second.shape[1]
    large = np.abs(second).min(axis=1) > _CURVED_FACTOR * _SECOND_NORM * sigma
    return float((one_sign & large).any(axis=1).mean())
