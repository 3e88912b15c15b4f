"""Arrays to and from files; the suffix decides the format.

A format is a module with ``load(path) -> Arrays`` and
``dump(path, arrays, dtype, head) -> None``; adding one is a line in ``_FORMATS``.
Each imports its library when it is used, by ``library()`` where that is optional, which raises
MissingExtraError.  Both raise FormatError: ``load`` of a file that is damaged, too large, of a
later schema or no network, ``dump`` where it cannot write, or has no place for a head.
"""

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import DTypeLike

from revelu.errors import FormatError
from revelu.formats.arrays import Arrays, check_is_file, is_in_memory, naming_system_errors
from revelu.formats.nodes import Node
from revelu.formats.onnx_frame import Frame
from revelu.formats.onnx_kept import Kept
from revelu.numerics.links import NONE, Link

__all__ = [
    "Arrays",
    "Frame",
    "Kept",
    "Node",
    "check_writable",
    "heads_of",
    "kept_of",
    "load_arrays",
    "load_nodes",
    "save_arrays",
    "save_nodes",
    "suffixes",
]

_FORMATS = {
    ".npz": "revelu.formats.npz",
    ".onnx": "revelu.formats.onnx",
    ".pt": "revelu.formats.torch_state",
    ".pth": "revelu.formats.torch_state",
    ".safetensors": "revelu.formats.safetensors",
}
_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of the formats that can be read and written."""
    return tuple(_FORMATS)


def load_arrays(path: Path) -> Arrays:
    """Read the arrays of a network.

    Raises
    ------
    FormatError
        If the suffix is unknown, or the file cannot be read or holds no network.
    """
    module = _format_of(path)
    with naming_system_errors(path, "read"):
        check_is_file(path)
    arrays: Arrays = module.load(path)
    return arrays


def save_arrays(
    path: Path,
    weights: list[np.ndarray],
    biases: list[np.ndarray],
    skip: tuple[np.ndarray, np.ndarray] | None,
    dtype: DTypeLike,
    head: Link = NONE,
    frame: Frame | None = None,
    certified: bool | None = None,
    errors: list[tuple[np.ndarray, np.ndarray]] | None = None,
    kept: Kept | None = None,
) -> None:
    """Write the arrays of a network; the file appears whole or not at all.

    Parameters
    ----------
    weights, biases, skip
        As of :class:`revelu.Network`.
    dtype : float64 or float32
    head : Link
        End in what it undoes; formats without it refuse.
    frame : Frame, optional
        Names, shapes and types of input and output, where the format has them; others refuse.
    certified : bool, optional
        Whether fresh queries have vouched for the network, which the file then says.
    errors : list of (ndarray, ndarray), optional
        Standard errors of weights and biases, which an ``.npz`` keeps; other formats have no place
        for them.
    kept : Kept, optional
        Classes, columns and scaling that an ``.onnx`` file has beside it; others leave them out.

    Raises
    ------
    FormatError
        If the suffix is unknown, the file cannot be written, or ``dtype`` is another or
        too small for a number.
    """
    module = _format_of(path)
    kind = _dtype(path, dtype)
    largest = np.finfo(kind).max
    if any((np.abs(a) > largest).any() for a in (*weights, *biases, *(skip or ()))):
        raise FormatError(f"{path}: a number is too large for {kind}")
    check_writable(path)
    arrays = Arrays(weights, biases, skip, certified, errors)
    if path.suffix.lower() == ".onnx":
        module.dump(path, arrays, kind, head, frame, kept)
    elif frame is None:
        module.dump(path, arrays, kind, head)
    else:
        raise FormatError(f"{path}: a {path.suffix} file has no input to name: write .onnx")


def heads_of(path: Path) -> tuple[str, ...]:
    """Return what a file has above its last layer, as ``Sigmoid``, where its format has a place.

    Raises
    ------
    FormatError
        If the file cannot be read.
    UntrustedError
        If only running what it says would show what it holds.
    """
    from revelu.formats import onnx, reading  # noqa: PLC0415 - when they are used

    if reading.is_read(Path(path)):
        return Link.named(reading.read_model(Path(path)).head).form.steps
    return onnx.heads_of(Path(path)) if Path(path).suffix.lower() == ".onnx" else ()


def kept_of(path: Path) -> Kept:
    """Return what a file says of the model that its network was read from: words, names.

    Errors are those of :func:`heads_of`.
    """
    from revelu.formats import onnx, reading  # noqa: PLC0415 - when they are used

    if reading.is_read(Path(path)):
        model = reading.read_model(Path(path))
        return Kept(model.words, model.classes, model.columns)
    return onnx.kept_of(Path(path)) if Path(path).suffix.lower() == ".onnx" else Kept()


def load_nodes(path: Path) -> tuple[tuple[int, ...], list[Node], bool | None] | None:
    """Read layers that are no dense ones, too, of an ``.onnx`` file.

    With the shape of an input before them, and whether they are certified behind.  None where it
    has dense ones only, and of other formats.

    Raises
    ------
    FormatError
        If the file cannot be read, or has layers of other kinds beside convolutions.
    """
    if Path(path).suffix.lower() != ".onnx":
        return None
    from revelu.formats.onnx_layers import read_nodes  # noqa: PLC0415 - when it is used

    return read_nodes(path)


def save_nodes(
    path: Path,
    nodes: Sequence[Node],
    row: tuple[int, ...],
    k: int,
    dtype: DTypeLike,
    head: Link = NONE,
    frame: Frame | None = None,
    certified: bool | None = None,
    kept: Kept | None = None,
) -> None:
    """Write layers that are no dense ones, too, to an ``.onnx`` file.

    Parameters
    ----------
    nodes : sequence of Node
    row : tuple of int
        Shape of an input.
    k : int
        Number of outputs.
    dtype, head, frame, certified, kept
        As of :func:`save_arrays`.

    Raises
    ------
    FormatError
        If it cannot be written.
    """
    from revelu.formats.onnx_layers import dump_nodes  # noqa: PLC0415 - when it is used

    kind = _dtype(path, dtype)
    check_writable(path)
    dump_nodes(path, nodes, row, k, kind, head, frame, certified, kept)


def check_writable(path: Path) -> None:
    """Check that a network can be written to ``path``, without writing it.

    Raises
    ------
    FormatError
        If the suffix is unknown, the folder is missing, or the path is a folder or
        may not be written.
    MissingExtraError
        If the format needs a package that is not installed.
    """
    path = Path(path)
    if (library := getattr(_format_of(path), "library", None)) is not None:
        library()
    if is_in_memory():
        return
    with naming_system_errors(path, "written"):
        if path.is_dir():
            raise FormatError(f"{path}: is a folder")
        if not path.parent.is_dir():
            raise FormatError(f"{path}: the folder {path.parent} does not exist")
        # The folder must be writable, since a file is replaced and not rewritten.
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise FormatError(f"{path}: the folder {path.parent} may not be written")
        if path.exists() and not os.access(path, os.W_OK):
            raise FormatError(f"{path}: may not be written")


def _dtype(path: Path, dtype: DTypeLike) -> np.dtype:
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError):
        raise FormatError(f"{path}: cannot write {dtype!r}; float64 or float32") from None
    if kind not in _DTYPES:
        raise FormatError(f"{path}: cannot write {kind}; float64 or float32")
    return kind


def _format_of(path: Path) -> ModuleType:
    name = _FORMATS.get(Path(path).suffix.lower())
    if name is None:
        known = ", ".join(_FORMATS)
        raise FormatError(f"{path}: unknown suffix {Path(path).suffix!r}; known: {known}")
    return importlib.import_module(name)
