"""Networks behind labels, looked for in the span of their first layer, with budgets of queries."""

import numpy as np
import pytest

import revelu
from revelu import Network, Status
from revelu.certify.labels import predict_labels
from revelu.network import zoo
from revelu.oracle import Labels, Oracle, degrade
from revelu.recover.labels import in_span
from revelu.recover.subspace import Subspace


def wrong(truth, found, n=100_000):
    X = np.random.default_rng(99).standard_normal((n, truth.dim_in))
    labels = predict_labels(found.network, np.array(found.classes), X)
    return int((labels != degrade(truth, Labels())(X)[:, 0]).sum())


def row_error(truth, found):
    """The largest error of any row of the first layer, of unit length."""
    V, U = (
        np.column_stack([net.weights[0], net.biases[0]])
        / np.linalg.norm(net.weights[0], axis=1)[:, None]
        for net in (truth, found.network)
    )
    return np.abs(V[:, None] - U[None]).max(axis=2).min(axis=1).max()


def test_many_inputs_and_few_neurons():
    # In all coordinates it takes 128,045.
    truth = zoo.random_network([60, 6, 4], seed=5)
    found = revelu.extract(degrade(truth, Labels()), seed=5)
    assert (found.status, found.network.architecture) == (Status.RECOVERED, (60, 6, 4))
    assert found.details["directions"] == 6
    assert row_error(truth, found) < 1e-9
    assert wrong(truth, found) == 0
    assert found.ledger.n_queries <= 70_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_neurons_of_four_inputs(seed):
    truth = zoo.random_network([4, 2, 3], seed=64_050_000 + seed)
    found = revelu.extract(degrade(truth, Labels()), seed=seed)
    assert (found.status, found.details["directions"]) == (Status.RECOVERED, 2)
    assert wrong(truth, found) <= 2
    assert found.ledger.n_queries <= 600_000


class _Blind(in_span.SpanSearch):
    """A search for a span that knows five directions at most, until it is shown borders of others.

    A single look around may show all six.
    """

    is_shown = False

    def look_around(self):
        return [] if self.rank >= 5 else super().look_around()

    def learn_from(self, borders):
        self.is_shown = self.rank >= 5 and len(borders) > 0
        return super().learn_from(borders)

    def learn_at(self, place):
        if self.rank < 5 or self.is_shown:
            return super().learn_at(place)
        self.places.remove(place)
        return False


def test_a_direction_that_the_span_lacks_is_seen_on_fresh_labels(monkeypatch):
    monkeypatch.setattr(in_span, "SpanSearch", _Blind)
    truth = zoo.random_network([60, 6, 4], seed=5)
    found = revelu.extract(degrade(truth, Labels()), seed=5)
    assert (found.status, found.details["directions"]) == (Status.RECOVERED, 6)
    assert row_error(truth, found) < 1e-9
    assert wrong(truth, found) == 0
    assert found.ledger.by_phase["repair"] > 0
    assert found.ledger.n_queries <= 150_000


def test_layers_above_the_first_are_kept_in_all_coordinates():
    inner = zoo.random_network([3, 4, 3, 2], seed=1)
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((7, 3)))[0].T
    outer = Subspace(basis, 2.0).in_all_coordinates(inner)
    X = np.random.default_rng(1).standard_normal((10, 7))
    assert isinstance(outer, Network)
    np.testing.assert_allclose(outer(X), inner(X @ basis.T / 2.0), atol=1e-12)
    assert Oracle(outer, 7)(X).shape == (10, 2)


@pytest.mark.slow
def test_two_directions_of_more_inputs_are_not_called_two_inputs():
    truth = zoo.random_network([3, 2, 3], seed=0)
    found = revelu.extract(degrade(truth, Labels()), seed=0, checks=300)
    assert found.status is Status.RECOVERED
    assert found.details["directions"] == 2
    (text,) = found.evidence
    assert "two inputs" not in text
    assert "two directions" in text
