"""The command line as a process: exit codes, signals, files, one JSON object."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import revelu
from conftest import COMMAND, PATIENCE_SECONDS, one_object, start_process
from revelu.cli.exit_codes import ExitCode

TRUTH = revelu.zoo.random_network([5, 4, 1], seed=1)


# A file that takes nothing; the ways to run the program, and to print a recovery.
FULL = Path("/dev/full")
PROGRAMS = [COMMAND, [sys.executable, "-m", "revelu"]]
FLAGS = [[], ["--json"], ["--quiet"]]


def with_signals(test):
    """Run a test with each signal that interrupts."""
    test = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])(test)
    reason = "Windows sends neither signal to one process"
    return pytest.mark.skipif(os.name == "nt", reason=reason)(test)


def run(arguments, folder, environment, *, command=COMMAND, stdout=None):
    """A process in ``folder`` that writes to ``stdout``."""
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env=environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_readme_command_recovers_the_demo(run_revelu):
    done = run_revelu("extract", "demo:digits", "-o", "stolen.onnx", "--json")
    assert done.returncode == ExitCode.CERTIFIED, done.stderr
    report = one_object(done.stdout)
    assert done.stderr == ""
    assert report["status"] == "recovered"
    assert report["outputs"] == ["stolen.onnx"]
    assert report["architecture"][0] == 64
    assert report["architecture"][-1] == 10
    assert sum(report["by_phase"].values()) == report["queries"]
    assert report["certificate"]["fraction_within"] == 1.0
    assert report["certificate"]["n_checks"] == 3000


@pytest.mark.slow
def test_files_answer_as_the_target_does(run_revelu, tmp_path):
    TRUTH.save(tmp_path / "truth.onnx")
    done = run_revelu("extract", "truth.onnx", "-o", "a.onnx", "-o", "a.npz", "--seed", 3)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    X = np.random.default_rng(0).standard_normal((50, 5))
    for name in ("a.onnx", "a.npz"):
        assert name in done.stdout
        np.testing.assert_allclose(
            revelu.load(tmp_path / name)(X), TRUTH(X), rtol=0, atol=1e-7 * np.abs(TRUTH(X)).max()
        )


def test_same_seed_same_account(run_revelu, tmp_path):
    TRUTH.save(tmp_path / "truth.npz")
    first, second = (
        one_object(run_revelu("extract", "truth.npz", "--json", "--seed", 5).stdout) for _ in "ab"
    )
    assert first.pop("seconds") >= 0
    assert second.pop("seconds") >= 0
    assert first == second


@pytest.mark.slow
def test_small_budget_is_exit_3_and_never_exceeded(run_revelu):
    done = run_revelu("extract", "demo:digits", "--budget", 100, "--json")
    report = one_object(done.stdout)
    assert (done.returncode, report["status"]) == (ExitCode.EXHAUSTED, "budget_exhausted")
    assert report["queries"] <= 100
    assert report["evidence"]


@pytest.mark.slow
@pytest.mark.parametrize("attribute", ["nan", "wrong_shape", "fails"])
@pytest.mark.usefixtures("module")
def test_nonsense_is_exit_4(run_revelu, attribute):
    done = run_revelu("extract", f"answers:{attribute}", "--trust", "--dim-in", 3)
    assert done.returncode == ExitCode.TARGET
    assert done.stdout == ""
    said, *asked = done.stderr.splitlines()
    assert said.startswith(f"revelu: answers:{attribute} ")
    # What was answered, be it nonsense, is counted in a line of its own.
    assert len(asked) == (attribute != "fails")


@pytest.mark.slow
@pytest.mark.usefixtures("module")
def test_tanh_is_exit_1_with_evidence(run_revelu):
    done = run_revelu("extract", "answers:tanh", "--trust", "--dim-in", 3, "-o", "a.npz", "--json")
    report = one_object(done.stdout)
    assert (done.returncode, report["status"]) == (ExitCode.NOT_CERTIFIED, "not_in_class")
    assert report["evidence"]


@pytest.mark.slow
@pytest.mark.usefixtures("module")
def test_random_answers_are_exit_1(run_revelu):
    done = run_revelu("extract", "answers:random", "--trust", "--dim-in", 3, "--json")
    assert done.returncode == ExitCode.NOT_CERTIFIED
    assert one_object(done.stdout)["status"] == "not_deterministic"


@pytest.mark.parametrize("arguments", [["--no-such-option"], ["extract"], ["no-such-command"]])
def test_usage_is_exit_2(run_revelu, arguments):
    done = run_revelu(*arguments)
    assert done.returncode == ExitCode.USAGE
    assert done.stdout == ""
    assert done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["demos"], *(["extract", "a.npz", *f] for f in FLAGS)]
)
def test_full_standard_output_is_one_line_and_exit_2(tmp_path, environment, arguments):
    TRUTH.save(tmp_path / "a.npz")
    with FULL.open("w") as full:
        done = run(arguments, tmp_path, environment, stdout=full)
    assert done.returncode == ExitCode.USAGE
    assert re.fullmatch(r"revelu: standard output .*\n", done.stderr)


@pytest.mark.skipif(os.name == "nt", reason="the shell's notation is POSIX's")
def test_closed_standard_output_is_refused_before_the_first_query(module, environment):
    command = [*COMMAND, "extract", "answers:relu", "--trust", "--dim-in", "3"]
    done = run(["-c", '"$@" >&-', "sh", *command], module, environment, command=["sh"])
    assert done.returncode == ExitCode.USAGE
    assert done.stderr == "revelu: standard output is closed\n"
    assert not (module / "asked").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has another error for it")
@pytest.mark.parametrize("flags", FLAGS)
def test_broken_pipe_is_quiet(tmp_path, environment, flags):
    TRUTH.save(tmp_path / "a.npz")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run(["extract", "a.npz", *flags], tmp_path, environment, stdout=writer)
    finally:
        os.close(writer)
    assert done.returncode != 0
    assert done.stderr == ""


def test_module_is_the_same_program(tmp_path, environment):
    done = run(["--version"], tmp_path, environment, command=PROGRAMS[1], stdout=subprocess.PIPE)
    assert done.returncode == 0
    assert done.stdout == f"revelu {revelu.__version__}\n"


def test_version(run_revelu):
    done = run_revelu("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"revelu \d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.slow
@with_signals
@pytest.mark.parametrize("attribute", ["sleeps", "sleeps_in_text"])
@pytest.mark.parametrize("command", PROGRAMS)
def test_interrupt_is_exit_130(module, environment, number, command, attribute):
    arguments = ["extract", f"answers:{attribute}", "--trust", "--dim-in", "3", "--json"]
    code, stdout, stderr = interrupt(number, [*command, *arguments], module, environment)
    assert code == ExitCode.INTERRUPTED
    asked = re.fullmatch(r"revelu: interrupted after ([\d,]+) queries\n", stderr)
    assert int(asked[1].replace(",", "")) > 0
    assert one_object(stdout)["status"] == "interrupted"


@pytest.mark.parametrize("command", ["span", "obfuscate"])
def test_interrupted_span_is_exit_130_and_writes_nothing(module, environment, command):
    np.save(module / "x.npy", np.ones((2, 3)))
    files = {"span": ["-o", "s.npz"], "obfuscate": ["--inputs", "x.npy", "-o", "y.npy"]}[command]
    arguments = [command, "answers:sleeps", "--trust", "--dim-in", "3", "--journal", "run.db"]
    code, stdout, stderr = interrupt(
        signal.SIGINT, [*COMMAND, *arguments, *files], module, environment
    )
    assert code == ExitCode.INTERRUPTED
    assert stdout.startswith("answers:sleeps: not finished: interrupted\n")
    line = r"^revelu: interrupted after [\d,]+ queries; the same command goes on from there$"
    assert re.search(line, stderr, re.MULTILINE)
    assert not (module / files[-1]).exists()
    assert (module / "run.db").exists()


# A library whose import takes long, and that makes another exception of what it meets.
SLOW_IMPORT = """
import pathlib
import time

try:
    pathlib.Path("asleep").write_text("")
    for _ in range(6000):
        time.sleep(0.1)
except BaseException:
    raise ImportError("no such library")
"""


@pytest.mark.slow
@with_signals
@pytest.mark.parametrize("library", ["typer", "numpy", "onnxruntime"])
@pytest.mark.parametrize("command", PROGRAMS)
def test_interrupt_while_starting_is_exit_130(tmp_path, environment, number, library, command):
    (tmp_path / f"{library}.py").write_text(SLOW_IMPORT)
    TRUTH.save(tmp_path / "a.onnx")
    code, stdout, stderr = interrupt(number, [*command, "extract", "a.onnx"], tmp_path, environment)
    assert code == ExitCode.INTERRUPTED
    assert stdout == ""
    assert re.fullmatch(r"revelu: interrupted( after 0 queries)?\n", stderr)


def interrupt(number, command, folder, environment):
    """Exit code, output and errors of a process that gets a signal once it is asleep."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with start_process(command, cwd=folder, env=environment, **pipes) as process:
        try:
            _wait_for(folder / "asleep")
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
    return process.returncode, stdout, stderr


def _wait_for(path):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} never came"
        time.sleep(0.02)
