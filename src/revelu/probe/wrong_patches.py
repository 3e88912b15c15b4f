"""Patches of images at which a function that is known but for some filters is wrong.

A filter that is hardly ever on is so somewhere in many images, which have as many places as pixels.
Where an image is wrong, the rest of it gives way to an image that is right, as long as that leaves
it wrong: by halving, first rows and then columns.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.network.images import Image
from revelu.probe.draws import Draws
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["WrongPatches"]


@dataclass(frozen=True)
class WrongPatches:
    """What is known of a function, and where it is wrong.

    Attributes
    ----------
    draws : Draws
    image : Image
    are_wrong : callable
        Of images, (n, d), and their answers, (n, k): whether those are not what is known, (n,).
    """

    draws: Draws
    image: Image
    are_wrong: Callable[[FloatArray, FloatArray], BoolArray]

    def find(self, wrong: FloatArray, right: FloatArray, extent: tuple[int, int]) -> FloatArray:
        """Return a patch of each of some images, (n, d), that are wrong beside others, (n, d).

        Parameters
        ----------
        extent : (int, int)
            Rows and columns of a patch.

        Returns
        -------
        ndarray, shape (n, channels, rows, columns)
        """
        n, shown = len(wrong), wrong
        first = np.zeros((n, 2), dtype=np.intp)
        for axis, size in enumerate(self.image.shape[1:]):
            # Where a patch ends, and, of what ends there, where it begins.
            last = self._halved(shown, right, axis, extent[axis], size, is_last=True)
            shown = self._mixed(shown, right, axis, np.zeros(n, dtype=np.intp), last)
            start = self._halved(shown, right, axis, 0, size - extent[axis], is_last=False)
            start = np.minimum(start, last - extent[axis])
            shown = self._mixed(shown, right, axis, start, last)
            first[:, axis] = last - extent[axis]
        images = shown.reshape(n, *self.image.shape)
        return np.array(
            [
                x[:, row : row + extent[0], column : column + extent[1]]
                for x, (row, column) in zip(images, first, strict=True)
            ]
        ).reshape(n, self.image.shape[0], *extent)

    def _halved(
        self,
        wrong: FloatArray,
        right: FloatArray,
        axis: int,
        least: int,
        most: int,
        *,
        is_last: bool,
    ) -> IntArray:
        """The least end, or the greatest start, with which images stay wrong, (n,)."""
        n, size = len(wrong), self.image.shape[1 + axis]
        low, high = np.full(n, least), np.full(n, most)
        while (low < high).any():
            middle = (low + high + (not is_last)) // 2
            start, end = (np.zeros_like(middle), middle) if is_last else (middle, np.full(n, size))
            X = self.draws.rounded(self._mixed(wrong, right, axis, start, end))
            are_wrong = self.are_wrong(X, self.draws.oracle(X))
            is_lower = are_wrong if is_last else ~are_wrong
            if is_last:
                high, low = np.where(is_lower, middle, high), np.where(is_lower, low, middle + 1)
            else:
                high, low = np.where(is_lower, middle - 1, high), np.where(is_lower, low, middle)
            low = np.minimum(low, high)
        return np.asarray(low)

    def _mixed(
        self, inside: FloatArray, outside: FloatArray, axis: int, start: IntArray, end: IntArray
    ) -> FloatArray:
        """Images of which some rows, or columns, are those of others."""
        at = np.arange(self.image.shape[1 + axis])
        is_inside = (at >= start[:, None]) & (at < end[:, None])
        is_inside = is_inside[:, None, :, None] if axis == 0 else is_inside[:, None, None, :]
        shape = (len(inside), *self.image.shape)
        mixed = np.where(is_inside, inside.reshape(shape), outside.reshape(shape))
        return np.asarray(mixed.reshape(len(inside), -1))
