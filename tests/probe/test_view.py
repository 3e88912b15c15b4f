"""A target in other coordinates: what is asked, how rounds are counted, how noise grows."""

import numpy as np

import revelu
from revelu.oracle import Oracle, measure_noise
from revelu.probe.residual import Residual
from revelu.probe.view import AboveLayer


def above_first(network):
    oracle = Oracle(network, network.dim_in)
    return oracle, AboveLayer(oracle, network.weights[0], network.biases[0])


def test_what_lies_above_a_layer_is_the_upper_network():
    network = revelu.zoo.random_network([9, 6, 5, 2], seed=931)
    oracle, above = above_first(network)
    H = np.abs(np.random.default_rng(932).standard_normal((50, 6)))
    upper = revelu.Network(network.weights[1:], network.biases[1:])
    np.testing.assert_allclose(above(H), upper(H), atol=1e-12)
    np.testing.assert_allclose(above.hidden(above.inputs(H)), H, atol=1e-12)
    assert oracle.n_queries == 50
    # Of all inputs that the layer takes there it is the shortest.
    across = np.linalg.svd(network.weights[0])[2][6:]
    assert np.abs(across @ above.inputs(H).T).max() < 1e-12


def test_rounds_are_those_of_the_target():
    network = revelu.zoo.random_network([5, 4, 3, 1], seed=933)
    oracle, above = above_first(network)
    with above.round():
        above(np.ones((2, 4)))
        above(np.ones((3, 4)))
    assert (oracle.ledger().n_rounds, oracle.n_queries) == (1, 5)
    # A function alone counts nothing.
    alone = AboveLayer(network, network.weights[0], network.biases[0])
    with alone.round():
        np.testing.assert_array_equal(alone(np.ones((2, 4))), above(np.ones((2, 4))))


def test_noise_grows_with_the_inputs_that_are_asked():
    network = revelu.zoo.random_network([9, 6, 5, 2], seed=934)
    oracle, above = above_first(network)
    noise, H = measure_noise(oracle, 935), np.ones((20, 6))
    above.W, above.inverse = 1e-3 * above.W, 1e3 * above.inverse
    stretch = above.noise(noise, H).nu / noise.nu
    expected = np.median(np.linalg.norm(above.inputs(H), axis=1)) / np.sqrt(9 * 2)
    np.testing.assert_allclose(stretch, expected, rtol=1e-3)
    near = Residual(oracle, network)
    np.testing.assert_array_equal(near.noise(noise, H[:, :1] * np.ones(9)).nu, noise.nu)


def test_a_target_less_its_network_is_rounding():
    network = revelu.zoo.random_network([5, 4, 3, 1], seed=936)
    rest = Residual(Oracle(network, 5), network)
    assert np.abs(rest(np.random.default_rng(937).standard_normal((40, 5)))).max() == 0.0
