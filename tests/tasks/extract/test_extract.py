"""The task from end to end: what every kind of target gets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax as softmax_of

import revelu
from revelu import Status
from revelu.network import zoo
from revelu.recover.method import Candidate, Why
from revelu.recover.shallow import OneHidden
from revelu.recovery import Certificate
from revelu.tasks.extract.attempt import Attempt
from revelu.tasks.extract.chain import _reported

W = np.random.default_rng(0).standard_normal((6, 3))


def error_of(recovery, function, d):
    X = np.random.default_rng(8).standard_normal((2000, d))
    return np.abs(recovery.network(X) - np.asarray(function(X)).reshape(2000, -1)).max()


@pytest.mark.parametrize("seed", range(5))
def test_a_network_comes_back_certified(seed):
    target = zoo.random_network([10, 12, 2], seed=seed)
    recovery = revelu.extract(target, seed=seed)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == target.architecture
    assert error_of(recovery, target, 10) <= recovery.certificate.tolerance
    assert recovery.certificate.n_checks == 3000
    assert recovery.ledger.by_phase["noise"] <= 64


def test_the_digits_come_back_on_the_digits_too():
    from sklearn.datasets import load_digits

    oracle = revelu.open_oracle("demo:digits")
    recovery = revelu.extract(oracle, seed=3)
    assert recovery.status is Status.RECOVERED
    assert recovery.ledger.n_recovery <= 0.25 * recovery.network.n_parameters
    pixels = load_digits().data / 16.0
    assert np.abs(recovery.network(pixels) - oracle(pixels)).max() < 1e-9


@pytest.mark.parametrize(
    ("name", "function", "status", "words"),
    [
        ("tanh", lambda X: np.tanh(X @ W).sum(axis=1), Status.NOT_IN_CLASS, "curve"),
        ("square", lambda X: (X @ W) ** 2, Status.NOT_IN_CLASS, "curve"),
        ("step", lambda X: (X @ W > 0) * 1.0, Status.NOT_IN_CLASS, "jump"),
        (
            "random",
            zoo.OUTSIDE["random_answers"]([6, 3, 1], seed=1),
            Status.NOT_DETERMINISTIC,
            "same",
        ),
    ],
)
def test_what_is_not_such_a_network_is_never_called_recovered(name, function, status, words):
    recovery = revelu.extract(function, dim_in=6)
    assert recovery.status is status, name
    assert recovery.network is None
    assert any(words in sentence for sentence in recovery.evidence)


@pytest.mark.slow
def test_deeper_networks_are_recovered_or_said_not_to_be():
    depths = [
        [5, 6, 4, 1],
        [10, 10, 10, 1],
        [4, 12, 2, 1],
        [8, 3, 9, 5],
        [6, 5, 5, 5, 1],
        [3, 4, 1, 1],
    ]
    n_recovered = 0
    for seed, widths in enumerate(depths):
        target = zoo.random_network(widths, seed=seed)
        recovery = revelu.extract(target, seed=seed)
        if recovery.status is Status.RECOVERED:
            n_recovered += 1
            assert error_of(recovery, target, widths[0]) < 1e-6, widths
    assert n_recovered >= 5  # of 6; all when this was written


@pytest.mark.parametrize("k", [1, 3])
def test_affine_and_constant_targets_have_width_0(k):
    for function in (lambda X: X @ W[:, :k] + 2.0, lambda X: np.full((len(X), k), 0.5)):
        recovery = revelu.extract(function, dim_in=6)
        assert recovery.status is Status.RECOVERED
        assert recovery.network.architecture == (6, 0, k)
        assert error_of(recovery, function, 6) < 1e-12


def test_leaky_units_are_networks_with_a_skip():
    recovery = revelu.extract(lambda X: np.where(X @ W > 0, X @ W, 0.1 * (X @ W)), dim_in=6)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.skip is not None
    assert recovery.network.describe().endswith("LeakyReLU(0.1)")


def test_probabilities_are_recovered_as_logits():
    target = zoo.random_network([8, 10, 4], seed=6)

    def softmax(X):
        z = np.exp(target(X) - target(X).max(axis=1, keepdims=True))
        return z / z.sum(axis=1, keepdims=True)

    recovery = revelu.extract(softmax, dim_in=8)
    assert recovery.status is Status.RECOVERED
    assert recovery.details["probabilities"]
    X = np.random.default_rng(1).standard_normal((500, 8))
    logits = target(X)
    np.testing.assert_allclose(
        recovery.network(X), logits - logits[:, -1:], atol=recovery.certificate.tolerance
    )
    assert any("probabilities" in warning for warning in recovery.warnings)


@settings(max_examples=30)
@given(budget=st.integers(0, 900), seed=st.integers(0, 5))
def test_the_budget_is_never_exceeded(budget, seed):
    rows = []
    network = zoo.random_network([7, 9, 1], seed=seed)

    def target(X):
        rows.append(len(X))
        return network(X)

    recovery = revelu.extract(target, dim_in=7, budget=budget, checks=200)
    assert sum(rows) == recovery.ledger.n_queries <= budget
    if recovery.status is Status.RECOVERED:
        assert error_of(recovery, network, 7) <= recovery.certificate.tolerance
    else:
        assert budget < 600  # it costs 430
        assert recovery.status is Status.BUDGET_EXHAUSTED


def test_the_same_seed_asks_the_same_and_finds_the_same():
    def run(executor=None):
        asked = []
        network = zoo.random_network([9, 11, 2], seed=4)

        def target(X):
            asked.append(X.copy())
            return network(X)

        return revelu.extract(target, dim_in=9, seed=7, executor=executor), asked

    first, asked = run()
    second, asked_again = run()
    assert first.network == second.network
    assert all(np.array_equal(a, b) for a, b in zip(asked, asked_again, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(zoo.KINDS))
def test_no_kind_of_network_is_silently_wrong(kind):
    n_recovered = 0
    for seed in range(4):
        target = zoo.KINDS[kind]([8, 12, 1 + seed], seed=seed)
        d = target.dim_in
        recovery = revelu.extract(target, seed=seed)
        if recovery.status is not Status.RECOVERED:
            assert recovery.evidence
            continue
        n_recovered += 1
        X = np.random.default_rng(3).standard_normal((2000, d))
        size = max(np.abs(target(X)).max(), 1e-300)
        assert error_of(recovery, target, d) <= 1e-6 * size, seed
    # Of 4; one of the near duplicates was told to be missed when this was written.
    assert n_recovered >= (2 if kind == "near_duplicates" else 3)


@pytest.mark.parametrize("width", [1e-1, 1e-2])
def test_bumps_that_bisection_cannot_see_are_found_by_the_certificate(width):
    target = zoo.with_bumps([4, 9, 1], n_bumps=1, width=width, seed=2)
    recovery = revelu.extract(target, seed=1)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture[1] == 9
    assert error_of(recovery, target, 4) <= recovery.certificate.tolerance


@pytest.mark.parametrize(
    "arguments",
    [
        {"method": "magic"},
        {"checks": 0},
        {"seed": -1},
        {"seed": 1.5},
        {"budget": -3},
        {"polish": 1},
        {"box": (1, 0)},
        {"box": (0, 1), "method": "leaky"},
        {"inputs": np.zeros((2, 7))},
    ],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(revelu.InputError):
        revelu.extract(zoo.random_network([8, 4, 1], seed=0), **arguments)


def test_progress_is_told_with_its_ledger():
    seen = []
    recovery = revelu.extract(zoo.random_network([6, 5, 1], seed=0), progress=seen.append)
    counts = [event.n_queries for event in seen]
    assert counts == sorted(counts)
    assert counts[-1] == recovery.ledger.n_queries
    assert {"noise", "recover", "verify"} <= {event.phase for event in seen}


@pytest.mark.parametrize("seed", range(3))
def test_two_classes_whose_second_probability_is_one_minus_the_first(seed):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 5))
    model = LogisticRegression().fit(X, X @ rng.standard_normal(5) > 0.3)
    recovery = revelu.extract(model.predict_proba, dim_in=5, seed=seed)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == (5, 0, 2)
    fresh = rng.standard_normal((100, 5))
    logits = recovery.network(fresh)
    np.testing.assert_allclose(
        logits[:, 1] - logits[:, 0], model.decision_function(fresh), atol=1e-9
    )


def test_a_certificate_too_small_to_say_anything_is_not_called_recovered():
    target = zoo.random_network([6, 12, 3], seed=1)
    spent = revelu.extract(target, checks=1).ledger
    budget = spent.by_phase["noise"] + spent.n_recovery + 40
    recovery = revelu.extract(target, budget=budget)
    assert recovery.status is Status.BUDGET_EXHAUSTED
    assert 0 < recovery.certificate.n_checks < 59
    assert error_of(recovery, target, 6) < 1e-7


def test_a_saturated_classifier_is_a_status_with_advice():
    def certain(X):
        p = np.where(X[:, 0] > 0, 1e-310, 1.0)
        return np.stack([p, 1.0 - p], axis=1)

    recovery = revelu.extract(certain, dim_in=3)
    assert recovery.status is Status.UNVERIFIED
    assert any("saturated" in sentence for sentence in recovery.evidence)


def test_rows_with_a_single_one_are_labels_and_that_is_said():
    recovery = revelu.extract(lambda X: np.eye(2)[(X[:, 0] > 0) * 1], dim_in=3)
    assert recovery.status is Status.RECOVERED
    assert recovery.method == "labels"
    assert recovery.network.architecture == (3, 0, 1)
    assert any("taken for labels" in said for said in recovery.warnings)


def relu_network(seed=1):
    """A callable with 5 inputs that shares nothing with the package."""
    rng = np.random.default_rng(seed)
    inner, shift, outer = (
        rng.standard_normal((8, 5)),
        rng.standard_normal(8),
        rng.standard_normal(8),
    )
    return lambda X: np.maximum(X @ inner.T + shift, 0) @ outer


@pytest.mark.parametrize("threshold", [0.5, 1.0, 2.0])
def test_a_classifier_that_saturates_where_its_network_does_not_fails(threshold):
    target = zoo.random_network([10, 2, 3], seed=12)

    def probabilities(X):
        z = np.exp(target(X) - target(X).max(axis=1, keepdims=True))
        p = z / z.sum(axis=1, keepdims=True)
        p[X[:, 0] > threshold] = [0.0, 1.0, 0.0]
        return p

    assert revelu.extract(probabilities, dim_in=10).status is not Status.RECOVERED


@pytest.mark.slow
@pytest.mark.parametrize("offset", [1e3, 1e9, 1e12, 1e14])
def test_a_large_constant_buys_no_tolerance(offset):
    smooth = revelu.extract(lambda X: np.tanh(X[:, 0]) + offset, dim_in=5, budget=150)
    assert smooth.status is not Status.RECOVERED
    network = relu_network()
    recovery = revelu.extract(lambda X: network(X) + offset, dim_in=5)
    # Between them too many digits are lost for the exact methods.
    assert offset in {1e9, 1e12} or recovery.status is Status.RECOVERED
    if recovery.status is Status.RECOVERED:
        X = np.random.default_rng(0).standard_normal((2000, 5))
        error = np.abs(recovery.network(X)[:, 0] - (network(X) + offset)).max()
        # Of the largest constants hardly a digit is left: then to the rounding itself.
        assert error < max(1e-3 * network(X).std(), 8 * np.spacing(offset))


@pytest.mark.slow
def test_rounding_that_cancelling_terms_leave_is_not_taken_for_curves():
    # Rows of 1e-5 to 1e5: on much of a line the answers err by more than where they were measured.
    plain, rng = zoo.random_network([6, 6, 4, 2], seed=21), np.random.default_rng(21)
    hidden = [W * 10.0 ** rng.integers(-5, 6, (len(W), 1)) for W in plain.weights[:-1]]
    truth = revelu.Network([*hidden, plain.weights[-1]], plain.biases)
    recovery = revelu.extract(truth, seed=21, checks=300, budget=20_000)
    assert recovery.status is not Status.NOT_IN_CLASS


@pytest.mark.parametrize("sharpness", [1e2, 1e4])
def test_a_sharp_softplus_is_still_told_from_a_network(sharpness):
    rng = np.random.default_rng(0)
    W, b, a = rng.standard_normal((8, 5)), rng.standard_normal(8), rng.standard_normal((8, 1))
    softplus = lambda X: np.logaddexp(0.0, sharpness * (X @ W.T + b)) @ a  # noqa: E731
    recovery = revelu.extract(softplus, dim_in=5, seed=1)
    assert recovery.status is Status.NOT_IN_CLASS
    assert recovery.ledger.n_queries <= 3_000


@pytest.mark.slow
def test_a_function_without_end_of_kinks_ends():
    recovery = revelu.extract(lambda X: np.abs(X[:, 0] % 2 - 1), dim_in=3)
    assert recovery.status is Status.NOT_IN_CLASS
    assert recovery.ledger.n_queries < 50_000


@pytest.mark.parametrize(("scale", "flow"), [(1e-200, "underflow"), (1e200, "overflow")])
def test_answers_whose_squares_overflow_are_named(scale, flow):
    network = relu_network()
    with pytest.raises(revelu.TargetError, match=f" {flow}"):
        revelu.extract(lambda X: scale * network(X), dim_in=5)


def test_a_target_may_reuse_its_buffers():
    network, buffer = relu_network(), np.empty(5000)

    def target(X):
        answers = buffer[: len(X)]
        answers[:] = network(X)
        X[:] = 0.0
        return answers

    assert revelu.extract(target, dim_in=5).status is Status.RECOVERED


@pytest.mark.parametrize("seed", range(8))
def test_every_constant_is_recovered(seed):
    recovery = revelu.extract(zoo.constant(9, 7, seed=seed), seed=seed)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == (9, 0, 7)


def test_one_column_of_probabilities_is_told_to_be_asked_with_the_others():
    W = np.random.default_rng(0).standard_normal((4, 3))

    def ask(X):
        return softmax_of(X @ W, axis=1)[:, 0]

    recovery = revelu.extract(ask, dim_in=4)
    assert recovery.status is Status.NOT_IN_CLASS
    assert "--link logit" in recovery.evidence[0]
    assert "ask for those of all" in recovery.evidence[0]
    assert recovery.ledger.n_queries == 64
    plain = revelu.extract(lambda X: 3.0 * ask(X), dim_in=4)
    assert "--link logit" not in plain.evidence[0]


def _attempt(nrmse, share, *, layers=()):
    network = zoo.random_network([3, 2, 1], seed=0)
    said = Candidate(network, Why.UNRESOLVED, layers=layers)
    certificate = Certificate(
        n_checks=3000,
        max_abs_error=1.0,
        nrmse=nrmse,
        fraction_within=share,
        tolerance=1e-6,
        confidence=0.95,
        statement="",
    )
    return Attempt(OneHidden(), said, Status.UNVERIFIED, certificate)


def test_of_networks_that_agree_nowhere_the_nearest_is_reported():
    near, far = _attempt(1e-3, 0.0), _attempt(5e-2, 0.01)
    assert _reported([near, far]) is near
    assert _reported([far, near]) is near


def test_a_network_that_agrees_at_most_inputs_is_reported_however_far_off_at_others():
    right, near = _attempt(5e-2, 0.9), _attempt(1e-3, 0.0)
    assert _reported([right, near]) is right
    layered = _attempt(5e-2, 0.1, layers=((np.eye(3), np.zeros(3)),))
    assert _reported([layered, near]) is layered
    assert _reported([layered, right]) is right
