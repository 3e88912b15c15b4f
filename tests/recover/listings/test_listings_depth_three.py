"""The paper's listings for two hidden layers, as printed, beside what revelu does."""

from functools import cache

import numpy as np
import pytest

import revelu
from listings import dg21
from revelu.network import Network
from revelu.network.arrangement import arrangement
from revelu.network.regularity import regularity
from revelu.oracle import Oracle, measure_noise
from revelu.probe.hyperplane import bend_everywhere, bend_shares
from revelu.recover.deep.first_layer import FirstLayerSearch
from revelu.recover.shallow.lines import first_line

# Of a small network; much smaller ones ask for steps of delta^2 / 4 that float64 cannot see.
DELTA = 0.02


def scalar(network):
    return lambda x: float(network(np.asarray(x)[None])[0, 0])


def unit(W, b):
    return np.column_stack([W, b]) / np.linalg.norm(W, axis=1)[:, None]


def apart(rows, truth):
    """The distance of each row to the nearest true one, signs told apart."""
    return np.abs(rows[:, None] - truth).max(axis=2).min(axis=1)


def drawn(d, d1, d2, seed):
    """A network, as printed: unit rows, u = +-1, and an upper neuron that is always on."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((d1, d))
    V, c = rng.standard_normal((d2, d1)), rng.uniform(-2.0, 2.0, d2)
    V[0], c[0] = np.abs(V[0]), np.abs(c[0])
    W /= np.linalg.norm(W, axis=1)[:, None]
    u = rng.choice([-1.0, 1.0], (1, d2))
    return Network([W, V, u], [rng.uniform(-2.0, 2.0, d1), c, np.zeros(1)])


@cache
def regular_deep():
    """Networks 4-3-3-1 that are DELTA-regular, and their delta, in the order of their seeds."""
    found = []
    for seed in range(60):
        network = drawn(4, 3, 3, seed)
        top = Network(network.weights[1:], network.biases[1:])
        on_axis = regularity(arrangement(network, [0])).delta
        above = regularity(arrangement(top, range(3), start=0.0)).delta
        if min(on_axis, above) >= DELTA:
            found.append((network, 0.99 * min(on_axis, above)))
    return found


@cache
def regular_restricted():
    """Networks 3-4-1 that are DELTA-regular on the rays of the orthant."""
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        W, u = rng.standard_normal((4, 3)), rng.choice([-1.0, 1.0], (1, 4))
        network = Network([W, u], [rng.uniform(-2.0, 2.0, 4), np.zeros(1)])
        # Every neuron is to change its state on a ray.
        crossing = (-network.biases[0][:, None] / W > 0).any(axis=1)
        delta = regularity(arrangement(network, range(3), start=0.0)).delta
        if crossing.all() and delta >= DELTA:
            found.append((network, 0.99 * delta))
    return found


def test_enough_networks_are_regular():
    assert len(regular_deep()) >= 10
    assert len(regular_restricted()) >= 5


def test_theorem_2_as_printed_recovers_the_orthant_and_asks_nowhere_else():
    for truth, delta in regular_restricted()[:5]:
        asked = []

        def f(x, truth=truth, asked=asked):
            asked.append(x)
            return scalar(truth)(x)

        printed, neurons = dg21.recover_restricted(f, 3, delta)
        assert np.min(asked) >= 0.0
        assert len(neurons) == 4
        X = np.abs(np.random.default_rng(0).standard_normal((200, 3)))
        np.testing.assert_allclose([printed(x) for x in X], truth(X)[:, 0], atol=1e-6)
        rows = unit(truth.weights[0], truth.biases[0])
        found = unit(np.array([w for _, w, _ in neurons]), np.array([b for _, _, b in neurons]))
        assert (np.minimum(apart(found, rows), apart(-found, rows)) < 1e-7).all()


def listed(truth, delta, delta_prime=None):
    rng = np.random.default_rng(1)
    return dg21.recover_depth_three(scalar(truth), 4, delta, rng, 6, delta_prime)


def test_theorem_3_as_printed_recovers_most_regular_networks():
    right = []
    for truth, delta in regular_deep()[:10]:
        printed, (W, b) = listed(truth, delta, 1e-6)
        rows = unit(truth.weights[0], truth.biases[0])
        X = np.random.default_rng(0).standard_normal((100, 4))
        exact = len(W) == 3 and apart(unit(W, b), rows).max() < 1e-7
        error = max(abs(printed(x) - y) for x, y in zip(X, truth(X)[:, 0], strict=True))
        right.append(exact and error < 1e-5)
    assert sum(right) >= 8


def test_the_printed_delta_prime_can_just_be_used_with_six_neurons():
    sizes, right = [], []
    for truth, delta in regular_deep()[:6]:
        m = len(dg21.critical_hyperplanes(scalar(truth), 4, delta))
        sizes.append(dg21.printed_delta_prime(delta, 4, m, 6))
        W, b = listed(truth, delta)[1]
        rows = unit(truth.weights[0], truth.biases[0])
        right.append(len(W) == 3 and apart(unit(W, b), rows).max() < 1e-7)
    assert 1e-10 < min(sizes) <= max(sizes) < 1e-7
    assert sum(right) >= 4
    # With twenty neurons it is below the spacing of float64 numbers around 1.
    assert dg21.printed_delta_prime(DELTA, 10, 20, 20) < np.finfo(float).eps


def test_line_2_gives_the_failure_probability_that_it_is_for():
    for d, m in [(4, 5), (10, 30)]:
        radius = dg21.printed_radius(1e-9, d, m)
        assert np.exp(-((radius - 1e-9) ** 2) / 2) == pytest.approx(2.0 ** (-d - 1) / m**2)


def test_algorithm_7_and_revelu_agree_on_the_pairs_of_the_axis():
    same, n = 0, 0
    for truth, delta in regular_deep()[:8]:
        f, rng = scalar(truth), np.random.default_rng(2)
        pairs = dg21.critical_hyperplanes(f, 4, delta)
        radius = dg21.printed_radius(1e-6, 4, len(pairs))
        printed = [dg21.is_first_layer(f, pairs, i, 1e-6, radius, rng) for i in range(len(pairs))]
        oracle = Oracle(truth, 4)
        W, b = (np.array([pair[1][i] for pair in pairs]) for i in (0, 1))
        noise = measure_noise(oracle, 0)
        ours = bend_everywhere(oracle, noise, W, b, rng)
        rows = unit(truth.weights[0], truth.biases[0])
        true = np.minimum(apart(unit(W, b), rows), apart(-unit(W, b), rows)) < 1e-7
        # Whatever the listing rejects wrongly, revelu's random points lose no neuron.
        assert ours[true].all()
        # Three neurons have large states: few points may lie in one, many do not.
        ours &= bend_shares(oracle, noise, W, b, rng, 24) >= 0.95
        assert (ours == true).all()
        same += int((ours == np.array(printed)).sum())
        n += len(pairs)
    assert same >= 0.8 * n


def test_sections_351_to_353_and_revelu_find_the_same_first_layer():
    agree = 0
    for truth, delta in regular_deep()[:6]:
        W, b = listed(truth, delta, 1e-6)[1]
        oracle = Oracle(truth, 4)
        noise = measure_noise(oracle, 3)
        rng = np.random.default_rng(3)
        first = FirstLayerSearch(oracle, noise, rng).find(first_line(oracle, noise, rng))
        if len(W) != 3:
            continue
        rows = unit(W, b)
        agree += len(first.W) == 3 and apart(np.column_stack([first.W, first.b]), rows).max() < 1e-7
    assert agree >= 4


def test_theorem_3_and_revelu_find_the_same_function():
    agree = 0
    for i, (truth, delta) in enumerate(regular_deep()[:5]):
        recovery = revelu.extract(truth, seed=i, method="two_hidden")
        printed = listed(truth, delta, 1e-6)[0]
        if recovery.status is not revelu.Status.RECOVERED:
            continue
        X = np.random.default_rng(4).standard_normal((50, 4))
        ours = recovery.network(X)[:, 0]
        error = np.abs(ours - [printed(x) for x in X])
        agree += error.max() < 1e-4
        assert np.abs(ours - truth(X)[:, 0]).max() < 1e-6
    assert agree >= 4
