"""What Python and other packages warn of reaches no terminal as it is."""

import pytest

from conftest import one_object

WARNS = """
import logging, warnings
import numpy as np

logging.getLogger("stamina").addHandler(logging.NullHandler())

class OldModelWarning(UserWarning):
    __module__ = "sklearn.exceptions"

def noisy(X):
    for _ in range(3):
        warnings.warn("trained by\\n another version", OldModelWarning)
        warnings.warn("plain words")
        logging.getLogger("urllib3.pool").warning("retrying %d", 1)
        logging.getLogger("stamina").warning("for who listens to it")
        np.array([1.0]) / 0.0
    return np.maximum(X, 0.0) @ np.ones(3)

def fails(X):
    warnings.warn("said before the end")
    raise ValueError("no")
"""


@pytest.fixture
def target(tmp_path):
    (tmp_path / "warns.py").write_text(WARNS)
    return ["--trust", "--dim-in", 3]


@pytest.mark.slow
def test_a_warning_is_told_once_in_a_line_of_ours(run_revelu, target):
    done = run_revelu("extract", "warns:noisy", *target)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    said = [rest for label, rest in lines if label == "warning"]
    for text in ("sklearn: trained by another version", "plain words", "urllib3: retrying 1"):
        assert said.count(text) == 1
    assert "divide" not in done.stdout
    assert "stamina" not in done.stdout


@pytest.mark.slow
def test_programs_read_it_among_the_warnings(run_revelu, target):
    done = run_revelu("extract", "warns:noisy", *target, "--json")
    assert done.stderr == ""
    assert "plain words" in one_object(done.stdout)["warnings"]


@pytest.mark.slow
def test_the_log_has_its_place(run_revelu, target):
    done = run_revelu("extract", "warns:noisy", *target, "-v")
    assert "divide by zero encountered in divide (RuntimeWarning, warns.py:" in done.stderr
    assert "  warnings.warn(" not in done.stderr


@pytest.mark.slow
def test_a_command_that_fails_tells_it_too(run_revelu, target):
    done = run_revelu("extract", "warns:fails", *target)
    assert done.returncode == 4
    first, second = done.stderr.splitlines()
    assert first == "revelu: warning: said before the end"
    assert second.startswith("revelu: warns:fails")
