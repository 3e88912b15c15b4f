"""Smooth functions are told from networks by answers of few digits, and searches end in time."""

import numpy as np
import pytest

import revelu
from revelu.network import zoo
from revelu.oracle import Float32, Oracle, Rounded, degrade, measure_noise
from revelu.probe.smoothness import Smoothness
from revelu.recover.fit.ending import Ending
from revelu.recover.refine.network_fit import Samples

# A length has 4 segments of 13 queries: two lengths where none is smooth, and all four else.
MOST_QUERIES = {False: 104, True: 208}

SMOOTH = {
    "square": zoo.OUTSIDE["square"]((12, 1, 3), seed=2),
    "tanh": zoo.OUTSIDE["tanh"]((12, 6, 3), seed=2),
}


def in_digits(function, d, degradation=None):
    return Oracle(degrade(Oracle(function, d), degradation or Float32()), d)


def looks_smooth(oracle):
    noise = measure_noise(oracle, 1)
    before = oracle.n_queries
    found = Smoothness().is_smooth(oracle, noise, oracle.dim_in, np.random.default_rng(1))
    return found, oracle.n_queries - before


@pytest.mark.parametrize("kind", [*zoo.KINDS, "two_hidden", "wide"])
def test_no_network_is_smooth(kind):
    widths = {"affine": (9, 2), "constant": (9, 2), "wide": (9, 900, 2)}.get(kind, (9, 24, 2))
    if kind == "sign_ambiguous":
        network = zoo.sign_ambiguous(9, seed=3)
    elif kind == "two_hidden":
        network = zoo.random_network((9, 9, 60, 2), seed=3)
    else:
        network = zoo.KINDS.get(kind, zoo.random_network)(widths, seed=3)
    found, n_queries = looks_smooth(in_digits(network, network.dim_in))
    assert not found
    assert n_queries <= MOST_QUERIES[True]


@pytest.mark.parametrize("kind", SMOOTH)
def test_smooth_functions_are(kind):
    found, n_queries = looks_smooth(in_digits(SMOOTH[kind], 12))
    assert found
    assert n_queries <= MOST_QUERIES[True]


def test_too_few_digits_tell_nothing():
    assert not looks_smooth(in_digits(SMOOTH["tanh"], 12, Rounded(2)))[0]


@pytest.mark.parametrize("kind", SMOOTH)
def test_what_is_smooth_in_float32_is_no_network(kind):
    found = revelu.extract(in_digits(SMOOTH[kind], 12))
    assert found.status is revelu.Status.NOT_IN_CLASS
    assert found.network is None
    assert found.ledger.n_queries < 6000


def samples_of(n=2000, d=6, spread=1e5):
    rng = np.random.default_rng(1)
    return Samples(rng.standard_normal((n, d)), spread * rng.standard_normal((n, 1)), np.ones(1))


def ended(left, n_kinks=None, *, is_estimate=True):
    samples = samples_of()
    shares = [(width, errors / samples.evenly().spread()) for width, errors in left]
    return Ending().obstacle(shares, samples, 1.5, n_kinks, is_estimate=is_estimate)


def test_search_goes_on_while_neurons_gain():
    assert ended([(10, 5e4), (20, 2e4), (40, 9e3)]) == ""


def test_search_ends_where_twice_the_neurons_gain_nothing():
    assert "twice the neurons explain no more" in ended([(10, 5e4), (20, 4.9e4)])


def test_search_ends_near_noise_and_asks_for_digits():
    said = ended([(10, 5e4), (15, 4.5), (20, 3.7)])
    assert "what is left, 3.7 errors of an answer" in said
    assert "a digit or two more" in said
    # Half is a gain; where the noise is known what is left is none; nor is what is far from it.
    assert ended([(10, 5e4), (15, 4.5), (20, 2.2)]) == ""
    assert ended([(10, 5e4), (15, 4.5), (20, 3.7)], is_estimate=False) == ""
    assert ended([(10, 5e4), (15, 450.0), (20, 370.0)]) == ""
    # What explained its own samples alone says nothing.
    assert ended([(10, 5e4), (15, 0.9), (20, 3.7)]) == ""
    assert ended([(10, 5e4), (15, 4.5), (20, 0.9)]) == ""


def test_search_ends_at_many_neurons_for_the_kinks_of_a_line():
    left = [(20, 5e4), (40, 2e4)]
    assert ended(left, n_kinks=10) != ""
    assert ended(left, n_kinks=11) == ""
    assert ended(left, n_kinks=0) == ""
    assert ended([(20, 5e4), (130, 2e4)]) != ""
