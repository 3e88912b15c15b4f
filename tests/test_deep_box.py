"""Deep networks from questions that stay in a box."""

import numpy as np
import pytest

import revelu
from revelu.network import zoo
from revelu.recovery import Status


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


def test_a_narrow_first_layer_under_others_is_refused_in_a_box():
    truth = zoo.random_network([8, 4, 6, 1], seed=1)
    recovery = revelu.extract(truth, box=(-2.0, 2.0), seed=1, budget=20_000)
    assert recovery.status is not Status.RECOVERED
    assert any("no narrower than the input" in said for said in recovery.evidence)
