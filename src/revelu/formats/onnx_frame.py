"""What other programs know an ONNX model by: names, shapes and types of its input and output."""

from dataclasses import dataclass
from typing import Any

import numpy as np

# Keeps what is inside apart from the names of a frame.
_INSIDE = "revelu."


@dataclass(frozen=True)
class Frame:
    """The input and the output of a model.

    Attributes
    ----------
    input_name, output_name : str
    row : tuple of int
        Shape of one row of the input.
    dtype, output_dtype : numpy.dtype
    """

    input_name: str
    row: tuple[int, ...]
    dtype: np.dtype
    output_name: str
    output_dtype: np.dtype

    def put_around(self, nodes: list[Any], tensors: list[Any], dtype: np.dtype) -> list[Any]:
        """Return the nodes of a graph from ``input`` to ``output`` with this one's instead.

        Numbers are computed with in ``dtype``, whatever comes and goes.
        """
        from onnx import helper  # noqa: PLC0415 - half a second that others need not wait

        for tensor in tensors:
            tensor.name = _INSIDE + tensor.name
        for node in nodes:
            node.input[:] = [_INSIDE + name for name in node.input]
            node.output[:] = [_INSIDE + name for name in node.output]
        kind = helper.np_dtype_to_tensor_dtype
        first, last = f"{_INSIDE}input", f"{_INSIDE}output"
        numbers = f"{_INSIDE}numbers"
        return [
            helper.make_node("Cast", [self.input_name], [numbers], to=kind(dtype)),
            helper.make_node("Flatten", [numbers], [first], axis=1),
            *nodes,
            helper.make_node("Cast", [last], [self.output_name], to=kind(self.output_dtype)),
        ]

    def declared(self, k: int) -> tuple[list[Any], list[Any]]:
        """Return the input and the output as a graph of k outputs declares them."""
        from onnx import helper  # noqa: PLC0415

        kind = helper.np_dtype_to_tensor_dtype
        value = helper.make_tensor_value_info
        return (
            [value(self.input_name, kind(self.dtype), ["N", *self.row])],
            [value(self.output_name, kind(self.output_dtype), ["N", k])],
        )
