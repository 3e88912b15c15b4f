"""Images of a box that a search asks, and what is not known of their answers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.oracle import NoiseFloor, Oracle
from revelu.types import FloatArray

__all__ = ["Draws"]


@dataclass(frozen=True)
class Draws:
    """Images of a box.

    Attributes
    ----------
    oracle : Oracle
        Asked in its box, or in [-1, 1].
    known : callable, optional
        What is known of the answers, and taken away from them.
    """

    oracle: Oracle
    noise: NoiseFloor
    rng: np.random.Generator
    known: Callable[[FloatArray], FloatArray] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Values of a pixel."""
        return self.oracle.box or (-1.0, 1.0)

    @property
    def dark(self) -> float:
        """A value of pixels at which answers are small."""
        return self.ends[0]

    @property
    def on(self) -> float:
        """A bias with which a pixel is always on."""
        return max(map(abs, self.ends))

    def drawn(self, n: int, m: int) -> FloatArray:
        """Values of pixels, half of them uniform, and half with a share at an end, (n, m)."""
        X = self.rng.uniform(*self.ends, (n, m))
        is_outer = self.rng.random((n, m)) < self.rng.random((n, 1))
        is_outer[::2] = False
        is_low = self.rng.random((n, m)) < self.rng.random((n, 1))
        return np.asarray(np.where(is_outer, np.where(is_low, *self.ends), X))

    def rounded(self, X: FloatArray) -> FloatArray:
        """Inputs near others that the target need not round."""
        return X if self.noise.is_exact else self.oracle.in_float32(X)
