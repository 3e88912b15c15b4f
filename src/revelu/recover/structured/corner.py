"""What a pixel at the corner of an image shows of the layers, before any of them is fitted."""

from dataclasses import dataclass

from revelu.network.layers import Convolution, Pooling
from revelu.types import FloatArray

__all__ = ["Corner", "Layers"]

Layers = tuple[Convolution, FloatArray | None, Pooling | None]
"""Filters, the slopes of leaky units or None of ReLUs, and what pools them."""


@dataclass(frozen=True)
class Corner:
    """Layers that a corner shows.

    Attributes
    ----------
    is_local : bool
        No neuron sees the corner and pixels far from it.
    layers : tuple of Layers
        The lowest ones; several where strides and windows are left open between some, none where
        no filters recur.
    is_stacked : bool
        Another hidden layer lies above them.
    n_answers : int or None
        What fitting them and the dense layer takes; None where it is not known before.
    """

    is_local: bool
    layers: tuple[Layers, ...] = ()
    is_stacked: bool = False
    n_answers: int | None = None
