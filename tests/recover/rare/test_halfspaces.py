"""Halfspaces from labels, asked for and stored."""

import numpy as np
import pytest

import revelu
from revelu import Status
from revelu.numerics.matching import match_rows
from revelu.recover.rare.union_fit import fit_union
from revelu.recover.rare.version_space import version_space
from threshold_networks import halfspaces


def union(W, t):
    return lambda X: (X @ W.T - t >= 0).any(axis=1).astype(float)


def intersection(W, t):
    return lambda X: (X @ W.T - t >= 0).all(axis=1).astype(float)


def errors(found, W, t):
    rows, _ = match_rows(found.normals, W)
    return (
        np.linalg.norm(found.normals[rows] - W, axis=1).max(),
        np.abs(found.thresholds[rows] - t).max(),
    )


@pytest.mark.parametrize(("d", "k"), [(2, 1), (10, 5), (30, 10)])
def test_a_union_comes_back_from_label_queries(d, k):
    W, t = halfspaces((d, k), seed=d)
    found = revelu.recover_halfspaces(union(W, t), dim_in=d)
    assert found.status is Status.RECOVERED
    assert len(found.normals) == k
    off_angle, off_threshold = errors(found, W, t)
    assert off_angle < min(10 * found.errors.max(), 1e-10)
    assert off_threshold < min(10 * found.threshold_errors.max(), 1e-10)
    assert found.ledger.by_phase["recover"] <= 100 * d * k + 900


@pytest.mark.parametrize(("d", "k"), [(4, 3), (12, 8)])
def test_an_intersection_comes_back_from_label_queries(d, k):
    W, t = halfspaces((d, k), thresholds=(-2.5, -1.0), seed=d)
    found = revelu.recover_halfspaces(intersection(W, t), dim_in=d, combine="and")
    assert found.status is Status.RECOVERED
    assert max(errors(found, W, t)) < 1e-12
    X = np.random.default_rng(5).standard_normal((500, d))
    assert (found.predict(X) == intersection(W, t)(X)).all()


def test_an_intersection_that_misses_the_origin_comes_back():
    W, t = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0]]), np.array([0.3, -2.0, -1.0])
    found = revelu.recover_halfspaces(intersection(W, t), dim_in=3, combine="and")
    assert found.status is Status.RECOVERED
    assert max(errors(found, W, t)) < 1e-11


def test_labels_may_be_minus_one_and_one():
    W, t = halfspaces((5, 2), seed=0)
    found = revelu.recover_halfspaces(lambda X: 2 * union(W, t)(X) - 1, dim_in=5)
    assert max(errors(found, W, t)) < 1e-12


def test_a_float32_target_is_said_to_be_one():
    W, t = halfspaces((8, 3), seed=1)

    def target(X):
        return (X.astype(np.float32) @ W.T.astype(np.float32) >= t.astype(np.float32)).any(axis=1)

    found = revelu.recover_halfspaces(target, dim_in=8)
    assert len(found.normals) == 3
    assert 1e-9 < found.errors.max() < 1e-3
    assert errors(found, W, t)[0] < 10 * found.errors.max()


def test_a_ball_is_no_union_of_halfspaces():
    found = revelu.recover_halfspaces(lambda X: (X**2).sum(axis=1) > 4, dim_in=4)
    assert found.status is Status.NOT_IN_CLASS
    assert "not flat" in found.evidence[0]


def test_the_wrong_way_to_combine_is_noticed():
    W, t = halfspaces((4, 3), thresholds=(1.0, 1.5), seed=2)
    found = revelu.recover_halfspaces(union(W, t), dim_in=4, combine="and")
    assert found.status is not Status.RECOVERED
    assert found.evidence


def test_one_label_everywhere_is_said():
    found = revelu.recover_halfspaces(lambda X: np.zeros(len(X)), dim_in=4)
    assert found.status is Status.PARTIAL
    assert not len(found.normals)
    assert "constant" in found.evidence[0]


def test_a_budget_is_kept():
    W, t = halfspaces((10, 5), seed=0)
    found = revelu.recover_halfspaces(union(W, t), dim_in=10, budget=1500)
    assert found.status is Status.BUDGET_EXHAUSTED
    assert found.ledger.n_queries <= 1500
    assert 0 < len(found.normals) < 5


@pytest.mark.parametrize("rate", [0.01, 0.1])
def test_labels_with_a_new_coin_each_time_are_said_to_differ(rate):
    rng = np.random.default_rng(0)
    W, t = halfspaces((4, 2), seed=0)
    found = revelu.recover_halfspaces(
        lambda X: (union(W, t)(X) > 0) ^ (rng.random(len(X)) < rate), dim_in=4
    )
    assert found.status is Status.NOT_DETERMINISTIC
    assert "answers to the same input differ" in found.evidence[0]
    assert found.ledger.n_queries <= 20_000


def test_what_rays_do_not_reach_is_said():
    W, t = np.eye(3)[:2], np.array([2.0, 12.0])
    found = revelu.recover_halfspaces(union(W, t), dim_in=3)
    assert len(found.normals) == 1
    assert "not seen" in found.evidence[0]
    assert (found.bounds >= found.errors).all()


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"target": len, "X": np.ones((2, 2)), "y": np.ones(2)},
        {"X": np.ones((2, 2))},
        {"X": np.ones((2, 2)), "y": np.ones(2)},
        {"X": np.ones((2, 2)), "y": np.array([0.0, 3.0])},
        {"X": np.ones((2, 2)), "y": np.array([0.0, 1.0]), "combine": "xor"},
    ],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(revelu.InputError):
        revelu.recover_halfspaces(**arguments)


def test_a_union_comes_back_from_samples():
    W, t = halfspaces((5, 3), thresholds=(1.8, 2.2), seed=4)
    X = np.random.default_rng(0).standard_normal((40_000, 5))
    found = revelu.recover_halfspaces(X=X, y=union(W, t)(X))
    assert found.status is Status.RECOVERED
    off_angle, off_threshold = errors(found, W, t)
    assert off_angle < 0.01
    assert off_threshold < 0.01
    # The errors given are the errors made.
    assert off_angle < 4 * found.errors.max()
    assert off_threshold < 4 * found.threshold_errors.max()


def test_an_intersection_comes_back_from_samples_of_another_gaussian():
    W, t = halfspaces((4, 2), thresholds=(-2.2, -1.8), seed=5)
    rng = np.random.default_rng(1)
    A, m = rng.standard_normal((4, 4)) + 2 * np.eye(4), rng.standard_normal(4)
    Z = rng.standard_normal((40_000, 4))
    rows = W @ np.linalg.inv(A)
    norms = np.linalg.norm(rows, axis=1)
    found = revelu.recover_halfspaces(X=Z @ A.T + m, y=intersection(W, t)(Z), combine="and")
    off_angle, off_threshold = errors(found, rows / norms[:, None], (t + rows @ m) / norms)
    assert off_angle < 0.02
    assert off_threshold < 6 * found.threshold_errors.max()


def test_too_few_positives_tell_how_many_more():
    W, t = halfspaces((10, 2), thresholds=(3.0, 3.2), seed=0)
    X = np.random.default_rng(0).standard_normal((2000, 10))
    y = union(W, t)(X)
    assert 0 < y.sum() < 20
    found = revelu.recover_halfspaces(X=X, y=y)
    assert found.status is Status.PARTIAL
    assert not len(found.normals)
    assert "more samples would hold them" in found.evidence[0]


def test_common_positives_are_refused():
    W, t = halfspaces((4, 3), thresholds=(0.0, 0.1), seed=0)
    X = np.random.default_rng(0).standard_normal((2000, 4))
    found = revelu.recover_halfspaces(X=X, y=union(W, t)(X))
    assert found.status is Status.NOT_IN_CLASS
    assert "rare" in found.evidence[0]


def test_the_mean_of_what_agrees_is_near_and_says_how_near():
    rng = np.random.default_rng(0)
    w = np.array([0.6, 0.0, 0.8])
    X = rng.standard_normal((20_000, 3))
    found = version_space(X, X @ w >= 1.5, np.array([0.59, 0.02, 0.8]) / 0.9945, 1.52, rng)
    assert np.isfinite(found.errors).all()
    assert np.arccos(min(found.directions[0] @ w, 1.0)) < 4 * found.errors[0] < 0.01


def test_contradictory_labels_leave_no_halfspace():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    found = version_space(X, rng.random(2000) < 0.5, np.array([1.0, 0, 0]), 0.0, rng)
    assert found.errors[0] == found.threshold_errors[0] == np.inf


def test_a_noisy_or_forgives_a_start_that_is_far_off():
    rng = np.random.default_rng(0)
    W, t = halfspaces((6, 3), thresholds=(1.8, 2.0), seed=6)
    X = rng.standard_normal((30_000, 6))
    start = W + 0.1 * rng.standard_normal(W.shape)
    start /= np.linalg.norm(start, axis=1)[:, None]
    found, thresholds = fit_union(X, union(W, t)(X) > 0, start, np.full(3, 1.6))
    assert np.linalg.norm(found - W, axis=1).max() < 0.02
    assert np.abs(thresholds - t).max() < 0.02


def test_a_file_keeps_what_was_found(tmp_path):
    W, t = halfspaces((3, 2), seed=0)
    found = revelu.recover_halfspaces(union(W, t), dim_in=3)
    found.save(tmp_path / "rules.npz")
    with np.load(tmp_path / "rules.npz") as arrays:
        assert np.array_equal(arrays["normals"], found.normals)
        assert arrays["combine"] == "or"
