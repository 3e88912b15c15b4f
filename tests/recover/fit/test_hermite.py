"""Hermite coefficients, moments with control variates, tensors, error bars."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import eval_hermitenorm
from scipy.stats import norm

from revelu.network import Network
from revelu.numerics.gaussianity import measure_law
from revelu.numerics.hermite import (
    network_coefficient,
    power,
    recover_scalars,
    relu_coefficient,
    risk,
)
from revelu.numerics.jennrich import contract, power_weights
from revelu.numerics.quadratic import Quadratic, fit_quadratic, weighted_gram
from revelu.probe.moments import estimate_moments, estimate_second_moment, hermite_features
from revelu.recover.fit.covariance import standard_errors, with_unit_rows
from revelu.recover.fit.limits import least_order
from revelu.recover.fit.tensors import (
    UnitNeurons,
    estimate_again,
    estimate_units,
    fix_signs,
    recover_units,
)
from revelu.recover.refine.network_fit import Samples, fit


def draw(d, m, seed):
    rng = np.random.default_rng([21, seed])
    W = rng.standard_normal((m, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    return rng.uniform(0.5, 1.5, m) * rng.choice([-1, 1], m), W, rng.uniform(-1, 1, m)


def relu_network(a, W, b, X):
    return np.maximum(X @ W.T + b, 0) @ a


@pytest.mark.parametrize("k", range(7))
@pytest.mark.parametrize("b", [-2.0, -1.0, 0.0, 0.3, 1.0])
def test_coefficients_of_relu_are_its_integrals(k, b):
    def weighted(z):
        return (z + b) * eval_hermitenorm(k, z) * norm.pdf(z)

    integral = quad(weighted, -b, 12, epsabs=1e-12)[0]
    assert relu_coefficient(k, np.array(b)) == pytest.approx(integral, abs=1e-9)


@pytest.mark.parametrize("k", range(6))
def test_each_coefficient_is_the_derivative_of_the_one_before(k):
    b, h = np.linspace(-2, 2, 9), 1e-5
    slope = (relu_coefficient(k, b + h) - relu_coefficient(k, b - h)) / (2 * h)
    np.testing.assert_allclose(relu_coefficient(k + 1, b), slope, atol=1e-8)


@given(
    st.lists(st.floats(-2.5, 2.5), min_size=1, max_size=5),
    st.sampled_from([2, 3, 4]),
    st.floats(0.1, 3.0),
)
def test_scalars_come_back_from_four_orders(biases, lowest, scale):
    b = np.array(biases)
    a = scale * (-1.0) ** np.arange(len(b))
    zeta = {k: a * relu_coefficient(k, b) for k in range(lowest, lowest + 4)}
    found = recover_scalars(zeta)
    np.testing.assert_allclose(found, [a, b], rtol=1e-6, atol=1e-6)
    # A row of the wrong sign: odd orders change theirs, and so does the bias.
    turned = recover_scalars({k: (-1.0) ** k * z for k, z in zeta.items()})
    np.testing.assert_allclose(turned, [a, -b], rtol=1e-6, atol=1e-6)


def test_risk_is_the_squared_distance():
    (a, W, b), (a2, W2, b2) = draw(3, 4, 1), draw(3, 4, 2)
    one, other = (
        [network_coefficient(k, *units) for k in range(8)] for units in ((a, W, b), (a2, W2, b2))
    )
    X = np.random.default_rng(0).standard_normal((200_000, 3))
    squares = (relu_network(a, W, b, X) - relu_network(a2, W2, b2, X)) ** 2
    error = squares.std() / np.sqrt(len(X))
    # What lies above order 7 is less than a hundredth.
    assert abs(risk(one, other) - squares.mean()) < 5 * error + 0.01 * squares.mean()


def test_weights_of_powers():
    _, W, b = draw(4, 3, 3)
    T = sum(c * power(w, 3) for c, w in zip(b, W, strict=True))
    np.testing.assert_allclose(power_weights(W, T), b, atol=1e-12)
    assert contract(power(W[0], 3), W[1]) == pytest.approx((W[0] @ W[1]) ** 3)


def test_features_are_products_of_polynomials():
    Z = np.random.default_rng(1).standard_normal((7, 3))
    features = hermite_features(Z, 4)
    ascending = [[c for c in product(range(3), repeat=k) if list(c) == sorted(c)] for k in range(5)]
    assert [F.shape[1] for F in features] == [len(rows) for rows in ascending]
    # The last but one of order 4 is (1, 2, 2, 2).
    expected = eval_hermitenorm(1, Z[:, 1]) * eval_hermitenorm(3, Z[:, 2])
    np.testing.assert_allclose(features[4][:, -2], expected, atol=1e-12)


def test_a_quadratic_is_fitted_exactly():
    rng = np.random.default_rng(2)
    X, M = rng.standard_normal((600, 5)), rng.standard_normal((5, 5))
    truth = Quadratic(0.7, rng.standard_normal(5), M + M.T)
    found = fit_quadratic(X, truth(X))
    np.testing.assert_allclose(found(X), truth(X), atol=1e-3 * np.abs(truth(X)).max())
    assert not fit_quadratic(X[:20], truth(X[:20])).M.any()  # 20 samples of 21 coefficients


@pytest.mark.parametrize("signs", [[1, -1, 0], [1], [-1], [0]])
def test_weighted_gram_is_the_product_with_a_diagonal(signs):
    rng = np.random.default_rng(12)
    X, w = rng.standard_normal((40, 6)), rng.exponential(1.0, 40) * rng.choice(signs, 40)
    np.testing.assert_allclose(weighted_gram(X, w), X.T @ np.diag(w) @ X, atol=1e-12)


@given(st.integers(2, 5), st.integers(2, 4), st.integers(0, 10**6))
def test_rows_in_a_plane_are_independent_from_order_m_less_one(m, d, seed):
    # Powers of order k of rows in a plane are binary forms, which have k + 1 coefficients.
    rng = np.random.default_rng(seed)
    angles = np.pi * (np.arange(m) + rng.uniform(0.2, 0.8)) / m
    W = (
        np.column_stack([np.cos(angles), np.sin(angles)])
        @ np.linalg.qr(rng.standard_normal((d, 2)))[0].T
    )
    order, least = least_order(W, 0.0)
    assert order == m - 1
    powers = np.array([power(w, order).ravel() for w in W])
    assert least == pytest.approx(np.linalg.svd(powers, compute_uv=False)[-1], rel=1e-6)
    assert least_order(W, 1.0)[0] == 0  # rows that may be anywhere


def test_moments_are_within_their_errors_and_control_variates_shrink_these():
    a, W, b = draw(4, 3, 4)
    X = np.random.default_rng(3).standard_normal((20_000, 4))
    y = relu_network(a, W, b, X)
    none = Quadratic(0.0, np.zeros(4), np.zeros((4, 4)))
    moments = estimate_moments([(X, y)], fit_quadratic(X, y))
    plain = estimate_moments([(X, y)], none)
    for k in range(1, 5):
        true = network_coefficient(k, a, W, b)
        for found in (moments, plain):
            scale = np.linalg.norm(found.errors[k]) * np.sqrt(24)
            assert np.linalg.norm(found.tensor(k) - true) < 3 * scale
        assert np.linalg.norm(moments.errors[k]) < 0.7 * np.linalg.norm(plain.errors[k])


def test_moments_do_not_depend_on_how_samples_are_split():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((900, 3)), rng.standard_normal(900)
    control = Quadratic(0.1, np.ones(3), np.eye(3))
    basis = np.eye(3)[:2]
    whole = estimate_moments([(X, y)], control, basis)
    chunks = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 900, 100)]
    with ThreadPoolExecutor(2) as pool:
        parts = estimate_moments(chunks, control, basis, executor=pool)
        second, n = estimate_second_moment(chunks, control, executor=pool)
    for one, other in zip(whole.values, parts.values, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert n == 900
    np.testing.assert_allclose(second, estimate_second_moment([(X, y)], control)[0], atol=1e-12)


def test_neurons_from_estimated_moments_are_near():
    a, _, b = draw(3, 3, 6)
    W = np.linalg.qr(np.random.default_rng(9).standard_normal((3, 3)))[0]
    X = np.random.default_rng(5).standard_normal((100_000, 3))  # 8,000 samples a parameter
    y = relu_network(a, W, b, X)
    moments = estimate_moments([(X, y)], fit_quadratic(X, y))
    units = estimate_units(moments, 3, np.random.default_rng(0))
    order = [int(np.argmax(units.W @ w)) for w in W]
    np.testing.assert_allclose(units.W[order], W, atol=0.15)
    np.testing.assert_allclose(units.b[order], b, atol=0.3)


def test_units_found_are_a_control_variate_for_better_ones():
    a, W, b = draw(6, 3, 10)
    X = np.random.default_rng(11).standard_normal((20_000, 6))  # 800 samples a parameter
    y = relu_network(a, W, b, X)
    quadratic = fit_quadratic(X, y)
    values, U = np.linalg.eigh(quadratic.M)
    basis = U[:, np.argsort(-np.abs(values))[:3]].T
    units = estimate_units(
        estimate_moments([(X, y)], quadratic, basis), 3, np.random.default_rng(0)
    )
    errors = []
    for _ in range(2):
        rows = units.W @ basis
        order = [int(np.argmax(rows @ w)) for w in W]
        off = np.abs(np.column_stack([rows, units.b, units.a])[order] - np.column_stack([W, b, a]))
        errors.append(off.max())
        units, basis = estimate_again(units, basis, X, y)
    assert errors[1] < errors[0] / 3


def test_nearly_dependent_rows_come_back_to_the_last_digits():
    a, W, b = draw(5, 5, 7)
    W[4] = W[:4].sum(axis=0) + 1e-4 * W[4]
    W[4] /= np.linalg.norm(W[4])
    assert np.linalg.svd(W, compute_uv=False)[-1] < 1e-4  # a pencil loses eight digits
    tensors = {k: network_coefficient(k, a, W, b) for k in range(1, 5)}
    units = recover_units(tensors, 5, 1, np.random.default_rng(1))[0]
    order = [int(np.argmax(units.W @ w)) for w in W]
    for found, true in ((units.W, W), (units.b, b), (units.a, a)):
        np.testing.assert_allclose(found[order], true, atol=1e-12)


def test_signs_follow_from_the_first_coefficient():
    a, W, b = draw(5, 5, 7)
    turned = np.array([1, -1, -1, 1, -1.0])
    found = fix_signs(
        UnitNeurons(a, W * turned[:, None], b * turned), network_coefficient(1, a, W, b)
    )
    np.testing.assert_allclose(found.W, W)
    np.testing.assert_allclose(found.b, b)


def test_error_bars_are_the_spread_of_fits():
    a, W, b = draw(3, 2, 8)
    truth = Network([W, a[None]], [b, [0.0]])
    rng = np.random.default_rng(6)
    X = rng.standard_normal((400, 3))
    fits = []
    for _ in range(60):
        Y = truth(X) + 0.05 * rng.standard_normal((400, 1))
        found = with_unit_rows(fit(truth, Samples(X, Y, np.array([0.05]))).network)
        fits.append(found.to_vector())
    bars = standard_errors(truth, Samples(X, truth(X), np.array([0.05])))
    bar = np.concatenate([bars.W.ravel(), bars.A.ravel(), bars.b, bars.c])
    # Sixty fits know a deviation to a tenth.
    np.testing.assert_allclose(np.std(fits, axis=0), bar, rtol=0.5)


def test_laws_of_inputs():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((3000, 4))
    assert measure_law(X).is_standard
    assert not measure_law(X).objection
    L = rng.standard_normal((4, 4)) + 3 * np.eye(4)
    other = measure_law(X @ L.T + 5.0)
    assert not other.is_standard
    assert not other.objection
    Z = other.whiten(X @ L.T + 5.0)
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(4), atol=1e-9)
    assert "not Gaussian" in measure_law(rng.uniform(-1, 1, (3000, 4))).objection
    assert "skewed" in measure_law(rng.exponential(size=(3000, 4))).objection
    # Dependent inputs span less.
    assert measure_law(np.column_stack([X, X[:, 0]])).whiten(
        np.column_stack([X, X[:, 0]])
    ).shape == (3000, 4)
