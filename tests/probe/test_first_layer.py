"""The first of two hidden layers: which hyperplanes are its own, and their signs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import revelu
from revelu.network import zoo
from revelu.oracle import Oracle, measure_noise
from revelu.probe.hyperplane import bend_everywhere, bend_shares
from revelu.probe.kinks import find_kinks
from revelu.probe.line import Line, random_line
from revelu.recover.deep.first_layer import FirstLayerSearch
from revelu.recover.shallow.line_neurons import peel
from revelu.recover.shallow.lines import first_line


def unit_rows(W, b):
    return np.column_stack([W, b]) / np.linalg.norm(W, axis=1)[:, None]


def partners(found, truth, atol=1e-6):
    """The index of each found row in the truth, up to sign, or -1; and its sign."""
    apart = [np.abs(found[:, None] - s * truth).max(axis=2) for s in (1.0, -1.0)]
    best = np.minimum(*apart)
    which = np.where(best.min(axis=1) < atol, best.argmin(axis=1), -1)
    signs = np.where(apart[0].min(axis=1) < apart[1].min(axis=1), 1.0, -1.0)
    return which, signs


def upper_hyperplane(network, X, j):
    """The hyperplane of a second-layer neuron where the first layer's state is X's."""
    W, V = network.weights[0], network.weights[1][j]
    b, c = network.biases[0], network.biases[1][j]
    on = X @ W.T + b > 0
    return (V * on) @ W, float((V * on) @ b + c)


def peeled_on(oracle, noise, line, rng):
    nu = float(noise.nu.max())
    return peel(oracle, find_kinks(oracle, line, nu, noise.scale, rng), nu, rng)


def first_layer_of(network, seed, line=None):
    oracle = Oracle(network, network.dim_in)
    noise = measure_noise(oracle, seed)
    rng = np.random.default_rng(seed)
    peeled = first_line(oracle, noise, rng) if line is None else peeled_on(oracle, noise, line, rng)
    return FirstLayerSearch(oracle, noise, rng).find(peeled)


@settings(max_examples=15)
@given(
    d1=st.integers(8, 12), d2=st.integers(6, 16), k=st.integers(1, 3), seed=st.integers(0, 10**6)
)
def test_first_layer_hyperplanes_bend_everywhere_and_second_layer_ones_do_not(d1, d2, k, seed):
    network = zoo.random_network([d1 + 2, d1, d2, k], seed=seed)
    oracle = Oracle(network, network.dim_in)
    noise = measure_noise(oracle, seed)
    rng = np.random.default_rng(seed)
    upper = [upper_hyperplane(network, rng.standard_normal(d1 + 2), j) for j in range(d2)]
    upper = [(w, b) for w, b in upper if np.linalg.norm(w) > 1e-6]
    W = np.vstack([network.weights[0], *[w for w, _ in upper]])
    b = np.concatenate([network.biases[0], [b for _, b in upper]])
    asked = oracle.n_queries
    bends = bend_everywhere(oracle, noise, W, b, rng)
    assert bends[:d1].all()
    assert not bends[d1:].any()
    # A few points of three queries for its own, two for the others.
    assert oracle.n_queries - asked <= 3 * (6 * d1 + 6 * len(upper))


@settings(max_examples=15)
@given(d1=st.integers(3, 6), seed=st.integers(0, 10**6))
def test_over_few_neurons_it_is_the_share_of_bent_points_that_tells(d1, seed):
    network = zoo.random_network([d1 + 2, d1, 4 * d1, 1], seed=seed)
    oracle = Oracle(network, network.dim_in)
    noise = measure_noise(oracle, seed)
    rng = np.random.default_rng(seed)
    upper = [upper_hyperplane(network, rng.standard_normal(d1 + 2), j) for j in range(3)]
    upper = [(w, b) for w, b in upper if np.linalg.norm(w) > 1e-6]
    W = np.vstack([network.weights[0], *[w for w, _ in upper]])
    b = np.concatenate([network.biases[0], [b for _, b in upper]])
    asked = oracle.n_queries
    shares = bend_shares(oracle, noise, W, b, rng, 24)
    assert oracle.n_queries - asked == 3 * 24 * len(W)
    assert (shares[:d1] >= 0.95).all()
    assert (shares[d1:] < 0.95).all()


def test_of_no_hyperplanes_nothing_is_asked():
    oracle = Oracle(zoo.random_network([4, 3, 3, 1], seed=0), 4)
    noise = measure_noise(oracle, 0)
    asked = oracle.n_queries
    none, rng = (np.empty((0, 4)), np.empty(0)), np.random.default_rng(0)
    assert bend_everywhere(oracle, noise, *none, rng).shape == (0,)
    assert oracle.n_queries == asked


@pytest.mark.parametrize(
    ("widths", "n"),
    [((10, 10, 10, 1), 6), ((16, 8, 24, 1), 6), ((6, 5, 8, 3), 6), ((30, 3, 9, 1), 6)],
)
def test_rows_offsets_and_signs_are_those_of_the_truth(widths, n):
    for seed in range(n):
        network = zoo.random_network(list(widths), seed=seed + 40)
        first = first_layer_of(network, seed)
        truth = unit_rows(network.weights[0], network.biases[0])
        which, signs = partners(np.column_stack([first.W, first.b]), truth)
        assert sorted(which) == list(range(widths[1]))
        assert (signs > 0).all()
        assert not first.unsigned.any()
        assert first.n_missing == 0
        assert first.n_candidates >= widths[1]
        np.testing.assert_allclose(
            np.column_stack([first.W, first.b]), truth[which], rtol=0, atol=1e-7
        )
        assert first.condition == pytest.approx(np.linalg.cond(truth[:, :-1][which]))


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_a_neuron_that_the_first_line_misses_is_found_where_gradients_point(seed):
    network = zoo.random_network([9, 6, 12, 1], seed=seed + 7)
    rng = np.random.default_rng(seed)
    line = random_line(rng, 9)
    # A line parallel to a hyperplane does not meet it; this one lies where the neuron is on.
    w = network.weights[0][2] / np.linalg.norm(network.weights[0][2])
    height = network.biases[0][2] / np.linalg.norm(network.weights[0][2])
    parallel = Line(line.x0 + w * (1.0 - height - w @ line.x0), line.v - w * (w @ line.v))
    oracle = Oracle(network, 9)
    noise = measure_noise(oracle, seed)
    peeled = peeled_on(oracle, noise, parallel, rng)
    seen = unit_rows(peeled.network.weights[0], peeled.network.biases[0])
    truth = unit_rows(network.weights[0], network.biases[0])
    assert 2 not in partners(seen, truth)[0]
    first = FirstLayerSearch(oracle, noise, rng).find(peeled)
    assert sorted(partners(np.column_stack([first.W, first.b]), truth)[0]) == list(range(6))
    assert first.n_missing == 0


@pytest.mark.parametrize("seed", range(3))
def test_hyperplanes_that_meet_on_the_line_are_parted_on_a_short_one_nearby(seed):
    network = zoo.random_network([8, 5, 10, 1], seed=seed + 20)
    rng = np.random.default_rng(seed)
    W, b = network.weights[0][:2], network.biases[0][:2]
    x0 = np.linalg.lstsq(W, -b, rcond=None)[0]
    x0 = x0 + 1e-10 * rng.standard_normal(8)
    v = rng.standard_normal(8) * np.sqrt(8.0)
    line = Line(x0 + 0.7 * v, v)
    kinks = np.sort(-(W @ line.x0 + b) / (W @ v))
    assert np.diff(kinks) < 1e-8
    oracle = Oracle(network, 8)
    noise = measure_noise(oracle, seed)
    peeled = peeled_on(oracle, noise, line, rng)
    truth = unit_rows(network.weights[0], network.biases[0])
    seen = partners(unit_rows(peeled.network.weights[0], peeled.network.biases[0]), truth)[0]
    assert not {0, 1} <= set(seen)
    first = FirstLayerSearch(oracle, noise, rng).find(peeled)
    assert sorted(partners(np.column_stack([first.W, first.b]), truth)[0]) == list(range(5))


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_no_hyperplane_is_found_twice(seed):
    network = zoo.random_network([7, 5, 9, 1], seed=seed)
    first = first_layer_of(network, seed)
    rows = np.column_stack([first.W, first.b])
    apart = np.minimum(
        np.abs(rows[:, None] - rows).max(axis=2), np.abs(rows[:, None] + rows).max(axis=2)
    )
    assert (apart + np.eye(len(rows)) > 1e-4).all()
    np.testing.assert_allclose(np.linalg.norm(first.W, axis=1), 1.0, rtol=1e-12)


def test_one_that_does_not_fire_is_unsigned_or_missing_and_never_invented():
    # The upper layer does not read neuron 1: nothing can tell that it is there.
    network = zoo.random_network([6, 4, 8, 1], seed=5)
    V = network.weights[1].copy()
    V[:, 1] = 0.0
    silent = revelu.Network([network.weights[0], V, network.weights[2]], network.biases)
    first = first_layer_of(silent, 2)
    truth = unit_rows(network.weights[0], network.biases[0])
    which, _ = partners(np.column_stack([first.W, first.b]), truth)
    assert sorted(which) == [0, 2, 3]


def test_more_neurons_than_inputs_come_without_signs():
    network = zoo.random_network([4, 7, 9, 1], seed=3)
    first = first_layer_of(network, 1)
    truth = unit_rows(network.weights[0], network.biases[0])
    which, _ = partners(np.column_stack([first.W, first.b]), truth)
    assert len(first.W) > 4
    assert set(which) - {-1} >= set(range(6))
    assert first.unsigned.all()


@pytest.mark.parametrize(("is_blurred", "n_lines"), [(False, 12), (True, 4)])
def test_kinks_that_stay_blurred_are_not_all_looked_at(monkeypatch, is_blurred, n_lines):
    network = zoo.random_network([6, 6, 4, 1], seed=2)
    oracle = Oracle(network, network.dim_in)
    noise, rng = measure_noise(oracle, 2), np.random.default_rng(2)
    peeled = replace(first_line(oracle, noise, rng), unresolved=np.linspace(-1.0, 1.0, 12))
    intervals = []

    def find(ask, line, nu, scale, rng, interval):
        intervals.append(interval)
        scan = find_kinks(ask, line, nu, scale, rng, interval)
        return replace(scan, complete=not is_blurred)

    monkeypatch.setattr("revelu.recover.deep.first_layer.find_kinks", find)
    FirstLayerSearch(oracle, noise, rng).find(peeled)
    assert sum(np.isfinite(interval).all() for interval in intervals) == n_lines
