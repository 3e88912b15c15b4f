"""``revelu diagnose``: what is printed, written, refused, and how it ends."""

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.numerics.links import SOFTMAX
from revelu.report.sections import _of_diagnosis

TRUTH = revelu.zoo.random_network([4, 5, 1], seed=1)
DEEP = revelu.zoo.random_network([4, 3, 5, 1], seed=1)


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run the command line in a folder with ``truth.npz``."""
    monkeypatch.chdir(tmp_path)
    TRUTH.save(tmp_path / "truth.npz")
    DEEP.save(tmp_path / "deep.npz")
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    return lambda *arguments: runner.invoke(app, ["diagnose", *map(str, arguments)])


def test_json_has_its_fields(invoke):
    result = invoke("truth.npz", "--json", "--seed", 8)
    assert (result.exit_code, result.stderr) == (0, "")
    report = one_object(result.stdout)
    assert (report["schema"], report["status"], report["seed"]) == (1, "finished", 8)
    assert report["architecture"] == [4, 5, 1]
    assert report["parameters"] == TRUTH.n_parameters
    assert report["queries"] == sum(report["by_phase"].values())
    names = [c["name"] for c in report["measured"]["conditions"]]
    assert names == [c["name"] for c in report["exact"]["conditions"]]
    assert report["delta"] == report["exact"]["delta"] > 0
    assert report["measured"]["delta"] == pytest.approx(report["delta"], rel=1e-3)
    assert report["at_risk"] in names
    assert report["precision"]["digits_lost"] > 0
    assert report["query_counts"]["theorem_1"] > 0
    assert report["top_layers"] is None
    assert report["perturbation"] is None
    assert {"revelu", "numpy", "scipy"} <= set(report["versions"])


def test_deeper_file_has_its_top_layers_checked(invoke):
    report = one_object(invoke("deep.npz", "--json").stdout)
    assert "top_layers" in [c["name"] for c in report["exact"]["conditions"]]
    assert {"margin", "gradients_vanish", "probability", "narrowing"} <= set(report["top_layers"])
    assert report["query_counts"]["theorem_3"] > 0
    assert "top layers" in invoke("deep.npz").stdout


def test_summary_says_the_conditions_and_the_cost(invoke):
    text = invoke("truth.npz").stdout
    flat = " ".join(text.split())
    assert text.splitlines()[0].startswith("truth.npz: regular with delta ")
    for words in ("by queries", "from weights", "axis angle", "at risk", "digits fewer", "queries"):
        assert words in flat


def test_quiet_is_the_verdict_alone(invoke):
    result = invoke("truth.npz", "-q")
    assert result.stdout.count("\n") == 1
    assert result.stdout.startswith("truth.npz: regular")


def test_perturbed_network_is_written(invoke, tmp_path):
    result = invoke("truth.npz", "--perturb", 0.01, "-o", "a.npz", "-o", "a.onnx", "--json")
    assert result.exit_code == 0
    report = one_object(result.stdout)
    assert report["outputs"] == ["a.npz", "a.onnx"]
    written = revelu.load(tmp_path / "a.npz")
    assert written == revelu.load(tmp_path / "a.onnx")
    moved = np.abs(written.weights[0] - TRUTH.weights[0])
    assert 0 < moved.max() <= 0.01 * (1 + 1e-9)
    change = report["perturbation"]
    assert (change["amplitude"], change["lemma_amplitude"]) == (0.01, 2.0**-4)
    assert change["before"] == report["exact"]
    again = one_object(invoke("a.npz", "--json").stdout)
    assert again["exact"]["delta"] == change["after"]["delta"]
    assert "perturbed" in invoke("truth.npz", "--perturb", 0.01).stdout


def test_classifier_is_written_with_its_softmax(invoke, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    from revelu import formats

    network = revelu.zoo.random_network([4, 3, 3], seed=2)
    arrays = (list(network.weights), list(network.biases), None)
    formats.save_arrays(tmp_path / "soft.onnx", *arrays, np.dtype(np.float64), head=SOFTMAX)
    result = invoke("soft.onnx", "--perturb", 0.01, "-o", "a.onnx", "--json")
    assert result.exit_code == 0, result.stderr
    assert one_object(result.stdout)["softmax"] is True
    session = ort.InferenceSession(tmp_path / "a.onnx", providers=["CPUExecutionProvider"])
    (Y,) = session.run(None, {session.get_inputs()[0].name: np.ones((1, 4))})
    assert Y.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["missing.npz"], "missing.npz"),
        (["truth.npz", "-o", "a.npz"], "--perturb"),
        (["truth.npz", "--perturb", 0], "amplitude"),
        (["truth.npz", "--perturb", -1], "amplitude"),
        (["truth.npz", "--perturb", 0.1, "-o", "truth.npz"], "target itself"),
        (["truth.npz", "--perturb", 0.1, "-o", "no/such/a.npz"], "a.npz"),
        (["truth.npz", "--perturb", 0.1, "-o", "a.xyz"], "a.xyz"),
        (["truth.npz", "--seed", -1], "seed"),
        (["answers:relu", "--dim-in", 3], "--trust"),
        (["answers:relu", "--dim-in", 3, "--trust", "--perturb", 0.1], "weights"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else None,
)
def test_bad_input_is_one_line_and_exit_2(invoke, module, arguments, word):
    result = invoke(*arguments)
    assert result.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert word in result.stderr
    assert not (module / "asked").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (["answers:relu"], 0, "finished"),
        (["answers:tanh"], 1, "not_in_class"),
        (["answers:random"], 1, "not_deterministic"),
        (["answers:relu", "--budget", 70], 3, "budget_exhausted"),
        (["answers:fails"], 4, "error"),
        (["answers:nan"], 4, "error"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else None,
)
@pytest.mark.usefixtures("module")
def test_exit_codes(invoke, arguments, code, status):
    result = invoke(*arguments, "--trust", "--dim-in", 3, "--json")
    report = one_object(result.stdout)
    assert (result.exit_code, report["status"]) == (code, status)


@pytest.mark.usefixtures("module")
def test_reason_stands_where_figures_would(invoke):
    text = invoke("answers:tanh", "--trust", "--dim-in", 3).stdout
    assert text.splitlines()[0] == "answers:tanh: not diagnosed: not in class"
    assert "curve" in text


@pytest.mark.slow
def test_float32_demo_is_diagnosed_from_its_weights(invoke):
    result = invoke("demo:mnist", "--json")
    report = one_object(result.stdout)
    assert (result.exit_code, report["measured"]) == (0, None)
    # The noise floor, segments on which it is not smooth, segments that are affine, and pixels
    # that act together.
    assert report["queries"] <= 256 + 156 + 40 + 32
    assert report["kind"]["function"] == "piecewise linear"
    assert report["exact"]["hyperplanes"] == 32
    assert any("float32" in note for note in report["warnings"])


def account_of_kind(function, delta=0.1, evidence=(), command_line=""):
    kind = {
        "function": function,
        "filters": None,
        "evidence": ["it jumps"],
        "queries": 64,
        "extract_with": None if function == "steps" else "",
        "extract_queries": None,
    }
    kind |= dict.fromkeys(("hidden_layers", "units", "structure"), "unknown")
    account = {"task": "diagnose", "domain": "of N(0, I)", "kind": kind, "delta": delta}
    account |= {"top_layers": None, "perturbation": None, "query_counts": {}}
    return account | {"evidence": list(evidence), "command_line": command_line}


def test_next_is_the_command_for_this_target():
    line = (
        "revelu diagnose 'a b.joblib' --report p.html --perturb 0.1 --like rows.csv --trust --json"
    )
    rows = dict(_of_diagnosis(account_of_kind("piecewise linear", command_line=line)))
    assert rows["next"] == "revelu extract 'a b.joblib' --like rows.csv --trust"
    assert "not regular" not in rows
    account = account_of_kind("unknown", command_line="revelu diagnose --image 8x8x1 a.onnx")
    account["kind"]["extract_with"] = "--image 8x8x1"
    assert dict(_of_diagnosis(account))["next"] == "revelu extract a.onnx --image 8x8x1"


def test_a_target_that_is_not_regular_may_be_extracted_all_the_same():
    rows = dict(_of_diagnosis(account_of_kind("piecewise linear", delta=0.0)))
    assert "does not stop revelu extract" in rows["not regular"]
    assert "not regular" not in dict(_of_diagnosis(account_of_kind("steps", delta=0.0)))


def test_a_step_function_is_named_and_its_evidence_told_once():
    rows = dict(_of_diagnosis(account_of_kind("steps", evidence=["it jumps"])))
    assert rows["kind"].startswith("step function")
    assert "it jumps" not in rows["told by"]
