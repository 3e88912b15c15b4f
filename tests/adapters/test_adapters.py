"""Adapters: what a user calls a target becomes an oracle, or one line of refusal."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from revelu.adapters import open_oracle
from revelu.adapters.onnx_runtime import OnnxTarget
from revelu.errors import FormatError, InputError, TargetError, UntrustedError
from revelu.network import zoo
from revelu.oracle import Oracle

NETWORK = zoo.random_network([3, 5, 2], 0)
X = np.random.default_rng(1).normal(size=(7, 3))

KINDS = {np.float64: TensorProto.DOUBLE, np.float32: TensorProto.FLOAT, np.int64: TensorProto.INT64}


def row_sums(X):
    """A target without a number of inputs."""
    return X.sum(axis=1)


def write_graph(path, nodes, inputs, outputs, tensors=None):
    """Write a graph of nodes ``(kind, inputs, outputs)``; values are ``(name, dtype, shape)``."""
    graph = helper.make_graph(
        [helper.make_node(kind, i.split(), o.split()) for kind, i, o in nodes],
        "other",
        [helper.make_tensor_value_info(n, KINDS[t], shape) for n, t, shape in inputs],
        [
            helper.make_tensor_sequence_value_info(n, TensorProto.FLOAT, shape)
            if t is list
            else helper.make_tensor_value_info(n, KINDS[t], shape)
            for n, t, shape in outputs
        ],
        [numpy_helper.from_array(a, name) for name, a in (tensors or {}).items()],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    path.write_bytes(model.SerializeToString())
    return path


def write_relu(path, shape):
    """Write ``relu(x)`` of float64 inputs of this declared shape."""
    values = [("x", np.float64, shape)], [("y", np.float64, shape)]
    return write_graph(path, [("Relu", "x", "y")], *values)


@pytest.fixture
def saved(tmp_path):
    """Write ``NETWORK`` to a file of this name."""

    def save(name, dtype=np.float64):
        NETWORK.save(tmp_path / name, dtype)
        return tmp_path / name

    return save


# --- objects


def test_a_callable_needs_its_number_of_inputs():
    oracle = open_oracle(row_sums, 3, budget=10, box=(-9, 9))
    np.testing.assert_array_equal(oracle(X)[:, 0], X.sum(axis=1))
    assert (oracle.dim_in, oracle.dim_out, oracle.n_queries) == (3, 1, 7)
    assert (oracle.budget, oracle.box) == (10, (-9.0, 9.0))
    with pytest.raises(InputError, match=r"give dim_in$"):
        open_oracle(row_sums)


@pytest.mark.parametrize("dim_in", [0, -1, 2.5, "3"])
def test_a_number_of_inputs_is_a_positive_whole_number(dim_in):
    with pytest.raises(InputError, match="whole number"):
        open_oracle(row_sums, dim_in)


def test_a_network_says_its_number_of_inputs():
    oracle = open_oracle(NETWORK)
    np.testing.assert_array_equal(oracle(X), NETWORK(X))
    assert oracle.dim_in == open_oracle(NETWORK, 3).dim_in == 3
    with pytest.raises(InputError, match="has 3 inputs, not 4"):
        open_oracle(NETWORK, 4)


def test_an_oracle_is_returned_as_it_is():
    oracle = Oracle(row_sums, 3)
    assert open_oracle(oracle) is oracle
    with pytest.raises(InputError, match="dim_in, budget, box"):
        open_oracle(oracle, 3, budget=1, box=(0, 1))


@pytest.mark.parametrize("target", [None, 3, [[1.0]], b"demo:digits"])
def test_other_objects_are_refused(target):
    with pytest.raises(InputError, match=f"{type(target).__name__} is not a target"):
        open_oracle(target, 1)


class Predictor:
    """A model as scikit-learn makes them."""

    def predict(self, X):
        return X.sum(axis=1)


def test_a_model_that_predicts_is_told_to_pass_its_predict():
    with pytest.raises(InputError, match=r"Predictor is not a target.*pass its \.predict"):
        open_oracle(Predictor(), 3)
    np.testing.assert_array_equal(open_oracle(Predictor().predict, 3)(X)[:, 0], X.sum(axis=1))


# --- files


@pytest.mark.parametrize("as_path", [str, Path])
def test_archives_are_evaluated_in_float64(saved, as_path):
    path = saved("network.npz")
    oracle = open_oracle(as_path(path))
    np.testing.assert_array_equal(oracle(X), NETWORK(X))
    assert oracle.name == str(path)


def test_a_float64_graph_answers_in_float64(saved):
    Y = open_oracle(saved("network.onnx"))(X)
    np.testing.assert_allclose(Y, NETWORK(X), rtol=1e-13, atol=1e-13)
    assert not np.array_equal(Y, Y.astype(np.float32))


def test_a_float32_graph_answers_in_float32(saved):
    Y = open_oracle(saved("network.onnx", np.float32))(X)
    np.testing.assert_allclose(Y, NETWORK(X), rtol=1e-5, atol=1e-5)
    assert Y.dtype == np.float64
    np.testing.assert_array_equal(Y, Y.astype(np.float32))


@pytest.mark.parametrize("rows", [1, 2, 7, 10])
def test_a_fixed_batch_size_is_kept_to(tmp_path, rows):
    oracle = open_oracle(write_relu(tmp_path / "fixed.onnx", [rows, 3]))
    np.testing.assert_array_equal(oracle(X), np.maximum(X, 0))
    assert oracle.n_queries == len(X)


def test_an_undeclared_number_of_inputs_is_asked_for(tmp_path):
    path = write_relu(tmp_path / "open.onnx", ["N", "d"])
    with pytest.raises(InputError, match=r"give dim_in$"):
        open_oracle(path)
    np.testing.assert_array_equal(open_oracle(path, 3)(X), np.maximum(X, 0))


def test_a_declared_number_of_inputs_is_held_to(saved):
    assert open_oracle(saved("network.onnx"), 3).dim_in == 3
    with pytest.raises(InputError, match="has 3 inputs, not 4"):
        open_oracle(saved("network.onnx"), 4)


D, F, INT, SEQUENCE = np.float64, np.float32, np.int64, list
# name: nodes, inputs, outputs, what the message names
NOT_VECTORS = {
    "a vector without rows": (
        [("Relu", "x", "y")],
        [("x", D, [3])],
        [("y", D, [3])],
        r"'x' has shape \[3\]",
    ),
    "two inputs": (
        [("Add", "left right", "y")],
        [("left", D, ["N", 3]), ("right", D, ["N", 3])],
        [("y", D, ["N", 3])],
        r"2 inputs \(left, right\)",
    ),
    "whole numbers": (
        [("Neg", "ids", "y")],
        [("ids", INT, ["N", 3])],
        [("y", INT, ["N", 3])],
        "has the output y: nothing that shows weights",
    ),
    "labels": (
        [("ArgMax", "x", "label")],
        [("x", D, ["N", 3])],
        [("label", INT, [1, 3])],
        "has the output label: nothing that shows weights",
    ),
    "a sequence": (
        [("SequenceConstruct", "x", "rows")],
        [("x", F, ["N", 3])],
        [("rows", SEQUENCE, ["N", 3])],
        "has the output rows: nothing that shows weights",
    ),
}


@pytest.mark.parametrize("name", NOT_VECTORS)
def test_what_is_not_a_vector_in_and_out_is_named(tmp_path, monkeypatch, name):
    nodes, inputs, outputs, word = NOT_VECTORS[name]
    path = write_graph(tmp_path / "other.onnx", nodes, inputs, outputs)
    monkeypatch.setattr(OnnxTarget, "__call__", None)  # opening asks nothing
    with pytest.raises(InputError, match=word) as caught:
        open_oracle(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["missing.onnx", "missing.npz"])
def test_missing_files_are_named(tmp_path, name):
    with pytest.raises(FormatError, match=f"{name}: no such file"):
        open_oracle(tmp_path / name)


@pytest.mark.parametrize("name", ["network.onnx", "network.npz"])
def test_damaged_files_are_named(saved, name):
    path = saved(name)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FormatError, match=name) as caught:
        open_oracle(path)
    assert "\n" not in str(caught.value)


def test_what_the_runtime_cannot_run_is_named(tmp_path):
    # The checker looks at each node, not at whether the shapes fit.
    path = write_graph(
        tmp_path / "odd.onnx",
        [("Gemm", "x W", "y")],
        [("x", D, ["N", 3])],
        [("y", D, ["N", 2])],
        {"W": np.ones((4, 2))},
    )
    with pytest.raises(FormatError, match="ONNX Runtime cannot run it") as caught:
        open_oracle(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["network.txt", "network", "nothing", "", "n" * 5000])
def test_unknown_kinds_name_the_known(name):
    with pytest.raises(
        InputError, match=r"not a target; .*demo:NAME, .*\.onnx, \.npz, .*module:attr"
    ):
        open_oracle(name)


@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".PKL"])
def test_pickled_files_that_cannot_be_read_need_trust(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    whole = pickle.dumps({"a": "no model"})
    for damaged in (b"", whole[:-3], whole[:-1], b"no pickle"):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match="look for a whole copy of it") as said:
            open_oracle(path)
        assert "--trust" not in f"{said.value}"
    path.write_bytes(whole)
    with pytest.raises(FormatError, match="--trust opens it, and runs whatever it says"):
        open_oracle(path)
    path.write_bytes(pickle.dumps(Fraction(1, 2)))
    with pytest.raises(UntrustedError, match=r"names fractions\.Fraction.*nothing was run"):
        open_oracle(path)
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="cannot be opened by joblib"):
        open_oracle(path, trust=True)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mymodel.py:f", "write mymodel:f"),
        ("folder/mymodel.py:holder.f", r"write mymodel:holder\.f"),
        ("mymodel.py", "write mymodel:NAME"),
    ],
)
@pytest.mark.parametrize("trust", [False, True])
def test_a_python_file_is_named_by_its_module(name, hint, trust):
    with pytest.raises(InputError, match=hint) as caught:
        open_oracle(name, 3, trust=trust)
    assert not isinstance(caught.value, UntrustedError)


# --- processes and failures


def test_a_file_target_travels_without_its_session(saved):
    target = OnnxTarget(saved("network.onnx"))
    copy = pickle.loads(pickle.dumps(target))  # noqa: S301 - its own
    assert copy._session is None
    np.testing.assert_array_equal(copy(X), target(X))
    assert copy.dim_in == 3


def test_a_file_target_outlives_its_folder(saved, tmp_path, monkeypatch):
    saved("network.onnx")
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(OnnxTarget(Path("network.onnx")))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    copy = pickle.loads(pickled)  # noqa: S301 - its own
    np.testing.assert_allclose(copy(X), NETWORK(X), rtol=1e-13, atol=1e-13)


def test_a_file_target_runs_in_spawned_processes(saved):
    path = saved("network.onnx")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        Y = open_oracle(path, executor=executor)(X)
    np.testing.assert_array_equal(Y, open_oracle(path)(X))


def test_a_failure_of_the_runtime_names_the_target(tmp_path):
    # Which columns there are is known when rows come, and so is that they do not fit.
    path = write_graph(
        tmp_path / "fails.onnx",
        [("MatMul", "x W", "y")],
        [("x", D, ["N", "d"])],
        [("y", D, ["N", 2])],
        {"W": np.ones((4, 2))},
    )
    oracle = open_oracle(path, 3)
    with pytest.raises(TargetError, match=r"fails\.onnx failed on a query") as caught:
        oracle(X)
    assert "\n" not in str(caught.value)
    assert oracle.n_queries == len(X)


@pytest.mark.parametrize(
    ("kind", "numbers", "shape"),
    [("Tile", [2, 1], r"\(4, 3\)"), ("ReduceSum", [0], r"\(1, 3\)")],
)
def test_a_fixed_batch_that_is_answered_by_other_rows_is_named(tmp_path, kind, numbers, shape):
    path = write_graph(
        tmp_path / "other.onnx",
        [(kind, "x numbers", "y")],
        [("x", D, [2, 3])],
        [("y", D, ["M", 3])],
        {"numbers": np.array(numbers)},
    )
    oracle = open_oracle(path)
    with pytest.raises(TargetError, match=rf"other\.onnx answered shape {shape} to a batch of 2"):
        oracle(X)


def test_a_failure_of_the_runtime_is_told_in_one_line(saved):
    class Session:
        def run(self, *_):
            raise RuntimeError("out of memory\nat node 7\n")

    target = OnnxTarget(saved("network.onnx"))
    target._session = Session()
    with pytest.raises(TargetError, match=r"network\.onnx failed on a query: out of memory$"):
        Oracle(target, 3)(X)


def test_a_dimension_that_is_no_text_is_a_damaged_file(tmp_path):
    path = tmp_path / "n.onnx"
    zoo.random_network([3, 2, 1], seed=0).save(path)
    content = path.read_bytes()
    assert b"\x01N" in content
    path.write_bytes(content.replace(b"\x01N", b"\x01\xf7"))
    with pytest.raises(FormatError, match="not text"):
        open_oracle(path)
