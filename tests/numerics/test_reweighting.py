"""Robust regression by reweighting, against truth and against an independent minimiser."""

import numpy as np
import pytest
import scipy.optimize

from revelu.numerics.reweighting import Cauchy, LeastDeviations, larger_than_said, reweighted


def problem(n=80, p=4, k=1, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)), rng.standard_normal((p, k)), rng


@pytest.mark.parametrize("loss", [LeastDeviations(1e-12), Cauchy(1e-12)])
def test_what_a_third_contradicts_is_found_exactly(loss):
    A, X, rng = problem(k=3, seed=951)
    B = A @ X
    B[::3] += 10.0 * rng.standard_normal(B[::3].shape)
    np.testing.assert_allclose(reweighted(A, B, loss, 60), X, atol=1e-9)


def test_least_deviations_are_the_linear_program_s():
    A, x, rng = problem(seed=952)
    b = A @ x[:, 0] + rng.laplace(size=len(A))
    found = reweighted(A, b, LeastDeviations(0.0, share=1e-3), 200)
    n, p = A.shape
    whole = np.hstack([A, -A, np.eye(n), -np.eye(n)])
    least = scipy.optimize.linprog(np.r_[np.zeros(2 * p), np.ones(2 * n)], A_eq=whole, b_eq=b)
    assert np.abs(A @ found - b).sum() <= least.fun * (1.0 + 1e-3)


def test_cauchy_s_solution_is_a_stationary_point_of_the_likelihood():
    A, x, rng = problem(seed=953)
    b = A @ x[:, 0] + rng.standard_cauchy(size=len(A))
    found = reweighted(A, b, Cauchy(1.0, times=0.0), 300)
    r = b - A @ found
    np.testing.assert_allclose(A.T @ (2.0 * r / (1.0 + r**2)), 0.0, atol=1e-6)


def test_steps_end_where_most_equations_hold():
    A, X, rng = problem(seed=954)
    B = A @ X + 1e-3 * rng.standard_normal((len(A), 1))
    plain = np.linalg.lstsq(A, B, rcond=None)[0]
    once_more = reweighted(A, B, LeastDeviations(1e-12), 60, enough=1.0)
    np.testing.assert_array_equal(once_more, reweighted(A, B, LeastDeviations(1e-12), 2))
    assert not np.array_equal(once_more, plain)


@pytest.mark.parametrize("factor", [0.5, 1.0, 4.0])
def test_errors_that_are_too_small_are_told_by_the_median(factor):
    rests = np.abs(factor * np.random.default_rng(955).standard_normal(20_000))
    rests[:1000] = 1e6
    expected = max(factor * 1.063, 1.0)  # the quantile at 0.4737 of the others is the median
    assert abs(larger_than_said(rests) / expected - 1.0) < 0.03
