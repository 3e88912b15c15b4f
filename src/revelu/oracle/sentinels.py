"""Sentinels: rows that are asked again, to see that a target is still the same."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.errors import ChangedError
from revelu.oracle.grid import Grid
from revelu.oracle.numbers import Numbers
from revelu.types import FloatArray


@dataclass(frozen=True)
class Sentinels:
    """Rows, their answers, and how far equal answers may lie apart.

    Attributes
    ----------
    X : ndarray, shape (n, d)
        Always asked together, as one batch.
    Y : ndarray, shape (n, k)
        As answered, before log-ratios are taken.
    atol : ndarray, shape (n, k)
        From the measured noise floor: beyond it, two answers are not those of one target.
    view : callable, (n, k) -> (n, 1), optional
        What of an answer is compared, such as its label; ``Y`` is seen through it already.
    every : int
        Rows between two looks: eight or so are asked again, one more in a thousand.
    """

    X: FloatArray
    Y: FloatArray
    atol: FloatArray
    view: Callable[[FloatArray], FloatArray] | None = None
    every: int = 8192

    def check(self, name: str, Y: FloatArray) -> None:
        """Compare fresh answers ``Y (n, k)`` with the first ones.

        Raises
        ------
        ChangedError
            If they differ: what was asked before and after belongs to two targets.
        """
        Y = Y if self.view is None else self.view(Y)
        if Y.shape != self.Y.shape:
            raise ChangedError(f"{name} has changed: {Y.shape[1]} outputs, not {self.Y.shape[1]}")
        excess = np.abs(Y - self.Y) - self.atol
        if (excess > 0).any():
            row, column = np.unravel_index(int(excess.argmax()), excess.shape)
            raise ChangedError(
                f"{name} has changed: a row asked again is answered {Y[row, column]:.17g} in "
                f"output {column}, before it was {self.Y[row, column]:.17g}; answers of two "
                "models make no network, so begin again with a new journal"
            )


@dataclass(frozen=True)
class Repeats:
    """How far two answers to one row may lie apart.

    Attributes
    ----------
    ulps : float
        A row answered alone and inside a batch may be summed in another order, which moves its
        last bits; what moves by more units in the last place is not rounding.
    units : float
        On a grid it moves to the next number at most, in units of the spacing.
    factor : float
        Noise drawn anew exceeds the largest of eight earlier differences by this factor once in
        1e9: they are half-normal, and the largest of eight is tiny that rarely.
    """

    ulps: float = 256.0
    units: float = 1.5
    factor: float = 64.0

    def rounding(self, numbers: Numbers, d: int) -> float:
        """The largest relative difference that the rounding of sums of d terms makes."""
        return float(self.ulps * numbers.eps * np.sqrt(d))

    def leave_grid(self, grid: Grid, Y: FloatArray, Z: FloatArray) -> bool:
        """Whether answers to the same rows differ by more than a number of the grid."""
        unit = grid.spacing(np.maximum(np.abs(Y), np.abs(Z)))
        return bool((np.abs(Y - Z) > self.units * unit).any())

    def sentinels(
        self, X: FloatArray, Y: FloatArray, Y_again: FloatArray, numbers: Numbers
    ) -> Sentinels:
        """The rows asked twice, as what a target is known by.

        Parameters
        ----------
        X : ndarray, shape (n, d)
        Y, Y_again : ndarray, shape (n, k)
        """
        differences = np.abs(Y_again - Y).max(axis=0)
        # Rounding is relative to the terms of a sum, whose size an answer near zero does not show.
        size = np.maximum(np.abs(Y_again), np.sqrt((Y_again**2).mean(axis=0)))
        atol = self.factor * differences + self.rounding(numbers, X.shape[1]) * size
        if numbers.grid is not None:
            atol = np.maximum(atol, self.units * numbers.grid.spacing(np.abs(Y_again)))
        return Sentinels(X, Y_again, np.asarray(atol))
