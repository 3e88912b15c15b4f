"""The arrays of a network, what may be wrong with a file of them, and how one is written."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

import numpy as np

from revelu.errors import DamagedError, FormatError, ReveluError

# A file that declares more bytes than this is refused before it is read or unpacked.
MAX_BYTES = 4 * 2**30


class Arrays(NamedTuple):
    """Weights, biases and the affine skip of a network, and whether it is certified.

    ``errors`` are standard errors of weights and biases, layer by layer and of a skip, of the
    network whose hidden rows have norm 1; None where a file has none.
    """

    weights: list[np.ndarray]
    biases: list[np.ndarray]
    skip: tuple[np.ndarray, np.ndarray] | None
    certified: bool | None = None
    errors: list[tuple[np.ndarray, np.ndarray]] | None = None


@contextmanager
def naming_system_errors(path: Path, verb: str) -> Iterator[None]:
    """Turn what the system refuses into a FormatError: "``path``: cannot be ``verb``: ..."."""
    try:
        yield
    except OSError as error:
        raise FormatError(f"{path}: cannot be {verb}: {error.strerror or error}") from None


@contextmanager
def naming_damage(path: Path, kind: str) -> Iterator[None]:
    """Turn what reading raises into a DamagedError: "``path``: not a readable ``kind``: ...".

    Damaged files make parsers, decompressors and NumPy raise almost anything; whatever it is,
    the file is at fault.
    """
    try:
        with naming_system_errors(path, "read"):
            yield
    except ReveluError:
        raise
    except Exception as error:  # noqa: BLE001 - see above
        raise DamagedError(f"{path}: not a readable {kind}: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    """Return the first line of an exception's message, or its kind where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def check_is_file(path: Path) -> None:
    """Check that there is a file at ``path``.

    Raises
    ------
    FormatError
        If there is nothing, or a folder.
    """
    if not path.is_file():
        raise FormatError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}")


_KEPT: ContextVar[dict[Path, bytes] | None] = ContextVar("_KEPT", default=None)


@contextmanager
def in_memory() -> Iterator[dict[Path, bytes]]:
    """Keep files that are written inside, by their paths, and put none on disk."""
    kept: dict[Path, bytes] = {}
    before = _KEPT.set(kept)
    try:
        yield kept
    finally:
        _KEPT.reset(before)


def is_in_memory() -> bool:
    """Whether files are kept, and not put on disk."""
    return _KEPT.get() is not None


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` beside ``path`` and move it into place.

    Raises
    ------
    FormatError
        If the system refuses; whatever was at ``path`` is still there.
    """
    if (kept := _KEPT.get()) is not None:
        kept[path] = content
        return
    temporary = path.with_name(f".revelu-{os.getpid()}-{threading.get_ident()}.part")
    try:
        with naming_system_errors(path, "written"):
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
    finally:
        with suppress(OSError):  # moved away, or never made
            temporary.unlink()
