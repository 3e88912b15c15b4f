"""The affine rest of a network of one hidden layer, from fresh answers."""

import numpy as np
import pytest

from revelu.network import Network, add_networks, affine_network, zoo
from revelu.oracle import Oracle
from revelu.recover.shallow.affine_rest import add_affine_rest

D = 6


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def affine(rng, size=1.0):
    return affine_network(size * rng.standard_normal((2, D)), size * rng.standard_normal(2))


def rest_added(truth, network, rng):
    """The network with its rest, and how many queries that took."""
    oracle = Oracle(truth, D)
    return add_affine_rest(oracle, network, rng), oracle.n_queries


def test_an_affine_map_that_is_off_comes_back_to_the_last_digits(rng):
    truth = affine(rng)
    mended, n = rest_added(truth, add_networks(truth, affine(rng, 1e-9)), rng)
    X = rng.standard_normal((100, D))
    np.testing.assert_allclose(mended(X), truth(X), rtol=0.0, atol=1e-14)
    assert n <= 3 * (D + 1)


def test_what_a_missing_neuron_adds_is_left_out(rng):
    truth = affine(rng)
    # One answer of fifteen or so.
    rare = Network([rng.standard_normal((1, D)), [[1e3], [1e3]]], [[-3.5], [0.0, 0.0]])
    mended, _ = rest_added(
        lambda X: truth(X) + rare(X), add_networks(truth, affine(rng, 1e-6)), rng
    )
    X = rng.standard_normal((100, D))
    np.testing.assert_allclose(mended(X), truth(X), rtol=0.0, atol=1e-12)


def test_a_network_that_leaves_only_rounding_stays_as_it_is(rng):
    truth = zoo.random_network([D, 4, 2], seed=3)
    assert rest_added(truth, truth, rng)[0] is truth
    noisy = np.random.default_rng(1)
    answer = lambda X: truth(X) + 1e-9 * noisy.standard_normal((len(X), 2))  # noqa: E731
    assert rest_added(answer, truth, rng)[0] is truth
