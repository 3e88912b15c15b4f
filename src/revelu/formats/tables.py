"""Tables of numbers in files: all columns, or those that are named."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from revelu.errors import FormatError
from revelu.formats.columns import SUFFIXES, read_table_of
from revelu.types import FloatArray

__all__ = ["SUFFIXES", "read_table"]


def read_table(path: str | PathLike[str], columns: Sequence[str] = ()) -> FloatArray:
    """Read a table of numbers, shape (n, d).

    Parameters
    ----------
    path : path
        Of a ``.csv`` or ``.tsv`` whose first line may be a header, perhaps packed (``.gz``), of
        an ``.npy`` array, of an ``.npz`` archive with the array ``X``, or of a ``.parquet``
        file (extra ``parquet``).
    columns : sequence of str
        Which columns, in this order: by the names of a header, or by numbers from 0.

    Raises
    ------
    FormatError
        If there is no such file, it is none of these, or a number is missing or none.
    """
    table = read_table_of(Path(path))
    if len(set(columns)) < len(columns):
        raise FormatError(f"{table.path}: a column is named twice")
    chosen = [table.place(column) for column in columns] if columns else range(len(table.arrays))
    return table.numbers(list(chosen))
