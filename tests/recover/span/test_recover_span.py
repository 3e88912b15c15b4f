"""Spans from numbers, against known truth, with a budget of queries beside each."""

from functools import partial

import numpy as np
import pytest
from scipy.special import erf, expit

import revelu
from revelu.certify.null_space import check_null_space
from revelu.network.span import Span
from revelu.oracle import Float32, Labels, Noisy, Oracle, Rounded, degrade, measure_noise

Status = revelu.Status


def with_activation(network, activation, X):
    h = X
    for W, b in zip(network.weights[:-1], network.biases[:-1], strict=True):
        h = activation(h @ W.T + b)
    return h @ network.weights[-1].T + network.biases[-1]


ACTIVATIONS = {
    "tanh": np.tanh,
    "sigmoid": expit,
    "softplus": lambda z: np.logaddexp(0.0, z),
    "gelu": lambda z: z * 0.5 * (1.0 + erf(z / np.sqrt(2.0))),
}


@pytest.mark.parametrize(
    ("widths", "angle", "queries"),
    [
        ([30, 6, 1], 1e-9, 500),
        ([30, 6, 4, 3, 1], 1e-9, 700),
        ([100, 20, 10, 1], 1e-8, 2700),
        ([60, 20, 15, 10], 1e-8, 650),
        ([40, 12, 12], 1e-8, 620),
        ([25, 1, 1], 1e-9, 200),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(3))
def test_span_is_exact(widths, angle, queries, seed):
    truth = revelu.zoo.random_network(widths, seed=1000 + seed)
    found = revelu.recover_span(truth, seed=seed, checks=100)
    assert (found.status, found.span.rank) == (Status.RECOVERED, widths[1])
    assert found.span.angles(truth.weights[0]).max() < angle
    assert found.ledger.by_phase["recover"] <= queries
    assert found.certificate.passed
    assert found.certificate.n_checks == 100


def test_no_spurious_direction():
    for seed in range(15):
        truth = revelu.zoo.random_network([40, 8, 5, 1], seed=2000 + seed)
        found = revelu.recover_span(truth, seed=seed, checks=10)
        assert found.span.rank == 8
        assert found.span.angles(truth.weights[0]).max() < 1e-7


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("widths", [[20, 5, 1], [20, 6, 5, 4]], ids=str)
def test_smooth_networks(name, widths):
    truth = revelu.zoo.random_network(widths, seed=3)
    target = partial(with_activation, truth, ACTIVATIONS[name])
    found = revelu.recover_span(target, dim_in=20, seed=1, checks=100)
    assert (found.status, found.span.rank) == (Status.RECOVERED, widths[1])
    assert found.span.angles(truth.weights[0]).max() < 1e-6
    assert found.ledger.by_phase["recover"] <= 600


@pytest.mark.parametrize("smooth", [False, True])
def test_algorithm_1_asks_everything_in_one_round(smooth):
    truth = revelu.zoo.random_network([30, 6, 5, 1], seed=4)
    target = partial(with_activation, truth, np.tanh) if smooth else truth
    found = revelu.recover_span(target, dim_in=30, method="at_once", neurons=6, seed=1, checks=50)
    assert (found.status, found.span.rank) == (Status.RECOVERED, 6)
    assert found.span.angles(truth.weights[0]).max() < 1e-7
    # Two more rounds measure the noise, and one moves in the null space.
    assert found.ledger.n_rounds == 1 + 2 + 1
    assert found.span.singular_values[5] > 1e3 * found.span.singular_values[6]


@pytest.mark.parametrize(
    ("degradation", "angle"), [(Float32(), 1e-4), (Rounded(6), 1e-3)], ids=["float32", "6 digits"]
)
def test_answers_of_few_digits(degradation, angle):
    truth = revelu.zoo.random_network([40, 10, 6, 3], seed=5)
    found = revelu.recover_span(degrade(truth, degradation), seed=1, checks=100)
    assert (found.status, found.span.rank) == (Status.RECOVERED, 10)
    assert found.span.angles(truth.weights[0]).max() < angle
    assert found.ledger.by_phase["recover"] <= 4000


def test_probabilities_show_the_same_span():
    truth = revelu.zoo.random_network([20, 5, 4], seed=6)

    def softmax(X):
        E = np.exp(truth(X) - truth(X).max(axis=1, keepdims=True))
        return E / E.sum(axis=1, keepdims=True)

    found = revelu.recover_span(softmax, dim_in=20, seed=1, checks=100)
    assert (found.status, found.span.rank) == (Status.RECOVERED, 5)
    assert found.span.angles(truth.weights[0]).max() < 1e-7


def test_same_seed_same_span_and_another_seed_another_ledger():
    truth = revelu.zoo.random_network([20, 5, 4, 1], seed=7)
    first, again = (revelu.recover_span(truth, seed=3, checks=50) for _ in range(2))
    np.testing.assert_array_equal(first.span.basis, again.span.basis)
    assert first.ledger == again.ledger


def test_directions_that_no_neuron_reads_are_left_out():
    W = np.zeros((4, 10))
    W[:, :3] = np.random.default_rng(0).standard_normal((4, 3))
    truth = revelu.Network([W, np.ones((1, 4))], [np.zeros(4), np.zeros(1)])
    found = revelu.recover_span(truth, checks=50)
    assert (found.status, found.span.rank) == (Status.RECOVERED, 3)
    assert found.span.angles(np.eye(10)[:3]).max() < 1e-9


def test_full_rank_is_recovered_and_said():
    truth = revelu.zoo.random_network([6, 9, 1], seed=8)
    found = revelu.recover_span(truth, checks=50)
    assert (found.status, found.span.rank) == (Status.RECOVERED, 6)
    assert "no null space" in " ".join(found.evidence)
    with pytest.raises(revelu.InputError, match="no null space"):
        revelu.obfuscate(np.ones((1, 6)), found.span)


@pytest.mark.parametrize("value", [0.0, 3.25])
def test_constant_has_no_direction_and_says_dead(value):
    found = revelu.recover_span(lambda X: np.full(len(X), value), dim_in=5, checks=50)
    assert (found.status, found.span.rank) == (Status.RECOVERED, 0)
    assert "dead" in " ".join(found.evidence)


def test_dead_network_is_a_constant():
    truth = revelu.Network([np.eye(3, 8), np.ones((1, 3))], [np.full(3, -99.0), np.ones(1)])
    found = revelu.recover_span(truth, checks=50)
    assert found.span.rank == 0
    assert "dead" in " ".join(found.evidence)


def test_what_the_theorem_promises_is_said_only_without_a_certificate():
    truth = revelu.zoo.random_network([20, 5, 1], seed=1)
    whole = revelu.recover_span(truth, checks=50)
    assert whole.status is Status.RECOVERED
    assert "half" not in " ".join(whole.evidence)
    to_find = whole.ledger.n_queries - whole.ledger.by_phase["verify"]
    short = revelu.recover_span(Oracle(truth, 20, budget=to_find), checks=50)
    assert short.status is Status.BUDGET_EXHAUSTED
    assert short.span.rank
    assert "half" in " ".join(short.evidence)


def test_randomness_is_a_status():
    target = revelu.zoo.random_answers([5, 1], seed=1)
    assert revelu.recover_span(target, dim_in=5).status is Status.NOT_DETERMINISTIC
    noisy = degrade(revelu.zoo.random_network([5, 2, 1]), Noisy(0.5, seed=1))
    assert revelu.recover_span(noisy).status is Status.NOT_DETERMINISTIC


def test_labels_given_as_numbers_are_pointed_out():
    target = degrade(revelu.zoo.random_network([10, 4, 3], seed=1), Labels())
    found = revelu.recover_span(target)
    assert (found.status, found.span.rank) == (Status.PARTIAL, 0)
    assert "--labels" in " ".join(found.evidence)


def test_steps_have_no_gradient():
    target = revelu.zoo.step([6, 3, 1], seed=1)
    found = revelu.recover_span(target, dim_in=6, budget=20_000)
    assert found.status is not Status.RECOVERED


@pytest.mark.parametrize("budget", [0, 10, 64, 100, 500])
def test_budget_is_never_exceeded(budget):
    truth = revelu.zoo.random_network([50, 10, 5, 1], seed=9)
    oracle = Oracle(truth, 50, budget=budget)
    found = revelu.recover_span(oracle)
    assert found.status is Status.BUDGET_EXHAUSTED
    assert oracle.n_queries == found.ledger.n_queries <= budget
    inside = found.span.basis - revelu.Span(np.linalg.qr(truth.weights[0].T)[0].T).project(
        found.span.basis
    )
    assert np.abs(inside).max(initial=0.0) < 1e-8


def test_a_smaller_budget_shrinks_the_certificate():
    truth = revelu.zoo.random_network([20, 3, 1], seed=1)
    found = revelu.recover_span(truth, budget=600)
    assert found.status is Status.RECOVERED
    assert 50 < found.certificate.n_checks < 300


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"method": "magic"}, "magic"),
        ({"method": "at_once"}, "neurons"),
        ({"method": "at_once", "neurons": 0}, "neurons"),
        ({"method": "at_once", "neurons": 3, "labels": True}, "labels"),
        ({"checks": 0}, "checks"),
        ({"seed": -1}, "seed"),
        ({"progress": 3}, "progress"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(options, word):
    with pytest.raises(revelu.InputError, match=word):
        revelu.recover_span(revelu.zoo.random_network([3, 2, 1]), **options)


def test_box_and_missing_width_are_refused():
    with pytest.raises(revelu.InputError, match="box"):
        revelu.recover_span(Oracle(np.sum, 3, box=(0, 1)))
    with pytest.raises(revelu.InputError, match="dim_in"):
        revelu.recover_span(lambda X: X)


def test_progress_is_told():
    heard = []
    revelu.recover_span(revelu.zoo.random_network([9, 2, 1]), progress=heard.append, checks=50)
    assert heard[-1].n_queries == max(event.n_queries for event in heard)
    assert {"noise", "recover", "verify"} <= {event.phase for event in heard}


@pytest.mark.parametrize(
    ("degradation", "is_clear"),
    [(Float32(), True), (Rounded(4), True), (Rounded(3), False), (Noisy(1e-3, seed=1), False)],
    ids=str,
)
@pytest.mark.parametrize("seed", range(2))
def test_a_vague_span_is_not_recovered_and_a_clear_one_is(degradation, is_clear, seed):
    truth = revelu.zoo.random_network([30, 6, 5, 4], seed=seed)
    found = revelu.recover_span(degrade(truth, degradation), seed=5, checks=100)
    assert not is_clear or found.status is Status.RECOVERED
    if found.status is Status.RECOVERED:
        assert found.span.rank == 6
        assert found.span.angles(truth.weights[0]).max() < 1e-2


def test_a_vague_angle_forgives_no_missing_direction():
    truth = revelu.zoo.random_network([12, 4, 3, 1], seed=1)
    oracle = Oracle(truth, 12)
    noise = measure_noise(oracle, 0)
    whole = revelu.recover_span(truth, seed=1).span
    part = revelu.Span(whole.basis[:3])
    rng = np.random.default_rng(0)
    assert check_null_space(oracle, whole, 200, rng, noise, angle=1.0).passed
    assert not check_null_space(oracle, part, 200, rng, noise, angle=1.0).passed


def test_a_large_constant_or_a_long_tail_hides_no_change():
    truth = revelu.zoo.random_network([12, 4, 3, 1], seed=1)
    found = revelu.recover_span(lambda X: truth(X) + 1e9, dim_in=12, seed=1, checks=100)
    assert found.certificate.tolerance < 0.1 * truth(np.eye(12)).std() + 1e-2
    w = 3.0 * np.ones(12)
    tail = revelu.recover_span(lambda X: np.exp(X @ w), dim_in=12, seed=1, checks=100)
    assert tail.span.rank <= 1
    assert tail.status is not Status.RECOVERED or tail.span.rank == 1


@pytest.mark.parametrize("apart", [1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("seed", range(2))
def test_near_parallel_rows_are_said_to_be_known_less_well(apart, seed):
    truth = revelu.zoo.random_network([30, 6, 5, 4], seed=seed)
    W = truth.weights[0].copy()
    W[1] = W[0] + apart * W[1]
    target = revelu.Network([W, *truth.weights[1:]], truth.biases)
    found = revelu.recover_span(target, seed=5, checks=100)
    assert found.span.rank == 6
    angle = found.span.angles(W).max()
    assert angle < 5.0 * found.details["expected_angle"] < 500.0 * angle


def off_by(span, W):
    """How far each row of a span is from the rows of W, in radians."""
    outside = span.basis - Span(np.linalg.qr(W.T)[0].T).project(span.basis)
    return np.linalg.norm(outside, axis=1)


@pytest.mark.parametrize(
    ("degradation", "method"),
    [(Rounded(2), "auto"), (Noisy(1e-2, seed=1), "auto"), (Rounded(3), "at_once")],
    ids=str,
)
@pytest.mark.parametrize("seed", range(2))
def test_what_is_not_certified_is_marked_with_its_errors(degradation, method, seed):
    truth = revelu.zoo.random_network([20, 5, 4, 3], seed=seed)
    target = degrade(truth, degradation)
    found = revelu.recover_span(target, method=method, neurons=5, seed=5, checks=50)
    assert found.status is not Status.RECOVERED
    assert found.span.certified is False
    assert (off_by(found.span, truth.weights[0]) < 6.0 * found.span.errors).all()
    assert found.span.rank == 0 or "not certified" in " ".join(found.evidence)


def test_what_is_certified_is_marked_with_its_errors():
    truth = revelu.zoo.random_network([30, 8, 6, 3], seed=4)
    found = revelu.recover_span(truth, seed=5, checks=50)
    assert found.span.certified is True
    assert (off_by(found.span, truth.weights[0]) < 6.0 * found.span.errors).all()
