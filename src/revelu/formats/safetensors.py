"""Safetensors files of a network's state dict: numbers, and nothing that runs."""

from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError, MissingExtraError
from revelu.formats.arrays import Arrays, naming_system_errors, replace_file
from revelu.formats.state import from_state, to_state

# A file is read whole.
MAX_BYTES = 4 * 2**30


def dump(path: Path, arrays: Arrays, dtype: np.dtype, softmax: bool) -> None:
    """Write a file.

    Raises
    ------
    FormatError
        If it cannot be written, or a softmax is asked for.
    MissingExtraError
        If safetensors is not installed.
    """
    named = to_state(path, arrays, dtype, softmax)
    replace_file(path, library().save(named, metadata={"format": "pt", "producer": "revelu"}))


def load(path: Path) -> Arrays:
    """Read a file.

    Raises
    ------
    FormatError
        If it is damaged, too large, of a later schema, or not a network that revelu wrote.
    MissingExtraError
        If safetensors is not installed.
    """
    parser = library()
    with naming_system_errors(path, "read"):
        if path.stat().st_size > MAX_BYTES:
            raise FormatError(f"{path}: over {MAX_BYTES:,} bytes")
        content = path.read_bytes()
    try:
        named = parser.load(content)
    # The parser, and NumPy on shapes and types of a damaged header, raise their own kinds.
    except Exception as error:  # noqa: BLE001
        raise FormatError(f"{path}: not a readable .safetensors file: {error}") from None
    return from_state(path, named)


def library() -> Any:
    """Return safetensors, which reading and writing need.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        import safetensors.numpy as found  # noqa: PLC0415 - optional
    except ImportError:
        hint = 'pip install ".[safetensors]"'
        raise MissingExtraError(f".safetensors files need safetensors: {hint}") from None
    return found
