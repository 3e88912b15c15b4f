"""What an ONNX graph does to its input before anything else, column by column."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from revelu.formats.arrays import naming_damage
from revelu.formats.onnx import read_model
from revelu.types import FloatArray

_SAME = {"Identity", "Cast", "Flatten", "Dropout"}


class Scaling(NamedTuple):
    """``(x - offset) * scale``, each of shape (d,) or ()."""

    offset: FloatArray
    scale: FloatArray

    def plus(self, shift: FloatArray) -> "Scaling":
        """Add numbers to what comes out; a column of scale 0 keeps its offset."""
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.where(self.scale != 0, shift / self.scale, 0.0)
        return Scaling(np.asarray(self.offset - moved), self.scale)

    def times(self, factor: FloatArray) -> "Scaling":
        """Multiply what comes out by numbers."""
        return Scaling(self.offset, np.asarray(self.scale * factor))


def read_scaling(path: Path, name: str | None = None) -> Scaling | None:
    """Read the scaling of columns that a graph begins with.

    Parameters
    ----------
    name : str, optional
        Of the input, where there are several.

    Returns
    -------
    Scaling or None
        Of all nodes up to the first that mixes columns or is no affine map; None where that is
        the first one.

    Raises
    ------
    FormatError
        If it is no ONNX file.
    """
    with naming_damage(path, "graph"):
        found, _, _ = _begin(path, name)
        return found


def read_clip(path: Path, name: str | None = None) -> tuple[float, float] | None:
    """Read between which ends a graph clips its input before anything mixes columns.

    Parameters
    ----------
    name : str, optional
        Of the input, where there are several.

    Returns
    -------
    (float, float) or None
        In units of the input; None where it is not clipped, or not alike in all columns.

    Raises
    ------
    FormatError
        If it is no ONNX file.
    """
    with naming_damage(path, "graph"):
        scaling, users, constants = _begin(path, name)
        offset, scale = (np.zeros(()), np.ones(())) if scaling is None else scaling
        if [node.op_type for node in users] != ["Clip"] or offset.size * scale.size != 1:
            return None
        said = {a.name: a.f for a in users[0].attribute}
        given = dict(zip(("min", "max"), users[0].input[1:], strict=False))
        told = {end: constants[at] for end, at in given.items() if at in constants}
        said |= {end: float(value.item()) for end, value in told.items() if value.size == 1}
        if set(said) != {"min", "max"} or not float(scale):
            return None
        ends = sorted(said[end] / float(scale) + float(offset) for end in ("min", "max"))
        # Ends whose squares overflow are those of all numbers, and cut none off.
        is_cut = np.square(ends).max() < np.finfo(np.float32).max and ends[0] < ends[1]
        return (ends[0], ends[1]) if is_cut else None


def _begin(path: Path, name: str | None) -> tuple[Scaling | None, list[Any], dict[str, FloatArray]]:
    """The scaling that a graph begins with, what reads the scaled input, and constants."""
    graph = read_model(path).graph
    constants = _constants(graph, path.parent)
    value = name or next(v.name for v in graph.input if v.name not in constants)
    start = found = Scaling(np.zeros(()), np.ones(()))
    while True:
        users = [node for node in graph.node if value in node.input]
        # What is also read unscaled has no one scale.
        step = _after(users[0], value, constants, found) if len(users) == 1 else None
        if step is None:
            return (None if found is start else found), users, constants
        found, value = step, users[0].output[0]


def _after(
    node: Any, value: str, constants: Mapping[str, FloatArray], before: Scaling
) -> Scaling | None:
    """The scaling with one more node; None of a node that is no scaling of columns."""
    if node.op_type in _SAME:
        return before if node.input[0] == value else None
    if node.op_type == "Scaler":
        given = {a.name: np.array(a.floats, dtype=np.float64) for a in node.attribute}
        offset, scale = given.get("offset", np.zeros(1)), given.get("scale", np.ones(1))
        return before.plus(-_column(offset)).times(_column(scale))
    if node.op_type not in {"Add", "Sub", "Mul", "Div"}:
        return None
    is_first = node.input[0] == value
    other = constants.get(node.input[1 if is_first else 0])
    if other is None or other.size != max(other.shape, default=1):
        return None
    v = _column(other)
    match node.op_type:
        case "Add":
            return before.plus(v)
        case "Sub":
            return before.plus(-v) if is_first else before.times(np.asarray(-1.0)).plus(v)
        case "Mul":
            return before.times(v)
        case _ if is_first and (v != 0).all():
            return before.times(np.asarray(1.0 / v))
    return None


def _column(v: FloatArray) -> FloatArray:
    """Numbers by column; a single one stands for all."""
    return np.asarray(v.reshape(-1) if v.size > 1 else v.reshape(()))


def _constants(graph: Any, folder: Path) -> dict[str, FloatArray]:
    """Tensors by name, of initializers and Constant nodes."""
    from onnx import numpy_helper  # noqa: PLC0415 - half a second that others need not wait

    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            held = next((a.t for a in node.attribute if a.name == "value"), None)
            tensors |= {} if held is None else {node.output[0]: held}
    return {
        name: numpy_helper.to_array(tensor, base_dir=str(folder)).astype(np.float64)
        for name, tensor in tensors.items()
        # Weights are not needed, and may be large.
        if np.prod(tensor.dims, initial=1) == max(tensor.dims, default=1)
        and tensor.data_type in {1, 6, 7, 10, 11}
    }
