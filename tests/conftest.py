"""What tests share: hypothesis that repeats itself, and the command line as a process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The tests fill the cores; BLAS reads this when NumPy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples on every run, and no clock: drawing is slow on a busy machine, too.
settings.register_profile(
    "house",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have `--dist loadgroup` give tests that share what a module makes once to one worker."""
    for item in items:
        shared = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009 - no other way
        if any(fixtures[-1].scope == "module" for fixtures in shared):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


COMMAND = [sys.executable, "-c", "from revelu.cli import main; main()"]

# Nothing hangs for longer than this; no test expects to come near it.
PATIENCE_SECONDS = 300

Run = Callable[..., "subprocess.CompletedProcess[str]"]


# Targets that answer one way each, for ``module:attribute``.
MODULE = """
import pathlib
import time

import numpy as np


def tanh(X):
    return np.tanh(X).sum(axis=1)


def nan(X):
    return np.full(len(X), np.nan)


def wrong_shape(X):
    return np.zeros((len(X) + 1, 1))


def fails(X):
    raise RuntimeError("out of order")


def relu(X):
    pathlib.Path("asked").write_text("")
    return np.maximum(X, 0).sum(axis=1)


def sleeps(X):
    if pathlib.Path("asked").exists():
        pathlib.Path("asleep").write_text("")
        # In short sleeps: a signal that comes just before one is heard only after it.
        for _ in range(6000):
            time.sleep(0.1)
    return relu(X)


def sleeps_in_text(X):
    names = {"answer": sleeps, "X": X}
    exec("Y = answer(X)", names)
    return names["Y"]


def random(X, rng=np.random.default_rng(0)):
    return rng.standard_normal(len(X))
"""


def one_object(text: str) -> dict[str, Any]:
    """The JSON object that ``text`` is, strictly."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    assert text.count("\n") == 1
    return json.loads(text, parse_constant=refuse)


def start_process(command: list[str], **options: Any) -> "subprocess.Popen[Any]":
    """Start a process that SIGINT interrupts, wherever the tests run.

    A shell starts background jobs with SIGINT ignored; their processes inherit that, and
    revelu keeps to it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(command, **options)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of a process whose output does not depend on the terminal."""
    return {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}


@pytest.fixture
def run_revelu(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Run the command line as a process in ``tmp_path``."""

    def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    return run


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A folder, the working one, with the module ``answers``."""
    (tmp_path / "answers.py").write_text(MODULE, encoding="utf-8")
    return tmp_path
