"""Files say whether their network is certified, and so does what opens them."""

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.errors import FormatError
from revelu.formats import suffixes
from revelu.network import LayeredNetwork
from revelu.network.layers import Convolution, Dense, Relu

TRUTH = revelu.zoo.random_network([5, 3, 3], seed=3)
SUFFIXES = pytest.mark.parametrize("suffix", suffixes())


@pytest.fixture(scope="module")
def found():
    """The truth, recovered and certified; and as a budget left it."""
    whole = revelu.extract(TRUTH)
    short = revelu.extract(TRUTH, budget=whole.ledger.by_phase["recover"] + 70)
    assert whole.status is revelu.Status.RECOVERED
    assert short.status is revelu.Status.BUDGET_EXHAUSTED
    return whole.network, short.network


@SUFFIXES
def test_a_file_says_what_is_known_of_its_network(found, tmp_path, suffix):
    for network, certified in zip((*found, TRUTH), (True, False, None), strict=True):
        path = tmp_path / f"network{suffix}"
        network.save(path)
        loaded = revelu.load(path)
        assert (network.certified, loaded.certified) == (certified, certified)
        assert loaded == network
        assert ("not certified" in repr(loaded)) == (certified is False)
        assert ("not certified" in loaded._repr_html_()) == (certified is False)


def test_onnx_shows_it_to_other_tools(found, tmp_path):
    for network, mark, words in zip(found, ("yes", "no"), ("certified by", "NOT"), strict=True):
        network.save(tmp_path / "network.onnx")
        model = onnx.load(tmp_path / "network.onnx")
        assert {entry.key: entry.value for entry in model.metadata_props} == {"certified": mark}
        assert words in model.doc_string
    model.producer_name = "another"
    onnx.save(model, tmp_path / "other.onnx")
    assert revelu.load(tmp_path / "other.onnx").certified is None


def test_arrays_show_it_to_other_tools(found, tmp_path):
    found[1].save(tmp_path / "network.npz")
    assert np.load(tmp_path / "network.npz")["certified"] == 0
    safetensors = pytest.importorskip("safetensors")
    found[1].save(tmp_path / "network.safetensors")
    with safetensors.safe_open(tmp_path / "network.safetensors", "np") as file:
        assert file.metadata()["certified"] == "no"


def test_torch_modules_take_state_dicts_with_and_without_it(found, tmp_path):
    torch = pytest.importorskip("torch")
    from revelu.adapters.torch_modules import ReluNetwork

    for network, mark in zip((*found, TRUTH), (1, 0, None), strict=True):
        network.save(tmp_path / "network.pt")
        module = ReluNetwork(network.architecture).double()
        module.load_state_dict(torch.load(tmp_path / "network.pt"))
        assert (None if module.certified is None else int(module.certified)) == mark
        assert ("NOT certified" in repr(module)) == (mark == 0)
        assert ("certified" in module.state_dict()) == (mark is not None)


def test_layers_carry_it(tmp_path):
    rng = np.random.default_rng(0)
    kernel = Convolution(rng.normal(size=(2, 1, 3, 3)), rng.normal(size=2), (1, 5, 5))
    layers = [kernel, Relu(), Dense(rng.normal(size=(2, kernel.size_out)), np.zeros(2))]
    network = LayeredNetwork(layers).marked(certified=False)
    for name in ("layers.onnx", "rows.npz"):
        network.save(tmp_path / name)
        assert revelu.load(tmp_path / name).certified is False
    assert "not certified" in repr(network)


def test_arithmetic_says_nothing_of_its_result(found):
    assert found[0].after(np.eye(5)).certified is None
    assert found[0].marked(certified=True) is found[0]


def test_a_mark_that_is_none_is_refused(tmp_path):
    TRUTH.save(tmp_path / "network.npz")
    arrays = dict(np.load(tmp_path / "network.npz"))
    np.savez(tmp_path / "network.npz", **arrays, certified=np.array(2))
    with pytest.raises(FormatError, match="neither 0 nor 1"):
        revelu.load(tmp_path / "network.npz")


TARGET = """
import signal
import revelu
truth = revelu.zoo.random_network([5, 3, 3], seed=3)
asked = 0
def target(X):
    global asked
    asked += len(X)
    if asked > 1000:
        signal.raise_signal(signal.SIGTERM)
    return truth(X)
"""


@pytest.mark.parametrize("suffix", [".onnx", ".npz"])
def test_an_interrupted_extraction_is_said_to_be_uncertified(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    runner = CliRunner(env={"COLUMNS": "300", "NO_COLOR": "1"})
    for i, form in enumerate(("--json", "--quiet", "--seed=0")):
        name = f"ended_{suffix[1:]}_{i}"
        (tmp_path / f"{name}.py").write_text(TARGET)
        options = ("--trust", "--force", "--dim-in", "5")
        arguments = [f"{name}:target", *options, "-o", f"half{suffix}", form]
        result = runner.invoke(app, ["extract", *arguments])
        assert result.exit_code == ExitCode.INTERRUPTED
        if form == "--json":
            account = one_object(result.stdout)
            assert account["certified"] is False
            assert any("NOT certified" in text for text in account["warnings"])
        else:
            assert "what was found is NOT certified" in result.stdout
    assert f"half{suffix} (not certified)" in result.stdout
    assert revelu.load(f"half{suffix}").certified is False
    again = one_object(runner.invoke(app, ["extract", f"half{suffix}", "--json"]).stdout)
    assert any("says of itself that it is NOT certified" in text for text in again["notes"])
