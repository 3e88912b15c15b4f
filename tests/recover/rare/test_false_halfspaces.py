"""What is no union of halfspaces, or no layer of the kind said: never called one."""

import numpy as np
import pytest

import revelu
from revelu import Status
from revelu.numerics.matching import match_rows
from revelu.recover.rare.firing import estimate_tan_alpha
from revelu.recover.rare.units import Units
from revelu.recover.rare.version_space import version_space
from revelu.tasks.learn.samples import gather
from revelu.tasks.rules.firing import with_rare_ones_apart

E = np.eye(6)


def normal(n, d, seed=0):
    return np.random.default_rng([11, seed]).standard_normal((n, d))


def relu(z):
    return np.maximum(z, 0.0)


def ramps(X, *places):
    return sum(relu(X[:, j] - t) for j, t in places)


def angles(rows, truth):
    return np.linalg.norm(rows[:, None] - truth, axis=2).min(axis=1)


# -- from queries ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        # Both fire in a thousandth of a percent of N(0, I).
        lambda X: (X[:, 0] >= 2.5) ^ (X[:, 1] >= 2.5),
        lambda X: (X[:, 0] >= 2.0) & (X[:, 0] <= 3.5),
        lambda X: (X[:, :3] >= 1.0).sum(axis=1) >= 2,
        lambda X: X[:, 0] - 0.3 * X[:, 1] ** 2 >= 1.0,
        lambda X: (np.round(X, 1) ** 2).sum(axis=1) > 5.0,
    ],
    ids=["xor", "band", "two of three", "parabola", "steps"],
)
def test_what_is_no_union_is_not_called_one(target):
    found = revelu.recover_halfspaces(target, dim_in=4, budget=30_000)
    assert found.status is not Status.RECOVERED
    assert found.evidence
    assert found.ledger.n_queries <= 30_000


@pytest.mark.parametrize("k", [3, 12])
def test_a_polygon_has_as_many_faces_as_it_has(k):
    turns = 2.0 * np.pi * np.arange(k) / k
    W = np.column_stack([np.cos(turns), np.sin(turns)])
    found = revelu.recover_halfspaces(
        lambda X: (X @ W.T <= 2.0).all(axis=1), dim_in=2, combine="and"
    )
    assert found.status is Status.RECOVERED
    assert len(found.normals) == k
    assert angles(-found.normals, W).max() < 1e-9


@pytest.mark.parametrize("threshold", [-0.5, 0.0, 1e-12])
def test_a_border_through_the_origin_is_one(threshold):
    found = revelu.recover_halfspaces(lambda X: X[:, 0] > threshold, dim_in=3)
    assert found.status is Status.RECOVERED
    assert angles(found.normals, E[:1, :3]).max() < 1e-10
    assert abs(found.thresholds[0] - threshold) < 1e-10


def test_a_thin_slab_around_the_origin_is_found():
    found = revelu.recover_halfspaces(lambda X: np.abs(X[:, 0]) < 1e-6, dim_in=3, combine="and")
    assert found.status is Status.RECOVERED
    assert np.abs(found.thresholds + 1e-6).max() < 1e-12


def test_a_certificate_of_a_few_queries_is_none():
    found = revelu.recover_halfspaces(lambda X: X[:, 0] > 2, dim_in=3)
    budget = found.ledger.by_phase["recover"] + 40
    short = revelu.recover_halfspaces(lambda X: X[:, 0] > 2, dim_in=3, budget=budget)
    assert short.status is Status.BUDGET_EXHAUSTED
    assert short.ledger.n_queries <= budget
    assert len(short.normals) == 1


def test_a_layer_that_falls_back_to_its_constant_is_not_recovered():
    def bump(X):
        return ramps(X, (0, 1.5)) - 2 * ramps(X, (0, 2.0)) + ramps(X, (0, 2.5))

    found = revelu.recover_lowest_layer(bump, dim_in=4)
    assert found.status is Status.UNVERIFIED
    assert angles(found.directions, E[:1, :4]).max() < 1e-9


def test_answers_without_variation_have_no_sigmoids():
    found = revelu.recover_lowest_layer(
        lambda X: np.ones(len(X)), dim_in=3, activation="sigmoid", n_neurons=2, budget=70_000
    )
    assert found.status is Status.PARTIAL
    assert not len(found.directions)


# -- labels ---------------------------------------------------------------------------------


def test_few_samples_of_a_ball_are_no_union():
    X = normal(6000, 6)
    found = revelu.recover_halfspaces(X=X, y=(X**2).sum(axis=1) > 18.0)
    assert found.status is not Status.RECOVERED
    assert found.evidence


@pytest.mark.parametrize(
    "rule",
    [
        lambda X: (X[:, 0] >= 1.5) ^ (X[:, 1] >= 1.5),
        lambda X: (X[:, 0] >= 0.5) & (X[:, 1] >= 0.5),
        lambda X: (X[:, 0] >= 1.5) & (X[:, 0] <= 3.0),
    ],
    ids=["xor", "corner", "band"],
)
@pytest.mark.parametrize("n_halfspaces", [None, 2])
def test_labels_of_something_else_are_not_called_a_union(rule, n_halfspaces):
    X = normal(6000, 4)
    found = revelu.recover_halfspaces(X=X, y=rule(X), n_halfspaces=n_halfspaces)
    assert found.status is not Status.RECOVERED
    assert found.evidence
    assert np.isfinite(found.errors).all()
    assert (found.errors <= 0.5).all()


def test_a_rare_halfspace_that_is_missing_is_said_to_be():
    X = normal(15_000, 5)
    found = revelu.recover_halfspaces(X=X, y=(X[:, 0] >= 1.5) | (X[:, 1] >= 3.5))
    assert found.status is Status.PARTIAL
    assert any("not explained" in text for text in found.evidence)
    # The other one is known as well as ever.
    assert angles(found.normals, E[:1, :5]).max() < 4 * found.errors.max() < 0.02


def test_two_opposite_halfspaces_have_one_direction_and_are_found():
    X = normal(15_000, 4)
    found = revelu.recover_halfspaces(X=X, y=np.abs(X[:, 0]) >= 1.6)
    assert found.status is Status.RECOVERED
    assert len(found.normals) == 2
    assert angles(found.normals, np.vstack([E[:1, :4], -E[:1, :4]])).max() < 0.02


def test_a_certificate_needs_rare_ones():
    X = normal(400, 2)
    found = revelu.recover_halfspaces(X=X, y=X[:, 0] >= 1.5)
    assert found.status is Status.UNVERIFIED
    assert "too few" in found.evidence[-1]


def test_one_input_with_both_labels_is_refused():
    X = np.vstack([normal(100, 3), normal(50, 3)])
    with pytest.raises(revelu.InputError, match="both labels"):
        revelu.recover_halfspaces(X=X, y=np.arange(150) < 90)


def test_rare_ones_are_kept_apart_and_no_sample_is_lost():
    X = normal(5000, 3)
    drawn = gather(X, (X[:, 0] >= 1.8).astype(float), np.random.SeedSequence(1), None)
    more = with_rare_ones_apart(drawn, lambda y: y > 0)
    n_rare = int((X[:, 0] >= 1.8).sum())
    assert (drawn.y_held > 0).sum() < (more.y_held > 0).sum() <= n_rare / 3
    rows = np.vstack([more.X, more.X_held])
    assert np.array_equal(np.sort(rows, axis=0), np.sort(X, axis=0))


def test_halfspaces_that_nothing_bounds_have_an_error():
    rng = np.random.default_rng(0)
    found = version_space(normal(30, 6), np.ones(30, dtype=bool), E[0], -6.0, rng)
    assert np.isfinite(found.errors).all()
    assert 0.1 < found.errors[0] < 10.0


@pytest.mark.parametrize("angle", [0.1, 0.4])
def test_a_border_that_is_met_at_an_angle_is_soft(angle):
    X = normal(60_000, 4)
    z = np.cos(angle) * E[0, :4] + np.sin(angle) * E[1, :4]
    fires = X[:, 0] >= 1.5
    one = Units.one(z, 1.5, 0.0, 0.0)
    tan = estimate_tan_alpha(X, fires, one, 0)
    assert tan == pytest.approx(np.tan(angle), rel=0.5)
    assert estimate_tan_alpha(X, ~fires & fires, one, 0) == np.inf


# -- layers ---------------------------------------------------------------------------------


X6 = normal(15_000, 6)
TWO_RAMPS = ramps(X6, (0, 1.5), (1, 1.5))
TWO_STEPS = (X6[:, 0] >= 1.5) + 1.2 * (X6[:, 1] >= 1.5)
TWO_SIGMOIDS = 1.0 / (1.0 + np.exp(3.0 - X6[:, 0])) + 1.0 / (1.0 + np.exp(3.0 - X6[:, 1]))


@pytest.mark.parametrize("n_neurons", [None, 1, 2, 4])
@pytest.mark.parametrize("activation", ["relu", "sign"])
@pytest.mark.parametrize(
    ("y", "unit"), [(TWO_RAMPS, "relu"), (TWO_STEPS, "sign")], ids=["ramps", "steps"]
)
def test_another_activation_or_number_is_noticed_or_does_no_harm(y, unit, activation, n_neurons):
    found = revelu.recover_lowest_layer(X=X6, y=y, activation=activation, n_neurons=n_neurons)
    assert np.isfinite(found.errors).all()
    if found.status is Status.RECOVERED:
        assert len(found.directions) == 2
        assert (angles(found.directions, E[:2]) <= 5 * found.errors + 1e-12).all()
        assert np.abs(found.thresholds - 1.5).max() <= (
            5 * found.details["threshold_errors"].max() + 1e-12
        )
    else:
        assert activation != unit or n_neurons not in {None, 2}
        assert found.evidence


def test_sigmoids_that_count_for_nothing_are_left_out():
    found = revelu.recover_lowest_layer(None, X6, TWO_SIGMOIDS, "sigmoid", 3)
    assert found.status is Status.RECOVERED
    assert len(found.directions) == 2
    assert angles(found.directions, E[:2]).max() < 1e-9


@pytest.mark.parametrize(("activation", "k"), [("relu", None), ("exp", None), ("even", 2)])
def test_sigmoids_are_no_units_of_another_kind(activation, k):
    found = revelu.recover_lowest_layer(None, X6, TWO_SIGMOIDS, activation, k)
    assert found.status in {Status.NOT_IN_CLASS, Status.PARTIAL}
    assert not len(found.directions)


def test_higher_degrees_in_one_variable_come_from_samples_to_the_errors_given():
    """GP18, B.7: q_i(X_i) = X_i^2 has no linear part to regress on."""
    found = revelu.recover_lowest_layer(X=X6, y=relu(X6[:, 0] - 1.5) ** 2 + ramps(X6, (1, 1.6)))
    assert found.status is Status.RECOVERED
    off = angles(found.directions, E[:2])
    assert sorted(found.errors < 1e-12) == [False, True]
    assert (off <= 5 * found.errors + 1e-12).all()
    assert off.max() < 0.01


def test_rounded_answers_hide_the_beginning_of_a_rise_and_say_so():
    found = revelu.recover_lowest_layer(X=X6, y=np.round(TWO_RAMPS, 1))
    assert found.status is Status.RECOVERED
    late = np.abs(found.thresholds - 1.5)
    assert late.max() > 0.03
    assert (late <= 3 * found.details["threshold_errors"]).all()


def test_what_is_taken_for_rounding_counts_as_an_error():
    found = revelu.recover_lowest_layer(X=X6, y=TWO_RAMPS + 1e-6 * X6[:, 3])
    assert found.errors.min() > 1e-6
    assert (angles(found.directions, E[:2]) < found.errors).all()


def test_units_of_opposite_directions_are_found_without_their_number():
    found = revelu.recover_lowest_layer(X=X6, y=ramps(X6, (0, 1.5)) + ramps(-X6, (0, 1.5)))
    assert found.status is Status.RECOVERED
    assert angles(found.directions, np.vstack([E[0], -E[0]])).max() < 1e-10


def test_a_unit_behind_another_of_the_same_direction_is_hinted_at():
    found = revelu.recover_lowest_layer(X=X6, y=ramps(X6, (0, 1.5), (0, 2.8), (1, 1.5)))
    assert len(found.directions) == 2
    assert angles(found.directions, E[:2]).max() < 1e-10
    assert sum("behind it" in text for text in found.evidence) == 1
    alone = revelu.recover_lowest_layer(X=X6, y=TWO_RAMPS)
    assert not alone.evidence


def test_products_alone_show_no_direction():
    found = revelu.recover_lowest_layer(X=X6, y=ramps(X6, (0, 0.8)) * ramps(X6, (1, 0.8)))
    assert found.status is not Status.RECOVERED
    assert (angles(found.directions, E[:2]) <= 3 * found.errors).all()


@pytest.mark.parametrize(
    ("y", "told"),
    [
        (X6[:, 0] * X6[:, 1], "alike"),
        (np.exp(0.3 * X6[:, 0] + 0.6 * X6[:, 1]) + np.exp(0.4 * (X6[:, 2] + X6[:, 3])), "alike"),
        (np.exp(0.5 * (X6[:, 0] + X6[:, 1])) + np.exp(X6[:, 2]), "no block"),
    ],
    ids=["product", "weights", "single"],
)
def test_blocks_whose_coordinates_differ_are_not_called_exponential_units(y, told):
    found = revelu.recover_lowest_layer(X=X6, y=y, activation="exp")
    assert found.status is Status.PARTIAL
    assert any(told in text for text in found.evidence)


def test_one_input_has_no_blocks():
    found = revelu.recover_lowest_layer(X=X6[:, :1], y=np.exp(X6[:, 0]), activation="exp")
    assert found.status is Status.PARTIAL
    assert not len(found.directions)


@pytest.mark.parametrize("unit", [1e-100, 1e25])
def test_the_unit_of_answers_does_not_matter(unit):
    found = revelu.recover_lowest_layer(X=X6, y=unit * TWO_RAMPS)
    assert found.status is Status.RECOVERED
    assert angles(found.directions, E[:2]).max() < 1e-10


def test_answers_that_are_not_even_have_no_even_units():
    found = revelu.recover_lowest_layer(None, X6, TWO_RAMPS, "even", 2)
    assert found.status is Status.NOT_IN_CLASS
    assert "odd" in found.evidence[0]


# -- biased samples -------------------------------------------------------------------------


def test_samples_kept_by_value_show_directions_without_answers():
    """GP18, B.6."""
    W = np.linalg.qr(np.random.default_rng(4).standard_normal((5, 2)))[0].T
    X = normal(400_000, 5, seed=3)
    f = (1.0 / (1.0 + np.exp(4.0 - 2.0 * (X @ W.T)))).sum(axis=1)
    kept = X[np.random.default_rng(5).random(len(X)) < f / 2.0]
    found = revelu.recover_lowest_layer(X=kept, activation="relu", n_neurons=2, biased=True)
    assert found.status is Status.PARTIAL
    rows, _ = match_rows(found.directions, W)
    off = np.linalg.norm(found.directions[rows] - W, axis=1)
    assert off.max() < min(5 * found.errors.max(), 0.3)
    few = revelu.recover_lowest_layer(X=kept[:60], activation="relu", n_neurons=2, biased=True)
    assert (few.errors <= 0.5).all()
    assert "certifies" in few.evidence[0]


@pytest.mark.parametrize(
    "arguments",
    [
        {"X": normal(9, 3), "y": np.ones(9)},
        {"target": len, "dim_in": 3},
        {"X": normal(9, 3), "activation": "exp"},
        {"X": normal(9, 3), "n_neurons": 4},
        {"X": [1.0, 2.0]},
        {"X": [[1.0, np.nan]]},
        {"X": 3.0},
    ],
)
def test_biased_samples_are_inputs_alone(arguments):
    with pytest.raises(revelu.ReveluError):
        revelu.recover_lowest_layer(biased=True, **arguments)


def test_more_units_than_moments_afford_are_refused():
    X = normal(100, 40)
    with pytest.raises(revelu.InputError, match="32"):
        revelu.recover_lowest_layer(X=X, y=X[:, 0], n_neurons=33)
