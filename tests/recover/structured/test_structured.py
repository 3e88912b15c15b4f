"""Layers of special shape: exponential units of 0/1 rows, even units of orthonormal rows."""

import numpy as np
import pytest

import revelu
from revelu import Status
from revelu.numerics.matching import match_rows
from revelu.recover.rare.exponential_units import cliques, correlation_graph

BLOCKS = [[0, 1, 2], [3, 4, 5], [6, 7]]


def exponential(X, rho=0.5, t=2.0, pair=0.3):
    u = [np.exp(rho * (X[:, b].sum(axis=1) - t)) for b in BLOCKS]
    return u[0] + 1.2 * u[1] + 0.8 * u[2] + pair * u[0] * u[1]


def orthonormal(k, d, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, k)))[0].T


def test_exponential_units_come_back_as_blocks():
    X = np.random.default_rng(0).standard_normal((30_000, 9))
    found = revelu.recover_lowest_layer(X=X, y=exponential(X), activation="exp")
    assert found.status is Status.RECOVERED
    assert found.details["blocks"] == BLOCKS
    assert np.allclose(np.linalg.norm(found.directions, axis=1), 1)
    assert (found.directions[:, 8] == 0).all()
    assert np.isnan(found.thresholds).all()


def test_too_few_samples_show_no_blocks():
    X = np.random.default_rng(0).standard_normal((100, 9))
    found = revelu.recover_lowest_layer(X=X, y=exponential(X), activation="exp")
    assert found.status is Status.PARTIAL
    assert not len(found.directions)
    assert "samples are needed" in found.evidence[0]


def test_noise_has_no_blocks():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 6))
    found = revelu.recover_lowest_layer(X=X, y=rng.exponential(size=5000), activation="exp")
    assert found.status is Status.PARTIAL
    assert not len(found.directions)


def test_a_threshold_is_not_needed():
    X = np.random.default_rng(1).standard_normal((60_000, 9))
    y = exponential(X, rho=1.0, t=0.0, pair=0.05)
    found = revelu.recover_lowest_layer(X=X, y=y, activation="exp")
    assert found.status is Status.RECOVERED
    assert found.details["blocks"] == BLOCKS


def test_a_graph_that_is_no_union_of_cliques_gives_none():
    graph = np.zeros((4, 4), dtype=bool)
    graph[[0, 1, 1, 2], [1, 0, 2, 1]] = True
    assert cliques(graph) == []
    graph[[0, 2], [2, 0]] = True
    assert cliques(graph) == [[0, 1, 2]]


def test_the_graph_has_no_edges_between_units():
    X = np.random.default_rng(2).standard_normal((30_000, 9))
    graph = correlation_graph(X, exponential(X))
    assert (graph == graph.T).all()
    assert not graph[:3, 3:].any()


def test_even_units_come_back_to_the_errors_given():
    W = orthonormal(3, 6)
    X = np.random.default_rng(3).standard_normal((100_000, 6))
    u = np.abs(X @ W.T)
    y = u[:, 0] + 0.9 * u[:, 1] + 1.1 * u[:, 2] + 0.1 * u[:, 0] * u[:, 1]
    found = revelu.recover_lowest_layer(X=X, y=y, activation="even", n_neurons=3)
    assert found.details["condition"] < 1
    rows, signs = match_rows(found.directions, W, up_to_sign=True)
    off = np.linalg.norm(signs[:, None] * found.directions[rows] - W, axis=1)
    assert off.max() < min(0.3, 5 * found.errors.max() + 0.02)


def test_units_that_only_occur_in_products_fail_the_condition():
    W = orthonormal(2, 4)
    X = np.random.default_rng(4).standard_normal((50_000, 4))
    # u of mean nought: no unit is left alone when the other is averaged away.
    u = np.abs(X @ W.T) - np.sqrt(2 / np.pi)
    found = revelu.recover_lowest_layer(
        X=X, y=10 * u[:, 0] * u[:, 1] + 0.1 * u.sum(axis=1), activation="even", n_neurons=2
    )
    assert found.status is Status.PARTIAL
    assert not len(found.directions)
    assert "fails" in found.evidence[0]


def absolute_values(product, seed=5, n=100_000):
    """Three units that weigh the same, and the product of two of them."""
    W = orthonormal(3, 5, seed)
    X = np.random.default_rng([seed, 1]).standard_normal((n, 5))
    u = np.abs(X @ W.T)
    return W, X, u.sum(axis=1) + product * u[:, 0] * u[:, 1]


@pytest.mark.parametrize("seed", [5, 6])
def test_directions_half_way_between_two_units_are_given_away_by_a_third(seed):
    # C_1 = C_2 = 1 + c m and C_12 = c, m = sqrt(2 / pi) the mean; |a| has T_4 = -m C_1 and
    # 6 m^2 C_12: the ratio is -6 m c / (2 (1 + c m)), and what shows is (3 - r) / (1 + r).
    m, c = np.sqrt(2 / np.pi), -0.6
    ratio = -6 * m * c / (2 * (1 + c * m))
    _, X, y = absolute_values(c, seed)
    found = revelu.recover_lowest_layer(X=X, y=y, activation="even", n_neurons=3)
    assert ratio > 1
    assert found.details["condition"] == pytest.approx((3 - ratio) / (1 + ratio), abs=0.15)
    assert not len(found.directions)
    assert "fails" in found.evidence[0]


@pytest.mark.parametrize("seed", [5, 6])
def test_units_that_weigh_the_same_are_told_by_a_third(seed):
    W, X, y = absolute_values(0.3, seed)
    found = revelu.recover_lowest_layer(X=X, y=y, activation="even", n_neurons=3)
    assert found.details["condition"] < -0.3
    assert "ruled out" in found.evidence[0]
    rows, signs = match_rows(found.directions, W, up_to_sign=True)
    off = np.linalg.norm(signs[:, None] * found.directions[rows] - W, axis=1)
    assert off.max() < 0.15


def test_two_units_alone_are_not_told_from_half_way():
    W = orthonormal(2, 4)
    X = np.random.default_rng(6).standard_normal((50_000, 4))
    u = np.abs(X @ W.T)
    found = revelu.recover_lowest_layer(
        X=X, y=u.sum(axis=1) + 0.05 * u.prod(axis=1), activation="even", n_neurons=2
    )
    assert "unseen" in found.evidence[0]


def test_one_even_unit_needs_no_condition():
    X = np.random.default_rng(7).standard_normal((50_000, 4))
    y = np.abs(X @ [0.6, 0.8, 0.0, 0.0])
    found = revelu.recover_lowest_layer(X=X, y=y, activation="even", n_neurons=1)
    assert np.abs(np.abs(found.directions) - [[0.6, 0.8, 0.0, 0.0]]).max() < 0.1


@pytest.mark.parametrize(
    "arguments", [{"target": len, "dim_in": 2, "activation": "exp"}, {"activation": "even"}]
)
def test_bad_arguments_are_refused(arguments):
    samples = {} if "target" in arguments else {"X": np.eye(3), "y": np.arange(3.0)}
    with pytest.raises(revelu.InputError):
        revelu.recover_lowest_layer(**arguments, **samples)
