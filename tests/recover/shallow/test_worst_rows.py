"""Rows that have lost digits are told by what they leave of answers, and fitted."""

import numpy as np
import pytest

import revelu
from revelu import Network
from revelu.recover.shallow.worst_rows import fit_worst_rows


def off_by(network, rows, size, rng):
    """The network with some rows off."""
    (W, A), (b, c) = network.weights, network.biases
    W, b = W.copy(), b.copy()
    W[rows] += size * rng.standard_normal(W[rows].shape)
    b[rows] += size * rng.standard_normal(len(rows))
    return Network([W, A], [b, c], skip=network.skip)


def asked(network, rng, n):
    X = rng.standard_normal((n, network.dim_in))
    Y = network(X)
    return X, Y, Y.std(axis=0)


def error(network, truth, rng):
    X, Y, unit = asked(truth, rng, 4000)
    return np.sqrt((((network(X) - Y) / unit) ** 2).mean())


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("has_skip", [False, True])
def test_few_rows_that_are_off_are_fitted(k, has_skip):
    rng = np.random.default_rng(k)
    truth = revelu.zoo.random_network([12, 60, k], seed=k)
    if has_skip:
        skip = rng.standard_normal((k, 12)), rng.standard_normal(k)
        truth = Network(truth.weights, truth.biases, skip=skip)
    wrong = off_by(truth, [3, 17, 40], 1e-7, rng)
    mended = fit_worst_rows(wrong, *asked(truth, rng, 40 * 13))
    assert error(mended, truth, rng) < 1e-4 * error(wrong, truth, rng)


def test_rows_that_are_right_stay_as_they_are():
    rng = np.random.default_rng(5)
    truth = revelu.zoo.random_network([12, 60, 2], seed=5)
    wrong = off_by(truth, [7], 1e-7, rng)
    mended = fit_worst_rows(wrong, *asked(truth, rng, 40 * 13))
    moved = np.abs(mended.weights[0] - wrong.weights[0]).max(axis=1) > 1e-12
    assert set(np.flatnonzero(moved)) <= {7}


def test_faint_neurons_that_are_none_take_no_rows_place():
    rng = np.random.default_rng(9)
    truth = revelu.zoo.random_network([12, 60, 1], seed=9)
    wrong = off_by(truth, [3, 17, 40], 1e-7, rng)
    (W, A), (b, c) = wrong.weights, wrong.biases
    more = rng.standard_normal((3, 12)), 1e-6 * rng.standard_normal((1, 3)), rng.standard_normal(3)
    wrong = Network([np.vstack([W, more[0]]), np.hstack([A, more[1]])], [np.append(b, more[2]), c])
    samples = asked(truth, rng, 40 * 13)
    mended = fit_worst_rows(wrong, *samples, max_rows=3)
    assert mended.architecture == truth.architecture
    assert error(mended, truth, rng) < 1e-4 * error(wrong, truth, rng)
    # A neuron that is faint and there stays.
    faint = Network(wrong.weights, wrong.biases)
    spoiled = off_by(faint, [3, 17, 40], 1e-7, rng)
    mended = fit_worst_rows(spoiled, *asked(faint, rng, 40 * 13))
    assert mended.architecture == faint.architecture
    assert error(mended, faint, rng) < 1e-4 * error(spoiled, faint, rng)


def test_no_row_is_fitted_where_none_is_worse_than_others():
    rng = np.random.default_rng(6)
    truth = revelu.zoo.random_network([8, 30, 1], seed=6)
    X, Y, unit = asked(truth, rng, 40 * 9)
    noisy = Y + 1e-9 * rng.standard_normal(Y.shape)
    assert fit_worst_rows(truth, X, noisy, unit) is truth


def test_a_wide_layer_with_near_kinks_keeps_its_budget():
    truth = revelu.zoo.random_network([10, 400, 1], seed=35_300_000)
    recovery = revelu.extract(truth, method="one_hidden", seed=35_300_007)
    assert recovery.status is revelu.Status.RECOVERED
    assert error(recovery.network, truth, np.random.default_rng(1)) < 5e-9
    assert recovery.ledger.n_recovery <= 1.6 * truth.n_parameters
