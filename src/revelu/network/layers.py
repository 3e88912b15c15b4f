"""Layers as objects: convolution, ReLU and its leaky kin, pooling, dense.

Images are rows of ``channels * height * width`` numbers, channel by channel and row by row, as
ONNX and torch flatten them; a time series is an image of height 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from revelu.errors import InputError
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["Convolution", "Dense", "ImageShape", "Layer", "Pooling", "Prelu", "Relu"]

ImageShape = tuple[int, int, int]
"""Channels, height and width."""


@dataclass(frozen=True)
class Dense:
    """``W x + b``.

    Attributes
    ----------
    W : ndarray, shape (k, d)
    b : ndarray, shape (k,)
    """

    W: FloatArray
    b: FloatArray

    @property
    def size_in(self) -> int:
        """Numbers read."""
        return int(self.W.shape[1])

    @property
    def size_out(self) -> int:
        """Numbers given."""
        return len(self.b)

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """Weights and biases."""
        return self.W, self.b

    def __call__(self, H: FloatArray) -> FloatArray:
        """Evaluate a batch, (n, d) -> (n, k)."""
        return np.asarray(H @ self.W.T + self.b)

    def flip(self, rows: BoolArray) -> "Dense":
        """Return the layer with some rows negated, (k,)."""
        signs = np.where(rows, -1.0, 1.0)
        return Dense(self.W * signs[:, None], self.b * signs)

    def to_dense(self) -> tuple[FloatArray, FloatArray]:
        """Return weights and biases."""
        return self.W, self.b


@dataclass(frozen=True)
class Relu:
    """``max(x, 0)`` of each number."""

    arrays: tuple[FloatArray, ...] = field(default=(), init=False)

    def __call__(self, H: FloatArray) -> FloatArray:
        """Evaluate a batch, (n, d) -> (n, d)."""
        return np.maximum(H, 0.0)

    def describe(self) -> str:
        """Return its name."""
        return "ReLU"


@dataclass(frozen=True)
class Prelu:
    """``max(z, 0) + s min(z, 0)`` of each number, with a slope ``s`` a neuron.

    LeakyReLU has the same slope for all, the absolute value is a slope of -1.

    Attributes
    ----------
    slopes : ndarray, shape (k,)
    """

    slopes: FloatArray

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """The slopes."""
        return (self.slopes,)

    def __call__(self, H: FloatArray) -> FloatArray:
        """Evaluate a batch, (n, k) -> (n, k)."""
        return np.asarray(np.where(H > 0.0, H, self.slopes * H))

    def inverse(self) -> "Prelu":
        """Return the units that undo these, whose slopes have to be positive."""
        return Prelu(1.0 / self.slopes)

    def describe(self, rtol: float = 1e-6) -> str:
        """Return its name, ``LeakyReLU(0.01)`` where slopes agree up to ``rtol``, or ``PReLU``."""
        slopes, typical = self.slopes, float(np.median(self.slopes)) if len(self.slopes) else 0.0
        if not len(slopes) or np.abs(slopes - typical).max() > rtol * max(abs(typical), rtol):
            return "PReLU"
        if abs(typical + 1.0) <= rtol:
            return "absolute value"
        return f"LeakyReLU({typical:.4g})"


@dataclass(frozen=True)
class Convolution:
    """Filters that read the same window of an image at every place.

    Attributes
    ----------
    kernels : ndarray, shape (filters, channels, rows, columns)
    biases : ndarray, shape (filters,)
    shape : (int, int, int)
        Channels, height and width of the image.
    strides, dilations : (int, int)
        Steps from place to place, and from entry to entry of a kernel.
    pads : (int, int, int, int)
        Zeros around the image: above, left, below, right.
    """

    kernels: FloatArray
    biases: FloatArray
    shape: ImageShape
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        if self.kernels.ndim != 4 or self.kernels.shape[1] != self.shape[0]:
            raise InputError(
                f"kernels of shape {self.kernels.shape} do not read {self.shape[0]} channels"
            )
        if min(self.places) < 1:
            raise InputError(f"a kernel is larger than an image of {self.shape[1:]}, with its pads")

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns of the image that a kernel spans."""
        (kr, kc), (dr, dc) = self.kernels.shape[2:], self.dilations
        return (kr - 1) * dr + 1, (kc - 1) * dc + 1

    @property
    def places(self) -> tuple[int, int]:
        """Rows and columns of places."""
        (_, height, width), (top, left, bottom, right) = self.shape, self.pads
        (er, ec), (sr, sc) = self.extent, self.strides
        return (height + top + bottom - er) // sr + 1, (width + left + right - ec) // sc + 1

    @property
    def shape_out(self) -> ImageShape:
        """Filters, and rows and columns of places."""
        return (len(self.biases), *self.places)

    @property
    def size_in(self) -> int:
        """Numbers read."""
        return int(np.prod(self.shape))

    @property
    def size_out(self) -> int:
        """Numbers given."""
        return int(np.prod(self.shape_out))

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """Kernels and biases."""
        return self.kernels, self.biases

    @cached_property
    def reads(self) -> IntArray:
        """Which input each entry of a kernel reads at each place, (places, entries).

        What lies outside the image is input ``size_in``, which is 0.
        """
        (channels, height, width), (top, left, _, _) = self.shape, self.pads
        (nr, nc), (kr, kc) = self.places, self.kernels.shape[2:]
        rows = np.arange(nr)[:, None] * self.strides[0] - top + np.arange(kr) * self.dilations[0]
        columns = np.arange(nc)[:, None] * self.strides[1] - left
        columns = columns + np.arange(kc) * self.dilations[1]
        r, c = rows[:, None, None, :, None], columns[None, :, None, None, :]
        index = (np.arange(channels)[:, None, None] * height + r) * width + c
        inside = (r >= 0) & (r < height) & (c >= 0) & (c < width)
        index = np.where(inside, index, self.size_in)
        return np.asarray(index.reshape(nr * nc, channels * kr * kc))

    def patches(self, X: FloatArray) -> FloatArray:
        """Return what each place reads, (n, places, entries)."""
        padded = np.concatenate([X, np.zeros((len(X), 1))], axis=1)
        return np.asarray(padded[:, self.reads])

    def __call__(self, H: FloatArray, most_numbers: int = 2**17) -> FloatArray:
        """Evaluate a batch, (n, size_in) -> (n, size_out).

        Parameters
        ----------
        most_numbers : int
            Of patches that are in memory at once: what a processor keeps near.
        """
        flat = self.kernels.reshape(len(self.kernels), -1)
        n_rows = max(1, most_numbers // max(self.reads.size, 1))
        found = np.empty((len(H), len(flat), len(self.reads)))
        for i in range(0, len(H), n_rows):
            part = found[i : i + n_rows]
            np.matmul(flat, self._by_entry(H[i : i + n_rows]), out=part)
            part += self.biases[:, None]
        return found.reshape(len(H), self.size_out)

    def _by_entry(self, H: FloatArray) -> FloatArray:
        """What each entry of a kernel reads, (n, entries, places)."""
        (top, left, bottom, right), (sr, sc), (dr, dc) = self.pads, self.strides, self.dilations
        images = np.pad(
            H.reshape(len(H), *self.shape), ((0, 0), (0, 0), (top, bottom), (left, right))
        )
        windows = sliding_window_view(images, self.extent, axis=(2, 3))
        read = windows[:, :, ::sr, ::sc, ::dr, ::dc].transpose(0, 1, 4, 5, 2, 3)
        return np.asarray(read.reshape(len(H), -1, len(self.reads)))

    def flip(self, filters: BoolArray) -> "Convolution":
        """Return the layer with some filters negated, (filters,)."""
        signs = np.where(filters, -1.0, 1.0)
        return self.with_filters(self.kernels * signs[:, None, None, None], self.biases * signs)

    def with_filters(self, kernels: FloatArray, biases: FloatArray) -> "Convolution":
        """Return the layer with other filters, at the same places."""
        return Convolution(kernels, biases, self.shape, self.strides, self.pads, self.dilations)

    def to_dense(self) -> tuple[FloatArray, FloatArray]:
        """Return weights ``(size_out, size_in)`` and biases: a row for every place of a filter."""
        n, entries = self.reads.shape
        W = np.zeros((len(self.kernels), n, self.size_in + 1))
        flat = self.kernels.reshape(len(self.kernels), 1, entries)
        # No two entries of a kernel read one input of the image.
        W[:, np.arange(n)[:, None], self.reads] = flat
        return W[..., :-1].reshape(-1, self.size_in), np.repeat(self.biases, n)


@dataclass(frozen=True)
class Pooling:
    """The largest, or the mean, of every window of an image, channel by channel.

    Attributes
    ----------
    kind : {"max", "average"}
    shape : (int, int, int)
        Channels, height and width of the image.
    size, strides : (int, int)
        Of a window, and from window to window.
    """

    kind: str
    shape: ImageShape
    size: tuple[int, int]
    strides: tuple[int, int]

    @property
    def windows(self) -> tuple[int, int]:
        """Rows and columns of windows."""
        (_, height, width), (kr, kc), (sr, sc) = self.shape, self.size, self.strides
        return (height - kr) // sr + 1, (width - kc) // sc + 1

    @property
    def shape_out(self) -> ImageShape:
        """Channels, and rows and columns of windows."""
        return (self.shape[0], *self.windows)

    @property
    def size_in(self) -> int:
        """Numbers read."""
        return int(np.prod(self.shape))

    @property
    def size_out(self) -> int:
        """Numbers given."""
        return int(np.prod(self.shape_out))

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """Nothing is learnt."""
        return ()

    @cached_property
    def reads(self) -> IntArray:
        """Which place each entry of each window is, (windows, entries)."""
        places = np.arange(self.shape[1] * self.shape[2], dtype=np.intp)
        parts = self._parts(places.reshape(1, 1, *self.shape[1:]))
        return np.stack([part.ravel() for part in parts], axis=1)

    def _parts(self, images: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield one entry of all windows after another, (n, channels, rows, columns) each."""
        (nr, nc), (sr, sc) = self.windows, self.strides
        for i in range(self.size[0]):
            for j in range(self.size[1]):
                yield images[:, :, i : i + (nr - 1) * sr + 1 : sr, j : j + (nc - 1) * sc + 1 : sc]

    def __call__(self, H: FloatArray) -> FloatArray:
        """Evaluate a batch, (n, size_in) -> (n, size_out)."""
        first, *others = self._parts(H.reshape(len(H), *self.shape))
        found = first.copy()
        for part in others:
            if self.kind == "max":
                np.maximum(found, part, out=found)
            else:
                found += part
        found = found if self.kind == "max" else found / (1 + len(others))
        return np.asarray(found.reshape(len(H), self.size_out))

    def read_by(self, A: FloatArray, H: FloatArray) -> FloatArray:
        """How what reads windows reads each place of one channel, (n, places, k).

        Parameters
        ----------
        A : ndarray, shape (windows, k)
        H : ndarray, shape (n, places)
            Of which the largest of a window is read.
        """
        read = np.zeros((*H.shape, A.shape[1]))
        if self.kind == "average":
            for window, places in enumerate(self.reads):
                read[:, places] += A[window] / len(places)
            return read
        largest = H[:, self.reads].argmax(axis=2)  # (n, windows)
        places = self.reads[np.arange(len(self.reads)), largest]
        np.add.at(read, (np.arange(len(H))[:, None], places), A)
        return read

    def to_dense(self) -> tuple[FloatArray, FloatArray]:
        """Return the matrix of an average, (size_out, size_in), and biases of 0.

        Raises
        ------
        InputError
            Of a largest, which is no affine map.
        """
        if self.kind == "max":
            raise InputError("the largest of a window is no affine map")
        windows, entries = self.reads.shape
        one = np.zeros((windows, self.size_in // self.shape[0]))
        one[np.arange(windows)[:, None], self.reads] = 1.0 / entries
        W = np.kron(np.eye(self.shape[0]), one)
        return np.asarray(W, dtype=np.float64), np.zeros(self.size_out)


Layer = Dense | Relu | Prelu | Convolution | Pooling
