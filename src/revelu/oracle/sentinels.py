"""Sentinels: rows that are asked again, to see that a target is still the same."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.errors import TargetError
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
    """

    X: FloatArray
    Y: FloatArray
    atol: FloatArray
    view: Callable[[FloatArray], FloatArray] | None = None

    def check(self, name: str, Y: FloatArray) -> None:
        """Compare fresh answers ``Y (n, k)`` with the first ones.

        Raises
        ------
        TargetError
            If they differ: what was asked before and after belongs to two targets.
        """
        Y = Y if self.view is None else self.view(Y)
        if Y.shape != self.Y.shape:
            raise TargetError(f"{name} has changed: {Y.shape[1]} outputs, not {self.Y.shape[1]}")
        excess = np.abs(Y - self.Y) - self.atol
        if (excess > 0).any():
            row, column = np.unravel_index(int(excess.argmax()), excess.shape)
            raise TargetError(
                f"{name} has changed: a row asked again is answered {Y[row, column]:.17g} in "
                f"output {column}, before it was {self.Y[row, column]:.17g}; answers of two "
                "models make no network, so begin again with a new journal"
            )
