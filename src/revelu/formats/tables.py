"""Tables of numbers in ``.csv``, ``.npy``, ``.npz`` and ``.parquet`` files, column by column."""

import csv
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.extras import import_extra
from revelu.formats.arrays import check_is_file, naming_damage
from revelu.formats.inputs import read_inputs
from revelu.types import FloatArray

__all__ = ["SUFFIXES", "read_table"]

SUFFIXES = (".csv", ".npy", ".npz", ".parquet")


def read_table(path: str | PathLike[str], columns: Sequence[str] = ()) -> FloatArray:
    """Read a table of numbers, shape (n, d).

    Parameters
    ----------
    path : path
        Of a ``.csv`` whose first line may be a header, of an ``.npy`` array, of an ``.npz``
        archive with the array ``X``, or of a ``.parquet`` file (extra ``parquet``).
    columns : sequence of str
        Which columns, in this order: by the names of a header, or by numbers from 0.

    Raises
    ------
    FormatError
        If there is no such file, it is none of these, or a number is missing or none.
    """
    path = Path(path)
    check_is_file(path)
    read = {".csv": _csv, ".npy": _npy, ".npz": _npz, ".parquet": _parquet}.get(path.suffix.lower())
    if read is None:
        raise FormatError(f"{path}: a table ends in {', '.join(SUFFIXES)}")
    names, table = read(path)
    if not columns:
        return table
    if len(set(columns)) < len(columns):
        raise FormatError(f"{path}: a column is named twice")
    return table[:, [_place(path, names, column, table.shape[1]) for column in columns]]


def _place(path: Path, names: Sequence[str], column: str, d: int) -> int:
    """Which column is meant."""
    if column in names:
        return list(names).index(column)
    if column.isdecimal() and int(column) < d:
        return int(column)
    known = (
        ", ".join(names[:12]) + (", ..." if len(names) > 12 else "") if names else f"0 to {d - 1}"
    )
    raise FormatError(f"{path}: has no column {column!r}; it has {known}")


def _csv(path: Path) -> tuple[list[str], FloatArray]:
    """Rows of numbers; the first may be names."""
    with naming_damage(path, ".csv file"):
        text = path.read_text(encoding="utf-8-sig")
        is_excel = ";" not in text and "\t" not in text
        dialect = "excel" if is_excel else csv.Sniffer().sniff(text[:4096], ",;\t")
        rows = [row for row in csv.reader(text.splitlines(), dialect) if any(map(str.strip, row))]
    if not rows:
        raise FormatError(f"{path}: is empty")
    names = [] if all(_is_number(cell) for cell in rows[0]) else [cell.strip() for cell in rows[0]]
    body, first = rows[1 if names else 0 :], 2 if names else 1
    width = len(rows[0])
    table = np.empty((len(body), width))
    for i, row in enumerate(body):
        if len(row) != width:
            raise FormatError(f"{path}: line {i + first} has {len(row)} columns, not {width}")
        for j, cell in enumerate(row):
            if not _is_number(cell):
                column = names[j] if names else str(j)
                what = "is empty" if not cell.strip() else f"holds {cell.strip()[:24]!r}"
                raise FormatError(f"{path}: column {column!r} {what} in line {i + first}")
            table[i, j] = float(cell)
    return names, table


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _npy(path: Path) -> tuple[list[str], FloatArray]:
    return [], _numbers(path, read_inputs(path))


def _npz(path: Path) -> tuple[list[str], FloatArray]:
    with naming_damage(path, ".npz archive"), np.load(path, allow_pickle=False) as archive:
        if "X" not in archive:
            raise FormatError(f"{path}: has no array X; it has {', '.join(archive) or 'none'}")
        return [], _numbers(path, archive["X"])


def _parquet(path: Path) -> tuple[list[str], FloatArray]:
    parquet = import_extra("pyarrow.parquet", ".parquet files need pyarrow", "parquet")
    with naming_damage(path, ".parquet file"):
        table = parquet.read_table(path)
        names = [str(name) for name in table.column_names]
        columns = [column.to_numpy() for column in table.columns]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "biuf":
            raise FormatError(f"{path}: column {name!r} holds no numbers")
    return names, np.column_stack(columns).astype(np.float64)


def _numbers(path: Path, array: np.ndarray) -> FloatArray:
    if array.dtype.kind not in "biuf" or array.ndim != 2:
        raise FormatError(f"{path}: holds no table of numbers, but shape {array.shape}")
    return array.astype(np.float64)
