"""What all tests share: hypothesis that repeats itself, and the command line as a process."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on every run, and no clock.
settings.register_profile("house", derandomize=True, deadline=None)
settings.load_profile("house")

COMMAND = [sys.executable, "-c", "from revelu.cli import main; main()"]

# Nothing hangs for longer than this; no test expects to come near it.
PATIENCE_SECONDS = 300

Run = Callable[..., "subprocess.CompletedProcess[str]"]


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
