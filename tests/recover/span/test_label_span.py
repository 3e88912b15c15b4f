"""Spans from labels alone, against known truth, with a budget of queries beside each."""

from functools import partial

import numpy as np
import pytest

import revelu
from revelu.oracle import Float32, Labels, Oracle, Rounded, degrade
from revelu.tasks import span as task

Status = revelu.Status


def threshold(widths, seed, share=0.3):
    """A 0/1 answer of a tanh network that is 1 for a share of N(0, I)."""
    target = revelu.zoo.tanh_network(widths, seed=seed)
    X = np.random.default_rng(99).standard_normal((4000, widths[0]))
    at = float(np.quantile(target(X), 1.0 - share))
    truth = revelu.zoo.random_network(widths, seed=seed).weights[0]
    return (lambda X: (target(X) >= at).astype(float)), truth


@pytest.mark.parametrize("seed", range(3))
def test_threshold_of_a_smooth_network(seed):
    target, truth = threshold([20, 5, 1], 500 + seed)
    found = revelu.recover_span(target, labels=True, dim_in=20, seed=seed, checks=100)
    assert (found.status, found.span.rank) == (Status.RECOVERED, 5)
    assert found.span.angles(truth).max() < 1e-7
    assert found.ledger.by_phase["recover"] <= 25_000


def test_threshold_that_few_inputs_pass():
    target, truth = threshold([12, 3, 1], 4, share=0.01)
    found = revelu.recover_span(target, labels=True, dim_in=12, seed=1, checks=100)
    assert (found.status, found.span.rank) == (Status.RECOVERED, 3)
    assert found.span.angles(truth).max() < 1e-6


@pytest.mark.parametrize(("widths", "queries"), [([30, 6, 4], 25_000), ([30, 8, 6, 5], 35_000)])
@pytest.mark.parametrize("seed", range(2))
def test_labels_of_a_relu_classifier(widths, queries, seed):
    truth = revelu.zoo.random_network(widths, seed=600 + seed)
    target = degrade(truth, Labels())
    found = revelu.recover_span(target, labels=True, seed=seed, checks=100)
    assert (found.status, found.span.rank) == (Status.RECOVERED, widths[1])
    assert found.span.angles(truth.weights[0]).max() < 1e-8
    assert found.ledger.by_phase["recover"] <= queries
    assert found.details["smooth"] is False


def test_labels_of_a_smooth_classifier():
    target = degrade(revelu.zoo.tanh_network([20, 5, 4], seed=3), Labels())
    truth = revelu.zoo.random_network([20, 5, 4], seed=3).weights[0]
    found = revelu.recover_span(target, labels=True, dim_in=20, seed=1, checks=100)
    assert (found.status, found.span.rank) == (Status.RECOVERED, 5)
    assert found.span.angles(truth).max() < 1e-7
    assert found.details["smooth"] is True


def test_logits_are_used_as_labels_only():
    truth = revelu.zoo.random_network([15, 4, 3], seed=8)
    found = revelu.recover_span(truth, labels=True, seed=1, checks=50)
    from_labels = revelu.recover_span(degrade(truth, Labels()), labels=True, seed=1, checks=50)
    np.testing.assert_array_equal(found.span.basis, from_labels.span.basis)
    assert found.ledger == from_labels.ledger


def test_one_label_everywhere_is_a_status_with_advice():
    found = revelu.recover_span(lambda X: np.ones(len(X)), labels=True, dim_in=4)
    assert (found.status, found.span.rank) == (Status.PARTIAL, 0)
    assert "no border" in " ".join(found.evidence)


def test_labels_that_change_when_asked_again():
    rng = np.random.default_rng(1)
    found = revelu.recover_span(lambda X: rng.integers(2, size=len(X)), labels=True, dim_in=4)
    assert found.status is Status.NOT_DETERMINISTIC


def test_labels_that_depend_on_the_input_as_if_at_random():
    def hashed(X):
        return (np.floor(1e9 * np.sin(1e6 * X.sum(axis=1))) % 2).astype(float)

    found = revelu.recover_span(hashed, labels=True, dim_in=4, budget=200_000)
    assert found.status is Status.NOT_DETERMINISTIC
    assert found.span.rank == 0


def test_numbers_are_no_labels():
    with pytest.raises(revelu.InputError, match="no label"):
        revelu.recover_span(revelu.zoo.random_network([4, 2, 1]), labels=True)


def test_full_rank_is_said():
    target, _ = threshold([4, 6, 1], 3)
    found = revelu.recover_span(target, labels=True, dim_in=4)
    assert (found.status, found.span.rank) == (Status.RECOVERED, 4)
    assert "no null space" in " ".join(found.evidence)


def test_a_weak_neuron_beside_strong_ones_is_found_within_the_budget():
    # Its slopes are a thousandth of those along the others, where places wait for better ones.
    truth = revelu.zoo.tanh_network((20, 5, 1), seed=41_000_007)
    W = revelu.zoo.random_network((20, 5, 1), seed=41_000_007).weights[0]
    X = np.random.default_rng([41_000_007, 1]).standard_normal((4000, 20))
    at = np.quantile(truth(X), 0.7)
    found = revelu.recover_span(
        lambda Z: (truth(Z) >= at).astype(float), labels=True, dim_in=20, seed=41_000_007
    )
    assert found.status is Status.RECOVERED
    assert found.span.angles(W).max() < 1e-6
    assert found.ledger.by_phase["recover"] <= 9_000


@pytest.mark.parametrize("budget", [0, 40, 1000, 5000])
def test_budget_is_never_exceeded(budget):
    target, _ = threshold([20, 5, 1], 500)
    oracle = Oracle(target, 20, budget=budget)
    found = revelu.recover_span(oracle, labels=True)
    assert found.status is Status.BUDGET_EXHAUSTED
    assert oracle.n_queries == found.ledger.n_queries <= budget
    assert found.ledger.by_phase["recover"] == found.ledger.n_queries


def test_rounds_count_what_can_be_asked_together():
    target, _ = threshold([20, 5, 1], 500)
    found = revelu.recover_span(target, labels=True, dim_in=20, checks=50)
    # Bisections run side by side: far fewer rounds than queries.
    assert found.ledger.n_rounds < found.ledger.n_queries / 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4])
@pytest.mark.parametrize("digits", [3, 5])
def test_labels_of_rounded_scores_show_no_spurious_direction(digits, seed):
    # Beside a border of such labels there are hundreds, and a height may be of any of them.
    truth = revelu.zoo.random_network([20, 5, 4, 3], seed=seed)
    target = degrade(degrade(truth, Rounded(digits)), Labels())
    found = revelu.recover_span(target, labels=True, dim_in=20, seed=5, checks=50, budget=60_000)
    assert found.span.rank <= 5
    assert found.span.angles(truth.weights[0]).max(initial=0.0) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_float32_labels_show_the_span_and_how_far_off_it_is(seed):
    truth = revelu.zoo.random_network([20, 5, 4, 3], seed=seed)
    target = degrade(degrade(truth, Float32()), Labels())
    found = revelu.recover_span(target, labels=True, dim_in=20, seed=5, checks=50)
    assert found.span.rank == 5
    angle = found.span.angles(truth.weights[0]).max()
    assert angle < 1e-2
    assert angle / 5 < found.details["expected_angle"] < 20 * angle
    assert found.ledger.by_phase["recover"] <= 30_000


def test_a_span_that_is_far_off_is_not_said_to_miss_directions(monkeypatch):
    strict = partial(task._Job, largest_angle=1e-16)
    monkeypatch.setattr(task, "_Job", strict)
    truth = revelu.zoo.random_network([12, 4, 3, 3], seed=1)
    found = revelu.recover_span(truth, labels=True, seed=1, checks=50)
    assert (found.status, found.span.rank) == (Status.UNVERIFIED, 4)
    assert found.certificate.passed
    said = " ".join(found.evidence)
    assert "no fresh move" in said
    assert "directions are missing" not in said


def test_expected_angle_is_about_the_angle():
    truth = revelu.zoo.random_network([30, 8, 6, 5], seed=600)
    found = revelu.recover_span(degrade(truth, Labels()), labels=True, seed=1, checks=50)
    ratio = found.details["expected_angle"] / found.span.angles(truth.weights[0]).max()
    assert 0.1 < ratio < 10.0


@pytest.mark.slow
@pytest.mark.parametrize("after_rows", [2_000, 9_000])
@pytest.mark.parametrize("logits", [False, True])
def test_a_model_that_changes_midway_is_named(tmp_path, after_rows, logits):
    networks = [revelu.zoo.random_network([30, 6, 4], seed=seed) for seed in (600, 601)]
    n_rows = 0

    def target(X):
        nonlocal n_rows
        n_rows += len(X)
        Y = networks[n_rows > after_rows](X)
        return Y if logits else Y.argmax(axis=1).astype(float)

    with (
        revelu.open_oracle(target, dim_in=30, journal=tmp_path / "run.db") as oracle,
        pytest.raises(revelu.TargetError, match="has changed"),
    ):
        revelu.recover_span(oracle, labels=True, seed=1, checks=50)
    assert oracle.n_queries < after_rows + 40_000


@pytest.mark.slow
def test_labels_that_stay_are_watched_at_little_cost(tmp_path):
    truth = degrade(revelu.zoo.random_network([30, 6, 4], seed=600), Labels())
    plain = revelu.recover_span(truth, labels=True, seed=1, checks=50)
    with revelu.open_oracle(truth, dim_in=30, journal=tmp_path / "run.db") as oracle:
        found = revelu.recover_span(oracle, labels=True, seed=1, checks=50)
    np.testing.assert_array_equal(found.span.basis, plain.span.basis)
    assert plain.ledger.n_queries < found.ledger.n_queries < 1.01 * plain.ledger.n_queries


def test_each_direction_has_its_error():
    truth = revelu.zoo.random_network([30, 8, 6, 5], seed=600)
    found = revelu.recover_span(degrade(truth, Labels()), labels=True, seed=1, checks=50)
    inside = revelu.Span(np.linalg.qr(truth.weights[0].T)[0].T).project(found.span.basis)
    off = np.linalg.norm(found.span.basis - inside, axis=1)
    assert (off < 6.0 * found.span.errors).all()
