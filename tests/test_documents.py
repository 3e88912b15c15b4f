"""The documents say what the code does."""

import dataclasses
import doctest
import importlib
import json
import pkgutil
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
import revelu.recover
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.oracle import PHASES

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    path for part in ("*.md", "docs/**/*.md", "benchmarks/**/*.md") for path in ROOT.glob(part)
)
GUIDES = [path for path in ROOT.glob("docs/**/*.md") if path.name != "commands.md"]
RESULTS = "docs/reference/results.md"
ARCHITECTURE = "docs/architecture.md"
MOST_README_BYTES = 8192
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


def names_in(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def fields(heading: str) -> set[str]:
    """Names in the first column of the table below a heading of the results' page."""
    text = read(RESULTS).split(f"\n{heading}\n")[1].split("\n#")[0]
    cells = re.findall(r"^\|([^|]+)\|", text, re.MULTILINE)
    return {name for cell in cells for name in names_in(cell)}


def fields_of(command: str) -> set[str]:
    """Fields of a command's JSON object, as its section has them or refers to others'."""
    section = read(RESULTS).split(f"\n### revelu {command}\n")[1]
    sentence = section.strip().splitlines()[0]
    own = fields(f"### revelu {command}")
    if "shared fields" in sentence:
        return own | (fields("## JSON") - set(names_in(sentence)))
    if sentence.startswith("The fields of"):
        return own | fields_of(names_in(sentence)[0].removeprefix("revelu "))
    return own


def modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages(revelu.__path__, "revelu.")]


def help_of(*arguments: str) -> str:
    result = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(app, [*arguments, "--help"])
    assert result.exit_code == 0
    return result.stdout


def test_readme_is_short():
    assert len((ROOT / "README.md").read_bytes()) <= MOST_README_BYTES


def test_readme_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("README.md", "python")
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102
    printed = capsys.readouterr().out.splitlines()
    promised = re.search(r"print\(recovery\.network\) +# (.*)", block)
    assert printed[0] == promised[1]


def test_readme_has_exactly_the_two_commands():
    assert blocks("README.md", "console") == [
        "pip install . && revelu extract demo:digits -o digits.onnx\n",
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


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "docs/guides/targets.md"])
def test_extras_are_installed_from_the_clone(page):
    assert 'pip install ".[sklearn]"' in read(page)


def test_extras_that_pages_name_exist():
    known = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]
    text = "".join(page.read_text(encoding="utf-8") for page in DOCUMENTS)
    named = set(re.findall(r'pip install "(?:revelu|\.)\[(\w+)\]"', text))
    assert "sklearn" in named
    assert named <= set(known) | {"NAME"}


def test_readme_explains_its_output():
    shown = blocks("README.md", "text")[0]
    explained = read("README.md").split(shown)[1].split("\n## ")[0]
    widths = re.search(r"(\d+)-(\d+)-(\d+), ", shown).groups()
    assert " ".join(re.findall(r"\d+(?= inputs| hidden| outputs)", explained)) == " ".join(widths)
    noise, found, checked = (
        int(n.replace(",", ""))
        for n in re.search(
            r"\((\d+) to measure the noise; (\d+) to recover, 0\.20\s+"
            r"a parameter; ([\d,]+) to certify",
            shown,
        ).groups()
    )
    assert f"{noise + found} queries; {checked:,} fresh ones agreed" in explained


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
    assert any(f"revelu {command}" in page.read_text(encoding="utf-8") for page in GUIDES)
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


def test_results_list_exit_codes_statuses_and_phases():
    assert [int(cell) for cell in first_column(RESULTS, "exit code")] == list(ExitCode)
    assert sorted(first_column(RESULTS, "status")) == sorted(revelu.Status)
    assert tuple(first_column(RESULTS, "phase")) == PHASES


def test_methods_are_those_of_the_table():
    listed = first_column("docs/reference/methods.md", "method")
    assert listed == [method.name for method in revelu.METHODS]


@pytest.mark.parametrize("status", list(revelu.Status))
def test_results_have_the_exit_code_of_each_status(status):
    row = next(line for line in read(RESULTS).splitlines() if line.startswith(f"| `{status}` |"))
    assert row.rstrip("| ").endswith(f"| {int(of_status(status))}")


def test_results_have_the_fields_of_a_certificate():
    found = {field.name for field in dataclasses.fields(revelu.Certificate)}
    assert fields("## Certificate") == found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a network, inputs, samples, labels and a journal."""
    folder = tmp_path_factory.mktemp("files")
    network = revelu.zoo.random_network([5, 2, 3], seed=1)
    network.save(folder / "network.npz")
    X = np.random.default_rng(0).standard_normal((20_000, 5))
    np.save(folder / "X.npy", X[:3])
    np.savez(folder / "samples.npz", X=X[:300], y=network(X[:300])[:, 0])
    np.savez(folder / "labels.npz", X=X, y=(X[:, 0] >= 2).astype(float))
    with revelu.open_oracle(network, journal=folder / "run.db") as oracle:
        oracle(X[:3])
    return folder


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("extract", "network.npz"),
        ("verify", "network.npz network.npz"),
        ("learn", "samples.npz"),
        ("learn --halfspaces", "or labels.npz"),
        ("span", "network.npz"),
        ("obfuscate", "network.npz --inputs X.npy -o Y.npy"),
        ("audit", "network.npz --budget 300"),
        ("diagnose", "network.npz"),
        ("probe", "network.npz"),
        ("compare", "network.npz network.npz"),
        ("export", "network.npz network.npz --box 0 1 -o pair.onnx"),
        ("journal show", "run.db"),
        ("methods", ""),
    ],
)
def test_results_have_the_fields_of_each_command(files, monkeypatch, command, arguments):
    monkeypatch.chdir(files)
    done = CliRunner().invoke(app, [*command.split(), *arguments.split(), "--json"])
    assert set(json.loads(done.stdout)) == fields_of(command)


def test_architecture_shows_the_rooms_that_the_linter_holds():
    contract = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"][0]
    layers = [
        {name.strip().removeprefix("revelu.") for name in layer.split("|")}
        for layer in contract["layers"]
    ]
    picture = next(b for b in blocks(ARCHITECTURE, "") if "ground" in b)
    drawn = [
        {re.sub(r"/$|\.py", "", name.strip(" ,")) for name in re.split(r"[|,]", line[:37])}
        for line in picture.splitlines()
    ]
    assert drawn == layers


def test_architecture_lists_the_packages_of_recover():
    packages = {m.name for m in pkgutil.iter_modules(revelu.recover.__path__) if m.ispkg}
    assert set(first_column(ARCHITECTURE, "package")) == {f"recover/{name}" for name in packages}


def test_architecture_names_files_and_what_is_in_them():
    text = read(ARCHITECTURE)
    files = re.findall(r"`([\w/]+)\.py`", text)
    assert files
    for name in files:
        assert [path for room in ("src/revelu", ".") for path in (ROOT / room).glob(f"{name}.py")]
    named = re.findall(r"`([\w.]+)` \(`([\w/]+)\.py`\)", text)
    assert len(named) > 20
    for name, file in named:
        found = importlib.import_module(f"revelu.{file.replace('/', '.')}")
        for part in name.split("."):
            found = getattr(found, part)


def test_architecture_names_every_adapter():
    room = ROOT / "src/revelu"
    files = [path.relative_to(room).as_posix() for path in room.glob("adapters/**/*.py")]
    text = read(ARCHITECTURE)
    assert [name for name in files if "__" not in name and f"`{name}`" not in text] == []


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


def test_options_of_domains_are_of_the_commands_that_are_said_to_take_them():
    text = read("docs/guides/domain.md").split("On the command line these are")[1].split("\n")[0]
    whole, part = re.split(r" take all of them; ", text.split("LO HI`. ")[1])
    options = {
        command.callback.__name__: CliRunner()
        .invoke(app, [command.callback.__name__, "--help"], env={"COLUMNS": "200"})
        .stdout
        for command in app.registered_commands
    }
    for name in names_in(whole):
        assert all(option in options[name] for option in ("--box", "--like", "--mean", "--std"))
    for name in names_in(part.split(",")[0]):
        assert "--like" in options[name]
    assert "--box" not in options["span"]
