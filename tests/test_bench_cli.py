"""``revelu bench``: which tables there are, and what runs them."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from revelu.cli.app import app
from revelu.cli.bench import PUBLISHED, TABLES

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


WRITES = """
import sys
path = sys.argv[sys.argv.index("--tables") + 1]
with open(path, "w") as file:
    file.write('{"options": %d, "quick": %d}' % (len(sys.argv) - 1, "--quick" in sys.argv))
print("a line")
"""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder with benchmarks/, whose scripts are written by the test."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "page.py").touch()
    monkeypatch.chdir(tmp_path)
    return folder


def run(*arguments):
    """The program in a process of its own: scripts write to its streams."""
    return subprocess.run(
        [sys.executable, "-m", "revelu", "bench", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_published_tables_have_quick_runs_and_are_written_as_json():
    for name in PUBLISHED:
        source = (CLONE / "benchmarks" / TABLES[name]).read_text(encoding="utf-8")
        assert "--quick" in source
        assert "--tables" in source


def test_quick_alone_runs_the_published_tables(clone):
    for name in PUBLISHED:
        (clone / TABLES[name]).write_text(WRITES)
    done = run("--quick", "--json")
    assert done.returncode == 0
    assert "a line" in done.stderr
    content = json.loads(done.stdout)
    assert content["exit_codes"] == dict.fromkeys(PUBLISHED, 0)
    assert content["results"] == {name: {"options": 3, "quick": 1} for name in PUBLISHED}
    assert set(content["machine"]) == {"system", "architecture", "cores"}
    assert {"revelu", "python", "numpy"} <= set(content["versions"])


def test_the_machine_and_the_versions_come_first(clone):
    (clone / TABLES["spans"]).write_text("")
    lines = CliRunner().invoke(app, ["bench", "spans"]).stdout.splitlines()
    assert "revelu" in lines[0]
    assert "cores" in lines[0]


def test_what_a_script_fails_to_write_is_not_there(clone):
    (clone / TABLES["spans"]).write_text("'--tables'; raise SystemExit(2)")
    done = run("spans", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["results"] == {}


@pytest.mark.parametrize("arguments", [["spans", "--quick"], ["carlini20", "--quick", "--write"]])
def test_a_quick_run_is_not_kept_and_not_made_up(clone, arguments):
    (clone / TABLES["spans"]).write_text("")
    (clone / TABLES["carlini20"]).write_text("'--quick'")
    done = CliRunner().invoke(app, ["bench", *arguments])
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("page", CLONE / "benchmarks/page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_and_notes_are_read_from_markdown(page):
    text = "| a | b |\n|---|---:|\n| 1 | x \\| y |\n\nA note.\n\n| c |\n|---|\n\nAnother."
    assert page.tables_of(text) == [
        {"columns": ["a", "b"], "rows": [["1", "x \\| y"]]},
        {"columns": ["c"], "rows": []},
    ]
    assert page.notes_of(text).split("\n\n") == ["A note.", "Another."]


def test_what_is_kept_is_between_the_marks_and_in_results(page, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PAGE", tmp_path / "README.md")
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    page.PAGE.write_text("before\n<!-- t -->\nold\n<!-- /t -->\nafter\n", encoding="utf-8")
    page.keep("t", "| a |\n|---|\n| 1 |")
    assert "old" not in page.PAGE.read_text(encoding="utf-8")
    content = json.loads((tmp_path / "results/t.json").read_text(encoding="utf-8"))
    assert content["tables"] == [{"columns": ["a"], "rows": [["1"]]}]
    assert content["table"] == "t"
    assert content["machine"]["cores"] >= 1


def test_results_are_those_of_the_readme(page):
    readme = page.PAGE.read_text(encoding="utf-8")
    for path in page.RESULTS.glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        mark = content["table"]
        text = readme.split(f"<!-- {mark} -->")[1].split(f"<!-- /{mark} -->")[0]
        assert content["tables"] == page.tables_of(text)
