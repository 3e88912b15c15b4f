"""What is said to try next: a seed or a budget only where it can help."""

import numpy as np
import pytest

import revelu
from revelu import Oracle, Recovery, Status
from revelu.certify import Examination, certify
from revelu.oracle import measure_noise
from revelu.recover.method import Candidate, Why
from revelu.recover.structured import SharedWeights
from revelu.recovery import Ledger
from revelu.tasks.extract.advice import MORE_DIGITS, SHARES, advice
from revelu.tasks.extract.attempt import Attempt
from revelu.tasks.extract.chain import _obstacles

NETWORK = revelu.zoo.random_network([64, 16, 4], seed=0)


def in_eight_bits(X):
    size = np.abs(X).max(axis=1, keepdims=True) / 127
    return np.rint(X / np.where(size > 0, size, 1.0)) * size


def quantised(X):
    """Rows and hidden numbers by themselves, as onnxruntime's dynamic int8 has them."""
    (W, A), (b, c) = NETWORK.weights, NETWORK.biases
    hidden = np.maximum(in_eight_bits(X) @ W.T + b, 0)
    return (in_eight_bits(hidden) @ A.T + c).astype(np.float32)


@pytest.mark.slow
def test_quantised_network_is_named_and_no_seed_advised():
    found = revelu.extract(quantised, dim_in=64, budget=5000)
    said = " ".join((*found.evidence, *found.warnings))
    assert found.status is Status.UNVERIFIED
    assert "quantised network" in said
    assert "numbers in steps" in said
    assert "seed may help" not in said
    assert "larger budget" not in said


def ended(target, status, off, *, budget=None):
    """An extraction that ended with a network that is off by so many tolerances."""
    oracle = Oracle(target, 64, budget=budget)
    noise = measure_noise(oracle, 0)
    X = np.random.default_rng(0).standard_normal((80, 64))
    if budget is not None:
        with pytest.raises(revelu.ReveluError):
            oracle(np.ones((budget, 64)))
    Y = np.asarray(target(X), dtype=np.float64)
    seen = Examination(X, Y, Y, np.ones(80, dtype=bool), noise)
    certificate = certify(seen)
    wrong = Y + off * certificate.tolerance
    certificate = certify(Examination(X, Y, wrong, np.ones(80, dtype=bool), noise))
    found = Recovery(status, NETWORK, certificate, ledger=Ledger(80, 1, {}), answers=noise.answers)
    return advice(found, oracle, "auto")


@pytest.mark.parametrize("status", [Status.UNVERIFIED, Status.PARTIAL])
def test_seed_is_advised_where_it_can_help(status):
    assert ended(NETWORK, status, 1e4)[1:] == ["another seed may help"]
    limited = ended(NETWORK, status, 1e4, budget=70)
    assert limited[1:] == ["another seed or a larger budget may help"]


@pytest.mark.parametrize("status", [Status.UNVERIFIED, Status.PARTIAL])
@pytest.mark.parametrize(
    ("target", "off"),
    [(NETWORK, 3.0), (lambda X: np.round(NETWORK(X), 2), 100.0)],
    ids=["as good as the floor", "two decimals"],
)
def test_seed_is_not_advised_where_the_floor_limits(target, off, status):
    assert ended(target, status, off)[1:] == [MORE_DIGITS]


def test_only_the_limit_that_was_given_is_to_be_raised():
    found = Recovery(Status.BUDGET_EXHAUSTED, None, ledger=Ledger(0, 0, {}))
    for given, words in [
        ({"budget": 70}, "raise the budget"),
        ({"max_seconds": 1.0}, "raise the time allowed"),
        ({"budget": 70, "max_seconds": 1.0}, "raise the budget or the time allowed"),
    ]:
        assert advice(found, Oracle(NETWORK, 64, **given), "auto") == [words]


def test_a_sigmoid_of_few_decimals_is_to_be_named():
    network = revelu.zoo.random_network([5, 6, 1], seed=8_620_300)

    def answers(X):
        return np.round(1.0 / (1.0 + np.exp(-network(X))), 2)

    found = revelu.extract(answers, dim_in=5, budget=1000)
    assert found.status is Status.BUDGET_EXHAUSTED
    assert found.evidence[-1] == SHARES
    assert SHARES not in revelu.extract(answers, dim_in=5, budget=1000, link="logit").evidence
    assert SHARES not in revelu.extract(network, dim_in=5, budget=100).evidence


def test_what_starts_say_again_is_said_once():
    method = SharedWeights()
    first = Candidate(None, Why.NOT_SHARED, obstacles=("no shared weights: neurons see the image",))
    again = Candidate(None, Why.NOT_SHARED, obstacles=("no shared weights: signs are left open",))
    tried = [Attempt(method, said, Status.UNVERIFIED) for said in (first, again)]
    for best in tried:
        assert _obstacles(tried, best) == list(best.candidate.obstacles)
