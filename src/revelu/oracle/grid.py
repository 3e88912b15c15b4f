"""The grid that rounded answers lie on."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from math import gcd

import numpy as np

from revelu.numerics.confidence import FALSE_ALARM
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Grid:
    """Numbers of a few digits, or multiples of a step."""

    base: int
    """10 or 2."""
    digits: int | None = None
    """Significant digits in that base; None where ``places`` are fixed."""
    places: int | None = None
    """Digits after the point, where those are fixed."""
    step: float = 0.0
    """The distance of neighbouring numbers, where it is no power of ``base``; else 0."""
    single: bool = False
    """Whether they are made float32 numbers, whose own spacing is wider where they are large."""
    by_output: tuple["Grid", ...] = ()
    """Of outputs that are rounded differently, one each, for arrays ``(..., k)``; the rest then
    says nothing but ``single``."""

    def _each(self, ask: Callable[["Grid", FloatArray], np.ndarray], Y: FloatArray) -> np.ndarray:
        """What each output's grid says of that output."""
        outputs = np.moveaxis(Y, -1, 0)
        told = [ask(grid, y) for grid, y in zip(self.by_output, outputs, strict=True)]
        return np.stack(told, axis=-1)

    def spacing(self, Y: FloatArray) -> FloatArray:
        """Distance between neighbouring numbers of the grid at ``Y``, same shape."""
        if self.by_output:
            return self._each(Grid.spacing, Y)
        return np.asarray(np.maximum(self._own_spacing(Y), self._format_spacing(Y)))

    def _format_spacing(self, Y: FloatArray) -> FloatArray:
        """That of the numbers that hold them; 0 of a number that is 0, or has overflowed."""
        held = np.where(np.isfinite(Y) & (Y != 0.0), Y, 0.0)
        return np.where(held != 0.0, _spacing(held, single=self.single), 0.0)

    def _own_spacing(self, Y: FloatArray) -> FloatArray:
        """The same before they are made float32 numbers."""
        if self.digits is None:
            step = self.step or float(self.base) ** -float(self.places or 0)
            return np.full(np.shape(Y), step)
        size = np.abs(Y)
        if self.base == 2:
            exponent = np.frexp(size)[1] - 1.0
        else:
            exponent = np.floor(np.log10(np.maximum(size, np.finfo(np.float64).tiny)))
        spacing = float(self.base) ** (exponent - self.digits + 1.0)
        return np.asarray(np.where(size > 0, spacing, 0.0))

    def rounding_error(self, Y: FloatArray) -> FloatArray:
        """Standard error of rounding at ``Y``, same shape: u / sqrt(12) for a spacing u.

        Of two roundings, one after the other, the variances add up.
        """
        if self.by_output:
            return self._each(Grid.rounding_error, Y)
        spacing = np.hypot(self._own_spacing(Y), self._format_spacing(Y))
        return np.asarray(12.0**-0.5 * spacing)

    def holds(self, Y: FloatArray) -> BoolArray:
        """Tell which numbers are of the grid, same shape as ``Y``."""
        if self.by_output:
            return self._each(Grid.holds, Y)
        if self.digits is None and (self.step or self.base == 2):
            step = self._own_spacing(Y)
            nearest = np.rint(Y / step)
            off = np.abs(Y - step * nearest)
            # A step that is known from such numbers is as precise as the largest of them.  Small
            # multiples are float32 numbers, whatever the target's are, and larger ones need not be.
            held = off <= 4.0 * _spacing(Y, single=False)
            if self.single:
                near = off <= 4.0 * _spacing(Y, single=True)
                held |= near & (nearest_float32(Y) == Y)
            return np.asarray(held)
        if self.base == 2:
            mantissas = np.ldexp(np.frexp(Y)[0], self.digits or 0)
            return np.asarray(mantissas == np.rint(mantissas))
        form = f".{self.places}f" if self.digits is None else f".{self.digits}g"
        values, places = np.unique(Y, return_inverse=True)
        return np.asarray(_are_decimals(values, form)[places].reshape(Y.shape))

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the numbers of the grid that are nearest to ``Y``, same shape."""
        if self.by_output:
            return self._each(Grid.nearest, Y)
        if self.base == 10 and not self.step:
            form = f".{self.places}f" if self.digits is None else f".{self.digits}g"
            values, at = np.unique(Y, return_inverse=True)
            # Decimal text rounds once each way, and gives -0.0 no sign that tells it from 0.0.
            found = np.array([float(f"{y:{form}}") + 0.0 for y in values.tolist()])
            found = found[at].reshape(np.shape(Y))
        else:
            spacing = self._own_spacing(Y)
            found = np.rint(Y / np.where(spacing > 0, spacing, 1.0)) * spacing
        return nearest_float32(found) if self.single else np.asarray(found)

    def at_fixed_places(self, Y: FloatArray, most: int = 15) -> "Grid":
        """The grid of the fewest fixed places that holds numbers of this one, which few may be of.

        This one where it is binary, or of each output, or they have more places than ``most``.
        """
        is_decimal = self.base == 10 and not self.by_output
        fixed = (Grid(10, places=n) for n in range(most + 1)) if is_decimal else ()
        return next((grid for grid in fixed if grid.holds(Y).all()), self)

    def __str__(self) -> str:
        if self.by_output:
            return " or ".join(dict.fromkeys(map(str, self.by_output)))
        if self.digits is not None:
            formats = {single_format(): "float32", double_format(): "float64"}
            if self in formats:
                return formats[self]
            return f"{self.digits} {'binary' if self.base == 2 else 'significant'} digits"
        if self.step:
            many = round(1.0 / self.step)
            is_part = many > 1 and abs(many * self.step - 1.0) < 1e-6
            return f"a grid of {f'1/{many}' if is_part else f'{self.step:.6g}'}"
        if self.base == 2:
            return f"a grid of 2^{-(self.places or 0)}"
        return f"{self.places} decimal places"


def single_format() -> Grid:
    """The numbers of float32, by their binary digits, the leading one counted."""
    return Grid(2, digits=np.finfo(np.float32).nmant + 1)


def double_format() -> Grid:
    """The numbers of float64."""
    return Grid(2, digits=np.finfo(np.float64).nmant + 1)


def half_precision() -> tuple[Grid, Grid]:
    """The numbers of bfloat16 and of float16, by their binary digits, the leading one counted."""
    return Grid(2, digits=8), Grid(2, digits=11)


def read_grids(Y: FloatArray) -> Grid | None:
    """Tell to what answers ``Y (n, k)`` were rounded; None of others.

    Outputs of a served model are rounded each to its own places, and some not at all: one is on a
    coarser grid than others where chance would not have it so.
    """
    joint = _read(Y)
    if joint is not None and joint.digits is not None:
        return joint
    grids = []
    for y in Y.T:
        values, grid = np.unique(y[np.isfinite(y) & (y != 0.0)]), _read(y)
        # What a difference to 1 leaves is a multiple of its last digit, and is not rounded.
        largest = np.full(len(values), np.abs(values).max(initial=0.0))
        # What is not rounded is so as its format is, which has a step in common with places.
        shares = joint is not None and not (joint.step and grid is None)
        whole = (
            joint if joint and shares else (single_format if _are_single(y) else double_format)()
        )
        is_coarser = (
            grid is not None
            and grid.digits is None
            and _odds(whole, grid, largest) <= np.log10(FALSE_ALARM)
        )
        grids.append(grid if grid is not None and is_coarser else whole)
    if len(set(grids)) == 1 or not any(grid.digits is None for grid in grids):
        return joint
    return Grid(10, single=_are_single(Y), by_output=tuple(grids))


def _read(Y: FloatArray) -> Grid | None:
    """Tell of what grid answers are numbers, those of shares as shares are rounded.

    Shares are rounded to places far more often than to digits, which of small ones leave more; the
    first answers may show no small one.  A share of 1 is none that was rounded.
    """
    are_shares = Y.min() >= 0.0 and Y.max() <= 1.0
    return read_grid(Y[Y < 1.0], least_odds=0.0) if are_shares else read_grid(Y)


def read_grid(
    Y: FloatArray,
    *,
    max_digits: int = 12,
    max_digits_float32: int = 6,
    least_odds: float = 1.0,
) -> Grid | None:
    """Tell to how few digits, or to multiples of what, answers were rounded; None of others.

    Parameters
    ----------
    Y : ndarray
        Answers, float64; they may have gone through float32.
    max_digits, max_digits_float32 : int
        Answers of more significant digits are not known by those: float64 has 15.9 of them, float32
        7.2.
    least_odds : float
        Power of ten by which fixed places have to be likelier than significant digits, and binary
        digits than decimals.
    """
    values = np.unique(Y[np.isfinite(Y) & (Y != 0.0)])
    if not len(values):
        return None
    single = _are_single(values)
    # On a grid the smaller numbers have fewer digits; half-precision numbers keep theirs.
    half = next((grid for grid in half_precision() if grid.holds(values).all()), None)
    most = max_digits_float32 if single else max_digits
    digits = next((n for n in range(1, most + 1) if _are_decimals(values, f".{n}g").all()), None)
    if digits is None:
        return read_step(values, single=single) or half
    decimal = _decimal(values, digits, single=single, least_odds=least_odds)
    return half if half and _odds(half, decimal, values) >= least_odds else decimal


def _decimal(values: FloatArray, digits: int, *, single: bool, least_odds: float) -> Grid:
    """The grid of decimals that have ``digits`` at most: those, or fixed places, or a step."""
    significant = Grid(10, digits=digits)
    # Numbers of fixed places have as many at least as the smallest one has digits.
    most = digits - 1 - int(np.floor(np.log10(np.abs(values))).min())
    places = next((p for p in range(most) if _are_decimals(values, f".{p}f").all()), most)
    if not 1 <= places <= sys.float_info.max_10_exp:
        return significant
    grid = _coarsest(values, places, single=single)
    # Multiples of more than a unit of the last place are so in every decade.
    is_coarser = grid.base == 2 or grid.step > 0.0
    is_likelier = _odds(Grid(10, places=places), significant, values) >= least_odds
    return grid if is_coarser or is_likelier else significant


def _odds(one: Grid, other: Grid, values: FloatArray) -> float:
    """How much likelier numbers that are of both grids are of one, as a power of ten.

    Those of a grid of spacing ``u`` are of another one, of ``v``, by chance with odds of ``u / v``.
    """
    ratio = one.spacing(values) / other.spacing(values)
    return float(np.log10(ratio).sum())


def read_step(
    values: FloatArray,
    *,
    single: bool,
    false_alarm: float = 1e-12,
    wide: tuple[float, float] = (1024.0, 4.0),
) -> Grid | None:
    """Tell of which step numbers are multiples; None where they are of none that shows.

    A number of spacing ``u`` is a multiple of a step ``h`` by chance with probability ``u / h``.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Different, and none is 0.
    single : bool
        Whether all are float32 numbers.
    false_alarm : float
        Probability that numbers which are not seem to be such multiples.
    wide : (float, float)
        Where sums cancel the last binary digits are 0, which is no grid's doing: that of powers of
        two has to be wider than what a typical number is rounded to, by this factor: of float64
        numbers, whose grids are far coarser, and of float32 ones.
    """
    spacing = _spacing(values, single=single)

    def is_proved(step: float, ulps: float) -> bool:
        """Whether as many multiples of a step would come by chance too rarely."""
        chance = np.log(np.minimum(ulps * spacing / step, 1.0)).sum()
        return bool(chance < np.log(false_alarm))

    # Where digits are significant the larger numbers are multiples of more.
    larger = values[np.abs(values) >= np.median(np.abs(values))]
    for places in range(1, 16):
        if is_proved(10.0**-places, 4.0) and _are_decimals(values, f".{places}f").all():
            floats = not single and bool(_are_decimals(larger, f".{places - 1}f").all())
            return None if floats else _coarsest(values, places, single=single)
    step, typical = _binary_step(values), float(np.median(spacing))
    is_wide = step >= wide[single] * typical and step == _binary_step(larger)
    if not (is_wide and is_proved(step, 1.0)):
        binary, step = step, _common_step(values, spacing)
        # Powers of two that are no grid's are multiples of their smallest, too.
        is_binary = abs(step - binary) < 0.5 * binary
        if not step or not is_proved(step, 4.0) or is_binary or not _has_levels(values, step):
            return None
    return _of_step(step, single=single and bool(spacing.max() > 0.1 * step))


def _coarsest(values: FloatArray, places: int, *, single: bool) -> Grid:
    """The coarsest grid of which decimals of that many places are numbers."""
    wider = single and bool(_spacing(values, single=True).max() > 0.1 * 10.0**-places)
    units = np.rint(np.abs(values) * 10.0**places)
    # Beyond 2^53 all numbers are multiples of more than 1.
    if units.max() >= 2.0**53:
        return Grid(10, places=places, single=wider)
    common = gcd(*map(int, units.tolist()))
    # Where digits are significant the larger numbers are multiples of more.
    floats = gcd(*map(int, units[units >= np.median(units)].tolist())) != common
    # All of n numbers are multiples of that by chance once in common^n.
    if floats or len(values) * np.log10(common) < 6.0:
        return Grid(10, places=places, single=wider)
    found = _of_step(common / 10.0**places, single=wider)
    if found.step and not _has_levels(values, found.step):
        return Grid(10, places=places, single=wider)
    return found


def _has_levels(values: FloatArray, step: float, least: float = 100.0) -> bool:
    """Whether numbers span more multiples of a step than a forest has trees that vote."""
    return bool(np.ptp(values) >= least * step)


def _of_step(step: float, *, single: bool) -> Grid:
    """The grid of a step, which is named where it is a power of two."""
    places = -int(np.rint(np.log2(step)))
    if places >= 0 and step == 2.0**-places:
        return Grid(2, places=places, single=single)
    return Grid(10, step=step, single=single)


def _binary_step(values: FloatArray) -> float:
    """The largest power of two of which all numbers are multiples."""
    mantissas, exponents = np.frexp(values)
    whole = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    n_zeros = np.log2((whole & -whole).astype(np.float64)).astype(int)
    return float(np.ldexp(1.0, int((exponents - 53 + n_zeros).min())))


def _common_step(values: FloatArray, spacing: FloatArray, told: float = 1e3) -> float:
    """The largest number of which all are multiples, by Euclid's algorithm; 0 where none shows.

    Parameters
    ----------
    told : float
        A step is told from rounding that is so much finer.
    """
    order = np.argsort(np.abs(values))
    size, spacing = np.abs(values)[order], spacing[order]
    rounding, step = told * float(spacing[-1]), 0.0
    gaps = np.diff(size, prepend=0.0)
    for gap in np.sort(gaps[gaps > rounding]).tolist():
        rest = gap
        while rest > rounding:
            left = step % rest
            step, rest = rest, min(left, rest - left)
        step = gap / max(round(gap / step), 1)  # a wide gap tells the step more precisely
    if step <= rounding:
        return 0.0
    for y in size.tolist():
        if y / step == np.inf:  # a number under the smallest normal one has made it as small
            return 0.0
        step = y / max(round(y / step), 1)
    off = np.abs(size - step * np.rint(size / step))
    return step if bool((off <= 4.0 * spacing).all()) else 0.0


def nearest_float32(Y: FloatArray) -> FloatArray:
    """Return the float32 numbers nearest to ``Y``; infinity beyond their range."""
    with np.errstate(over="ignore"):
        return np.asarray(Y.astype(np.float32).astype(np.float64))


def _are_single(values: FloatArray) -> bool:
    """Whether all are float32 numbers."""
    return np.array_equal(nearest_float32(values), values)


def _spacing(Y: FloatArray, *, single: bool) -> FloatArray:
    """Distance between neighbouring float64 numbers, or float32 ones, at ``Y``, same shape."""
    with np.errstate(over="ignore", invalid="ignore"):
        spacing = np.spacing(Y.astype(np.float32 if single else np.float64))
        return np.asarray(np.abs(spacing), dtype=np.float64)


def _are_decimals(values: FloatArray, form: str) -> BoolArray:
    """Which values are decimals of this form, as float64 or, if all are float32, as that."""
    texts = map(format, values.tolist(), repeat(form))
    decimals = np.array([float(text) for text in texts], dtype=np.float64)
    if _are_single(values):
        return np.asarray(nearest_float32(decimals) == values)
    # A product with a power of ten may be two roundings away from the float64 nearest to the
    # decimal.  What has overflowed is the same in every form.
    with np.errstate(invalid="ignore"):
        near = np.abs(decimals - values) <= 2.0 * np.spacing(np.abs(values))
    return np.asarray(near | (decimals == values))
