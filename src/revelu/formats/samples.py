"""Samples ``(X, y)`` in files: ``.npz`` archives, Parquet, or a folder of such shards.

A shard is read whole, one at a time; all shards together need not fit in memory.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError
from revelu.extras import import_extra
from revelu.formats.arrays import check_is_file, naming_damage, naming_system_errors
from revelu.formats.npz import read_archive
from revelu.types import FloatArray

_SUFFIXES = (".npz", ".parquet")

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
    """

    name: str
    read: Callable[[], Any]

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
        return check_samples(X, y, f"{self.name}: ")


def find_shards(path: Path) -> list[CheckedChunk]:
    """Find the samples of one file or a folder; nothing is read.

    Parameters
    ----------
    path : pathlib.Path
        A file ending in ``.npz`` (arrays ``X`` and ``y``) or ``.parquet`` (a column ``y``,
        every other one an input), or a folder of them.

    Raises
    ------
    FormatError
        If there is nothing to read.
    """
    with naming_system_errors(path, "read"):
        shards = _files(path)
        tables = [shard for shard in shards if _is_parquet(shard)]
        columns = _columns(tables)
    readers: list[Callable[[], Any]] = [
        partial(_read_parquet, shard, columns) if _is_parquet(shard) else partial(_read_npz, shard)
        for shard in shards
    ]
    return [CheckedChunk(f"{p}", read) for p, read in zip(shards, readers, strict=True)]


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        shards = sorted(p for p in path.iterdir() if p.suffix.lower() in _SUFFIXES)
        if not shards:
            raise FormatError(f"{path}: holds no {' or '.join(_SUFFIXES)} file")
        return shards
    if path.suffix.lower() not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise FormatError(f"{path}: unknown suffix of samples; known: {known}")
    check_is_file(path)
    return [path]


def check_samples(X: np.ndarray, y: np.ndarray, where: str = "") -> tuple[FloatArray, FloatArray]:
    """Return samples in float64.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,) or (n, 1)
    where : str
        Begins every message.

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
            "the others"
        )
    if X.ndim != 2 or y.ndim != 1 or len(X) != len(y) or not X.shape[1]:
        raise FormatError(
            f"{where}X has shape {X.shape} and y {y.shape}; expected (n, d) and (n,), one output"
        )
    X, y = X.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    bad = ~(np.isfinite(X).all(axis=1) & np.isfinite(y))
    if bad.any():
        raise FormatError(
            f"{where}row {int(np.argmax(bad))} holds a number that is not finite "
            f"({int(bad.sum()):,} such rows)"
        )
    large = (np.abs(X) > _LARGEST).any(axis=1) | (np.abs(y) > _LARGEST)
    if large.any():
        raise FormatError(
            f"{where}row {int(np.argmax(large))} holds a number beyond {_LARGEST:g} "
            f"({int(large.sum()):,} such rows)"
        )
    return X, y


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    arrays = read_archive(path, ("X", "y"), _MAX_BYTES)
    return arrays["X"], arrays["y"]


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def _columns(tables: list[Path]) -> list[str]:
    """The inputs' columns, in the first table's order; the others must have the same."""
    columns: list[str] = []
    for path in tables:
        with _reading_parquet(path) as parquet:
            names = list(parquet.read_schema(path).names)
        if "y" not in names or len(names) < 2:
            raise FormatError(f"{path}: needs a column y and at least one more")
        if len(set(names)) < len(names):
            raise FormatError(f"{path}: two columns have the same name")
        columns = columns or [name for name in names if name != "y"]
        if differing := sorted({*columns, "y"} ^ set(names)):
            listed = ", ".join(differing[:5])
            raise FormatError(f"{path}: the columns differ from those of {tables[0]}: {listed}")
    return columns


def _read_parquet(path: Path, columns: list[str]) -> tuple[np.ndarray, np.ndarray]:
    with _reading_parquet(path) as parquet:
        table = parquet.read_table(path, columns=[*columns, "y"], partitioning=None)
        arrays = {name: np.asarray(table.column(name).to_numpy()) for name in table.column_names}
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            kind = table.column(name).type
            raise FormatError(f"{path}: column {name} holds {kind}, not real numbers")
    return np.column_stack([arrays[name] for name in columns]), arrays["y"]


@contextmanager
def _reading_parquet(path: Path) -> Iterator[Any]:
    parquet = import_extra("pyarrow.parquet", f"{path}: reading Parquet needs pyarrow", "parquet")
    with naming_damage(path, "Parquet file"):
        yield parquet
