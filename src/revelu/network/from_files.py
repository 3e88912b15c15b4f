"""Networks of files of other programs, in which weights lie open."""

from pathlib import Path

from revelu.errors import FormatError, InputError
from revelu.formats.open_model import OpenModel
from revelu.formats.reading import read_model
from revelu.network.layered import LayeredNetwork
from revelu.network.network import Network

__all__ = ["network_of", "read_network"]


def read_network(path: Path) -> Network:
    """Read the network of such a file, in raw units.

    Errors are those of :func:`revelu.formats.reading.read_model`.
    """
    return network_of(path, read_model(path))


def network_of(path: Path, model: OpenModel) -> Network:
    """Return the network of a model, whose scaling is part of its first layer.

    Raises
    ------
    FormatError
        If its layers do not chain.
    """
    nodes = model.folded()
    kinds = [node.kind for node in nodes]
    is_plain = kinds[::2] == ["Gemm"] * (len(kinds) // 2 + 1) and set(kinds[1::2]) <= {"Relu"}
    try:
        if not is_plain:
            return LayeredNetwork.from_nodes(model.row, nodes)
        layers = [node.arrays for node in nodes[::2]]
        return Network([W for W, _ in layers], [b for _, b in layers])
    except InputError as error:
        raise FormatError(f"{path}: {error}") from None
