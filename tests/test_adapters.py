"""Adapters: what a user calls a target becomes an oracle, or one line of refusal."""

import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import revelu
from revelu.adapters import demos, open_oracle
from revelu.adapters.demos import demo_path
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
        [helper.make_tensor_value_info(n, KINDS[t], shape) for n, t, shape in outputs],
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
    with pytest.raises(InputError, match="give dim_in"):
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
    with pytest.raises(InputError, match=f"{type(target).__name__} is no kind of target"):
        open_oracle(target, 1)


def test_journals_are_refused(tmp_path):
    with pytest.raises(InputError, match="journal"):
        open_oracle(NETWORK, journal=tmp_path / "journal")


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
    with pytest.raises(InputError, match="give dim_in"):
        open_oracle(path)
    np.testing.assert_array_equal(open_oracle(path, 3)(X), np.maximum(X, 0))


def test_a_declared_number_of_inputs_is_held_to(saved):
    assert open_oracle(saved("network.onnx"), 3).dim_in == 3
    with pytest.raises(InputError, match="has 3 inputs, not 4"):
        open_oracle(saved("network.onnx"), 4)


D, F, INT = np.float64, np.float32, np.int64
# name: nodes, inputs, outputs, what the message names
NOT_VECTORS = {
    "an image": (
        [("Relu", "image", "y")],
        [("image", D, ["N", 1, 8, 8])],
        [("y", D, ["N", 1, 8, 8])],
        r"'image' has shape \['N', 1, 8, 8\]",
    ),
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
    "two outputs": (
        [("Relu", "x", "label"), ("Neg", "x", "scores")],
        [("x", F, ["N", 3])],
        [("label", F, ["N", 3]), ("scores", F, ["N", 3])],
        r"2 outputs \(label, scores\)",
    ),
    "whole numbers": (
        [("Neg", "ids", "y")],
        [("ids", INT, ["N", 3])],
        [("y", INT, ["N", 3])],
        r"'ids' is a tensor\(int64\)",
    ),
}


@pytest.mark.parametrize("name", NOT_VECTORS)
def test_what_is_not_a_vector_in_and_out_is_named(tmp_path, name):
    nodes, inputs, outputs, word = NOT_VECTORS[name]
    path = write_graph(tmp_path / "other.onnx", nodes, inputs, outputs)
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


@pytest.mark.parametrize("name", ["network.txt", "network", "nothing", ""])
def test_unknown_kinds_name_the_known(name):
    with pytest.raises(InputError, match=r"demo:NAME, \.onnx and \.npz files, module:attribute"):
        open_oracle(name)


@pytest.mark.parametrize("suffix", [".joblib", ".pkl", ".pickle", ".pt", ".pth", ".PT"])
def test_pickled_files_need_trust_and_then_support(tmp_path, suffix):
    path = tmp_path / f"model{suffix}"
    path.touch()
    with pytest.raises(UntrustedError, match="--trust"):
        open_oracle(path)
    with pytest.raises(InputError, match="not supported") as caught:
        open_oracle(path, trust=True)
    assert not isinstance(caught.value, UntrustedError)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_served_models_are_refused(scheme):
    with pytest.raises(InputError, match="served models are not supported"):
        open_oracle(f"{scheme}://localhost:1/v2/models/m", 3)


# --- processes and failures


def test_a_file_target_travels_without_its_session(saved):
    target = OnnxTarget(saved("network.onnx"))
    copy = pickle.loads(pickle.dumps(target))  # noqa: S301 - its own
    assert copy._session is None
    np.testing.assert_array_equal(copy(X), target(X))
    assert copy.dim_in == 3


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
    with pytest.raises(TargetError, match=r"fails\.onnx failed on a query"):
        oracle(X)
    assert oracle.n_queries == len(X)


# --- what executes code


@pytest.fixture
def in_module(tmp_path, monkeypatch):
    """Write a module to the working folder; give its name."""
    monkeypatch.chdir(tmp_path)
    name = f"module_of_{tmp_path.name}".replace("-", "_").replace("[", "").replace("]", "")

    def write(text):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return name

    yield write
    sys.modules.pop(name, None)


ANSWERS = """
import pathlib
pathlib.Path("imported").touch()

class Model:
    dim_in = 3
    def __call__(self, X):
        return X.sum(axis=1)

class holder:
    model = Model()

number = 7
"""


def test_a_module_is_imported_with_trust_only(in_module, tmp_path):
    name = in_module(ANSWERS)
    with pytest.raises(UntrustedError, match="--trust"):
        open_oracle(f"{name}:holder.model")
    assert not (tmp_path / "imported").exists()
    before = list(sys.path)
    oracle = open_oracle(f"{name}:holder.model", trust=True)
    np.testing.assert_array_equal(oracle(X)[:, 0], X.sum(axis=1))
    assert oracle.dim_in == 3
    assert sys.path == before


@pytest.mark.parametrize(
    ("text", "attribute", "word"),
    [
        (ANSWERS, "missing", "missing"),
        (ANSWERS, "holder.missing", "missing"),
        (ANSWERS, "number", "not callable"),
        ("raise RuntimeError('out of order')", "f", "RuntimeError: out of order"),
        ("raise SystemExit(0)", "f", "SystemExit"),
        ("def (", "f", "SyntaxError"),
        ("import sys; sys.path.pop(0); 1 / 0", "f", "ZeroDivisionError"),
    ],
)
def test_a_module_that_does_not_give_it_is_named(in_module, text, attribute, word):
    before = list(sys.path)
    with pytest.raises(InputError, match=word):
        open_oracle(f"{in_module(text)}:{attribute}", 3, trust=True)
    assert sys.path == before


def test_a_module_that_does_not_exist_is_named(in_module):
    del in_module
    with pytest.raises(InputError, match="no_such_module_here"):
        open_oracle("no_such_module_here:f", 3, trust=True)


# --- demos


def test_the_demo_opens_by_name():
    oracle = open_oracle("demo:digits")
    queries = np.random.default_rng(0).normal(size=(5, 64))
    wanted = revelu.load(demo_path("digits"))(queries)
    np.testing.assert_allclose(oracle(queries), wanted, rtol=1e-12, atol=1e-12)
    assert (oracle.dim_in, oracle.dim_out, oracle.name) == (64, 10, "demo:digits")


def test_unknown_demos_list_the_known():
    with pytest.raises(InputError, match="no demo 'letters'; there are: digits"):
        open_oracle("demo:letters")


@pytest.mark.parametrize("name", demos())
def test_demos_come_along(name):
    assert demo_path(name).is_file()
    assert demos()[name]


def right_digits(network):
    """The fraction of scikit-learn's digits that a network classifies right."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    return (np.argmax(network(pixels / 16.0), axis=1) == digits).mean()


def test_the_demo_reads_digits():
    network = revelu.load(demo_path("digits"))
    assert network.architecture == (64, 32, 10)
    assert right_digits(network) >= 0.95


@pytest.mark.slow
def test_the_script_trains_such_a_demo():
    script = Path(__file__).parents[1] / "scripts" / "train_digits.py"
    spec = spec_from_file_location("train_digits", script)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    network, accuracy = module._train(0)
    assert network.architecture == (64, 32, 10)
    assert accuracy >= 0.95
    assert right_digits(network) >= 0.95
