"""Stride, padding, dilation and pooling, each proposed and tested at places never seen before."""

from dataclasses import dataclass

import numpy as np

from revelu.network.layers import Convolution, Pooling
from revelu.recover.structured.places import Origin, Places
from revelu.types import BoolArray, FloatArray

__all__ = ["Geometry"]


@dataclass(frozen=True)
class Geometry:
    """How the layers around a set of filters are found."""

    most_filters: int = 3
    """Filters that are looked for at a place before none is said to be there."""
    most_places: int = 9
    """Along an axis, of which columns are compared."""
    same: float = 0.1
    """Share by which the columns of one window may differ."""

    def find(
        self, places: Places, origin: Origin, ring: int
    ) -> tuple[Convolution, Pooling | None] | None:
        """Find the layers of filters that are known at one place; None where they do not recur.

        Parameters
        ----------
        origin : (int, int)
            What the first entry of each kernel reads at that place.
        ring : int
            How far windows may reach, in places.
        """
        conv = self.convolution(places, origin, ring)
        return None if conv is None else (conv, self._pooling(places, conv, ring))

    def convolution(self, places: Places, origin: Origin, ring: int) -> Convolution | None:
        """As :meth:`find`, whatever pools the filters."""
        strides = []
        for axis in (0, 1):
            stride = self._stride(places, origin, axis, ring)
            if stride is None:
                return None
            strides.append(stride)
        return self._layer(places, origin, (strides[0], strides[1]), ring)

    def _stride(self, places: Places, origin: Origin, axis: int, ring: int) -> int | None:
        """Steps to the nearest place along an axis; its size where there is one place only."""
        size, extent = places.image.shape[1 + axis], places.kernels.shape[2 + axis]
        if size == extent:
            return 1
        for stride in range(1, min(2 * extent, size - extent) + 1):
            moved = _moved(origin, axis, stride)
            steps = (stride, stride)
            if self._is_there(places, moved, steps, ring):
                return stride
        return None

    def _is_there(self, places: Places, origin: Origin, steps: tuple[int, int], ring: int) -> bool:
        """Whether any of a few filters is at a place."""
        n = min(self.most_filters, len(places.kernels))
        return any(places.columns(f, [origin], steps, ring=ring)[1][0] for f in range(n))

    def _layer(
        self, places: Places, origin: Origin, strides: tuple[int, int], ring: int
    ) -> Convolution:
        """Follow places outwards to where there are none, and say by which pads that comes."""
        firsts, befores, afters, extents = [], [], [], places.kernels.shape[2:]
        for axis in (0, 1):
            size, extent, stride = places.image.shape[1 + axis], extents[axis], strides[axis]
            first = origin[axis] % stride if size > extent else 0
            pads = 0
            while pads < extent and self._is_there(
                places, _at(origin, axis, first - pads - stride), strides, ring
            ):
                pads += stride
            last = first + (size - extent - first) // stride * stride
            beyond = last
            while beyond + stride < size and self._is_there(
                places, _at(origin, axis, beyond + stride), strides, ring
            ):
                beyond += stride
            # Without pads a kernel that begins later has zeros before its first entry.
            firsts.append(first if not pads else 0)
            befores.append(max(pads - first, 0) if pads else 0)
            afters.append(max(beyond + extent - size, 0))
        kernels = np.pad(places.kernels, ((0, 0), (0, 0), (firsts[0], 0), (firsts[1], 0)))
        kernels, dilations = _undilated(kernels)
        pads4 = (befores[0], befores[1], afters[0], afters[1])
        return Convolution(kernels, places.biases, places.image.shape, strides, pads4, dilations)

    def _pooling(self, places: Places, conv: Convolution, ring: int) -> Pooling | None:
        """Find windows by equal columns, and whether another place of one takes its turn."""
        n = min(self.most_filters, len(places.kernels))
        for f in range(n):
            sizes = [self._window(places, conv, f, axis, ring) for axis in (0, 1)]
            if None in sizes:
                continue
            size = (int(sizes[0] or 1), int(sizes[1] or 1))
            if size == (1, 1):
                return None
            axis = int(size[1] > 1)
            on = (0, 1) if axis else (1, 0)
            inner = _inner(conv, size)
            _, there = places.columns(f, [inner], conv.strides, ring=ring, on=on)
            kind = "average" if there[0] else "max"
            return Pooling(kind, conv.shape_out, size, size)
        return None

    def _window(
        self, places: Places, conv: Convolution, f: int, axis: int, ring: int
    ) -> int | None:
        """Return how many places along an axis share the first one's column."""
        n_places = conv.places[axis]
        n = min(n_places, self.most_places)
        across = conv.places[1 - axis] // 2 * conv.strides[1 - axis] - conv.pads[1 - axis]
        start, stride = -conv.pads[axis], conv.strides[axis]

        def at(i: int) -> Origin:
            along = start + i * stride
            return (along, across) if axis == 0 else (across, along)

        columns, there = places.columns(f, [at(i) for i in range(n)], conv.strides, ring=ring)
        if not there[0]:
            return None
        same = self._alike(columns, columns[0]) & there
        size = int(np.argmin(same)) if not same.all() else n
        if size == n < n_places:
            last, there = places.columns(f, [at(n_places - 1)], conv.strides, ring=ring)
            is_whole = bool(there[0]) and bool(self._alike(last, columns[0])[0])
            return n_places if is_whole else None
        if size > 1 and size < n:
            # The next window has a column of its own.
            following = self._alike(columns[size:], columns[size])
            if not following[: min(size, n - size)].all():
                return None
        return size

    def _alike(self, columns: FloatArray, one: FloatArray) -> BoolArray:
        apart = np.linalg.norm(columns - one, axis=1)
        return np.asarray(apart <= self.same * np.linalg.norm(one))


def _moved(origin: Origin, axis: int, by: int) -> Origin:
    return (origin[0] + by, origin[1]) if axis == 0 else (origin[0], origin[1] + by)


def _at(origin: Origin, axis: int, where: int) -> Origin:
    return (where, origin[1]) if axis == 0 else (origin[0], where)


def _inner(conv: Convolution, size: tuple[int, int]) -> Origin:
    """What the first place of a window reads that lies inside the image."""
    found = []
    for pad, entries, stride in zip(conv.pads[:2], size, conv.strides, strict=True):
        step = entries * stride
        found.append(min(-(-pad // step), 1) * step - pad)
    return found[0], found[1]


def _undilated(kernels: FloatArray) -> tuple[FloatArray, tuple[int, int]]:
    """Leave out rows and columns of zeros that recur between those that are not."""
    size = np.abs(kernels).max(axis=(0, 1))
    steps = []
    for axis in (0, 1):
        used = np.flatnonzero(size.any(axis=1 - axis))
        # A dilated kernel begins with an entry.
        step = int(np.gcd.reduce(used)) if len(used) > 1 else 1
        steps.append(max(step, 1))
    return kernels[:, :, :: steps[0], :: steps[1]], (steps[0], steps[1])
