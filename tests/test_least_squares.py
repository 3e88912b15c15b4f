"""Least squares over two-layer networks: derivatives, fits, pruning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revelu.network import zoo
from revelu.recover.fit.levenberg_marquardt import fit, is_dense
from revelu.recover.fit.pruning import are_determined, prune
from revelu.recover.fit.two_layer import Derivative, Samples, TwoLayer
from revelu.recover.fit.wide_fit import searches


def random_network(rng, d, m, k, *, affine):
    V = rng.standard_normal((k, d)) if affine else None
    return TwoLayer(
        rng.standard_normal((m, d)),
        rng.standard_normal(m),
        rng.standard_normal((k, m)),
        rng.standard_normal(k),
        V,
    )


def samples_of(network, rng, n, sigma=1e-6):
    d, k = network.W.shape[1], len(network.c)
    X = rng.standard_normal((n, d))
    return Samples(X, network(X), np.full(k, sigma))


shapes = st.tuples(st.integers(1, 5), st.integers(0, 6), st.integers(1, 3))


@given(shapes, st.booleans(), st.integers(0, 2**32 - 1))
def test_the_derivative_is_that_of_the_answers(shape, affine, seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, *shape, affine=affine)
    X = rng.standard_normal((9, shape[0]))
    samples = Samples(X, np.zeros((9, shape[2])), rng.uniform(0.5, 2.0, (9, shape[2])))
    derivative = Derivative(network, samples)
    v = rng.standard_normal(derivative.shape[1])
    step = 1e-6 * v * derivative.scales
    ahead, behind = (network.like(network.to_vector() + sign * step) for sign in (1.0, -1.0))
    pattern = X @ network.W.T + network.b > 0
    if any(((X @ n.W.T + n.b > 0) != pattern).any() for n in (ahead, behind)):
        return  # a kink was crossed: no derivative there
    change = (samples.residual(behind) - samples.residual(ahead)).ravel() / 2e-6
    size = 1.0 + np.abs(change).max()
    np.testing.assert_allclose(derivative.forward(v) / size, change / size, atol=1e-5)


@given(shapes, st.booleans(), st.integers(0, 2**32 - 1))
def test_the_adjoint_and_the_matrix_are_those_of_the_derivative(shape, affine, seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, *shape, affine=affine)
    samples = samples_of(network, rng, 8, sigma=0.5)
    derivative = Derivative(network, samples)
    v, u = (rng.standard_normal(n) for n in derivative.shape[::-1])
    assert u @ derivative.forward(v) == pytest.approx(v @ derivative.adjoint(u), abs=1e-9)
    matrix = derivative.matrix()
    np.testing.assert_allclose(matrix @ v, derivative.forward(v), atol=1e-9)


@given(shapes, st.booleans(), st.integers(0, 2**32 - 1))
def test_whitening_and_its_adjoint_are_transposes(shape, affine, seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, *shape, affine=affine)
    samples = samples_of(network, rng, 12, sigma=0.5)
    whitening = Derivative(network, samples).whitening(samples)
    v, g = rng.standard_normal((2, network.to_vector().size))
    there, back = g @ whitening.to_change(v), v @ whitening.adjoint(g)
    assert there == pytest.approx(back, rel=1e-9, abs=1e-9 * np.abs(whitening.to_change(v)).max())


def test_in_white_coordinates_the_derivative_is_better_conditioned():
    rng = np.random.default_rng(3)
    network = random_network(rng, 6, 12, 2, affine=False)
    samples = samples_of(network, rng, 4000, sigma=1e-3)
    derivative = Derivative(network, samples)
    whitening = derivative.whitening(samples)
    white = np.array(
        [derivative.along(whitening.to_change(e)) for e in np.eye(derivative.shape[1])]
    )

    def condition(J):
        # A neuron's scale is free: so many singular values are 0.
        values = np.linalg.svd(J, compute_uv=False)[: -network.width]
        return values[0] / values[-1]

    assert condition(white.T) < 0.7 * condition(derivative.matrix())


def test_the_columns_of_the_derivative_are_of_one_size():
    rng = np.random.default_rng(2)
    network = random_network(rng, 4, 5, 2, affine=True)
    derivative = Derivative(network, samples_of(network, rng, 500, sigma=1e-3))
    norms = np.linalg.norm(derivative.matrix(), axis=0)
    assert (norms > 0.4).all()
    assert (norms < 2.5).all()


@given(st.integers(0, 2**32 - 1))
def test_balancing_and_vectors_keep_the_function(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, 4, 5, 2, affine=True)
    X = rng.standard_normal((20, 4))
    balanced = network.balanced()
    np.testing.assert_allclose(balanced(X), network(X), atol=1e-9)
    inner = np.sqrt((balanced.W**2).sum(axis=1) + balanced.b**2)
    np.testing.assert_allclose(inner, np.linalg.norm(balanced.A, axis=0))
    np.testing.assert_array_equal(network.like(network.to_vector())(X), network(X))


@pytest.mark.parametrize("dense", [True, False])
def test_a_fit_from_nearby_ends_at_the_truth(dense):
    rng = np.random.default_rng(1)
    d, m, k, n = (6, 5, 2, 400) if dense else (60, 26, 1, 4000)
    assert is_dense(n * k, m, d, k) is dense
    truth = random_network(rng, d, m, k, affine=False).balanced()
    samples = samples_of(truth, rng, n)
    vector = truth.to_vector()
    start = truth.like(vector + 0.02 * rng.standard_normal(len(vector)) * np.abs(vector))
    found = fit(start, samples, max_steps=60, iterations=60, rtol=0.02)
    assert found.cost < 1.0
    X = rng.standard_normal((500, d))
    np.testing.assert_allclose(found.network(X), truth(X), atol=1e-4)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_a_fit_never_ends_worse_than_it_began(seed):
    rng = np.random.default_rng(seed)
    samples = samples_of(random_network(rng, 3, 4, 1, affine=False), rng, 60)
    start = random_network(rng, 3, 4, 1, affine=True)
    found = fit(start, samples, max_steps=5)
    assert found.cost <= samples.cost(start) * (1 + 1e-9)
    assert found.cost == pytest.approx(samples.cost(found.network))


def split(network, rng):
    """The same function with neurons split in two, turned round and always on."""
    share = rng.uniform(0.2, 0.8, network.width)
    doubled = TwoLayer(
        np.vstack([network.W, network.W]),
        np.concatenate([network.b, network.b]),
        np.hstack([network.A * share, network.A * (1 - share)]),
        network.c,
        network.V,
    )
    # a relu(z) = a relu(-z) + a z, and relu(w x + 50) is affine on all samples.
    W, b, A = doubled.W.copy(), doubled.b.copy(), doubled.A
    V = A[:, :2] @ W[:2] + (0.0 if doubled.V is None else doubled.V)
    c = doubled.c + A[:, :2] @ b[:2]
    W[:2], b[:2] = -W[:2], -b[:2]
    on = rng.standard_normal((1, W.shape[1]))
    column = rng.standard_normal((len(c), 1))
    return TwoLayer(
        np.vstack([W, on]),
        np.append(b, 50.0),
        np.hstack([A, column]),
        c - 50.0 * column[:, 0],
        V - column @ on,
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 4])
def test_pruning_leaves_the_neurons_that_are_needed(k, seed):
    rng = np.random.default_rng(seed)
    truth = random_network(rng, 5, 6, k, affine=False)
    samples = samples_of(truth, rng, 600)
    wide = split(truth, rng)
    np.testing.assert_allclose(wide(samples.X), truth(samples.X), atol=1e-9)
    found = prune(wide, samples, noise_cost=1.5)
    assert found.network.width == 6
    assert samples.reduced_cost(found.network) < 1.5


def test_pruning_keeps_what_it_cannot_replace():
    rng = np.random.default_rng(4)
    truth = random_network(rng, 5, 6, 1, affine=False)
    samples = samples_of(truth, rng, 600)
    found = prune(truth.take(np.arange(5)), samples, noise_cost=1.5)
    assert samples.reduced_cost(found.network) > 1.5


def test_neurons_that_few_answers_see_are_not_determined():
    rng = np.random.default_rng(5)
    network = random_network(rng, 3, 4, 1, affine=False)
    samples = samples_of(network, rng, 200)
    rare = TwoLayer(
        np.vstack([network.W, [[1.0, 0.0, 0.0]]]),
        np.append(network.b, -np.sort(samples.X[:, 0])[-3]),
        np.hstack([network.A, [[1.0]]]),
        network.c,
    )
    assert are_determined(rare, samples).tolist()[-1] is False
    assert are_determined(network, samples).sum() >= 3


@pytest.mark.parametrize("grows", [True, False])
def test_a_search_finds_what_was_planted(grows):
    truth = zoo.random_network([6, 5, 1], seed=3)
    rng = np.random.default_rng(8)
    X = rng.standard_normal((300, 6))
    samples = Samples(X, truth(X), np.array([1e-7]))
    found = searches(rng, samples, 12, 1.0, grows=grows)
    assert any(next(found).cost <= 1.0 for _ in range(10))
