"""Neurons that errors point at, and a fit of those alone."""

import numpy as np
import pytest

from revelu import Network
from revelu.network import zoo
from revelu.numerics.gauss_newton import Stop
from revelu.recover.refine.network_fit import Samples
from revelu.recover.refine.some_neurons import fit_neurons, neurons_off

WIDTHS = [6, 14, 12, 3]


def with_errors(truth, neurons, size, seed=0):
    """Rows and outputs of last hidden neurons off by so much."""
    rng = np.random.default_rng(seed)
    W, A = truth.weights[-2].copy(), truth.weights[-1].copy()
    W[neurons] += size * rng.standard_normal(W[neurons].shape)
    A[:, neurons] *= 1.0 + size * rng.standard_normal((1, len(neurons)))
    return Network([*truth.weights[:-2], W, A], truth.biases)


def errors(network, truth, X):
    return np.abs(network(X) - truth(X)).max(axis=1)


@pytest.mark.parametrize("widths", [WIDTHS, [5, 9, 8, 10, 2]], ids=str)
def test_the_neurons_that_are_off_are_found_and_fitted(widths):
    truth, rng = zoo.random_network(widths, seed=2), np.random.default_rng(3)
    off = [1, 4]
    found, X = with_errors(truth, off, 1e-5), rng.standard_normal((4000, widths[0]))
    Y, unit = truth(X), np.ones(widths[-1])
    wrong = errors(found, truth, X) > 1e-9
    neurons = neurons_off(found, X[wrong], Y[wrong], unit, most=5)
    assert set(neurons[:2]) == set(off)
    fitted = fit_neurons(found, neurons, Samples(X, Y, unit), Stop(8))
    assert errors(fitted, truth, rng.standard_normal((4000, widths[0]))).max() < 1e-11
    others = np.setdiff1d(np.arange(widths[-2]), neurons)
    np.testing.assert_array_equal(fitted.weights[-2][others], found.weights[-2][others])


def test_most_says_how_many_and_those_that_explain_most_come_first():
    truth, rng = zoo.random_network(WIDTHS, seed=4), np.random.default_rng(5)
    found, X = with_errors(truth, list(range(12)), 1e-6), rng.standard_normal((3000, 6))
    share = (truth.preactivations(X)[1] > 0).sum(axis=1) == 1
    neurons = neurons_off(found, X[share], truth(X)[share], np.ones(3), most=3)
    assert len(neurons) <= 3
    assert set(neurons) <= set(np.flatnonzero((truth.preactivations(X)[1] > 0).any(axis=0)))


def test_one_output_does_not_tell():
    truth = zoo.random_network([4, 8, 6, 1], seed=1)
    X = np.random.default_rng(0).standard_normal((500, 4))
    found = with_errors(truth, [2], 1e-5)
    assert not len(neurons_off(found, X, truth(X), np.ones(1), most=3))


def test_too_few_answers_leave_the_network_as_it_is():
    truth = zoo.random_network(WIDTHS, seed=4)
    X = np.random.default_rng(0).standard_normal((3, 6))
    found = with_errors(truth, [2], 1e-5)
    assert fit_neurons(found, np.array([2]), Samples(X, truth(X), np.ones(3)), Stop(3)) is found
