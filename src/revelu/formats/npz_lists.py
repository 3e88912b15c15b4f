"""Weights and biases in a ``.npz`` archive of another program, named as a state dict has them.

Two ways are common: ``np.savez(path, W1, b1, W2, b2)``, whose arrays are ``arr_0``, ``arr_1``, ...;
and names with a number, ``W1``, ``b1``, ``W2``, ....  Matrices are written as ``(neurons, inputs)``
or the other way round: the biases, and the layers on both sides, tell which.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.types import FloatArray

_NUMBER = re.compile(r"\D*(\d+)\D*")


def as_state(path: Path, named: Mapping[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """Return ``0.weight (k, d)``, ``0.bias``, ``1.weight``, ...; None where names are no lists.

    Raises
    ------
    FormatError
        If matrices and biases do not make one chain, or could make two.
    """
    numbered = {name: _NUMBER.fullmatch(name) for name in named}
    if not named or not all(numbered.values()):
        return None
    order = sorted(named, key=lambda name: int(numbered[name][1]))  # type: ignore[index]
    weights = [named[name].astype(np.float64) for name in order if named[name].ndim == 2]
    biases = [named[name].astype(np.float64) for name in order if named[name].ndim == 1]
    if not weights or len(weights) != len(biases) or len(weights) + len(biases) != len(named):
        return None
    ways = [way for way in (weights, [W.T for W in weights]) if _chains(way, biases)]
    if len(ways) != 1:
        shapes = ", ".join(f"{W.shape[0]} x {W.shape[1]}" for W in weights)
        why = "fit no chain" if not ways else "are square: which axis is the neurons' is not said"
        raise FormatError(f"{path}: matrices of {shapes} {why}")
    pairs = enumerate(zip(ways[0], biases, strict=True))
    return {name: a for i, (W, b) in pairs for name, a in ((f"{i}.weight", W), (f"{i}.bias", b))}


def _chains(weights: list[FloatArray], biases: list[FloatArray]) -> bool:
    """Whether each matrix has a row for each bias, and reads what the one before gives."""
    fits = all(len(W) == len(b) for W, b in zip(weights, biases, strict=True))
    return fits and all(W.shape[1] == len(below) for below, W in pairwise(weights))
