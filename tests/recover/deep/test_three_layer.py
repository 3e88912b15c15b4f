"""Two hidden layers from end to end: the truth, the costs, and what cannot be recovered."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import revelu
from revelu import Network, Status
from revelu.network import zoo
from revelu.oracle import Oracle, measure_noise
from revelu.recover.deep.narrow import TwoHidden
from revelu.recover.method import Why

# A neuron that fires on fewer inputs than this share, or is off on fewer, is one that the
# certificate may not see.
_LIVELY = 0.04


def activity(network, n=4000):
    """The share of N(0, I) on which each neuron of the last hidden layer fires."""
    h = np.random.default_rng(17).standard_normal((n, network.dim_in))
    for W, b in zip(network.weights[:-1], network.biases[:-1], strict=True):
        h = np.maximum(h @ W.T + b, 0.0)
    return (h > 0).mean(axis=0)


@cache
def lively(widths, seed):
    """A random network, every upper neuron of which changes its state on N(0, I)."""
    for trial in range(1000):
        network = zoo.random_network(list(widths), seed=1000 * seed + trial)
        shares = activity(network)
        if shares.min() > _LIVELY and shares.max() < 1.0 - _LIVELY:
            return network
    raise AssertionError


def error_of(found, truth, seed=8):
    X = np.random.default_rng(seed).standard_normal((2000, truth.dim_in))
    return np.abs(found(X) - truth(X)).max()


def first_rows(network):
    norms = np.linalg.norm(network.weights[0], axis=1)
    return np.column_stack([network.weights[0], network.biases[0]]) / norms[:, None]


def first_layer_errors(recovery, truth):
    """How far each row of the first layer kept is from the nearest true one, up to sign."""
    W, b = recovery.details["first_layer"]
    found, rows = np.column_stack([W, b]), first_rows(truth)
    apart = [np.abs(found[:, None] - s * rows).max(axis=2) for s in (1.0, -1.0)]
    return np.minimum(*apart).min(axis=1)


@pytest.mark.parametrize(
    ("widths", "n", "queries"),
    [
        ((10, 10, 10, 1), 3, 7.0),
        ((16, 8, 24, 1), 3, 8.0),
        ((6, 5, 4, 3), 4, 7.0),
        ((20, 8, 6, 2), 3, 4.0),
    ],
)
def test_shapes_are_recovered_within_their_budgets(widths, n, queries):
    costs, methods = [], []
    for seed in range(n):
        truth = lively(widths, seed + 1)
        recovery = revelu.extract(truth, seed=seed)
        assert recovery.status is Status.RECOVERED
        methods.append(recovery.method)
        assert recovery.network.architecture == widths
        assert recovery.network.skip is None
        assert error_of(recovery.network, truth) < 1e-7
        assert revelu.align(recovery.network, truth).max_parameter_error < 1e-7
        costs.append(recovery.ledger.n_recovery / truth.n_parameters)
        if methods[-1] == "two_hidden":
            assert first_layer_errors(recovery, truth).max() < 1e-7
    assert np.median(costs) <= queries
    assert methods.count("two_hidden") >= n - 1  # rounding may send one on to deep


def test_most_parameters_are_exact_to_their_last_digits():
    errors = []
    for seed in range(5):
        truth = lively((10, 10, 10, 1), seed + 20)
        recovery = revelu.extract(truth, seed=seed)
        errors.append(revelu.align(recovery.network, truth).max_parameter_error)
    assert np.median(errors) <= 1e-8


@pytest.mark.parametrize("method", ["auto", "two_hidden"])
def test_the_solver_and_the_task_find_the_same_network(method):
    truth = lively((8, 6, 6, 2), 3)
    oracle = Oracle(truth, 8)
    noise, rng = measure_noise(oracle, 1), np.random.default_rng(2)
    direct = TwoHidden().start(oracle, noise, rng, lambda _: None).propose()
    task = revelu.extract(truth, method=method, seed=1)
    assert direct.why is Why.EXPLAINED
    assert task.status is Status.RECOVERED
    assert task.method == "two_hidden"
    for found in (direct.network, task.network):
        assert revelu.align(found, truth).max_parameter_error < 1e-8


@pytest.mark.parametrize("widths", [(8, 12, 1), (20, 6, 3), (5, 3, 2)])
def test_auto_asks_of_one_hidden_layer_what_two_layer_asks(widths):
    for seed in range(3):
        truth = zoo.random_network(list(widths), seed=seed)
        auto, told = (revelu.extract(truth, method=m, seed=seed) for m in ("auto", "one_hidden"))
        assert auto.method == told.method == "one_hidden"
        assert auto.ledger.by_phase == told.ledger.by_phase
        assert auto.network == told.network


def test_two_layer_refuses_two_hidden_layers_and_auto_says_what_that_cost():
    truth = lively((10, 10, 10, 1), 1)
    told, auto = (revelu.extract(truth, method=m, seed=3) for m in ("one_hidden", "auto"))
    assert told.status is Status.NOT_IN_CLASS
    assert told.network is None
    assert auto.status is Status.RECOVERED
    assert auto.details["queries_before_depth"] == told.ledger.n_queries
    assert auto.ledger.n_queries > auto.details["queries_before_depth"]
    direct = revelu.extract(truth, method="two_hidden", seed=3)
    assert direct.status is Status.RECOVERED
    assert "queries_before_depth" not in direct.details


def test_the_same_seed_asks_the_same_and_finds_the_same():
    truth = lively((8, 6, 6, 2), 4)

    def run(seed):
        asked = []

        def target(X):
            asked.append(X.copy())
            return truth(X)

        return revelu.extract(target, dim_in=8, seed=seed, checks=300), asked

    (first, asked), (second, again), (_, others) = run(5), run(5), run(6)
    assert first.network == second.network
    assert len(asked) == len(again)
    assert all(np.array_equal(a, b) for a, b in zip(asked, again, strict=True))
    assert not np.array_equal(asked[0], others[0])


@settings(max_examples=6)
@given(seed=st.integers(0, 10**6))
def test_order_and_scales_of_hidden_neurons_do_not_matter(seed):
    truth = lively((8, 6, 8, 1), 2)
    rng = np.random.default_rng(seed)
    (W, V, A), (b, c, e) = truth.weights, truth.biases
    p, q = rng.permutation(6), rng.permutation(8)
    s, t = 10.0 ** rng.uniform(-2, 2, 6), 10.0 ** rng.uniform(-2, 2, 8)
    same = Network(
        [s[:, None] * W[p], t[:, None] * V[np.ix_(q, p)] / s, A[:, q] / t], [s * b[p], t * c[q], e]
    )
    assert error_of(same, truth) < 1e-10
    recovery = revelu.extract(same, seed=seed % 7, checks=300)
    assert recovery.status is Status.RECOVERED
    assert error_of(recovery.network, truth) < 1e-7
    assert revelu.align(recovery.network, truth).max_parameter_error < 1e-7


@pytest.mark.parametrize("output_scale", [1e-9, 1e9])
@pytest.mark.parametrize("input_scale", [1e-4, 1e2])
def test_units_of_inputs_and_outputs_do_not_matter(input_scale, output_scale):
    truth = zoo.scaled(lively((8, 6, 8, 1), 2), input_scale, output_scale)
    recovery = revelu.extract(truth, seed=1, checks=300)
    X = np.random.default_rng(1).standard_normal((500, 8))
    size = np.abs(truth(X)).max()
    assert recovery.status is Status.RECOVERED
    assert np.abs(recovery.network(X) - truth(X)).max() < 1e-6 * size


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_hyperplanes_far_beyond_the_inputs_are_not_invented(seed):
    # Between hyperplanes 10,000 deviations apart inputs show hardly more than one affine map.
    truth = zoo.scaled(lively((8, 6, 8, 1), seed), 1e4)
    recovery = revelu.extract(truth, seed=1, checks=300)
    X = np.random.default_rng(1).standard_normal((2000, 8))
    assert recovery.network is not None
    wrong = np.abs(recovery.network(X) - truth(X)) > 1e-6 * np.abs(truth(X)).max()
    assert wrong.mean() <= 0.02


def silent_top(widths, seed):
    truth = zoo.random_network(list(widths), seed=seed)
    (W, V, A), (b, c, e) = truth.weights, truth.biases
    return Network([W, -np.abs(V), A], [b, -np.abs(c) - 1.0, e])


@pytest.mark.parametrize("seed", range(3))
def test_a_dead_top_layer_is_a_constant(seed):
    truth = silent_top((8, 6, 6, 2), seed)
    recovery = revelu.extract(truth, seed=seed)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == (8, 0, 2)
    assert error_of(recovery.network, truth) < 1e-12


def test_a_dead_top_layer_is_a_constant_whatever_the_method():
    recovery = revelu.extract(silent_top((8, 6, 6, 2), 0), method="two_hidden")
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == (8, 0, 2)


@pytest.mark.parametrize("widths", [(4, 10, 6, 1), (4, 6, 8, 3), (3, 12, 5, 2)])
def test_more_neurons_than_inputs_keep_the_first_layer(widths):
    truth = zoo.random_network(list(widths), seed=11)
    recovery = revelu.extract(truth, seed=1, method="two_hidden")
    # Hyperplanes without signs are no layer.
    assert recovery.status is Status.UNVERIFIED
    assert recovery.first_layer is None
    assert any(f"for {widths[0]} inputs" in sentence for sentence in recovery.evidence)
    assert any("not the sign" in sentence for sentence in recovery.evidence)
    W, _ = recovery.details["first_layer"]
    assert widths[0] < len(W) <= widths[1]
    assert first_layer_errors(recovery, truth).max() < 1e-6


def dependent(kind, seed):
    truth = lively((8, 6, 8, 1), seed)
    (W, V, A), (b, c, e) = truth.weights, truth.biases
    W, b = W.copy(), b.copy()
    if kind == "parallel":
        W[1], b[1] = 1.5 * W[0], b[0] + 0.7
    elif kind == "opposite":
        W[1], b[1] = -W[0], b[0] + 0.7
    else:
        W[2] = W[0] + W[1]
    return Network([W, V, A], [b, c, e])


@pytest.mark.parametrize("kind", ["parallel", "opposite", "sum"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_dependent_rows_are_named_and_kept(kind, seed):
    truth = dependent(kind, seed)
    recovery = revelu.extract(truth, seed=seed, method="two_hidden")
    # Hyperplanes without signs are no layer.
    is_signed = recovery.first_layer is not None
    assert recovery.status is (Status.PARTIAL if is_signed else Status.UNVERIFIED)
    assert is_signed or any("not the sign" in sentence for sentence in recovery.evidence)
    assert any("dependent" in sentence for sentence in recovery.evidence)
    assert recovery.details["condition"] > 1e6
    assert len(recovery.details["first_layer"][0]) == 6
    assert first_layer_errors(recovery, truth).max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "share"), [((200, 64, 40, 6), 1.2), ((250, 40, 40, 1), 6.0)], ids=str
)
def test_wide_layers_are_grown_and_fitted_in_turn(widths, share):
    # What a hundred neurons are off by adds up, and hides the last ones where nothing is fitted.
    truth = zoo.random_network(list(widths), seed=5)
    recovery = revelu.extract(truth, method="two_hidden", seed=3, checks=300)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == truth.architecture
    assert error_of(recovery.network, truth) < 1e-7
    assert recovery.ledger.n_recovery <= share * truth.n_parameters


@pytest.mark.parametrize("seed", range(4))
def test_three_hidden_layers_are_never_called_recovered(seed):
    truth = zoo.random_network([10, 8, 6, 4, 1], seed=seed)
    recovery = revelu.extract(truth, method="two_hidden", seed=seed)
    assert recovery.status is Status.PARTIAL
    W, _ = recovery.details["first_layer"]
    assert len(W) in {7, 8}  # one may be off wherever the lines went
    assert first_layer_errors(recovery, truth).max() < 1e-6
    assert any("first layer" in sentence for sentence in recovery.evidence)


@cache
def whole_cost():
    return revelu.extract(lively((8, 6, 8, 1), 2), seed=1, checks=300).ledger.n_queries


@pytest.mark.parametrize("share", [0.02, 0.2, 0.4, 0.55, 0.65, 0.75, 0.85, 0.95, 1.0])
def test_the_budget_is_never_exceeded(share):
    truth = lively((8, 6, 8, 1), 2)
    budget = int(share * whole_cost())
    rows = []

    def target(X):
        rows.append(len(X))
        return truth(X)

    recovery = revelu.extract(target, dim_in=8, seed=1, checks=300, budget=budget)
    assert sum(rows) == recovery.ledger.n_queries <= budget
    if recovery.status is Status.RECOVERED:  # cut where only checks were left
        assert error_of(recovery.network, truth) < 1e-6
    else:
        assert share < 1.0
        assert recovery.status is Status.BUDGET_EXHAUSTED
        assert recovery.evidence
        assert recovery.network is None or recovery.network.dim_in == 8


@settings(max_examples=12)
@given(budget=st.integers(0, 1500), seed=st.integers(0, 3))
def test_no_budget_is_exceeded_by_one(budget, seed):
    truth = lively((6, 5, 4, 3), 1)
    recovery = revelu.extract(truth, seed=seed, method="two_hidden", checks=100, budget=budget)
    assert recovery.ledger.n_queries <= budget
    if recovery.status is Status.RECOVERED:
        assert error_of(recovery.network, truth) < 1e-6
    else:
        assert budget < 1000  # it costs 600
        assert recovery.status is Status.BUDGET_EXHAUSTED


def rarely_firing(seed, share=0.003):
    """An upper neuron that fires on ``share`` of N(0, I), and is strong where it does."""
    truth = lively((10, 10, 10, 1), seed)
    (W, V, A), (b, c, e) = truth.weights, truth.biases
    X = np.random.default_rng(seed).standard_normal((40_000, 10))
    sums = np.maximum(X @ W.T + b, 0.0) @ V[0]
    c, A = c.copy(), A.copy()
    c[0], A[0, 0] = -np.quantile(sums, 1.0 - share), 3.0
    return Network([W, V, A], [b, c, e])


@pytest.mark.parametrize("seed", range(4))
def test_a_neuron_that_fires_rarely_is_found_where_the_certificate_saw_it(seed):
    truth = rarely_firing(seed + 1)
    assert 0.001 < activity(truth, 20_000)[0] < 0.006
    recovery = revelu.extract(truth, seed=seed)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == (10, 10, 10, 1)
    assert recovery.ledger.by_phase["repair"] > 0
    assert error_of(recovery.network, truth) < 1e-7


@pytest.mark.slow
def test_no_recovered_network_is_wrong_more_often_than_its_certificate_allows():
    n_recovered = 0
    for seed in range(12):
        widths = [4 + seed % 5, 3 + seed % 4, 2 + seed, 1 + seed % 3]
        truth = zoo.random_network(widths, seed=seed)
        recovery = revelu.extract(truth, seed=seed, checks=1000)
        if recovery.status is not Status.RECOVERED:
            assert recovery.evidence
            continue
        n_recovered += 1
        X = np.random.default_rng(2).standard_normal((20_000, truth.dim_in))
        wrong = np.abs(recovery.network(X) - truth(X)).max(axis=1) > 1e-6
        # 1,000 right answers in a row bound the share of wrong ones by 0.3% at 95%.
        assert wrong.mean() <= 2 * 0.003, seed
    assert n_recovered >= 10  # of 12; 11 when this was written
