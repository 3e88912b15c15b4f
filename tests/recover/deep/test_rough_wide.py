"""Two hidden layers from float32 answers, the first wider than the input: what mends a network."""

from dataclasses import replace

import numpy as np
import pytest

from revelu.network import Network, zoo
from revelu.oracle import Oracle, measure_noise
from revelu.recover.deep.rough_growth import RoughGrowth
from revelu.recover.deep.rough_upper import RoughUpper
from revelu.recover.deep.rough_wide import RoughWide, RoughWideSearch
from revelu.recover.refine.network_fit import Samples, top_of, with_top
from revelu.recover.rows import Rows

WIDTHS = [4, 8, 6, 1]


def target(seed, *, rare=()):
    """A network whose neurons ``rare`` of the upper layer are on at one input of a hundred."""
    truth = zoo.random_network(WIDTHS, seed=seed)
    biases = [b.copy() for b in truth.biases]
    sums = truth.preactivations(np.random.default_rng(seed).standard_normal((20_000, 4)))[1]
    for j in rare:
        biases[1][j] -= np.quantile(sums[:, j], 0.99)
    weights = [W.astype(np.float32).astype(float) for W in truth.weights]
    truth = Network(weights, [b.astype(np.float32).astype(float) for b in biases])

    def answer(X):
        H = X.astype(np.float32)
        for W, b in zip(truth.weights[:-1], truth.biases[:-1], strict=True):
            H = np.maximum(H @ W.T.astype(np.float32) + b.astype(np.float32), np.float32(0))
        return H @ truth.weights[-1].T.astype(np.float32) + truth.biases[-1].astype(np.float32)

    oracle = Oracle(answer, 4)
    return truth, oracle, measure_noise(oracle, seed)


def search_of(oracle, noise, rng, n=3000, **options):
    how = replace(RoughWide(), **options)
    search = RoughWideSearch(method=how, oracle=oracle, noise=noise, rng=rng, how=how)
    search.grows = True
    search.X = rng.standard_normal((n, 4)).astype(np.float32).astype(float)
    search.Y = oracle(search.X)
    search.is_drawn = np.ones(n, dtype=bool)
    return search


def with_more(truth, row, bias, weight):
    """A network with one more upper neuron."""
    (_, V, A), (_, c, _) = truth.weights, truth.biases
    top = top_of(truth)
    more = Network(
        [np.vstack([V, row]), np.column_stack([A, [weight]])],
        [np.append(c, bias), top.biases[1]],
        top.skip,
    )
    return with_top(truth, more)


@pytest.mark.parametrize("seed", range(3))
def test_a_neuron_without_which_answers_are_more_right_goes_and_a_rare_one_stays(seed):
    truth, oracle, noise = target(seed, rare=(0,))
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4000, 4)).astype(np.float32).astype(float)
    samples = Samples(X, oracle(X), np.outer(noise.growth(X), noise.errors))
    assert (truth.preactivations(X)[1][:, 0] > 0).sum() > 20
    row = rng.standard_normal(8)
    bias = -np.quantile(truth.activations(X)[1] @ row, 0.98)
    network = with_more(truth, row, bias, 0.1)
    growth = RoughGrowth()
    assert growth.wrong(network, samples).sum() > 40
    found = growth.without_false(network, samples)
    assert found.architecture == (4, 8, 6, 1)
    np.testing.assert_array_equal(found(X), truth(X))
    assert growth.without_false(truth, samples) is truth


@pytest.mark.parametrize("seed", range(3))
def test_a_weight_that_few_answers_tell_is_fitted_to_wrong_ones(seed):
    truth, oracle, noise = target(seed, rare=(0,))
    rng = np.random.default_rng(seed)
    search = search_of(oracle, noise, rng)
    V = truth.weights[1].copy()
    V[0] += 1e-3 * rng.standard_normal(8)
    network = Network([truth.weights[0], V, truth.weights[2]], truth.biases)
    growth = search.how.growth
    growth.around(search._asked, network, search._everything(), rng)
    before = growth.wrong(network, search._everything()).sum()
    found = search._mended(network)
    assert before > 20
    assert growth.wrong(found, search._everything()).sum() < before / 10
    # Of the truth nothing is wrong that a fit could mend.
    assert search._mended(truth) is truth


@pytest.mark.parametrize("seed", range(3))
def test_a_faint_neuron_that_walks_tell_grows_beside_rows_that_a_fit_would_move(seed):
    truth, oracle, noise = target(seed, rare=(0,))
    rng = np.random.default_rng(seed)
    search = search_of(oracle, noise, rng, n=1000)
    rest = np.zeros((1, 8)), np.zeros(1)
    top = top_of(truth)
    lacking = Network(top.weights, top.biases, rest).take(np.arange(6) != 0)
    network, growth = with_top(truth, lacking), search.how.growth
    assert not growth.tell_a_row(network, search._everything())
    n_before = oracle.n_queries
    growth.around(search._asked, network, search._everything(), rng)
    assert growth.tell_a_row(network, search._everything())
    walks = growth.max_walks * growth.n_starts * growth.n_walkers * growth.n_steps
    assert oracle.n_queries - n_before <= walks
    before = growth.wrong(network, search._everything()).sum()
    found = search._mended_or_grown(network)
    assert growth.wrong(found, search._everything()).sum() < before / 10
    # Of the truth nothing is wrong: no fit is begun.
    assert search._mended_or_grown(truth) is truth


def test_a_network_that_was_seen_to_be_wrong_says_by_how_much():
    truth, oracle, noise = target(1, rare=(0,))
    search = search_of(oracle, noise, np.random.default_rng(1), max_rounds=0)
    top = top_of(truth)
    rest = np.zeros((1, 8)), np.zeros(1)
    lacking = Network(top.weights, top.biases, rest).take(np.arange(6) != 0)
    said = search._settled(with_top(truth, lacking))
    worst = np.abs(search.Y - said.network(search.X)).max()
    assert said.worst_error == worst > 1e3 * noise.errors[0]


@pytest.mark.parametrize("seed", [2, 3])
def test_traces_above_a_layer_that_lacks_a_row_end_soon_and_it_is_found(seed):
    truth, oracle, noise = target(seed)
    W, b = truth.weights[0], truth.biases[0]
    norms = np.linalg.norm(W, axis=1)
    first = Rows(
        W / norms[:, None],
        b / norms,
        np.tile(noise.unit, (8, 1)),
        np.full(8, 1e-6),
        -(b / norms**2)[:, None] * W,
    )
    found = RoughUpper().find(
        oracle, oracle, noise, np.random.default_rng(seed), lambda _: None, first.take(np.arange(7))
    )
    assert found is not None
    assert found.network.architecture[1] == 8
    assert found.measured is not None
    rows = found.network.weights[0]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(rows @ (W / norms[:, None]).T).max(axis=1), 1.0, atol=1e-9)
    assert oracle.n_queries < 250 * truth.n_parameters


def test_nothing_grows_where_nothing_is_wrong():
    truth, oracle, noise = target(1)
    search = search_of(oracle, noise, np.random.default_rng(1))
    top = top_of(truth)
    network = with_top(truth, Network(top.weights, top.biases, (np.zeros((1, 8)), np.zeros(1))))
    before = oracle.n_queries
    assert search._traced(network) is network
    assert oracle.n_queries == before


def test_rows_that_others_replace_are_left_out_and_a_rare_one_stays():
    truth, oracle, noise = target(1, rare=(0,))
    rng = np.random.default_rng(2)
    # A copy of a neuron and one that gives nothing.
    copy = with_more(truth, truth.weights[1][2], truth.biases[1][2], 0.0)
    wide = with_more(copy, rng.standard_normal(8), 0.1, 1e-9)
    search = search_of(oracle, noise, rng)
    found = search._without_idle(wide)
    assert found.architecture == (4, 8, 6, 1)
    X = np.random.default_rng(8).standard_normal((5000, 4))
    rare = np.maximum(truth.preactivations(X)[1][:, 0], 0.0) * abs(truth.weights[2][0, 0])
    assert np.abs(found(X) - truth(X)).max() < 0.1 * rare.max()


def test_an_affine_rest_says_where_a_neuron_is_off_that_is_nearly_always_on():
    truth = zoo.random_network([8, 4, 6, 1], seed=3)
    weights, biases = [W.copy() for W in truth.weights], [b.copy() for b in truth.biases]
    sums = truth.preactivations(np.random.default_rng(1).standard_normal((200_000, 8)))[1]
    biases[1][4] -= np.quantile(sums[:, 4], 1e-3)
    truth = Network(weights, biases)
    oracle, rng = Oracle(truth, 8), np.random.default_rng(5)
    how = RoughWide()
    noise = measure_noise(oracle, 3)
    search = RoughWideSearch(method=how, oracle=oracle, noise=noise, rng=rng, how=how)
    # Without the neuron, which an affine rest stands for.
    top, kept = top_of(truth), np.arange(6) != 4
    a, c = truth.weights[2][:, 4], biases[1][4]
    rest = np.outer(a, weights[1][4])
    without = Network(
        [weights[1][kept], truth.weights[2][:, kept]],
        [biases[1][kept], top.biases[1] + a * c],
        (rest, np.zeros(1)),
    )
    search.network = with_top(truth, without)
    X = rng.standard_normal((1000, 8))
    assert np.median(np.abs(search.network(X) - truth(X))) < 1e-12
    search.X, search.Y, search.is_drawn = X, truth(X), np.ones(len(X), dtype=bool)
    before = oracle.n_queries
    assert search._is_wrong_far_out()
    assert oracle.n_queries - before < 1000
    search.network = truth
    search.seen = search._everything().take(np.zeros(0, dtype=int))
    assert not search._is_wrong_far_out()


def test_a_weight_that_no_answer_has_told_is_looked_at():
    truth, oracle, noise = target(3)
    rng, how = np.random.default_rng(4), RoughWide()
    search = RoughWideSearch(method=how, oracle=oracle, noise=noise, rng=rng, how=how)
    X = rng.standard_normal((500, 4)).astype(np.float32).astype(float)
    Z, above = truth.preactivations(X)[:2]
    together = (Z[:, 0] > 0) & (above[:, 0] > 0)
    # Inputs at which both are on have not been asked, and the weight between them is wrong.
    search.X, search.Y, search.is_drawn = X[~together], oracle(X[~together]), ~together[~together]
    weights = [W.copy() for W in truth.weights]
    weights[1][0, 0] *= 1.5
    assert 5 < together.sum() < 400
    search.network = Network(weights, truth.biases)
    assert search._is_wrong_far_out()
    search.network, search.seen = truth, search._everything().take(np.zeros(0, dtype=int))
    assert not search._is_wrong_far_out()
