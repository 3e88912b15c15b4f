"""Smooth functions are told from networks by answers of few digits, and searches end in time."""

import itertools

import numpy as np
import pytest
from scipy.special import erf, expit, softmax

import revelu
from revelu.network import zoo
from revelu.oracle import Float32, Noisy, Oracle, Rounded, degrade, measure_noise
from revelu.probe.smoothness import Smoothness
from revelu.recover.fit.ending import Ending
from revelu.recover.refine.network_fit import Samples

# A turn has 4 segments of 13 queries, at 3 lengths each at most.
MOST_QUERIES = {False: 4 * 13 * 3, True: 16 * 13 * 3}

ACTIVATIONS = {
    "tanh": np.tanh,
    "gelu": lambda z: z * (1.0 + erf(z / np.float32(np.sqrt(2.0)))) / np.float32(2.0),
    "silu": lambda z: z * expit(z),
    "softplus": lambda z: np.logaddexp(np.float32(0.0), z),
    "elu": lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0.0))),
    "sigmoid": expit,
}


def layers(activation, widths, seed):
    """Layers of any activation, in float32 throughout."""
    rng = np.random.default_rng(seed)
    drawn = [
        (rng.standard_normal((d, k)) / np.sqrt(d), 0.3 * rng.standard_normal(k))
        for d, k in itertools.pairwise(widths)
    ]
    rounded = [(W.astype(np.float32), b.astype(np.float32)) for W, b in drawn]

    def ask(X):
        H = X.astype(np.float32)
        for W, b in rounded[:-1]:
            H = activation(H @ W + b)
        W, b = rounded[-1]
        return H @ W + b

    return ask


def attention(d, seed, *, n_tokens=4):
    """A head of attention over few tokens, in float32 throughout."""
    rng = np.random.default_rng(seed)
    e = d // n_tokens
    Q, K, V = (rng.standard_normal((3, e, e)) / np.sqrt(e)).astype(np.float32)
    out = (rng.standard_normal((d, 3)) / np.sqrt(d)).astype(np.float32)

    def ask(X):
        T = X.astype(np.float32).reshape(-1, n_tokens, e)
        scores = softmax((T @ Q) @ (T @ K).transpose(0, 2, 1), axis=2)
        return (scores @ (T @ V)).reshape(-1, d) @ out

    return ask


SMOOTH = {
    "square": zoo.OUTSIDE["square"]((12, 1, 3), seed=2),
    "attention": attention(12, 2),
    **{kind: layers(f, (12, 20, 3), 2) for kind, f in ACTIVATIONS.items()},
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
    assert n_queries <= MOST_QUERIES[False]


@pytest.mark.parametrize("kind", SMOOTH)
def test_smooth_functions_are(kind):
    found, n_queries = looks_smooth(in_digits(SMOOTH[kind], 12))
    assert found
    assert n_queries <= MOST_QUERIES[True]


def test_too_few_digits_tell_nothing():
    assert not looks_smooth(in_digits(SMOOTH["tanh"], 12, Rounded(2)))[0]


@pytest.mark.parametrize("widths", [(4, 100, 1), (2, 300, 1), (4, 64, 64, 64, 1), (10, 16, 1)])
def test_dense_relu_networks_look_smooth_nowhere(widths):
    for seed in range(15):
        target = Oracle(layers(lambda z: np.maximum(z, 0), widths, seed), widths[0])
        found, n_queries = looks_smooth(target)
        assert not found
        assert n_queries <= MOST_QUERIES[False]


@pytest.mark.parametrize("degradation", [Rounded(4), Noisy(1e-4, 1)], ids=repr)
def test_coarse_answers_are_not_asked_for(degradation):
    assert looks_smooth(in_digits(SMOOTH["tanh"], 12, degradation)) == (False, 0)


def test_neurons_of_one_sign_look_smooth_nowhere():
    """Bends that add up are the nearest that a network comes to a smooth function."""
    for seed in range(10):
        drawn = zoo.random_network((4, 1000, 1), seed=seed)
        target = revelu.Network([drawn.weights[0], np.ones((1, 1000)) / 1000**0.5], drawn.biases)
        assert not looks_smooth(in_digits(target, 4))[0]


@pytest.mark.parametrize("kind", SMOOTH)
def test_what_is_smooth_in_float32_is_no_network(kind):
    found = revelu.extract(in_digits(SMOOTH[kind], 12))
    assert found.status is revelu.Status.NOT_IN_CLASS
    assert found.network is None
    assert "smooth" in found.evidence[0]
    assert found.ledger.n_queries < 13_000


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
