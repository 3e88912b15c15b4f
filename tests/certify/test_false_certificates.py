"""What must not be certified, and what must be all the same."""

from dataclasses import replace

import numpy as np
import pytest

import revelu
from revelu.certify import certify, examine
from revelu.network import Network, zoo
from revelu.oracle import Float32, Noisy, Oracle, Rounded, degrade, measure_noise
from revelu.oracle.grid import Grid
from revelu.oracle.numbers import Numbers, read_numbers
from revelu.recovery import Status
from revelu.tasks.extract.precision import refusal


def certificate_of(network, target, n=1000, seed=0, **options):
    oracle = Oracle(target, network.dim_in, **options)
    noise = measure_noise(oracle, seed)
    return certify(examine(network, oracle, noise, n, np.random.default_rng(seed)))


def deviation(function, d):
    return function(np.random.default_rng(7).standard_normal((4000, d))).std(axis=0)


def scaled_outputs(network, factors):
    (W, A), (b, c) = network.weights, network.biases
    return Network([W, A * np.asarray(factors)[:, None]], [b, c * np.asarray(factors)])


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


class Turning:
    """Answers one way while the noise is measured, another way after that."""

    def __init__(self, first, second):
        self.first, self.second, self.n_left = first, second, 64

    def __call__(self, X):
        answers = self.first(X) if self.n_left > 0 else self.second(X)
        self.n_left -= len(X)
        return answers


def plates(X):
    """Two outputs between 0 and 1 that sum to anything from 1.1 to 1.5."""
    U = X @ np.random.default_rng(0).standard_normal((2, 4)).T
    plate = np.maximum(U + 1, 0) - np.maximum(U - 1, 0) - 1
    return np.round([0.8, 0.5] + 0.1 * plate, 2)


def test_coarse_answers_that_do_not_sum_to_1_are_no_probabilities():
    recovery = revelu.extract(plates, dim_in=4)
    assert not recovery.details.get("probabilities")
    X = np.random.default_rng(1).standard_normal((500, 4))
    assert recovery.status is Status.RECOVERED
    assert np.abs(recovery.network(X) - plates(X)).max() <= recovery.certificate.tolerance


@pytest.mark.parametrize("k", [2, 5, 40])
@pytest.mark.parametrize("places", [2, 3])
def test_rounded_probabilities_are_probabilities(k, places):
    p = np.round(softmax(np.random.default_rng(k).standard_normal((200, k))), places)
    numbers = read_numbers(p)
    assert numbers == Numbers("rounded", Grid(10, places=places))
    assert numbers.are_probabilities(p).all()
    wrong = p + (k + 1) * 10.0**-places * np.eye(k)[0]
    assert not numbers.are_probabilities(wrong).any()


def test_answers_that_cease_to_be_probabilities_are_not_certified():
    logits = zoo.random_network([4, 6, 3], seed=2)
    (W, A), (b, c) = logits.weights, logits.biases
    network = Network([W, (A - A[-1])[:-1]], [b, (c - c[-1])[:-1]])
    for factor, passes in ((1.0, True), (1.3, False)):
        target = Turning(lambda X: softmax(logits(X)), lambda X, f=factor: f * softmax(logits(X)))
        certificate = certificate_of(network, target)
        assert certificate.passed is passes
        assert ("not probabilities" in certificate.statement) is not passes


def test_many_outputs_of_few_values_are_not_rounded():
    bias, slope = np.array([0.5, 1.2, -0.3, 2.1, 0.7]), np.array([1, 0.7, -0.6, 0.4, 0.8])

    def target(X):
        return bias + 0.1 * np.maximum(X[:, :1] - 1.0, 0.0) * slope

    assert read_numbers(np.tile(bias, (50, 1))) == Numbers("float64")
    recovery = revelu.extract(target, dim_in=4, seed=6)
    X = np.random.default_rng(1).standard_normal((500, 4))
    assert recovery.status is Status.RECOVERED
    assert np.abs(recovery.network(X) - target(X)).max() < 1e-8


@pytest.mark.parametrize("first", [Float32(), Rounded(3)], ids=str)
def test_answers_of_other_numbers_than_the_first_are_not_certified(first):
    network = zoo.random_network([4, 6, 2], seed=2)
    turning = Turning(degrade(network, first), network)
    certificate = certificate_of(network, turning)
    assert not certificate.passed
    assert "as the first ones were" in certificate.statement
    assert certificate_of(network, degrade(network, first)).passed


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_noise_that_drowns_what_varies_certifies_nothing(share, seed):
    network = zoo.random_network([5, 8, 1], seed=seed)
    sigma = share * float(deviation(network, 5)[0])
    certificate = certificate_of(network, degrade(network, Noisy(sigma, seed=seed)), seed=seed)
    assert certificate.passed is (share < 0.1)
    assert ("drown" in certificate.statement) is (share > 0.1)


def test_an_extraction_from_such_noise_says_so():
    network = zoo.random_network([5, 8, 1], seed=1)
    target = degrade(network, Noisy(0.4 * float(deviation(network, 5)[0]), seed=3))
    recovery = revelu.extract(target)
    assert recovery.status is Status.NOT_DETERMINISTIC
    assert recovery.network is None


@pytest.mark.parametrize("share", [1e-3, 0.3, 1.0])
def test_an_output_that_noise_drowns_beside_a_clear_one_is_not_certified(share):
    network = zoo.random_network([5, 8, 2], seed=4)
    sigma, rng = deviation(network, 5) * [1e-3, share], np.random.default_rng(0)
    target = lambda X: network(X) + sigma * rng.standard_normal((len(X), 2))  # noqa: E731
    assert certificate_of(network, target).passed is (share < 0.1)


def test_a_constant_with_noise_beside_a_clear_output_does_no_harm():
    network = scaled_outputs(zoo.random_network([5, 6, 2], seed=1), [1.0, 0.0])
    rng = np.random.default_rng(0)
    target = lambda X: network(X) + 1e-3 * rng.standard_normal((len(X), 2))  # noqa: E731
    assert refusal(measure_noise(Oracle(target, 5), 0)) is None
    certificate = certificate_of(network, target)
    assert certificate.passed
    assert "output 1: no variation" in certificate.statement


@pytest.mark.parametrize("constant", [0.0, 1 / 3])
@pytest.mark.parametrize("degradation", [Float32(), Rounded(4)], ids=str)
def test_a_constant_output_passes_beside_one_that_varies(constant, degradation):
    varying = scaled_outputs(zoo.random_network([5, 6, 2], seed=1), [1.0, 0.0])
    (W, A), (b, c) = varying.weights, varying.biases
    network = Network([W, A], [b, np.array([c[0], constant])])
    assert certificate_of(network, degrade(network, degradation)).passed


@pytest.mark.parametrize("degradation", [Float32(), Rounded(4), None], ids=str)
@pytest.mark.parametrize("small", [1e-3, 1e-6])
def test_a_large_output_buys_no_tolerance_for_a_small_one(degradation, small):
    network = scaled_outputs(zoo.random_network([5, 6, 2], seed=1), [1.0, small])
    target = network if degradation is None else degrade(network, degradation)
    assert certificate_of(network, target).passed
    (W, A), biases = network.weights, network.biases
    wrong = Network([W, A * np.array([[1.0], [1.01]])], biases)
    assert not certificate_of(wrong, target).passed


@pytest.mark.parametrize("small", [1e-4, 1e-8])
def test_a_small_output_is_recovered_beside_a_large_one(small):
    network = scaled_outputs(zoo.random_network([8, 12, 2], seed=3), [1.0, small])
    recovery = revelu.extract(network, checks=500)
    assert recovery.status is Status.RECOVERED
    X = np.random.default_rng(1).standard_normal((500, 8))
    errors = np.abs(recovery.network(X) - network(X)).max(axis=0)
    assert (errors < 1e-7 * network(X).std(axis=0)).all()


def test_a_constant_that_takes_the_digits_buys_no_tolerance():
    W, b = np.array([[1.0, 0.0, 0.0]] * 2), np.array([1.0, -1.0])
    clipped = Network([W, np.array([[1.0, -1.0]])], [b, np.array([1e14 - 1.0])])
    assert not certificate_of(clipped, lambda X: np.tanh(X[:, 0]) + 1e14).passed
    target = lambda X: np.clip(X[:, 0], -1.0, 1.0) + 1e14  # noqa: E731
    assert certificate_of(clipped, target).passed


@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("degradation", [Float32(), Rounded(3), Noisy(1e-4, seed=1)], ids=str)
def test_the_tolerance_quoted_is_the_one_that_was_used(d, degradation):
    network = zoo.random_network([d, 6, 2], seed=d)
    certificate = certificate_of(network, degrade(network, degradation), n=3000)
    assert certificate.passed
    assert certificate.max_abs_error <= certificate.tolerance
    assert f"{certificate.tolerance:.2g}" in certificate.statement


def test_errors_that_grow_with_the_radius_are_not_within_the_number_quoted():
    target = Network([np.array([[1.0]])], [np.array([0.0])])
    tolerance = certificate_of(target, target).tolerance
    for slope, passes in ((1.0 + 0.1 * tolerance, True), (1.0 + 0.7 * tolerance, False)):
        certificate = certificate_of(Network([np.array([[slope]])], [np.array([0.0])]), target)
        assert certificate.passed is passes
        assert (certificate.max_abs_error <= certificate.tolerance) is passes


@pytest.mark.parametrize("output", [0.0, 1.0])
def test_a_network_that_overflows_where_the_target_does_not_is_not_certified(output):
    # Beyond x = 1 two neurons are infinite, with opposite signs: no number.
    W, b = np.array([[1e150, 0.0], [1e150, 0.0], [0.0, 1.0]]), np.array([-1e150, -1e150, 0.0])
    network = Network([W, np.array([[1e200, -1e200, output]])], [b, np.zeros(1)])
    target = lambda X: output * np.maximum(X[:, 1], 0.0)  # noqa: E731
    certificate = certificate_of(network, target)
    assert not certificate.passed
    assert 0.5 < certificate.fraction_within < 1.0


def test_a_certificate_of_what_is_wrong_far_out_only_says_so():
    network = zoo.random_network([6, 8, 1], seed=2)
    (W, A), (b, c) = network.weights, network.biases
    far = np.vstack([W, [30.0, 0, 0, 0, 0, 0]])
    target = Network([far, np.append(A, [[1.0]], axis=1)], [np.append(b, -240.0), c])
    certificate = certificate_of(network, target)
    assert certificate.fraction_within == 1.0
    assert certificate.structural_within < 1.0
    assert certificate.passed  # of N(0, I), and it says where it is wrong
    beyond = certificate.beyond
    assert beyond.n_wrong == round((1.0 - certificate.structural_within) * beyond.n_inputs)
    assert beyond.distance > 2.0
    assert beyond.share < 1e-4 < certificate.share_wrong
    assert "tails) differ by more than their tolerance" in certificate.statement


def test_more_checks_than_memory_holds_are_cut_to_the_budget_first():
    network = zoo.random_network([5, 6, 1], seed=1)
    certificate = certificate_of(network, network, n=10**12, budget=264)
    assert certificate.passed
    assert certificate.n_checks + certificate.n_structural == 200
    assert "the budget left out 1,099,999,999," in certificate.statement


def test_the_checks_left_out_are_those_of_the_whole_request():
    network = zoo.random_network([5, 6, 1], seed=1)
    oracle = Oracle(network, 5, budget=300)
    noise = measure_noise(oracle, 0)
    rng = np.random.default_rng(0)
    seen = examine(network, oracle, noise, 256, rng)
    seen += examine(network, oracle, noise, 744, rng, structural=False)
    # 256 and a tenth of them in the tails, 24 at the hyperplanes of 6 neurons.
    assert len(seen.X) + seen.n_skipped == 256 + 26 + 24 + 744
    assert f"left out {seen.n_skipped:,} checks" in certify(seen).statement


def test_a_float32_softmax_near_saturation_comes_back():
    scale = 6.0
    network = zoo.random_network([6, 5, 3], seed=2)

    def probabilities(X):
        return softmax((scale * network(X)).astype(np.float32))

    recovery = revelu.extract(probabilities, dim_in=6)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    z = scale * network(np.random.default_rng(0).standard_normal((500, 6)))
    X = np.random.default_rng(0).standard_normal((500, 6))
    found = recovery.network(X)
    np.testing.assert_allclose(found - found[:, -1:], z - z[:, -1:], atol=2e-5 * scale)


def test_probabilities_without_digits_are_said_to_be_that():
    network = zoo.random_network([6, 5, 3], seed=2)
    oracle = Oracle(lambda X: softmax(network(X)).astype(np.float32), 6)
    noise = measure_noise(oracle, 0)
    assert noise.link.name == "softmax"
    assert refusal(noise) is None
    refused = refusal(replace(noise, nu=np.full(2, 0.5)))
    assert refused.status is Status.UNVERIFIED
    assert refused.saturated
    assert "ask it for logits" in refused.reason


@pytest.mark.parametrize("digits", [3, 5])
def test_a_tail_of_exponentials_does_not_buy_a_tolerance_for_all_others(digits):
    truth = scaled_outputs(zoo.random_network([4, 6, 1], seed=2), [4.0])
    wrong = Network(truth.weights, [truth.biases[0], truth.biases[1] + 0.1])

    def served(X):
        with np.errstate(over="ignore"):
            return np.vectorize(lambda y: float(f"{y:.{digits}g}"))(np.exp(truth(X)))

    oracle = Oracle(served, 4, link="log")
    noise = measure_noise(oracle, 0)
    seen = examine(truth, oracle, noise, 1000, np.random.default_rng(1))
    assert certify(seen).passed
    assert not certify(seen.by(wrong)).passed
