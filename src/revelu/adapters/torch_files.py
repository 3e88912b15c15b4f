"""What torch saves: state dicts, programs of TorchScript or torch.export, and pickled modules."""

from pathlib import Path
from typing import Any

from revelu.adapters.ports import Ports
from revelu.adapters.state_dicts import open_state
from revelu.errors import UntrustedError
from revelu.formats.torch_state import is_script

# Programs of torch.export.
EXPORTED = ".pt2"


def open_torch_file(path: Path, dim_in: int | None, ports: Ports, *, trust: bool) -> Any:
    """Open a file that torch saved, as what it is.

    Raises
    ------
    FormatError
        If it cannot be read, or is a state dict that is no chain of layers.
    UntrustedError
        If opening it executes code, and ``trust`` is not given.
    """
    is_program = path.suffix.lower() == EXPORTED
    if not is_program and path.is_file() and is_script(path):
        if not trust:
            raise UntrustedError(f"{path}: a TorchScript program, which is code; --trust allows it")
        return _module(path, "script", dim_in, ports)
    if is_program:
        if not trust:
            raise UntrustedError(f"{path}: a program of torch.export; --trust allows it")
        return _module(path, "exported", dim_in, ports)
    try:
        return open_state(path, dim_in, ports)
    except UntrustedError as error:
        if not trust:
            raise UntrustedError(f"{error}; --trust allows it") from None
        return _module(path, "pickled", dim_in, ports)


def _module(path: Path, kind: str, dim_in: int | None, ports: Ports) -> Any:
    from revelu.adapters.torch_modules import (  # noqa: PLC0415 - optional
        TorchTarget,
        load_exported,
        load_module,
        load_script,
    )

    loaders = {"script": load_script, "exported": load_exported, "pickled": load_module}
    return TorchTarget(loaders[kind](path), dim_in, ports)
