"""What an ONNX file keeps of a model beside its network: scaling, classes, columns, its origin."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from revelu.types import FloatArray

__all__ = ["Kept", "is_label"]

# By its name a reader knows the output of labels, which is none of the network.
_LABEL = "label"
_INSIDE = "labels_"
_NAMES = f"{_INSIDE}names"


@dataclass(frozen=True)
class Kept:
    """What is written with a network.

    Attributes
    ----------
    words : str
        What it was read from.
    classes : tuple
        Names or numbers of the classes, in the order of the outputs: the file then has an output
        ``label``, too.
    columns : tuple of str
        Names of the columns.
    box : (lo, hi) or None
        Where all inputs that it was recovered from lie.
    scaling : (ndarray, ndarray) or None
        Factors and shifts of columns, ``s x + t``, which stay nodes of their own.
    """

    words: str = ""
    classes: tuple[str | int | float, ...] = ()
    columns: tuple[str, ...] = ()
    box: tuple[float, float] | None = None
    scaling: tuple[FloatArray, FloatArray] | None = None

    @classmethod
    def said_by(cls, said: Mapping[str, str]) -> Self:
        """Return what metadata say, as :meth:`props` writes them; the scaling is in the graph."""
        classes, columns = (json.loads(said.get(name, "[]")) for name in ("classes", "columns"))
        low, high = json.loads(said.get("box", "[null, null]"))
        box = None if low is None else (float(low), float(high))
        return cls(said.get("read", ""), tuple(classes), tuple(columns), box)

    def put_before(self, nodes: list[Any], tensors: list[Any], dtype: np.dtype) -> list[Any]:
        """Return the nodes of a graph behind those of the scaling: Mul, and Add."""
        if self.scaling is None:
            return nodes
        from onnx import helper, numpy_helper  # noqa: PLC0415 - half a second

        for node in nodes:
            node.input[:] = ["scaled" if name == "input" else name for name in node.input]
        for name, array in zip(("factors", "shifts"), self.scaling, strict=True):
            row = np.ascontiguousarray(array, dtype).reshape(1, -1)
            tensors.append(numpy_helper.from_array(row, f"scaling.{name}"))
        return [
            helper.make_node("Mul", ["input", "scaling.factors"], ["scaled.factors"]),
            helper.make_node("Add", ["scaled.factors", "scaling.shifts"], ["scaled"]),
            *nodes,
        ]

    def labels(self, k: int, output: str, tensors: list[Any]) -> tuple[list[Any], list[Any]]:
        """Return the nodes that name the class of an output, and what declares their own output.

        Of several outputs it is that of the largest; of a single one the second of two classes,
        where it is positive.
        """
        if len(self.classes) != max(k, 2) or output == _LABEL:
            return [], []
        from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415

        names, kind = self._names(), TensorProto.STRING
        if names.dtype.kind in "if":
            kind = TensorProto.INT64 if names.dtype.kind == "i" else TensorProto.DOUBLE
        tensors.append(numpy_helper.from_array(names, _NAMES))
        place = f"{_INSIDE}place"
        if k > 1:
            nodes = [helper.make_node("ArgMax", [output], [place], axis=1, keepdims=0)]
        else:
            tensors.append(numpy_helper.from_array(np.array([-1]), f"{_INSIDE}shape"))
            nodes = [
                helper.make_node("Sign", [output], [f"{_INSIDE}sign"]),
                helper.make_node("Relu", [f"{_INSIDE}sign"], [f"{_INSIDE}side"]),
                helper.make_node("Cast", [f"{_INSIDE}side"], [f"{_INSIDE}whole"], to=7),
                helper.make_node("Reshape", [f"{_INSIDE}whole", f"{_INSIDE}shape"], [place]),
            ]
        nodes.append(helper.make_node("Gather", [_NAMES, place], [_LABEL]))
        return nodes, [helper.make_tensor_value_info(_LABEL, kind, ["N"])]

    def _names(self) -> np.ndarray:
        """The classes as an array that ONNX has."""
        if all(isinstance(c, int) for c in self.classes):
            return np.array([int(c) for c in self.classes], dtype=np.int64)
        if all(isinstance(c, int | float) for c in self.classes):
            return np.array(self.classes, dtype=np.float64)
        return np.array([f"{c}" for c in self.classes], dtype=object)

    def props(self) -> dict[str, str]:
        """Return what the file's metadata say."""
        said = {"read": self.words} if self.words else {}
        if self.classes:
            said["classes"] = json.dumps(list(self.classes))
        if self.columns:
            said["columns"] = json.dumps(list(self.columns))
        if self.box is not None:
            said["box"] = json.dumps(list(self.box))
        return said


def is_label(name: str, graph: Any) -> bool:
    """Whether a value of a graph that revelu wrote belongs to the output of labels."""
    belongs = name == _LABEL or name.startswith(_INSIDE)
    return belongs and any(tensor.name == _NAMES for tensor in graph.initializer)
