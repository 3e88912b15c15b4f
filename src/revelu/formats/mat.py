"""``.mat`` files of MATLAB (version 5 to 7.2) with the weights and biases of a network.

What is read: arrays of numbers, and cells of them: ``W`` and ``b``, a cell a layer, or ``W1``,
``b1``, ``W2``, ...  A file does not say what is between its layers.  The format is read here, for
elements that it packs are unpacked within a limit, and cells are not followed without end.
"""

import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import MAX_BYTES, check_is_file, naming_damage
from revelu.formats.open_model import LayerChain, OpenModel

__all__ = ["read"]

# Types of elements: of numbers as NumPy knows them, matrices, and what is packed.
_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}


class _Element(IntEnum):
    """Types of elements that are no numbers."""

    MATRIX = 14
    PACKED = 15


class _Class(IntEnum):
    """Classes of matrices: cells, and numbers from the first to the last."""

    CELL = 1
    DOUBLE = 6
    UINT64 = 15


_NAMES = re.compile(r"(w|b|weights?|bias(?:es)?)_?(\d*)", re.IGNORECASE)
_ROWS = (
    "its weights are square, and each of their rows is taken for a neuron, as in W x + b; nothing "
    "in the file says so"
)
_OPEN = (
    "a .mat file does not say which activations are between its layers: if they are ReLUs, say "
    "--activation relu"
)


def read(path: Path, activation: str | None = None) -> OpenModel:
    """Read the layers of a network.

    Parameters
    ----------
    activation : {"relu"}, optional
        What is between them, which has to be said.

    Raises
    ------
    FormatError
        If it has none, they do not chain, or no activation was said to be between them.
    """
    check_is_file(path)
    with naming_damage(path, ".mat file"):
        if path.stat().st_size > MAX_BYTES:
            raise FormatError(f"{path}: over {MAX_BYTES:,} bytes")
        named = _read(path, path.read_bytes())
        layers = _layers(path, named)
        if activation != "relu":
            raise FormatError(f"{path}: {_OPEN}")
        chain = LayerChain.of_file(path, (layers[0][0].shape[1],))
        for i, (W, b) in enumerate(layers):
            if i:
                chain.unit("Relu")
            chain.dense(chain.numbers(W, 2), chain.numbers(b.reshape(-1)))
        nodes = chain.end()
        widths = "-".join(f"{W.shape[1]}" for W, _ in layers) + f"-{len(layers[-1][0])}"
        words = f".mat, the layers {widths} with ReLUs between them"
        notes = (_ROWS,) if all(W.shape[0] == W.shape[1] for W, _ in layers) else ()
        return OpenModel(words, chain.row, nodes, notes=notes)


def _layers(path: Path, named: Mapping[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights (k, d) and biases by layer, from cells or from numbered arrays."""
    found: dict[str, dict[int, np.ndarray]] = {"w": {}, "b": {}}
    for name, value in named.items():
        match = _NAMES.fullmatch(name)
        if match is None:
            continue
        place = found[match[1][0].lower()]
        if isinstance(value, list) and not match[2]:
            if place:
                raise FormatError(f"{path}: {name} is there twice, by another name")
            place.update({i: array for i, array in enumerate(value) if array is not None})
        elif isinstance(value, np.ndarray):
            if int(match[2] or 0) in place:
                raise FormatError(f"{path}: {name} is there twice, by another name")
            place[int(match[2] or 0)] = value
    if not found["w"] or set(found["w"]) != set(found["b"]):
        listed = ", ".join(list(named)[:12]) or "nothing"
        raise FormatError(f"{path}: no W and b of the same layers; it has {listed}")
    numbers = sorted(found["w"])
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise FormatError(f"{path}: between its layers {numbers[:12]} others are not read")
    layers = [(found["w"][i], found["b"][i]) for i in numbers]
    if any(W.ndim != 2 for W, _ in layers):
        raise FormatError(f"{path}: weights that are no matrices")
    # MATLAB has a row a neuron; where only columns fit, they are those.
    if all(len(W) == b.size for W, b in layers):
        return layers
    return [(W.T, b) for W, b in layers]


def _read(path: Path, content: bytes) -> dict[str, Any]:
    """The arrays and cells of a file, by name."""
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None or content[:19] == b"MATLAB 7.3 MAT-file":
        raise FormatError(f"{path}: no .mat file of version 5 to 7.2: save it with -v7")
    reader, named = _MatReader(path, order, max(2**27, 4 * len(content))), dict[str, Any]()
    for kind, data in reader.elements(content[128:]):
        is_packed = kind == _Element.PACKED
        inner = reader.elements(reader.unpacked(data)) if is_packed else iter([(kind, data)])
        for inner_kind, inner_data in inner:
            if inner_kind == _Element.MATRIX:
                name, value = reader.matrix(inner_data)
                named[name] = value
    return named


@dataclass
class _MatReader:
    """Reads elements.

    Attributes
    ----------
    path : pathlib.Path
    order : {"<", ">"}
        Of bytes.
    most : int
        Bytes that packed elements may still unpack to.
    """

    path: Path
    order: str
    most: int

    def elements(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the types of elements that follow each other, and what is in them."""
        at = 0
        while at + 8 <= len(data):
            first, n = struct.unpack_from(f"{self.order}II", data, at)
            if first >> 16:  # small: type and size in one word, and four bytes
                yield first & 0xFFFF, data[at + 4 : at + 4 + (first >> 16)]
                at += 8
                continue
            if at + 8 + n > len(data):
                raise FormatError(f"{self.path}: an element declares what the file does not hold")
            yield first, data[at + 8 : at + 8 + n]
            at += 8 + n + (0 if first == _Element.PACKED else -n % 8)

    def unpacked(self, data: bytes) -> bytes:
        """Unpack an element, within what is left of the limit."""
        found = zlib.decompressobj().decompress(data, self.most + 1)
        self.most -= len(found)
        if self.most < 0:
            raise FormatError(f"{self.path}: unpacks to more than a file of its size has")
        return found

    def matrix(self, data: bytes, *, in_cell: bool = False) -> tuple[str, Any]:
        """Read the name of a matrix and its numbers; a cell as a list, others as None."""
        parts = self.elements(data)
        flags = next(parts)[1]
        kind, more = (flags[i if self.order == "<" else 3 - i] for i in (0, 1))
        dims = np.frombuffer(next(parts)[1], f"{self.order}i4").tolist()
        name = next(parts)[1].decode("latin-1")
        if kind == _Class.CELL and not in_cell:
            cells = [
                self.matrix(part, in_cell=True)[1] for of, part in parts if of == _Element.MATRIX
            ]
            return name, [a if isinstance(a, np.ndarray) else None for a in cells]
        is_complex = bool(more & 0x08)
        if is_complex or not _Class.DOUBLE <= kind <= _Class.UINT64:
            return name, None
        stored, numbers = next(parts)
        array = np.frombuffer(numbers, f"{self.order}{_TYPES[stored]}")
        return name, array.reshape(dims, order="F").astype(np.float64)
