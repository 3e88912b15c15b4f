"""Which first layers are called exact from float32 answers, against networks that know theirs."""

import numpy as np
import pytest
from test_rough_layers import InFloat32

from revelu.network import zoo
from revelu.oracle import Oracle, measure_noise
from revelu.tasks.extract.claims import doubt_about
from revelu.tasks.extract.job import CertifyingJob


def asked(widths, seed):
    target = InFloat32(zoo.random_network(widths, seed=seed))
    oracle = Oracle(target, widths[0])
    job = CertifyingJob(oracle, seed, None, "extract", "revelu", 100)
    layer = target.truth.weights[0], target.truth.biases[0]
    return job, measure_noise(oracle, seed), layer


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_layer_wider_than_the_input_is_not_doubted(seed):
    job, noise, (W, b) = asked([4, 20, 16, 1], seed)
    # Scaled as lines show rows, and as far off.
    W = W + 1e-6 * np.random.default_rng(seed).standard_normal(W.shape)
    before = job.oracle.n_queries
    assert not doubt_about(job, noise, ((2.0 * W, 2.0 * b),))
    assert job.oracle.n_queries - before <= 20_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_row_that_is_missing_is_seen_on_fresh_lines(seed):
    job, noise, (W, b) = asked([4, 20, 16, 1], seed)
    said = doubt_about(job, noise, ((W[1:], b[1:]),))
    assert "none of the rows found is theirs" in said


@pytest.mark.slow
@pytest.mark.parametrize("error", [3e-3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_that_is_off_is_doubted(seed, error):
    job, noise, (W, b) = asked([4, 20, 16, 1], seed)
    W = W.copy()
    W[3] += error * np.linalg.norm(W[3]) * np.random.default_rng(seed).standard_normal(4)
    assert "do not show a bend right there" in doubt_about(job, noise, ((W, b),))


@pytest.mark.slow
def test_a_row_above_is_not_called_one_of_the_first_layer():
    job, noise, (W, b) = asked([4, 20, 16, 1], 1)
    # The hyperplane that an upper neuron's surface lies in around one point.
    truth = job.oracle.target.truth
    V, c = truth.weights[1], truth.biases[1]
    x = np.zeros(4)
    for _ in range(50):
        on = (W @ x + b > 0).astype(float)
        row, height = (V[2] * on) @ W, V[2] @ np.maximum(W @ x + b, 0.0) + c[2]
        x = x - 0.5 * height * row / (row @ row)
    W, b = np.vstack([W, row]), np.append(b, -row @ x)
    assert "do not show a bend right there" in doubt_about(job, noise, ((W, b),))
