"""ONNX files that ONNX Runtime has no operators for, by the reference evaluator of ONNX itself.

The runtime has convolutions and pooling in float32 alone.  The reference evaluator has every
operator in every precision that the standard gives it, and computes by NumPy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator


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
        "float64"
    )

    def __init__(self, source: str | bytes, model: Any) -> None:
        self._evaluator, self._graph = ReferenceEvaluator(source), model.graph

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
