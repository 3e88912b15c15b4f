"""What no walk has told of rows: which directions those are, and what answers make of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revelu import Network
from revelu.network import zoo
from revelu.recover.deep.estimate import Estimate
from revelu.recover.deep.open_weights import OpenWeights, robust_solution


def axes(entries, dim, size=1.0):
    """Open entries (row, input) as directions."""
    rows, inputs = np.array(entries).T
    return OpenWeights(rows, size * np.eye(dim + 1)[inputs])


def without(truth, entries, part=1.0):
    """The network without a part of some weights of its last hidden layer."""
    W = truth.weights[-2].copy()
    W[tuple(np.array(entries).T)] *= 1.0 - part
    return Network([*truth.weights[:-2], W, truth.weights[-1]], truth.biases)


def errors(network, truth, X):
    return np.abs(network(X) - truth(X)).max(axis=1)


@pytest.mark.parametrize("widths", [(4, 9, 6, 2), (5, 8, 7, 6, 1)])
def test_open_weights_follow_from_answers_that_show_them(widths):
    truth, rng = zoo.random_network(list(widths), seed=3), np.random.default_rng(1)
    entries = [(0, 2), (1, 0), (3, 4), (3, 5)]
    found, X = without(truth, entries, 0.05), rng.standard_normal((3000, widths[0]))
    assert np.quantile(errors(found, truth, X), 0.8) > 1e-3
    open_weights = axes(entries, widths[-3])
    for _ in range(3):  # neurons may change their states
        unit = np.ones(widths[-1])
        found = open_weights.fill(found, X, truth(X), unit, noise=1e-9)
    fresh = rng.standard_normal((3000, widths[0]))
    assert np.quantile(errors(found, truth, fresh), 0.99) < 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_weights_of_a_rare_neuron_follow_from_where_rows_keep_their_states(seed):
    """Beyond, answers bend, and most inputs that show the neuron lie there."""
    rng = np.random.default_rng(seed)
    W, b = rng.standard_normal((9, 6)), 0.3 * rng.standard_normal(9)
    b[3] = -2.0 * np.linalg.norm(W[3])
    U, c = rng.standard_normal((5, 9)), 3.0 * np.ones(5)
    U[:, 3] = 20.0 * rng.choice([-1.0, 1.0], 5)
    truth = Network([W, U, rng.standard_normal((2, 5))], [b, c, np.zeros(2)])
    entries = [(i, 3) for i in range(5)]
    found, open_weights = without(truth, entries), axes(entries, 9, size=20.0)
    X = rng.standard_normal((20_000, 6))
    shows = np.abs(np.multiply(*open_weights.shown(found, X))).max(axis=1)
    X = X[np.argsort(-shows)[:300]]
    for _ in range(2):
        found = open_weights.fill(found, X, truth(X), np.ones(2), noise=1e-9)
    assert errors(found, truth, rng.standard_normal((20_000, 6))).max() < 1e-8


def test_answers_that_are_wrong_for_another_reason_do_not_count():
    truth, rng = zoo.random_network([4, 9, 6, 1], seed=5), np.random.default_rng(2)
    entries = [(2, 1), (4, 3)]
    X = rng.standard_normal((2000, 4))
    Y = truth(X)
    Y[:200] += rng.standard_normal((200, 1))
    found = without(truth, entries)
    for _ in range(3):
        found = axes(entries, 9).fill(found, X, Y, np.ones(1), noise=1e-9)
    assert np.quantile(errors(found, truth, X), 0.99) < 1e-9


def test_a_neuron_that_is_on_where_the_network_has_it_off_tells_its_weights():
    rng = np.random.default_rng(4)
    W1, b1 = rng.standard_normal((8, 3)), 0.3 * rng.standard_normal(8)
    W2, A = rng.standard_normal((5, 8)), rng.standard_normal((2, 5))
    # Only through one weight is the neuron ever on.
    W2[0] = -1.0
    W2[0, 3] = 30.0
    truth = Network([W1, W2, A], [b1, -0.1 * np.ones(5), np.zeros(2)])
    found, X = without(truth, [(0, 3)]), rng.standard_normal((2000, 3))
    wrong = errors(found, truth, X) > 1e-9
    assert wrong.sum() > 50
    assert (found.preactivations(X[wrong])[1][:, 0] < 0).all()
    open_weights = axes([(0, 3)], 8, size=10.0)
    X_, Y = X[wrong], truth(X[wrong])
    found = open_weights.fill_row(found, 0, X_, Y, np.ones(2), noise=1e-9)
    assert errors(found, truth, rng.standard_normal((2000, 3))).max() < 1e-9


def test_rows_that_are_left_out_take_their_directions_with_them():
    open_weights = axes([(0, 1), (2, 0), (2, 3), (4, 2)], 4)
    kept = np.array([False, True, True, True, True])
    some = open_weights.of_rows(kept)
    assert some.rows.tolist() == [1, 1, 3]
    np.testing.assert_array_equal(some.directions, open_weights.directions[1:])
    expected = np.zeros((5, 4), dtype=bool)
    expected[[0, 2, 2, 4], [1, 0, 3, 2]] = True
    np.testing.assert_array_equal(open_weights.weights(5), expected)
    dW, db = open_weights.moves(np.array([1.0, 2.0, 3.0, 4.0]), 5)
    assert dW[2].tolist() == [2.0, 0.0, 0.0, 3.0]
    assert not db.any()
    assert len(open_weights.joined(some)) == 7


def test_a_free_row_is_open_in_every_direction():
    W = np.random.default_rng(0).standard_normal((3, 5))
    free = OpenWeights.free(W, range(1, 3))
    assert free.rows.tolist() == [1] * 6 + [2] * 6
    assert np.linalg.matrix_rank(free.directions[:6]) == 6
    assert len(OpenWeights.free(W, range(3, 3))) == 0


@given(st.integers(0, 2**20), st.integers(1, 8), st.integers(0, 20))
def test_least_deviations_leave_outliers_alone(seed, size, n_wrong):
    rng = np.random.default_rng(seed)
    F, x = rng.standard_normal((20 * size + 80, size)), rng.uniform(-1.0, 1.0, size)
    y = F @ x
    y[:n_wrong] += 10.0 * rng.standard_normal(n_wrong)
    assert np.abs(robust_solution(F, y, 1e-9) - x).max() < 1e-5


def test_what_one_equation_alone_tells_is_uncertain():
    rng = np.random.default_rng(7)
    estimate = Estimate(6, rng)
    theta = rng.standard_normal(6)
    A = rng.standard_normal((12, 6))
    A[:, 5] = 0.0
    alone = np.eye(6)[5] + 0.1 * np.eye(6)[0]
    for row in [*A, alone]:
        estimate.add(row, float(row @ theta), 1e-12)
    estimate.solve()
    assert estimate.n_undetermined == 0
    _, uncertain = estimate.uncertain(1e-8)
    assert len(uncertain) == 1
    assert abs(uncertain[0, 5]) == pytest.approx(np.linalg.norm(uncertain[0]), rel=1e-3)
    estimate.add(alone + A[0], float((alone + A[0]) @ theta), 1e-12)
    assert not any(map(len, estimate.uncertain(1e-8)))


def test_what_no_answer_shows_is_left_as_it_is():
    truth, rng = zoo.random_network([4, 6, 5, 2], seed=1), np.random.default_rng(5)
    W, b = truth.weights[1], truth.biases[1].copy()
    b[0] = -1e3  # never on
    truth = Network(truth.weights, [truth.biases[0], b, truth.biases[2]])
    X = rng.standard_normal((200, 4))
    found = axes([(0, 1)], 6).fill(truth, X, truth(X) + 1.0, np.ones(2), noise=1e-9)
    np.testing.assert_array_equal(found.weights[1], W)
