"""Known layers, and what they tell of the layers above them."""

from dataclasses import dataclass

import numpy as np

from revelu.network.layers import Convolution, Layer, Pooling, Relu
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["KnownFilters"]


@dataclass(frozen=True)
class KnownFilters:
    """A convolution, ReLU and perhaps the largest of windows, whose numbers are known."""

    conv: Convolution
    pool: Pooling | None

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All of them, the lowest first."""
        return (self.conv, Relu(), *(() if self.pool is None else (self.pool,)))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, rows and columns of the features."""
        return self.conv.shape_out if self.pool is None else self.pool.shape_out

    def features(self, X: FloatArray) -> FloatArray:
        """Return what the layer above reads, (n, channels, rows, columns)."""
        H = np.maximum(self.conv(X), 0.0)
        H = H if self.pool is None else self.pool(H)
        return np.asarray(H.reshape(len(X), *self.shape))

    def sums(self, X: FloatArray) -> FloatArray:
        """Return the filters' sums, window by window, (n, windows, places of one)."""
        sums = self.conv(X)
        if self.pool is None:
            return sums[:, :, None]
        of_filters = sums.reshape(len(X), len(self.conv.biases), -1)
        read = of_filters[:, :, self.pool.reads]
        return np.asarray(read.reshape(len(X), -1, read.shape[3]))

    def slopes(self, X: FloatArray, pixels: IntArray) -> FloatArray:
        """Slopes of the features along a pixel of each input.

        Parameters
        ----------
        X : ndarray, shape (n, d)
        pixels : ndarray of int, shape (n,)

        Returns
        -------
        ndarray, shape (n, channels, rows, columns)
        """
        moves = np.zeros_like(X)
        moves[np.arange(len(X)), pixels] = 1.0
        moved = self.sums(moves) - self.sums(np.zeros((1, X.shape[1])))
        sums = self.sums(X)
        largest = sums.argmax(axis=2)[:, :, None]
        is_on = np.take_along_axis(sums, largest, axis=2) > 0.0
        return np.asarray(
            (np.take_along_axis(moved, largest, axis=2) * is_on).reshape(len(X), *self.shape)
        )

    def pixels(self, size: tuple[int, int]) -> IntArray:
        """Return the pixels that the first rows and columns of the features read."""
        rows, columns = size
        windows = np.arange(self.shape[1] * self.shape[2]).reshape(self.shape[1:])
        windows = windows[:rows, :columns].ravel()
        places = windows if self.pool is None else self.pool.reads[windows]
        read = np.unique(self.conv.reads[places])
        # Beyond the last pixel is what pads read.
        return np.asarray(read[read < self.conv.size_in])

    def explains(self, X: FloatArray, rtol: float) -> BoolArray:
        """Whether some sum is 0 at an input, or the two largest of a window are equal, (n,).

        Parameters
        ----------
        rtol : float
            Relative to the input: far along a line critical points are known to fewer digits.
        """
        atol = rtol * (1.0 + np.abs(X).max(axis=1) ** 2)
        sums = self.sums(X)
        largest = np.sort(sums, axis=2)[:, :, ::-1]
        apart = np.abs(largest[:, :, 0])
        if sums.shape[2] > 1:
            # Under 0 nothing bends where two of a window are equal.
            ties = np.where(largest[:, :, 0] > 0.0, largest[:, :, 0] - largest[:, :, 1], np.inf)
            apart = np.minimum(apart, ties)
        return np.asarray((apart <= atol[:, None]).any(axis=1))

    def refined(self, X: FloatArray, rtol: float, least: float = 1.4) -> "KnownFilters":
        """Fit the filters to critical points, by ``w x + b = 0`` or ``w (x - x') = 0`` at each.

        Parameters
        ----------
        X : ndarray, shape (n, d)
        rtol : float
            As of :meth:`explains`.
        least : float
            Equations for each number of a filter; others stay as they are.
        """
        kernels, biases = self.conv.kernels.copy(), self.conv.biases.copy()
        equations = self._equations(X, rtol)
        for f, rows in enumerate(equations):
            if len(rows) < least * rows.shape[1]:
                continue
            before = np.append(kernels[f].ravel(), biases[f])
            size = np.linalg.norm(before)
            # The farther out, the less is a critical point known.
            found = np.linalg.svd(rows / (rows**2).sum(axis=1)[:, None])[2][-1]
            found *= np.sign(found @ before) * size
            if np.abs(found - before).max() <= rtol * size:
                kernels[f], biases[f] = found[:-1].reshape(kernels[f].shape), found[-1]
        return KnownFilters(self.conv.with_filters(kernels, biases), self.pool)

    def _equations(self, X: FloatArray, rtol: float) -> list[FloatArray]:
        """What each filter's numbers, its bias last, have to be orthogonal to."""
        atol = rtol * (1.0 + np.abs(X).max(axis=1, initial=0.0))
        patches = self.conv.patches(X)
        patches = np.concatenate([patches, np.ones((*patches.shape[:2], 1))], axis=2)
        sums = self.conv(X).reshape(len(X), len(self.conv.biases), -1)
        found = []
        for f in range(sums.shape[1]):
            at, place = np.nonzero(np.abs(sums[:, f]) <= atol[:, None])
            rows = [patches[at, place]]
            if self.pool is not None:
                read = sums[:, f][:, self.pool.reads]
                order = np.argsort(-read, axis=2)
                one, other = (
                    np.take_along_axis(np.broadcast_to(self.pool.reads, read.shape), o, axis=2)
                    for o in (order[:, :, :1], order[:, :, 1:2])
                )
                n = np.arange(len(X))[:, None]
                apart = sums[n, f, one[:, :, 0]] - sums[n, f, other[:, :, 0]]
                at, window = np.nonzero((apart <= atol[:, None]) & (read.max(axis=2) > 0.0))
                rows.append(patches[at, one[at, window, 0]] - patches[at, other[at, window, 0]])
            found.append(np.concatenate(rows))
        return found
