"""Inputs to ask next, held against the covariance that asking them leaves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revelu.numerics.design import Foretold


def left_open(told, chosen):
    """Standard errors once answers are asked, by inverting all of their information."""
    p = told.shape[2]
    asked = told[chosen].reshape(-1, p)
    C = np.linalg.inv(np.eye(p) + asked.T @ asked)
    return np.sqrt(np.einsum("nkp,pq,nkq->nk", told, C, told).max(axis=1))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 3), at_once=st.sampled_from([1, 4, 64]))
def test_no_answer_errs_by_more_once_those_chosen_are_asked(seed, k, at_once):
    told = np.random.default_rng(seed).standard_normal((60, k, 9)) * 0.6
    foretold = Foretold(told)
    chosen = foretold.telling(0.8, 60, at_once=at_once)
    assert len(set(chosen.tolist())) == len(chosen) < 60
    others = np.setdiff1d(np.arange(60), chosen)
    assert left_open(told, chosen)[others].max() <= 0.8 + 1e-9
    assert foretold.errors[chosen].min() > 0.8
    assert left_open(told, chosen[:-1])[np.append(others, chosen[-1])].max() > 0.8


def test_one_at_a_time_is_always_the_worst():
    told = np.random.default_rng(4).standard_normal((40, 2, 7))
    chosen = Foretold(told).telling(0.0, 6, at_once=1)
    for i, one in enumerate(chosen):
        errors = left_open(told, chosen[:i])
        errors[chosen[:i]] = 0.0
        assert errors.argmax() == one


def test_foretold_errors_are_those_of_least_squares():
    rng = np.random.default_rng(5)
    J, there = rng.standard_normal((50, 6)), rng.standard_normal((8, 6))
    foretold = Foretold.of(np.triu(J.T @ J), there, 2)
    exact = np.sqrt(np.einsum("np,pq,nq->n", there, np.linalg.inv(J.T @ J), there))
    assert foretold.errors == pytest.approx(exact.reshape(4, 2).max(axis=1), rel=1e-6)


def test_nothing_is_chosen_where_nothing_is_open_or_looked_at():
    assert not len(Foretold(np.full((5, 1, 2), 0.1)).telling(1.0, 5))
    assert not len(Foretold(np.empty((0, 3, 4))).telling(0.0, 5))


def test_what_nothing_tells_is_asked_first_without_losing_what_is_left():
    rng = np.random.default_rng(6)
    told = rng.standard_normal((30, 2, 6))
    told[:, :, 0] *= 1e12
    chosen = Foretold(told).telling(1.0, 30)
    left = left_open(told / np.r_[1e12, np.ones(5)], chosen)  # the first is as good as known
    others = np.setdiff1d(np.arange(30), chosen)
    assert len(chosen) < 30
    assert left[others].max() <= 1.0 + 1e-6
