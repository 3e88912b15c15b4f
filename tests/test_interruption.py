"""Fits that are broken off, and what is left of an extraction then."""

import numpy as np
import pytest

import revelu
from revelu.errors import LimitReachedError
from revelu.numerics.interruption import check_cancelled, interruptible
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
