"""Files of other programs in which weights lie open: the suffix decides who reads them.

A reader is a module with ``read(path, activation) -> OpenModel``; adding one is a line in
``_READERS``.  Nothing that a file says is run, and what it may take is bounded by its size.
"""

import importlib
from pathlib import Path

from revelu.formats.open_model import OpenModel

__all__ = ["OpenModel", "is_read", "read_model", "suffixes"]

_READERS = {
    ".h5": "revelu.formats.keras_model",
    ".hdf5": "revelu.formats.keras_model",
    ".keras": "revelu.formats.keras_model",
    ".mat": "revelu.formats.mat",
    ".nnet": "revelu.formats.nnet",
    ".joblib": "revelu.formats.sklearn_model",
    ".pickle": "revelu.formats.sklearn_model",
    ".pkl": "revelu.formats.sklearn_model",
    ".sav": "revelu.formats.sklearn_model",
    ".tflite": "revelu.formats.tflite",
    ".zip": "revelu.formats.stable_baselines",
}


def suffixes() -> tuple[str, ...]:
    """Return the suffixes of the files that are read."""
    return tuple(_READERS)


def is_read(path: Path) -> bool:
    """Whether a file is one that is read, by its suffix."""
    return _kind(path) in _READERS


def read_model(path: Path, activation: str | None = None) -> OpenModel:
    """Read a model.

    Parameters
    ----------
    activation : {"relu"}, optional
        What is between its layers, where the file does not say.

    Raises
    ------
    FormatError
        If it cannot be read, or is no network of ReLUs.
    UntrustedError
        If only running what it says would show what it holds.
    """
    module = importlib.import_module(_READERS[_kind(path)])
    found: OpenModel = module.read(path, activation)
    return found


def _kind(path: Path) -> str:
    """The suffix that says what a file is; of a pickle that is packed the one before ``.gz``."""
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower()
    is_pickle = _READERS.get(inner) == _READERS[".pkl"]
    return inner if suffix == ".gz" and is_pickle else suffix
