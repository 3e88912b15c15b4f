"""The command line in this process: what is printed, written, and how it ends."""

import importlib
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode, of_error, of_status
from revelu.cli.output import print_json
from revelu.cli.progress import ProgressLine
from revelu.numerics.links import SOFTMAX
from revelu.recovery import Certificate, Recovery, Status
from revelu.tasks.progress import Progress

TRUTH = revelu.zoo.random_network([5, 4, 1], seed=1)

CERTIFICATE = Certificate(
    n_checks=7,
    max_abs_error=float("nan"),
    nrmse=float("inf"),
    fraction_within=np.float64(0.5),
    tolerance=1e-8,
    confidence=0.95,
    statement="said [in] brackets",
)


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run the command line in this process."""
    monkeypatch.chdir(tmp_path)
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    return lambda *arguments: runner.invoke(app, [str(a) for a in arguments])


@pytest.fixture
def outcome(monkeypatch):
    """Let the next extraction end as told; the arguments it got are returned."""
    # A module that loads while a name is replaced would keep the replacement.
    importlib.import_module("revelu.tasks.extract.extract")
    seen = {}

    def end(result):
        def open_oracle(target, **options):
            seen.update(options, target=target)
            return nullcontext(target)

        def extract(target, **options):
            seen.update(options, asked=target)
            options["progress"](Progress("recover", 1234, 5, "at it", 0.5))
            if isinstance(result, BaseException):
                raise result
            return result

        # In this order: the module must not be imported with another's oracle.
        monkeypatch.setattr("revelu.tasks.extract.extract.extract", extract)
        monkeypatch.setattr("revelu.adapters.open_oracle", open_oracle)
        return seen

    return end


def recovery(status=Status.RECOVERED, network=TRUTH, **fields):
    ledger = revelu.Ledger(20, 3, {"recover": 15, "verify": 5})
    return Recovery(status, network, ledger=ledger, method="one_hidden", **fields)


# -- what is never overwritten -----------------------------------------------------------


@pytest.mark.parametrize("name", ["truth.npz", "./truth.npz", "folder/../truth.npz"])
def test_target_is_never_overwritten(invoke, outcome, tmp_path, name):
    TRUTH.save(tmp_path / "truth.npz")
    (tmp_path / "folder").mkdir()
    seen = outcome(recovery())
    result = invoke("extract", "truth.npz", "-o", "a.npz", "-o", name)
    assert result.exit_code == ExitCode.USAGE
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    assert "target itself" in result.stderr
    assert not seen
    assert not (tmp_path / "a.npz").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows asks for a privilege to make links")
def test_target_is_never_overwritten_through_a_link(invoke, outcome, tmp_path):
    TRUTH.save(tmp_path / "truth.npz")
    (tmp_path / "link.npz").symlink_to("truth.npz")
    seen = outcome(recovery())
    for target, name in (("truth.npz", "link.npz"), ("link.npz", "truth.npz")):
        assert invoke("extract", target, "-o", name).exit_code == ExitCode.USAGE
    assert not seen


# -- how it ends ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (Status.RECOVERED, 0),
        (Status.PARTIAL, 1),
        (Status.NOT_IN_CLASS, 1),
        (Status.NOT_DETERMINISTIC, 1),
        (Status.UNVERIFIED, 1),
        (Status.BUDGET_EXHAUSTED, 3),
    ],
)
def test_what_was_found_is_written_and_marked(invoke, outcome, tmp_path, status, code):
    outcome(recovery(status, evidence=("try [this] next",)))
    result = invoke("extract", "anything", "-o", "a.npz")
    assert result.exit_code == code == of_status(status)
    assert revelu.load(tmp_path / "a.npz") == TRUTH
    assert ("not certified" in result.stdout.lower()) == (status is not Status.RECOVERED)
    assert "try [this] next" in result.stdout


def test_nothing_found_writes_nothing_and_says_so(invoke, outcome, tmp_path):
    outcome(recovery(Status.NOT_IN_CLASS, network=None))
    result = invoke("extract", "anything", "-o", "a.npz", "--json")
    report = one_object(result.stdout)
    assert (report["outputs"], report["architecture"], report["parameters"]) == ([], None, None)
    assert list(tmp_path.iterdir()) == []
    assert "nothing to write" in invoke("extract", "anything", "-o", "a.npz").stdout
    assert "nothing to write" not in invoke("extract", "anything").stdout


@pytest.mark.parametrize("status", list(Status))
def test_certified_is_exit_code_0(invoke, outcome, status):
    outcome(recovery(status, certificate=replace(CERTIFICATE, passed=True)))
    result = invoke("extract", "anything", "--json")
    assert one_object(result.stdout)["certified"] is (result.exit_code == ExitCode.CERTIFIED)


def test_json_has_the_fields_of_the_contract(invoke, outcome):
    outcome(recovery(certificate=CERTIFICATE, warnings=("careful",), evidence=("seen",)))
    result = invoke("extract", "anything", "-o", "a.npz", "--json", "--seed", 8)
    report = one_object(result.stdout)
    assert report["schema"] == 1
    assert report["method"] == "one_hidden"
    assert (report["certified"], report["softmax"]) == (True, False)
    assert report["architecture"] == [5, 4, 1]
    assert report["parameters"] == TRUTH.n_parameters
    assert (report["queries"], report["rounds"], report["seed"]) == (20, 3, 8)
    phases = {"noise": 0, "recover": 15, "repair": 0, "polish": 0, "verify": 5}
    assert report["by_phase"] == phases
    versions = {"revelu", "python", "numpy", "scipy", "onnxruntime"}
    assert set(report["versions"]) == versions
    assert report["warnings"] == ["careful"]
    assert report["evidence"] == ["seen"]
    assert report["outputs"] == ["a.npz"]
    assert report["certificate"]["max_abs_error"] is None
    assert report["certificate"]["nrmse"] is None
    assert report["certificate"]["fraction_within"] == 0.5
    assert {"n_checks", "tolerance", "confidence", "l2_bound", "statement"} <= set(
        report["certificate"]
    )


def test_summary_says_what_a_user_must_know(invoke, outcome):
    outcome(recovery(certificate=CERTIFICATE, warnings=("careful",)))
    text = invoke("extract", "anything", "-o", "a.npz").stdout
    assert text.splitlines()[0] == "anything: recovered and certified"
    rate = (
        f"20 in 3 rounds (15 to recover, {15 / TRUTH.n_parameters:.2f} a parameter; 5 to certify)"
    )
    for words in ("5-4-1", rate, "careful", "a.npz"):
        assert words in text
    assert "said [in] brackets" in text


@pytest.mark.parametrize(
    ("n_checks", "words"), [(0, None), (1, "on that fresh check"), (2, "on those fresh checks")]
)
def test_largest_error_is_that_of_some_check(invoke, outcome, n_checks, words):
    outcome(recovery(certificate=replace(CERTIFICATE, n_checks=n_checks, max_abs_error=0.5)))
    lines = invoke("extract", "anything").stdout.splitlines()
    found = [line.rstrip() for line in lines if line.startswith("largest error")]
    assert found == ([] if words is None else [f"largest error  0.5 {words}"])


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (revelu.Network([[[1.0, 2.0]]], [[1.0]]), "affine (0 hidden neurons), 3 parameters"),
        (
            revelu.Network([np.zeros((0, 2)), np.zeros((2, 0))], [[], [1.0, 2.0]]),
            "affine (0 hidden neurons), 2 parameters",
        ),
        (TRUTH, "5-4-1, "),
    ],
)
def test_network_without_hidden_neurons_is_affine(invoke, outcome, network, words):
    outcome(recovery(network=network))
    assert words in invoke("extract", "anything").stdout


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (Status.BUDGET_EXHAUSTED, "nothing recovered yet: an affine map"),
        (Status.UNVERIFIED, "nothing recovered: an affine map"),
    ],
)
def test_affine_map_that_is_not_certified_is_nothing(invoke, outcome, status, words):
    affine = revelu.Network([[[1.0, 2.0]]], [[1.0]])
    outcome(recovery(status, network=affine))
    text = invoke("extract", "anything").stdout
    assert words in text
    assert "parameters" not in text


def test_largest_error_of_coarse_answers_includes_their_own(invoke, outcome):
    exact = recovery(certificate=CERTIFICATE)
    for found in (exact, replace(exact, method="fit")):
        outcome(found)
        said = "the target's own errors included" in invoke("extract", "anything").stdout
        assert said == (found is not exact)


@pytest.mark.parametrize(
    ("command", "without"), [("extract", {ExitCode.GIVEN_AWAY}), ("audit", set())]
)
def test_help_has_a_line_for_each_exit_code_at_80_columns(command, without):
    result = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(app, [command, "--help"])
    lines = [line.split() for line in result.stdout.splitlines()]
    firsts = [words[0] for words in lines if words and words[0].isdigit()]
    assert firsts == [str(int(code)) for code in ExitCode if code not in without]


def test_quiet_is_the_verdict_alone(invoke, outcome):
    outcome(recovery(certificate=CERTIFICATE))
    result = invoke("extract", "anything", "-q")
    assert result.stdout == "anything: recovered and certified\n"
    assert result.stderr == ""


def test_options_reach_the_extraction(invoke, outcome, tmp_path):
    seen = outcome(recovery())
    np.save(tmp_path / "X.npy", np.eye(6))
    result = invoke(
        "extract", "that", "--method", "one_hidden", "--budget", 9, "--seed", 8, "--checks", 7,
        "--dim-in", 6, "--max-seconds", 5, "--trust", "--box", -1, 0.5, "--journal", "run.db",
        "--workers", 2, "--batch", 12, "--rate", "5/s", "--input-name", "x", "--output-name", "y",
        "--input-shape", "1x6", "--activation", "relu", "--fixed", "rest.csv",
        "--polish", "--elsewhere", "--labels", "--inputs", tmp_path / "X.npy",
        "--widths", "6,3,1",
    )  # fmt: skip
    assert result.exit_code == 0
    assert seen.pop("widths") == [6, 3, 1]
    assert np.array_equal(seen.pop("inputs"), np.eye(6))
    assert callable(seen.pop("progress"))
    assert isinstance(seen.pop("executor"), ThreadPoolExecutor)
    assert seen == {
        "target": "that",
        "asked": "that",
        "method": "one_hidden",
        "polish": True,
        "box": (-1.0, 0.5),
        "budget": 9,
        "seed": 8,
        "checks": 7,
        "elsewhere": True,
        "labels": True,
        "dim_in": 6,
        "max_seconds": 5.0,
        "trust": True,
        "journal": Path("run.db"),
        "batch": 12,
        "link": "auto",
        "rate": "5/s",
        "input_name": "x",
        "output_name": "y",
        "input_shape": "1x6",
        "image": None,
        "activation": "relu",
        "fixed": Path("rest.csv"),
        "domain": None,
        "suggested": True,
        "remote": False,
        "classes": [],
    }


def test_trust_is_not_given_unasked(invoke, outcome):
    seen = outcome(recovery())
    invoke("extract", "that")
    assert seen["trust"] is False


def test_classifier_is_written_with_its_softmax(invoke, outcome, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    network = revelu.zoo.random_network([4, 3, 3], seed=2)
    outcome(recovery(network=network, link=SOFTMAX))
    result = invoke("extract", "that", "-o", "a.onnx", "-o", "a.npz", "--json")
    assert result.exit_code == 0, result.stderr
    assert one_object(result.stdout)["softmax"] is True
    session = ort.InferenceSession(tmp_path / "a.onnx", providers=["CPUExecutionProvider"])
    X = np.random.default_rng(1).standard_normal((6, 4))
    (Y,) = session.run(None, {session.get_inputs()[0].name: X})
    E = np.exp(network(X))
    np.testing.assert_allclose(Y, E / E.sum(axis=1, keepdims=True), atol=1e-12)
    assert revelu.load(tmp_path / "a.npz") == network


def test_one_file_that_fails_spares_the_others(invoke, outcome, tmp_path, monkeypatch):
    outcome(recovery())
    save = revelu.Network.save

    def full(self, path):
        if path.name == "full.npz":
            raise revelu.FormatError(f"{path}: no space left")
        save(self, path)

    monkeypatch.setattr(revelu.Network, "save", full)
    result = invoke("extract", "that", "-o", "full.npz", "-o", "a.npz", "--json")
    assert result.exit_code == ExitCode.USAGE
    report = one_object(result.stdout)
    assert report["outputs"] == ["a.npz"]
    assert report["warnings"] == ["full.npz: no space left; no other folder takes it"]
    assert report["status"] == "recovered"
    assert revelu.load(tmp_path / "a.npz") == TRUTH


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (revelu.InputError("x"), 2),
        (revelu.FormatError("x"), 2),
        (revelu.UntrustedError("x"), 2),
        (revelu.MissingExtraError("x"), 2),
        (revelu.LimitReachedError("x"), 3),
        (revelu.TargetError("two\nlines"), 4),
    ],
)
def test_error_has_its_exit_code(invoke, outcome, error, code):
    outcome(error)
    result = invoke("extract", "that")
    assert result.exit_code == code == of_error(error)
    assert result.stderr == f"revelu: {' '.join(str(error).split())}\n"


def test_length_of_rows_is_not_blamed_once_they_were_answered(invoke, outcome):
    error = revelu.TargetError("failed")
    error.__cause__ = ValueError("late")
    outcome(error)
    assert invoke("extract", "that", "--dim-in", 5).stderr == "revelu: failed\n"


def test_interrupt_counts_the_queries(invoke, outcome):
    outcome(KeyboardInterrupt())
    result = invoke("extract", "that")
    assert result.exit_code == ExitCode.INTERRUPTED
    assert result.stderr == "revelu: interrupted after 1,234 queries\n"


def test_defect_keeps_its_traceback(invoke, outcome):
    outcome(ZeroDivisionError("a defect"))
    assert isinstance(invoke("extract", "that").exception, ZeroDivisionError)


def test_verbose_logs_to_standard_error(invoke, tmp_path):
    TRUTH.save(tmp_path / "truth.npz")
    quiet, info, debug = (
        invoke("extract", "truth.npz", "--json", *flags) for flags in ([], ["-v"], ["-vv"])
    )
    assert quiet.stderr == ""
    assert "INFO revelu" in info.stderr
    assert "DEBUG revelu" not in info.stderr
    assert "DEBUG revelu" in debug.stderr
    for result in (quiet, info, debug):
        assert one_object(result.stdout)["status"] == "recovered"


def test_progress_is_shown_on_a_terminal_only(monkeypatch):
    assert ProgressLine()._display.disable
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert not ProgressLine()._display.disable
    assert ProgressLine(quiet=True)._display.disable


def test_a_log_gets_a_plain_line_now_and_then(capsys):
    for options in ({"every": 0.0}, {}, {"every": 0.0, "quiet": True}):
        with ProgressLine(**options) as line:
            line(Progress("recover", 1234, 5, "at it", 0.5))
    # A short run writes none, and a quiet one neither.
    told = capsys.readouterr().err
    assert told == "revelu: 0 s: recover: at it, 50%, 1,234 queries in 5 rounds\n"


# -- demos ------------------------------------------------------------------------------


def test_demos_are_listed(invoke):
    found = one_object(invoke("demos", "--json").stdout)["demos"]
    assert "demo:digits" in found
    listed = invoke("demos")
    assert listed.exit_code == 0
    for target, text in found.items():
        assert target in listed.stdout
        assert text in listed.stdout


def test_json_is_strict(capsys):
    print_json({"a": np.float64("inf"), "b": [np.int64(1), np.bool_(True)], "c": ("ü", None)})
    assert one_object(capsys.readouterr().out) == {"a": None, "b": [1, True], "c": ["ü", None]}
