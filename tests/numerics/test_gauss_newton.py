"""Gauss-Newton steps over all weights, against finite differences and a known truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revelu.network import Network, zoo
from revelu.network.derivative import NetworkDerivative, ParameterArrays
from revelu.numerics.gauss_newton import (
    DAMPED,
    UNDAMPED,
    Iterative,
    Orthogonal,
    Stop,
    minimise,
    normal_equations,
    summed_normal_equations,
)
from revelu.recover.refine.network_fit import Samples, fit, fit_top

SHAPES = [(5, 4, 2), (4, 0, 1), (4, 6, 1), (5, 4, 6, 1), (6, 5, 3, 2), (5, 4, 4, 3, 2)]


def network_of(widths, seed, *, with_skip):
    if 0 in widths:
        weights = [np.zeros((0, widths[0])), np.zeros((widths[-1], 0))]
        network = Network(weights, [np.zeros(0), np.ones(widths[-1])])
    else:
        network = zoo.random_network(list(widths), seed=seed)
    if not with_skip:
        return network
    V = np.random.default_rng(seed).standard_normal((widths[-1], widths[-3]))
    return Network(network.weights, network.biases, (V, np.zeros(widths[-1])))


def derivative_of(network, seed, n=11):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, network.dim_in))
    inverse_errors = rng.uniform(0.5, 2.0, (n, network.dim_out))
    return NetworkDerivative(ParameterArrays.of(network), X, inverse_errors), X, inverse_errors


@settings(max_examples=40)
@given(st.sampled_from(SHAPES), st.booleans(), st.integers(0, 10**6))
def test_the_derivative_is_that_of_the_answers(widths, with_skip, seed):
    network = network_of(widths, seed, with_skip=with_skip)
    derivative, X, inverse_errors = derivative_of(network, seed)
    change = np.random.default_rng(seed + 1).standard_normal(network.n_parameters)
    if with_skip:
        change[-network.dim_out :] = 0.0  # the constant of the skip stays
    eps, p = 1e-7, network.to_vector()
    ahead, behind = (network.like(p + s * eps * change) for s in (1.0, -1.0))
    pairs = zip(ahead.preactivations(X), behind.preactivations(X), strict=True)
    if any(((a > 0) != (b > 0)).any() for a, b in pairs):
        return  # a kink was crossed: no derivative there
    slope = ((ahead(X) - behind(X)) * inverse_errors / (2 * eps)).ravel()
    np.testing.assert_allclose(derivative.along(change), slope, atol=1e-5)


@settings(max_examples=40)
@given(st.sampled_from(SHAPES), st.booleans(), st.integers(0, 10**6))
def test_the_gradient_and_the_matrix_are_those_of_the_derivative(widths, with_skip, seed):
    network = network_of(widths, seed, with_skip=with_skip)
    derivative, _, _ = derivative_of(network, seed)
    v, u = (np.random.default_rng(seed).standard_normal(n) for n in derivative.shape[::-1])
    assert u @ derivative.along(v) == pytest.approx(v @ derivative.gradient(u), abs=1e-9)
    np.testing.assert_allclose(derivative.matrix() @ v, derivative.along(v), atol=1e-9)
    np.testing.assert_allclose(derivative.in_single(0.0).along(v), derivative.along(v), atol=1e-4)


@settings(max_examples=40)
@given(st.sampled_from(SHAPES), st.booleans(), st.booleans(), st.integers(0, 10**6))
def test_normal_equations_are_those_of_the_matrix(widths, with_skip, each_has_an_error, seed):
    network = network_of(widths, seed, with_skip=with_skip)
    derivative, X, inverse_errors = derivative_of(network, seed, n=37)
    if not each_has_an_error:
        derivative = NetworkDerivative(ParameterArrays.of(network), X, inverse_errors[0])
    J = derivative.matrix()
    normal = np.triu(derivative.normal(n_rows=16))
    np.testing.assert_allclose(normal, np.triu(J.T @ J), atol=1e-9)


@settings(max_examples=40)
@given(st.sampled_from(SHAPES), st.booleans(), st.booleans(), st.integers(0, 10**6))
def test_coordinates_and_their_adjoint_are_transposes(widths, with_skip, white, seed):
    network = network_of(widths, seed, with_skip=with_skip)
    coordinates = derivative_of(network, seed)[0].coordinates(white=white)
    v, g = np.random.default_rng(seed).standard_normal((2, network.n_parameters))
    there, back = g @ coordinates.to_change(v), v @ coordinates.adjoint(g)
    assert there == pytest.approx(back, rel=1e-9, abs=1e-9 * abs(coordinates.to_change(v)).max())


@pytest.mark.parametrize("widths", [(5, 4, 2), (4, 6, 1)])
def test_units_give_columns_of_norm_1(widths):
    derivative, _, _ = derivative_of(network_of(widths, 3, with_skip=True), 3, n=200)
    norms = np.linalg.norm(derivative.matrix() * derivative.coordinates(white=False).units, axis=0)
    np.testing.assert_allclose(norms[norms > 0], 1.0)


def test_in_white_coordinates_the_derivative_is_better_conditioned():
    network = network_of((6, 12, 2), 3, with_skip=False)
    X = np.random.default_rng(3).standard_normal((4000, 6))
    derivative = NetworkDerivative(ParameterArrays.of(network), X, np.full(2, 1e3))

    def condition(coordinates):
        J = [derivative.along(coordinates.to_change(e)) for e in np.eye(network.n_parameters)]
        # A neuron's scale is free: so many singular values are 0.
        values = np.linalg.svd(np.array(J), compute_uv=False)[:-12]
        return values[0] / values[-1]

    white, plain = (condition(derivative.coordinates(white=w)) for w in (True, False))
    assert white < 0.7 * plain


SOLVERS = [
    normal_equations,
    summed_normal_equations,
    Orthogonal(),
    Iterative(80, 1e-9),
    Iterative(80, 1e-9, white=True),
]


@settings(max_examples=20)
@given(
    st.sampled_from([(5, 4, 2), (5, 4, 6, 1), (6, 5, 3, 2), (5, 4, 4, 3, 2)]),
    st.booleans(),
    st.sampled_from(SOLVERS),
    st.integers(0, 10**4),
)
def test_perturbed_weights_are_restored(widths, with_skip, solver, seed):
    truth = network_of(widths, seed, with_skip=with_skip)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20 * truth.n_parameters, widths[0]))
    p = truth.to_vector()
    start = truth.like(p + 1e-7 * rng.standard_normal(len(p)))
    samples = Samples(X, truth(X), np.ones(widths[-1]))
    is_damped = solver in {normal_equations, summed_normal_equations}
    damping = DAMPED if is_damped else UNDAMPED
    found = fit(start, samples, Stop(8, rtol=0.5, patience=1), solver=solver, damping=damping)
    assert found.cost < 1e-2 * samples.cost(start)
    fresh = rng.standard_normal((500, widths[0]))
    errors = [np.linalg.norm(n(fresh) - truth(fresh)) for n in (found.network, start)]
    assert errors[0] < 0.1 * errors[1]
    # The scales of hidden neurons are free, and left be; so is what few answers depend on.
    assert np.abs(found.network.to_vector() - p).max() < 1e-4


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_is_right_already_is_not_made_worse(solver):
    truth = network_of((5, 4, 6, 1), 0, with_skip=True)
    X = np.random.default_rng(0).standard_normal((400, 5))
    found = fit(truth, Samples(X, truth(X), np.ones(1)), solver=solver, damping=UNDAMPED)
    np.testing.assert_array_equal(found.network.to_vector(), truth.to_vector())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("damping", [DAMPED, UNDAMPED])
def test_the_cost_never_grows(seed, damping):
    network = network_of((4, 3, 5, 1), seed, with_skip=False)
    rng = np.random.default_rng(seed)
    # No network of these widths gives such answers.
    samples = Samples(*(rng.standard_normal((60, n)) for n in (4, 1)), np.ones(1))
    found = fit(network, samples, damping=damping)
    assert found.cost <= samples.cost(network) * (1 + 1e-12)
    assert found.cost == pytest.approx(samples.cost(found.network))


@pytest.mark.parametrize("solver", SOLVERS)
def test_neurons_that_never_fire_are_left_where_they_are(solver):
    (W, A), (b, c) = (
        pair
        for pair in (zoo.random_network([5, 4, 2], seed=1),)
        for pair in (pair.weights, pair.biases)
    )
    dead = Network([W, A], [np.where(np.arange(4) == 1, -1e3, b), c])
    rng = np.random.default_rng(2)
    X, p = rng.standard_normal((200, 5)), dead.to_vector()
    start = dead.like(p + 1e-7 * rng.standard_normal(len(p)))
    stop = Stop(8, rtol=0.5, patience=1)
    samples = Samples(X, dead(X), np.ones(2))
    found = fit(start, samples, stop, solver=solver, damping=UNDAMPED).network
    np.testing.assert_array_equal(found.weights[0][1], start.weights[0][1])
    np.testing.assert_array_equal(found.weights[1][:, 1], start.weights[1][:, 1])
    assert np.abs(found(X) - dead(X)).max() < 1e-11


class Rosenbrock:
    """``(1 - x, 10 (y - x^2))``: undamped steps overshoot, damped ones arrive."""

    shape = (2, 2)

    def __init__(self, p=None):
        self.p = p

    def residual(self, p):
        return np.array([p[0] - 1.0, 10.0 * (p[0] ** 2 - p[1])])

    def derivative(self, p):
        return Rosenbrock(p)

    def matrix(self):
        return np.array([[-1.0, 0.0], [-20.0 * self.p[0], 10.0]])


def test_damped_steps_arrive_where_whole_ones_fail():
    start = np.array([-1.2, 1.0])
    p, cost = minimise(Rosenbrock(), start, normal_equations, DAMPED, Stop(100))
    np.testing.assert_allclose(p, 1.0, atol=1e-6)
    assert cost < 1e-6
    assert minimise(Rosenbrock(), start, normal_equations, UNDAMPED, Stop(100))[1] > 1.0


@pytest.mark.parametrize("with_skip", [False, True])
def test_the_top_is_fitted_and_what_is_below_stays(with_skip):
    truth = network_of((6, 12, 9, 7, 2), 3, with_skip=with_skip)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 6))
    weights = [
        *truth.weights[:-2],
        *(W + 1e-3 * rng.standard_normal(W.shape) for W in truth.weights[-2:]),
    ]
    start = Network(weights, truth.biases, truth.skip)
    found = fit_top(start, Samples(X, truth(X), np.ones(2)), Stop(20, rtol=0.1))
    for a, b in zip(found.weights[:-2], truth.weights[:-2], strict=True):
        np.testing.assert_array_equal(a, b)
    fresh = rng.standard_normal((500, 6))
    errors = np.linalg.norm(found(fresh) - truth(fresh), axis=1)
    assert np.median(errors) < 1e-6 * np.median(np.linalg.norm(start(fresh) - truth(fresh), axis=1))


def test_what_noise_leaves_ends_iterations_that_gain_nothing():
    truth = zoo.random_network([12, 16, 2], seed=3)
    rng = np.random.default_rng(4)
    X = rng.standard_normal((truth.n_parameters, 12))  # two equations a parameter
    derivative = NetworkDerivative(ParameterArrays.of(truth), X, np.ones((len(X), 2)))
    noise = rng.standard_normal(derivative.shape[0])
    left, products = [], []
    for flat in (0.0, 1e-3):
        counted = CountedProducts(derivative)
        step = Iterative(200, 1e-9, flat=flat, white=True)(counted, noise)(0.0)
        left.append(float(np.sum((noise - derivative.along(step)) ** 2)))
        products.append(counted.n_products)
    assert left[1] <= left[0] + 0.002 * float(noise @ noise)
    assert products[1] <= products[0] / 3


class CountedProducts:
    """A derivative that counts how often it is multiplied by."""

    def __init__(self, derivative):
        self.derivative, self.shape, self.n_products = derivative, derivative.shape, 0

    def along(self, change):
        self.n_products += 1
        return self.derivative.along(change)

    def gradient(self, u):
        return self.derivative.gradient(u)

    def coordinates(self, *, white):
        return self.derivative.coordinates(white=white)

    def in_single(self):
        return self


@pytest.mark.parametrize("ratio", [1.5, 4.0, 20.0])
def test_iterations_follow_the_condition_of_a_random_matrix(ratio):
    p = 200
    A = np.random.default_rng(71).standard_normal((int(ratio * p), p))
    np.testing.assert_allclose(Iterative.as_random(ratio) / 15.0, np.linalg.cond(A), rtol=0.15)
