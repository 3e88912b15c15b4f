"""Weights that few answers tell, against networks in which just these were changed."""

import numpy as np
import pytest

from revelu.network import Network
from revelu.recover.deep.rough_growth import RoughGrowth
from revelu.recover.deep.rough_weights import WeightCorrections
from revelu.recover.refine.network_fit import Samples, top_of, with_top

NOISE, SIZE, OFF = 1e-7, RoughGrowth().size_of_wrong, RoughGrowth().least


def true_network(seed, d_out=1):
    rng = np.random.default_rng(seed)
    shapes = (9, 5), (7, 9), (d_out, 7)
    weights = [rng.standard_normal(shape) / np.sqrt(shape[1]) for shape in shapes]
    # The first of the upper neurons is on at few inputs.
    biases = [0.5 * rng.standard_normal(9), 0.3 * rng.standard_normal(7), np.zeros(d_out)]
    sums = Network(weights, biases).preactivations(rng.standard_normal((4000, 5)))[1][:, 0]
    biases[1][0] -= np.quantile(sums, 0.97)
    return Network(weights, biases)


def answers(truth, rng, n=4000):
    X = rng.standard_normal((n, truth.dim_in))
    Y = truth(X)
    return Samples(X, Y + NOISE * rng.standard_normal(Y.shape), NOISE * np.ones((n, 1)))


def changed(network, *entries):
    V, c = network.weights[1].copy(), network.biases[1].copy()
    for j, h, by in entries:
        if h is None:
            c[j] += by
        else:
            V[j, h] += by
    W, A = network.weights[0], network.weights[2]
    return Network([W, V, A], [network.biases[0], c, network.biases[2]])


def without_one(truth, X):
    """The network without the rarest of its other upper neurons."""
    rare = 1 + (truth.preactivations(X)[1][:, 1:] > 0).mean(axis=0).argmin()
    return with_top(truth, top_of(truth).take(np.arange(7) != rare))


def off(network, truth):
    """How far upper weights and biases are off, at most."""
    there = np.column_stack([network.weights[1], network.biases[1]])
    return np.abs(there - np.column_stack([truth.weights[1], truth.biases[1]])).max()


def n_wrong(network, samples):
    return int((np.abs(samples.residual(network)).max(axis=1) > 20.0).sum())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d_out", [1, 3])
@pytest.mark.parametrize(
    "entries",
    [[(0, 2, -0.6)], [(0, 2, 0.6)], [(0, None, 0.3)], [(0, 4, -0.5), (3, 1, 0.4)]],
    ids=["less", "more", "bias", "two"],
)
def test_weights_are_corrected_to_what_answers_tell(seed, d_out, entries):
    truth, rng = true_network(seed, d_out), np.random.default_rng([seed, 1])
    samples, network = answers(truth, rng), changed(true_network(seed, d_out), *entries)
    found = WeightCorrections().corrected(network, samples, SIZE, OFF, rng)
    assert off(network, truth) > 0.2
    # A weight is told by several answers, each to some errors by what it hears.
    assert off(found, truth) < 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_a_weight_is_told_though_another_neuron_is_missing(seed):
    truth, rng = true_network(seed), np.random.default_rng([seed, 1])
    samples = answers(truth, rng)
    lacking = without_one(truth, samples.X)
    found = WeightCorrections().corrected(changed(lacking, (0, 2, -0.6)), samples, SIZE, OFF, rng)
    assert abs(found.weights[1][0, 2] - lacking.weights[1][0, 2]) < 1e-4
    # Nothing is worse for that: what is wrong is what the missing neuron gives.
    assert n_wrong(found, samples) <= n_wrong(lacking, samples)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_right_stays_and_what_lacks_a_neuron_is_no_weight(seed):
    truth, rng = true_network(seed), np.random.default_rng([seed, 1])
    samples = answers(truth, rng)
    assert WeightCorrections().corrected(truth, samples, SIZE, OFF, rng) is truth
    lacking = without_one(truth, samples.X)
    assert off(WeightCorrections().corrected(lacking, samples, SIZE, OFF, rng), lacking) == 0.0


def test_neurons_that_read_nothing_or_give_nothing_are_left_alone():
    truth, rng = true_network(0), np.random.default_rng(1)
    samples, network = answers(truth, rng), changed(truth, (0, 2, -0.6))
    (W, V, A), biases = network.weights, network.biases
    V, A = np.vstack([V, 0.0 * V[:2]]), np.column_stack([A, [[1.0, 0.0]]])
    idle = Network([W, V, A], [biases[0], np.append(biases[1], [-1.0, 1.0]), biases[2]])
    found = WeightCorrections().corrected(idle, samples, SIZE, OFF, rng)
    assert abs(found.weights[1][0, 2] - truth.weights[1][0, 2]) < 1e-4
    np.testing.assert_array_equal(found.weights[1][-2:], 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_answers_that_are_exact_are_no_harder(seed):
    truth, rng = true_network(seed), np.random.default_rng([seed, 1])
    samples = answers(truth, rng, 1000)
    exact = Samples(samples.X, truth(samples.X), 1e-12 * np.ones(1))
    found = WeightCorrections().corrected(changed(truth, (0, 2, -0.6)), exact, SIZE, OFF, rng)
    assert n_wrong(found, exact) == 0
