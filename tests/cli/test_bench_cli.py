"""``revelu bench``: which tables there are, and what runs them."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from revelu.cli.app import app
from revelu.cli.bench import PUBLISHED, TABLES

CLONE = Path(__file__).parents[2]


def test_every_script_of_the_benchmarks_has_a_name():
    scripts = {path.name for path in (CLONE / "benchmarks").glob("*.py")}
    parts = {"page.py", "runner.py", "processes.py", "registry.py", "precision.py"}
    parts |= {"extraction.py", "art_extraction.py", "envelope.py"}
    parts |= {"targets_made.py", "targets_onnx.py", "targets_served.py", "targets_way.py"}
    parts |= {"targets_shapes.py", "targets_probe.py"}
    parts |= {"targets_figures.py", "json_serving.py", "program_serving.py", "audit_advice.py"}
    parts |= {"lost_files.py", "old_pickles.py", "hostile_pickles.py", "image_kinds.py"}
    assert set(TABLES.values()) == scripts - parts


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
    """The program in a process of its own: scripts write to its streams.

    It hears an interrupt, though a suite that runs in the background ignores it.
    """
    hears = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    starts = "from revelu.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", f"{hears}; {starts}", "bench", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_published_tables_have_quick_runs_and_are_written_as_json():
    for name in PUBLISHED:
        source = (CLONE / "benchmarks" / TABLES[name]).read_text(encoding="utf-8")
        if "\nfrom runner import " in source:
            continue
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
    lines = CliRunner().invoke(app, ["bench", "spans"]).stderr.splitlines()
    assert "revelu" in lines[0]
    assert "cores" in lines[0]


MEASURES = """
print("seed 1")
print("| early | 1 |")
print("\\n| a | b |\\n|---|---:|\\n| x \\\\| y | 2 |\\n\\nA note.\\n\\n| c |\\n|---|\\n| 3 |")
"""


def test_tables_alone_are_on_standard_output(clone):
    (clone / TABLES["spans"]).write_text(MEASURES)
    done = run("spans")
    assert done.stdout == "| a | b |\n|---|---:|\n| x \\| y | 2 |\n\n| c |\n|---|\n| 3 |\n"
    for words in ("seed 1", "| early | 1 |", "A note."):
        assert words in done.stderr
    assert run("spans", "--csv").stdout == "a,b\nx | y,2\n\nc\n3\n"


WAITS = """
import os, signal, sys, time
print("| a |\\n|---|\\n| 1 |\\n", flush=True)
time.sleep(1)
os.kill(os.getppid(), signal.SIGINT)
time.sleep(600)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("form", ["--json", "--csv"])
def test_an_interrupt_keeps_the_tables_that_are_done(clone, form):
    (clone / TABLES["spans"]).write_text(WRITES)
    (clone / TABLES["polish"]).write_text(WAITS)
    done = run("spans", "polish", "signs", form)
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "revelu: interrupted in polish"
    assert "Traceback" not in done.stderr
    if form == "--csv":
        assert done.stdout == "a\n1\n"
        return
    content = json.loads(done.stdout)
    assert content["status"] == "interrupted"
    assert content["exit_codes"] == {"spans": 0, "polish": 130}
    assert list(content["results"]) == ["spans"]


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


@pytest.fixture
def pages(page, tmp_path, monkeypatch):
    """A folder of pages with the marks t and u, in place of the repository's."""
    monkeypatch.setattr(page, "PAGES", tmp_path / "pages")
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results")
    page.PAGES.mkdir()
    for mark in "tu":
        text = f"# {mark}\n\n<!-- {mark} -->\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n"
        (page.PAGES / f"{mark}.md").write_text(f"{text}<!-- /{mark} -->\n\nBy hand.\n")
    return page.PAGES


def test_what_is_kept_is_between_the_marks_and_in_results(page, pages):
    other = (pages / "u.md").read_text()
    page.keep("t", "| a |\n|---|\n| 5 |\n\nA note.")
    measured = "<!-- t -->\n| a |\n|---|\n| 5 |\n\nA note.\n<!-- /t -->"
    assert (pages / "t.md").read_text() == f"# t\n\n{measured}\n\nBy hand.\n"
    assert (pages / "u.md").read_text() == other
    content = json.loads((page.RESULTS / "t.json").read_text(encoding="utf-8"))
    assert content["tables"] == [{"columns": ["a"], "rows": [["5"]]}]
    assert content["notes"] == "A note."
    assert content["table"] == "t"
    assert content["machine"]["cores"] >= 1


def test_rows_are_kept_beside_others(page, pages):
    page.keep_rows("t", "| 3 | 5 |")
    assert "| 1 | 2 |\n| 3 | 5 |\n" in (pages / "t.md").read_text()


def test_rows_that_are_new_follow_the_last_one(page, pages):
    page.add_rows("t", "| 3 | 5 |\n| 6 | 7 |")
    assert "| 1 | 2 |\n| 3 | 5 |\n| 6 | 7 |\n" in (pages / "t.md").read_text()


def test_rows_are_told_apart_by_as_many_cells_as_name_them(page, pages):
    page.keep("t", "| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |\n| 1 | 4 | 5 |\n\nA note.")
    page.keep_rows("t", "| a | b | c |\n|---|---|---|\n| 1 | 4 | 6 |", 2)
    assert "---|\n| 1 | 2 | 3 |\n| 1 | 4 | 6 |\n\nA note.\n" in (pages / "t.md").read_text()


@pytest.mark.parametrize("mark", ["missing", "twice"])
def test_a_table_has_one_page(page, pages, mark):
    for name in ("v", "w"):
        (pages / f"{name}.md").write_text("<!-- twice -->\nold\n<!-- /twice -->\n")
    with pytest.raises(LookupError, match=mark):
        page.keep(mark, "new")


def test_results_are_those_of_the_pages(page):
    for path in page.RESULTS.glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        text = page.kept(content["table"])
        assert content["tables"] == page.tables_of(text)
        assert content["notes"] == page.notes_of(text)


def test_every_table_has_a_page_and_a_line_of_the_index(page):
    index = (CLONE / "benchmarks/README.md").read_text(encoding="utf-8")
    linked = dict(re.findall(r"\[(\w+)\]\(pages/(\w+)\.md[^)]*\)", index))
    assert set(linked) == set(TABLES)
    assert set(linked.values()) == {path.stem for path in page.PAGES.glob("*.md")}
    for name, stem in linked.items():
        assert name == stem or name in (page.PAGES / f"{stem}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TABLES)
def test_what_a_script_keeps_has_a_page(page, name):
    source = (CLONE / "benchmarks" / TABLES[name]).read_text(encoding="utf-8")
    marks = re.findall(
        r"\b(?:Table|table_of|keep|keep_rows|add_rows|present)\(\s*\"([\w-]+)\"", source
    )
    for mark in marks:
        assert page.tables_of(page.kept(mark))
    # The marks of one have the names of its tables.
    assert marks or name == "audit_kinds"
