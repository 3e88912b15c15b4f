"""Commands that something ends: what was done until then is told, by JSON and as a page."""

import itertools
import json
import signal
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.errors import FormatError
from revelu.recover.fit.hermite import _Learner
from revelu.tasks.audit import audit as audits

NUMBERS = itertools.count()

# A target that has a signal sent after so many rows.
TARGET = """
import signal
import revelu
truth = revelu.zoo.random_network([5, 3, 3], seed=3)
asked = 0
def target(X):
    global asked
    asked += len(X)
    if asked > {rows}:
        signal.raise_signal(signal.{name})
    return truth(X)
"""


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run the command line in a folder with ``truth.npz``, ``tanh.npz`` and inputs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    revelu.zoo.random_network([5, 3, 3], seed=3).save(tmp_path / "truth.npz")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((20, 5)))
    # A shell has what it starts in the background ignore interrupts.
    outer = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield lambda *arguments: CliRunner().invoke(app, [*map(str, arguments)])
    assert {n: signal.getsignal(n) for n in before} == before
    signal.signal(signal.SIGINT, outer)


@pytest.fixture
def interrupted(invoke, tmp_path):
    """Run a command whose target interrupts it."""

    def run(rows, name, *arguments):
        # A module that was imported once stays as it was.
        module = f"interrupting_{next(NUMBERS)}"
        (tmp_path / f"{module}.py").write_text(TARGET.format(rows=rows, name=name))
        command, *more = arguments
        found = ("--trust", "--dim-in", 5, "--json", "--report", "page.html")
        return invoke(command, *more, f"{module}:target", *found)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_audit_tells_of_the_rows_that_are_done(interrupted, tmp_path, name):
    result = interrupted(7_000, name, "audit", "--price", 2)
    assert result.exit_code == ExitCode.INTERRUPTED
    assert "interrupted after" in result.stderr
    account = one_object(result.stdout)
    assert account["status"] == "interrupted"
    assert account["rows"][0]["recovered"] == "weights"
    assert account["missing"]
    assert len(account["rows"]) + len(account["missing"]) == 11
    assert account["conclusion"] == "inconclusive"
    assert account["advice"][0].startswith("inconclusive")
    assert account["queries"] > 1_000
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "could not be judged" in page
    assert "interrupted" in page
    assert account["outputs"] == ["page.html"]


def test_a_defect_keeps_its_traceback_and_the_rows(invoke, monkeypatch, tmp_path):
    limits = audits._Audit._limits

    def failing(self, defence):
        if defence.name == "4 digits":
            raise ZeroDivisionError("a defect")
        return limits(self, defence)

    monkeypatch.setattr(audits._Audit, "_limits", failing)
    result = invoke("audit", "truth.npz", "--json", "--report", "page.html")
    assert isinstance(result.exception, ZeroDivisionError)
    account = one_object(result.stdout)
    assert account["status"] == "error"
    assert "a defect" in account["error"]
    assert [row["defence"] for row in account["rows"]] == ["none", "float32"]
    assert "a defect" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["extract", "span", "diagnose", "verify", "obfuscate"])
def test_other_commands_tell_what_was_spent(interrupted, tmp_path, command):
    arguments = {"verify": ["truth.npz"], "obfuscate": ["--inputs", "x.npy", "-o", "y.npy"]}
    result = interrupted(70, "SIGINT", command, *arguments.get(command, []))
    assert result.exit_code == ExitCode.INTERRUPTED
    account = one_object(result.stdout)
    assert account["status"] == "interrupted"
    assert account["queries"] == sum(account["by_phase"].values()) > 70
    assert "interrupted after" in account["error"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Not finished: interrupted" in page
    # Of a network that was given there are pictures without a query.
    assert ("<figure" in page) == (command == "verify")
    assert not (tmp_path / "y.npy").exists()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_extraction_keeps_the_network_found(interrupted, name):
    result = interrupted(1_000, name, "extract", "-o", "half.npz")
    assert result.exit_code == ExitCode.INTERRUPTED
    account = one_object(result.stdout)
    assert (account["status"], account["certified"]) == ("interrupted", False)
    assert account["architecture"] == [5, 3, 3]
    assert account["outputs"] == ["half.npz", "page.html"]
    assert not any("budget" in said for said in account["evidence"])
    truth, half = revelu.load("truth.npz"), revelu.load("half.npz")
    assert revelu.align(half, truth).max_parameter_error < 1e-9


def test_an_interrupt_of_pictures_spares_the_certificate(interrupted, tmp_path):
    whole = interrupted(10**9, "SIGINT", "extract")
    drawn = 400
    n = one_object(whole.stdout)["queries"] - drawn
    result = interrupted(n, "SIGINT", "extract", "-o", "found.npz")
    assert result.exit_code == ExitCode.CERTIFIED
    account = one_object(result.stdout)
    assert (account["status"], account["certified"]) == ("recovered", True)
    assert "no further queries for pictures" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("command", "rows", "found"), [("span", 150, "rank"), ("diagnose", 400, "delta")]
)
def test_interrupted_measurements_keep_what_was_seen(interrupted, command, rows, found):
    result = interrupted(rows, "SIGINT", command)
    assert result.exit_code == ExitCode.INTERRUPTED
    account = one_object(result.stdout)
    assert account["status"] == "interrupted"
    assert account[found]


def _interrupt(*_arguments, **_named):
    """What a user's interrupt does while something computes."""
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def learn(invoke, tmp_path):
    """Learn from a file with samples of a network that has one output."""
    X = np.random.default_rng(1).standard_normal((600, 5))
    y = revelu.zoo.random_network([5, 3, 1], seed=3)(X)[:, 0]
    np.savez(tmp_path / "measured.npz", X=X, y=y)
    return lambda *options: invoke("learn", "measured.npz", "-o", "half.npz", "--json", *options)


def test_interrupted_learning_keeps_the_best_network(learn, monkeypatch, tmp_path):
    monkeypatch.setattr(_Learner, "_resolve", _interrupt)
    result = learn("--report", "page.html")
    assert result.exit_code == ExitCode.INTERRUPTED
    account = one_object(result.stdout)
    assert (account["status"], account["certified"]) == ("interrupted", False)
    assert account["outputs"] == ["half.npz", "page.html"]
    assert "interrupted" in (tmp_path / "page.html").read_text("utf-8")
    truth, half = revelu.zoo.random_network([5, 3, 1], seed=3), revelu.load("half.npz")
    fresh = np.random.default_rng(2).standard_normal((500, 5))
    # All but the signs was found, and those are carried by the affine rest.
    np.testing.assert_allclose(half(fresh), truth(fresh), atol=1e-9)


def test_learning_that_is_interrupted_at_once_leaves_nothing(learn, monkeypatch):
    monkeypatch.setattr(_Learner, "_find_span", _interrupt)
    result = learn()
    assert result.exit_code == ExitCode.INTERRUPTED
    assert one_object(result.stdout)["status"] == "interrupted"
    assert not Path("half.npz").exists()


@pytest.mark.parametrize(("nth", "width"), [(1, None), (2, 3)])
def test_an_interrupt_between_outputs_keeps_whole_networks_alone(nth, width):
    truth = revelu.zoo.random_network([4, 3, 3], seed=4)
    X = np.random.default_rng(1).standard_normal((600, 4))
    odds = np.exp(truth(X))
    heard = itertools.count(1)

    def interrupt(progress):
        if progress.message == "resolving signs" and next(heard) == nth:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        revelu.learn(X, odds / odds.sum(axis=1, keepdims=True), progress=interrupt)
    partial = caught.value.partial
    assert partial.status.value == "unverified"
    assert f"interrupted at log-ratio {nth} of 2" in partial.evidence
    assert (partial.network and partial.network.dim_out) == width


def test_a_target_that_fails_midway_leaves_a_page(invoke, tmp_path):
    code = TARGET.format(rows=70, name="SIGINT").replace(
        "signal.raise_signal(signal.SIGINT)", "raise RuntimeError('out of order')"
    )
    (tmp_path / "failing_midway.py").write_text(code)
    options = ("--trust", "--dim-in", 5, "--json", "--report", "page.html")
    result = invoke("extract", "failing_midway:target", *options)
    assert result.exit_code == ExitCode.TARGET
    account = one_object(result.stdout)
    assert (account["status"], account["queries"] > 70) == ("error", True)
    assert "out of order" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_spares_the_account(invoke, monkeypatch):
    def full(path, _):
        raise FormatError(f"{path}: no space left")

    monkeypatch.setattr("revelu.formats.arrays.replace_file", full)
    result = invoke("extract", "truth.npz", "--json", "--report", "page.html")
    assert result.exit_code == ExitCode.USAGE
    account = one_object(result.stdout)
    assert account["status"] == "recovered"
    assert account["warnings"] == ["page.html: no space left"]
    assert account["outputs"] == []


def test_a_failed_extraction_draws_nothing_and_asks_nothing_for_it(invoke, tmp_path):
    (tmp_path / "curved_target.py").write_text(
        "import numpy as np\ndef f(X):\n    return np.tanh(3 * X).sum(axis=1)\n"
    )
    common = ("extract", "curved_target:f", "--trust", "--dim-in", 3, "--json")
    plain = one_object(invoke(*common).stdout)
    result = invoke(*common, "--report", "page.html")
    account = one_object(result.stdout)
    assert result.exit_code == ExitCode.NOT_CERTIFIED
    assert account["queries"] == plain["queries"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<svg" not in page
    assert page.index("<strong>Why:</strong>") < page.index("<main>")


# In a pipeline.


@pytest.fixture
def baseline(invoke, tmp_path):
    """The account of an audit, and how to change its first row.

    With one output there are no labels, whose network takes more than all other rows.
    """
    revelu.zoo.random_network([5, 3, 1], seed=3).save(tmp_path / "one.npz")
    account = one_object(invoke("audit", "one.npz", "--json").stdout)

    def write(**changed):
        old = {**account, "rows": [{**account["rows"][0], **changed}, *account["rows"][1:]]}
        (tmp_path / "old.json").write_text(json.dumps(old), encoding="utf-8")
        return tmp_path / "old.json"

    return write


@pytest.mark.parametrize(
    ("changed", "fail_on", "code", "direction"),
    [
        ({}, [], 0, None),
        ({}, ["weights"], 5, None),
        ({}, ["worse"], 0, None),
        ({"recovered": "nothing"}, [], 0, "worse"),
        ({"recovered": "span"}, ["worse"], 5, "worse"),
        ({"queries": 1}, ["worse"], 0, "better"),
        ({"queries": 1}, ["span", "worse"], 5, "better"),
    ],
)
def test_what_fails_a_pipeline(invoke, baseline, changed, fail_on, code, direction):
    options = [word for name in fail_on for word in ("--fail-on", name)]
    path = baseline(**changed)
    result = invoke("audit", "one.npz", "--json", "--baseline", path.name, *options)
    assert result.exit_code == code
    changes = one_object(result.stdout)["changes"]
    assert [change["direction"] for change in changes] == ([direction] if direction else [])


def test_too_little_time_is_no_pass(invoke):
    short = ("--budget", 1_200, "--fail-on", "weights", "--json")
    assert invoke("audit", "truth.npz", *short).exit_code == ExitCode.GIVEN_AWAY
    short = ("--budget", 100, "--fail-on", "weights", "--json")
    assert invoke("audit", "truth.npz", *short).exit_code == ExitCode.EXHAUSTED


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fail-on", "everything"], "--fail-on is one of"),
        (["--fail-on", "worse"], "needs --baseline"),
        (["--baseline", "missing.json"], "missing.json: "),
        (["--baseline", "text.json"], "not what `revelu audit --json` prints"),
        (["--baseline", "other.json"], "not what `revelu audit --json` prints"),
        (["--baseline", "page.html", "--report", "page.html"], "in use"),
    ],
)
def test_baselines_that_are_none(invoke, tmp_path, arguments, words):
    (tmp_path / "text.json").write_text("no JSON")
    (tmp_path / "other.json").write_text('{"rows": [{"defence": "none", "recovered": "all"}]}')
    result = invoke("audit", "truth.npz", "--json", *arguments)
    assert result.exit_code == ExitCode.USAGE
    assert words in one_object(result.stdout)["error"]
