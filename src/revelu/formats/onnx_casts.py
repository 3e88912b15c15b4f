"""Whole-number inputs of ONNX graphs that are made real before anything else.

A graph that begins with ``Cast(pixels) -> float`` computes a function of real numbers, of which
its input takes the whole ones alone.  With the type that the cast makes as the type of the input,
the same graph takes all of them, and the cast does nothing.
"""

from typing import Any

import numpy as np


def behind_casts(model: Any) -> tuple[Any, dict[str, np.dtype]]:
    """Return a model whose whole-number inputs take real numbers, where casts make them such.

    Returns
    -------
    model : onnx.ModelProto
        Another one where any input was changed; else the one given.
    changed : dict of str to numpy.dtype
        Inputs that were changed, and what they took before.
    """
    from onnx import ModelProto, TensorProto, helper  # noqa: PLC0415 - half a second

    real = {TensorProto.FLOAT, TensorProto.DOUBLE}
    held = {tensor.name for tensor in model.graph.initializer}
    changed: dict[str, np.dtype] = {}
    found = ModelProto()
    found.CopyFrom(model)
    outputs = {value.name for value in found.graph.output}
    for value in found.graph.input:
        before = np.dtype(helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
        if value.name in held or value.name in outputs or before.kind not in "iub":
            continue
        users = [node for node in found.graph.node if value.name in node.input]
        kinds = {_made(node) if node.op_type == "Cast" else None for node in users}
        if len(kinds) == 1 and (kind := kinds.pop()) in real:
            value.type.tensor_type.elem_type = kind
            changed[value.name] = before
    return (found, changed) if changed else (model, {})


def _made(node: Any) -> int | None:
    """The type that a cast makes."""
    return next((a.i for a in node.attribute if a.name == "to"), None)
