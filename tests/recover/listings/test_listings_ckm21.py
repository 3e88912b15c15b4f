"""The paper's listings as printed, on small networks, beside revelu."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revelu
from listings import ckm21
from listings.ckm21_lines import are_far, critical_points, reach, separation
from revelu.network import l2_distance, l2_norm, zoo
from revelu.recover.close.closeness import closeness


def small_network():
    W = np.array([[1.0, 0.5], [-0.8, 0.9], [0.3, -1.1]])
    return revelu.Network([W, [[1.0, -1.0, 1.0]]], [[-0.4, 0.3, 0.2], [0.0]])


def scalar(network):
    return lambda x: float(network(np.asarray(x)[None])[0, 0])


SCALES = (3, 1.3, 0.5, 1.0)  # k, R, B and the slack of (14)
BOUNDS = (3 * 1.3, 1.0 + 3 * 0.5)


def test_listing_1_is_the_intercept_in_t_and_2_the_gradient():
    f = scalar(small_network())
    rng = np.random.default_rng(0)
    x0, v = np.array([5.0, 5.0]), np.array([0.6, 0.8])
    gradient = ckm21.get_gradient(f, x0, 1e-3, rng)
    step = 1e-3 * np.eye(2)
    np.testing.assert_allclose(gradient, [(f(x0 + s) - f(x0)) / 1e-3 for s in step], atol=1e-9)
    intercept = ckm21.get_bias(f, (x0, v), (-0.1, 0.1))
    assert intercept == pytest.approx(f(x0), abs=1e-9)


@pytest.mark.slow
def test_listing_3_finds_the_neurons_among_its_pairs():
    truth = small_network()
    rng = np.random.default_rng(2)
    neurons = ckm21.get_neurons(scalar(truth), 2, 0.05, 6.0, 1e-4, BOUNDS, rng)
    for w, b in zip(truth.weights[0], truth.biases[0], strict=True):
        errors = [np.hypot(np.linalg.norm(v - w), c + b) for v, c in neurons]
        assert min(errors) < 1e-6


def test_listing_4_and_revelu_learn_the_same_function():
    truth = small_network()
    rng = np.random.default_rng(2)
    learned, _ = ckm21.learn_from_queries(scalar(truth), 2, 0.05, 6.0, 1e-4, SCALES, 400, rng)
    recovery = revelu.extract(truth, method="near_duplicates", seed=1)
    X = np.random.default_rng(5).standard_normal((300, 2))
    apart = np.array([learned(x) for x in X]) - truth(X)[:, 0]
    assert np.sqrt((apart**2).mean()) < 1e-2 * l2_norm(truth)
    assert l2_distance(recovery.network, truth) < 1e-9


def test_a_bump_between_midpoints_is_lost_as_example_1_2_says():
    # relu(x - a) + relu(x - a - h) - relu(2x - 2a - h): equal slopes on both sides.
    a, h = 0.31, 1e-3
    bump = revelu.Network(
        [[[1.0], [1.0], [2.0]], [[1.0, 1.0, -1.0]]], [[-a, -a - h, -2 * a - h], [0.0]]
    )
    rng = np.random.default_rng(0)
    assert ckm21.get_neurons(scalar(bump), 1, 0.05, 4.0, 1e-4, (6.0, 4.0), rng) == []
    assert l2_norm(bump) > 0


# -- the regression (19) -------------------------------------------------------------------


@given(st.integers(0, 10**6), st.floats(0.05, 3.0))
def test_the_bounded_regression_is_the_best_inside_its_ball(seed, share):
    rng = np.random.default_rng(seed)
    Z, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
    free = np.linalg.lstsq(Z, y, rcond=None)[0]
    bound = share * np.linalg.norm(free)
    found = ckm21.regress(Z, y, bound)
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
    found = ckm21.regress(np.ones((3, 2)), np.full(3, 2.0), 10.0)
    np.testing.assert_allclose(found, [1.0, 1.0])


# -- critical points on a line (4.1) -------------------------------------------------------


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
