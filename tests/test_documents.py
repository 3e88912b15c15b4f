"""The documents say what the code does."""

import doctest
import importlib
import pkgutil
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import revelu
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.oracle import PHASES

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
COMMANDS = sorted(command.callback.__name__ for command in app.registered_commands)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", read(name), re.DOTALL | re.MULTILINE)


def first_column(document: str, heading: str) -> list[str]:
    """First cells of the table whose header row begins with ``heading``."""
    lines = read(document).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    cells = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells.append(line.split("|")[1].strip().strip("`"))
    return cells


def modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages(revelu.__path__, "revelu.")]


def help_of(*arguments: str) -> str:
    result = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(app, [*arguments, "--help"])
    assert result.exit_code == 0
    return result.stdout


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


def test_readme_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    truth = revelu.zoo.random_network([64, 4, 3], seed=1)
    write_image_classifier(tmp_path / "classifier.onnx", truth)
    found = blocks("README.md", "python")
    assert found
    namespace: dict[str, object] = {}
    for block in found:
        exec(compile(block, "README.md", "exec"), namespace)  # noqa: S102
    printed = capsys.readouterr().out.splitlines()
    promised = re.search(r"print\(recovery\.network\) +# (.*)", found[0])
    assert printed[0] == promised[1]
    recovery = revelu.extract(namespace["probabilities"], dim_in=64)
    assert recovery.status is revelu.Status.RECOVERED
    X = np.random.default_rng(1).standard_normal((50, 64))
    found, true = (Y - Y[:, -1:] for Y in (recovery.network(X), truth(X)))
    np.testing.assert_allclose(found, true, rtol=0, atol=1e-3 * np.abs(true).max())


def test_readme_has_exactly_the_two_commands():
    assert blocks("README.md", "console") == [
        "pip install . && revelu extract demo:digits -o stolen.onnx\n",
        'pip install ".[test]" && pytest\n',
    ]


def test_readme_shows_what_the_first_command_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = blocks("README.md", "console")[0].split("&& revelu ")[1]
    done = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, command.split())
    assert done.exit_code == 0
    shown = blocks("README.md", "text")[0]
    # Digits of errors and seconds are the machine's; the words and the counts are not.
    figure = re.compile(r"\d+(\.\d+)?e-\d+|\d+\.\d s$", re.MULTILINE)
    printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    assert figure.sub("#", printed) == figure.sub("#", shown.rstrip())


@pytest.mark.slow
def test_readme_shows_what_few_digits_print():
    done = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, ["extract", "demo:mnist"])
    assert done.exit_code == 0
    # Counts, too, may be the machine's: there is an optimisation behind them.
    figure = re.compile(r"\d[\d,.]*(e-\d+)?")
    printed, shown = (
        figure.sub("#", " ".join(text.split()))
        for text in (done.stdout, blocks("README.md", "text")[1])
    )
    assert printed == shown


def test_ci_runs_the_readmes_test_command():
    script = read(".ci/run")
    pattern = re.search(r"grep -m 1 '(.*)' README\.md", script)[1]
    matching = [line for line in read("README.md").splitlines() if re.search(pattern, line)]
    assert matching == ['pip install ".[test]" && pytest']
    assert "pytest -m slow" in script


@pytest.mark.parametrize("name", modules())
def test_docstring_examples_run(name):
    failed, _ = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert failed == 0


def test_some_docstring_has_an_example():
    finder = doctest.DocTestFinder()
    network = importlib.import_module("revelu.network.network")
    assert any(test.examples for test in finder.find(network))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command):
    assert f"revelu {command}" in read("README.md")
    assert command in help_of()
    assert "--json" in help_of(command)


@pytest.mark.parametrize("command", app.registered_commands, ids=lambda c: c.callback.__name__)
def test_every_option_has_help(command):
    assert command.callback.__doc__
    for annotation in command.callback.__annotations__.values():
        for option in getattr(annotation, "__metadata__", ()):
            assert option.help


@pytest.mark.parametrize("command", COMMANDS)
def test_flags_take_no_value_in_the_help(command):
    lines = [line.strip("│ ").split() for line in help_of(command).splitlines()]
    takes_value = {words[0] for words in lines for word in words if re.fullmatch(r"<\w+>", word)}
    # The help's own flag is the library's.
    flags = {"--json", "--trust", "--quiet", "--verbose"}
    assert not takes_value & flags
    assert flags & {word for words in lines for word in words}


@pytest.mark.parametrize("flag", sorted(set(re.findall(r"`(--[a-z-]+)", read("README.md")))))
def test_options_that_the_readme_names_exist(flag):
    assert any(flag in help_of(command) for command in COMMANDS)


def test_exit_codes_of_the_readme_are_those_of_the_program():
    assert [int(cell) for cell in first_column("README.md", "exit code")] == list(ExitCode)


def test_architecture_lists_statuses_and_phases():
    assert sorted(first_column("docs/architecture.md", "status")) == sorted(revelu.Status)
    assert tuple(first_column("docs/architecture.md", "phase")) == PHASES


@pytest.mark.parametrize("status", list(revelu.Status))
def test_architecture_has_the_exit_code_of_each_status(status):
    row = next(
        line
        for line in read("docs/architecture.md").splitlines()
        if line.startswith(f"| `{status}` |")
    )
    assert row.rstrip("| ").endswith(f"| {int(of_status(status))}")


def test_architecture_shows_the_rooms_that_the_linter_holds():
    contract = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"][0]
    layers = [
        {name.strip().removeprefix("revelu.") for name in layer.split("|")}
        for layer in contract["layers"]
    ]
    picture = next(b for b in blocks("docs/architecture.md", "") if "ground" in b)
    drawn = [
        {re.sub(r"/$|\.py", "", name.strip(" ,")) for name in re.split(r"[|,]", line[:37])}
        for line in picture.splitlines()
    ]
    assert drawn == layers


def test_every_room_is_in_a_layer():
    contract = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"][0]
    held = {name.strip() for layer in contract["layers"] for name in layer.split("|")}
    found = {f"revelu.{m.name}" for m in pkgutil.iter_modules(revelu.__path__)}
    assert {name for name in found if not name.startswith("revelu._")} == held


def test_version_is_one():
    assert f"## [{revelu.__version__}]" in read("CHANGELOG.md")
    assert f"version: {revelu.__version__}" in read("CITATION.cff").splitlines()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (document.parent / target).exists(), target
