"""Clipped answers: caps are seen, and the network inside comes back with them on."""

import numpy as np
import pytest

import revelu
from revelu.network import zoo
from revelu.network.caps import of_clipped, with_caps
from revelu.numerics.links import NONE
from revelu.oracle import Oracle, measure_noise
from revelu.oracle.extremes import Extremes
from revelu.recovery import Status
from revelu.tasks.extract.clipped_inputs import ClippedInputs


def clipped(network, low, high):
    """A target: the network's answers between two quantiles of them."""
    Y = network(np.random.default_rng(9).standard_normal((20_000, network.dim_in)))
    lo = np.quantile(Y, low, axis=0) if low > 0.0 else -np.inf
    hi = np.quantile(Y, high, axis=0) if high < 1.0 else np.inf
    return lambda X: np.clip(network(X), lo, hi)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("n_layers", [0, 1, 2])
def test_caps_are_a_layer_of_the_network(skip, n_layers):
    rng = np.random.default_rng(3)
    network = zoo.random_network([*[4, 6, 5][: 1 + n_layers], 4], seed=2)
    if skip:
        d = network.weights[max(n_layers - 1, 0)].shape[1]
        affine = rng.standard_normal((4, d)), rng.standard_normal(4)
        network = revelu.Network(network.weights, network.biases, affine)
    low, high = np.array([-1.0, -np.inf, 0.5, -np.inf]), np.array([1.0, 0.3, np.inf, np.inf])
    X = 2.0 * rng.standard_normal((500, 4))
    whole = with_caps(network, low, high)
    np.testing.assert_allclose(whole(X), np.clip(network(X), low, high), atol=1e-13)
    assert whole.n_hidden == n_layers + 1


def test_an_answer_that_is_exact_at_many_inputs_is_a_cap():
    seen, rng = Extremes(), np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    seen.add(X, np.column_stack([np.minimum(X[:, 0], 1.0), X[:, 1], np.ones(len(X))]))
    low, high = seen.caps()
    assert high.tolist() == [1.0, np.inf, np.inf]
    assert np.isinf(low).all()
    # A search that closes in on the largest answer of a function asks for it many times.
    peak = Extremes()
    peak.add(1.0 + 1e-9 * X, np.column_stack([np.full(len(X), 2.0), X[:, 1]]))
    assert np.isinf(peak.caps()).all()


def test_where_answers_are_capped_they_say_nothing():
    link = NONE.within(-1.0, 2.0)
    assert link.clips
    assert not NONE.clips
    Y = np.array([[-1.0], [0.5], [2.0]])
    assert np.isfinite(link.inverse(Y)).ravel().tolist() == [False, True, False]
    assert link.head(np.array([[-3.0], [0.5], [9.0]])).ravel().tolist() == [-1.0, 0.5, 2.0]


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.998), (0.3, 1.0), (0.1, 0.9)])
def test_the_network_inside_caps_comes_back_with_them(low, high):
    truth = zoo.random_network([6, 8, 1], seed=3)
    target = clipped(truth, low, high)
    found = revelu.extract(target, dim_in=6, seed=1)
    assert found.status is Status.RECOVERED, found.evidence
    assert any("the answers are clipped" in said for said in found.evidence)
    assert found.network.architecture == (6, 8, (low > 0.0) + (high < 1.0), 1)
    X = np.random.default_rng(0).standard_normal((5000, 6))
    assert np.abs(found.network(X) - target(X)).max() < 1e-8
    assert found.ledger.n_recovery < 80 * truth.n_parameters


def test_a_floor_that_shows_inside_a_cap_is_put_on_as_well():
    truth = zoo.random_network([5, 8, 1], seed=3)
    target = lambda X: np.clip(truth(X), -0.5, 0.5)  # noqa: E731
    found = revelu.extract(target, dim_in=5)
    assert found.status is Status.RECOVERED, found.evidence
    assert any("never fall below -0.5 and never exceed 0.5" in said for said in found.evidence)
    assert found.network.architecture == (5, 8, 2, 1)
    X = np.random.default_rng(0).standard_normal((5000, 5))
    assert np.abs(found.network(X) - target(X)).max() < 1e-8
    assert found.ledger.n_recovery < 160 * truth.n_parameters  # the search begins three times


def test_each_output_has_caps_of_its_own():
    truth = zoo.random_network([6, 8, 3], seed=11)
    target = clipped(truth, 0.0, 0.98)
    found = revelu.extract(target, dim_in=6, seed=1)
    assert found.status is Status.RECOVERED, found.evidence
    X = np.random.default_rng(0).standard_normal((5000, 6))
    assert np.abs(found.network(X) - target(X)).max() < 1e-8


def test_answers_that_are_taken_as_they_are_have_no_caps_looked_for():
    truth = zoo.random_network([6, 8, 1], seed=3)
    found = revelu.extract(clipped(truth, 0.1, 1.0), dim_in=6, seed=1, link="none", budget=3000)
    assert not any("the answers are clipped" in said for said in found.evidence)


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (-3.0, 3.0), (0.0, 2.5)])
def test_inputs_that_are_clipped_are_seen_and_said(ends):
    truth = zoo.random_network([6, 8, 2], seed=3)
    target = lambda X: truth(np.clip(X, *ends))  # noqa: E731
    found = revelu.extract(target, dim_in=6, seed=1)
    assert found.status is Status.RECOVERED, found.evidence
    low, high = ends
    said = f"the inputs are clipped to [{low:g}, {high:g}]"
    assert any(said in sentence and "--box" in sentence for sentence in found.evidence)
    assert found.network.architecture == (6, 12, 8, 2)
    X = 2.0 * np.random.default_rng(0).standard_normal((5000, 6))
    assert np.abs(found.network(X) - target(X)).max() < 1e-8
    assert found.ledger.n_recovery < 80 * truth.n_parameters


def in_float32(network):
    """The network as it is computed in float32, its products by NumPy."""
    weights, biases = ([a.astype(np.float32) for a in b] for b in (network.weights, network.biases))

    def answer(X):
        H = np.maximum(X.astype(np.float32) @ weights[0].T + biases[0], np.float32(0.0))
        return H @ weights[1].T + biases[1]

    return answer


def test_clips_come_back_from_float32_answers():
    truth = zoo.random_network([6, 8, 1], seed=3)
    single = in_float32(truth)
    X = np.random.default_rng(0).standard_normal((5000, 6))
    cap = np.float32(np.quantile(truth(X), 0.95))
    targets = {
        "the inputs are clipped to [-2, 2]": lambda X: single(np.clip(X, -2.0, 2.0)),
        "the answers are clipped": lambda X: np.minimum(single(X), cap),
    }
    for said, target in targets.items():
        found = revelu.extract(target, dim_in=6, seed=1)
        assert found.status is Status.RECOVERED, found.evidence
        assert any(said in sentence for sentence in found.evidence)
        assert np.abs(found.network(X) - target(X)).max() < 1e-5 * truth(X).std()
        assert found.ledger.n_recovery < 200 * truth.n_parameters


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("end", [0.3, 2.0, 2.5])
def test_ends_of_inputs_are_told_to_their_last_digit(dtype, end):
    network = zoo.random_network([6, 8, 1], seed=4)
    inner = network if dtype == np.float64 else in_float32(network)
    oracle = Oracle(lambda X: inner(np.clip(X, -end, end)), 6)
    noise = measure_noise(oracle, 1)
    before = oracle.n_queries
    assert ClippedInputs().find(oracle, noise, np.random.default_rng(1)) == (-end, end)
    assert oracle.n_queries - before < 200


@pytest.mark.parametrize("n_layers", [0, 1, 2])
def test_clipped_inputs_are_a_layer_of_the_network(n_layers):
    rng = np.random.default_rng(3)
    network = zoo.random_network([4, *[6, 5][:n_layers], 3], seed=2)
    d = network.weights[max(n_layers - 1, 0)].shape[1]
    affine = rng.standard_normal((3, d)), rng.standard_normal(3)
    network = revelu.Network(network.weights, network.biases, affine)
    low, high = np.array([-1.0, -2.0, 0.5, -0.1]), np.array([1.0, 0.3, 3.0, 0.1])
    X = 2.0 * rng.standard_normal((500, 4))
    expected = network(np.clip(X, low, high))
    np.testing.assert_allclose(of_clipped(network, low, high)(X), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["grows", "is constant far away", "one input is not clipped"])
def test_inputs_that_are_not_all_clipped_have_no_ends(kind):
    truth = zoo.random_network([4, 6, 1], seed=3)
    bump = lambda X: np.maximum(1.0 - np.abs(X).sum(axis=1), 0.0)  # noqa: E731
    some = lambda X: truth(np.column_stack([X[:, 0], np.clip(X[:, 1:], -1, 1)]))  # noqa: E731
    target = {"grows": truth, "is constant far away": bump}.get(kind, some)
    oracle = Oracle(target, 4)
    noise, before = measure_noise(oracle, 0), oracle.n_queries
    assert ClippedInputs().find(oracle, noise, np.random.default_rng(1)) is None
    assert oracle.n_queries - before <= 8


def test_what_rounding_makes_alike_is_no_cap():
    rng = np.random.default_rng(0)
    X, seen = rng.standard_normal((4000, 3)), Extremes()
    for part in np.split(X, 8):
        seen.add(part, np.round(np.clip(part, -10.0, 1.0), 1))
    low, high = seen.caps()
    assert np.isinf(low).all()
    assert np.array_equal(high, [np.inf] * 3)
    fine = Extremes()
    fine.add(X, np.round(np.clip(X, -10.0, 1.0), 6))
    assert np.array_equal(fine.caps()[1], [1.0] * 3)
