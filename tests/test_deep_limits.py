"""Where the search of deep networks ends: other functions, saturated, blurred and cut answers."""

import numpy as np
import pytest

import revelu
from revelu import Network, Status
from revelu.network import zoo
from revelu.recover.deep.gradient_signs import Orientation
from revelu.recover.deep.hypotheses import Hypotheses
from revelu.recover.deep.layer_estimate import FoundLayer


def leaky(X, rng_seed=3):
    rng = np.random.default_rng(rng_seed)
    for k in (7, 6):
        Z = X @ rng.standard_normal((X.shape[1], k)) / 2 + rng.standard_normal(k) / 3
        X = np.where(Z > 0, Z, 0.1 * Z)
    return X @ rng.standard_normal(6)


def test_neurons_that_are_no_relus_are_given_up_early():
    recovery = revelu.extract(leaky, dim_in=8, seed=1, checks=300)
    assert recovery.status is not Status.RECOVERED
    assert any("explain few gradients" in line for line in recovery.evidence)
    assert recovery.ledger.n_queries < 25_000


def test_a_function_that_curves_in_places_has_its_segments_cut_in_few():
    w, v = np.random.default_rng(3).standard_normal((2, 8))

    def product(X):
        return np.maximum(X @ w, 0.0) * np.maximum(X @ v, 0.0)

    recovery = revelu.extract(product, method="deep", dim_in=8, seed=1)
    assert recovery.status is Status.NOT_IN_CLASS
    assert "curve" in recovery.evidence[0]
    assert recovery.ledger.n_queries < 5_000


def test_deep_classifiers_are_recovered_from_their_probabilities():
    truth = zoo.random_network([12, 8, 6, 4, 3], seed=5)

    def probabilities(X):
        odds = np.exp(truth(X) - truth(X).max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    recovery = revelu.extract(probabilities, method="deep", dim_in=12, seed=2, checks=300)
    assert recovery.details["layers"]
    X = np.random.default_rng(8).standard_normal((4000, 12))
    logits = truth(X) - truth(X)[:, -1:]
    assert np.median(np.abs(recovery.network(X) - logits)) < 1e-8


@pytest.mark.parametrize("widths", [(8, 6, 1, 4, 1), (1, 5, 4, 3, 1)])
def test_networks_whose_answers_are_blurred_are_not_said_to_curve(widths):
    truth = zoo.random_network(list(widths), seed=1)
    recovery = revelu.extract(truth, method="deep", seed=1, checks=300, budget=12_000)
    assert recovery.status is not Status.NOT_IN_CLASS


@pytest.mark.parametrize("A", [[[1.0, 2.0, -1.0]], [[0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]])
def test_an_affine_map_is_a_network_without_neurons(A):
    truth = Network([A], [np.arange(len(A)) + 0.5])
    recovery = revelu.extract(truth, method="deep", seed=1, checks=300)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture[1:-1] == (0,)


def test_a_search_goes_on_from_its_journal(tmp_path):
    truth = zoo.random_network([8, 6, 5, 1], seed=1)
    whole = revelu.extract(truth, method="deep", seed=3, checks=300)
    journal = str(tmp_path / "journal")

    def part(budget):
        with revelu.open_oracle(truth, journal=journal) as oracle:
            oracle.budget = budget
            return revelu.extract(oracle, method="deep", seed=3, checks=300)

    first = part(3000)
    assert first.status is Status.BUDGET_EXHAUSTED
    again = part(None)
    assert again.status is whole.status
    # A run asks a few rows again, to see that the target is still the same.
    assert again.ledger.n_queries <= whole.ledger.n_queries + 64
    for W, V in zip(again.network.weights, whole.network.weights, strict=True):
        assert np.array_equal(W, V)


def test_answers_of_few_digits_are_refused_before_the_search():
    truth = zoo.random_network([8, 6, 4, 3, 1], seed=2)
    recovery = revelu.extract(
        lambda X: truth(X).astype(np.float32), method="deep", dim_in=8, seed=1
    )
    assert recovery.status is Status.UNVERIFIED
    assert "float32" in recovery.evidence[0]
    assert recovery.ledger.n_queries == 64


def test_a_budget_is_kept_and_what_was_found_is_returned():
    truth = zoo.random_network([8, 6, 6, 4, 1], seed=41)
    recovery = revelu.extract(truth, method="deep", budget=6000, seed=1)
    assert recovery.status is Status.BUDGET_EXHAUSTED
    assert recovery.ledger.n_queries <= 6000
    for W, b in recovery.details["layers"][:1]:
        rows = np.column_stack([truth.weights[0], truth.biases[0]])
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        found = np.column_stack([W, b]) / np.linalg.norm(np.column_stack([W, b]), axis=1)[:, None]
        assert (found @ rows.T).max(axis=1).min() > 1 - 1e-9


def test_a_network_of_one_layer_is_one_for_the_deep_method_too():
    truth = Network([[[1.0, 2.0], [-1.0, 1.0]], [[1.0, -2.0]]], [[0.3, 0.2], [0.1]])
    recovery = revelu.extract(truth, method="deep", seed=1, checks=300)
    assert recovery.status is Status.RECOVERED
    X = np.random.default_rng(8).standard_normal((4000, 2))
    assert np.abs(recovery.network(X) - truth(X)).max() < 1e-8


def test_rows_beside_a_neuron_that_is_always_on_are_the_truths_where_a_layer_is_exact():
    # Two neurons of the fourth layer are on at nearly all inputs; where one of them rests, the
    # third layer's last does, too, and gradients know only the sum of what they take of it.
    truth = zoo.random_network([30, 20, 10, 8, 6, 1], seed=7_830_018)
    recovery = revelu.extract(truth, seed=7_830_018)
    units, sizes = np.arange(30), np.ones(30)
    assert len(recovery.details["layers"]) >= 2  # rounding decides on the third
    for n, (W, b) in enumerate(recovery.details["layers"]):
        true = np.column_stack([truth.weights[n][:, units] / sizes, truth.biases[n]])
        norms = np.linalg.norm(true, axis=1)
        found = np.column_stack([W, b]) / np.linalg.norm(np.column_stack([W, b]), axis=1)[:, None]
        cosines = found @ (true / norms[:, None]).T
        units = cosines.argmax(axis=1)
        assert (1.0 - cosines.max(axis=1) < 1e-12).all()
        sizes = np.linalg.norm(np.column_stack([W, b]), axis=1) / norms[units]


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0.7), (-1.0, 0.7)])
def test_a_layer_with_two_neurons_along_each_other_is_not_said_to_be_exact(factor, shift):
    plain = zoo.random_network([8, 5, 4, 2], seed=0)
    W, b = plain.weights[0].copy(), plain.biases[0].copy()
    W[1], b[1] = factor * W[0], factor * b[0] + shift
    truth = Network([W, *plain.weights[1:]], [b, *plain.biases[1:]])
    recovery = revelu.extract(truth, method="deep", seed=0)
    assert recovery.details["layers"] == []


def test_rows_along_each_other_are_noticed():
    rows = np.array([[0.6, 0.0, -0.8, 0.2], [-0.6, 0.0, 0.8, 0.4], [0.0, 0.5, 0.5, 0.1]])
    assert Hypotheses(rows).are_alike()
    assert not Hypotheses(rows[1:]).are_alike()
    # Above one neuron all rows are along each other.
    assert Hypotheses(np.array([[0.8, 0.6], [-0.6, 0.8]])).are_alike()


def test_a_layer_whose_rows_depend_on_each_other_is_not_exact():
    rng = np.random.default_rng(12)
    none = np.empty(0, dtype=np.intp)
    own = rng.standard_normal((3, 7))
    for W, is_exact in (
        (own, True),
        (rng.standard_normal((4, 3)) @ own, False),
        (rng.standard_normal((9, 7)), True),
    ):
        k = len(W)
        needed = np.ones(k, dtype=bool)
        seen = Orientation(np.ones(k), np.arange(99), none, needed, ~needed, True, False)
        layer = FoundLayer(W, np.ones(k), np.zeros(W.shape, dtype=bool), seen)
        assert layer.is_complete
        assert layer.is_exact == is_exact
