"""Pixels of an image, as the columns of rows of numbers that they are."""

from dataclasses import dataclass

import numpy as np

from revelu.network.layers import ImageShape
from revelu.types import FloatArray, IntArray

__all__ = ["Image"]


@dataclass(frozen=True)
class Image:
    """The grid that inputs lie on.

    Attributes
    ----------
    shape : (int, int, int)
        Channels, height and width; a time series has height 1.
    """

    shape: ImageShape

    @property
    def size(self) -> int:
        """Number of inputs."""
        return int(np.prod(self.shape))

    def pixel(self, channel: int, row: int, column: int) -> int:
        """Return the input that is a pixel."""
        return int(np.ravel_multi_index((channel, row, column), self.shape))

    def place(self, pixel: int) -> tuple[int, int, int]:
        """Return channel, row and column of a pixel."""
        channel, row, column = np.unravel_index(pixel, self.shape)
        return int(channel), int(row), int(column)

    def pixels(self, rows: tuple[int, int], columns: tuple[int, int]) -> IntArray:
        """Return the inputs of a box, of all channels."""
        index = np.arange(self.size, dtype=np.intp).reshape(self.shape)
        return np.asarray(index[:, slice(*rows), slice(*columns)].ravel())

    def around(self, pixel: int, radius: int) -> IntArray:
        """Return the inputs of a box around a pixel, some rows and columns to each side."""
        _, row, column = self.place(pixel)
        rows, columns = ((max(at - radius, 0), at + radius + 1) for at in (row, column))
        return self.pixels(rows, columns)

    def beyond(self, axis: int, place: int, side: int, distance: int) -> IntArray:
        """Return what lies farther than a number of rows, or columns, of a place on one side."""
        whole = [(0, self.shape[1]), (0, self.shape[2])]
        size = self.shape[1 + axis]
        whole[axis] = (place + distance + 1, size) if side > 0 else (0, max(place - distance, 0))
        return self.pixels(whole[0], whole[1])

    def shifted(self, kernel: FloatArray, row: int, column: int) -> FloatArray:
        """Return a kernel's row where its first entry reads a pixel, inside the image or not.

        Parameters
        ----------
        kernel : ndarray, shape (channels, rows, columns)

        Returns
        -------
        ndarray, shape (size,)
        """
        found = np.zeros(self.shape)
        _, height, width = self.shape
        kr, kc = kernel.shape[1:]
        top, left = max(row, 0), max(column, 0)
        bottom, right = min(row + kr, height), min(column + kc, width)
        if top < bottom and left < right:
            part = kernel[:, top - row : bottom - row, left - column : right - column]
            found[:, top:bottom, left:right] = part
        return found.ravel()
