"""ONNX files as exporters of every kind write them, made by hand; for benchmarks/targets.py."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from targets_way import CLASSES, D, Made, Rng, points, small_network, to_last

from revelu import Network
from revelu.types import FloatArray


def write_onnx(
    name: str,
    network: Network,
    dtype: Any,
    shape: list[Any],
    outputs: list[tuple[str, int, list[Any]]],
    head: list[Any] | None = None,
    opset: int = 17,
) -> None:
    """Write images or rows to logits, probabilities and a label."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    is_whole = np.dtype(dtype).kind in "iu"
    inner = np.float64 if is_whole else dtype
    (W, A), (b, c) = network.weights, network.biases
    tensors = zip(("W", "b", "A", "c"), (W, b, A, c), strict=True)
    node = helper.make_node
    first = [node("Cast", ["pixels"], ["real"], to=TensorProto.DOUBLE)] if is_whole else []
    nodes = [
        *first,
        node("Flatten", ["real" if is_whole else "pixels"], ["x"], axis=1),
        node("Gemm", ["x", "W", "b"], ["z"], transB=1),
        node("Relu", ["z"], ["h"]),
        node("Gemm", ["h", "A", "c"], ["logits"], transB=1),
        node("Softmax", ["logits"], ["probabilities"], axis=1),
        node("ArgMax", ["logits"], ["label"], axis=1, keepdims=0),
        *(head or []),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "exported",
        [value("pixels", kind, shape)],
        [value(*one) for one in outputs],
        [numpy_helper.from_array(np.asarray(a, inner), key) for key, a in tensors],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])
    Path(name).write_bytes(model.SerializeToString())


def onnx_images(rng: Rng) -> Made:
    """A float32 classifier of images, with a label, and probabilities."""
    network = small_network(rng)
    outputs = [
        ("label", TensorProto.INT64, ["N"]),
        ("probabilities", TensorProto.FLOAT, ["N", CLASSES]),
    ]
    write_onnx("model.onnx", network, np.float32, ["N", 1, 3, 4], outputs)
    return Made(
        "extract model.onnx", lambda X: to_last(network(X)), inputs=points(rng), rounding=1e-3
    )


def onnx_open_sizes(rng: Rng) -> Made:
    """An image whose height and width are left open."""
    network = small_network(rng)
    outputs = [("logits", TensorProto.DOUBLE, ["N", CLASSES])]
    write_onnx("model.onnx", network, np.float64, ["N", 1, "height", "width"], outputs)
    return Made("extract model.onnx --input-shape 1x3x4", network, inputs=points(rng))


def onnx_in_its_place(rng: Rng) -> Made:
    """As above; what is written takes images by the same names."""
    made = onnx_open_sizes(rng)
    return Made(f"{made.command} --like-input -o same.onnx", made.truth, inputs=made.inputs)


def onnx_labels(rng: Rng) -> Made:
    """Labels alone."""
    outputs = [("label", TensorProto.INT64, ["N"])]
    write_onnx("model.onnx", small_network(rng), np.float64, ["N", D], outputs)
    return Made("extract model.onnx", words="output label: nothing that shows weights")


def onnx_half(rng: Rng) -> Made:
    """float16, of four inputs and two neurons."""
    weights = [np.array([[0.5, 1.0, 0.0, 0.25], [-1.0, 0.5, 0.5, 0.0]]), np.array([[1.0, -0.75]])]
    network = Network(weights, [np.array([0.25, -0.5]), np.array([0.5])])
    outputs = [("logits", TensorProto.FLOAT16, ["N", 1])]
    write_onnx("model.onnx", network, np.float16, ["N", 4], outputs)
    return Made("extract model.onnx", network, inputs=points(rng, 4), rounding=2e-2)


def onnx_whole(rng: Rng, *, dtype: Any) -> Made:
    """Whole numbers, of which the file makes real ones."""
    network = small_network(rng)
    outputs = [("logits", TensorProto.DOUBLE, ["N", CLASSES])]
    write_onnx("model.onnx", network, dtype, ["N", D], outputs)
    return Made("extract model.onnx", network, inputs=points(rng))


def onnx_two_inputs(rng: Rng) -> Made:
    """Two inputs, of which one stays where a file puts it."""
    network = small_network(rng)
    outputs = [("logits", TensorProto.DOUBLE, ["N", CLASSES])]
    write_onnx("model.onnx", network, np.float64, ["N", D], outputs)
    model = onnx.load("model.onnx")
    del model.graph.input[:]
    for name, width in (("left", 5), ("right", D - 5)):
        value = helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["N", width])
        model.graph.input.append(value)
    joined = helper.make_node("Concat", ["left", "right"], ["pixels"], axis=1)
    model.graph.node.insert(0, joined)
    onnx.save(model, "model.onnx")
    stays = rng.standard_normal(D - 5)
    np.savez("stays.npz", right=stays)

    def truth(X: FloatArray) -> FloatArray:
        return network(np.column_stack([X, np.tile(stays, (len(X), 1))]))

    return Made(
        "extract model.onnx --input-name left --fixed stays.npz", truth, inputs=points(rng, 5)
    )


def onnx_foreign(rng: Rng) -> Made:
    """An operator that no runtime knows."""
    outputs = [("y", TensorProto.DOUBLE, ["N", CLASSES])]
    head = [helper.make_node("Magic", ["logits"], ["y"], domain="my.ops")]
    write_onnx("model.onnx", small_network(rng), np.float64, ["N", D], outputs, head)
    model = onnx.load("model.onnx")
    model.opset_import.append(helper.make_opsetid("my.ops", 1))
    onnx.save(model, "model.onnx")
    return Made("extract model.onnx", words="domain my.ops are none of the runtime's")


def onnx_newer(rng: Rng) -> Made:
    """An operator set that is to come."""
    outputs = [("logits", TensorProto.DOUBLE, ["N", CLASSES])]
    write_onnx("model.onnx", small_network(rng), np.float64, ["N", D], outputs, opset=99)
    return Made("extract model.onnx", words="earlier opset")
