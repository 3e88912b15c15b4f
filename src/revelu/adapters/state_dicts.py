"""State dicts as targets: tensors by name, and an activation that the user says is between."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revelu.adapters.ports import Ports
from revelu.errors import FormatError, InputError
from revelu.formats import npz, safetensors, torch_state
from revelu.formats.arrays import check_is_file
from revelu.formats.names import SCHEMA
from revelu.formats.npz_lists import as_state
from revelu.formats.state_chain import Chain, read_chain, shown
from revelu.network import Network, load
from revelu.oracle import agreed_dim_in
from revelu.types import FloatArray

_ACTIVATIONS = ("relu",)


@dataclass(frozen=True)
class StateTarget:
    """A chain of layers that a state dict was read as, computed in float64.

    Attributes
    ----------
    network : Network
    words : str
        The chain.
    activation : str
    """

    network: Network
    words: str
    activation: str = "relu"

    @property
    def dim_in(self) -> int:
        """Number of inputs."""
        return self.network.dim_in

    @property
    def facts(self) -> dict[str, str]:
        """What decides its answers."""
        digest = hashlib.sha256(self.activation.encode())
        for array in self.network.arrays:
            digest.update(f"{array.shape}".encode() + array.tobytes())
        return {"weights": digest.hexdigest()}

    @property
    def notes(self) -> tuple[str, ...]:
        """The chain that was read, since a file of names and shapes could mean another one."""
        return (f"read as the chain {self.words}, with {self.activation} between layers",)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Compute the answers to the rows of ``X``."""
        return self.network(X)


def _read(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a ``.pt``, ``.pth``, ``.safetensors`` or ``.npz`` file; nothing is run."""
    if path.suffix.lower() == ".safetensors":
        return safetensors.read_state(path)
    if path.suffix.lower() == ".npz":
        # Of revelu's own, and of what is no list, the reader of networks says what is wrong.
        named = npz.read_archive(path)
        found = None if "weights_0" in named else as_state(path, named)
        return found or {"schema": np.array(SCHEMA)}
    return torch_state.read_state(path)


def open_state(path: Path, dim_in: int | None, ports: Ports) -> Any:
    """Open a state dict: a network that revelu wrote, or a chain of layers.

    Raises
    ------
    FormatError
        If it is no chain of linear layers, or no activation was said to be between them.
    InputError
        If the activation is not one of those known.
    """
    check_is_file(path)
    named = _read(path)
    if "schema" in named:
        ports.only("networks that revelu wrote")
        return load(path)
    ports.only("state dicts", "activation")
    _check_finite(path, named)
    if ports.activation is None:
        raise FormatError(f"{path}: {_without_activation(path, named)}")
    if ports.activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise InputError(f"unknown activation {ports.activation!r}; known: {known}")
    chain = _chain(path, named)
    agreed_dim_in(f"{path}", chain.arrays.weights[0].shape[1], dim_in)
    weights, biases, *_ = chain.arrays
    return StateTarget(Network(weights, biases), chain.words, ports.activation)


def _check_finite(path: Path, named: dict[str, np.ndarray]) -> None:
    for name, array in named.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            wrong = array[~np.isfinite(array)][0]
            raise FormatError(f"{path}: {name} holds {wrong}, which no network has")


def _chain(path: Path, named: dict[str, np.ndarray]) -> Chain:
    # safetensors sorts its names; a state dict that torch saves has the order of its module.
    return read_chain(path, named, in_order=path.suffix.lower() != ".safetensors")


def _without_activation(path: Path, named: dict[str, np.ndarray]) -> str:
    said = "a state dict without a schema does not say which activations are between its layers"
    try:
        words = _chain(path, named).words
    except FormatError:
        return f"{said}: ask its module instead; it has {shown(named)}"
    return f"{said}: if they are ReLUs, say --activation relu; read as the chain {words}"
