"""The oracle: what it counts, what it refuses, what it names."""

import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revelu.errors import InputError, LimitReachedError, SaturatedError, TargetError
from revelu.network import Network, zoo
from revelu.oracle import Float32, Oracle, degrade, measure_noise
from revelu.oracle.log_ratios import (
    are_probabilities,
    log_ratios,
    smallest_with_digits,
)


class Counting:
    """A target that counts the rows that reach it."""

    def __init__(self):
        self.rows = 0

    def __call__(self, X):
        self.rows += len(X)
        return X.sum(axis=1)


@given(
    sizes=st.lists(st.integers(0, 40), max_size=12),
    budget=st.integers(0, 150),
    batch_rows=st.integers(1, 17),
)
def test_never_one_query_over_the_budget(sizes, budget, batch_rows):
    target = Counting()
    oracle = Oracle(target, 3, budget=budget, batch_rows=batch_rows)
    for n in sizes:
        if oracle.affords(n):
            oracle(np.zeros((n, 3)))
        else:
            with pytest.raises(LimitReachedError):
                oracle(np.zeros((n, 3)))
    assert target.rows == oracle.n_queries <= budget


def test_phases_and_rounds_are_booked():
    oracle = Oracle(Counting(), 2)
    oracle(np.zeros((3, 2)))
    with oracle.phase("verify"):
        oracle(np.zeros((4, 2)))
        with oracle.phase("repair"):
            oracle(np.zeros((1, 2)))
    with oracle.round():
        oracle(np.zeros((2, 2)))
        oracle(np.zeros((2, 2)))
    ledger = oracle.ledger()
    assert dict(ledger.by_phase) == {
        "noise": 0,
        "recover": 7,
        "repair": 1,
        "polish": 0,
        "verify": 4,
    }
    assert (ledger.n_queries, ledger.n_rounds, ledger.n_recovery) == (12, 4, 8)


def test_an_unknown_phase_is_named():
    oracle = Oracle(Counting(), 2)
    with pytest.raises(InputError, match="unknown phase 'other'"), oracle.phase("other"):
        pass


def test_the_box_is_kept():
    target = Counting()
    oracle = Oracle(target, 2, box=(0.0, 1.0))
    oracle(np.array([[0.0, 1.0]]))
    with pytest.raises(InputError, match=r"row 1 of the queries leaves the box \[0, 1\]"):
        oracle(np.array([[0.5, 0.5], [0.5, 1.1]]))
    assert target.rows == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda X: np.where(np.arange(len(X)) == 2, np.nan, 1.0), "nan in output 0 to row 2"),
        (lambda X: np.full(len(X), np.inf), "inf in output 0 to row 0"),
        (lambda X: np.zeros(len(X) + 1), r"shape \(6,\) to 5 queries"),
        (lambda X: np.zeros((len(X), 2, 2)), r"shape \(5, 2, 2\)"),
        (lambda _: "text", "not real numbers"),
        (lambda X: X[:, 0] * 1j, "complex128 values, not real numbers"),
        (lambda X: np.ma.masked_array(X[:, 0]), "masked numbers"),
        (lambda _: [[1.0], [2.0, 3.0]], "not numbers"),
        (lambda _: sys.exit(0), "SystemExit"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_nonsense_answers_are_named(answer, words):
    with pytest.raises(TargetError, match=words):
        Oracle(answer, 3)(np.zeros((5, 3)))


def test_a_change_of_width_is_named():
    widths = iter([1, 2])
    oracle = Oracle(lambda X: np.zeros((len(X), next(widths))), 3)
    oracle(np.zeros((1, 3)))
    with pytest.raises(TargetError, match="2 outputs after 1"):
        oracle(np.zeros((1, 3)))


@pytest.mark.parametrize(
    "arguments",
    [
        {"dim_in": 0},
        {"dim_in": 2.5},
        {"budget": -1},
        {"box": (1.0, 0.0)},
        {"box": (0.0, np.inf)},
        {"batch_rows": 0},
    ],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(InputError):
        Oracle(Counting(), **{"dim_in": 2, **arguments})


@pytest.mark.parametrize("X", [np.zeros(3), np.zeros((1, 4)), np.full((1, 3), np.nan)])
def test_bad_queries_are_refused_unasked(X):
    target = Counting()
    with pytest.raises(InputError):
        Oracle(target, 3)(X)
    assert target.rows == 0


def test_time_limits_stop_the_next_batch():
    times = iter([0.0, 0.0, 1.0, 1.0, 3.0])
    oracle = Oracle(Counting(), 2, max_seconds=2.0, clock=lambda: next(times))
    oracle(np.zeros((1, 2)))
    oracle(np.zeros((1, 2)))
    with pytest.raises(LimitReachedError, match="seconds"):
        oracle(np.zeros((1, 2)))
    assert oracle.n_queries == 2


@pytest.mark.parametrize("kind", ["threads", "spawned processes"])
def test_executors_give_the_same_answers(kind):
    network = zoo.random_network([6, 5, 2], seed=3)
    X = np.random.default_rng(0).standard_normal((50, 6))
    pool = (
        ThreadPoolExecutor(2)
        if kind == "threads"
        else ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    )
    with pool as executor:
        oracle = Oracle(network, 6, executor=executor, batch_rows=7)
        Y = oracle(X)
    assert oracle.n_queries == 50
    np.testing.assert_array_equal(Y, Oracle(network, 6, batch_rows=7)(X))


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_log_ratios_are_logit_differences(k, seed):
    z = 3 * np.random.default_rng(seed).standard_normal((10, k))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    assert are_probabilities(p, 2.2e-16).all()
    assert not are_probabilities(1.01 * p, 2.2e-16).any()
    np.testing.assert_allclose(log_ratios(p), z[:, :-1] - z[:, -1:], atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_digits_of_two_classes_end_where_float64_took_them_from_1(scale):
    z = scale * np.linspace(-5.0, 5.0, 57) + 0.01
    p = 1.0 / (1.0 + np.exp(-z))
    of_float32 = np.column_stack([1.0 - p, p]).astype(np.float32).astype(float)
    smallest = smallest_with_digits(of_float32, np.finfo(np.float32))
    ratios = log_ratios(of_float32, smallest)[:, 0]
    seen = np.isfinite(ratios)
    assert seen.sum() > 20
    np.testing.assert_allclose(ratios[seen], -z[seen], atol=3e-7)


def test_saturated_probabilities_are_infinite_not_wrong():
    assert np.isinf(log_ratios(np.array([[1.0, 0.0, 0.0]]))).all()


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("d", [1, 10, 784])
def test_the_noise_floor_of_float64_is_rounding(scale, d):
    network = zoo.random_network([d, 20, 3], seed=d)
    oracle = Oracle(lambda X: scale * network(X), d)
    noise = measure_noise(oracle, 0)
    assert oracle.ledger().by_phase["noise"] == oracle.n_queries <= 64
    assert noise.law == "float64"
    assert noise.is_deterministic
    assert noise.curved == 0.0
    assert np.finfo(float).eps / 4 <= noise.nu.max() <= 200 * np.finfo(float).eps
    X = np.random.default_rng(1).standard_normal((2000, d))
    size = np.sqrt((oracle(X) ** 2).mean(axis=0))
    assert (noise.scale < 10 * size).all()
    assert (noise.scale > size / 10).all()


@pytest.mark.parametrize("sigma", [1e-9, 1e-6, 1e-3])
def test_the_noise_floor_finds_a_known_noise(sigma):
    rng = np.random.default_rng(5)
    network = zoo.random_network([8, 12, 1], seed=2)
    oracle = Oracle(lambda X: network(X) + sigma * rng.standard_normal((len(X), 1)), 8)
    noise = measure_noise(oracle, 1)
    assert noise.law == "random"
    # 104 degrees of freedom: three standard errors are a fifth.
    assert sigma / 1.2 < noise.errors[0] < 1.2 * sigma
    assert oracle.ledger().by_phase["noise"] == oracle.n_queries <= 256


def in_float32(network):
    """A network that computes in float32 throughout."""
    layers = [
        (W.astype(np.float32), b.astype(np.float32))
        for W, b in zip(network.weights, network.biases, strict=True)
    ]

    def answer(X):
        H = X.astype(np.float32)
        for W, b in layers[:-1]:
            H = np.maximum(H @ W.T + b, np.float32(0.0))
        W, b = layers[-1]
        return H @ W.T + b

    return answer


@pytest.mark.parametrize("widths", [(8, 12, 3), (64, 1, 3), (64, 32, 10), (20, 10, 40, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_the_noise_floor_of_float32_is_its_error_whatever_the_places(widths, seed):
    network = zoo.random_network(widths, seed=seed)
    oracle = Oracle(in_float32(network), widths[0])
    X = np.random.default_rng(9).standard_normal((3000, widths[0])).astype(np.float32)
    weights, biases = (
        [A.astype(np.float32).astype(float) for A in arrays]
        for arrays in (network.weights, network.biases)
    )
    truth = Network(weights, biases)
    off = oracle(X) - truth(X.astype(float))
    # Where no neuron is on, nothing errs.
    errors = np.sqrt((off**2).mean(axis=0, where=off != 0.0))
    n_before = oracle.n_queries
    noise = measure_noise(oracle, seed + 100)  # other numbers than the weights
    assert oracle.n_queries - n_before <= 256
    # Twice as much, for the places where it errs most, with a standard error of a seventh.
    ratios = noise.errors / errors
    assert 1.2 < np.median(ratios) < 2.8
    assert ratios.min() > 1.0
    assert ratios.max() < 3.6


def test_a_small_budget_leaves_less_of_the_noise_floor():
    network = zoo.random_network([8, 12, 2], seed=2)
    oracle = Oracle(degrade(network, Float32()), 8, budget=100)
    assert measure_noise(oracle, 1).law == "float32"
    assert oracle.n_queries == 64


def test_float32_answers_are_recognised():
    network = zoo.random_network([8, 12, 2], seed=2)
    noise = measure_noise(Oracle(lambda X: network(X).astype(np.float32), 8), 1)
    assert noise.law == "float32"
    assert noise.is_deterministic
    assert 1e-9 < noise.nu.max() < 1e-6


@pytest.mark.parametrize("function", [np.sin, np.square, np.arctan])
def test_smooth_functions_curve(function):
    W = np.random.default_rng(0).standard_normal((4, 3)) / 2
    noise = measure_noise(Oracle(lambda X: function(X @ W), 4), 1)
    assert noise.curved >= 0.5


def test_a_target_that_returns_nothing_is_told_so():
    with pytest.raises(TargetError, match="answered None"):
        Oracle(lambda _: None, 3)(np.zeros((2, 3)))


@pytest.mark.parametrize(("size", "flow"), [(1e200, "overflow"), (1e-200, "underflow")])
def test_answers_that_cannot_be_squared_are_said_to_be_too_large_or_too_small(size, flow):
    network = zoo.random_network([4, 3, 1], seed=1)
    with pytest.raises(TargetError, match=f"squares {flow}"):
        measure_noise(Oracle(lambda X: network(X) * size, 4), 1)


def test_a_failure_without_words_ends_with_its_name():
    def fail(_):
        raise MemoryError

    with pytest.raises(TargetError, match=r"failed on a query: MemoryError$"):
        Oracle(fail, 3)(np.zeros((2, 3)))


def test_queries_that_were_answered_with_nonsense_were_answered():
    oracle = Oracle(lambda X: np.where(X[:, :1] > 5.0, np.inf, X[:, :1]), 3)
    oracle(np.zeros((7, 3)))
    with pytest.raises(TargetError):
        oracle(np.full((4, 3), 9.0))
    assert (oracle.n_queries, oracle.n_answered) == (11, 11)


@pytest.mark.parametrize("places", [3, 4])
def test_probabilities_that_rounding_makes_0_are_not_said_to_have_lost_digits(places):
    network = zoo.random_network([6, 8, 3], seed=1)

    def target(X):
        Y = 40.0 * network(X)
        P = np.exp(Y - Y.max(axis=1, keepdims=True))
        return np.round(P / P.sum(axis=1, keepdims=True), places)

    with pytest.raises(SaturatedError, match=f"rounding to {places} decimal places makes 0"):
        measure_noise(Oracle(target, 6), 0)


def refusing(X):
    if np.abs(X).max() > 10.0:
        raise ValueError("inputs out of range")
    return X.sum(axis=1)


def test_a_function_that_refuses_values_is_met_with_the_option_that_stays_inside():
    oracle = Oracle(refusing, 3)
    with pytest.raises(TargetError, match=r"inputs out of range$"):
        oracle(np.full((1, 3), 11.0))  # which may refuse all of them
    oracle(np.ones((1, 3)))
    with pytest.raises(TargetError, match=r"out of range; .* --box LO HI, or --like DATA$"):
        oracle(np.full((1, 3), 11.0))


def test_whether_a_row_is_answered_takes_one_query():
    oracle = Oracle(refusing, 3, budget=2)
    assert [oracle.is_answered(np.full(3, x)) for x in (1.0, 11.0)] == [True, False]
    assert oracle.n_queries == 2
    with pytest.raises(LimitReachedError):
        oracle.is_answered(np.ones(3))
