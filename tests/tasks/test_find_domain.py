"""Targets that are affine or saturated near N(0, I): where they are not is found by itself."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import revelu
from revelu.errors import SaturatedError
from revelu.network import zoo
from revelu.oracle import Oracle, measure_noise
from revelu.recovery import Status
from revelu.tasks.find_decision import DecisionSearch
from revelu.tasks.find_domain import DomainSearch


def far_away(shape, seed):
    """A network in units of its own: ``net((x - c) / s)``, with ``c`` and ``s``."""
    rng = np.random.default_rng([shape[0], seed])
    network = zoo.random_network(shape, seed)
    c, s = 1000.0 * rng.standard_normal(shape[0]), 10.0 ** rng.uniform(-3.0, 3.0, shape[0])
    return network, c, s


def counted(ask):
    """The function, and the number of rows that it was asked, in a list."""
    asked = [0]

    def answer(X):
        asked[0] += len(X)
        return ask(X)

    return answer, asked


def search(ask, d):
    oracle = Oracle(ask, d)
    noise = measure_noise(oracle, 0)
    tell = [].append
    found = DomainSearch().elsewhere(oracle, noise, np.random.default_rng(1), tell)
    return found, oracle.n_queries - 64


@pytest.mark.parametrize("shape", [[10, 16, 1], [6, 12, 3], [8, 10, 10, 1]])
@pytest.mark.parametrize("seed", range(3))
def test_the_place_is_found_by_some_hundred_queries(shape, seed):
    network, c, s = far_away(shape, seed)
    domain, n_queries = search(lambda X: network((X - c) / s), shape[0])
    assert n_queries < 1000
    assert np.abs((domain.center - c) / s).max() < 20.0
    assert 0.02 < (domain.spread / s).min() < (domain.spread / s).max() < 20.0


@pytest.mark.parametrize("shape", [[10, 16, 1], [6, 12, 3]])
@pytest.mark.parametrize("seed", range(3))
def test_the_network_comes_back_in_its_own_units(shape, seed):
    network, c, s = far_away(shape, seed)
    ask, asked = counted(lambda X: network((X - c) / s))
    recovery = revelu.extract(ask, dim_in=shape[0], budget=6000, elsewhere=True)
    assert recovery.status is Status.RECOVERED
    assert asked[0] == recovery.ledger.n_queries
    assert recovery.network.architecture == tuple(shape)
    assert any("near N(0, I) the target does not bend" in said for said in recovery.warnings)
    assert "found to bend" in recovery.certificate.statement
    X = c + s * np.random.default_rng(1).normal(size=(2000, shape[0]))
    Y = network((X - c) / s)
    assert np.sqrt(((recovery.network(X) - Y) ** 2).mean()) < 1e-8 * Y.std()


@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize("constant", [0.0, 1e4])
def test_what_is_affine_everywhere_stays_so(slope, constant):
    a = slope * np.random.default_rng(0).normal(size=(5, 1))
    recovery = revelu.extract(lambda X: X @ a + constant, dim_in=5, checks=200, elsewhere=True)
    assert recovery.status is Status.RECOVERED
    # A constant that is a whole number might be a label: 256 more answers tell.
    assert recovery.ledger.n_queries < 350 + 400 + (0 if slope else 256)
    assert recovery.domain == "of N(0, I)"
    assert not any("domain" in said for said in recovery.warnings)


def test_a_constant_place_is_left():
    network = zoo.random_network([5, 8, 1], 1)
    W, b = network.weights[0], network.biases[0]
    # All neurons are off near N(0, I).
    away = -40.0 * np.linalg.lstsq(W, np.ones(8), rcond=None)[0]

    def ask(X):
        hidden = np.maximum((X - away) @ np.abs(W).T - 4000.0 + b, 0.0)
        return hidden @ network.weights[1].T + 3.0

    assert np.ptp(ask(np.random.default_rng(0).normal(size=(500, 5)))) == 0.0
    recovery = revelu.extract(ask, dim_in=5, budget=6000, checks=500, elsewhere=True)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == (5, 8, 1)


def test_a_target_that_refuses_inputs_far_away_is_recovered_near():
    def ask(X):
        if np.abs(X).max() > 1e9:
            raise ValueError("out of range")
        return X[:, :1] + 2.0 * X[:, 1:2] + 1e3

    recovery = revelu.extract(ask, dim_in=3, checks=200, elsewhere=True)
    assert recovery.status is Status.RECOVERED
    assert not recovery.warnings


def test_a_run_on_a_place_that_was_found_goes_on_from_its_journal(tmp_path):
    network, c, s = far_away([6, 12, 3], 0)
    ask, asked = counted(lambda X: network((X - c) / s))
    results = []
    for budget in (700, None):
        path = tmp_path / "journal"
        with revelu.open_oracle(ask, 6, budget=budget, journal=path) as oracle:
            results.append(revelu.extract(oracle, elsewhere=True))
    cut, whole = results
    assert cut.status is Status.BUDGET_EXHAUSTED
    assert whole.status is Status.RECOVERED
    # Rows beside those: the sentinels, which see that the target is the same.
    assert asked[0] <= whole.ledger.n_queries + 16


@pytest.fixture(scope="module")
def flowers():
    X, y = load_wine(return_X_y=True)
    return X * 1e-5, y


@pytest.mark.parametrize("kind", ["affine", "network"])
def test_a_saturated_classifier_is_asked_where_it_decides(flowers, kind):
    X, y = flowers
    last = MLPClassifier([8], random_state=0, max_iter=300, tol=1e-3)
    last = LogisticRegression(max_iter=200) if kind == "affine" else last
    model = make_pipeline(StandardScaler(), last).fit(X, y)
    ask, asked = counted(model.predict_proba)
    with pytest.raises(SaturatedError):
        measure_noise(Oracle(ask, 13), 0)
    asked[0] = 0
    recovery = revelu.extract(ask, dim_in=13, budget=20_000, elsewhere=True)
    assert recovery.status is Status.RECOVERED
    assert asked[0] == recovery.ledger.n_queries
    assert any("found to decide" in said for said in recovery.warnings)
    assert (recovery.network(X).argmax(axis=1) == model.predict(X)).all()


def test_one_class_everywhere_has_no_border():
    def ask(X):
        return np.tile([1.0, 0.0], (len(X), 1)) + 1e-310 * np.array([-1.0, 1.0])

    oracle = Oracle(ask, 4)
    search = DecisionSearch()
    assert search.find(oracle, np.random.default_rng(0), [].append) is None
    assert oracle.n_queries < 400
