"""Rows carried over from a slice of the inputs to all, and spans that miss no rare neuron."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revelu.errors import SaturatedError
from revelu.network import Network, zoo
from revelu.oracle import Oracle, measure_noise
from revelu.probe.gradient_span import gradient_span
from revelu.recover.fit.slices import carry_over, random_slice
from revelu.recover.refine.network_fit import Samples
from revelu.recover.subspace import Subspace

D, WIDTH, R = 120, 12, 24


def truth_of(k, affine, seed):
    rng = np.random.default_rng(seed)
    skip = (rng.standard_normal((k, D)), np.zeros(k)) if affine else None
    W, b = rng.standard_normal((WIDTH, D)) / np.sqrt(D), rng.standard_normal(WIDTH) / 2
    return Network([W, rng.standard_normal((k, WIDTH))], [b, rng.standard_normal(k)], skip)


def restricted(truth, slice_):
    B = slice_.scale * slice_.basis.T
    (W, A), skip = truth.weights, truth.skip
    return Network([W @ B, A], truth.biases, None if skip is None else (skip[0] @ B, skip[1]))


@given(d=st.integers(2, 30), seed=st.integers(0, 2**32 - 1))
def test_coordinates_and_points_are_inverse_and_a_network_follows_them(d, seed):
    rng = np.random.default_rng(seed)
    slice_ = random_slice(rng, d, int(rng.integers(1, d + 1)))
    Z = rng.standard_normal((5, slice_.dim))
    X = slice_.points(Z)
    np.testing.assert_allclose(slice_.coordinates(X), Z, atol=1e-12)
    network = zoo.random_network([slice_.dim, 3, 2], seed=seed)
    np.testing.assert_allclose(slice_.in_all_coordinates(network)(X), network(Z), atol=1e-9)


def test_a_slice_is_as_long_as_all_coordinates_are():
    slice_ = random_slice(np.random.default_rng(0), 400, 32)
    X = slice_.points(np.random.default_rng(1).standard_normal((2000, 32)))
    assert np.sqrt((X**2).sum(axis=1).mean()) == pytest.approx(20.0, rel=0.02)


@settings(max_examples=15)
@given(k=st.integers(1, 3), affine=st.booleans(), seed=st.integers(0, 10**6))
def test_rows_are_carried_over(k, affine, seed):
    truth, rng = truth_of(k, affine, seed), np.random.default_rng(seed)
    slice_ = random_slice(rng, D, R)

    def ask(X):
        return Samples(X, truth(X), np.ones(k))

    network, samples = carry_over(ask, rng, restricted(truth, slice_), slice_)
    unknowns = WIDTH + (k if affine else 0)
    assert len(samples.X) <= (unknowns / k + 2) * (D - R + 1)
    np.testing.assert_allclose(network.weights[0], truth.weights[0], atol=1e-7)
    if affine:
        np.testing.assert_allclose(network.skip[0], truth.skip[0], atol=1e-7)
    # The answers asked for are the truth's, so what they are compared with is it.
    np.testing.assert_allclose(samples.Y, network(samples.X), atol=1e-5)


def test_a_target_without_neurons_or_rest_is_carried_over():
    network = Network([np.empty((0, R)), np.empty((1, 0))], [[], [1.0]])
    slice_ = random_slice(np.random.default_rng(0), D, R)
    ask = lambda X: Samples(X, np.ones((len(X), 1)), np.ones(1))  # noqa: E731
    found, _ = carry_over(ask, np.random.default_rng(1), network, slice_)
    assert found.weights[0].shape == (0, D)


def test_what_is_not_answered_ends_it():
    truth, rng = truth_of(1, False, 0), np.random.default_rng(0)
    slice_ = random_slice(rng, D, R)
    ask = lambda X: Samples(X[1:], truth(X[1:]), np.ones(1))  # noqa: E731
    with pytest.raises(SaturatedError, match="slopes"):
        carry_over(ask, rng, restricted(truth, slice_), slice_)


@pytest.mark.parametrize("seed", range(4))
def test_the_span_has_the_row_of_a_neuron_that_seldom_fires(seed):
    network = zoo.random_network([150, 6, 3], seed=seed)
    W, b = network.weights[0], network.biases[0].copy()
    b[2] = -1.75 * np.linalg.norm(W[2])  # fires at one input in 25
    target = Network([W, 10 * network.weights[1]], [b, network.biases[1]])
    oracle = Oracle(target, dim_in=150)
    noise = measure_noise(oracle, seed)
    before = oracle.ledger().n_queries
    span = gradient_span(oracle, noise, np.random.default_rng(seed), max_rank=75)
    row = W[2] / np.linalg.norm(W[2])
    assert np.linalg.norm(row - span.T @ (span @ row)) < 1e-3
    assert oracle.ledger().n_queries - before <= 8 * 151 + 4 * 256


def test_a_subspace_is_of_scale_1_unless_said():
    basis = np.eye(3)[:2]
    np.testing.assert_array_equal(Subspace(basis).points(np.eye(2)), basis)


@pytest.mark.parametrize("widths", [[7, 3, 2], [7, 3, 4, 2]], ids=str)
@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_a_network_on_a_subspace_answers_as_in_all_coordinates(widths, scale):
    network = zoo.random_network(widths, seed=2)
    skip = np.ones((2, 7 if len(widths) == 3 else 3)), np.zeros(2)
    network = Network(network.weights, network.biases, skip=skip)
    rows = Subspace(Subspace.of_rows(network.weights[0]).basis, scale)
    X = np.random.default_rng(1).standard_normal((20, rows.dim)) @ rows.basis
    inside = rows.inside(network)
    np.testing.assert_allclose(inside(rows.coordinates(X)), network(X), atol=1e-12)
    np.testing.assert_allclose(rows.in_all_coordinates(inside)(X), network(X), atol=1e-12)


def test_the_span_of_many_rows_is_everything():
    W = np.random.default_rng(0).standard_normal((6, 4))
    np.testing.assert_array_equal(Subspace.of_rows(W).basis, np.eye(4))
