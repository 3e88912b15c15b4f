"""Derivatives by differences: their values, the errors they state, the kinks they notice."""

import numpy as np
import pytest

from revelu.network import zoo
from revelu.numerics.bisection import bisect
from revelu.numerics.confidence import FALSE_ALARM, SIGMAS, standard_errors
from revelu.oracle import Noisy, Oracle, measure_noise
from revelu.probe.gradient import CheckedGradients, Differences, Stencil, measure, unit_rows

D = 12


def prepared(function, *, smooth=False):
    oracle = Oracle(function, D)
    return Differences(oracle, measure_noise(oracle, 1), smooth)


def test_a_stencil_is_exact_on_an_affine_function_and_asks_a_known_answer_not_again():
    rng = np.random.default_rng(0)
    A, x, Q = (
        rng.standard_normal((3, D)),
        rng.standard_normal(D),
        np.linalg.qr(rng.standard_normal((D, D)))[0],
    )
    aside = rng.standard_normal(D)
    stencils = [Stencil(x, Q, np.full(D, 0.5), fx=fx, aside=aside) for fx in (None, A @ x)]
    assert [len(stencil.points()) for stencil in stencils] == [D + 2, D + 1]
    for found in measure(lambda X: X @ A.T, stencils):
        np.testing.assert_allclose(found.values, Q @ A.T, atol=1e-13)
        assert found.apart.max() < 1e-13
        # Of errors of answers: that aside, those of the differences, and the one at x in all.
        shares = Q @ aside / 0.5
        wanted = np.hypot(1.0, np.hypot(1.0 - shares.sum(), np.linalg.norm(shares)))
        assert found.apart_error == pytest.approx(wanted)
        np.testing.assert_allclose(found.errors, 2**0.5 / 0.5)


def test_a_kink_and_a_saturated_answer_are_noticed():
    x, w = np.zeros(D), np.ones(D) / np.sqrt(D)
    stencil = Stencil(x, np.eye(D), np.full(D, 0.1), aside=0.2 * w)
    bent = stencil.measure(lambda X: np.maximum(X @ w - 0.05, 0.0)[:, None])
    assert bent.is_finite
    assert bent.apart.max() > 0.01
    assert not stencil.measure(lambda X: np.full((len(X), 1), np.inf)).is_finite


@pytest.mark.parametrize("j", range(D))
def test_a_faint_kink_beside_one_direction_is_seen(j):
    # A difference over 0.04 along coordinate j crosses it, and errs by 60 times its error.
    sigma, crossed = 1e-6, 0.03
    jump = 60.0 * np.sqrt(2.0) * sigma / (0.04 - crossed)

    def answer(X):
        return (X.sum(axis=1) + jump * np.maximum(X[:, j] - crossed, 0.0))[:, None]

    oracle = Oracle(Noisy(sigma, seed=j)(answer), D)
    noise = measure_noise(oracle, 1)
    points, rng = np.zeros((20, D)), np.random.default_rng(j)
    J, errors = CheckedGradients().measure(oracle, noise, points, np.ones(20), rng)
    off = (J - 1.0) / noise.unit / errors[:, None, None]
    assert np.abs(off).max() < SIGMAS


@pytest.mark.parametrize("smooth", [False, True])
def test_the_stated_error_is_that_of_the_gradient(smooth):
    network = zoo.random_network([D, 8, 2], seed=1)
    W, b, A = network.weights[0], network.biases[0], network.weights[1]
    f = (lambda X: np.tanh(X @ W.T + b) @ A.T) if smooth else network
    target, rng = prepared(f, smooth=smooth), np.random.default_rng(2)
    ratios = []
    for _ in range(20):
        x = rng.standard_normal(D)
        fx = target.answers(x[None])[0]
        step = target.find_step(x, fx, unit_rows(rng, 2, D), 1e-7, 1.0)
        found = step and target.gradient(step, np.eye(D), rng)
        if found:
            z = W @ x + b
            truth = (
                (A * (1 / np.cosh(z) ** 2 if smooth else z > 0)) @ W / target.noise.unit[:, None]
            )
            ratios.append(np.abs(found[0].T - truth).max() / found[1].error)
    assert len(ratios) >= 15
    assert max(ratios) < 100.0  # what escapes the check, at most
    assert 0.02 < np.median(ratios) < SIGMAS


def test_brackets_are_bisected_together_and_those_without_a_border_stay_open():
    places, n_rounds = np.array([0.3, 2.7, 5.0]), []

    def is_inside(rows, t):
        n_rounds.append(len(rows))
        return t < places[rows]

    found = bisect(is_inside, np.array([0.0, 2.0, np.nan]), np.array([1.0, 4.0, np.nan]), 1e-9)
    np.testing.assert_allclose(found[:2], places[:2], atol=1e-9)
    assert np.isnan(found[2])
    assert n_rounds[0] == 2
    assert len(n_rounds) == 31  # 2^31 > 2e9


def test_tests_share_the_false_alarms():
    assert SIGMAS == standard_errors(1e9) > standard_errors(1e3) > standard_errors(1)
    normal = np.random.default_rng(0).standard_normal(100_000)
    assert np.abs(normal).max() < standard_errors(len(normal))
    assert FALSE_ALARM < 1e-5
