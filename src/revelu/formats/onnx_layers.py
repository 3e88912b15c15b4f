"""ONNX graphs of layers: convolutions, pooling and leaky units beside dense ones.

What is written, and read: ``input (N, channels, height, width)``, or ``(N, d)``, then Conv, Relu,
LeakyRelu or PRelu, MaxPool or AveragePool, Flatten and Gemm, to ``output (N, k)``.  The runtime has
Conv and AveragePool in float32 alone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from revelu.errors import FormatError
from revelu.formats.arrays import naming_damage
from revelu.formats.nodes import Node
from revelu.formats.onnx import (
    MAX_BYTES,
    Frame,
    certified_of,
    is_of_head,
    is_of_labels,
    read_model,
    write_graph,
)
from revelu.formats.onnx_kept import Kept
from revelu.numerics.links import NONE, Link

__all__ = ["dump_nodes", "read_nodes"]

_TELLING = {"Conv", "LeakyRelu", "PRelu"}
_KINDS = (*sorted(_TELLING), "Relu", "MaxPool", "AveragePool", "Flatten", "Gemm")
_PASSED = ("Reshape", "Cast", "Identity", "Softmax")


def dump_nodes(
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
    """Write a graph of layers.

    Parameters
    ----------
    row : tuple of int
        Shape of an input.
    k : int
        Number of outputs.
    dtype : float32 or float64
    head : Link
        End in what it undoes.
    frame : Frame, optional
        Names, shapes and types of input and output.
    certified : bool, optional
        Whether fresh queries have vouched for it.
    kept : Kept, optional
        What else the file has.

    Raises
    ------
    FormatError
        If it is too large for the format, or a number is too large for ``dtype``.
    """
    from onnx import helper, numpy_helper  # noqa: PLC0415 - half a second that others need not wait

    kind = np.dtype(dtype)
    arrays = [a for node in nodes for a in node.arrays]
    if any((np.abs(a) > np.finfo(kind).max).any() for a in arrays):
        raise FormatError(f"{path}: a number is too large for {kind}")
    if kind.itemsize * sum(a.size for a in arrays) > MAX_BYTES:
        raise FormatError(f"{path}: over {MAX_BYTES:,} bytes of weights")
    tensors: list[Any] = []
    graph: list[Any] = []
    value = "input"
    if frame is not None:  # rows of numbers come out of it
        tensors.append(numpy_helper.from_array(np.array([-1, *row]), "shape"))
        graph.append(helper.make_node("Reshape", ["input", "shape"], ["image"]))
        value = "image"
    for i, node in enumerate(nodes):
        names = [f"layer_{i}.{name}" for name in ("weight", "bias")[: len(node.arrays)]]
        for name, array in zip(names, node.arrays, strict=True):
            tensors.append(numpy_helper.from_array(np.ascontiguousarray(array, kind), name))
        graph.append(
            helper.make_node(node.kind, [value, *names], [f"layer_{i}"], **node.attributes)
        )
        value = f"layer_{i}"
    own = Frame("input", row, kind, "output", kind)
    write_graph(path, graph, tensors, value, k, kind, head, frame, own, certified, kept)


def read_nodes(path: Path) -> tuple[tuple[int, ...], list[Node], bool | None] | None:
    """Read a chain of such layers, with the shape of an input; None of plain dense ones.

    Behind them stands whether they are certified.  A final softmax, or another head, is left off.

    Raises
    ------
    FormatError
        If it is damaged, or something else is among the layers; the node is named.
    """
    from onnx import helper, numpy_helper  # noqa: PLC0415

    model = read_model(path)
    graph = model.graph
    if all(node.op_type not in _TELLING for node in graph.node):
        return None
    with naming_damage(path, "graph"):
        folder = str(path.parent)
        known = {t.name: numpy_helper.to_array(t, base_dir=folder) for t in graph.initializer}
        found: list[Node] = []
        row: tuple[int, ...] = ()
        value = next(v.name for v in graph.input if v.name not in known)
        for one in graph.input:
            if one.name == value:
                row = tuple(int(d.dim_value) for d in one.type.tensor_type.shape.dim[1:])
        for node in graph.node:
            if is_of_labels(node.output[0], model):
                continue
            if node.input[0] != value or not (
                node.op_type in {*_KINDS, *_PASSED} or is_of_head(node, model)
            ):
                raise FormatError(f"{path}: cannot read a node of type {node.op_type} here")
            value = node.output[0]
            said = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type == "Reshape":
                row = tuple(int(size) for size in known[node.input[1]][1:])
            if node.op_type in _KINDS:
                arrays = [known[name].astype(np.float64) for name in node.input[1:]]
                found.append(Node(node.op_type, tuple(arrays), said))
        return row, found, certified_of(model)
