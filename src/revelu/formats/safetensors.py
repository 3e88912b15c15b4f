"""Safetensors files of a network's state dict: numbers, and nothing that runs."""

from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError
from revelu.extras import import_extra
from revelu.formats.arrays import MAX_BYTES, Arrays, naming_damage, replace_file
from revelu.formats.names import from_state, to_state
from revelu.numerics.links import Link


def dump(path: Path, arrays: Arrays, dtype: np.dtype, head: Link) -> None:
    """Write a file."""
    named = to_state(path, arrays, dtype, head)
    said = {"format": "pt", "producer": "revelu"}
    if arrays.certified is not None:
        said["certified"] = "yes" if arrays.certified else "no"
    replace_file(path, library().save(named, metadata=said))


def load(path: Path) -> Arrays:
    """Read a file."""
    return from_state(path, read_state(path))


def read_state(path: Path) -> dict[str, np.ndarray]:
    """Read the tensors of a file by name.

    Raises
    ------
    FormatError
        If it is damaged or too large.
    """
    parser = library()
    with naming_damage(path, ".safetensors file"):
        if path.stat().st_size > MAX_BYTES:
            raise FormatError(f"{path}: over {MAX_BYTES:,} bytes")
        return dict(parser.load(path.read_bytes()))


def library() -> Any:
    """Return safetensors, which reading and writing need."""
    need = ".safetensors files need safetensors"
    return import_extra("safetensors.numpy", need, "safetensors")
