"""What the command line says to try next, and that it helps."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.network import LayeredNetwork
from revelu.network.layers import Convolution, Dense, Relu

TRUTH = revelu.zoo.random_network([5, 4, 1], seed=1)


@pytest.fixture
def extract(tmp_path, monkeypatch):
    """The exit code and the account of an extraction from ``TRUTH``."""
    monkeypatch.chdir(tmp_path)
    TRUTH.save(tmp_path / "truth.npz")
    TRUTH.save(tmp_path / "float32.onnx", np.float32)

    def run(target, *arguments):
        words = ["extract", target, "--json", *map(str, arguments)]
        result = CliRunner().invoke(app, words)
        return result.exit_code, one_object(result.stdout)

    return run


@pytest.mark.parametrize("checks", [3000, 40])
@pytest.mark.parametrize("left", [1, 20, 50])
@pytest.mark.parametrize("journal", [(), ("--journal", "run.db")], ids=["", "journal"])
def test_budget_that_is_said_to_do_does(extract, checks, left, journal):
    _, whole = extract("truth.npz")
    cost = whole["by_phase"]["noise"] + whole["by_phase"]["recover"]
    code, report = extract("truth.npz", "--budget", cost + left, "--checks", checks, *journal)
    assert code == ExitCode.EXHAUSTED
    enough = int(re.search(r"--budget (\d+) should do", report["evidence"][-1])[1])
    code, report = extract("truth.npz", "--budget", enough, "--checks", checks, *journal)
    assert code == ExitCode.CERTIFIED
    assert report["queries"] <= enough


def cost_of(method):
    """What `revelu methods` prints for it."""
    return next(known.cost for known in revelu.METHODS if known.name == method)


def test_unfinished_recovery_says_what_it_costs(extract):
    code, report = extract("truth.npz", "--budget", 70)
    assert code == ExitCode.EXHAUSTED
    assert f"takes {cost_of('one_hidden')} query a parameter" in report["evidence"][-1]


def test_unfinished_labels_say_what_labels_cost(extract, tmp_path):
    (tmp_path / "classes.py").write_text(
        "import revelu\ntruth = revelu.load('truth.npz')\ndef ask(X): return truth(X)[:, 0] > 0\n"
    )
    code, report = extract("classes:ask", "--trust", "--dim-in", 5, "--budget", 600)
    assert (code, report["method"]) == (ExitCode.EXHAUSTED, "labels")
    assert "--labels" in report["evidence"][0]
    assert f"{cost_of('labels')} queries a parameter" in report["evidence"][-1]


def test_seconds_have_no_advice_in_queries(extract):
    code, report = extract("truth.npz", "--max-seconds", 1e-9)
    assert code == ExitCode.EXHAUSTED
    assert not any("query a parameter" in text for text in report["evidence"])


def test_exact_method_sends_float32_answers_to_auto(extract):
    code, report = extract("float32.onnx", "--method", "one_hidden", "--budget", 20_000)
    assert code == ExitCode.NOT_CERTIFIED
    assert "--method auto" in report["evidence"][-1]
    code, report = extract("float32.onnx", "--method", "auto")
    assert code == ExitCode.CERTIFIED
    assert not report["evidence"]


@pytest.mark.parametrize("budget", [5, 64, 100])
@pytest.mark.parametrize("checks", [3000, 40])
@pytest.mark.parametrize("journal", [(), ("--journal", "run.db")], ids=["", "journal"])
def test_budget_that_is_said_to_do_for_verification_does(
    tmp_path, monkeypatch, budget, checks, journal
):
    monkeypatch.chdir(tmp_path)
    TRUTH.save(tmp_path / "truth.npz")
    TRUTH.save(tmp_path / "same.npz")

    def verify(budget):
        words = ["verify", "same.npz", "truth.npz", "--json", "--budget", budget, *journal]
        done = CliRunner().invoke(app, [*map(str, words), "--checks", str(checks)])
        return done.exit_code, one_object(done.stdout)

    code, report = verify(budget)
    assert code == ExitCode.EXHAUSTED
    enough = int(re.search(r"--budget (\d+) should do", report["evidence"][-1])[1])
    code, report = verify(enough)
    assert code == ExitCode.CERTIFIED
    assert report["queries"] <= enough


def test_budget_that_does_for_no_target_is_said_to(extract):
    code, report = extract("truth.npz", "--budget", 10)
    assert code == ExitCode.EXHAUSTED
    least = int(re.search(r"no target takes less than --budget (\d+)", report["evidence"][-1])[1])
    # The noise floor, and the smallest certificate.
    assert least == 64 + 2 * 59
    affine = revelu.Network([[[1.0, 2.0]], [[1.0]]], [[1e6], [0.0]])
    affine.save("affine.npz")
    assert extract("affine.npz", "--budget", least - 1)[0] == ExitCode.EXHAUSTED


def test_a_budget_under_the_noise_floor_says_what_that_takes():
    found = revelu.recover_span(TRUTH, budget=10)
    assert "the noise floor alone takes 64" in found.evidence[0]
    found = revelu.recover_span(TRUTH, budget=70)
    assert "noise floor" not in found.evidence[0]


def test_a_file_behind_csv_is_told_where_it_goes(capsys):
    with pytest.raises(SystemExit):
        app(["diagnose", "demo:digits", "--csv", "rows.csv"])
    assert "--csv > FILE" in capsys.readouterr().err


def test_answers_of_few_digits_are_told_how_to_have_more(extract):
    deep = revelu.zoo.random_network([6, 5, 4, 1], seed=2)
    deep.save("deep32.onnx", np.float32)
    deep.save("deep64.onnx", np.float64)
    budget = ("--budget", 1500)
    code, report = extract("deep32.onnx", *budget)
    assert code == ExitCode.EXHAUSTED
    assert any("export the model in float64" in said for said in report["evidence"])
    _, report = extract("deep64.onnx", *budget)
    assert not any("export the model" in said for said in report["evidence"])


def test_no_budget_is_advised_for_what_no_method_finds(extract):
    image = (1, 6, 6)
    rng = np.random.default_rng(0)
    first = Convolution(rng.standard_normal((2, 1, 3, 3)), np.ones(2), image)
    second = Convolution(rng.standard_normal((2, 2, 3, 3)), np.ones(2), (2, 4, 4), pads=(1,) * 4)
    dense = Dense(rng.standard_normal((3, 32)), np.zeros(3))
    LayeredNetwork([first, Relu(), second, Relu(), dense]).save("cnn.onnx")
    code, report = extract("cnn.onnx", "--budget", 1000)
    assert code == ExitCode.EXHAUSTED
    said = " ".join(report["evidence"])
    assert "no method here finds pads of a second convolution" in said
    assert "--budget" not in said
