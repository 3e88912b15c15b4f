"""Samples ``(X, y)`` in files: ``.npz`` archives, Parquet, or a folder of such shards.

A shard is read whole, one at a time; all shards together need not fit in memory.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from revelu.errors import FormatError, MissingExtraError
from revelu.formats.arrays import naming_system_errors
from revelu.types import FloatArray

_SUFFIXES = (".npz", ".parquet")

# An archive that declares more than this, unpacked, is refused: shards are the way.
_MAX_BYTES = 8 * 2**30


class SampleFiles:
    """Samples of one file or a folder, read as often as asked.

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

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        with naming_system_errors(self.path, "read"):
            self.shards = self._find()

    def _find(self) -> list[Path]:
        if self.path.is_dir():
            shards = sorted(p for p in self.path.iterdir() if p.suffix.lower() in _SUFFIXES)
            if not shards:
                raise FormatError(f"{self.path}: holds no {' or '.join(_SUFFIXES)} file")
            return shards
        if self.path.suffix.lower() not in _SUFFIXES:
            known = ", ".join(_SUFFIXES)
            raise FormatError(f"{self.path}: unknown suffix of samples; known: {known}")
        if not self.path.is_file():
            raise FormatError(f"{self.path}: no such file")
        return [self.path]

    def __iter__(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield ``X (n, d)`` and ``y (n,)`` of each shard.

        Raises
        ------
        FormatError
            If a shard is damaged, disagrees with the first, or holds a number that is not
            finite; the message names file and row.
        """
        d: int | None = None
        for path in self.shards:
            with naming_system_errors(path, "read"):
                X, y = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_npz(path)
            X, y = check_samples(X, y, f"{path}: ")
            if d is not None and X.shape[1] != d:
                raise FormatError(
                    f"{path}: rows of {X.shape[1]} inputs, those of {self.shards[0]} have {d}"
                )
            d = X.shape[1]
            yield X, y


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
        If shapes or types do not fit, or a number is not finite.
    """
    for name, array in (("X", X), ("y", y)):
        if array.dtype.kind not in "fiu":
            raise FormatError(f"{where}{name} holds {array.dtype}, not real numbers")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
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
    return X, y


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > _MAX_BYTES:
            raise FormatError(f"{path}: unpacks to {size:,} bytes; split it into shards")
        with np.load(path, allow_pickle=False) as arrays:
            missing = {"X", "y"} - set(arrays.files)
            if missing:
                raise FormatError(f"{path}: has no array {' and '.join(sorted(missing))}")
            return arrays["X"], arrays["y"]
    except (FormatError, OSError):
        raise
    # A damaged archive makes zipfile, zlib and NumPy raise almost anything.
    except Exception as error:  # noqa: BLE001
        raise FormatError(f"{path}: not a readable .npz archive: {error}") from None


def _read_parquet(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        from pyarrow import parquet  # noqa: PLC0415 - optional
    except ImportError:
        raise MissingExtraError(f"{path}: reading Parquet needs pyarrow") from None
    try:
        table = parquet.read_table(path)
        names = [name for name in table.column_names if name != "y"]
        if "y" not in table.column_names or not names:
            raise FormatError(f"{path}: needs a column y and at least one more")
        X = np.column_stack([np.asarray(table.column(name).to_numpy()) for name in names])
        return X, np.asarray(table.column("y").to_numpy())
    except (FormatError, OSError):
        raise
    except Exception as error:  # noqa: BLE001 - as above
        raise FormatError(f"{path}: not a readable Parquet file: {error}") from None
