"""What is said of signs that are not known: the same function only where that is certified."""

import pytest

import revelu
from revelu.network import zoo
from revelu.recover.signs import SAME_FUNCTION, SKIP_KEPT
from revelu.recovery import Ledger, Recovery, Status
from revelu.tasks.extract import extract as task


@pytest.mark.parametrize("status", [Status.UNVERIFIED, Status.BUDGET_EXHAUSTED, Status.RECOVERED])
def test_the_function_is_said_to_be_the_same_where_it_is_certified(monkeypatch, status):
    truth = zoo.random_network([3, 4, 1], seed=0)
    note = f"{SKIP_KEPT}: several choices of signs fit{SAME_FUNCTION}"
    found = Recovery(status, truth, ledger=Ledger(0, 0, {}), evidence=(note,))
    monkeypatch.setattr(task, "_run", lambda *_, **__: found)
    said = " ".join(revelu.extract(truth).evidence)
    assert SKIP_KEPT in said
    assert (SAME_FUNCTION in said) == (status is Status.RECOVERED)
