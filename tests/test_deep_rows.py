"""Rows, signs and skips of a deep network's layers: the steps that several kinks decide."""

import numpy as np
import pytest

from revelu import Network
from revelu.network import zoo
from revelu.oracle import Oracle, measure_noise
from revelu.recover.deep.gradient_rows import AlwaysOnSearch
from revelu.recover.deep.gradient_signs import SignSearch, Spans, n_explained, turns_of
from revelu.recover.deep.hypotheses import Hypotheses
from revelu.recover.deep.kink_equations import Equations
from revelu.recover.deep.layer_estimate import FoundLayer
from revelu.recover.deep.missing_weights import WeightFit
from revelu.recover.deep.output_layer import (
    OutputFit,
    signs_of_low_rank,
    within_neurons,
    without_skip,
)
from revelu.recover.deep.rows_from_kinks import RowSearch
from revelu.recover.deep.stack import Stack


def kinks_of(w, b, stack, rng, n, span=1.0):
    """Kinks of the neuron ``w h + b`` above a stack: their equations."""
    X = rng.standard_normal((40 * n, 2, stack.dim_in)) * span
    z = stack.outputs(X[:, 0]) @ w + b, stack.outputs(X[:, 1]) @ w + b
    across = X[(z[0] > 0) & (z[1] < 0)][:n]
    P, normals = stack.crossings(w, b, across[:, 0], across[:, 1])
    return Equations.of(P, normals, *stack.maps(P))


def along(v, w, b):
    """How far a row is from being along another."""
    true = np.append(w, b)
    return 1.0 - abs(v @ true) / np.linalg.norm(v) / np.linalg.norm(true)


@pytest.mark.parametrize("widths", [(6, 8, 6, 1), (12, 20, 12, 3), (5, 9, 5, 2)])
def test_all_turns_of_one_sign_are_foretold_at_once(widths):
    rng = np.random.default_rng(sum(widths))
    m, k, d, outputs = widths
    W, n = rng.standard_normal((k, m)), 60
    M = rng.standard_normal((n, m, d)) * (rng.random((n, m, 1)) < 0.8)
    positive = rng.random((n, k)) < 0.3
    true = rng.choice([-1.0, 1.0], k)
    on = positive == (true > 0)
    gradients = (rng.standard_normal((n, outputs, k)) * on[:, None]) @ W @ M
    doubtful = np.zeros((k, m), dtype=bool)
    doubtful[0, 1] = True
    search, spans = SignSearch(), Spans.of(W, positive - 0.5, M, gradients, doubtful)
    signs = np.where(np.arange(k) < 2, -true, true)
    foretold = spans.after_turns(spans.on(signs))
    turned = [spans.outside(spans.on(turn)) for turn in turns_of(signs)]
    turned = [(informative[informative], outside) for informative, outside in turned]
    exact = [float(n_explained(*after)) for after in turned]
    assert n_explained(*foretold) == pytest.approx(exact)
    near = [float(search.nearness(*after)) for after in turned]
    assert search.nearness(*foretold) == pytest.approx(near, rel=1e-3, abs=1e-3)
    assert len(set(exact)) > 1


@pytest.mark.parametrize("n", [20, 200])
def test_a_row_is_needed_where_gradients_leave_their_span_without_it(n):
    rng = np.random.default_rng(n)
    d, k = 12, 7
    W, M = rng.standard_normal((k, d)), np.broadcast_to(np.eye(d), (n, d, d))
    Z = rng.standard_normal((n, k))
    on = Z > 0
    # One row is no neuron's, and two are at work at one point each, the first and the last.
    parts = rng.standard_normal((n, 1, k)) * on[:, None]
    parts[:, :, 2] = parts[:, :, 4] = parts[:, :, 5] = 0.0
    Z[[0, -1], [4, 5]] = 1.0
    parts[[0, -1], 0, [4, 5]] = 1.0
    gradients = parts @ W
    seen = SignSearch().find(W, Z, M, gradients, rng, oriented=True)
    assert (seen.signs == 1.0).all()
    assert seen.needed.tolist() == [True, True, False, True, True, True, True]


@pytest.mark.parametrize("seed", [0, 1, 9])
def test_kinks_that_say_little_alone_and_in_pairs_give_a_row_together(seed):
    rng = np.random.default_rng(seed)
    # Below a narrow layer every kink gives three equations at most for the nine unknowns.
    first = rng.standard_normal((3, 6)), np.ones(3)
    second = rng.standard_normal((8, 3)), np.ones(8)
    stack = Stack(6, [first[0], second[0]], [first[1], second[1]])
    w = rng.standard_normal(8)
    b = -float(np.median(stack.outputs(rng.standard_normal((1000, 6))) @ w))
    equations = kinks_of(w, b, stack, rng, 12)
    assert equations.ranks.max() == 3
    alone, together = (RowSearch().find(equations, in_groups=groups) for groups in (False, True))
    assert len(together) > len(alone)
    for v, members in together:
        known = np.append(w * equations.on[members].any(axis=0), b)
        assert along(v, known[:-1], known[-1]) < 1e-9


def test_where_two_rows_fit_the_kinks_there_is_none():
    rng = np.random.default_rng(6)
    W, b, every = rng.standard_normal((4, 6)), np.ones(4), np.ones(4, dtype=bool)
    stack = Stack(6, [W], [b])
    w = np.array([1.0, -1.0, 0.5, -0.6])
    equations = kinks_of(w, 0.1, stack, rng, 60)
    whole, half = (np.flatnonzero(equations.on.sum(axis=1) == n)[:1] for n in (4, 2))
    assert along(equations.take(whole).solve(every), w, 0.1) < 1e-9
    assert equations.take(half).solve(every) is None


def test_every_bias_that_kinks_agree_on_is_found_the_true_one_among_them():
    rng = np.random.default_rng(7)
    W, b = rng.standard_normal((5, 6)), np.ones(5)
    stack = Stack(6, [W], [b])
    w = np.array([1.0, -1.0, 0.5, -0.6, 0.2])
    parts = [kinks_of(w, bias, stack, rng, n) for bias, n in ((0.4, 30), (-0.7, 12))]
    pairs = zip(*(vars(part).values() for part in parts), strict=True)
    both = Equations(*(np.concatenate(pair) for pair in pairs))
    rows = RowSearch().with_biases(both, np.append(w, 99.0))
    assert [n for _, n in rows] == sorted((n for _, n in rows), reverse=True)
    assert along(rows[0][0], w, 0.4) < 1e-9
    assert along(rows[1][0], w, -0.7) < 1e-9


def test_kinks_that_agree_are_the_same_among_all_and_among_some():
    rng = np.random.default_rng(4)
    stack = Stack(6, [rng.standard_normal((7, 6))], [np.ones(7)])
    w, other = rng.standard_normal((2, 7))
    parts = [vars(kinks_of(v, 0.3, stack, rng, n)) for v, n in ((w, 9), (other, 5))]
    both = Equations(*(np.concatenate([part[name] for part in parts]) for name in parts[0]))
    own = np.arange(14) < 9
    v = np.append(w, 0.3)
    assert both.agreeing(v, np.ones(14, dtype=bool)).tolist() == list(range(9))
    assert both.agreeing(v, np.arange(14) % 2 == 0).tolist() == [0, 2, 4, 6, 8]
    assert not len(both.agreeing(v, ~own))


def test_a_row_that_is_always_on_is_sought_again_where_more_is_known():
    known = Hypotheses(np.empty((0, 4)))

    def was_in_vain(*among):
        return known.was_in_vain(among, AlwaysOnSearch(max_work=5, more=2.0))

    assert not was_in_vain(2, 0, 100)
    known.set_in_vain((2, 0, 100), 4)
    # It has not cost much so far.
    assert not was_in_vain(2, 0, 100)
    known.set_in_vain((2, 0, 100), 1)
    assert was_in_vain(2, 0, 199)
    assert not was_in_vain(2, 0, 200)
    assert not was_in_vain(1, 0, 100)
    assert not was_in_vain(2, 2, 100)


def test_a_row_that_gains_a_weight_keeps_its_units_for_the_rows_above():
    v = np.array([0.6, 0.0, -0.8, 0.2])
    grown = np.array([-0.3, 0.5, 0.4, -0.1])
    known = Hypotheses(v[None].copy())
    known.grow(0, grown, keeps_size=True)
    assert known.rows[0] == pytest.approx(-2.0 * grown)
    known.grow(0, v, keeps_size=True)
    assert np.count_nonzero(known.rows[0]) == 4


def test_turned_neurons_are_told_from_those_that_are_always_on_by_rank():
    rng = np.random.default_rng(8)
    W, A, b = rng.standard_normal((6, 9)), rng.standard_normal((8, 6)), rng.standard_normal(6)
    always_on = rng.standard_normal((8, 2)) @ rng.standard_normal((2, 9))
    truth = Network([W, A], [b, np.zeros(8)], skip=(always_on, np.zeros(8)))
    turned = [1, 4]
    signs = np.ones(6)
    signs[turned] = -1.0
    # a relu(z) = a relu(-z) + a z
    V = always_on + A[:, turned] @ W[turned]
    given = Network(
        [W * signs[:, None], A], [b * signs, A[:, turned] @ b[turned]], skip=(V, np.zeros(8))
    )
    X = rng.standard_normal((500, 9))
    assert given(X) == pytest.approx(truth(X))
    found = signs_of_low_rank(given)
    assert found(X) == pytest.approx(truth(X))
    assert found.skip[0] == pytest.approx(always_on, abs=1e-9)
    assert signs_of_low_rank(truth).weights[0] == pytest.approx(W)


def test_three_neurons_that_are_always_on_are_found_with_many_outputs():
    truth = zoo.random_network([6, 8, 5, 7], seed=2)
    W, b = truth.weights[1], truth.biases[1].copy()
    b[:3] = 60.0
    truth = Network(truth.weights, [truth.biases[0], b, truth.biases[2]])
    stack = Stack(6, truth.weights[:1], truth.biases[:1])
    oracle, rng = Oracle(truth, 6), np.random.default_rng(1)
    noise = measure_noise(oracle, 1)
    given = np.array([1.0, -1.0])
    layer = FoundLayer(W[3:] * given[:, None], b[3:] * given, np.zeros((2, 8), bool))
    network = OutputFit().find(oracle, noise, stack, layer, rng)
    whole = without_skip(network, rng)
    X = rng.standard_normal((2000, 6))
    assert whole.architecture == truth.architecture
    assert np.abs(whole(X) - truth(X)).max() < 1e-7 * np.abs(truth(X)).max()


@pytest.mark.parametrize("n_outputs", [1, 4])
def test_a_skip_along_one_neurons_outputs_is_a_weight_of_it(n_outputs):
    rng = np.random.default_rng(9)
    W, A = rng.standard_normal((5, 6)), rng.standard_normal((n_outputs, 5))
    b, c = rng.standard_normal(5), rng.standard_normal(n_outputs)
    lacking = W.copy()
    lacking[2, 3] = 0.0
    skip = np.outer(A[:, 2], W[2] - lacking[2])
    network = Network([lacking, A], [b, c], skip=(skip, np.zeros(n_outputs)))
    found = list(within_neurons(network))
    assert len(found) == (1 if n_outputs > 1 else 5)
    assert any(np.abs(n.weights[0] - W).max() < 1e-12 for n in found)
    assert all(n.skip is None for n in found)


def test_weights_that_always_count_together_are_told_apart_by_the_outputs():
    truth = zoo.random_network([6, 5, 4, 6], seed=3)
    W = truth.weights[1].copy()
    undetermined = [np.zeros((5, 6), dtype=bool), np.zeros((4, 5), dtype=bool)]
    undetermined[1][:3, 2] = True
    W[undetermined[1]] = 0.0
    b = truth.biases[1] + 30.0
    truth = Network(truth.weights, [truth.biases[0], b, truth.biases[2]])
    lacking = Network([truth.weights[0], W, truth.weights[2]], truth.biases)
    X = np.random.default_rng(4).standard_normal((300, 6))
    filled = WeightFit(undetermined, X, truth(X)).fit(lacking)
    assert np.abs(filled.weights[1] - truth.weights[1]).max() < 1e-9


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_neuron_that_fires_by_an_undetermined_weight_alone_is_reactivated(n_outputs):
    truth = zoo.random_network([6, 5, 4, n_outputs], seed=6)
    W, b = truth.weights[1].copy(), truth.biases[1].copy()
    stack = Stack(6, truth.weights[:1], truth.biases[:1])
    X = np.random.default_rng(5).standard_normal((2000, 6))
    W[1, 2] = 0.0
    b[1] = -0.1 - (stack.outputs(X) @ W[1]).max()
    W[1, 2] = 3.0
    truth = Network([truth.weights[0], W, truth.weights[2]], [truth.biases[0], b, truth.biases[2]])
    undetermined = np.zeros(W.shape, dtype=bool)
    undetermined[1, 2] = True
    lacking = Network(
        [truth.weights[0], np.where(undetermined, 0.0, W), truth.weights[2]], truth.biases
    )
    found = WeightFit([undetermined], X, truth(X)).reactivate(lacking)
    assert np.abs(lacking(X) - truth(X)).max() > 1e-3
    assert np.abs(found.weights[1] - W).max() < 1e-9


def test_weights_that_kinks_do_not_agree_on_do_not_bend_a_row():
    rng = np.random.default_rng(10)
    stack = Stack(8, [rng.standard_normal((6, 8))], [np.full(6, 0.5)])
    w = rng.standard_normal(6)
    other = w + np.where(np.arange(6) == 5, 0.4, 0.0)
    kinks = [kinks_of(v, 0.1, stack, rng, 60) for v in (w, other)]
    own, others = (np.flatnonzero(e.on[:, 5])[:n] for e, n in zip(kinks, (15, 8), strict=True))
    off = np.flatnonzero(~kinks[0].on[:, 5])[:15]
    parts = [vars(kinks[0].take(np.append(off, own))), vars(kinks[1].take(others))]
    both = Equations(*(np.concatenate([part[name] for part in parts]) for name in parts[0]))
    # Where its last input is off the two neurons are one.
    row = np.append(np.where(np.arange(6) == 5, 0.0, w), 0.1)
    grown, members = RowSearch().grow(both, row)
    assert along(grown, w, 0.1) < 1e-9
    assert sorted(members) == list(range(30))


@pytest.mark.parametrize(("bias", "is_ever_on"), [(-3.0, True), (-50.0, False)])
def test_what_no_answer_tells_of_is_no_skip(bias, is_ever_on):
    rng = np.random.default_rng(11)
    W, A = rng.standard_normal((6, 8)), rng.standard_normal((5, 6))
    W[0] /= np.linalg.norm(W[0])
    b, c = np.append(bias, np.full(5, 0.3)), 0.3 * rng.standard_normal(5)
    truth = Network([W, A, np.ones((1, 5))], [b, c, np.zeros(1)])
    oracle = Oracle(truth, 8)
    noise = measure_noise(oracle, 1)
    layer = FoundLayer(A, c, np.zeros((5, 6), dtype=bool))
    network = OutputFit().find(oracle, noise, Stack(8, [W], [b]), layer, rng)
    assert network.skip is None
    X = rng.standard_normal((4000, 8))
    on = X @ W[0] + bias > 0
    assert on.any() == is_ever_on
    X = np.vstack([X, X[:50] - (X[:50] @ W[0] + bias - 1.0)[:, None] * W[0]])
    assert (X[-50:] @ W[0] + bias > 0).all()
    assert np.abs(network(X) - truth(X)).max() < 1e-8 * np.abs(truth(X)).max()
