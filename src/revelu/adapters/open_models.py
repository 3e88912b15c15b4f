"""Models whose weights lie open in a file, as targets: the network that is read, and its head."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from revelu.adapters.other_formats import as_function, kind_of_file
from revelu.adapters.ports import Ports
from revelu.errors import DamagedError, FormatError, HostileError, InputError, UntrustedError
from revelu.formats import Frame
from revelu.formats.open_model import OpenModel
from revelu.formats.reading import is_read, read_model
from revelu.network import network_of
from revelu.numerics.links import Link
from revelu.oracle import Domain, agreed_dim_in
from revelu.types import FloatArray

__all__ = ["PICKLED", "OpenTarget", "open_read"]

# These are read, or, with trust, unpickled, which executes what they say.
PICKLED = (".joblib", ".pkl", ".pickle", ".sav")


class OpenTarget:
    """A model that was read, computed in float64.

    Parameters
    ----------
    path : pathlib.Path
    model : OpenModel

    Attributes
    ----------
    network : Network
        What is before its head, in raw units.
    link : Link
        What undoes the head.
    """

    def __init__(self, path: Path, model: OpenModel) -> None:
        self.model, self.network = model, network_of(path, model)
        self.link = Link.named(model.head)

    @property
    def dim_in(self) -> int:
        """Number of inputs."""
        return self.network.dim_in

    @property
    def row(self) -> tuple[int, ...]:
        """Shape of an input."""
        return self.model.row

    @property
    def facts(self) -> dict[str, str]:
        """What decides its answers."""
        digest = hashlib.sha256(f"{self.model.head} {self.model.nodes}".encode())
        for array in self.network.arrays:
            digest.update(f"{array.shape}".encode() + array.tobytes())
        return {"weights": digest.hexdigest()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What it was read as."""
        return (f"read as {self.model.words}", *self.model.notes)

    @property
    def column_names(self) -> list[str]:
        """What its columns are called; nothing where the file does not say."""
        return list(self.model.columns)

    @property
    def is_regressor(self) -> bool:
        """Whether its answers are quantities, of which the largest is no choice."""
        return not self.model.classes and not self.link.has_head

    @property
    def frame(self) -> Frame | None:
        """Names, shapes and types of its input and output, where the file has them."""
        return self.model.frame

    @property
    def suggested_domain(self) -> Domain | None:
        """Where the scaling that it begins with says that its inputs are."""
        if self.model.scaling is None:
            return None
        s, t = self.model.scaling
        used = s != 0.0
        spread = np.where(used, 1.0 / np.abs(np.where(used, s, 1.0)), 1.0)
        center = np.where(used, -t / np.where(used, s, 1.0), 0.0)
        words = "where the file's scaling puts them"
        return replace(Domain.gaussian(center, spread), words=words)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Compute the answers to the rows of ``X``."""
        return self.link.answers(self.network(X))


def _other_way(path: Path, error: Exception) -> str:
    """Say how a file that is not read is asked; nothing where there is no other way."""
    if not path.is_file():
        return ""
    if path.suffix.lower() in PICKLED:
        if isinstance(error, DamagedError):  # running half of it does whatever that half says
            return "; look for a whole copy of it"
        if isinstance(error, HostileError):
            return "; no model is made of that: do not open it"
        return "; --trust opens it, and runs whatever it says"
    kind = kind_of_file(path)
    return f"; to ask it instead, {as_function(kind)}" if kind is not None and kind.code else ""


def open_read(path: Path, dim_in: int | None = None, ports: Ports | None = None) -> OpenTarget:
    """Read a file as a target.

    Raises
    ------
    FormatError
        If it is damaged, or no network of ReLUs.
    InputError
        If it is no file of which weights are read.
    UntrustedError
        If only running what it says would show what it holds.
    """
    if not is_read(path):
        raise InputError(f"{path}: no file whose weights are read")
    ports = ports or Ports()
    ports.only("files that are read", "activation")
    try:
        target = OpenTarget(path, read_model(path, ports.activation))
    except (FormatError, UntrustedError) as error:
        raise type(error)(f"{error}{_other_way(path, error)}") from None
    agreed_dim_in(f"{path}", target.dim_in, dim_in)
    return target
