"""Closed forms against quadrature, symmetry and scaling laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad

import revelu
from revelu.network import l2_distance, l2_norm, zoo
from revelu.network.sums import affine_network
from revelu.numerics.gaussian_relu import difference_norms, half_space_products


def relu_products(W, b, V, c):
    """E[relu(w_i x + b_i) relu(v_j x + c_j)]."""
    return half_space_products((W, b), (W, b), (V, c), (V, c))


def phi(x):
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def by_quadrature(f, split=0.0):
    """E f(x, y) for standard normal x, y; f may have a corner at x = split."""
    total = 0.0
    for lo, hi in ((-9.0, split), (split, 9.0)):
        total += dblquad(lambda y, x: f(x, y) * phi(x) * phi(y), lo, hi, -9.0, 9.0, epsabs=1e-9)[0]
    return total


@pytest.mark.parametrize("angle", [0.2, 1.3, 2.9])
def test_without_biases_the_products_are_those_of_fact_3_2(angle):
    V, W = np.array([[2.0, 0.0]]), 3.0 * np.array([[np.cos(angle), np.sin(angle)]])
    known = 6.0 / (2 * np.pi) * (np.sin(angle) + (np.pi - angle) * np.cos(angle))
    found = relu_products(V, np.zeros(1), W, np.zeros(1))
    assert found[0, 0] == pytest.approx(known, rel=1e-12)


@pytest.mark.parametrize(("h", "k", "r"), [(0.7, -0.4, 0.3), (0.0, 0.5, -0.8), (-1.0, -0.2, 0.95)])
def test_products_with_biases_are_those_of_quadrature(h, k, r):
    q = np.sqrt(1 - r * r)
    W, V = np.array([[1.0, 0.0]]), np.array([[r, q]])

    def product(x, y):
        return max(x + h, 0.0) * max(r * x + q * y + k, 0.0)

    found = relu_products(W, np.array([h]), V, np.array([k]))[0, 0]
    assert found == pytest.approx(by_quadrature(product, -h), abs=1e-5)


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_half_spaces_that_cover_everything_add_up(seed, d):
    # 1(z > 0) + 1(-z > 0) = 1, so the two halves add to the product of the affine maps.
    rng = np.random.default_rng(seed)
    W, V, P, Q = (rng.standard_normal((3, d)) for _ in range(4))
    b, c, p, q = (rng.standard_normal(3) for _ in range(4))
    total = sum(
        half_space_products((s * W, s * b), (P, p), (t * V, t * c), (Q, q))
        for s in (1.0, -1.0)
        for t in (1.0, -1.0)
    )
    np.testing.assert_allclose(total, P @ Q.T + np.outer(p, q), atol=1e-9)


@given(st.integers(0, 10**6))
def test_products_of_coinciding_hyperplanes_are_those_of_one_dimension(seed):
    rng = np.random.default_rng(seed)
    w, b = rng.standard_normal(3), float(rng.standard_normal())
    size = float(np.linalg.norm(w))
    exact = quad(lambda z: max(size * z + b, 0.0) ** 2 * phi(z), -b / size, 12.0)[0]
    found = relu_products(w[None], np.array([b]), w[None], np.array([b]))[0, 0]
    assert found == pytest.approx(exact, rel=1e-7)
    opposite = relu_products(w[None], np.array([b]), -w[None], np.array([-b]))[0, 0]
    assert opposite == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("angle", [1e-1, 1e-3, 1e-6])
def test_the_difference_of_close_relus_keeps_its_digits(angle):
    U = np.array([[1.0, 0.0]])
    V = np.array([[np.cos(angle), np.sin(angle)]])
    found = difference_norms(U, np.zeros(1), V, np.zeros(1))[0]
    # Fact 3.2 for both and their product: 1 - (sin a + (pi - a) cos a) / pi, by its series.
    series = angle**2 / 2 - angle**3 / (3 * np.pi) - angle**4 / 24
    assert found == pytest.approx(series, rel=1e-6 if angle < 0.1 else 1e-3)


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 6), st.integers(1, 3))
def test_a_network_is_at_distance_0_from_itself_turned_round(seed, d, m, k):
    network = zoo.random_network([d, m, k], seed=seed) if m else zoo.affine(d, k, seed=seed)
    (W, A), (b, c) = network.weights, network.biases
    V, e = network.skip or (np.zeros((k, d)), np.zeros(k))
    turned = revelu.Network([-W, A], [-b, c], skip=(V + A @ W, e + A @ b))
    assert l2_distance(network, turned) < 1e-12
    assert l2_distance(network, affine_network(np.zeros((k, d)), np.zeros(k))) == pytest.approx(
        l2_norm(network), rel=1e-9
    )


@given(st.integers(0, 10**6), st.sampled_from([1e-2, 1e-6, 1e-10, 1e-12]))
def test_small_distances_are_proportional_to_what_was_changed(seed, size):
    network = zoo.random_network([4, 6, 2], seed=seed)
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(network.weights[1].shape)

    def moved(by):
        return revelu.Network(
            [network.weights[0], network.weights[1] + by * direction], network.biases
        )

    unit = l2_distance(network, moved(1.0))
    assert l2_distance(network, moved(size)) == pytest.approx(size * unit, rel=1e-3)


def test_merging_a_cluster_costs_the_three_halves_power_of_its_angle():
    # Lemma 3.12 has the fifth root; what a strip of width Δ and height Δ holds is Δ^(3/2).
    from revelu.recover.close.merging import merge_close

    errors = []
    for angle in (1e-3, 1e-5, 1e-7):
        network = zoo.with_clusters([6, 8, 1], 1, angle, seed=3)
        merged, merges = merge_close(network, 0.1, 1.0)
        assert merged.architecture[1] == 1
        assert merges[0].n_neurons == 8
        errors.append(l2_distance(network, merged))
        assert merges[0].error == pytest.approx(errors[-1], rel=1e-3)
    ratios = np.array(errors) / np.array([1e-3, 1e-5, 1e-7]) ** 1.5
    np.testing.assert_allclose(ratios, ratios[0], rtol=0.02)


def test_a_sample_agrees_where_it_can():
    first, second = zoo.random_network([5, 7, 2], seed=1), zoo.random_network([5, 9, 2], seed=2)
    X = np.random.default_rng(0).standard_normal((200_000, 5))
    sampled = np.sqrt(((first(X) - second(X)) ** 2).sum(axis=1).mean())
    assert l2_distance(first, second) == pytest.approx(sampled, rel=0.02)


def test_a_deeper_network_is_refused():
    with pytest.raises(revelu.InputError):
        l2_norm(zoo.random_network([3, 3, 3, 1]))
    with pytest.raises(revelu.InputError):
        l2_distance(zoo.random_network([3, 3, 1]), zoo.random_network([2, 3, 1]))


def test_pairs_that_nearly_cancel_beside_exact_ones_keep_their_digits():
    # Two scales of closeness: only one of them is a group, the other must not cost digits.
    truth = zoo.with_cancelling_pairs([4, 8, 1], 2, 1e-6, seed=3)
    (W, A), (b, c) = truth.weights, truth.biases
    coarse = revelu.Network([W[4:] * (1 + 1e-14), A[:, 4:]], [b[4:], c])
    X = np.random.default_rng(0).standard_normal((100_000, 4))
    sampled = np.sqrt(((truth(X) - coarse(X)) ** 2).mean())
    assert l2_distance(truth, coarse) == pytest.approx(sampled, rel=0.02)


def test_hyperplanes_out_of_reach_cost_no_digits():
    network = zoo.scaled(zoo.with_clusters([5, 8, 1], 2, 1e-3, seed=1), 1e6, 1.0)
    (W, A), (b, c) = network.weights, network.biases
    on = b > 0
    affine = affine_network(A[:, on] @ W[on], c + A[:, on] @ b[on])
    assert l2_distance(network, affine) < 1e-14 * l2_norm(network)
