"""Samples ``(X, y)`` in files: ``.npz`` archives, tables, or a folder of such shards.

A shard is read whole, one at a time; all shards together need not fit in memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import check_is_file, naming_system_errors
from revelu.formats.columns import SUFFIXES, kind_of, names_of, read_table_of
from revelu.formats.npz import read_archive
from revelu.types import FloatArray

# The column, or the array of an archive, that answers are in where nothing is said.
_ANSWERS = ("y",)

_MISSING = "leave such rows out, or the column, by --drop"
_LABELS = (
    "labels in words are no answers that a network gives: write 0 and 1 for --halfspaces, or each "
    "class's probability in a column of its own"
)

# An archive that unpacks to more bytes than this is to be split into shards.
_MAX_BYTES = 8 * 2**30

# Moments are products of eight inputs and two answers, which larger numbers overflow.
_LARGEST = 1e30


@dataclass(frozen=True)
class CheckedChunk:
    """Some of the samples, read and checked where they are worked on.

    Attributes
    ----------
    name : str
        Begins every message.
    read : callable
        Returns ``X`` and ``y``.
    width : int or None
        Answers a row, where that is known before anything is read.
    first_line : int
        Of the file, where the first row is, if the file has lines; else 0, and messages have
        numbers of rows, from 0.
    inputs : tuple of str
        The columns of inputs, where they have names.
    """

    name: str
    read: Callable[[], Any]
    width: int | None = None
    first_line: int = 0
    inputs: tuple[str, ...] = ()

    def several(self) -> np.ndarray | None:
        """Return the answers where they are several a row, shape (n, k); None of one."""
        y = None if self.width == 1 else np.asarray(self.read()[1])
        return y if y is not None and y.ndim == 2 and y.shape[1] > 1 else None

    def __call__(self) -> tuple[FloatArray, FloatArray]:
        """Return ``X (n, d)`` and ``y (n,)``.

        Raises
        ------
        FormatError
            If what is read is damaged, or holds a number that is not finite; the message
            names chunk and row.
        """
        samples = self.read()
        try:
            X, y = (np.asarray(part) for part in samples)
        except (TypeError, ValueError) as error:
            raise FormatError(f"{self.name}: not a pair (X, y): {error}") from None
        return check_samples(X, y, f"{self.name}: ", self.first_line)


def find_shards(
    path: Path, target: Sequence[str] = (), drop: Sequence[str] = ()
) -> list[CheckedChunk]:
    """Find the samples of one file or a folder; of tables the names of their columns are read.

    Parameters
    ----------
    path : pathlib.Path
        A file ending in ``.npz`` (arrays ``X`` and ``y``), ``.parquet``, ``.csv`` or ``.npy``
        (a column ``y``, every other one an input), or a folder of them.
    target : sequence of str
        The columns of answers, by name or by number from 0, or the array of an archive.
    drop : sequence of str
        Columns that are neither.

    Raises
    ------
    FormatError
        If there is nothing to read, or a column is not there.
    """
    with naming_system_errors(path, "read"):
        shards = _files(path)
    answers = list(target or _ANSWERS)
    tables = [shard for shard in shards if kind_of(shard) != ".npz"]
    if drop and len(tables) < len(shards):
        raise FormatError(f"{path}: columns of an .npz archive have no names to be dropped")
    inputs = _inputs(tables, answers, drop)
    readers: list[Callable[[], Any]] = [
        partial(_read_table, shard, inputs, answers)
        if shard in tables
        else partial(_read_npz, shard, answers)
        for shard in shards
    ]
    return [
        CheckedChunk(
            f"{path}",
            read,
            len(answers) if path in tables else None,
            names_of(path).first_line if path in tables else 0,
            tuple(inputs) if path in tables else (),
        )
        for path, read in zip(shards, readers, strict=True)
    ]


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        shards = sorted(p for p in path.iterdir() if kind_of(p) in SUFFIXES)
        if not shards:
            raise FormatError(f"{path}: holds no file ending in {', '.join(SUFFIXES)}")
        return shards
    if kind_of(path) not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise FormatError(f"{path}: unknown suffix of samples; known: {known}")
    check_is_file(path)
    return [path]


def row_name(row: int, first_line: int) -> str:
    """Return what a row is called: its line in a file that has lines, else its number from 0."""
    return f"line {row + first_line}" if first_line else f"row {row}"


def check_samples(
    X: np.ndarray, y: np.ndarray, where: str = "", first_line: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return samples in float64.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,) or (n, 1)
    where : str
        Begins every message.
    first_line : int
        Of the first row, in a file that has lines; else 0.

    Raises
    ------
    FormatError
        If shapes or types do not fit, or a number is not finite or too large.
    """
    for name, array in (("X", X), ("y", y)):
        if array.dtype.kind not in "fiu":
            raise FormatError(f"{where}{name} holds {array.dtype}, not real numbers")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 2 and X.ndim == 2 and len(X) == len(y) and y.shape[1] > 1:
        raise FormatError(
            f"{where}y has {y.shape[1]} outputs, and one is learned at a time: give y[:, 0], then "
            "the others, or a target for each"
        )
    if X.ndim != 2 or y.ndim != 1 or len(X) != len(y) or not X.shape[1]:
        raise FormatError(
            f"{where}X has shape {X.shape} and y {y.shape}; expected (n, d) and (n,), one output"
        )
    X, y = X.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    bad = ~(np.isfinite(X).all(axis=1) & np.isfinite(y))
    if bad.any():
        raise FormatError(
            f"{where}{row_name(int(np.argmax(bad)), first_line)} holds a number that is not finite "
            f"({int(bad.sum()):,} such rows): leave them out, or the column, by --drop"
        )
    large = (np.abs(X) > _LARGEST).any(axis=1) | (np.abs(y) > _LARGEST)
    if large.any():
        raise FormatError(
            f"{where}{row_name(int(np.argmax(large)), first_line)} holds a number beyond "
            f"{_LARGEST:g} ({int(large.sum()):,} such rows)"
        )
    return X, y


def _read_npz(path: Path, answers: list[str]) -> tuple[np.ndarray, np.ndarray]:
    if len(answers) > 1:
        raise FormatError(f"{path}: an archive has its answers in one array, not {len(answers)}")
    arrays = read_archive(path, ("X", answers[0]), _MAX_BYTES)
    return arrays["X"], arrays[answers[0]]


def _inputs(tables: list[Path], answers: list[str], drop: Sequence[str]) -> list[str]:
    """The inputs' columns, in the first table's order; the others must have the same."""
    inputs: list[str] = []
    first: set[str] = set()
    for path in tables:
        table = names_of(path)
        names = [table.name(place) for place in range(len(table.arrays))]
        if len(set(names)) < len(names):
            raise FormatError(f"{path}: two columns have the same name")
        others = [names[table.place(column)] for column in (*answers, *drop)]
        if not first:
            inputs = [name for name in names if name not in others]
            first = set(names)
        if differing := sorted(first ^ set(names)):
            listed = ", ".join(differing[:5])
            raise FormatError(f"{path}: the columns differ from those of {tables[0]}: {listed}")
        if not inputs:
            raise FormatError(f"{path}: needs a column of inputs beside {', '.join(answers)}")
    return inputs


def _read_table(path: Path, inputs: list[str], answers: list[str]) -> tuple[np.ndarray, np.ndarray]:
    table = read_table_of(path, [*inputs, *answers])
    X, y = ([table.place(name) for name in names] for names in (inputs, answers))
    try:
        Y = table.numbers(y)
    except FormatError as error:
        said = _MISSING if "is empty" in f"{error}" else _LABELS
        raise FormatError(f"{error}; {said}") from None
    try:
        return table.numbers(X), Y[:, 0] if len(answers) == 1 else Y
    except FormatError as error:
        raise FormatError(f"{error}; {_MISSING}") from None
