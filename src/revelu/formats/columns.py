"""Tables as they lie in files, column by column: numbers, and words where those are not numbers.

A ``.csv`` or ``.tsv``, perhaps packed (``.gz``), may begin with a header.  Archives and arrays
hold numbers alone, by name or by number.
"""

import csv
import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError
from revelu.extras import import_extra
from revelu.formats.arrays import MAX_BYTES, check_is_file, naming_damage
from revelu.formats.inputs import read_inputs
from revelu.types import FloatArray

SUFFIXES = (".csv", ".tsv", ".npy", ".npz", ".parquet")
PACKED = ".gz"


@dataclass(frozen=True)
class Columns:
    """A table.

    Attributes
    ----------
    path : pathlib.Path
        Begins every message.
    names : list of str
        Of the columns; empty where they have numbers alone, from 0.
    arrays : list of ndarray, shape (n,)
        Floats, or strings where some cell is none.
    first_line : int
        Line of the first row, where lines are what people count; else 0.
    """

    path: Path
    names: list[str]
    arrays: list[np.ndarray]
    first_line: int = 0

    def place(self, column: str) -> int:
        """Return where a column is, by its name or its number.

        Raises
        ------
        FormatError
            If there is none; the message says which there are.
        """
        if column in self.names:
            return self.names.index(column)
        if column.isdecimal() and int(column) < len(self.arrays):
            return int(column)
        raise FormatError(f"{self.path}: has no column {column!r}; it has {self.listed()}")

    def listed(self, most: int = 12) -> str:
        """Return the first columns in words."""
        if not self.names:
            return f"0 to {len(self.arrays) - 1}"
        return ", ".join(self.names[:most]) + (", ..." if len(self.names) > most else "")

    def name(self, place: int) -> str:
        """Return what a column is called."""
        return self.names[place] if self.names else f"{place}"

    def numbers(self, places: Sequence[int]) -> FloatArray:
        """Return columns of numbers, shape (n, len(places)).

        Raises
        ------
        FormatError
            If a cell is none; the message names it.
        """
        for place in places:
            array = self.arrays[place]
            if array.dtype.kind not in "biuf":
                self._refuse(place, array)
        if not places:
            return np.empty((len(self.arrays[0]) if self.arrays else 0, 0))
        return np.column_stack([self.arrays[place] for place in places]).astype(np.float64)

    def _refuse(self, place: int, array: np.ndarray) -> None:
        where = f"{self.path}: column {self.name(place)!r}"
        if not self.first_line:
            kind = type(array[0]).__name__ if len(array) else "nothing"
            raise FormatError(f"{where} holds {kind}, and no numbers")
        row = next(i for i, cell in enumerate(array) if not _is_number(cell))
        cell = array[row].strip()
        what = f"holds {cell[:24]!r}" if cell else "is empty"
        n = sum(not _is_number(cell) for cell in array)
        several = f", and no number in {n:,} lines in all" if n > 1 else ""
        raise FormatError(f"{where} {what} in line {row + self.first_line}{several}")


def kind_of(path: Path) -> str:
    """Return the suffix that says how a file is read; one that is packed keeps its own."""
    inner = path.with_suffix("") if path.suffix.lower() == PACKED else path
    suffix = inner.suffix.lower()
    return suffix if inner is path or suffix in {".csv", ".tsv"} else PACKED


def read_columns(path: str | PathLike[str]) -> dict[str, np.ndarray]:
    """Read arrays by name: the columns of a table, or whatever an ``.npz`` archive holds.

    Raises
    ------
    FormatError
        If there is no such file, or it is no such table.
    """
    path = Path(path)
    if kind_of(path) == ".npz":
        check_is_file(path)
        with naming_damage(path, ".npz archive"), np.load(path, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in archive}
    table = read_table_of(path)
    return {table.name(i): array for i, array in enumerate(table.arrays)}


def read_table_of(path: Path, needed: Sequence[str] = ()) -> Columns:
    """Read a table, words and all.

    Parameters
    ----------
    needed : sequence of str
        Columns by name of which alone it is known that they are needed; a file that is kept
        by columns is read no further.

    Raises
    ------
    FormatError
        If there is no such file, it is no table, or its rows differ in length.
    """
    return _reader(path)(path, needed)


def names_of(path: Path) -> Columns:
    """Read the names of the columns alone, where a file has them before its rows.

    Raises
    ------
    FormatError
        As :func:`read_table_of`.
    """
    read = _reader(path)
    if read is _csv:
        return _first_rows(path)
    if read is _parquet:
        with _reading_parquet(path) as parquet:
            names = [str(name) for name in parquet.read_schema(path).names]
        return Columns(path, names, [np.empty(0)] * len(names))
    return read(path, ())


def _reader(path: Path) -> Callable[[Path, Sequence[str]], Columns]:
    check_is_file(path)
    readers: dict[str, Callable[[Path, Sequence[str]], Columns]] = {
        ".csv": _csv,
        ".tsv": _csv,
        ".npy": _npy,
        ".npz": _npz,
        ".parquet": _parquet,
    }
    read = readers.get(kind_of(path))
    if read is None:
        raise FormatError(f"{path}: a table ends in {', '.join(SUFFIXES)}, or .csv.gz")
    return read


@dataclass(frozen=True)
class _TableLines:
    """A table as text.

    Attributes
    ----------
    lines : list of str
        With that of the names, where there is one.
    names, first : list of str
        And the cells of the first line.
    dialect : csv dialect
    """

    lines: list[str]
    names: list[str]
    first: list[str]
    dialect: Any


def _csv(path: Path, _: Sequence[str]) -> Columns:
    """Rows of cells; the first may be names."""
    text = _lines(path, MAX_BYTES)
    start = 2 if text.names else 1
    quick = _all_numbers(text)
    if quick is not None and quick.shape[1] == len(text.first):
        return Columns(path, text.names, list(quick.T), start)
    with naming_damage(path, f"{kind_of(path)} file"):
        rows = [row for row in csv.reader(text.lines, text.dialect) if any(map(str.strip, row))]
    body = rows[1 if text.names else 0 :]
    for i, row in enumerate(body):
        if len(row) != len(text.first):
            raise FormatError(
                f"{path}: line {i + start} has {len(row)} columns, not {len(text.first)}"
            )
    cells = list(zip(*body, strict=True)) if body else [()] * len(text.first)
    return Columns(path, text.names, [_column(column) for column in cells], start)


def _first_rows(path: Path, most: int = 2**20) -> Columns:
    """The names of a table of text, from its first bytes."""
    text = _lines(path, most)
    return Columns(path, text.names, [np.empty(0)] * len(text.first), 2 if text.names else 1)


def _lines(path: Path, most: int) -> _TableLines:
    """The lines of a table, or those of its first bytes, and what its first line says."""
    with naming_damage(path, f"{kind_of(path)} file"):
        text = _text(path, most)
        head = text[:4096]
        dialect: Any = "excel-tab" if kind_of(path) == ".tsv" else "excel"
        if dialect == "excel" and (";" in head or "\t" in head):
            dialect = csv.Sniffer().sniff(head, ",;\t")
        lines = text.splitlines()
        first = next((row for row in csv.reader(lines, dialect) if any(map(str.strip, row))), [])
    if not first:
        raise FormatError(f"{path}: is empty")
    # What pandas writes of columns without names is numbers from 0, which three or more of hardly
    # ever are a row.
    is_row = all(map(_is_number, first)) and (
        len(first) < 3 or [cell.strip() for cell in first] != [f"{i}" for i in range(len(first))]
    )
    return _TableLines(lines, [] if is_row else [cell.strip() for cell in first], first, dialect)


def _text(path: Path, most: int) -> str:
    with path.open("rb") as file:
        is_packed = path.suffix.lower() == PACKED
        content = (gzip.GzipFile(fileobj=file) if is_packed else file).read(most + 1)
    if len(content) > MAX_BYTES:
        raise FormatError(f"{path}: over {MAX_BYTES:,} bytes")
    # The first bytes may end within a letter.
    return content.decode("utf-8-sig", "ignore" if most < MAX_BYTES else "strict")


def _all_numbers(text: _TableLines) -> FloatArray | None:
    """What a table holds that is numbers throughout; None of any other, which takes longer."""
    lines = text.lines[1 if text.names else 0 :]
    if not any(map(str.strip, lines)):
        return None
    delimiter = csv.reader([], text.dialect).dialect.delimiter
    try:
        return np.loadtxt(lines, delimiter=delimiter, comments=None, ndmin=2)
    except ValueError:
        return None


def _column(cells: Sequence[str]) -> np.ndarray:
    """Numbers where all of them are, else words."""
    if all(map(_is_number, cells)):
        return np.array(cells, dtype=np.float64)
    return np.array(cells, dtype=object)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _npy(path: Path, _: Sequence[str]) -> Columns:
    return Columns(path, [], list(numeric_table(path, read_inputs(path)).T))


def _npz(path: Path, _: Sequence[str]) -> Columns:
    with naming_damage(path, ".npz archive"), np.load(path, allow_pickle=False) as archive:
        if "X" not in archive:
            raise FormatError(f"{path}: has no array X; it has {', '.join(archive) or 'none'}")
        return Columns(path, [], list(numeric_table(path, archive["X"]).T))


def _parquet(path: Path, needed: Sequence[str]) -> Columns:
    with _reading_parquet(path) as parquet:
        known = set(parquet.read_schema(path).names)
        chosen = [name for name in needed if name in known]
        columns = chosen if chosen and len(chosen) == len(needed) else None
        table = parquet.read_table(path, columns=columns, partitioning=None)
        names = [str(name) for name in table.column_names]
        return Columns(path, names, [np.asarray(column.to_numpy()) for column in table.columns])


@contextmanager
def _reading_parquet(path: Path) -> Iterator[Any]:
    parquet = import_extra("pyarrow.parquet", f"{path}: reading Parquet needs pyarrow", "parquet")
    with naming_damage(path, "Parquet file"):
        yield parquet


def numeric_table(path: Path, array: np.ndarray) -> FloatArray:
    """Return an array as a table, rows of more axes flattened.

    Raises
    ------
    FormatError
        If it is no array of rows of real numbers.
    """
    if array.dtype.kind not in "biuf" or array.ndim < 2:
        raise FormatError(f"{path}: holds no table of numbers, but shape {array.shape}")
    return array.reshape(len(array), -1).astype(np.float64)
