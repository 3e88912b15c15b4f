"""Callables that ask elsewhere: their pace, and audits that ask them no more than they must."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.errors import InputError, TargetError
from revelu.tasks.audit.paid import PaidAnswers

NETWORK = revelu.zoo.random_network([10, 6, 3], seed=5)


class Elsewhere:
    """A callable that counts what it is asked."""

    dim_in = NETWORK.dim_in

    def __init__(self):
        self.n_rows = self.n_calls = 0

    def __call__(self, X):
        self.n_rows += len(X)
        self.n_calls += 1
        return NETWORK(X)


@pytest.mark.slow
def test_audit_costs_no_more_than_an_extraction():
    once, audited = Elsewhere(), Elsewhere()
    found = revelu.extract(once, seed=3)
    assert found.status is revelu.Status.RECOVERED
    audit = revelu.audit(audited, seed=3, remote=True, max_seconds=60)
    assert audited.n_rows == audit.ledger.n_queries
    assert audited.n_rows <= 1.5 * once.n_rows
    assert audit.served
    assert audit.rows[0].recovered == "weights"
    assert not audit.rows[0].extrapolated
    others = [row for row in audit.rows[1:] if row.finding is not None]
    assert all(row.extrapolated for row in others)
    # The noise floor of an attack is asked with the same rows behind each defence of answers.
    assert any("64 of its" in row.notes[0] for row in others)


@pytest.mark.slow
def test_local_callables_are_audited_behind_each_defence():
    local = Elsewhere()
    audit = revelu.audit(local, seed=3, max_seconds=20)
    assert not audit.served
    assert not any(row.extrapolated for row in audit.rows if row.defence == "float32")


def test_rate_keeps_calls_apart(monkeypatch):
    waits = []
    stopped = SimpleNamespace(monotonic=lambda: 0.0, sleep=waits.append)
    monkeypatch.setattr("revelu.adapters.pace.time", stopped)
    target = Elsewhere()
    X = np.zeros((6, 10))
    with ThreadPoolExecutor(3) as pool:
        options = {"remote": True, "rate": "20/s", "batch": 1, "executor": pool}
        revelu.open_oracle(target, **options)(X)
    assert target.n_calls == 6
    assert sorted(waits) == pytest.approx(np.arange(6) / 20)
    with pytest.raises(InputError, match="rate is for served models"):
        revelu.open_oracle(target, rate="20/s")
    with pytest.raises(InputError, match="an oracle has its own remote"):
        revelu.open_oracle(revelu.open_oracle(target), remote=True)


def test_remote_callables_are_watched():
    target = Elsewhere()

    def drifting(X):
        target(X)
        return NETWORK(X) * (1.0 + (target.n_rows > 200))

    with pytest.raises(TargetError, match="has changed"):
        revelu.extract(drifting, dim_in=10, seed=3, remote=True)


@pytest.mark.slow
def test_option_of_the_command_line(module, monkeypatch):
    monkeypatch.chdir(module)
    arguments = ["answers:relu", "--trust", "--dim-in", "4", "--remote", "--rate", "1000/s"]
    done = CliRunner().invoke(app, ["audit", *arguments, "--max-seconds", "30", "--json"])
    assert done.exit_code == 0, done.stderr
    account = one_object(done.stdout)
    assert account["served"] is True
    assert account["queries"] < 6000


def test_paid_answers_stand_before_others():
    paid = PaidAnswers()
    X = np.random.default_rng(0).standard_normal((4, 10))
    asked = paid.keeping(NETWORK)
    np.testing.assert_array_equal(asked(X), NETWORK(X))
    again = paid.or_else(lambda Z: np.zeros((len(Z), 3)))
    Y = again(np.vstack([X[1:3], X[:1] + 1.0]))
    np.testing.assert_array_equal(Y[:2], NETWORK(X)[1:3])
    assert not Y[2].any()
    assert (paid.n_paid, paid.n_others) == (2, 1)
