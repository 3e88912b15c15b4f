"""The listings of Goel and Panigrahy (2018), beside the library."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listings.gp18 import (
    construct_correlation_graph,
    estimate_tan_alpha,
    expected_correlations,
    maximise_on_simplex,
    refine_estimate,
    tilted,
    tilted_of_samples,
)
from revelu.recover.rare.exponential_units import cliques, correlation_graph
from threshold_networks import halfspaces


def turned(w, angle, rng):
    u = rng.standard_normal(len(w))
    u -= (u @ w) * w
    return np.cos(angle) * w + np.sin(angle) * u / np.linalg.norm(u)


@pytest.mark.parametrize("angle", [0.1, 0.3])
def test_estimate_tan_alpha_is_right_to_some_percent(angle):
    W, _ = halfspaces((8, 1), seed=0)
    z = turned(W[0], angle, np.random.default_rng(1))
    tan = estimate_tan_alpha(lambda X: X @ W[0] >= 2.0, z, 20_000, np.random.default_rng(2), 20)
    assert tan == pytest.approx(np.tan(angle), rel=0.1)


def test_refine_estimate_comes_nearer_where_angles_are_exact():
    w = np.eye(4)[0]

    def tan_alpha(z):
        return np.sqrt(1 - (z @ w) ** 2) / (z @ w)

    rng = np.random.default_rng(0)
    z = turned(w, 0.3, rng)
    assert np.arctan(tan_alpha(refine_estimate(tan_alpha, z, 0.05, rng, 4000))) < 0.1


def test_refine_estimate_comes_nearer_where_angles_are_estimated():
    w, rng = np.eye(3)[0], np.random.default_rng(1)
    z = turned(w, 0.4, rng)

    def tan_alpha(z):
        return estimate_tan_alpha(lambda X: X @ w >= 1.5, z, 2000, rng, 12)

    refined = refine_estimate(tan_alpha, z, 0.05, rng, most=150)
    assert np.arccos(refined @ w) < 0.35


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(0, 10**6))
def test_cliques_are_those_of_another_library(n_blocks, seed):
    """Of disjoint cliques, some with an edge taken out, by networkx."""
    rng = np.random.default_rng(seed)
    graph = np.zeros((12, 12), dtype=bool)
    for block in np.array_split(rng.permutation(12)[: rng.integers(2, 13)], n_blocks):
        graph[np.ix_(block, block)] = True
    np.fill_diagonal(graph, val=False)
    if seed % 2 and graph.any():
        i, j = np.argwhere(graph)[rng.integers(graph.sum())]
        graph[i, j] = graph[j, i] = False
    G = nx.from_numpy_array(graph)
    found = sorted(sorted(c) for c in nx.find_cliques(G) if len(c) > 1)
    disjoint = len(set().union(*found)) == sum(map(len, found)) if found else True
    assert cliques(graph) == (found if disjoint else [])


def test_the_correlation_graph_is_the_librarys():
    blocks, rho, t = [[0, 1], [2, 3], [4, 5]], 0.6, 1.0
    X = np.random.default_rng(0).standard_normal((200_000, 6))
    u = np.array([np.exp(rho * (X[:, b].sum(axis=1) - t)) for b in blocks])
    linear, pairs = np.array([1.0, 1.2, 0.9]), np.zeros((3, 3))
    pairs[0, 1] = pairs[1, 0] = 0.1
    f = linear @ u + 0.1 * u[0] * u[1]
    inside, between = expected_correlations(linear, pairs, rho, t, 2)
    # The corrected mu, against the samples: unit 1's block.
    assert np.mean(f * X[:, 2] * X[:, 3]) == pytest.approx(inside[1], rel=0.1)
    graph = construct_correlation_graph(X, f, (inside.min() + between.max()) / 2)
    assert graph == {(0, 1), (2, 3), (4, 5)}
    assert cliques(correlation_graph(X, f)) == blocks


def test_the_bounded_objective_finds_every_block():
    blocks, weights = [[0, 1, 2], [3, 4], [5, 6, 7]], [1.0, 1.5, 0.8]
    log_g = tilted(blocks, weights)
    for block in blocks:
        start = np.full(8, 0.02)
        start[block[0]] = 2.86
        z = maximise_on_simplex(log_g, start, 3.0, 0.05)
        assert np.flatnonzero(z > 0.5 * z.max()).tolist() == block
        assert np.ptp(z[block]) < 1e-3


def test_the_bounded_objective_finds_blocks_from_samples():
    """Under a small tilt samples keep their weight; under print's they would not."""
    blocks, weights = [[0, 1, 2], [3, 4]], [1.0, 1.5]
    X = np.random.default_rng(3).standard_normal((60_000, 5))
    f = sum(c * np.exp(X[:, b].sum(axis=1)) for b, c in zip(blocks, weights, strict=True))
    log_g = tilted_of_samples(X, f)
    z = np.full(5, 0.2)
    assert log_g(z)[0] == pytest.approx(tilted(blocks, weights)(z)[0], abs=0.1)
    for block in blocks:
        start = np.full(5, 0.05)
        start[block[0]] = 1.3
        z = maximise_on_simplex(log_g, start, 1.5, 0.1, steps=80, rate=0.3)
        assert np.flatnonzero(z > 0.5 * z.max()).tolist() == block
