"""The paper's listings as printed, on small networks, beside revelu."""

import numpy as np
import pytest

import revelu
from listings import ckm21
from revelu.network import l2_distance, l2_norm


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
