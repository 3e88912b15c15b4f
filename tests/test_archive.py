"""The archive of the measured tables, and the page of printed figures that quotes them."""

import hashlib
import importlib.util
import json
import zipfile
from pathlib import Path

import pytest

from revelu.cli.bench import TABLES

ROOT = Path(__file__).parents[1]


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    script = module_of(ROOT / "scripts" / "archive_results.py")
    folder = tmp_path_factory.mktemp("archive")
    for name in ("a.zip", "b.zip"):
        script.pack(folder / name)
    return folder


def test_the_same_tree_makes_the_same_bytes(archive):
    assert (archive / "a.zip").read_bytes() == (archive / "b.zip").read_bytes()


def test_every_table_is_in_the_archive_with_the_command_that_measures_it_again(archive):
    with zipfile.ZipFile(archive / "a.zip") as packed:
        said = json.loads(packed.read("archive.json"))
        for name, digest in said["sha256"].items():
            assert hashlib.sha256(packed.read(name)).hexdigest() == digest
        described = {table["file"] for table in said["tables"]}
        kept = {f"benchmarks/results/{p.name}" for p in (ROOT / "benchmarks/results").glob("*")}
        assert described == kept
        assert kept <= set(packed.namelist())
        for table in said["tables"]:
            command, bench, name, write = table["again"].split()
            assert (command, bench, write) == ("revelu", "bench", "--write"), table
            assert name in TABLES
        about = json.loads(packed.read(".zenodo.json"))
        assert {"title", "description", "creators", "license", "version"} <= about.keys()
        assert about["creators"][0]["name"]


def test_printed_figures_stand_beside_what_the_other_tables_have_today(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    papers = module_of(ROOT / "benchmarks" / "papers.py")
    page = (ROOT / "benchmarks" / "pages" / "papers.md").read_text(encoding="utf-8")
    kept = [target for target in papers.TARGETS if target.kept]
    assert len(kept) > 5
    for target in kept:
        assert papers.quoted(target) in page, "run revelu bench papers --write"
    for target in papers.TARGETS:
        assert all(line in page for line in papers.printed(target))


def test_every_query_belongs_to_a_stage(monkeypatch):
    """A first layer wider than the input is walked, and its outputs are asked for by themselves."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    papers = module_of(ROOT / "benchmarks" / "papers.py")
    one, two = (papers.staged(widths, 1, 30.0) for widths in ((6, 4, 1), (4, 6, 4, 1)))
    assert one["status"] == two["status"] == "recovered"
    assert one["signatures"] > 4
    assert (one["signs"], one["last layer and fits"]) == (0, 0)
    assert min(one["certificate"], two["certificate"]) > 3000
    assert two["last layer and fits"] > 0
    line = papers.stages((784, 32, 1), [one])
    assert "2^19.2 ‡ (end to end)" in line
    assert line.count("|") == papers.HEAD_OF_STAGES.splitlines()[0].count("|")
