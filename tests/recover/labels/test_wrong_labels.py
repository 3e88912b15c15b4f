"""Halfspaces from labels of which some are wrong, and what is said of them at 95% confidence."""

import numpy as np
import pytest
from scipy.special import comb

import revelu
from revelu import Status
from revelu.numerics.confidence import FALSE_ALARM, upper_bound
from revelu.numerics.matching import match_rows
from revelu.recover.rare.halfspace_search import find_halfspace
from revelu.recover.rare.label_noise import LabelNoise, departures, least_evidence, unexplained
from revelu.recover.rare.units import Units
from revelu.recover.rare.version_space import version_space


def drawn(W, t, n, rate, seed):
    """Samples of N(0, I), and labels of which a share is wrong."""
    rng = np.random.default_rng([0x77726F, seed])
    X = rng.standard_normal((n, W.shape[1]))
    return X, (X @ W.T - t >= 0).any(axis=1) ^ (rng.random(n) < rate)


def held(found, W, t):
    """Whether the bounds of every angle and threshold hold; every halfspace has to be found."""
    rows, _ = match_rows(found.normals, W)
    assert (rows >= 0).all()
    angles = 2 * np.arcsin(np.linalg.norm(found.normals[rows] - W, axis=1) / 2)
    return angles, np.abs(found.thresholds[rows] - t), rows


THREE = np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0, 0.6, 0.8, 0]])
AT = np.array([1.7, 2.1, 1.9])


@pytest.mark.parametrize(("rate", "bar"), [(0.001, 0.05), (0.01, 0.05), (0.05, 0.1)])
def test_wrong_labels_are_a_law(rate, bar):
    """Two of the halfspaces are opposite, which one direction of moments stands for."""
    X, y = drawn(THREE, AT, 20_000, rate, seed=1)
    found = revelu.recover_halfspaces(X=X, y=y)
    assert found.status in {Status.RECOVERED, Status.UNVERIFIED}
    assert len(found.normals) == 3
    angles, gaps, rows = held(found, THREE, AT)
    assert angles.max() < bar
    assert (angles <= 2 * found.bounds[rows]).all()
    assert (gaps <= 2 * found.threshold_bounds[rows]).all()
    n = (~y).sum() + rate * len(y)
    assert found.wrong_labels[0] == pytest.approx(rate, abs=5 * np.sqrt(rate / n) + 1 / n)


def test_wrong_labels_are_certified_and_counted():
    X, y = drawn(THREE[:1], AT[:1], 20_000, 0.02, seed=2)
    found = revelu.recover_halfspaces(X=X, y=y)
    assert found.status is Status.RECOVERED
    assert "wrong at random" in found.certificate.statement
    assert found.fields()["wrong_labels"] == list(found.wrong_labels)


def test_labels_of_a_coin_show_no_halfspace():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((10_000, 5))
    for rate in (0.01, 0.2):
        found = revelu.recover_halfspaces(X=X, y=rng.random(10_000) < rate)
        assert not len(found.normals)
        assert found.status is Status.PARTIAL
        assert "more samples" not in found.evidence[0]


@pytest.mark.parametrize(
    "chance",
    [
        lambda X: (X[:, 0] >= 1.5) ^ (X[:, 1] >= 1.5),
        lambda X: (X[:, 0] >= 1.5) & (X[:, 0] <= 2.6),
        lambda X: 1 / (1 + np.exp(-4 * (X[:, 0] - 1.8))),
    ],
    ids=["one of two", "band", "logistic"],
)
def test_wrong_labels_excuse_nothing_else(chance):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((20_000, 4))
    y = (rng.random(20_000) < chance(X)) ^ (rng.random(20_000) < 0.01)
    found = revelu.recover_halfspaces(X=X, y=y)
    assert found.status is not Status.RECOVERED


def test_fewer_than_were_named_are_not_all():
    W, t = THREE.copy(), np.array([1.7, 5.0, 1.9])
    X, y = drawn(W, t, 20_000, 0.0, seed=5)
    found = revelu.recover_halfspaces(X=X, y=y, n_halfspaces=3)
    assert found.status is Status.PARTIAL
    assert "2 of 3" in found.evidence[0]
    free = revelu.recover_halfspaces(X=X, y=y)
    assert free.status is Status.RECOVERED
    assert len(free.normals) == 2
    assert any("not seen" in text for text in free.evidence)


@pytest.mark.parametrize("rate", [0.0, pytest.param(0.05, marks=pytest.mark.slow)])
def test_stated_bounds_hold_as_often_as_they_say(rate):
    """60 coins of 0.95 are 1 fewer than 50 times once in five thousand, and 120 always once in
    five hundred."""
    w, n_runs = np.array([0.6, 0.0, 0.8]), 60
    start = np.array([0.6, 0.02, 0.8]) / np.linalg.norm([0.6, 0.02, 0.8])
    within = np.zeros(2, dtype=int)
    noise = LabelNoise(raised=rate, missed=rate)
    for seed in range(n_runs):
        X, y = drawn(w[None], np.array([1.5]), 1500, rate, seed)
        costs = np.abs(noise.gains(y)) if rate else None
        found = version_space(X, y, start, 1.5, np.random.default_rng(seed), costs=costs)
        angle = np.linalg.norm(found.directions[0] - w)
        within += [
            angle <= found.bounds[0],
            abs(found.thresholds[0] - 1.5) <= found.threshold_bounds[0],
        ]
    assert (within >= 50).all()
    assert within.sum() < 2 * n_runs


@pytest.mark.parametrize(("n", "d"), [(7, 1), (20, 1), (5, 4), (6, 2)])
def test_halfspaces_are_counted(n, d):
    """Halflines divide n numbers in 2n ways, halfspaces of n - 1 dimensions in all 2^n."""
    ways = np.exp(least_evidence(n, d)) * FALSE_ALARM
    assert ways == pytest.approx({1: 2 * n, 4: 2**n}.get(d, 2 * (1 + 5 + comb(5, 2))))


def test_a_likelihood_ratio_has_mean_one_under_noise():
    noise = LabelNoise(raised=0.03, missed=0.1)
    ratios = np.exp(noise.gains(np.array([True, False])))
    assert ratios @ [0.03, 0.97] == pytest.approx(1.0)


def test_rates_are_counted_where_no_border_is():
    depth = np.repeat([-2.0, -0.1, 2.0], [1000, 50, 100])
    fires = np.repeat([False, True, False, True, True, False], [990, 10, 25, 25, 90, 10])
    noise = LabelNoise.measured(depth, fires, width=1.0)
    assert (noise.n_raised, noise.n_outside, noise.n_missed, noise.n_inside) == (10, 1000, 10, 100)
    assert noise.raised == pytest.approx(0.01, rel=0.1)
    assert upper_bound(10, 100) > noise.missed > 0.09


@pytest.mark.parametrize(
    ("counts", "few"),
    [
        ((0, 40_000, 0, 2000), 0),
        ((3, 40_000, 0, 2000), 3),
        ((400, 40_000, 0, 2000), 0),
        ((400, 40_000, 22, 2000), 0),
        ((40, 40_000, 2, 2000), 0),
        ((40, 40_000, 10, 1000), 10),
        ((0, 40_000, 8, 400), 8),
    ],
)
def test_a_few_wrong_labels_are_no_law(counts, few):
    m, n, k, of = counts
    noise = LabelNoise((m + 0.5) / n, (k + 0.5) / of, m, n, k, of)
    assert unexplained(noise, 8) == few


def test_a_rare_halfspace_is_found_among_as_many_wrong_labels():
    w = np.array([0.0, 0.6, 0.0, 0.8, 0.0])
    X, y = drawn(w[None], np.array([2.8]), 40_000, 0.01, seed=6)
    noise = LabelNoise(raised=0.01, missed=0.01)
    rng = np.random.default_rng(0)
    found = find_halfspace(X, y, Units.none(5), noise)
    assert np.linalg.norm(found.directions[0] - w) < 0.15
    coins = rng.random(40_000) < 0.01
    assert find_halfspace(X, coins, Units.none(5), noise) is None


def test_wrong_labels_beside_a_border_are_no_chance():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((20_000, 3))
    margins = X[:, :1] - 1.5
    noise = LabelNoise(raised=0.02, missed=0.02)
    fires = (margins[:, 0] > 0) ^ (rng.random(20_000) < 0.02)
    assert departures(X, margins, fires, noise, width=0.01) == []
    soft = rng.random(20_000) < 1 / (1 + np.exp(-8 * margins[:, 0]))
    assert "nearer to borders" in departures(X, margins, soft, noise, width=0.01)[0]
