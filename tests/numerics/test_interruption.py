"""Fits that are broken off, and what is left of an extraction then."""

import numpy as np
import pytest

import revelu
from revelu.errors import LimitReachedError
from revelu.numerics.interruption import (
    WorkEndedError,
    at_most,
    check_cancelled,
    interruptible,
    spend,
)
from revelu.oracle import Oracle, Rounded, degrade


def test_nothing_happens_where_nobody_looks():
    check_cancelled()


def test_looks_end_with_their_block_and_do_not_mix():
    seen = []
    with interruptible(lambda: seen.append("outer")):
        check_cancelled()
        with interruptible(lambda: seen.append("inner")):
            check_cancelled()
        check_cancelled()
    check_cancelled()
    assert seen == ["outer", "inner", "outer"]


def test_multiplications_end_the_innermost_block_and_count_for_those_around_it():
    spend(1e30)
    with at_most(5.0) as outer:
        spend(2.0)
        with at_most(1.0) as inner, pytest.raises(WorkEndedError):
            spend(2.0)
        assert outer.spent == 4.0
        spend(1.0)
        with pytest.raises(WorkEndedError):
            spend(1.0)
    assert (outer.spent, inner.spent) == (6.0, 2.0)
    spend(1e30)


@pytest.mark.parametrize("seconds", [3.0, 40.0])
def test_a_fit_ends_when_the_time_is_over(seconds):
    """The clock is a count of looks at it, so that no machine is too fast."""
    looks = 0

    def clock():
        nonlocal looks
        looks += 1
        return float(looks)

    target = degrade(revelu.zoo.random_network([6, 8, 1], seed=1), Rounded(3))
    oracle = Oracle(target, 6, max_seconds=seconds, clock=clock)
    recovery = revelu.extract(oracle)
    assert recovery.status is revelu.Status.BUDGET_EXHAUSTED
    assert any(f"the {seconds:g} seconds allowed are over" in text for text in recovery.evidence)
    assert looks < seconds + 10
    with pytest.raises(LimitReachedError):
        oracle(np.zeros((1, 6)))
