"""Inputs in a ``.npy`` file."""

from os import PathLike
from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import check_is_file, naming_system_errors


def read_inputs(path: str | PathLike[str]) -> np.ndarray:
    """Read the array of an ``.npy`` file, without unpickling anything.

    Raises
    ------
    FormatError
        If there is no such file, or it is no such array.
    """
    path = Path(path)
    check_is_file(path)
    try:
        with naming_system_errors(path, "read"):
            # Mapped, a header that claims more than there is allocates nothing.
            return np.array(np.lib.format.open_memmap(path, mode="r"))
    except (ValueError, EOFError, OverflowError) as error:
        raise FormatError(f"{path}: not a readable .npy file: {error}") from None
