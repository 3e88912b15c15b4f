"""The lowest layer under a high threshold: asked for, and from samples."""

import numpy as np
import pytest

import revelu
from revelu import Status
from revelu.numerics.matching import match_rows
from threshold_networks import (
    Polynomial,
    ThresholdNetwork,
    random_directions,
    threshold_network,
)


def errors(found, net):
    rows, _ = match_rows(found.directions, net.directions)
    assert (rows >= 0).all()
    return (
        np.linalg.norm(found.directions[rows] - net.directions, axis=1).max(),
        np.abs(found.thresholds[rows] - net.thresholds).max(),
    )


def samples(net, n, seed=0):
    X = np.random.default_rng([7, seed]).standard_normal((n, net.directions.shape[1]))
    return X, net(X)


@pytest.mark.parametrize("activation", ["relu", "sign"])
@pytest.mark.parametrize("threshold", [0.5, 2.0])
def test_a_layer_comes_back_from_an_oracle(activation, threshold):
    net = threshold_network((8, 4), threshold=threshold, kappa=2.0, activation=activation, seed=1)
    found = revelu.recover_lowest_layer(net, dim_in=8, activation=activation)
    assert found.status is Status.RECOVERED
    assert max(errors(found, net)) < 1e-10
    assert found.errors.max() < 1e-10
    assert found.ledger.by_phase["recover"] <= 100 * 8 * 4 + 2000


def test_what_is_above_may_be_a_network():
    rng = np.random.default_rng(0)
    W = random_directions(3, 6, 1.5, rng)
    upper = revelu.zoo.random_network([3, 5, 2], seed=3)

    def target(X):
        return upper(np.maximum(X @ W.T - 1.5, 0.0))

    found = revelu.recover_lowest_layer(target, dim_in=6)
    assert found.status is Status.RECOVERED
    rows, _ = match_rows(found.directions, W)
    assert np.abs(found.directions[rows] - W).max() < 1e-6


def test_coefficients_of_both_signs_do_no_harm_to_an_oracle():
    W = random_directions(3, 5, 1.0, np.random.default_rng(1))
    P = Polynomial({(0, 0, 0): 1.0, (1, 0, 0): 1.0, (0, 1, 0): -1.0, (0, 0, 1): 0.5})
    net = ThresholdNetwork(W, np.array([1.0, 1.5, 2.0]), P)
    found = revelu.recover_lowest_layer(net, dim_in=5)
    assert max(errors(found, net)) < 1e-10


@pytest.mark.parametrize(("kappa", "threshold"), [(1.0, 2.0), (2.0, 1.5)])
def test_relu_samples_give_the_layer_exactly(kappa, threshold):
    net = threshold_network((6, 3), threshold=threshold, kappa=kappa, seed=2)
    X, y = samples(net, 60_000)
    found = revelu.recover_lowest_layer(X=X, y=y)
    assert found.status is Status.RECOVERED
    assert len(found.directions) == 3
    assert max(errors(found, net)) < 1e-10
    rows, _ = match_rows(found.directions, net.directions)
    c = net.polynomial.linear()
    assert np.abs(found.details["coefficients"][rows] - c).max() < 1e-9
    assert found.details["constant"] == net.polynomial.terms[0, 0, 0]


def test_relu_samples_with_coefficients_of_both_signs_give_the_layer():
    W = random_directions(3, 6, 1.0, np.random.default_rng(1))
    P = Polynomial({(0, 0, 0): 1.0, (1, 0, 0): 1.0, (0, 1, 0): -1.0, (0, 0, 1): 0.8})
    net = ThresholdNetwork(W, np.full(3, 1.5), P)
    found = revelu.recover_lowest_layer(None, *samples(net, 60_000), n_neurons=3)
    assert found.status is Status.RECOVERED
    assert max(errors(found, net)) < 1e-10


def test_sign_samples_give_the_layer_to_the_errors_given():
    net = threshold_network((5, 3), threshold=1.8, activation="sign", seed=3)
    X, y = samples(net, 60_000)
    found = revelu.recover_lowest_layer(X=X, y=y, activation="sign")
    assert found.status is Status.RECOVERED
    off_angle, off_threshold = errors(found, net)
    assert off_angle < min(4 * found.errors.max(), 0.01)
    assert off_threshold < 4 * found.details["threshold_errors"].max()


def test_a_smooth_layer_comes_back_with_the_polynomial_above_it():
    net = threshold_network((5, 2), threshold=3.0, activation="sigmoid", seed=4)
    found = revelu.recover_lowest_layer(
        net, dim_in=5, activation="sigmoid", n_neurons=2, budget=200_000
    )
    assert found.status is Status.RECOVERED
    assert found.ledger.n_queries <= 200_000
    assert max(errors(found, net)) < 1e-9
    X, y = samples(net, 50_000)
    assert max(errors(revelu.recover_lowest_layer(None, X, y, "sigmoid", 2), net)) < 1e-9


def test_what_is_above_a_smooth_layer_may_be_no_polynomial():
    net = threshold_network((5, 2), threshold=2.0, activation="sigmoid", seed=4)

    def target(X):
        return np.tanh(4.0 * net(X))

    found = revelu.recover_lowest_layer(
        target, dim_in=5, activation="sigmoid", n_neurons=2, budget=100_000
    )
    assert found.status is Status.PARTIAL
    assert found.evidence
    assert (found.errors <= 0.5).all()


def test_a_low_threshold_is_said_to_be_one():
    net = threshold_network((6, 4), threshold=-1.0, activation="relu", seed=5)
    X, y = samples(net, 5000)
    found = revelu.recover_lowest_layer(X=X, y=y)
    assert found.status is Status.NOT_IN_CLASS
    assert "threshold is too low" in found.evidence[0]
    asked = revelu.recover_lowest_layer(net, dim_in=6)
    assert asked.status is Status.NOT_IN_CLASS


def test_few_events_tell_how_many_more_samples_would_do():
    net = threshold_network((10, 3), threshold=3.5, seed=6)
    X, y = samples(net, 20_000)
    found = revelu.recover_lowest_layer(X=X, y=y, n_neurons=3)
    assert found.status is Status.PARTIAL
    assert not len(found.directions)
    assert "more samples would hold them" in found.evidence[0]


def test_noise_is_no_constant():
    net = threshold_network((5, 2), seed=7)
    X, y = samples(net, 5000)
    noisy = y + 1e-3 * np.random.default_rng(0).standard_normal(len(y))
    found = revelu.recover_lowest_layer(X=X, y=noisy)
    assert found.status is Status.NOT_IN_CLASS
    assert "noise" in found.evidence[0]


def test_no_direction_is_certified_where_few_samples_show_it():
    net = threshold_network((10, 5), threshold=2.2, kappa=2.0, seed=8)
    X, y = samples(net, 30_000)
    few, many = (revelu.recover_lowest_layer(X=X[:n], y=y[:n], n_neurons=5) for n in (3000, 30_000))
    assert many.status is Status.RECOVERED
    assert len(many.directions) == 5
    assert few.status is Status.PARTIAL
    assert few.evidence
    assert (few.errors <= 0.5).all()


def test_a_budget_is_kept():
    net = threshold_network((8, 4), seed=1)
    found = revelu.recover_lowest_layer(net, dim_in=8, budget=1200)
    assert found.status is Status.BUDGET_EXHAUSTED
    assert found.ledger.n_queries <= 1200


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"X": np.ones((4, 2)), "y": np.ones(4)},
        {"X": np.eye(4), "y": np.arange(4), "n_neurons": 5},
        {"X": np.eye(4), "y": np.arange(4), "activation": "tanh"},
        {"target": len, "dim_in": 3, "n_neurons": 4},
    ],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(revelu.InputError):
        revelu.recover_lowest_layer(**arguments)
