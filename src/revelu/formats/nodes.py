"""Layers as formats have them: a kind, arrays and attributes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Node"]


@dataclass(frozen=True)
class Node:
    """One layer, as the format has it.

    Attributes
    ----------
    kind : str
        Conv, Relu, LeakyRelu, PRelu, MaxPool, AveragePool, Flatten or Gemm.
    arrays : tuple of ndarray
        Weights and biases.
    attributes : mapping
    """

    kind: str
    arrays: tuple[np.ndarray, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
