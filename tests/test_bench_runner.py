"""The runner of the benchmarks: runs are recorded, gone on from, and told of where they fail."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import page
import pytest
from processes import Call, called
from runner import Table, by_row, main

from revelu.cli.bench import TABLES


@dataclass(frozen=True)
class Row:
    name: str
    networks: int = 2


@dataclass(frozen=True)
class Run:
    seed: int
    limit: float | None


def one(row, seed, limit):
    if row.name == "fails" and seed % 2:
        raise ValueError("an odd seed")
    if row.name == "dies":
        os._exit(1)
    return Run(seed, limit)


def line(row, runs):
    return {"row": row.name, "runs": f"{len(runs)}", "seeds": f"{sum(run.seed for run in runs)}"}


ROWS = (Row("even"), Row("fails"), Row("dies", 1))
TABLE = Table(
    "t", "About.", ROWS, one, by_row(line), first_seed=10, outcome=Run, quick=lambda r: r == ROWS[0]
)


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A page with the table's mark, in place of the repository's; where runs are recorded."""
    monkeypatch.setattr(page, "PAGES", tmp_path / "pages")
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(os, "environ", os.environ.copy())
    page.PAGES.mkdir()
    text = "| row | runs | seeds |\n|---|---|---|\n| other | 1 | 1 |\n| even | 9 | 9 |"
    (page.PAGES / "t.md").write_text(f"<!-- t -->\n{text}\n<!-- /t -->\n\nBy hand.\n")
    return tmp_path / "runs.jsonl"


def entries(results):
    return [json.loads(line) for line in results.read_text().splitlines()]


def test_each_run_is_recorded_and_another_call_goes_on(results, capsys):
    def measure(*arguments):
        main(TABLE, arguments=["--row", "even", "--results", f"{results}", *arguments])
        return capsys.readouterr().out

    assert "| even | 1 | 10 |" in measure("--networks", "1")
    assert entries(results) == [{"row": "even", "seed": 10, "found": {"seed": 10, "limit": None}}]
    out = measure("--limit", "7")
    assert "| even | 2 | 21 |" in out
    assert "[1 of 1, " in out
    assert "seeds from 10; at most 7 seconds a run." in out
    assert [entry["found"] for entry in entries(results)][1:] == [{"seed": 11, "limit": 7.0}]
    before = results.read_text()
    for arguments in ((), ("--networks", "0"), ("--quick",), ("--seconds", "0", "--networks", "9")):
        assert "| even | " in measure(*arguments)
    assert results.read_text() == before


def test_runs_that_fail_are_recorded_and_told_and_the_others_count(results, capsys):
    arguments = ["--results", f"{results}", "--tables", f"{results.parent / 't.json'}"]
    main(TABLE, arguments=arguments)
    out = capsys.readouterr().out
    failures = [("fails", 11, "ValueError: an odd seed"), ("dies", 10, "died")]
    found = [(e["row"], e["seed"], e["failed"]) for e in entries(results) if "failed" in e]
    assert found == failures
    assert "| fails | 1 | 10 |" in out
    assert "| dies |" not in out
    for row, seed, words in failures:
        assert f"{row}, seed {seed}: {words}" in out.split("2 runs failed.")[1]
    assert json.loads((results.parent / "t.json").read_text())["tables"][0]["rows"][0][0] == "even"
    main(TABLE, arguments=arguments)
    assert len(entries(results)) == 5
    main(TABLE, arguments=[*arguments, "--row", "fails", "--again"])
    assert [entry["seed"] for entry in entries(results)[5:]] == [11]


@pytest.mark.usefixtures("results")
def test_the_table_is_kept_and_of_some_rows_these_alone():
    main(TABLE, arguments=["--row", "even", "--write"])
    text = (page.PAGES / "t.md").read_text()
    assert "| other | 1 | 1 |\n| even | 2 | 21 |\n<!-- /t -->\n\nBy hand.\n" in text
    main(TABLE, arguments=["--quick", "--write", "--networks", "1"])
    text = (page.PAGES / "t.md").read_text()
    assert "other" not in text
    assert "| even | 1 | 10 |\n\nrevelu " in text
    assert json.loads((page.RESULTS / "t.json").read_text())["tables"][0]["rows"] == [
        ["even", "1", "10"]
    ]


def test_rows_of_one_name_are_no_table():
    with pytest.raises(ValueError, match="one name"):
        main(replace(TABLE, rows=(Row("even"), Row("even", 3))), arguments=["--networks", "0"])


@pytest.mark.slow
def test_every_table_is_listed_and_has_a_mark_of_its_own():
    script = Path(page.__file__).with_name("registry.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert {line.split(",")[0].split(":")[0] for line in lines} <= set(TABLES)
    marks = [line.split(":")[0].split(", ")[1] for line in lines if ": needs " not in line]
    assert len(marks) == len(set(marks)) > 40
    for mark in marks:
        assert page.tables_of(page.kept(mark))


def ends(calls, patience=None):
    return [(found, failure) for _, found, failure in called(iter(calls), 1, patience)]


def test_calls_past_their_limit_are_stopped():
    sleeps = [Call(("a", seed), time.sleep, (60,)) for seed in range(2)]
    assert ends(sleeps, 0.2) == [(None, "stopped")] * 2


def test_a_call_has_the_variables_that_it_is_to_have():
    calls = [Call(("a", 0), os.getenv, ("SAID",), {"SAID": "so"}), Call(("a", 1), abs, (-1,))]
    assert ends(calls) == [("so", ""), (1, "")]
    assert "SAID" not in os.environ
