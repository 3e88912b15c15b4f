"""The listings of ATV21 find the truth, and what the library computes agrees with them."""

import numpy as np
import pytest

from listings import atv21
from revelu.numerics.hermite import network_coefficient, recover_scalars, relu_coefficient
from revelu.numerics.jennrich import directions_of_pencil
from revelu.numerics.matching import match_rows
from revelu.recover.fit.tensors import recover_units


def draw(d, m, seed):
    """Unit rows; among the biases are the roots of He_1 and He_2."""
    rng = np.random.default_rng([7, seed])
    W = rng.standard_normal((m, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    b = rng.uniform(-1, 1, m)
    b[:3] = [0.0, 1.0, -1.0][:m]
    return rng.uniform(0.5, 1.5, m) * rng.choice([-1, 1], m), W, b


def error(found, truth, *, signs):
    (a, b, W), (a0, W0, b0) = found, truth
    rows, turned = match_rows(W, W0, up_to_sign=not signs)
    assert (rows >= 0).all()
    parts = [a[rows] - a0, turned * b[rows] - b0, (turned[:, None] * W[rows] - W0).ravel()]
    return np.abs(np.concatenate(parts)).max()


@pytest.mark.parametrize("seed", range(3))
def test_algorithm_1_is_exact_with_full_rank(seed):
    truth = draw(6, 5, seed)
    f = {k: atv21.coefficient(k, *truth) for k in range(5)}
    found = atv21.algorithm_1(f, 1, np.random.default_rng(seed))
    assert error(found, truth, signs=True) < 1e-8


def test_algorithm_1_is_exact_up_to_signs_with_more_neurons_than_inputs():
    truth = draw(4, 6, 1)
    f = {k: atv21.coefficient(k, *truth) for k in range(1, 7)}
    found = atv21.algorithm_1(f, 2, np.random.default_rng(1))
    assert error(found, truth, signs=False) < 1e-7


@pytest.mark.parametrize("order", [2, 3])
def test_lemma_4_5_needs_its_index_shifted(order):
    a, W, b = draw(4, 3, 2)
    b = np.array([0.3, -0.6, 0.8])
    tensors = {k: atv21.coefficient(k, a, W, b) for k in range(order, order + 4)}
    scale, bias = atv21.algorithm_2(W, tensors, order)
    np.testing.assert_allclose(np.append(scale, bias), np.append(a, b), atol=1e-9)
    # As printed, with q for q - 2, the bias is another.
    z = {k: a * relu_coefficient(k, b) for k in tensors}
    q = order + 1
    there = np.abs(z[q]) > 1e-3
    printed = -(z[q + 1] + q * z[q - 1])[there] / z[q][there]
    assert there.any()
    assert (np.abs(printed - b[there]) > 1e-3).all()


def test_lemma_4_3_is_false_as_printed():
    z = np.linspace(-6, 6, 200_001)
    least = [
        np.maximum(abs(atv21.hermite(k, z)), abs(atv21.hermite(k + 1, z))).min()
        for k in range(1, 6)
    ]
    bound = [np.sqrt(np.prod(np.arange(1.0, k + 1)) / 2) for k in range(1, 6)]
    assert least[0] < bound[0]
    assert min(least) > 0


def test_algorithms_5_and_6_and_the_claim_come_near_from_samples():
    rng = np.random.default_rng(5)
    a, W, b = np.array([1.0, 1.2]), np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([0.4, -0.4])
    X = rng.standard_normal((40_000, 2))  # 40,000 samples of 8 parameters
    y = np.maximum(X @ W.T + b, 0) @ a
    T = {k: atv21.hermite_tensor_mean(X, y, k) for k in range(5)}
    eta = (0.05, 0.02, 0.4)
    found = atv21.algorithm_6(T, rng, *eta)
    assert error(found, (a, W, b), signs=True) < 0.3
    units = atv21.algorithm_5(X, y, 1, rng, *eta)
    Z = rng.standard_normal((2000, 2))
    true = np.maximum(Z @ W.T + b, 0) @ a
    near = atv21.unit_features(Z, *units[:2]) @ units[2]
    assert np.linalg.norm(near - true) < 0.1 * np.linalg.norm(true)
    A, rows, biases = atv21.claim_b5(*units)
    assert len(A) == len(units[0]) + 2
    np.testing.assert_allclose(np.maximum(Z @ rows.T + biases, 0) @ A, near, atol=1e-9)


@pytest.mark.parametrize("k", range(7))
def test_coefficients_agree(k):
    a, W, b = draw(3, 4, k)
    mine = network_coefficient(k, a, W, b)
    np.testing.assert_allclose(mine, atv21.coefficient(k, a, W, b), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("d", "m", "order"), [(6, 6, 1), (8, 20, 2)])
def test_the_combined_pencil_agrees_with_two_decompositions(d, m, order):
    a, W, b = draw(d, m, 3)
    T = {k: network_coefficient(k, a, W, b) for k in range(1, 2 * order + 3)}
    base, odd, even = (T[2 * order + j] for j in range(3))
    one = directions_of_pencil(base, odd, even, m, order, np.random.default_rng(0))[0]
    two = atv21._steps_1_to_4(T, order, np.random.default_rng(0), eta1=1e-9, eta2=0.0, eta3=1e-3)
    for found in (one, two):
        rows, signs = match_rows(found, W, up_to_sign=True)
        assert len(found) == m
        np.testing.assert_allclose(signs[:, None] * found[rows], W, rtol=0, atol=1e-6)
    units = recover_units(T, m, order, np.random.default_rng(0))[0]
    assert error((units.a, units.b, units.W), (a, W, b), signs=order == 1) < 1e-11


def test_scalars_agree():
    a, W, b = draw(3, 3, 4)
    T = {k: atv21.coefficient(k, a, W, b) for k in range(2, 6)}
    theirs = atv21.algorithm_2(W, T, 2)
    mine = recover_scalars({k: a * relu_coefficient(k, b) for k in T})
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9)
