"""The first minute at the command line: what loads, what is said, what the help lists."""

import inspect
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from revelu.cli.app import app
from revelu.cli.groups import GROUPS, group_of

# What takes long to import, or is not there for everyone: help needs none of it.
HEAVY = ("numpy", "scipy", "onnx", "onnxruntime", "matplotlib", "sklearn", "httpx")
CALLBACKS = [command.callback for command in app.registered_commands]


def loaded_by(*arguments: str) -> set[str]:
    """Modules that a process has loaded when a command line is done."""
    code = (
        "import sys\nfrom revelu.cli.app import app\n"
        f"try: app({list(arguments)!r})\nexcept SystemExit: pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments", [[], ["--version"], ["--help"], ["extract", "--help"], ["nosuch"], ["audit", "-h"]]
)
def test_help_loads_no_library(arguments):
    loaded = loaded_by(*arguments)
    assert "typer" in loaded
    assert not loaded & set(HEAVY)
    # Of revelu itself it loads the command line, and what that says.
    rooms = {name.split(".")[1] for name in loaded if name.startswith("revelu.")}
    assert rooms <= {"_version", "cli", "errors", "report", "severity", "shown", "status"}


def test_alone_it_says_five_things_to_do():
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    commands = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("  ")]
    assert len(commands) == 5
    assert set(commands) <= {callback.__name__ for callback in CALLBACKS}
    assert max(map(len, result.stdout.splitlines())) < 80


@pytest.mark.parametrize("name", ["-h", "--help"])
@pytest.mark.parametrize("command", [[], ["extract"], ["journal", "show"]])
def test_help_has_two_names(command, name):
    result = CliRunner().invoke(app, [*command, name])
    assert result.exit_code == 0
    assert "Usage" in result.stdout


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_completion_is_offered(option):
    assert option in CliRunner(env={"COLUMNS": "120"}).invoke(app, ["--help"]).stdout


@pytest.mark.parametrize("callback", CALLBACKS, ids=lambda c: c.__name__)
def test_every_command_has_an_example(callback):
    examples = re.findall(rf"^ +revelu {callback.__name__}\b.*", callback.__doc__, re.MULTILINE)
    assert examples
    options = set(re.findall(r"(?<!\S)--[a-z-]+", " ".join(examples)))
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, [callback.__name__, "-h"]).stdout
    assert all(option in shown for option in options)


def test_every_option_of_a_target_is_in_a_group():
    (extract,) = (callback for callback in CALLBACKS if callback.__name__ == "extract")
    groups = [group_of(parameter) for parameter in inspect.signature(extract).parameters.values()]
    assert groups[0] == ""  # the argument
    assert [group for group in dict.fromkeys(groups) if group] == list(GROUPS)


def test_groups_name_options_that_exist():
    known = {name for callback in CALLBACKS for name in inspect.signature(callback).parameters}
    assert {name for names in GROUPS.values() for name in names} <= known
    help_text = CliRunner(env={"COLUMNS": "100"}).invoke(app, ["extract", "-h"]).stdout
    for group in GROUPS:
        assert f"─ {group} ─" in help_text
