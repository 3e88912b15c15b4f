"""The scaling of columns that an ONNX graph begins with, and the domain that it suggests."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import revelu
from revelu.adapters import open_oracle
from revelu.adapters.onnx_runtime import OnnxTarget
from revelu.network import zoo
from revelu.recovery import Status

D = 4
NETWORK = zoo.random_network([D, 6, 1], 3)
OFFSET = np.array([14.0, -250.0, 0.0, 3e4])
SCALE = np.array([0.5, 2.0, -64.0, 2.0**-10])


def scaler(offset=OFFSET, scale=SCALE):
    """A node of scikit-learn's exporter."""
    domain = {"domain": "ai.onnx.ml"}
    return helper.make_node("Scaler", ["x"], ["s"], offset=offset, scale=scale, **domain)


def write(path, nodes, tensors, value="s"):
    """Write a graph that goes on from ``value`` with the network."""
    (W, A), (b, c) = NETWORK.weights, NETWORK.biases
    more = [
        helper.make_node("Cast", [value], ["in"], to=TensorProto.DOUBLE),
        helper.make_node("Gemm", ["in", "W", "b"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "A", "c"], ["y"], transB=1),
    ]
    tensors = {**tensors, "W": W, "b": b, "A": A, "c": c}
    graph = helper.make_graph(
        [*nodes, *more],
        "scaled",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["N", D])],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["N", 1])],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in tensors.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, ir_version=10, opset_imports=opsets)
    path.write_bytes(model.SerializeToString())
    return path


def chain(*steps):
    """Nodes ``kind`` with the constant ``v``, one after another, and the constants."""
    nodes, tensors, value = [], {}, "x"
    for i, (kind, v, *first) in enumerate(steps):
        tensors[f"v{i}"], out = v, "s" if i == len(steps) - 1 else f"s{i}"
        operands = [f"v{i}", value] if first else [value, f"v{i}"]
        nodes.append(helper.make_node(kind, operands, [out]))
        value = out
    return nodes, tensors


CHAINS = {
    "Sub, Mul": (("Sub", OFFSET), ("Mul", SCALE)),
    "Sub, Div": (("Sub", OFFSET[None]), ("Div", 1.0 / SCALE[None])),
    "Add, Mul": (("Add", -OFFSET), ("Mul", SCALE)),
    "Mul, Sub": (("Mul", SCALE), ("Sub", OFFSET * SCALE)),
    "constant first": (("Sub", OFFSET, True), ("Mul", -SCALE, True)),
}


@pytest.mark.parametrize("steps", CHAINS.values(), ids=CHAINS.keys())
def test_chains_of_columns_suggest_where_they_are_standardised(tmp_path, steps):
    domain = OnnxTarget(write(tmp_path / "n.onnx", *chain(*steps))).suggested_domain
    np.testing.assert_allclose(domain.center, OFFSET, atol=1e-12)
    np.testing.assert_allclose(domain.spread, 1.0 / np.abs(SCALE))


def test_a_scaler_suggests_its_inputs_and_the_network_comes_back_in_their_units(tmp_path):
    path = write(tmp_path / "n.onnx", [scaler()], {})
    # The operator answers float32: fit takes what it leaves.
    domain = OnnxTarget(path).suggested_domain
    np.testing.assert_array_equal(domain.center, OFFSET)
    np.testing.assert_array_equal(domain.spread, 1.0 / np.abs(SCALE))
    assert "Scaler" in domain.words
    exact = write(tmp_path / "exact.onnx", *chain(*CHAINS["Sub, Mul"]))
    recovery = revelu.extract(str(exact), budget=600, checks=200)
    assert recovery.status is Status.RECOVERED
    X = OFFSET + np.random.default_rng(1).normal(size=(500, D)) / SCALE
    Y = open_oracle(exact)(X)
    assert np.abs(recovery.network(X) - Y).max() < 1e-8 * Y.std()
    assert recovery.domain == domain.words


def test_columns_of_scale_zero_or_of_one_number_for_all(tmp_path):
    zero = write(tmp_path / "zero.onnx", [scaler(scale=[0.5, 0.0, 1.0, 2.0])], {})
    np.testing.assert_array_equal(OnnxTarget(zero).suggested_domain.spread, [2.0, 1.0, 1.0, 0.5])
    np.testing.assert_array_equal(OnnxTarget(zero).suggested_domain.center, OFFSET)
    one = write(tmp_path / "one.onnx", *chain(("Div", np.float64(255.0))))
    np.testing.assert_array_equal(OnnxTarget(one).suggested_domain.spread, np.full(D, 255.0))


MIXED = {
    "nothing": ([], {}, "x"),
    "no affine map": ([helper.make_node("Div", ["v", "x"], ["s"])], {"v": OFFSET}, "s"),
    "also read unscaled": (
        [
            helper.make_node("Mul", ["x", "v"], ["m"]),
            helper.make_node("Add", ["x", "m"], ["s"]),
        ],
        {"v": SCALE},
        "s",
    ),
    "too large": (*chain(("Mul", np.full(D, 5e-324))), "s"),
}


@pytest.mark.parametrize("graph", MIXED.values(), ids=MIXED.keys())
def test_what_scales_no_columns_suggests_nothing(tmp_path, graph):
    nodes, tensors, value = graph
    assert OnnxTarget(write(tmp_path / "n.onnx", nodes, tensors, value)).suggested_domain is None
