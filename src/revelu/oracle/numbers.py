"""What numbers a target answers: float64, float32, or rounded to few digits."""

from dataclasses import dataclass

import numpy as np

from revelu.oracle.grid import FLOAT32_DIGITS, Grid, nearest_float32, read_grid, read_grids
from revelu.oracle.log_ratios import are_probabilities
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Numbers:
    """What numbers answers are.

    Attributes
    ----------
    law : str
        ``"float64"``, ``"float32"`` or ``"rounded"``: what decides by how much they err.
    grid : Grid or None
        What they were rounded to.
    inside : float
        Of rounded answers, which share of them their own arithmetic errs by before; 0 where that
        does not show.
    """

    law: str
    grid: Grid | None = None
    inside: float = 0.0

    @property
    def format(self) -> np.finfo[np.floating]:
        """The floating-point format that answers are written in."""
        if self.is_half_precision:
            return np.finfo(np.float16)
        is_single = self.law == "float32" or (self.grid is not None and self.grid.single)
        return np.finfo(np.float32 if is_single else np.float64)

    @property
    def largest(self) -> float:
        """The largest number of that format: beyond it they are infinite."""
        is_bfloat16 = self.is_half_precision and self.grid is not None and self.grid.digits == 8
        return float(np.finfo(np.float32).max if is_bfloat16 else self.format.max)

    @property
    def is_half_precision(self) -> bool:
        """Whether they are numbers of float16 or of bfloat16."""
        return self.grid is not None and self.grid.base == 2 and self.grid.digits is not None

    @property
    def is_partly_float32(self) -> bool:
        """Whether some outputs are rounded to float32 alone, in which sums err by more."""
        outputs = () if self.grid is None else self.grid.by_output
        return any(grid.digits == FLOAT32_DIGITS for grid in outputs)

    @property
    def eps(self) -> float:
        """Spacing of the numbers next to 1, but for a grid of decimals."""
        if self.is_half_precision:
            return 2.0 * self.rounding
        return float(self.format.eps)

    @property
    def rounding(self) -> float:
        """By which share of an answer rounding moves it at most; 0 where that is not known."""
        if self.grid is None or self.grid.digits is None:
            return 0.0
        # Half a unit of the last digit, of a number that begins with 1.
        return float(0.5 * self.grid.base ** (1.0 - self.grid.digits))

    def hold(self, Y: FloatArray) -> BoolArray:
        """Tell which rows of answers, (n, k) -> (n,), are such numbers."""
        if self.grid is not None:
            held = self.grid.holds(Y)
            if self.grid.base == 10 and self.grid.places and not self.grid.step:
                # Large shares are of fixed places and of as many digits alike; small ones are rare.
                held |= Grid(10, digits=self.grid.places, single=self.grid.single).holds(Y)
            return np.asarray(held.all(axis=1))
        if self.law == "float32":
            return np.asarray(_are_float32(Y).all(axis=1))
        return np.ones(len(Y), dtype=bool)

    def nearest(self, Y: FloatArray) -> FloatArray:
        """Return the numbers of this kind that are nearest to ``Y``, same shape."""
        if self.grid is not None:
            return self.grid.nearest(Y)
        return nearest_float32(Y) if self.law == "float32" else Y

    def error(self, Y: FloatArray) -> FloatArray:
        """Standard error of answers by their own rounding, and what was before, same shape."""
        if self.grid is not None:
            before = self.inside * np.abs(Y) if self.inside else 0.0
            return np.asarray(np.hypot(self.grid.rounding_error(Y), before))
        return self.last_place(Y)

    def last_place(self, Y: FloatArray) -> FloatArray:
        """Standard error of answers by the format that they are written in, same shape."""
        # Half a unit in the last place is an error of 0.14 to 0.29 of eps.
        return np.asarray(0.29 * self.eps * np.abs(Y))

    def are_probabilities(self, Y: FloatArray) -> BoolArray:
        """Tell which rows of answers, (n, k) -> (n,), are probabilities in such numbers."""
        if self.grid is None:
            return are_probabilities(Y, self.eps)
        # Rounding moves each by half a unit at most; the numbers before it may be float32.
        half_units = 0.5 * self.grid.spacing(Y).sum(axis=1)
        return are_probabilities(Y, float(np.finfo(np.float32).eps), half_units)

    def __str__(self) -> str:
        return f"{self.law} numbers" if self.grid is None else f"rounded to {self.grid}"


def read_numbers(Y: FloatArray, largest_short: float = 2.0**24) -> Numbers:
    """Tell what numbers the answers ``Y (n, k)`` are.

    Outputs that do not vary say nothing, nor do whole numbers up to ``largest_short``, which are
    all float32 numbers.
    """
    # Small whole numbers prove nothing, since they are short float32 numbers, too; nor does one
    # value of an output, however many such outputs there are.
    is_whole = np.array_equal(Y, np.rint(Y)) and np.abs(Y).max() <= largest_short
    if not is_whole and not (Y[0] == Y).all():
        grid = _read_shares(Y) if Y.min() >= 0.0 and Y.max() <= 1.0 else read_grids(Y)
        if grid is not None:
            return Numbers("rounded", grid)
        if _are_float32(Y).all():
            return Numbers("float32")
    return Numbers("float64")


def _read_shares(Y: FloatArray) -> Grid | None:
    """Tell of what grid shares are numbers: of fixed places where digits are not likelier.

    Shares are rounded to places far more often than to digits, which of small ones leave more; the
    first answers may show no small one.  A share of 1 is none that was rounded.
    """
    return read_grid(Y[Y < 1.0], least_odds=0.0)


def are_written_float32(Y: FloatArray, least: int = 24) -> bool:
    """Whether answers are float32 numbers in decimals, as servers of other languages write them.

    Those write the shortest decimals that read back as the same float32 number, and the nearest
    float64 numbers are others.  ``least`` numbers must have eight digits or more: shorter ones are
    shortest decimals of some float32 number, always, and of those that were rounded to eight
    digits half are, so that all of them agree by chance once in 1e7.
    """
    with np.errstate(over="ignore"):
        single = Y.astype(np.float32)
    if not np.array_equal(np.array([float(str(y)) for y in single.ravel()]), Y.ravel()):
        return False
    return sum(float(f"{y:.7g}") != y for y in Y.ravel().tolist()) >= least


def _are_float32(Y: FloatArray) -> BoolArray:
    return np.asarray(nearest_float32(Y) == Y)
