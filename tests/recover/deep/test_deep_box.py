"""Deep networks from questions that stay in a box."""

import numpy as np
import pytest

import revelu
from revelu.network import zoo
from revelu.recovery import Status


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_two_hidden_layers_come_back_from_questions_in_a_box(seed):
    truth = zoo.random_network([6, 12, 6, 1], seed=seed)
    farthest = [0.0]

    def target(X):
        farthest[0] = max(farthest[0], float(np.abs(X - 0.5).max()))
        return truth(X)

    recovery = revelu.extract(target, dim_in=6, box=(-1.5, 2.5), seed=seed, budget=40_000)
    assert recovery.status is Status.RECOVERED
    assert recovery.method == "deep"
    assert farthest[0] <= 2.0
    X = np.random.default_rng(7).uniform(-1.5, 2.5, (20_000, 6))
    off = np.abs(recovery.network(X) - truth(X)).max(axis=1) > 1e-9
    assert off.mean() <= 1e-3
    assert recovery.ledger.n_recovery <= 100 * truth.n_parameters


@pytest.mark.parametrize(("widths", "seed"), [((8, 4, 6, 1), 1), ((16, 10, 8, 3), 2)])
def test_a_narrow_first_layer_comes_back_in_a_box(widths, seed):
    truth = zoo.random_network(list(widths), seed=seed)
    farthest = [0.0]

    def target(X):
        farthest[0] = max(farthest[0], float(np.abs(X - 0.5).max()))
        return truth(X)

    d = widths[0]
    recovery = revelu.extract(target, dim_in=d, box=(0.0, 1.0), seed=seed, budget=60_000)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert recovery.method == "two_hidden"
    assert farthest[0] <= 0.5
    X = np.random.default_rng(7).uniform(0.0, 1.0, (20_000, d))
    off = np.abs(recovery.network(X) - truth(X)).max(axis=1) > 1e-9
    assert off.mean() <= 1e-3
    assert recovery.ledger.n_recovery <= 100 * truth.n_parameters


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_first_layer_neuron_that_lines_miss_is_found_where_the_network_is_wrong(seed):
    plain = zoo.random_network([6, 12, 6, 1], seed=0)
    b = plain.biases[0].copy()
    b[9] = -3.0 * np.linalg.norm(plain.weights[0][9])  # on in a corner of the box
    truth = revelu.Network(plain.weights, [b, *plain.biases[1:]])
    X = np.random.default_rng(7).uniform(-2.0, 2.0, (20_000, 6))
    assert 0.0 < (X @ truth.weights[0][9] + b[9] > 0.0).mean() < 0.003
    recovery = revelu.extract(
        truth, dim_in=6, box=(-2.0, 2.0), method="deep", seed=seed, budget=40_000
    )
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == truth.architecture
    assert np.abs(recovery.network(X) - truth(X)).max() <= 1e-9
    assert recovery.ledger.n_recovery <= 60 * truth.n_parameters


def test_two_layers_in_a_box_take_float64_answers():
    truth = zoo.random_network([8, 4, 6, 1], seed=1)
    recovery = revelu.extract(
        lambda X: truth(X).astype(np.float32), dim_in=8, box=(-2.0, 2.0), method="two_hidden"
    )
    assert recovery.status is not Status.RECOVERED
    assert any("float64 answers" in said for said in recovery.evidence)


@pytest.mark.slow
def test_doubts_about_layers_stay_in_a_box_that_begins_at_0():
    truth = zoo.random_network([12, 8, 6, 4, 2], seed=63998001)
    recovery = revelu.extract(truth, box=(0.0, 1.0), seed=63998001, budget=60_000)
    assert recovery.status is not Status.RECOVERED
