"""The outputs above the last hidden layer, the signs of its neurons, and their skip."""

import numpy as np
import pytest

from revelu import Network
from revelu.network import zoo
from revelu.oracle import Oracle, measure_noise
from revelu.recover.deep.frame import KnownLayers
from revelu.recover.deep.open_weights import OpenWeights
from revelu.recover.deep.output_layer import (
    OutputFit,
    is_faint,
    signs_of_low_rank,
    without_skip,
)
from revelu.recover.deep.stack import Stack


def outputs_of(truth, stack, W, b, undetermined=None, seed=1):
    """Fit the outputs above rows."""
    oracle = Oracle(truth, truth.dim_in)
    rows, inputs = np.nonzero(np.zeros(W.shape) if undetermined is None else undetermined)
    open_weights = OpenWeights(rows, np.eye(W.shape[1] + 1)[inputs])
    noise, rng = measure_noise(oracle, 1), np.random.default_rng(seed)
    return OutputFit().find(oracle, noise, KnownLayers(stack, W, b), open_weights, None, rng)


@pytest.mark.parametrize("widths", [(6, 5, 4, 1), (5, 12, 8, 3), (4, 6, 6, 5, 2)])
def test_rows_of_any_sign_and_size_give_the_network(widths):
    for seed in range(3):
        truth = zoo.random_network(list(widths), seed=seed)
        stack = Stack(widths[0], truth.weights[:-2], truth.biases[:-2])
        factors = np.random.default_rng(seed).standard_normal(widths[-2]) * 3.0
        W, b = truth.weights[-2] * factors[:, None], truth.biases[-2] * factors
        found = outputs_of(truth, stack, W, b)
        X = np.random.default_rng(9).standard_normal((4000, widths[0]))
        assert np.abs(found(X) - truth(X)).max() < 1e-8 * np.abs(truth(X)).max()
        assert found.architecture == truth.architecture


def test_there_are_no_outputs_below_the_last_hidden_layer():
    for seed in range(4):
        truth = zoo.random_network([6, 8, 7, 6, 2], seed=seed)
        stack = Stack(6, truth.weights[:1], truth.biases[:1])
        assert outputs_of(truth, stack, truth.weights[1], truth.biases[1]) is None
        assert outputs_of(truth, Stack(6), truth.weights[0], truth.biases[0]) is None


def test_a_last_neuron_that_hardly_ever_fires_is_told_from_the_skip():
    rng = np.random.default_rng(4)
    W = rng.standard_normal((4, 5))
    b = np.array([0.3, -0.2, 0.1, 0.0])
    plain = zoo.random_network([6, 5, 4, 1], seed=4)
    first = plain.weights[0], plain.biases[0]
    X = rng.standard_normal((20_000, 6))
    z = np.maximum(X @ first[0].T + first[1], 0.0) @ W.T
    b[3] = -np.quantile(z[:, 3], 0.998)
    truth = Network([first[0], W, plain.weights[2]], [first[1], b, plain.biases[2]])
    found = outputs_of(truth, Stack(6, [first[0]], [first[1]]), W, b)
    fires = X[z[:, 3] + b[3] > 0]
    assert len(fires) > 20
    assert np.abs(found(fires) - truth(fires)).max() < 1e-8


def test_rows_that_reach_no_output_are_told():
    truth = zoo.random_network([4, 5, 3, 2], seed=1)
    W, A = np.vstack([truth.weights[1], np.ones(5)]), np.column_stack([truth.weights[2], [0, 0]])
    b = np.append(truth.biases[1], 0.5)
    wider = Network([truth.weights[0], W, A], [truth.biases[0], b, truth.biases[2]])
    assert is_faint(wider).tolist() == [False, False, False, True]
    assert not is_faint(truth).any()


def test_a_skip_of_rank_one_is_one_more_neuron():
    plain = zoo.random_network([6, 5, 4, 3], seed=6)
    rng = np.random.default_rng(1)
    V = np.outer(rng.standard_normal(3), rng.standard_normal(5))
    network = Network(plain.weights, plain.biases, skip=(V, np.zeros(3)))
    wider = without_skip(network, rng, OutputFit().near)
    X = 2.0 * rng.standard_normal((5000, 6))
    assert wider.skip is None
    assert wider.architecture == (6, 5, 5, 3)
    assert np.abs(wider(X) - network(X)).max() < 1e-10


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
    found = signs_of_low_rank(given, OutputFit().near)
    assert found(X) == pytest.approx(truth(X))
    assert found.skip[0] == pytest.approx(always_on, abs=1e-9)
    assert signs_of_low_rank(truth, OutputFit().near).weights[0] == pytest.approx(W)


def test_three_neurons_that_are_always_on_are_found_with_many_outputs():
    truth = zoo.random_network([6, 8, 5, 7], seed=2)
    W, b = truth.weights[1], truth.biases[1].copy()
    b[:3] = 60.0
    truth = Network(truth.weights, [truth.biases[0], b, truth.biases[2]])
    stack = Stack(6, truth.weights[:1], truth.biases[:1])
    given = np.array([1.0, -1.0])
    network = outputs_of(truth, stack, W[3:] * given[:, None], b[3:] * given)
    rng = np.random.default_rng(1)
    whole = without_skip(network, rng, OutputFit().near)
    X = rng.standard_normal((2000, 6))
    assert whole.architecture == truth.architecture
    assert np.abs(whole(X) - truth(X)).max() < 1e-7 * np.abs(truth(X)).max()


@pytest.mark.parametrize(("bias", "is_ever_on"), [(-3.0, True), (-50.0, False)])
def test_what_no_answer_tells_of_is_no_skip(bias, is_ever_on):
    rng = np.random.default_rng(11)
    W, A = rng.standard_normal((6, 8)), rng.standard_normal((5, 6))
    W[0] /= np.linalg.norm(W[0])
    b, c = np.append(bias, np.full(5, 0.3)), 0.3 * rng.standard_normal(5)
    truth = Network([W, A, np.ones((1, 5))], [b, c, np.zeros(1)])
    network = outputs_of(truth, Stack(8, [W], [b]), A, c)
    assert network.skip is None
    X = rng.standard_normal((4000, 8))
    on = X @ W[0] + bias > 0
    assert on.any() == is_ever_on
    X = np.vstack([X, X[:50] - (X[:50] @ W[0] + bias - 1.0)[:, None] * W[0]])
    assert (X[-50:] @ W[0] + bias > 0).all()
    assert np.abs(network(X) - truth(X)).max() < 1e-8 * np.abs(truth(X)).max()


def test_a_weight_that_is_not_known_is_taken_for_no_skip():
    truth = zoo.random_network([6, 8, 5, 1], seed=3)
    stack = Stack(6, truth.weights[:1], truth.biases[:1])
    X = np.random.default_rng(4).standard_normal((4000, 6))
    on = stack.outputs(X) > 0
    # An input that is on at some points; what is right is right where it is off.
    column = int(on.mean(axis=0).argmin())
    W, undetermined = truth.weights[1].copy(), np.zeros((5, 8), dtype=bool)
    W[2, column], undetermined[2, column] = 0.0, True
    found = outputs_of(truth, stack, W, truth.biases[1], undetermined)
    rests = ~on[:, column]
    assert rests.mean() > 0.5
    assert np.abs(found(X[rests]) - truth(X[rests])).max() < 1e-8
