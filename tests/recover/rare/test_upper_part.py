"""What stands above a layer, jumps across hyperplanes, and the theorems' conditions."""

import numpy as np
import pytest
from scipy.optimize import check_grad

import revelu
from listings.gp18 import estimate_jump, estimate_terms, is_direction, jump_of_samples
from listings.gp18_polynomials import independence_ratio, linear_coefficients, nonlinearity
from listings.landscape import correlation
from revelu import Status
from revelu.numerics.high_threshold import coefficient
from revelu.oracle import Oracle
from revelu.tasks.rules.upper_part import upper_oracle
from threshold_networks import (
    Polynomial,
    ThresholdNetwork,
    random_directions,
    threshold_network,
)


def test_extraction_continues_above_the_layer():
    W = random_directions(3, 6, 1.5, np.random.default_rng(0))
    upper = revelu.zoo.random_network([3, 5, 2], seed=4)
    oracle = revelu.open_oracle(lambda X: upper(np.maximum(X @ W.T - 1.5, 0.0)), dim_in=6)
    layer = revelu.recover_lowest_layer(oracle)
    assert layer.status is Status.RECOVERED
    above = upper_oracle(oracle, layer, 3.0)
    rest = revelu.extract(above)
    assert rest.status is Status.RECOVERED
    X = np.random.default_rng(1).standard_normal((500, 6))
    fired = np.maximum(X @ layer.directions.T - layer.thresholds, 0.0)
    assert np.abs(rest.network(fired) - oracle(X)).max() < 1e-6
    assert oracle.n_queries > above.n_queries > 0


def test_dependent_directions_cannot_be_chosen():
    layer = revelu.LayerRecovery(
        Status.RECOVERED, np.array([[1.0, 0], [1.0, 0]]), np.ones(2), np.zeros(2), ledger=None
    )
    with pytest.raises(revelu.InputError, match="dependent"):
        upper_oracle(Oracle(len, 2), layer, 1.0)


@pytest.mark.parametrize("activation", ["relu", "sign"])
def test_coefficients_of_linear_and_pair_terms_are_told(activation):
    net = threshold_network((5, 3), threshold=1.0, activation=activation, seed=3)
    layer = revelu.recover_lowest_layer(net, dim_in=5, activation=activation)
    X = np.random.default_rng(0).standard_normal((5000, 5))
    terms = estimate_terms(X, net(X), layer, activation)
    order = [int(np.argmax(net.directions @ w)) for w in layer.directions]
    assert np.allclose(terms.linear, net.polynomial.linear()[order], atol=1e-8)
    first, second = order[0], order[1]
    key = tuple(int(j in (first, second)) for j in range(3))
    assert terms.pairs[0, 1] == pytest.approx(net.polynomial.terms[key], abs=1e-7)
    with pytest.raises(ValueError, match="too few"):
        estimate_terms(X[:5], net(X[:5]), layer, activation)


@pytest.mark.parametrize("activation", ["relu", "sign"])
def test_a_direction_is_told_without_linear_terms(activation):
    """P = X_0 X_1 + X_1 X_2 has no linear term; its units still jump (Theorem 7)."""
    W = random_directions(3, 5, 1.0, np.random.default_rng(2))
    P = Polynomial({(1, 1, 0): 1.0, (0, 1, 1): 1.0})
    net = ThresholdNetwork(W, np.full(3, 0.5), P, activation)
    oracle = Oracle(net, 5)
    rng = np.random.default_rng(0)
    assert all(is_direction(oracle, w, 0.5, activation, 1e-2, 4000, rng) for w in W)
    others = rng.standard_normal((3, 5))
    others /= np.linalg.norm(others, axis=1)[:, None]
    assert not any(is_direction(oracle, z, 0.5, activation, 1e-2, 4000, rng) for z in others)
    assert oracle.n_queries <= 6 * 2 * 3 * 4000


def test_a_jump_is_the_mean_derivative_of_the_polynomial():
    W = np.eye(3)
    net = ThresholdNetwork(W, np.full(3, 1.0), Polynomial({(1, 1, 0): 2.0}), "sign")
    jump = estimate_jump(Oracle(net, 3), W[0], 1.0, "sign", 1e-3, 20_000, np.random.default_rng(0))
    # 2 P(x_1 > 1), by Lemma 8.
    assert abs(jump.value - 2 * 0.15866) < 4 * jump.error
    X = np.random.default_rng(1).standard_normal((200_000, 3))
    stored = jump_of_samples(X, net(X), W[0], 1.0, 0.1)
    assert abs(stored.value - jump.value) < 4 * (stored.error + jump.error)
    assert jump_of_samples(X[:3], net(X[:3]), W[0], 9.0, 0.1).error == np.inf


def test_higher_thresholds_leave_less_that_is_not_linear():
    X = np.random.default_rng(0).standard_normal((50_000, 6))
    nets = [threshold_network((6, 3), threshold=t, seed=1) for t in (0.5, 1.5, 2.5)]
    rest = [nonlinearity(net, X) for net in nets]
    assert rest[0] > 5 * rest[1] > 25 * rest[2]
    ratios = [independence_ratio(net.units(X)) for net in nets]
    assert ratios[0] > ratios[1] > ratios[2]


def test_products_have_linear_coefficients_after_the_shift():
    """Corollary 1: 2 X_0 X_1 has the linear coefficients 2 mu."""
    net = ThresholdNetwork(np.eye(2), np.full(2, 1.0), Polynomial({(1, 1): 2.0}), "sign")
    assert linear_coefficients(net) == pytest.approx([2 * 0.158655254] * 2)


def test_higher_degrees_in_one_variable_do_no_harm_to_an_oracle():
    """GP18, B.7: q_i(X_i) of degree 3 and 2."""
    W = random_directions(2, 4, 1.5, np.random.default_rng(3))
    P = Polynomial({(1, 0): 1.0, (3, 0): 0.5, (0, 1): 0.2, (0, 2): 1.0, (2, 1): 0.3})
    net = ThresholdNetwork(W, np.array([1.5, 2.0]), P)
    found = revelu.recover_lowest_layer(net, dim_in=4)
    assert found.status is Status.RECOVERED
    gaps = np.linalg.norm(found.directions[:, None] - W, axis=2)
    assert gaps.min(axis=0).max() < 1e-9


@pytest.mark.parametrize("order", [4, 6])
def test_correlations_of_higher_order_are_largest_at_a_row(order):
    net = threshold_network((4, 4), threshold=1.5, seed=5)
    X = np.random.default_rng(0).standard_normal((200_000, 4))
    y = net(X) * np.sign(coefficient("relu", order, np.array(1.5)))
    z = np.ones(4) / 2.0
    # Along the sphere the value's derivative is the gradient given.
    error = check_grad(
        lambda p: correlation(X[:500], y[:500], p / np.linalg.norm(p), order)[0],
        lambda p: correlation(X[:500], y[:500], p, order)[1],
        z,
    )
    assert error < 1e-4
    for _ in range(300):
        z = z + 0.5 * correlation(X[:20_000], y[:20_000], z, order)[1]
        z /= np.linalg.norm(z)
    assert np.abs(net.directions @ z).max() > 0.8
