"""ONNX files that ONNX Runtime has no operators for, by the reference evaluator of ONNX itself.

The runtime has convolutions and pooling in float32 alone.  The reference evaluator has every
operator in every precision that the standard gives it, and computes by NumPy.  Its pooling goes
from window to window: plain windows are pooled here, all at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


@dataclass(frozen=True)
class Value:
    """An input or an output, by the words of the runtime.

    Attributes
    ----------
    name, type : str
    shape : list of int or str
        Names of sizes that are open.
    """

    name: str
    type: str
    shape: list[Any]

    @classmethod
    def of(cls, info: Any) -> "Value":
        """Read what the file says of it."""
        tensor = info.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim]
        kind = TensorProto.DataType.Name(tensor.elem_type).lower()
        return cls(info.name, f"tensor({kind})", shape)


class ReferenceSession:
    """What a session of the runtime does, by the reference evaluator.

    Parameters
    ----------
    source : str or bytes
        The path of a file, or what it holds.
    model : onnx.ModelProto
        The same, read.
    """

    note = (
        "ONNX Runtime has its operators in float32 alone: ONNX's reference evaluator is asked, in "
        "float64, at a third to a tenth of the runtime's pace"
    )

    def __init__(self, source: str | bytes, model: Any) -> None:
        pools = [node for node in model.graph.node if node.op_type in _POOLS]
        faster = list(_POOLS.values()) if all(map(_is_plain, pools)) else []
        self._evaluator, self._graph = ReferenceEvaluator(source, new_ops=faster), model.graph

    def get_inputs(self) -> list[Value]:
        """What the file takes, but constants that it has itself."""
        own = {constant.name for constant in self._graph.initializer}
        return [Value.of(info) for info in self._graph.input if info.name not in own]

    def get_outputs(self) -> list[Value]:
        """What it gives."""
        return [Value.of(info) for info in self._graph.output]

    def run(self, names: Sequence[str], feed: Mapping[str, np.ndarray]) -> list[Any]:
        """Evaluate outputs by name."""
        return list(self._evaluator.run(list(names), dict(feed)))


def _is_plain(node: Any) -> bool:
    """Whether windows are whole, of images, without dilations, and read no pads of their own."""
    said = {a.name: a for a in node.attribute}
    is_even = not any(said[name].i for name in ("ceil_mode", "storage_order") if name in said)
    is_close = all(step == 1 for step in (said["dilations"].ints if "dilations" in said else ()))
    has_pads = "pads" in said and any(said["pads"].ints)
    is_told = "auto_pad" not in said or said["auto_pad"].s == b"NOTSET"
    is_image = len(said["kernel_shape"].ints) == 2
    return is_even and is_close and is_told and is_image and not has_pads and len(node.output) == 1


def _windows(x: np.ndarray, size: Sequence[int], strides: Sequence[int] | None) -> np.ndarray:
    """Windows of images, (n, channels, rows, columns, height, width)."""
    down, along = strides or (1, 1)
    return sliding_window_view(x, tuple(size), axis=(2, 3))[:, :, ::down, ::along]


class MaxPool(OpRun):  # type: ignore[misc]
    """The largest of plain windows."""

    op_domain = ""

    def _run(self, x: np.ndarray, **said: Any) -> tuple[np.ndarray]:
        windows = _windows(x, said["kernel_shape"], said.get("strides"))
        return (windows.max(axis=(4, 5)),)


class AveragePool(OpRun):  # type: ignore[misc]
    """The mean of plain windows."""

    op_domain = ""

    def _run(self, x: np.ndarray, **said: Any) -> tuple[np.ndarray]:
        windows = _windows(x, said["kernel_shape"], said.get("strides"))
        return (windows.mean(axis=(4, 5)),)


_POOLS = {kind.__name__: kind for kind in (MaxPool, AveragePool)}
