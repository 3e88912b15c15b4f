"""The documentation runs: every block of every page; and what is generated is up to date."""

import importlib
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import revelu
from pages import INSTALLATION, LANGUAGES, Page, blocks, commands
from revelu.cli.app import app
from revelu.recover import table

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ALL = sorted(DOCS.rglob("*.md"))
RUN = [path for path in ALL if any(block.language for block in blocks(path))]
SLOW = [path for path in RUN if any(block.is_slow for block in blocks(path))]
PUBLISHED = ROOT / "benchmarks" / "results"
# What the reader of a page about targets has at hand.
CLASSIFIER = revelu.zoo.random_network([64, 4, 3], seed=1)


# How a block begins that should have said its language.
COMMAND = re.compile(r"^(revelu|pip|python|\$) ", re.MULTILINE)


def write_image_classifier(path: Path, network: revelu.Network) -> None:
    """Write 8 x 8 images to a label and probabilities, all in float32, as tools do."""
    f, names = np.float32, ("W", "b", "A", "c")
    (W, A), (b, c) = network.weights, network.biases
    arrays = zip(names, (W.T.astype(f), b.astype(f), A.T.astype(f), c.astype(f)), strict=True)
    nodes = [
        ("Flatten", "image", "x", {}),
        ("Gemm", "x W b", "z", {}),
        ("Relu", "z", "h", {}),
        ("Gemm", "h A c", "logits", {}),
        ("ArgMax", "logits", "label", {"axis": 1, "keepdims": 0}),
        ("Softmax", "logits", "probabilities", {"axis": 1}),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(kind, i.split(), [o], **a) for kind, i, o, a in nodes],
        "classifier",
        [value("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [
            value("label", TensorProto.INT64, ["N"]),
            value("probabilities", TensorProto.FLOAT, ["N", network.dim_out]),
        ],
        [numpy_helper.from_array(array, name) for name, array in arrays],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    path.write_bytes(model.SerializeToString())


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder that modules of the page are imported from, and forgotten after."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    # A page adds a method to the table, which is to be without it after.
    monkeypatch.setattr(table, "METHODS", table.METHODS)
    after = dict(table.AFTER)
    before = set(sys.modules)
    yield tmp_path
    table.AFTER.clear()
    table.AFTER.update(after)
    for module in set(sys.modules) - before:
        origin = getattr(sys.modules[module], "__file__", None) or ""
        if origin.startswith(str(tmp_path)):
            del sys.modules[module]


@pytest.fixture(scope="module")
def written():
    """What scripts/write_docs.py would write."""
    spec = importlib.util.spec_from_file_location("write_docs", ROOT / "scripts/write_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("path", RUN, ids=name)
def test_page_runs(path, here):
    write_image_classifier(here / "classifier.onnx", CLASSIFIER)
    with Page(path) as page:
        page.run(slow=False)
    if path == DOCS / "guides/targets.md":  # and what its wrapper gives is the classifier
        X = np.random.default_rng(1).standard_normal((50, 64))
        found, true = (f(X) - f(X)[:, -1:] for f in (revelu.load("logits.npz"), CLASSIFIER))
        np.testing.assert_allclose(found, true, rtol=0, atol=1e-3 * np.abs(true).max())


@pytest.mark.slow
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("path", SLOW, ids=name)
def test_whole_page_runs(path):
    with Page(path) as page:
        assert page.run(slow=True) == len(blocks(path))


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_commands_of_the_readme_run():
    # Its Python has a test of its own, and its tables of what is printed.
    with Page(ROOT / "README.md") as page:
        for block in blocks(page.path):
            if block.language in {"sh", "console"}:
                page.run_block(block)


@pytest.mark.slow
def test_a_newcomer_gets_from_the_readme_to_a_network(tmp_path):
    """The first two blocks, in a clone without anything installed, and the file that they write."""
    for part in ("src", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, tmp_path / part)
    code = "".join(block.code for block in blocks(ROOT / "README.md")[:2])
    bare = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        ["bash", "-euc", code], cwd=tmp_path, env=bare, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "recovered and certified" in done.stdout
    assert revelu.load(tmp_path / "digits.onnx").architecture == (64, 32, 10)


@pytest.mark.parametrize("path", [*ALL, ROOT / "README.md"], ids=name)
def test_every_block_is_of_a_kind_that_is_run_or_drawn(path):
    found = blocks(path)
    assert len(found) == path.read_text(encoding="utf-8").count("```") / 2
    for block in found:
        assert block.language in LANGUAGES
        # A command without a language would not be run.
        assert block.language or not re.search(
            r"^(revelu|pip|python|\$)\b", block.code, re.MULTILINE
        )


def test_pages_are_programs():
    assert {"python", "sh", "text"} <= {block.language for p in RUN for block in blocks(p)}
    assert len(SLOW) < len(RUN)


def test_installation_is_said_as_in_the_readme():
    readme = [c for block in blocks(ROOT / "README.md") for c in commands(block.code)]
    said = [c for p in RUN for b in blocks(p) if b.language == "sh" for c in commands(b.code)]
    installation = [command for command in said if command.startswith(INSTALLATION)]
    assert installation
    assert set(installation) <= set(readme)


def test_every_page_is_in_the_navigation():
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- (\S+\.md)$", configuration, re.MULTILINE)
    assert sorted(listed) == [path.relative_to(DOCS).as_posix() for path in ALL]


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "reference/python.md").read_text(encoding="utf-8")
    shown = set()
    for path in re.findall(r"^::: (\S+)$", text, re.MULTILINE):
        room, _, last = path.rpartition(".")
        found = getattr(importlib.import_module(room), last)
        # Of a module all that it has is shown.
        shown |= {last, *(vars(found) if inspect.ismodule(found) else ())}
    assert set(revelu.__all__) - {"__version__"} <= shown


def test_help_pages_are_up_to_date(written):
    shown = (DOCS / "reference/commands.md").read_text(encoding="utf-8")
    assert shown == written.help_pages(), "run scripts/write_docs.py"


def test_help_pages_have_the_options_of_the_program(written):
    sections = re.split(r"^## ", written.help_pages(), flags=re.MULTILINE)[1:]
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    for section in sections:
        title = section.splitlines()[0]
        help_text = runner.invoke(app, [*title.split()[1:], "--help"]).stdout
        names = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", help_text)) - {"--help"}
        options = re.findall(r"^\| `([^`]*)`", section, re.MULTILINE)
        listed = {n for option in options for n in re.findall(r"--[a-z][a-z0-9-]*", option)}
        assert listed, title
        assert listed <= names, title
        in_first_column = {
            n for n in names if re.search(rf"^\W*(\* +)?(-\w,? +)?{n}\b", help_text, re.MULTILINE)
        }
        assert in_first_column <= listed, title


@pytest.mark.parametrize("path", ALL, ids=name)
def test_commands_and_options_in_the_text_exist(path, written):
    found = dict(written.commands("revelu", app))
    takes = {
        command: {flag for p in written.parameters(callback) for flag in p.names.split()}
        for command, callback in found.items()
    }
    options = {flag.strip(",") for flags in takes.values() for flag in flags} | {"--help"}
    for code in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", path.read_text(encoding="utf-8")):
        said = re.match(r"(revelu [a-z]+(?: show)?)\b", code)
        if said and path.name != "commands.md":
            assert said[1] in found, code
        # The notes of the tables name options of the scripts that measured them.
        ours = ("revelu ",) if path.name == "figures.md" else ("revelu ", "--")
        if code.startswith(ours):
            assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", code)) <= options, code


def test_published_tables_are_those_of_the_results(written):
    shown = (DOCS / "figures.md").read_text(encoding="utf-8")
    assert shown == written.figures_page(written.read_results()), "run scripts/write_docs.py"


def test_the_drawing_is_of_the_results(written):
    content = written.read_results()["carlini20"]
    drawing = written.DRAWING.read_text(encoding="utf-8")
    column = content["tables"][0]["columns"].index("network")
    for row in content["tables"][0]["rows"]:
        assert f">{row[column]}</text>" in drawing


class Fetches(HTMLParser):
    """What a browser would load to show a page."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag in {"script", "img", "iframe", "source", "video"}:
            self.addresses.append(found.get("src") or "")
        if tag == "link" and found.get("rel") != "canonical":
            self.addresses.append(found.get("href") or "")


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(ALL)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        fetches = Fetches()
        fetches.feed(text)
        assert not [a for a in fetches.addresses if a.startswith(("http:", "https:", "//"))], page
        assert "arithmatex" not in text, f"a formula of {page} is not MathML"
    theorem = (tmp_path / "site/explanation/daniely-granot/index.html").read_text(encoding="utf-8")
    assert "<math" in theorem
    reference = (tmp_path / "site/reference/python/index.html").read_text(encoding="utf-8")
    for part in ("revelu.tasks.extract.extract.extract", "revelu.network.network.Network"):
        assert f'id="{part}"' in reference
