"""Tables of numbers in files: all columns, or those that are named."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from revelu.errors import FormatError
from revelu.formats.columns import SUFFIXES, read_table_of
from revelu.types import FloatArray

__all__ = ["SUFFIXES", "read_named_table", "read_rows", "read_table"]


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
    return read_named_table(path, columns)[1]


def read_named_table(
    path: str | PathLike[str], columns: Sequence[str] = ()
) -> tuple[list[str], FloatArray]:
    """Read a table of numbers, and what its columns are called, or their numbers.

    Parameters and errors are those of :func:`read_table`.
    """
    table = read_table_of(Path(path))
    if len(set(columns)) < len(columns):
        raise FormatError(f"{table.path}: a column is named twice")
    chosen = [table.place(column) for column in columns] or list(range(len(table.arrays)))
    return [table.name(place) for place in chosen], table.numbers(chosen)


def read_rows(
    path: str | PathLike[str], columns: Sequence[str] = ()
) -> tuple[list[str], FloatArray]:
    """Read the columns that are inputs, of a table that may have them alone.

    Parameters and errors are those of :func:`read_named_table`.
    """
    table = read_table_of(Path(path))
    has_others = len(table.arrays) != len(columns) or set(columns) <= set(table.names)
    return read_named_table(path, columns if has_others else ())
