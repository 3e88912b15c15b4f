"""Binary solutions against brute force, and beyond its reach."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revelu.errors import LimitReachedError
from revelu.network import zoo
from revelu.numerics.interruption import interruptible
from revelu.numerics.subset_sum import expected_coincidences, find_binary_solutions
from revelu.recover.signs import resolve_signs


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1), st.booleans())
def test_finds_what_brute_force_finds(n, m, seed, integral):
    rng = np.random.default_rng(seed)
    G = rng.integers(-2, 3, (n, m)).astype(float) if integral else rng.standard_normal((n, m))
    y = G @ rng.integers(0, 2, m)
    every = [x for x in product((0.0, 1.0), repeat=m) if np.linalg.norm(G @ x - y) < 1e-9]
    solutions = find_binary_solutions(G, y, 1e-9, most=1000)
    assert solutions.complete
    assert sorted(map(tuple, solutions.found)) == sorted(every)
    assert len(find_binary_solutions(G, y, 1e-9).found) == min(len(every), 2)


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_finds_nothing_where_there_is_nothing(n, m, seed):
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((n, m))
    y = G @ np.full(m, 0.5)
    assert find_binary_solutions(G, y, 1e-9).found == []


@pytest.mark.parametrize(("n", "m"), [(10, 30), (20, 40), (10, 45), (3, 36)])
def test_many_more_unknowns_than_equations(n, m):
    rng = np.random.default_rng(m)
    G, x = rng.standard_normal((n, m)), rng.integers(0, 2, m)
    y = G @ x + 1e-11 * rng.standard_normal(n)
    solutions = find_binary_solutions(G, y, 1e-9)
    assert solutions.complete
    np.testing.assert_array_equal(solutions.found, [x])


def test_a_search_can_be_ended_from_outside():
    G = np.random.default_rng(0).standard_normal((2, 8))

    def over():
        raise LimitReachedError("the seconds allowed are over")

    with interruptible(over), pytest.raises(LimitReachedError):
        find_binary_solutions(G, G @ np.ones(8), 1e-9)


def test_what_is_too_much_work_is_said_to_be_that():
    G = np.random.default_rng(0).standard_normal((1, 45))
    solutions = find_binary_solutions(G, G.sum(axis=1), 1e-9)
    assert not solutions.found
    assert not solutions.complete
    # Too coarse to leave few pairs.
    G = np.random.default_rng(0).standard_normal((3, 22))
    half = G @ np.full(22, 0.5)
    assert not find_binary_solutions(G, half, 1e-1, 0.4, 10**6, max_pairs=2**15).complete


def test_no_unknowns():
    assert len(find_binary_solutions(np.zeros((3, 0)), np.zeros(3), 1e-9).found) == 1
    assert find_binary_solutions(np.zeros((3, 0)), np.ones(3), 1e-9).found == []


@pytest.mark.parametrize(("n", "m", "atol"), [(1, 12, 1e-3), (2, 14, 1e-1), (3, 15, 0.4)])
def test_coincidences_are_as_many_as_expected(n, m, atol):
    rng = np.random.default_rng(m)
    counts, expected = [], []
    bits = np.array(list(product((0.0, 1.0), repeat=m)))
    for _ in range(100):
        G = rng.standard_normal((n, m))
        y = G @ np.full(m, 0.5)  # where the density is largest
        counts.append((np.linalg.norm(bits @ G.T - y, axis=1) <= atol).sum())
        expected.append(expected_coincidences(G, atol))
    # A bound of a ball by a box, and of a sum by a Gaussian.
    assert np.mean(counts) <= 1.1 * np.mean(expected)
    assert np.mean(expected) <= 4.0 * np.mean(counts)


def hidden_signs(network, seed):
    """The same function with neurons turned round, and the skip that makes up for it."""
    (W, A), (b, c) = network.weights, network.biases
    flip = np.random.default_rng(seed).integers(0, 2, len(W))
    turned = np.where(flip, -1.0, 1.0)
    skip = ((A * flip) @ W, (A * flip) @ b)
    return type(network)([W * turned[:, None], A], [b * turned, c], skip=skip)


@pytest.mark.parametrize("seed", range(5))
def test_signs_that_chance_explains_are_not_resolved(seed):
    # One equation: at half the digits a few dozen bits fit by chance, whatever the truth.
    wide = hidden_signs(zoo.random_network([1, 34, 1], seed=seed), seed)
    kept, notes = resolve_signs(wide, 1e-8)
    assert kept is wide
    assert "skip is kept" in notes[0]
    plain, notes = resolve_signs(
        hidden_signs(zoo.random_network([1, 12, 1], seed=seed), seed), 1e-8
    )
    assert plain.skip is None
    assert not notes


@pytest.mark.parametrize("widths", [[10, 16, 1], [10, 30, 1], [5, 40, 1], [4, 50, 3]])
def test_signs_of_wide_networks_are_resolved(widths):
    network = zoo.random_network(widths, seed=3)
    plain, notes = resolve_signs(hidden_signs(network, 1), 1e-8)
    assert not notes
    X = np.random.default_rng(0).standard_normal((500, widths[0]))
    np.testing.assert_allclose(plain(X), network(X), atol=1e-10)
    rows = [np.column_stack([n.weights[0], n.biases[0]]) for n in (plain, network)]
    np.testing.assert_allclose(rows[0], rows[1])


def test_a_true_skip_is_kept():
    network = zoo.random_network([10, 30, 1], seed=4)
    skip = (np.random.default_rng(1).standard_normal((1, 10)), np.zeros(1))
    given = type(network)(network.weights, network.biases, skip=skip)
    kept, notes = resolve_signs(given, 1e-8)
    assert kept is given
    assert "no choice of signs" in notes[0]


def test_without_a_tolerance_chance_explains_what_does_not_vary_alone():
    assert expected_coincidences(np.zeros((2, 3)), 0.0) == 8.0
    assert expected_coincidences(np.ones((2, 3)), 0.0) < 1e-300
