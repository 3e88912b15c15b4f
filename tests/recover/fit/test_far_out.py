"""Networks of few digits from answers far out, where rounding is a smaller share of them."""

import numpy as np
import pytest

import revelu
from revelu.oracle import Oracle, measure_noise
from revelu.recover.fit.far_out import FarOut
from revelu.recover.fit.from_lines import FromLines
from revelu.recover.refine.network_fit import Samples

STEP = 0.01
# The root mean square of what rounding to a step leaves.
ROUNDING = STEP / np.sqrt(12.0)


def bundle(seed, d=6, m=16, apart=0.1):
    """A network of one output whose rows lie in two narrow bundles, as trained ones do."""
    rng = np.random.default_rng(seed)
    # Opposite ones, so that some neuron is on everywhere: a constant would look like a cap.
    W = np.outer([1.0, -1.0], rng.standard_normal(d)).repeat(m // 2, axis=0)
    W = W / np.linalg.norm(W, axis=1)[:, None] + apart * rng.standard_normal((m, d)) / np.sqrt(d)
    b, A = 0.3 + 0.05 * rng.standard_normal(m), rng.uniform(3.0, 6.0, (1, m))
    return revelu.Network([W, A], [b, np.zeros(1)])


def rounded(function):
    return lambda X: np.round(function(X), 2)


def search(function, d, limit=1.2):
    oracle = Oracle(function, d)
    noise = measure_noise(oracle, 0)

    def ask(X):
        Y = oracle(X)
        return Samples(X, Y, np.broadcast_to(noise.sigma_at(X, Y), Y.shape))

    rng = np.random.default_rng(0)
    return FarOut().find(oracle, noise, FromLines(), ask, limit, rng), oracle


@pytest.mark.parametrize("seed", range(3))
def test_neurons_all_but_parallel_are_told_apart_far_out(seed):
    truth = bundle(seed)
    (found, samples), oracle = search(rounded(truth), 6)
    assert found.architecture[1] == 16
    X = np.random.default_rng([seed, 1]).standard_normal((5000, 6))
    for reach in (1.0, 30.0):
        off = found(reach * X) - truth(reach * X)
        assert np.sqrt((off**2).mean()) < ROUNDING
    assert samples.reduced_cost(found) <= 1.2
    assert oracle.n_queries <= 20 * truth.n_parameters


@pytest.mark.parametrize("seed", range(3))
def test_neurons_that_add_less_than_a_step_take_no_rows_with_them(seed):
    strong, rng = bundle(seed, m=24), np.random.default_rng([seed, 2])
    W = np.vstack([strong.weights[0], rng.standard_normal((8, 6)) / np.sqrt(6.0)])
    A = np.hstack([1e3 * strong.weights[1], rng.uniform(0.01, 0.05, (1, 8))])
    b = np.append(strong.biases[0], rng.uniform(-1.5, -0.5, 8))
    truth = revelu.Network([W, A], [b, np.zeros(1)])
    oracle = Oracle(rounded(truth), 6)
    lines = FromLines().of_faint_kinks()
    rows = FarOut()._rows(oracle, measure_noise(oracle, 0), 1e6, lines, rng)
    found, true = (V / np.linalg.norm(V, axis=1)[:, None] for V in (rows.W, W))
    assert (np.abs(found @ true.T).max(axis=0) > 1.0 - 1e-6).sum() >= 31


def test_what_computes_in_float32_is_asked_for_its_noise_alone():
    truth = bundle(0)
    found, oracle = search(lambda X: truth(X).astype(np.float32), 6)
    assert found is None
    assert oracle.n_queries <= 2 * 256


def test_a_function_that_does_not_grow_is_asked_for_its_noise_alone():
    found, oracle = search(rounded(lambda X: 30.0 * np.sin(X).sum(axis=1)), 6)
    assert found is None
    assert oracle.n_queries <= 2 * 256


def refusing(truth, farthest, seen):
    """Answers as an endpoint that checks its inputs: it says so of a row, and answers no batch."""

    def answer(X):
        if np.abs(X).max() > farthest:
            seen.append(X)
            raise ValueError("inputs are too large")
        return np.round(truth(X), 2)

    return answer


@pytest.mark.parametrize("farthest", [1e4, 1e6])
def test_a_target_that_refuses_what_lies_far_out_is_asked_as_far_as_it_answers(farthest):
    truth, refused = bundle(0), []
    (found, _), _ = search(refusing(truth, farthest, refused), 6)
    assert found.architecture[1] == 16
    assert len(refused) <= 8
    assert max(len(X) for X in refused) == 1


def test_a_target_that_clips_its_inputs_is_asked_where_it_does_not():
    truth = bundle(0)
    (found, _), oracle = search(lambda X: np.round(truth(np.clip(X, -1e4, 1e4)), 2), 6)
    assert found.architecture[1] == 16
    assert oracle.n_queries <= 20 * truth.n_parameters


@pytest.mark.slow
def test_a_wide_network_of_narrow_bundles_is_certified_with_its_neurons():
    truth = bundle(1, d=8, m=40)
    recovery = revelu.extract(rounded(truth), dim_in=8, seed=0)
    assert recovery.status is revelu.Status.RECOVERED
    assert recovery.network.architecture == (8, 40, 1)
    X = np.random.default_rng(2).standard_normal((5000, 8))
    assert np.abs(recovery.network(X) - truth(X)).max() <= recovery.certificate.tolerance
