"""The paper's listings as printed find the same network that revelu finds."""

import numpy as np
import pytest

import revelu
from listings import dg21

DELTA = 0.02


def regular_network():
    """A small network that is DELTA-regular on the first axis."""
    W = np.array([[1.0, 0.5, -0.3], [-0.8, 0.4, 0.9], [0.7, -0.6, 0.2]])
    b = np.array([1.5, 0.4, -0.9])
    A = np.array([[1.2, -0.7, 0.9]])
    return revelu.Network([W, A], [b, np.array([0.3])])


def scalar(network):
    return lambda x: float(network(np.asarray(x)[None])[0, 0])


def test_listing_6_and_revelu_agree_with_the_truth():
    truth = regular_network()
    printed, neurons = dg21.recover_depth_two(scalar(truth), 3, DELTA)
    recovery = revelu.extract(truth, seed=4)
    X = np.random.default_rng(0).standard_normal((200, 3))
    assert len(neurons) == 3 == recovery.network.architecture[1]
    np.testing.assert_allclose([printed(x) for x in X], truth(X)[:, 0], atol=1e-7)
    np.testing.assert_allclose(recovery.network(X), truth(X), atol=1e-10)


def test_listing_6_hyperplanes_are_those_of_revelu():
    truth = regular_network()
    _, neurons = dg21.recover_depth_two(scalar(truth), 3, DELTA)
    network = revelu.extract(truth, seed=4).network
    mine = np.column_stack([network.weights[0], network.biases[0]])
    mine /= np.linalg.norm(mine, axis=1)[:, None]
    for _, w, b in neurons:
        row = np.append(w, b) / np.linalg.norm(np.append(w, b))
        assert np.abs(mine @ row).max() == pytest.approx(1.0, abs=1e-9)


def test_listings_4_and_5_agree_with_kink_strengths():
    from revelu.probe.hyperplane import kink_strengths, points_on_hyperplanes

    truth = regular_network()
    f = scalar(truth)
    W, b = truth.weights[0], truth.biases[0]
    X, _ = points_on_hyperplanes(np.random.default_rng(1), W, b)
    axis = np.repeat(np.eye(3)[:1], 3, axis=0)
    step = np.full(3, 1e-3)
    on = kink_strengths(truth, X, axis, step)[:, 0]
    off = kink_strengths(truth, X + 0.1 * axis, axis, step)[:, 0]
    assert [dg21.is_convex(f, 1e-3, x) for x in X] == list(on > 0)
    assert [dg21.is_general(f, 1e-3, x) for x in X] == [False] * 3
    assert [dg21.is_general(f, 1e-3, x) for x in X + 0.1 * axis] == list(np.abs(off) < 1e-9)
