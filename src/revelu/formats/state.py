"""State dicts of ``ReluNetwork`` in torch: ``layers.0.weight (k, d)``, ``layers.0.bias (k,)``, ...

Optional are ``skip.weight`` and ``skip.bias``.  ``schema`` tells them from the state dicts of
other modules, which do not say what is between their layers.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import Arrays
from revelu.formats.names import SCHEMA, Names, check_schema

_NAMES = Names("layers.{}.weight", "layers.{}.bias", ("skip.weight", "skip.bias"))


def to_state(path: Path, arrays: Arrays, dtype: np.dtype, softmax: bool) -> dict[str, np.ndarray]:
    """Name the arrays of a network."""
    named = _NAMES.to_named(path, arrays, dtype, softmax)
    return {"schema": np.array(SCHEMA, dtype=np.int64), **named}


def from_state(path: Path, named: Mapping[str, np.ndarray]) -> Arrays:
    """Return the arrays of a network from a state dict.

    Raises
    ------
    FormatError
        If it is of another module, of a later schema, or lacks an array.
    """
    if "schema" not in named:
        raise FormatError(
            f"{path}: not a network that revelu wrote: without a schema nothing says which "
            "activations are between the layers"
        )
    check_schema(path, named["schema"])
    rest = {name: array for name, array in named.items() if name != "schema"}
    arrays = _NAMES.from_named(path, rest)
    for name, array in rest.items():
        if array.dtype not in (np.float64, np.float32):
            raise FormatError(f"{path}: {name} holds {array.dtype}, not float64 or float32")
    return arrays
