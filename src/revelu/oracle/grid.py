"""The grid that rounded answers lie on."""

from dataclasses import dataclass
from itertools import repeat

import numpy as np

from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Grid:
    """Numbers of a few digits.

    Attributes
    ----------
    base : int
        10 or 2.
    digits : int or None
        Significant digits in that base; None where ``places`` are fixed.
    places : int or None
        Digits after the point, where those are fixed.
    """

    base: int
    digits: int | None = None
    places: int | None = None

    def spacing(self, Y: FloatArray) -> FloatArray:
        """Distance between neighbouring numbers of the grid at ``Y``, same shape."""
        if self.digits is None:
            return np.full(np.shape(Y), float(self.base) ** -float(self.places or 0))
        size = np.abs(Y)
        if self.base == 2:
            exponent = np.frexp(size)[1] - 1.0
        else:
            exponent = np.floor(np.log10(np.maximum(size, np.finfo(np.float64).tiny)))
        spacing = float(self.base) ** (exponent - self.digits + 1.0)
        return np.asarray(np.where(size > 0, spacing, 0.0))

    def rounding_error(self, Y: FloatArray) -> FloatArray:
        """Standard error of rounding at ``Y``, same shape: u / sqrt(12) for a spacing u."""
        return np.asarray(12.0**-0.5 * self.spacing(Y))

    def holds(self, Y: FloatArray) -> BoolArray:
        """Tell which numbers are of the grid, same shape as ``Y``."""
        if self.base == 2:
            mantissas = np.ldexp(np.frexp(Y)[0], self.digits or 0)
            return np.asarray(mantissas == np.rint(mantissas))
        form = f".{self.places}f" if self.digits is None else f".{self.digits}g"
        values, places = np.unique(Y, return_inverse=True)
        return np.asarray(_are_decimals(values, form)[places].reshape(Y.shape))

    def at_fixed_places(self, Y: FloatArray, most: int = 15) -> "Grid":
        """The grid of the fewest fixed places that holds numbers of this one, which few may be of.

        This one where it is binary, or they have more places than ``most``.
        """
        fixed = (Grid(10, places=n) for n in range(most + 1)) if self.base == 10 else ()
        return next((grid for grid in fixed if grid.holds(Y).all()), self)

    def __str__(self) -> str:
        if self.base == 2:
            return f"{self.digits} binary digits"
        if self.digits is None:
            return f"{self.places} decimal places"
        return f"{self.digits} significant digits"


def read_grid(
    Y: FloatArray,
    *,
    max_digits: int = 12,
    max_digits_float32: int = 6,
    min_lacking: int = 3,
    half_precision: tuple[int, ...] = (8, 11),
) -> Grid | None:
    """Tell to how few digits answers were rounded; None where they were not.

    Parameters
    ----------
    Y : ndarray
        Answers, float64; they may have gone through float32.
    max_digits, max_digits_float32 : int
        Answers of more decimal digits were not rounded, or not so that it shows: float64 has
        15.9 of them, float32 7.2.
    min_lacking : int
        Smaller numbers do not lack so many digits, all together, by chance: each is a 0 in one of
        ten.
    half_precision : tuple of int
        Binary digits of bfloat16 and of float16, the leading one counted.
    """
    values = np.unique(Y[Y != 0.0])
    with np.errstate(over="ignore"):
        as_float32 = values.astype(np.float32)
    is_float32 = np.array_equal(as_float32.astype(np.float64), values)
    most = max_digits_float32 if is_float32 else max_digits
    digits = next((n for n in range(1, most + 1) if _are_decimals(values, f".{n}g").all()), None)
    if digits is not None:
        exponents = np.floor(np.log10(np.abs(values)))
        # If places are fixed, all have the same; of numbers with so many digits smaller ones would
        # have more.
        most_places = digits - 1 - int(exponents.min())
        places = next(
            (p for p in range(most_places) if _are_decimals(values, f".{p}f").all()), most_places
        )
        n_lacking = int(np.maximum(digits - 1 - exponents - places, 0).sum())
        if places >= 1 and n_lacking >= min_lacking:
            return Grid(10, places=places)
        return Grid(10, digits=digits)
    binary = (Grid(2, digits=digits) for digits in half_precision)
    return next((grid for grid in binary if grid.holds(values).all()), None)


def _are_decimals(values: FloatArray, form: str) -> BoolArray:
    """Which values are decimals of this form, as float64 or, if all are float32, as that."""
    texts = map(format, values.tolist(), repeat(form))
    decimals = np.array([float(text) for text in texts], dtype=np.float64)
    with np.errstate(over="ignore"):
        as_float32 = values.astype(np.float32)
        if np.array_equal(as_float32.astype(np.float64), values):
            return np.asarray(decimals.astype(np.float32) == as_float32)
    # A product with a power of ten may be two roundings away from the float64 nearest to the
    # decimal.
    return np.asarray(np.abs(decimals - values) <= 2.0 * np.spacing(np.abs(values)))
