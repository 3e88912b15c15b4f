"""Numerics of high thresholds: coefficients, landscapes, joint diagonalisation, moments."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import check_grad
from scipy.special import eval_hermitenorm
from scipy.stats import norm

from listings.gp18_polynomials import part, shifted
from listings.landscape import (
    attained_by_directions,
    balanced,
    directions_at_once,
    directions_one_by_one,
)
from revelu.numerics.hermite import power
from revelu.numerics.high_threshold import coefficient, threshold_of
from revelu.numerics.joint_diagonalisation import common_rotation
from revelu.numerics.least_deviations import least_deviations
from revelu.numerics.matching import match_rows
from revelu.oracle import Oracle
from revelu.recover.rare.rare_directions import estimate_directions
from revelu.recover.rare.rare_samples import (
    RareSamples,
    draw_rare,
    rare_samples,
)
from threshold_networks import ACTIVATIONS, Polynomial, random_directions, threshold_network


def largest_angle(W, truth):
    rows, _ = match_rows(W, truth, up_to_sign=True)
    return np.arccos(np.clip(np.abs(np.sum(W[rows] * truth, axis=1)), 0, 1)).max()


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("k", [0, 1, 2, 3, 4])
def test_coefficients_are_integrals(activation, k):
    u, t = ACTIVATIONS[activation], 1.7

    def integrand(g):
        return float(u(np.array(g - t)) * eval_hermitenorm(k, g) * norm.pdf(g))

    expected = sum(quad(integrand, *ends)[0] for ends in ((-12, t), (t, 12)))
    assert coefficient(activation, k, np.array(t)) == pytest.approx(
        expected / math.sqrt(math.factorial(k)), abs=1e-9
    )


@given(st.sampled_from(["relu", "sign", "sigmoid"]), st.floats(0.5, 4.0))
@settings(max_examples=20, deadline=None)
def test_a_ratio_of_coefficients_tells_the_threshold(activation, t):
    third, second = (coefficient(activation, k, np.array(t)) for k in (3, 2))
    assert threshold_of(activation, np.sqrt(3.0) * third / second) == pytest.approx(t, abs=1e-3)


def landscape(seed=0, d=4, kappa=2.0):
    rng = np.random.default_rng(seed)
    W, c = random_directions(d, d, kappa, rng), rng.uniform(0.5, 1.5, d)
    u2, u4 = (float(coefficient("relu", k, np.array(2.0))) for k in (2, 4))
    T2 = sum(math.sqrt(2.0) * u2 * a * power(w, 2) for a, w in zip(c, W, strict=True))
    T4 = sum(math.sqrt(24.0) * u4 * a * power(w, 4) for a, w in zip(c, W, strict=True))
    return W, c, balanced(T2, T4, u2, u4)


def test_gradients_are_exact():
    _, _, G = landscape()
    rng = np.random.default_rng(1)
    z, V = rng.standard_normal(4), rng.standard_normal(16)
    assert check_grad(lambda p: G.one(p)[0], lambda p: G.one(p)[1], z) < 1e-5 * abs(G.one(z)[0])
    value = abs(G.all(V.reshape(4, 4))[0])
    assert (
        check_grad(
            lambda p: G.all(p.reshape(4, 4))[0], lambda p: G.all(p.reshape(4, 4))[1].ravel(), V
        )
        < 1e-5 * value
    )


def test_the_hessian_is_the_gradients_derivative():
    _, _, G = landscape()
    z, h = np.random.default_rng(1).standard_normal(4), 1e-6
    columns = [(G.one(z + h * e)[1] - G.one(z - h * e)[1]) / (2 * h) for e in np.eye(4)]
    assert np.abs(np.array(columns) - G.hessian(z)).max() < 1e-6 * np.abs(G.hessian(z)).max()


def test_objectives_are_expectations_of_the_papers_polynomials():
    """psi with its corrected cross term, over samples, against contractions of the tensors."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 3))
    f = rng.standard_normal(200)
    T2 = np.einsum("n,ni,nj->ij", f, X, X) / 200 - f.mean() * np.eye(3)
    samples = rare_samples(X, f, 0.0)
    T4 = samples.moments(np.eye(3), 4).tensor(4)
    G = balanced(T2, T4, 0.1, 0.2)
    v, w = rng.standard_normal((2, 3))

    def square(z):
        return (X @ z) ** 2 - z @ z

    def fourth(z):
        return (X @ z) ** 4 - 6 * (z @ z) * (X @ z) ** 2 + 3 * (z @ z) ** 2

    psi = square(v) * square(w) - 4 * (X @ v) * (X @ w) * (v @ w) + 2 * (v @ w) ** 2
    scale = sum((np.mean(f * square(z)) / math.sqrt(2) - 0.1) ** 2 for z in (v, w))
    expected = (
        2 * np.mean(f * psi)
        - 0.01 * sum(np.mean(f * fourth(z)) for z in (v, w)) / math.sqrt(24)
        + G.weight * scale
    )
    assert G.all(np.array([v, w]))[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("find", [directions_one_by_one, directions_at_once])
def test_minima_of_the_population_are_the_directions(find):
    W, _, G = landscape(seed=3)
    # The simultaneous objective is biased by gamma (Theorem 11).
    assert largest_angle(find(G, 4, np.random.default_rng(0)), W) < 0.05


def test_a_direction_is_a_minimum_and_a_mixture_is_not():
    W, c, G = landscape(seed=3, kappa=1.0)
    Z = np.linalg.inv(np.sqrt(c)[:, None] * W).T
    found = [G.attained(z * s) for z in Z for s in (0.9, 1.0, 1.1)]
    assert any(steep <= 1e-1 and bend <= 1e-6 for steep, bend in found)
    mixture = (Z[0] + Z[1]) / np.sqrt(2.0)
    assert np.linalg.eigvalsh(G.hessian(mixture))[0] < 0
    assert G.attained(mixture)[1] > 1e-6


def test_directions_are_nearly_minima_under_high_thresholds():
    """Definition 1, for the directions that are used: products of units bend low ones."""
    X = np.random.default_rng(0).standard_normal((50_000, 5))
    steep = []
    for threshold in (0.5, 2.0):
        net = threshold_network((5, 3), threshold=threshold, kappa=2.0, seed=2)
        constant = float(net(np.zeros((1, 5)))[0])
        samples = rare_samples(X, net(X), constant)
        start = estimate_directions(samples, "relu", 3, np.random.default_rng(0))
        basis = np.linalg.svd(start.directions, full_matrices=False)[2]
        moments = samples.moments(basis, 4)
        rows = start.directions @ basis.T
        minima = attained_by_directions(rows, start.thresholds, moments)
        steep.append(np.nanmedian(minima[:, 0]))
    assert steep[1] < 0.5 < steep[0]
    assert (minima[:, 1] < 0.1).all()


@given(st.integers(0, 50), st.integers(2, 6))
@settings(max_examples=15, deadline=None)
def test_joint_diagonalisation_finds_a_common_rotation(seed, m):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((m, m)))[0]
    M = np.einsum("ai,pa,aj->pij", Q, rng.standard_normal((3, m)), Q)
    assert largest_angle(common_rotation(M), Q) < 1e-6


def test_rare_moments_have_no_bias_and_honest_errors():
    net = threshold_network((3, 2), threshold=1.0, seed=1)
    plain = np.random.default_rng(0).standard_normal((200_000, 3))
    samples = rare_samples(plain, net(plain), 0.0)
    oracle = Oracle(net, 3)
    wide = draw_rare(oracle, 200_000, 0.0, np.random.default_rng(1), width=1.25)
    assert oracle.n_queries == 200_000
    assert 20_000 < wide.effective < 200_000
    a, b = (s.moments(np.eye(3), 3) for s in (samples, wide))
    for k in (1, 2, 3):
        off = (a.values[k] - b.values[k]) / np.hypot(a.errors[k], b.errors[k])
        assert np.abs(off).max() < 4.5
    assert np.allclose(samples.second_moment(), a.tensor(2), atol=1e-9)


def test_a_wider_gaussian_sees_rare_events_better():
    net = threshold_network((4, 3), threshold=2.5, seed=2)
    constant = float(net(np.zeros((1, 4)))[0])
    rng = np.random.default_rng(0)
    drawn = [draw_rare(Oracle(net, 4), 50_000, constant, rng, width=w) for w in (1.0, 1.25)]
    errors = [np.linalg.norm(samples.moments(np.eye(4), 3).errors[3]) for samples in drawn]
    assert errors[1] < 0.5 * errors[0]


def test_biased_samples_give_moments_up_to_a_factor():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200_000, 2))
    f = np.exp(X[:, 0] - 2.0)
    X = X[rng.random(len(X)) < f / f.max()]
    kept = RareSamples.plain(X, np.ones(len(X)))
    # E[f He_1] / E[f] of exp(x_0) is 1 along the first axis.
    assert kept.moments(np.eye(2), 1).values[1] == pytest.approx([1.0, 0.0], abs=0.1)


def test_least_deviations_are_exact_where_most_equations_are():
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((200, 5)), rng.standard_normal(5)
    b = A @ x
    b[:80] += rng.exponential(1.0, 80)
    fit = least_deviations(A, b)
    assert fit.is_exact
    assert np.abs(fit.x - x).max() < 1e-13
    assert not least_deviations(A, rng.standard_normal(200)).is_exact


def test_polynomials_shift_and_split():
    P = Polynomial({(0, 0): 1.0, (1, 0): 2.0, (2, 0): 3.0, (1, 1): 4.0})
    X = np.random.default_rng(0).standard_normal((5, 2))
    assert np.allclose(shifted(P, 0.3)(X), P(0.3 * (X + 1)))
    assert part(P, 1).terms == {(0, 0): 1.0, (1, 0): 2.0, (2, 0): 3.0}
    assert P.linear().tolist() == [2.0, 0.0]
