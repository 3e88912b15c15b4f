"""The listings of Goel and Panigrahy (2018), beside the library."""

import numpy as np
import pytest

from listings.gp18 import (
    construct_correlation_graph,
    estimate_tan_alpha,
    expected_correlations,
    maximise_on_simplex,
    refine_estimate,
    tilted,
)
from revelu.network.zoo.thresholds import halfspaces
from revelu.recover.structured import cliques, correlation_graph


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
