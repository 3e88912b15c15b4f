"""Laws of errors, and neurons that are more than they explain."""

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chi2

import revelu
from revelu.numerics.cut_columns import are_cut, as_measured, steps_of
from revelu.numerics.error_law import estimate_law
from revelu.numerics.matching import match_rows
from revelu.recover.fit.evidence import chance_ratio

# Drawn alike from each law: how far 4000 answers err.
N = 4000


def errors(kind, rng, slopes, answers):
    """Errors, what their scales are, and the part of the law that is to be found."""
    z = rng.standard_normal(N)
    if kind == "alike":
        return 0.1 * z, np.full(N, 0.1), "constant"
    if kind == "slope":
        return 0.05 * slopes * z, 0.05 * slopes, "slope"
    if kind == "share":
        return 0.02 * answers * z, 0.02 * np.abs(answers), "share"
    if kind == "Cauchy":
        return 0.01 * rng.standard_cauchy(N), np.full(N, 0.01), "tail"
    wrong = rng.random(N) < 0.05
    return np.where(wrong, 5.0, 0.01) * z, np.full(N, 0.01), "outliers"


@pytest.mark.parametrize("kind", ["alike", "slope", "share", "Cauchy", "outliers"])
def test_the_law_of_errors_is_found(kind):
    rng = np.random.default_rng(1)
    slopes, answers = rng.uniform(0.5, 2.0, N), rng.standard_normal(N)
    residual, scales, part = errors(kind, rng, slopes, answers)
    law = estimate_law(residual, slopes, answers)
    clear = np.abs(answers) > 0.2
    found = law.scales(slopes, answers)
    np.testing.assert_allclose(found[clear], scales[clear], rtol=0.15)
    assert law.is_even == (kind == "alike")
    assert (law.tail < np.inf) == (part == "tail")
    assert (law.outliers > 0) == (part == "outliers")
    assert (law.slope > 0) == (part == "slope")
    assert (law.share > 0) == (part == "share")
    for share in (0.5, 0.1):
        beyond = float(np.mean(np.abs(residual / found) > law.quantile(share)))
        assert abs(beyond - share) < 5.0 * np.sqrt(share * (1 - share) / N)


@pytest.mark.parametrize("kind", ["Cauchy", "outliers"])
def test_scores_are_the_slopes_of_the_likelihood(kind):
    rng = np.random.default_rng(2)
    law = estimate_law(errors(kind, rng, np.ones(N), np.ones(N))[0], np.ones(N), np.ones(N))
    z, step = np.array([-2.0, 0.3, 1.0, 3.0, 8.0]), 1e-5
    score = z * law.weights(z)
    by_likelihood = (law.log_likelihood(z - step) - law.log_likelihood(z + step)) / (2 * step)
    np.testing.assert_allclose(score, by_likelihood, rtol=1e-6, atol=1e-8)
    up, down = (x * law.weights(x) for x in (z + step, z - step))
    np.testing.assert_allclose(law.score_slopes(z), (up - down) / (2 * step), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("n", "d"), [(60, 3), (300, 8)])
def test_chance_is_bounded_by_cover_and_chi_squared(n, d):
    i = np.arange(d + 1)
    ways = 2.0 * np.exp(gammaln(n) - gammaln(i + 1) - gammaln(n - i)).sum()
    T = chance_ratio(n, d)
    assert ways * chi2.sf(T, d + 1) < 1e-6
    # Chernoff's bound is no more than a few times too large.
    assert ways * chi2.sf(0.9 * T, d + 1) > 1e-8


def test_what_cutting_takes_is_given_back():
    X = np.random.default_rng(3).standard_normal((2000, 4))
    assert not steps_of(X).any()
    X[:, 3] = np.abs(X[:, 3])  # of one sign: cutting shifts it
    whole = np.trunc(100 * X)
    steps = steps_of(whole)
    np.testing.assert_array_equal(steps, [1.0, 1.0, 1.0, 0.0])
    assert are_cut(whole, steps)
    assert not are_cut(np.round(100 * X), steps)
    off = (as_measured(whole, steps) - 100 * X)[:, :3]
    # Uniform to half a step on either side, whatever the sign.
    assert np.abs((off * np.sign(X[:, :3])).mean()) < 5 * np.sqrt(1 / 12 / off.size)


def table(kind, seed, d=6, m=3, n=2000):
    """A network, and a table of it as people have them."""
    rng = np.random.default_rng([31, seed])
    W = rng.standard_normal((m, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    a, b = rng.uniform(0.5, 1.5, m) * rng.choice([-1, 1], m), rng.uniform(-1, 1, m)
    X = rng.standard_normal((n, d))
    y = np.maximum(X @ W.T + b, 0) @ a
    if kind == "cut":
        return W, (X * 100).astype(int), y
    if kind == "rounded":
        return W, np.round(X * 100), y
    if kind == "share":
        return W, X, y * (1 + 0.02 * rng.standard_normal(n))
    if kind == "Cauchy":
        return W, X, y + 0.01 * rng.standard_cauchy(n)
    wrong = rng.random(n) < 0.05
    return W, X, y + np.where(wrong, 5.0, 0.01) * rng.standard_normal(n)


@pytest.mark.parametrize("kind", ["cut", "rounded", "share", "Cauchy", "outliers"])
def test_tables_that_err_show_the_neurons_that_are_there_and_no_other(kind):
    W, X, y = table(kind, seed=1)
    recovery = revelu.learn(X, y)
    assert recovery.status is revelu.Status.RECOVERED
    found = recovery.network.weights[0]
    assert found.shape == W.shape
    rows, _ = match_rows(found, W)
    cosines = (found[rows] * W).sum(axis=1) / np.linalg.norm(found[rows], axis=1)
    assert cosines.min() > 0.999
    assert min(recovery.details["likelihood_ratios"]) > chance_ratio(len(X), X.shape[1])
    assert recovery.ledger.n_queries == 0


def test_what_is_exact_in_whole_numbers_stays_exact():
    rng = np.random.default_rng(4)
    X = np.trunc(20 * rng.standard_normal((600, 3)))
    W = np.array([[0.6, 0.8, 0.0], [0.0, 0.6, -0.8]])
    recovery = revelu.learn(X, np.maximum(X @ W.T + 3.0, 0.0) @ [1.0, -2.0])
    assert recovery.details["exact"]
    assert recovery.status is revelu.Status.RECOVERED


def test_an_affine_table_is_affine_with_noise_and_without():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((500, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0
    for noise in (0.0, 0.1):
        recovery = revelu.learn(X, y + noise * rng.standard_normal(500))
        assert recovery.status is revelu.Status.RECOVERED
        assert recovery.network.architecture == (3, 0, 1)


def test_a_smooth_function_is_no_network_among_noise():
    X = np.random.default_rng(6).uniform(-2, 2, (300, 2))
    recovery = revelu.learn(X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2, max_searches=3)
    assert recovery.status is not revelu.Status.RECOVERED
