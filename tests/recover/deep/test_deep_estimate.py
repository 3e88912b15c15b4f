"""What equations say of a neuron's unknowns: the solution, what is open, and how sure it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revelu.recover.deep.estimate import Estimate


def told(A, y, errors, rng, **options):
    estimate = Estimate(A.shape[1], rng, **options)
    for row, value, error in zip(A, y, np.broadcast_to(errors, len(y)), strict=True):
        estimate.add(row, float(value), float(error))
    return estimate


@given(st.integers(0, 2**20), st.integers(1, 12), st.integers(0, 6), st.booleans())
def test_random_equations_give_all_unknowns_in_any_order(seed, size, spare, solved):
    rng = np.random.default_rng(seed)
    A, theta = rng.standard_normal((size + spare, size)), rng.standard_normal(size)
    A = A[rng.permutation(len(A))]
    estimate = told(A, A @ theta, 1e-13, rng)
    assert estimate.n_undetermined == 0
    tolerance = 1e-11 * np.linalg.cond(A[:size]) ** 2
    if solved:
        estimate.solve()
        tolerance = 1e-11 * np.linalg.cond(A)
    assert np.abs(estimate.theta - theta).max() <= tolerance * np.linalg.norm(theta)


@given(st.integers(0, 2**20), st.integers(2, 12), st.integers(0, 11))
def test_what_is_undetermined_is_the_null_space_of_the_equations(seed, size, rank):
    rng = np.random.default_rng(seed)
    rank = min(rank, size)
    A = rng.standard_normal((size + 3, rank)) @ rng.standard_normal((rank, size))
    theta = rng.standard_normal(size)
    estimate = told(A, A @ theta, 1e-13, rng, rounding=1e-9)
    N = estimate.undetermined
    assert estimate.n_undetermined == size - rank
    np.testing.assert_allclose(N.T @ N, np.eye(size - rank), atol=1e-10)
    assert np.abs(A @ N).max(initial=0.0) <= 1e-6 * max(1.0, np.abs(A).max())
    # No member has a part there; every draw agrees with the equations.
    assert np.abs(estimate.members @ N).max(initial=0.0) < 1e-6 * (
        1 + np.abs(estimate.members).max()
    )
    drawn = estimate.drawn(2.0)
    assert np.abs(drawn[0] - estimate.theta).max() == 0.0
    left = np.abs((drawn[1:] - estimate.members[1:]) @ A.T)
    assert left.max(initial=0.0) < 1e-5 * max(1.0, np.abs(A).max())


def test_a_draw_is_as_large_as_its_scale_in_what_is_undetermined():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((3, 40))
    estimate = told(A, np.ones(3), 1e-12, rng, n_members=50)
    sizes = [estimate.drawn(scale)[1:] @ estimate.undetermined for scale in (0.5, 5.0)]
    assert np.std(sizes[0]) == pytest.approx(0.5, rel=0.1)
    assert np.std(sizes[1]) == pytest.approx(5.0, rel=0.1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.03, 0.06])
def test_equations_that_contradict_the_rest_are_left_out(seed, share):
    rng = np.random.default_rng(seed)
    A, theta, error = rng.standard_normal((120, 12)), rng.standard_normal(12), 1e-9
    y = A @ theta + error * rng.standard_normal(120)
    # Among those that come first, too, of which each gives one unknown.
    wrong = rng.random(120) < share
    wrong[3] = True
    y[wrong] += rng.choice([-1.0, 1.0], wrong.sum()) * 10.0 ** rng.uniform(-5, 0, wrong.sum())
    estimate = told(A, y, error, rng)
    assert np.abs(estimate.theta - theta).max() > 1e-7
    estimate.solve()
    assert np.abs(estimate.theta - theta).max() < 10 * error


def test_equations_that_contradict_the_rest_are_left_out_where_some_unknowns_are_open():
    rng = np.random.default_rng(9)
    B = rng.standard_normal((6, 15))
    A, theta = rng.standard_normal((80, 6)) @ B, rng.standard_normal(15)
    y = A @ theta + 1e-9 * rng.standard_normal(80)
    y[::9] += 0.1
    estimate = told(A, y, 1e-9, rng, rounding=1e-9)
    estimate.solve()
    assert estimate.n_undetermined == 9
    fresh = rng.standard_normal((20, 6)) @ B
    assert np.abs(fresh @ (estimate.theta - theta)).max() < 1e-7


@pytest.mark.parametrize("solved", [False, True])
def test_members_differ_by_as_much_as_the_solution_is_off(solved):
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(60):
        size = int(rng.integers(3, 15))
        A, theta = rng.standard_normal((size + 4, size)), rng.standard_normal(size)
        errors = 10.0 ** rng.uniform(-9, -6, len(A))
        estimate = told(A, A @ theta + errors * rng.standard_normal(len(A)), errors, rng)
        if solved:
            estimate.solve()
        fresh = rng.standard_normal(size)
        off = abs(fresh @ (estimate.theta - theta))
        ratios.append(off / (estimate.members[1:] @ fresh).std())
    # Of a normal error over a standard deviation of six: the median is near 0.7.
    assert 0.3 < np.median(ratios) < 1.5
    assert np.quantile(ratios, 0.9) < 8.0


def test_a_spread_is_relative_and_shrinks_with_more_equations():
    rng = np.random.default_rng(2)
    A, theta = rng.standard_normal((400, 8)), rng.standard_normal(8)
    few = told(A[:10], A[:10] @ theta, 1e-6, rng, n_members=40)
    many = told(A, A @ theta, 1e-6, rng, n_members=40)
    few.solve()
    many.solve()
    assert many.spread < few.spread / 2
    larger = told(A, 1e3 * (A @ theta), 1e-6, rng, n_members=40)
    larger.solve()
    assert larger.spread < 1e-2 * many.spread
    assert Estimate(3, rng).spread == 0.0


def test_a_direction_that_equations_tell_poorly_is_undetermined():
    rng = np.random.default_rng(11)
    A, theta = rng.standard_normal((20, 5)), rng.standard_normal(5)
    A[:, 4] *= 1e-11  # an error of 1e-12 leaves the last one off by a tenth
    estimate = told(A, A @ theta, 1e-12, rng)
    estimate.solve()
    assert estimate.n_undetermined == 1
    assert abs(estimate.undetermined[4, 0]) > 0.999
    assert np.abs(estimate.theta[:4] - theta[:4]).max() < 1e-9
    assert abs(estimate.theta[4]) < 1e-6


@pytest.mark.parametrize("times", [1.0, 1e4])
def test_equations_that_agree_less_well_than_they_say_have_larger_errors(times):
    # As above rows that have errors of their own.
    rng, size, error = np.random.default_rng(3), 8, 1e-12
    A, theta = rng.standard_normal((60, size)), rng.standard_normal(size)
    estimate = told(A, A @ theta + times * error * rng.standard_normal(60), error, rng)
    estimate.solve()
    off = np.linalg.norm(estimate.theta - theta)
    said = np.linalg.norm(estimate.members[1:].std(axis=0))
    assert 0.2 * off < said < 5.0 * off


@pytest.mark.parametrize("seed", range(5))
def test_a_solution_leaves_no_more_than_the_errors(seed):
    # As along a walk: each equation tells one unknown more, from those that are known roughly.
    rng, size, error = np.random.default_rng(seed), 120, 1e-14
    theta, units = rng.standard_normal(size), 10.0 ** rng.uniform(-3.0, 1.0, size)
    reached = np.arange(size) <= np.minimum(np.arange(2 * size) // 2 + 3, size - 1)[:, None]
    A = rng.standard_normal((2 * size, size)) * reached * units
    estimate = told(A, A @ theta + error * rng.standard_normal(2 * size), error, rng)
    estimate.solve()
    assert np.abs(A @ estimate.theta - A @ theta).max() <= 10.0 * error
    assert np.abs(estimate.theta - theta).max() <= 100.0 * estimate.spread * np.linalg.norm(theta)
