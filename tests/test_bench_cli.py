"""``revelu bench``: which tables there are, and what runs them."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from revelu.cli.app import app
from revelu.cli.bench import TABLES

CLONE = Path(__file__).parents[1]


def test_every_script_of_the_benchmarks_has_a_name():
    scripts = {path.name for path in (CLONE / "benchmarks").glob("*.py")}
    assert set(TABLES.values()) == scripts - {"page.py", "art_extraction.py"}


def test_without_a_name_the_names_are_listed():
    result = CliRunner().invoke(app, ["bench"])
    assert result.exit_code == 0
    assert result.stdout.split() == list(TABLES)


@pytest.mark.parametrize(("folder", "name"), [(CLONE, "nothing"), (CLONE / "docs", "two_layer")])
def test_what_cannot_run_is_bad_usage(monkeypatch, folder, name):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, ["bench", name])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(("text", "code"), [("pass", 0), ("raise SystemExit(3)", 1)])
def test_a_script_runs_and_its_failure_shows(monkeypatch, tmp_path, text, code):
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "page.py").touch()
    (folder / TABLES["spans"]).write_text(f"open('ran', 'w').close()\n{text}\n")
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["bench", "spans"]).exit_code == code
    assert (tmp_path / "ran").exists()
