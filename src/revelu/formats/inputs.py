"""Inputs in a ``.npy`` file."""

from os import PathLike
from pathlib import Path

import numpy as np

from revelu.formats.arrays import check_is_file, naming_damage


def read_inputs(path: str | PathLike[str]) -> np.ndarray:
    """Read the array of an ``.npy`` file, without unpickling anything.

    Raises
    ------
    FormatError
        If there is no such file, or it is no such array.
    """
    path = Path(path)
    check_is_file(path)
    with naming_damage(path, ".npy file"):
        # A memory map allocates nothing for a header that claims more than the file holds.
        return np.array(np.lib.format.open_memmap(path, mode="r"))
