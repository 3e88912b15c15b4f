"""Processes that are killed: what they were answered is kept, and asked for no more."""

import os
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import revelu
from conftest import COMMAND, PATIENCE_SECONDS, one_object
from revelu.cli.exit_codes import ExitCode
from revelu.oracle import Journal
from serving import serving

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")

NETWORK = revelu.zoo.random_network([8, 10, 1], seed=4)


class Deadly:
    """A model that sends a signal to whoever asks once more than so many requests."""

    dim_in = 8

    def __init__(self):
        self.asked, self.victim, self.number, self.after = [], None, None, None

    def __call__(self, X):
        # The server asks for one row when it starts.
        if self.victim is not None:
            self.asked.append(X.tobytes())
            if len(self.asked) - 1 == self.after:
                os.kill(self.victim.pid, self.number)
                self.victim.wait(PATIENCE_SECONDS)
        return NETWORK(X)


@pytest.fixture
def start(tmp_path, environment):
    """Run an extraction with a journal, killed by a signal after so many requests."""
    model = Deadly()
    with serving(model) as server:

        def run(journal="run.db", number=signal.SIGKILL, after=None):
            model.number, model.after = number, after
            command = ["extract", server.url, "--journal", journal, "--batch", "16"]
            command += ["--seed", "5", "--checks", "500"]
            model.victim = subprocess.Popen(
                [*COMMAND, *command, "-o", f"{journal}.npz", "--json"],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stdout, stderr = model.victim.communicate(timeout=PATIENCE_SECONDS)
            asked, model.asked = model.asked, []
            return model.victim.returncode, stdout, stderr, asked

        yield run


def n_rows(batches):
    """Rows of batches as they came over the network, in float64."""
    return sum(len(batch) for batch in batches) // (8 * NETWORK.dim_in)


def check_that_nothing_is_lost(run, folder, shares, number=signal.SIGKILL):
    """Kill an extraction after each share of its requests, and let it finish."""
    code, stdout, stderr, whole = run("whole.db")
    assert code == 0, stderr
    whole_report = one_object(stdout)
    ends = []
    for i, share in enumerate(shares):
        journal, after = f"{i}.db", round(share * (len(whole) - 1))
        code, _, _, before = run(journal, number, after)
        ends.append(code)
        assert len(before) == after + 1
        kept = Journal(folder / journal)
        assert kept.n_queries == n_rows(before[:after]), "an answer is lost"
        kept.close()
        code, stdout, stderr, later = run(journal)
        assert code == 0, stderr
        report = one_object(stdout)
        # Asked twice: the batch in flight, and eight rows that are asked again on purpose.
        again = Counter(before + later) - Counter(whole)
        again.subtract([before[after]])
        extra = list(again.elements())
        assert len(extra) <= 1
        assert all(len(batch) == 8 * 8 * NETWORK.dim_in for batch in extra)
        assert not Counter(whole) - Counter(before + later)
        # Killed at its very last request, a run has all it needs, and asks nothing more.
        assert report["queries"] == n_rows(before[:after] + later)
        assert later or any("asked nothing" in warning for warning in report["warnings"])
        assert report["certificate"] == whole_report["certificate"]
        same = revelu.load(folder / f"{journal}.npz") == revelu.load(folder / "whole.db.npz")
        assert same
    return ends


@pytest.mark.slow
def test_killed_run_goes_on_where_it_stopped(start, tmp_path):
    ends = check_that_nothing_is_lost(start, tmp_path, [0.4])
    assert ends == [-signal.SIGKILL]


@pytest.mark.slow
def test_interrupted_run_goes_on_where_it_stopped(start, tmp_path):
    ends = check_that_nothing_is_lost(start, tmp_path, [0.1], signal.SIGTERM)
    assert ends == [ExitCode.INTERRUPTED]


@pytest.mark.slow
def test_runs_killed_anywhere_go_on_where_they_stopped(start, tmp_path):
    shares = np.linspace(0.0, 1.0, 8)
    ends = check_that_nothing_is_lost(start, tmp_path, shares)
    assert ends == [-signal.SIGKILL] * len(shares)
