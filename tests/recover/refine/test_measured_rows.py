"""Rows that surfaces have measured: whose they are, and how they hold a fit."""

from dataclasses import replace

import numpy as np
import pytest

import revelu
from revelu.numerics.gauss_newton import Damping, Stop, normal_equations
from revelu.recover.refine.measured_rows import MeasuredRows
from revelu.recover.refine.network_fit import Samples, fit


def measured(truth: revelu.Network, error: float) -> MeasuredRows:
    """Hidden rows of a network as surfaces with errors tell them: of length 1."""
    below, rows, roots = np.ones(truth.dim_in), [], []
    for W, b in zip(truth.weights[:-1], truth.biases[:-1], strict=True):
        above = W * below
        lengths = np.linalg.norm(above, axis=1)
        rows.append(np.column_stack([above, b]) / lengths[:, None])
        roots.append(np.tile(error * np.eye(W.shape[1] + 1), (len(W), 1, 1)))
        below = lengths
    return MeasuredRows(tuple(rows), tuple(roots))


def scaled(truth: revelu.Network, rng: np.random.Generator) -> revelu.Network:
    """The same function, neurons in another order and of other scales."""
    (W, V, A), (b, c, e) = truth.weights, truth.biases
    p, s = rng.permutation(len(b)), np.exp(rng.standard_normal(len(b)))
    q, t = rng.permutation(len(c)), np.exp(rng.standard_normal(len(c)))
    V = (V / s)[:, p] * t[:, None]
    W, b = (W * s[:, None])[p], (b * s)[p]
    return revelu.Network([W, V[q], (A / t)[:, q]], [b, (c * t)[q], e])


@pytest.mark.parametrize("seed", range(3))
def test_a_network_of_measured_rows_meets_their_equations_whatever_its_scales(seed):
    rng = np.random.default_rng(seed)
    truth = revelu.zoo.random_network([4, 7, 5, 2], seed=seed)
    known, same = measured(truth, 1e-3), scaled(truth, rng)
    X = rng.standard_normal((50, 4))
    np.testing.assert_allclose(same(X), truth(X), atol=1e-12)
    equations = known.equations(same, np.ones((1, 1)))
    assert equations.shape == (7 * 5 + 5 * 8, same.n_parameters)
    assert np.abs(equations @ same.to_vector()).max() < 1e-6
    turned = same.turn_round(np.arange(5) % 2 == 0)
    assert np.abs(known.equations(turned, np.ones((1, 1))) @ turned.to_vector()).max() < 1e-6


def test_equations_count_what_a_row_is_off_by_in_its_errors():
    truth = revelu.zoo.random_network([4, 7, 5, 2], seed=3)
    off = 1e-3 * np.linalg.norm(truth.weights[0][2])
    moved = truth.like(truth.to_vector() + off * (np.arange(truth.n_parameters) == 0))
    known = replace(measured(truth, 1e-3), usual=2.0)
    equations = known.equations(moved, np.ones((1, 1)))
    # The first layer's equations come first, those of this row before others.
    left = np.linalg.norm((equations @ moved.to_vector())[:5])
    # One weight off by 1e-3 of the row's length, of errors of 1e-3, counted twice.
    row = truth.weights[0][0]
    size = off / np.linalg.norm(row)
    cosine = row[0] / np.linalg.norm(row)
    bias = truth.biases[0][0] / np.linalg.norm(row)
    expected = 2.0 * size / 1e-3 * np.sqrt(1.0 - cosine**2 + (bias * cosine) ** 2)
    assert left == pytest.approx(expected, rel=0.02)


def test_a_neuron_that_has_no_measured_row_is_free():
    truth = revelu.zoo.random_network([4, 7, 5, 2], seed=4)
    weights, biases = [W.copy() for W in truth.weights], [b.copy() for b in truth.biases]
    weights[1][2], biases[1][2] = np.random.default_rng(4).standard_normal(7), 0.3
    other = revelu.Network(weights, biases)
    equations = measured(truth, 1e-3).equations(other, np.ones((1, 1)))
    assert equations.shape[0] == 7 * 5 + 4 * 8


def test_a_weight_that_few_answers_tell_does_not_run_away():
    # One input is 0 but at a single answer, which is wrong by much.
    rng = np.random.default_rng(5)
    truth = revelu.Network([rng.standard_normal((2, 3)), np.ones((1, 2))], [[0.1, 0.2], [0]])
    X = np.abs(rng.standard_normal((300, 3)))
    X[:, 2] = 1e-4 * (np.arange(300) == 0)
    Y = truth(X)
    Y[0] += 1.0
    samples, damping = Samples(X, Y, np.full(1, 0.1)), Damping(1e-9)
    free, held = (
        fit(truth, samples, Stop(1), solver=normal_equations, damping=damping, measured=rows)
        for rows in (None, measured(truth, 1e-2))
    )
    off = [np.abs(found.network.weights[0] - truth.weights[0]).max() for found in (free, held)]
    assert off[0] > 10.0
    assert off[1] < 0.5
