"""The regression of CKM21, section 4.4, and the critical points of section 4.1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, kstest

from revelu.network import zoo
from revelu.numerics.critical_points import are_far, critical_points, reach, separation
from revelu.numerics.relu_features import (
    bounded_least_squares,
    draw_in_ball,
    features,
    may_be_neurons,
)
from revelu.recover.close.closeness import closeness


@given(st.integers(0, 10**6), st.floats(0.05, 3.0))
def test_the_bounded_regression_is_the_best_inside_its_ball(seed, share):
    rng = np.random.default_rng(seed)
    Z, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
    free = np.linalg.lstsq(Z, y, rcond=None)[0]
    bound = share * np.linalg.norm(free)
    found = bounded_least_squares(Z, y, bound)
    if share >= 1.0:
        np.testing.assert_allclose(found, free, atol=1e-9)
        return
    assert np.linalg.norm(found) == pytest.approx(bound, rel=1e-9)
    # On the sphere, the gradient points inwards along the radius: no feasible step helps.
    gradient = Z.T @ (Z @ found - y)
    along = gradient @ found / (found @ found)
    assert along < 0
    assert np.linalg.norm(gradient - along * found) < 1e-6 * np.linalg.norm(gradient)


def test_of_several_solutions_the_shortest_is_found():
    found = bounded_least_squares(np.ones((3, 2)), np.full(3, 2.0), 10.0)
    np.testing.assert_allclose(found, [1.0, 1.0])


@pytest.mark.parametrize(("d", "radius"), [(1, 0.7), (5, 2.0), (40, 9.0)])
def test_points_in_a_ball_follow_the_cut_law(d, radius):
    X = draw_in_ball(np.random.default_rng(d), 4_000, d, radius)
    squares = (X**2).sum(axis=1)
    assert squares.max() <= radius**2 * (1 + 1e-12)
    law = kstest(squares, lambda s: chi2.cdf(s, d) / chi2.cdf(radius**2, d))
    assert law.pvalue > 1e-3
    assert np.abs(X.mean(axis=0)).max() < 5 * X.std() / np.sqrt(len(X))


def test_features_reproduce_a_network_and_its_rows_pass_the_bounds():
    network = zoo.random_network([4, 6, 1], seed=3)
    (W, A), (b, c) = network.weights, network.biases
    X = np.random.default_rng(0).standard_normal((20, 4))
    v = np.concatenate([A[0], np.zeros(4), c])
    np.testing.assert_allclose(features(W, b, X) @ v, network(X)[:, 0])
    longest, bias = np.linalg.norm(W, axis=1).max(), np.abs(b).max()
    assert may_be_neurons(W, b, longest, bias).all()
    assert not may_be_neurons(2 * W, b, longest, bias).all()
    assert not may_be_neurons(W, 2 * b, longest, bias).all()


@given(st.integers(0, 10**6))
def test_neurons_are_zero_at_their_critical_points(seed):
    rng = np.random.default_rng(seed)
    W, b = rng.standard_normal((5, 3)), rng.standard_normal(5)
    x0, v = rng.standard_normal((2, 3))
    t = critical_points(W, b, x0, v)
    sums = (W * (x0 + t[:, None] * v)).sum(axis=1) + b
    assert np.abs(sums).max() < 1e-12 * (1 + np.abs(t).max()) * np.abs(W).max() * 3


@pytest.mark.parametrize("name", ["random", "clusters", "bumps", "far_biases"])
def test_lemmas_4_3_and_4_4_hold_on_the_zoo(name):
    network = zoo.KINDS[name]([6, 9, 1], seed=1)
    W, b = network.weights[0], network.biases[0]
    far = are_far(*closeness(W, b), 1e-3, 0.1)
    bound = separation(9, 6, 1e-3, 0.1)
    rng = np.random.default_rng(5)
    n_out, n_near = 0, 0
    for _ in range(200):
        v = rng.standard_normal(6)
        t = critical_points(W, b, rng.standard_normal(6), v / np.linalg.norm(v))
        n_out += np.abs(t).max() > reach(W, b, 0.1)
        n_near += (np.abs(t[:, None] - t)[far] < bound).any()
    # At most one line in ten, each; binomial, so 20 of 200 and three deviations.
    assert max(n_out, n_near) <= 33
