"""Images of a box that a search asks."""

from dataclasses import dataclass

import numpy as np

from revelu.oracle import NoiseFloor, Oracle
from revelu.types import FloatArray, IntArray

__all__ = ["Draws"]


@dataclass(frozen=True)
class Draws:
    """Images of a box.

    Attributes
    ----------
    oracle : Oracle
        Asked in its box, or in [-1, 1].
    """

    oracle: Oracle
    noise: NoiseFloor
    rng: np.random.Generator

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

    def varied(self, x: FloatArray, pixels: IntArray, n: int) -> FloatArray:
        """One image, (d,), in which some pixels vary, (n, d)."""
        X = np.repeat(x[None], n, axis=0)
        X[:, pixels] = self.drawn(n, len(pixels))
        return self.rounded(X)

    def levels(self, n: int, size: int, pixels: IntArray, uneven: float) -> FloatArray:
        """Images of a level, a few rows and columns of another one, and shares of those drawn.

        Parameters
        ----------
        size : int
            Of an image.
        pixels : ndarray, shape (channels, rows, columns)
            Those that may be of the other level.
        uneven : float
            Share of a random image in these.

        Returns
        -------
        ndarray, shape (n, size)
        """
        rng, (_, rows, columns) = self.rng, pixels.shape
        # Where it is dark, answers are small, and so are their errors.
        is_dark = rng.random((2, n)) < 0.5
        outer, inner = np.where(is_dark, self.dark, self.drawn(2, n))[..., None, None, None]
        most = rng.integers(1, (rows + 1, columns + 1), size=(n, 2))
        is_inner = (np.arange(rows)[:, None] < most[:, :1, None]) & (
            np.arange(columns) < most[:, 1:, None]
        )
        drawn = self.drawn(n, pixels.size).reshape(n, *pixels.shape)
        is_drawn = rng.random(drawn.shape) < 2.0 * rng.random((n, 1, 1, 1))
        shown = np.where(is_inner[:, None], np.where(is_drawn, drawn, inner), outer)
        X = np.repeat(outer.reshape(n, 1), size, axis=1)
        X[:, pixels] = shown + uneven * (rng.uniform(*self.ends, shown.shape) - shown)
        return X

    def rounded(self, X: FloatArray) -> FloatArray:
        """Inputs near others that the target need not round."""
        return self.oracle.in_float32(X)
