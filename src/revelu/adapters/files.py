"""Files of models as targets: the suffix, or what is in a folder, says how they are opened."""

from pathlib import Path
from typing import Any

from revelu.adapters.estimators import EstimatorTarget, load_estimator, load_skops
from revelu.adapters.model_folders import model_in
from revelu.adapters.onnx_runtime import OnnxTarget
from revelu.adapters.open_models import PICKLED, open_read
from revelu.adapters.other_formats import kind_of_file, refusal
from revelu.adapters.ports import Ports
from revelu.adapters.state_dicts import open_state
from revelu.adapters.torch_files import EXPORTED, open_torch_file
from revelu.formats.arrays import check_is_file
from revelu.formats.reading import is_read, suffixes

_TORCH = (".pt", ".pth", EXPORTED)

_OWN = (".onnx", ".npz", ".safetensors", *_TORCH, ".skops")

SUFFIXES = (*_OWN, *suffixes())


def is_file_of_a_model(path: Path) -> bool:
    """Whether a path is, by its suffix or as a folder, that of a model of some kind."""
    try:
        is_folder = bool(path.name) and path.is_dir()
    except OSError:  # no name that a file could have
        return False
    known = path.suffix.lower() in SUFFIXES or is_read(path)
    return known or is_folder or kind_of_file(path) is not None


def open_file(path: Path, dim_in: int | None, ports: Ports, *, trust: bool) -> Any:
    """Open a file, or the one that is the model of a folder.

    Raises
    ------
    InputError
        If it is of a kind that revelu does not open, or lacks what has to be said.
    FormatError
        If it cannot be read.
    UntrustedError
        If opening it executes code, and ``trust`` is not given.
    """
    if path.is_dir() and path.suffix.lower() not in SUFFIXES:
        return open_file(model_in(path).path, dim_in, ports, trust=trust)
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return OnnxTarget(path, dim_in, ports)
    if suffix in {".npz", ".safetensors"}:
        return open_state(path, dim_in, ports)
    if suffix in _TORCH:
        return open_torch_file(path, dim_in, ports, trust=trust)
    if suffix == ".skops":
        return EstimatorTarget(load_skops(path, trust=trust), ports)
    if suffix in PICKLED:
        check_is_file(path)
        if not trust:
            return open_read(path, dim_in, ports)
        return EstimatorTarget(load_estimator(path), ports)
    if is_read(path):
        return open_read(path, dim_in, ports)
    kind = kind_of_file(path)
    assert kind is not None  # noqa: S101 - is_file_of_a_model
    raise refusal(path, kind)
