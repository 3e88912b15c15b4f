"""What is printed for people and for programs: whole lines in a pipe, CSV, JSON of bad usage."""

import csv
import io

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.cli.tables import show, table

TRUTH = revelu.zoo.random_network([5, 4, 1], seed=1)


@pytest.fixture
def piped(tmp_path, monkeypatch):
    """Run the command line in this process, with a pipe as its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    TRUTH.save(tmp_path / "truth.npz")
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (["methods"], "queries a parameter"),
        (["demos"], "demo:digits"),
        (["diagnose", "truth.npz"], "condition"),
        (["extract", "truth.npz"], "certificate"),
    ],
)
def test_lines_in_a_pipe_are_whole(piped, arguments, title):
    lines = piped(*arguments).stdout.splitlines()
    assert any(title in line for line in lines)
    assert not any("…" in line or line != line.rstrip() for line in lines)
    # Each line begins with its label or name: none is the rest of another.
    assert not any(line.startswith(" ") for line in lines)


WORDS = ["recovered", "what was seen", "weights", "a word, and others"]


@pytest.mark.parametrize("columns", [20, 33, 45, 80])
def test_a_narrow_terminal_gets_every_word(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", f"{columns}")
    found = table("t", WORDS[:2], [WORDS[2:]])
    show(found)
    text = capsys.readouterr().out
    assert set(text.split()) == set(" ".join(WORDS).split())
    assert max(map(len, text.splitlines())) <= columns


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_tables_are_csv_where_wanted(piped):
    rows = read(piped("methods", "--csv").stdout)
    assert [row[0] for row in rows] == ["method", *(m.name for m in revelu.METHODS)]
    assert len({len(row) for row in rows}) == 1
    assert read(piped("demos", "--csv").stdout)[0] == ["target", "is"]
    conditions = read(piped("diagnose", "truth.npz", "--csv").stdout)
    assert conditions[0][0] == "condition"
    assert {len(row) for row in conditions} == {len(conditions[0])}


def test_an_account_without_a_table_is_a_line_a_figure(piped):
    result = piped("extract", "truth.npz", "--csv")
    rows = dict(read(result.stdout))
    assert result.exit_code == 0
    assert rows["verdict"] == "recovered and certified"
    assert rows["network"] == f"5-4-1, {TRUTH.n_parameters} parameters"


@pytest.mark.parametrize("command", [["methods"], ["demos"], ["bench"], ["extract", "truth.npz"]])
def test_one_output_has_one_form(piped, command):
    result = piped(*command, "--json", "--csv")
    assert result.exit_code == ExitCode.USAGE
    assert "--csv" in one_object(result.stdout)["error"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["extract", "--no-such", "a.npz"], "--no-such"),
        (["extract", "a.npz", "--budget", "many"], "--budget"),
        (["nothing"], "nothing"),
        (["extract"], "TARGET"),
        (["compare", "a.npz"], "B"),
    ],
)
def test_bad_usage_is_one_line_and_one_object(piped, arguments, words):
    result = piped(*arguments, "--json")
    assert result.exit_code == ExitCode.USAGE
    report = one_object(result.stdout)
    assert (report["schema"], report["status"]) == (1, "error")
    assert words in report["error"]
    assert result.stderr == f"revelu: {report['error']}\n"
    silent = piped(*arguments)
    assert (silent.stdout, silent.stderr) == ("", result.stderr)


def test_halfspaces_are_csv(piped, tmp_path):
    X = np.random.default_rng(0).standard_normal((4_000, 5))
    np.savez(tmp_path / "labels.npz", X=X, y=(X[:, 0] >= 1.0).astype(float))
    rows = read(piped("learn", "labels.npz", "--halfspaces", "or", "--csv").stdout)
    assert rows[0] == ["halfspace", "threshold", "off by at most (95%)", "its angle, rad (95%)"]
