"""Fits to rounded answers behind a head: what they are linear in, how exact, and what they lack."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revelu
from revelu.network import Network, to_log_ratios, zoo
from revelu.numerics.links import FORMS, Link
from revelu.recover.fit.graded import Graded
from revelu.recover.refine.network_fit import Samples
from revelu.recover.refine.served_fit import Served, fit_served, foretold_answers
from revelu.status import Status

HEADS = [Link.named(name) for name in FORMS if name != "none"]
HEADS += [Link.named("logit*100"), Link.named("softmax*100")]
SOFTMAX = Link.named("softmax")


def classifier(widths, seed, size=1.0):
    """A network's logits against the last class, ``size`` times as large."""
    network = to_log_ratios(zoo.random_network(widths, seed=seed))
    (W, A), (b, c) = network.weights, network.biases
    return Network([W, size * A], [b, size * c])


def served(network, places, n, seed):
    """Rounded probabilities at N(0, I)."""
    X = np.random.default_rng(seed).standard_normal((n, network.dim_in))
    P = np.round(SOFTMAX.head(network(X)), places)
    sigma = 10.0**-places / np.sqrt(12.0)
    return Served(X, P, np.full(P.shape, sigma), SOFTMAX, lambda P: np.full(P.shape, sigma))


def behind(answers, places):
    """What is behind the head, of the answers that have digits, each with its error."""
    link = SOFTMAX.within(0.75 * 10.0**-places, np.inf)
    errors_of = lambda Y: link.errors(link.head(Y), answers.sigma[:1])  # noqa: E731
    Y = link.inverse(answers.P)
    seen = np.isfinite(Y).all(axis=1)
    return Samples(answers.X[seen], Y[seen], errors_of(Y[seen]), errors_of)


@given(st.sampled_from(HEADS), st.integers(0, 2**32 - 1))
def test_the_derivative_of_a_head_is_that_of_its_answers(link, seed):
    rng = np.random.default_rng(seed)
    Z, step = rng.uniform(-3.0, 3.0, (5, 3)), 1e-6
    along = rng.standard_normal(Z.shape)
    slope = (link.head(Z + step * along) - link.head(Z - step * along)) / (2.0 * step)
    found = np.einsum("nij,nj->ni", link.derivative(Z), along)
    np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-6 * link.scale)


def test_a_fit_to_rounded_probabilities_is_as_exact_as_they_allow():
    truth, places = classifier([5, 6, 3], 1, size=3.0), 4
    answers = served(truth, places, 1500, 2)
    assert (answers.P == 0.0).any(), "saturated answers are among them"
    start = truth.like(truth.to_vector() + 1e-3 * np.random.default_rng(3).standard_normal(50))
    found = fit_served(start, answers)
    fresh = served(truth, places, 4000, 4)
    left = (SOFTMAX.head(found(fresh.X)) - SOFTMAX.head(truth(fresh.X))) / fresh.sigma
    # sqrt(p / n) errors, of 44 parameters that can be told and 3,000 independent answers.
    assert np.sqrt((left**2).mean()) < 2.0 * np.sqrt(44 / 3000)
    assert answers.off(found).max() < np.sqrt(3.0) + 8.0 * np.sqrt(44 / 3000)


def test_errors_of_answers_are_those_of_fits_to_other_noise():
    truth = classifier([3, 3, 3], 5)
    clean, rng = served(truth, 9, 100, 6), np.random.default_rng(7)
    X, sigma = rng.standard_normal((40, 3)), 1e-4
    P = clean.P
    runs = []
    for _ in range(200):
        noisy = Served(
            clean.X,
            P + sigma * rng.standard_normal(P.shape),
            np.full(P.shape, sigma),
            SOFTMAX,
            lambda P: np.full(P.shape, sigma),
        )
        runs.append(SOFTMAX.head(fit_served(truth, noisy)(X)))
    spread = np.std(runs, axis=0).max(axis=1) / sigma
    told = foretold_answers(truth, noisy, X).errors
    # A deviation of 200 runs errs by a twentieth, and of all inputs alike.
    assert np.median(np.abs(np.log(spread / told))) < 0.15
    assert np.abs(np.log(spread / told)).max() < 0.6


def test_a_few_answers_of_a_missing_neuron_do_not_bend_the_others():
    truth = classifier([4, 6, 3], 8)
    answers = served(truth, 6, 800, 9)
    rows = np.arange(5)
    P = answers.P.copy()
    P[rows] = np.roll(P[rows], 1, axis=1)
    found = fit_served(truth, replace(answers, P=P))
    assert answers.off(found).max() < 4.0


@pytest.mark.parametrize("places", [4, 6])
def test_random_starts_find_the_network_among_answers_of_all_errors(places):
    truth = classifier([4, 6, 3], 10, size=2.0)
    answers = served(truth, places, 600, 11)
    samples = behind(answers, places)
    spread = samples.sigma.max() / np.median(samples.sigma)
    assert spread > 50.0
    rng = np.random.default_rng(12)
    found = fit_served(Graded().find(rng, samples, 14, 1.2), answers)
    fresh = served(truth, places, 4000, 13)
    assert np.abs(SOFTMAX.head(found(fresh.X)) - fresh.P).max() < 2.0 * 10.0**-places


def test_neurons_that_are_missing_join():
    truth = classifier([4, 6, 3], 14)
    answers = served(truth, 6, 600, 15)
    found = Graded().completed(
        np.random.default_rng(16), behind(answers, 6), truth.take(np.arange(5)), 3, 1.2
    )
    assert answers.off(fit_served(found, answers)).max() < 3.0


def test_even_errors_are_the_typical_ones_where_they_differ_by_far():
    truth = classifier([4, 5, 3], 17, size=3.0)
    samples = behind(served(truth, 6, 400, 18), 6)
    even = samples.evenly().sigma
    assert (even >= np.median(samples.sigma, axis=0)).all()
    np.testing.assert_array_equal(even.max(axis=0), samples.sigma.max(axis=0))
    alike = Samples(samples.X, samples.Y, samples.sigma)
    assert alike.evenly().sigma.shape == (2,)
    assert alike.beside(truth) is alike


@pytest.mark.parametrize("places", [5, 8])
def test_the_answers_of_a_classifier_are_certified_to_their_last_place(places):
    truth = zoo.random_network([5, 6, 3], seed=19)
    steep = Network([truth.weights[0], 4.0 * truth.weights[1]], [truth.biases[0], truth.biases[1]])
    target = lambda X: np.round(SOFTMAX.answers(steep(X)), places)  # noqa: E731
    found = revelu.extract(target, dim_in=5, seed=0)
    assert found.status is Status.RECOVERED, found.certificate.statement
    X = np.random.default_rng(0).standard_normal((20_000, 5))
    off = np.abs(SOFTMAX.answers(found.network(X)) - target(X)).max() * 10.0**places
    assert off < 1.5
    assert found.ledger.n_recovery < 30 * truth.n_parameters


def test_a_budget_that_ends_in_a_repair_ends_with_a_status():
    network = zoo.random_network([5, 8, 2], seed=100)

    def answer(X):
        H = X.astype(np.float16)
        for i, (W, b) in enumerate(zip(network.weights, network.biases, strict=True)):
            H = (np.maximum(H, 0) if i else H) @ W.T.astype(np.float16) + b.astype(np.float16)
        with np.errstate(over="ignore"):
            return np.expm1(H.astype(np.float32)).astype(np.float16)

    found = revelu.extract(answer, dim_in=5, seed=0, budget=1400)
    assert found.status is Status.BUDGET_EXHAUSTED
