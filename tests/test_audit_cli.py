"""``revelu audit``: what is printed, refused, and told to the shell."""

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.report.sections import _share


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run the command line in a folder with ``truth.npz`` and inputs, in little time."""
    monkeypatch.chdir(tmp_path)
    revelu.zoo.random_network([4, 2, 3], seed=1).save(tmp_path / "truth.npz")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((20, 4)))
    np.save(tmp_path / "wrong.npy", np.zeros((3, 5)))
    (tmp_path / "text.npy").write_text("no array")
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    return lambda *arguments: runner.invoke(app, ["audit", *map(str, arguments)])


def test_summary_has_a_line_a_row_and_ends_in_advice(invoke):
    result = invoke("truth.npz", "--inputs", "x.npy", "--price", 3)
    assert result.exit_code == ExitCode.CERTIFIED
    assert result.stdout.startswith("truth.npz: gives away its weights\n")
    lines = [line.split()[0] for line in result.stdout.splitlines()]
    assert lines.count("noise") == 2
    for word in ("as", "float32", "labels", "top-1", "advice", "queries", "time"):
        assert word in lines
    for heading in ("fidelity, given", "labels, given", "cost"):
        assert heading in result.stdout


@pytest.mark.parametrize("budget", [50, 1_500])
def test_a_spent_budget_is_its_own_exit_code(invoke, budget):
    result = invoke("truth.npz", "--budget", budget, "--json")
    assert result.exit_code == ExitCode.EXHAUSTED
    account = one_object(result.stdout)
    assert account["status"] == "budget_exhausted"
    assert account["queries"] <= budget
    assert bool(account["rows"]) == (budget > 100)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("truth.npz", "--inputs", "wrong.npy"), "expected inputs of shape (n, 4)"),
        (("truth.npz", "--inputs", "text.npy"), "not a readable .npy file"),
        (("truth.npz", "--inputs", "missing.npy"), "missing.npy: "),
        (("truth.npz", "--price", "-1"), "--price must be"),
        (("missing.npz",), "no such file"),
        (("truth.npz", "--report", "x.pdf"), "ends in .html"),
    ],
)
def test_what_makes_no_sense_is_a_line(invoke, arguments, words):
    result = invoke(*arguments, "--json")
    assert result.exit_code == ExitCode.USAGE
    assert words in one_object(result.stdout)["error"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (1.0, "100.00%"), (0.99999999, "> 99.99%"), (0.5, "50.00%"), (-2.0, "< 0%")],
)
def test_all_is_said_of_nothing_less(value, shown):
    assert _share(value).text == shown
