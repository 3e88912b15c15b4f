"""A certificate passes what is right and fails what is wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from revelu import Network
from revelu.certify import certify, examine
from revelu.network import zoo
from revelu.numerics.confidence import at_most, upper_bound
from revelu.oracle import Oracle, measure_noise


def certificate_of(network, target, n=500, seed=0, **options):
    oracle = Oracle(target, target.dim_in, **options)
    noise = measure_noise(oracle, seed)
    seen = examine(network, oracle, noise, n, np.random.default_rng(seed))
    return certify(seen), seen, oracle


def changed(network, layer, index, by):
    weights = [W.copy() for W in network.weights]
    weights[layer][index] += by
    return Network(weights, network.biases)


@given(st.floats(1e-3, 100.0))
def test_percentages_are_rounded_up_and_written_as_such(percent):
    said = at_most(percent)
    assert "e+" not in said
    assert percent <= float(said) <= 1.11 * percent


def test_the_truth_passes():
    target = zoo.random_network([10, 16, 3], seed=1)
    certificate, seen, oracle = certificate_of(target, target)
    assert certificate.passed
    assert certificate.max_abs_error == 0.0
    assert certificate.fraction_within == 1.0
    assert certificate.n_checks == 500
    assert oracle.ledger().by_phase["verify"] == len(seen.X) == 500 + certificate.n_structural
    assert "95% confidence" in certificate.statement


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("by", [1e-5, 1e-2, 1.0])
def test_one_wrong_weight_fails(layer, by):
    target = zoo.random_network([10, 16, 3], seed=1)
    certificate, seen, _ = certificate_of(changed(target, layer, (1, 2), by), target)
    assert not certificate.passed
    assert certificate.max_abs_error > certificate.tolerance
    assert seen.ratio.max() > 1.0


def test_a_missing_neuron_is_told_even_where_gaussian_points_miss_it():
    target = zoo.random_network([6, 8, 1], seed=2)
    (W, A), (b, c) = target.weights, target.biases
    far = np.vstack([W, [30.0, 0, 0, 0, 0, 0]])
    hidden = Network([far, np.append(A, [[1.0]], axis=1)], [np.append(b, -240.0), c])
    certificate, _, _ = certificate_of(target, hidden)
    assert certificate.fraction_within == 1.0
    assert certificate.structural_within < 1.0
    assert certificate.beyond.max_abs_error > certificate.tolerance
    assert certificate.beyond.words in certificate.statement


def test_a_small_budget_shrinks_the_certificate_and_says_so():
    target = zoo.random_network([10, 16, 1], seed=1)
    certificate, _, oracle = certificate_of(target, target, budget=64 + 100)
    assert oracle.n_queries == 164
    assert certificate.n_checks == certificate.n_structural == 50
    assert "left out" in certificate.statement


def test_no_budget_proves_nothing():
    target = zoo.random_network([10, 16, 1], seed=1)
    certificate, _, _ = certificate_of(target, target, budget=64)
    assert not certificate.passed
    assert "nothing was verified" in certificate.statement


@given(st.integers(1, 400), st.data())
def test_the_bound_is_that_of_clopper_and_pearson(n, data):
    failures = data.draw(st.integers(0, n))
    bound = upper_bound(failures, n, 0.95)
    if failures < n:
        # At the bound, so few failures have probability 5%.
        assert binom.cdf(failures, n, bound) == pytest.approx(0.05, rel=1e-6)
    else:
        assert bound == 1.0


@pytest.mark.parametrize(("kind", "slopes"), [(np.float64, 300.0), (np.float32, 30.0)])
def test_saturation_in_another_class_fails(kind, slopes):
    target = zoo.scaled(zoo.random_network([6, 8, 3], seed=4), 1.0, slopes)

    def probabilities(X, of=target):
        z = (of(X) - of(X).max(axis=1, keepdims=True)).astype(kind)
        return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)

    def flipped(X):
        p = probabilities(X)
        saturated = p.min(axis=1) < np.finfo(kind).tiny
        p[saturated] = p[saturated][:, [1, 2, 0]]
        return p

    logits = target.weights[1], target.biases[1]
    A, c = (a - a[-1] for a in logits)
    network = Network([target.weights[0], A[:-1]], [target.biases[0], c[:-1]])
    for answers, passes in ((probabilities, True), (flipped, False)):
        oracle = Oracle(answers, 6)
        noise = measure_noise(oracle, 1)
        assert noise.law == np.dtype(kind).name
        seen = examine(network, oracle, noise, 400, np.random.default_rng(0))
        assert np.isfinite(seen.tolerance).all()
        assert np.isnan(seen.ratio).any() or not passes
        assert seen.passed is passes
        assert certify(seen).passed is passes
