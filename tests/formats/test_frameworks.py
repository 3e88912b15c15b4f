"""torch, in and out; safetensors and state dicts; ONNX Runtime beside torch."""

import io
import os
import re
import subprocess
import sys
import zipfile
from itertools import pairwise

import joblib
import numpy as np
import onnx
import onnxruntime
import pytest
import safetensors.numpy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from torch import nn

import revelu
from revelu import Network, Status
from revelu.adapters.torch_modules import ReluNetwork, TorchTarget
from revelu.errors import FormatError, InputError, MissingExtraError, UntrustedError
from revelu.formats import save_arrays, suffixes
from revelu.network import zoo
from revelu.numerics.links import SOFTMAX

WITH_SKIP = Network(
    [[[1.0, -2.0], [0.5, 3.0]], [[1.0, -1.0]]], [[0.1, 0.2], [0.3]], ([[2.0, 1.0]], [0.7])
)
NETWORKS = [
    zoo.random_network([3, 4, 2], seed=0),
    zoo.random_network([5, 4, 3, 1], seed=1),
    WITH_SKIP,
    Network([np.zeros((0, 2)), np.zeros((1, 0))], [[], [1.0]], ([[1.0, 2.0]], [0.5])),
    Network([[[1.0, 2.0]]], [[3.0]]),
]
STATES = (".pt", ".pth", ".safetensors")


def points(d, seed=0, n=40):
    return np.random.default_rng(seed).standard_normal((n, d))


def plain(*widths, dtype=torch.float64):
    """Linear layers with ReLUs between, as a torch user writes them."""
    torch.manual_seed(0)
    layers = []
    for d, k in pairwise(widths):
        layers += [nn.Linear(d, k), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).to(dtype)


# --- round trips


@pytest.mark.parametrize("suffix", suffixes())
@settings(max_examples=12)
@given(
    widths=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    skip=st.booleans(),
    seed=st.integers(0, 10**6),
    exponent=st.integers(-30, 30),
)
def test_round_trips_to_the_last_bit(tmp_path_factory, suffix, widths, skip, seed, exponent):
    rng = np.random.default_rng(seed)
    pairs = list(pairwise(widths))
    size = 10.0**exponent
    weights = [size * rng.standard_normal((k, d)) for d, k in pairs]
    biases = [size * rng.standard_normal(k) for _, k in pairs]
    V = (
        rng.standard_normal((widths[-1], widths[max(len(widths) - 3, 0)])),
        rng.standard_normal(widths[-1]),
    )
    network = Network(weights, biases, V if skip and len(widths) > 2 else None)
    path = tmp_path_factory.mktemp("files") / f"network{suffix}"
    network.save(path)
    assert revelu.load(path) == network
    network.save(path, np.float32)
    read = revelu.load(path)
    for arrays, single in ((network.weights, read.weights), (network.biases, read.biases)):
        assert all(
            np.array_equal(a.astype(np.float32), b) for a, b in zip(arrays, single, strict=True)
        )


@pytest.mark.parametrize("suffix", STATES)
@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_networks_of_every_shape_are_written_and_asked(tmp_path, suffix, network):
    path = tmp_path / f"network{suffix}"
    network.save(path)
    assert revelu.load(path) == network
    X = points(network.dim_in)
    np.testing.assert_array_equal(revelu.open_oracle(path)(X), network(X))


@pytest.mark.parametrize("suffix", [".npz", *STATES])
def test_a_softmax_has_no_place_beside_weights(tmp_path, suffix):
    with pytest.raises(FormatError, match="logits only"):
        save_arrays(
            tmp_path / f"n{suffix}", [np.ones((1, 1))], [np.ones(1)], None, "float64", head=SOFTMAX
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_torch_and_onnx_runtime_answer_what_the_network_does(tmp_path, network, dtype):
    X = points(network.dim_in).astype(dtype)
    network.save(tmp_path / "n.onnx", dtype)
    session = onnxruntime.InferenceSession(tmp_path / "n.onnx")
    network.save(tmp_path / "n.pt", dtype)
    module = ReluNetwork.from_state_dict(torch.load(tmp_path / "n.pt", weights_only=True))
    atol = 64 * np.finfo(dtype).eps * max(np.abs(network(X)).max(), 1.0)
    for answer in (session.run(None, {"input": X})[0], module(torch.tensor(X)).detach().numpy()):
        assert answer.dtype == dtype
        np.testing.assert_allclose(answer, network(X), rtol=0, atol=atol)
    if dtype is np.float64:
        again = ReluNetwork.from_network(network)
        assert all(
            torch.equal(a, b)
            for a, b in zip(again.state_dict().values(), module.state_dict().values(), strict=True)
        )


@pytest.mark.parametrize("network", NETWORKS[:3], ids=repr)
def test_the_graph_written_runs_in_torch_node_by_node(tmp_path, network):
    network.save(tmp_path / "n.onnx")
    graph = onnx.load(tmp_path / "n.onnx").graph
    X = points(network.dim_in)
    values = {t.name: torch.tensor(onnx.numpy_helper.to_array(t)) for t in graph.initializer}
    values["input"] = torch.tensor(X)
    run = {
        "Gemm": nn.functional.linear,
        "Relu": torch.relu,
        "Add": torch.add,
        "Identity": lambda x: x,
    }
    for node in graph.node:
        values[node.output[0]] = run[node.op_type](*(values[name] for name in node.input))
    np.testing.assert_allclose(values["output"].numpy(), network(X), rtol=1e-13, atol=1e-13)


# --- torch modules


def test_a_module_is_recovered_within_its_budget():
    module = plain(6, 4, 2)
    recovery = revelu.extract(module, budget=600, checks=200)
    assert recovery.status is Status.RECOVERED
    weights = [m.weight.detach().numpy() for m in module if isinstance(m, nn.Linear)]
    biases = [m.bias.detach().numpy() for m in module if isinstance(m, nn.Linear)]
    assert revelu.align(recovery.network, Network(weights, biases)).max_parameter_error < 1e-7


def test_a_module_is_asked_as_it_was_opened_and_left_as_it_is():
    module = nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.Linear(4, 1)).double().train()
    oracle = revelu.open_oracle(module)
    X = points(3)
    Y = oracle(X)
    np.testing.assert_array_equal(oracle(X), Y)  # nothing is dropped
    assert module.training
    assert module[1].training
    with torch.no_grad():
        module[0].weight.zero_()
    np.testing.assert_array_equal(oracle(X), Y)
    assert all(p.grad is None for p in module.parameters())


def test_a_float32_module_answers_float32():
    answer = TorchTarget(plain(3, 2, 1, dtype=torch.float32))(points(3))
    assert answer.dtype == np.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_modules_of_short_numbers_answer_these(dtype):
    module, X = plain(3, 4, 2, dtype=dtype), points(3)
    answer = TorchTarget(module)(X)
    with torch.no_grad():
        wanted = module(torch.tensor(X, dtype=dtype))
    assert answer.dtype == np.float32  # which holds all of them
    assert np.array_equal(answer, wanted.double().numpy())


def test_a_module_that_does_not_say_its_inputs_is_told_them():
    class Sum(nn.Module):
        def forward(self, x):
            return x.sum(dim=1)

    with pytest.raises(InputError, match="give dim_in"):
        revelu.open_oracle(Sum())
    np.testing.assert_allclose(revelu.open_oracle(Sum(), 3)(points(3))[:, 0], points(3).sum(axis=1))


class Fails(torch.nn.Module):
    """A module that takes zeros alone."""

    def forward(self, X):
        if X.any():
            raise RuntimeError("out of order")
        return X


def test_a_module_that_fails_is_a_failing_target():
    with pytest.raises(revelu.TargetError, match="out of order"):
        revelu.open_oracle(Fails(), 4)(points(4))


def test_a_module_that_takes_no_such_rows_says_so():
    with pytest.raises(InputError, match="takes no rows of shape 4"):
        revelu.open_oracle(plain(3, 2, 1), 4)(points(4))


def test_journals_tell_modules_apart(tmp_path):
    one, other = plain(3, 2, 1), plain(3, 2, 1)
    with torch.no_grad():
        other[0].weight[0, 0] += 1.0
    with revelu.open_oracle(one, journal=tmp_path / "j.db") as oracle:
        oracle(points(3))
    with revelu.open_oracle(plain(3, 2, 1), journal=tmp_path / "j.db") as oracle:
        assert oracle.n_queries == 0 or oracle(points(3)).shape == (40, 1)
    with pytest.raises(InputError):
        revelu.open_oracle(other, journal=tmp_path / "j.db")


class Evil:
    """What leaves a trace where it is unpickled."""

    def __init__(self, trace):
        self.trace = str(trace)

    def __reduce__(self):
        return os.mkdir, (self.trace,)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".joblib"])
def test_code_runs_with_trust_only(tmp_path, suffix):
    path, trace = tmp_path / f"evil{suffix}", tmp_path / "trace"
    if suffix == ".joblib":
        joblib.dump(Evil(trace), path)
    else:
        torch.save({"layers.0.weight": Evil(trace), "schema": torch.tensor(1)}, path)
    for act in (revelu.open_oracle, revelu.load):
        with pytest.raises(InputError):
            act(path)
    # No model is made of what makes folders; what PyTorch refuses may be a module's own class.
    advice = "do not open it" if suffix == ".joblib" else "--trust"
    with pytest.raises(UntrustedError, match=advice):
        revelu.open_oracle(path)
    assert not trace.exists()
    with pytest.raises(FormatError, match="holds a "):
        revelu.open_oracle(path, trust=True)
    assert trace.exists()


def test_a_pickled_module_opens_with_trust(tmp_path):
    module = plain(3, 2, 1)
    torch.save(module, tmp_path / "m.pt")
    with pytest.raises(UntrustedError, match="--trust"):
        revelu.open_oracle(tmp_path / "m.pt")
    X = points(3)
    answer = revelu.open_oracle(tmp_path / "m.pt", trust=True)(X)
    np.testing.assert_array_equal(answer, module(torch.tensor(X)).detach().numpy())


@pytest.mark.parametrize("trust", [False, True])
def test_state_dicts_of_other_modules_are_refused(tmp_path, trust):
    # Nothing in them says what is between the layers.
    torch.save(plain(3, 2, 1).state_dict(), tmp_path / "m.pt")
    with pytest.raises(FormatError, match="schema"):
        revelu.open_oracle(tmp_path / "m.pt", trust=trust)
    with pytest.raises(InputError, match="not the state dict"):
        ReluNetwork.from_state_dict(plain(3, 2, 1).state_dict())


def test_what_users_save_of_the_module_is_read(tmp_path):
    network = zoo.random_network([4, 3, 2], seed=0)
    module = ReluNetwork.from_network(network)
    # Transposed in memory, and two tensors of one storage.
    module.layers[0].weight.data = module.layers[0].weight.data.T.contiguous().T
    module.layers[0].bias.data = torch.cat([module.layers[0].bias.data] * 2)[3:]
    torch.save(module.state_dict(), tmp_path / "m.pt")
    assert revelu.load(tmp_path / "m.pt") == network


# --- hostile state dicts


def rewritten(path, change):
    """The archive with its pickle changed."""
    content = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(content, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, change(data) if name.endswith("data.pkl") else data)
    path.write_bytes(content.getvalue())


def with_number(after, number):
    """Put a whole number in place of the small one behind what matches."""
    pattern = re.compile(b"(%b)K." % after, re.DOTALL)
    big = b"J" + number.to_bytes(4, "little")
    return lambda data: pattern.sub(lambda m: m[1] + big, data, count=1)


@pytest.mark.parametrize(
    "change",
    [
        with_number(b"cpuq.", 2**31 - 1),  # numbers of a storage
        with_number(b"QK.", 2**31 - 1),  # of a tensor
        with_number(b"Q", 2**30),  # where they begin
        lambda data: data[: len(data) // 2],
        lambda _: b"\x80\x02" + b"(" * 100000 + b".",
        lambda _: b"\x80\x02" + b")\x86" * 3 + b".",
        lambda _: b"\x80\x02.",
    ],
)
def test_pickles_that_declare_what_is_not_there_are_refused(tmp_path, change):
    path = tmp_path / "m.pt"
    zoo.random_network([3, 4, 1], seed=0).save(path)
    before = path.read_bytes()
    rewritten(path, change)
    assert path.read_bytes() != before
    with pytest.raises(InputError):
        revelu.load(path)


def test_compressed_archives_are_refused(tmp_path):
    path = tmp_path / "m.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**6))
    with pytest.raises(FormatError, match="compressed"):
        revelu.load(path)


def test_the_house_reader_reads_what_torch_reads(tmp_path):
    path = tmp_path / "m.pt"
    network = zoo.random_network([3, 4, 2], seed=3)
    network.save(path, np.float32)
    state = torch.load(path, weights_only=True)
    for i, W in enumerate(revelu.load(path).weights):
        np.testing.assert_array_equal(state[f"layers.{i}.weight"].numpy(), W)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"schema": np.array(2)}, "schema"),
        ({"schema": None}, "schema"),
        ({"layers.1.bias": None}, r"layers\.1\.bias"),
        ({"layers.3.weight": np.ones((1, 1))}, "missing"),
        ({"other": np.ones(1)}, "other"),
        ({"layers.0.weight": np.ones((4, 3), np.int64)}, "int64"),
        ({"layers.0.weight": np.ones((4, 3), np.float16)}, "float16"),
        ({"layers.0.weight": np.full((4, 3), np.nan)}, "finite"),
        ({"layers.0.weight": np.ones((4, 2))}, "layers.1|takes|entries|weights"),
    ],
)
def test_safetensors_of_other_things_are_refused(tmp_path, change, word):
    path = tmp_path / "n.safetensors"
    zoo.random_network([3, 4, 1], seed=0).save(path)
    named = {**safetensors.numpy.load(path.read_bytes()), **change}
    path.write_bytes(safetensors.numpy.save({k: a for k, a in named.items() if a is not None}))
    if "takes" in word:
        revelu.load(path)  # two inputs fewer are another network, but one
        return
    with pytest.raises(FormatError, match=word):
        revelu.load(path)


# --- what is not installed


def run_python(folder, code):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("package", "act"),
    [
        ("safetensors", "revelu.load('n.safetensors')"),
        ("torch", "network.save('m.pt')"),
        ("torch", "import revelu.adapters.torch_modules"),
        ("joblib", "revelu.open_oracle('m.joblib', trust=True)"),
        ("sklearn", "revelu.open_oracle('fitted.joblib', trust=True)"),
    ],
)
def test_what_is_missing_is_named(tmp_path, package, act):
    zoo.random_network([2, 1], seed=0).save(tmp_path / "n.safetensors")
    (tmp_path / "m.joblib").touch()
    joblib.dump(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "fitted.joblib")
    code = f"""
import sys
sys.modules[{package!r}] = None
import revelu
network = revelu.zoo.random_network([2, 1], seed=0)
try:
    {act}
except revelu.MissingExtraError as error:
    print(error)
"""
    done = run_python(tmp_path, code)
    assert "pip install" in done.stdout, done.stderr


def test_state_dicts_are_read_without_torch(tmp_path):
    zoo.random_network([2, 3, 1], seed=0).save(tmp_path / "n.pt")
    code = "import sys; sys.modules['torch'] = None; import revelu; print(revelu.load('n.pt'))"
    done = run_python(tmp_path, code)
    assert done.stdout.startswith("<Network 2-3-1"), done.stderr
    assert issubclass(MissingExtraError, revelu.ReveluError)
