"""What a line along a pixel shows, and the neurons' rows that it does."""

from dataclasses import dataclass

import numpy as np

from revelu.network.layers import Convolution, Pooling
from revelu.types import BoolArray, FloatArray

__all__ = ["Corner", "Layers", "Row", "Seen"]


@dataclass(frozen=True)
class Row:
    """A neuron as a pixel shows it, its sign open."""

    w: FloatArray
    """Shape (channels, height, width).  Of norm 1."""
    b: float
    pixel: int
    """Along which it was seen."""
    jump: FloatArray
    """Shape (k,).  Change of slope along that pixel, upwards."""
    point: FloatArray
    """Shape (d,).  The critical point."""


@dataclass(frozen=True)
class Seen:
    """What a line along a pixel shows."""

    pixel: int
    x0: FloatArray
    """Shape (d,).  Where the pixel is 0."""
    kinks: FloatArray
    """Shape (m,).  Values of the pixel."""
    jumps: FloatArray
    """Shape (m, k).  Changes of slope there."""
    slopes: tuple[FloatArray, FloatArray]
    """Shape (k,).  Far below and far above all kinks."""
    is_single: BoolArray
    """Shape (m,).  Proved to be one kink each."""

    @property
    def points(self) -> FloatArray:
        """The critical points, (m, d)."""
        return self.at(self.kinks)

    def at(self, t: FloatArray) -> FloatArray:
        """Return inputs of the line, (n,) -> (n, d)."""
        X = np.repeat(self.x0[None], len(t), axis=0)
        X[:, self.pixel] = t
        return X

    @property
    def room(self) -> FloatArray:
        """How far the nearest other kink is from each, at most 1, (m,)."""
        gaps = np.concatenate([[1.0], np.diff(self.kinks), [1.0]])[: len(self.kinks) + 1]
        return np.asarray(np.minimum(np.minimum(gaps[:-1], gaps[1:]), 1.0))

    @property
    def between(self) -> FloatArray:
        """Values of the pixel between kinks, and beyond the outer ones, (m + 1,)."""
        if not len(self.kinks):
            return np.zeros(1)
        middle = (self.kinks[:-1] + self.kinks[1:]) / 2
        return np.concatenate([[self.kinks[0] - 1.0], middle, [self.kinks[-1] + 1.0]])

    @property
    def slopes_between(self) -> FloatArray:
        """Slopes there, (m + 1, k)."""
        return np.asarray(
            self.slopes[0] + np.cumsum(np.vstack([0 * self.slopes[0], self.jumps]), 0)
        )


Layers = tuple[Convolution, FloatArray | None, Pooling | None]
"""Filters, the slopes of leaky units or None of ReLUs, and what pools them."""


@dataclass(frozen=True)
class Corner:
    """Layers that a corner shows."""

    is_local: bool
    """No neuron sees the corner and pixels far from it."""
    layers: tuple[Layers, ...] = ()
    """The lowest ones; several where strides and windows are left open between some, none where no
    filters recur."""
    is_stacked: bool = False
    """Another hidden layer lies above them."""
    n_answers: int | None = None
    """What fitting them and the dense layer takes; None where it is not known before."""
