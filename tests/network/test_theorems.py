"""What the theorems ask and count beside regularity: figures known by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revelu
from revelu.network.smoothing import failure_bound, smoothed
from revelu.network.top_layers import no_vanishing_probability, top_layers
from revelu.tasks.diagnose.diagnosis import query_counts

zoo = revelu.zoo

SEEDS = st.integers(0, 10**6)


# -- what the theorems ask --------------------------------------------------------------


@pytest.mark.parametrize(
    ("c", "margin"),
    [
        # x <= 1 and x >= 0.5 leave 0.25 either way; x <= 1 and x >= 2 are half a unit short.
        ([-1.0, 0.5], -0.25),
        ([-1.0, 2.0], 0.5),
        # On x >= 0 the second neuron is off already at 0.
        ([1.0, -9.0], 1.0),
    ],
)
def test_margin_of_the_negative_orthant(c, margin):
    network = revelu.Network([[[1.0]], [[1.0], [-1.0]], [[1.0, 1.0]]], [[0.0], c, [0.0]])
    top = top_layers(network)
    assert top.margin == pytest.approx(margin)
    assert top.gradients_vanish == (margin <= 0)
    assert top.narrowing


@given(SEEDS)
def test_margin_is_a_bound_at_every_point(seed):
    network = zoo.random_network([3, 3, 6, 1], seed=seed)
    V, c = network.weights[1], network.biases[1]
    X = 3.0 * np.abs(np.random.default_rng(seed).standard_cauchy((500, 3)))
    reached = ((X @ V.T + c) / np.linalg.norm(V, axis=1)).max(axis=1).min()
    assert max(reached, -1.0) >= top_layers(network).margin - 1e-9


def test_top_layers_of_other_shapes():
    assert top_layers(zoo.random_network([3, 4, 1], seed=1)) is None
    wide = top_layers(zoo.random_network([3, 4, 5, 1], seed=1))
    assert not wide.narrowing
    assert wide.first_layer_condition == np.inf


@given(st.integers(1, 30), st.integers(1, 200))
def test_theorem_5_is_a_probability(d, k):
    bound = 1.0 - (np.e * k / d) ** (d + 1) / 2.0**k
    assert no_vanishing_probability(d, k) == pytest.approx(max(bound, 0.0), abs=1e-9)


def test_query_counts_at_constant_one():
    two = query_counts(1 / 8, 5, (3,))
    assert two == {"theorem_1": 24.0, "theorem_2": 60.0, "theorem_3": None, "theorem_4": 24.0}
    three = query_counts(1 / 8, 5, (2, 3))
    assert three["theorem_3"] == 6 * (3 + 5) + 36 + 4 + 18 + 6
    assert three["theorem_1"] is None
    assert set(query_counts(0.0, 5, (3,)).values()) == {None}
    assert set(query_counts(0.1, 5, (3, 3, 3)).values()) == {None}


# -- smoothing --------------------------------------------------------------------------


@given(SEEDS, st.floats(1e-6, 10.0))
def test_smoothing_stays_within_its_amplitude_and_repeats_by_seed(seed, amplitude):
    network = zoo.random_network([3, 4, 2], seed=1)
    first, again, other = (
        smoothed(network, amplitude, np.random.default_rng(s)) for s in (seed, seed, seed + 1)
    )
    assert first == again != other
    pairs = [*zip(first.weights, network.weights, strict=True)]
    pairs += zip(first.biases, network.biases, strict=True)
    moved = np.concatenate([np.ravel(a - b) for a, b in pairs])
    assert np.abs(moved).max() <= amplitude * (1 + 1e-9)
    assert (moved != 0).all()


def test_failure_bound_grows_with_delta_and_falls_with_the_noise():
    network = zoo.random_network([3, 4, 1], seed=1)
    bounds = [failure_bound(network, 1.0, delta) for delta in (1e-9, 1e-6, 1.0)]
    assert 0 < bounds[0] < bounds[1] < bounds[2] == 1.0
    assert failure_bound(network, 1e-3, 1e-9) > bounds[0]
    deep = zoo.random_network([3, 4, 4, 1], seed=1)
    assert failure_bound(deep, 1.0, 1e-9) > bounds[0]
    assert failure_bound(zoo.random_network([3, 2, 2, 2, 1], seed=1), 1.0, 1e-9) is None
