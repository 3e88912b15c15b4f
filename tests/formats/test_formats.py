"""Formats: what is written reads back, runs elsewhere, and what is damaged is refused."""

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import revelu
from revelu.errors import FormatError
from revelu.formats import save_arrays, suffixes
from revelu.network import Network
from revelu.numerics.links import SOFTMAX

SUFFIXES = pytest.mark.parametrize("suffix", suffixes())

# The input, then hidden layers, then the output; hidden layers may be empty.
WIDTHS = st.tuples(
    st.integers(1, 6), st.lists(st.integers(1, 6), max_size=4), st.integers(1, 4)
).map(lambda t: [t[0], *t[1], t[2]])


def draw_network(widths, skip, seed):
    """A network of these widths, which may hold zeros, with or without a skip."""
    rng = np.random.default_rng(seed)
    pairs = list(zip(widths[1:], widths[:-1], strict=True))
    weights = [rng.normal(size=pair) for pair in pairs]
    biases = [rng.normal(size=k) for k, _ in pairs]
    before = widths[max(len(widths) - 3, 0)]
    pair = (rng.normal(size=(widths[-1], before)), rng.normal(size=widths[-1])) if skip else None
    return Network(weights, biases, pair)


def write_graph(path, nodes, tensors, inputs=(("x", ["N", 3]),), outputs=("y",), kind="DOUBLE"):
    """An unchecked graph as another tool may have written it."""
    kind = getattr(TensorProto, kind)
    graph = helper.make_graph(
        nodes,
        "other",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, kind, ["N", "K"]) for name in outputs],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in tensors.items()],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    path.write_bytes(model.SerializeToString())
    return path


def run_onnx(path, X):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: X})[0]


def assert_same_function(one, other, rtol=1e-12):
    """Equal values wherever either can be asked; ``one`` is a network, ``other`` a callable."""
    X = np.random.default_rng(0).normal(size=(50, one.dim_in)) * 3
    np.testing.assert_allclose(other(X), one(X), rtol=rtol, atol=rtol * (1 + np.abs(one(X)).max()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples of a property."""
    return tmp_path_factory.mktemp("formats")


# --- round trips


@SUFFIXES
@given(widths=WIDTHS, skip=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_float64_reads_back_bit_for_bit(folder, suffix, widths, skip, seed):
    network = draw_network(widths, skip, seed)
    path = folder / f"network{suffix}"
    network.save(path)
    assert revelu.load(path) == network
    assert revelu.load(path).architecture == tuple(widths)


@SUFFIXES
@given(widths=WIDTHS, skip=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_float32_reads_back_as_the_cast(folder, suffix, widths, skip, seed):
    network = draw_network(widths, skip, seed)
    path = folder / f"network{suffix}"
    network.save(path, dtype=np.float32)
    cast = Network(
        [W.astype(np.float32) for W in network.weights],
        [b.astype(np.float32) for b in network.biases],
        network.skip and tuple(a.astype(np.float32) for a in network.skip),
    )
    assert revelu.load(path) == cast != network


@SUFFIXES
def test_extreme_numbers_survive(tmp_path, suffix):
    numbers = [[5e-324, -0.0, 1.7976931348623157e308, 0.1]]
    path = tmp_path / f"network{suffix}"
    Network([numbers], [[-0.0]]).save(path)
    loaded = revelu.load(path)
    assert loaded.weights[0].tobytes() == np.array(numbers).tobytes()
    assert np.signbit(loaded.biases[0]).all()


@given(
    hidden=st.lists(st.integers(0, 2), min_size=1, max_size=4),
    skip=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_empty_layers_are_kept_by_npz_and_dissolved_by_onnx(folder, hidden, skip, seed):
    network = draw_network([3, *hidden, 2], skip, seed)
    for suffix in suffixes():
        network.save(folder / f"empty{suffix}")
    assert revelu.load(folder / "empty.npz") == network
    loaded = revelu.load(folder / "empty.onnx")
    assert_same_function(network, loaded)
    assert_same_function(network, lambda X: run_onnx(folder / "empty.onnx", X))
    assert 0 not in loaded.architecture


def test_no_hidden_neuron_with_a_skip_is_an_affine_onnx_network(tmp_path):
    V, c, e = np.array([[1.0, 2.0, 3.0]]), np.array([0.5]), np.array([0.25])
    Network([np.zeros((0, 3)), np.zeros((1, 0))], [np.zeros(0), c], (V, e)).save(
        tmp_path / "a.onnx"
    )
    assert revelu.load(tmp_path / "a.onnx") == Network([V], [c + e])


# --- what ONNX Runtime makes of it


@given(widths=WIDTHS, skip=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_onnx_runtime_agrees(folder, widths, skip, seed):
    network = draw_network(widths, skip, seed)
    network.save(folder / "run.onnx")
    assert_same_function(network, lambda X: run_onnx(folder / "run.onnx", X))


def test_onnx_runtime_agrees_in_float32(tmp_path):
    network = draw_network([5, 7, 6, 3], True, 0)
    network.save(tmp_path / "run.onnx", dtype=np.float32)

    def run(X):
        Y = run_onnx(tmp_path / "run.onnx", X.astype(np.float32))
        assert Y.dtype == np.float32
        return Y

    assert_same_function(network, run, rtol=1e-5)


@pytest.mark.parametrize("skip", [False, True])
def test_softmax_is_written_and_left_off_when_read(tmp_path, skip):
    network = draw_network([4, 6, 3], skip, 1)
    arrays = (list(network.weights), list(network.biases), network.skip)
    save_arrays(tmp_path / "p.onnx", *arrays, np.float64, head=SOFTMAX)
    X = np.random.default_rng(2).normal(size=(20, 4))
    exponentials = np.exp(network(X))
    wanted = exponentials / exponentials.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(run_onnx(tmp_path / "p.onnx", X), wanted, rtol=1e-12)
    assert revelu.load(tmp_path / "p.onnx") == network
    with pytest.raises(FormatError, match="no softmax"):
        save_arrays(tmp_path / "p.npz", *arrays, np.float64, head=SOFTMAX)


# --- graphs of other tools

RNG = np.random.default_rng(5)
W, B = RNG.normal(size=(4, 3)), RNG.normal(size=4)
A, C = RNG.normal(size=(2, 4)), RNG.normal(size=2)
PLAIN = Network([W, A], [B, C])


def constant(name, array):
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs.split(), [output], **attributes)


RELU = node("Relu", "h", "r")
# name: nodes, initializers, the network that they are
READABLE = {
    "as verification contests have it: the mean taken off, rows in a line": (
        [
            node("Sub", "x mean", "s"),
            node("Reshape", "s shape", "f"),
            node("MatMul", "f W", "m"),
            node("Add", "m b", "h"),
            RELU,
            node("Gemm", "r A c", "y", transB=1),
        ],
        {"mean": np.array([[1.0, -2.0, 0.5]]), "shape": np.array([-1, 3])}
        | {"W": W.T, "b": B, "A": A, "c": C},
        Network([W, A], [B - W @ [1.0, -2.0, 0.5], C]),
    ),
    "MatMul and Add": (
        [
            node("MatMul", "x W", "m"),
            node("Add", "m b", "h"),
            RELU,
            node("MatMul", "r A", "n"),
            node("Add", "c n", "y"),
        ],
        {"W": W.T, "b": B, "A": A.T, "c": C[None]},
        PLAIN,
    ),
    "Gemm without transB, scaled": (
        [node("Gemm", "x W b", "h", alpha=2.0, beta=0.5), RELU, node("Gemm", "r A c", "y")],
        {"W": W.T / 2, "b": B * 2, "A": A.T, "c": C},
        PLAIN,
    ),
    "Gemm without a bias": (
        [node("Gemm", "x W", "h", transB=1), RELU, node("MatMul", "r A", "y")],
        {"W": W, "A": A.T},
        Network([W, A], [np.zeros(4), np.zeros(2)]),
    ),
    "Identity, Flatten and Dropout between": (
        [
            node("Flatten", "x", "f"),
            node("Identity", "f", "i"),
            node("Gemm", "i W b", "h", transB=1),
            RELU,
            node("Dropout", "r", "d"),
            node("Gemm", "d A c", "y", transB=1),
        ],
        {"W": W, "b": B, "A": A, "c": C},
        PLAIN,
    ),
    "Constant nodes": (
        [
            constant("W", W),
            constant("b0", B),
            node("Identity", "b0", "b"),
            node("Gemm", "x W b", "h", transB=1),
            RELU,
            constant("A", A),
            node("Gemm", "r A c", "y", transB=1),
        ],
        {"c": C},
        PLAIN,
    ),
    "a bias before the weights, of one number": (
        [node("Add", "x s", "z"), node("MatMul", "z W", "h"), RELU, node("Gemm", "r A c", "y")],
        {"s": np.array([0.5]), "W": W.T, "A": A.T, "c": C},
        Network([W, A], [W @ np.full(3, 0.5), C]),
    ),
    "two affine maps in a row": (
        [node("Gemm", "x W b", "h", transB=1), node("Gemm", "h A c", "y", transB=1)],
        {"W": W, "b": B, "A": A, "c": C},
        Network([A @ W], [A @ B + C]),
    ),
}


@pytest.mark.parametrize("name", READABLE)
def test_graphs_of_other_tools_are_read(tmp_path, name):
    nodes, tensors, network = READABLE[name]
    path = write_graph(tmp_path / "other.onnx", nodes, tensors)
    loaded = revelu.load(path)
    assert loaded.architecture == network.architecture
    assert_same_function(network, loaded)
    assert_same_function(network, lambda X: run_onnx(path, X))


LAYER = node("Gemm", "x W b", "h", transB=1)
LAST = node("Gemm", "r A c", "y", transB=1)
# name: nodes, further initializers, what the message names
UNREADABLE = {
    "a layer after Tanh": ([LAYER, node("Tanh", "h", "r"), LAST], {}, "Gemm"),
    "Conv": ([node("Conv", "x W", "y")], {"W": np.ones((1, 3, 1))}, "Conv"),
    "a method's name": ([LAYER, node("One", "h", "y")], {}, "One"),
    "Constant without a tensor": (
        [helper.make_node("Constant", [], ["v"], value_float=1.0), node("Gemm", "x v", "y")],
        {},
        "Constant",
    ),
    "Relu of the inputs": ([node("Relu", "x", "r"), node("Gemm", "r V", "y")], {}, "weights"),
    "layers side by side": (
        [LAYER, RELU, node("Relu", "h", "r2"), node("Add", "r r2", "y")],
        {},
        "not in a chain",
    ),
    "a residual block": (
        [LAYER, RELU, node("Add", "r h", "s"), node("Gemm", "s A c", "y", transB=1)],
        {},
        "Gemm",
    ),
    "Flatten of the batch": ([node("Flatten", "x", "f", axis=0), LAYER], {}, "Flatten"),
    "Softmax over the batch": (
        [LAYER, RELU, node("Gemm", "r A c", "z", transB=1), node("Softmax", "z", "y", axis=0)],
        {},
        "Softmax",
    ),
    "a layer after Softmax": (
        [LAYER, node("Softmax", "h", "s"), node("Relu", "s", "y")],
        {},
        "Relu",
    ),
    "a bias of each row": ([LAYER, node("Add", "h e", "y")], {"e": B[:, None]}, "Add"),
    "weights that are a vector": ([node("MatMul", "x e", "y")], {"e": np.ones(3)}, "MatMul"),
    "whole numbers": ([node("MatMul", "x e", "y")], {"e": np.ones((3, 2), int)}, "MatMul"),
    "a transposed input": ([node("Gemm", "x W", "y", transA=1)], {}, "transposed"),
    "an output from nowhere": ([LAYER, node("Identity", "h", "z"), constant("y", B)], {}, "output"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_not_a_dense_relu_network_is_named(tmp_path, monkeypatch, name):
    monkeypatch.setattr(onnx.checker, "check_model", lambda _: None)  # the reader alone decides
    nodes, more, word = UNREADABLE[name]
    tensors = {"W": W, "b": B, "A": A, "c": C, "V": np.ones((3, 2)), **more}
    path = write_graph(tmp_path / "other.onnx", nodes, tensors)
    with pytest.raises(FormatError, match=word) as caught:
        revelu.load(path)
    assert str(path) in str(caught.value)


def test_two_inputs_are_named(tmp_path):
    path = write_graph(
        tmp_path / "two.onnx",
        [node("Add", "x z", "y")],
        {},
        inputs=(("x", ["N", 3]), ("z", ["N", 3])),
    )
    with pytest.raises(FormatError, match="2 inputs"):
        revelu.load(path)
