"""Least squares over two-layer networks: derivatives, fits, pruning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revelu.network import Network, add_networks, zoo
from revelu.numerics.gauss_newton import Iterative, Stop
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import are_determined, prune
from revelu.recover.fit.smallest import Smallest
from revelu.recover.refine.network_fit import AUTOMATIC, Automatic, NetworkFit, Samples, fit


def random_network(rng, d, m, k, *, affine):
    skip = (rng.standard_normal((k, d)), np.zeros(k)) if affine else None
    weights = [rng.standard_normal((m, d)), rng.standard_normal((k, m))]
    return Network(weights, [rng.standard_normal(m), rng.standard_normal(k)], skip)


def samples_of(network, rng, n, sigma=1e-6):
    X = rng.standard_normal((n, network.dim_in))
    return Samples(X, network(X), np.full(network.dim_out, sigma))


@pytest.mark.slow
@pytest.mark.parametrize("dense", [True, False])
def test_a_fit_from_nearby_ends_at_the_truth(dense):
    rng = np.random.default_rng(1)
    d, m, k, n = (6, 5, 2, 400) if dense else (60, 26, 1, 4000)
    truth = random_network(rng, d, m, k, affine=False)
    assert AUTOMATIC.is_dense(n * k, truth.n_parameters) is dense
    samples = samples_of(truth, rng, n)
    vector = truth.to_vector()
    start = truth.like(vector + 0.02 * rng.standard_normal(len(vector)) * np.abs(vector))
    found = fit(start, samples, Stop(60, rtol=0.02), solver=Automatic(Iterative(60)))
    assert found.cost < 1.0
    X = rng.standard_normal((500, d))
    np.testing.assert_allclose(found.network(X), truth(X), atol=1e-4)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_a_fit_never_ends_worse_than_it_began(seed):
    rng = np.random.default_rng(seed)
    samples = samples_of(random_network(rng, 3, 4, 1, affine=False), rng, 60)
    start = random_network(rng, 3, 4, 1, affine=True)
    found = fit(start, samples, Stop(5))
    assert found.cost <= samples.cost(start) * (1 + 1e-9)
    assert found.cost == pytest.approx(samples.cost(found.network))


def split(network, rng):
    """The same function with neurons split in two, turned round and always on."""
    (W, A), (b, c) = network.weights, network.biases
    share = rng.uniform(0.2, 0.8, len(W))
    doubled = Network(
        [np.vstack([W, W]), np.hstack([A * share, A * (1 - share)])],
        [np.concatenate([b, b]), c],
        network.skip,
    ).turn_round(np.arange(2))
    # relu(w x + 50) is affine on all samples.
    on, column = rng.standard_normal((1, W.shape[1])), rng.standard_normal((len(c), 1))
    always_on = Network([on, column], [[50.0], -50.0 * column[:, 0]], (-column @ on, 0.0 * c))
    return add_networks(doubled, always_on)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 4])
def test_pruning_leaves_the_neurons_that_are_needed(k, seed):
    rng = np.random.default_rng(seed)
    truth = random_network(rng, 5, 6, k, affine=False)
    samples = samples_of(truth, rng, 600)
    wide = split(truth, rng)
    np.testing.assert_allclose(wide(samples.X), truth(samples.X), atol=1e-9)
    found = prune(NetworkFit(wide, samples.cost(wide)), samples, Price(1.5))
    assert found.network.architecture[1] == 6
    assert samples.reduced_cost(found.network) < 1.5


@pytest.mark.parametrize("seed", range(3))
def test_halves_of_a_neuron_become_one_though_a_faint_neuron_is_worth_less(seed):
    rng = np.random.default_rng(seed)
    truth = random_network(rng, 5, 6, 1, affine=False)
    (W, A), (b, c) = truth.weights, truth.biases
    A = A * np.where(np.arange(6) == 5, 1e-4, 1.0)
    truth = Network([W, A], [b, c])
    X = rng.standard_normal((600, 5))
    samples = Samples(X, truth(X) + 1e-8 * rng.standard_normal((600, 1)), np.full(1, 1e-8))
    apart = 3e-4 * rng.standard_normal((1, 5))
    halves = np.vstack([W[:1] + apart, W[1:], W[:1] - apart])
    columns = np.hstack([0.4 * A[:, :1], A[:, 1:], 0.6 * A[:, :1]])
    wide = Network([halves, columns], [np.append(b, b[0]), c])
    found = prune(NetworkFit(wide, samples.cost(wide)), samples, Price(1.5))
    assert found.network.architecture[1] == 6
    assert samples.reduced_cost(found.network) < 1.5


def test_pruning_keeps_what_it_cannot_replace():
    rng = np.random.default_rng(4)
    truth = random_network(rng, 5, 6, 1, affine=False)
    samples = samples_of(truth, rng, 600)
    rest = truth.take(np.arange(5))
    found = prune(NetworkFit(rest, samples.cost(rest)), samples, Price(1.5))
    assert samples.reduced_cost(found.network) > 1.5


def test_neurons_that_few_answers_see_are_not_determined():
    rng = np.random.default_rng(5)
    network = random_network(rng, 3, 4, 1, affine=False)
    samples = samples_of(network, rng, 200)
    third = -np.sort(samples.X[:, 0])[-3]
    rare = add_networks(network, Network([[[1.0, 0.0, 0.0]], [[1.0]]], [[third], [0.0]]))
    assert are_determined(rare, samples).tolist()[-1] is False
    assert are_determined(network, samples).sum() >= 3


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_search_finds_what_was_planted(at_once, known):
    truth = zoo.random_network([6, 5, 1], seed=3)
    rng = np.random.default_rng(8)
    X = rng.standard_normal((300, 6))
    samples = Samples(X, truth(X), np.array([1e-7]))
    search = Smallest(Price(1.0, known=known), 12, 10, at_once=at_once)
    found = search.explain(rng, samples)
    assert found.is_exact
    # Of neurons that start at once one may fire on a few of the samples only.
    assert found.network.architecture[1] <= (6 if at_once else 5)


def test_noise_that_is_unknown_is_what_independent_searches_agree_on():
    truth = zoo.random_network([4, 3, 1], seed=3)
    rng = np.random.default_rng(9)
    X = rng.standard_normal((600, 4))
    samples = Samples(X, truth(X) + 0.01 * rng.standard_normal((600, 1)), np.ones(1))
    found = Smallest(Price(1e-9), 12, 10).explain(rng, samples)
    assert found.settled
    assert not found.is_exact
    assert found.network.architecture == (4, 3, 1)
    assert samples.cost(found.network) == pytest.approx(0.01, rel=0.1)


def test_a_price_prefers_what_explains_then_what_is_small():
    rng = np.random.default_rng(1)
    truth = random_network(rng, 3, 2, 1, affine=False)
    samples = samples_of(truth, rng, 100)
    wide = add_networks(truth, Network([np.ones((1, 3)), [[0.0]]], [[0.0], [0.0]]))
    wrong = truth.take(np.arange(1))
    for known in (True, False):
        price = Price(1.0, known=known)
        assert price.prefers(truth, wide, samples)
        assert price.prefers(wide, wrong, samples)
        assert not price.prefers(wrong, wide, samples)
        assert not price.prefers(truth, truth, samples)
    # What is above known noise is worth any number of parameters.
    assert Price(1.0, known=True)(wide, samples) == Price(1.0, known=True)(truth, samples)
    assert Price(1.0)(wide, samples) > Price(1.0)(truth, samples)
