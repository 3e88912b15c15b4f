"""Patches of images at which a function that is known but for some filters is wrong.

A filter that is hardly ever on is so somewhere in many images, which have as many places as pixels.
Where an image is wrong, the rest of it gives way to an image that is right, as long as that leaves
it wrong: by halving, first rows and then columns (the least end of a prefix that is wrong is the
end of a place that is).
"""

from dataclasses import dataclass

import numpy as np

from revelu.network import LayeredNetwork
from revelu.network.images import Image
from revelu.numerics.confidence import SIGMAS
from revelu.probe.draws import Draws
from revelu.types import FloatArray, IntArray

__all__ = ["WrongPatches"]


@dataclass(frozen=True)
class WrongPatches:
    """What is known of a function, and where it is wrong.

    Attributes
    ----------
    draws : Draws
    image : Image
    network : LayeredNetwork
        What is known, right at most images.
    """

    draws: Draws
    image: Image
    network: LayeredNetwork

    def among(
        self, X: FloatArray, Y: FloatArray, extent: tuple[int, int], n: int
    ) -> FloatArray | None:
        """Patches of those of some images, (m, d), answered (m, k), that are wrong: of n at most.

        None where none of them is.
        """
        left = self._left(X, Y)
        most = SIGMAS * float(np.median(left))
        wrong = np.argsort(-left)[:n]
        wrong = wrong[left[wrong] > most]
        if not len(wrong):
            return None
        right = self.draws.rng.choice(np.argsort(left)[: len(left) // 2], len(wrong))
        return self.find(X[wrong], X[right], extent, most)

    def _left(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """What is left of answers, in their errors, (n,)."""
        errors = self.draws.noise.sigma_at(X, Y)
        return np.asarray(np.linalg.norm((self.network(X) - Y) / errors, axis=1))

    def find(
        self, wrong: FloatArray, right: FloatArray, extent: tuple[int, int], most: float
    ) -> FloatArray:
        """Return a patch of each of some images, (n, d), that are wrong beside others, (n, d).

        Parameters
        ----------
        extent : (int, int)
            Rows and columns of a patch.
        most : float
            What is left of a right answer, in its errors.

        Returns
        -------
        ndarray, shape (n, channels, rows, columns)
        """
        shown, ends = wrong, []
        for axis, size in enumerate(extent):
            # What ends there is no larger than that.
            end = self._end(shown, right, axis, size, most)
            shown = self._mixed(shown, right, axis, end - size, end)
            ends.append(end)
        images = shown.reshape(len(wrong), *self.image.shape)
        found = [
            x[:, row - extent[0] : row, column - extent[1] : column]
            for x, row, column in zip(images, *ends, strict=True)
        ]
        return np.array(found).reshape(len(wrong), -1, *extent)

    def _end(
        self, wrong: FloatArray, right: FloatArray, axis: int, least: int, most: float
    ) -> IntArray:
        """Rows, or columns, with which images stay wrong whatever comes after them, (n,)."""
        low, high = np.full((2, len(wrong)), [[least], [self.image.shape[1 + axis]]])
        while (low < high).any():
            middle = (low + high) // 2
            X = self.draws.rounded(self._mixed(wrong, right, axis, np.zeros_like(middle), middle))
            are_wrong = self._left(X, self.draws.oracle(X)) > most
            low, high = np.where(are_wrong, low, middle + 1), np.where(are_wrong, middle, high)
            low = np.minimum(low, high)
        return low

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
