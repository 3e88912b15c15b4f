"""Status and words follow from what was drawn, from the rows at hand, and from who answers."""

import numpy as np
import pytest
from scipy.special import ndtri

import revelu
from revelu import Domain, Network, Status, zoo
from revelu.certify import certify, examine, examine_rows
from revelu.certify.given import pattern_of
from revelu.numerics.confidence import upper_bound
from revelu.oracle import Oracle, measure_noise
from revelu.oracle.asking import request_sizes
from revelu.report.verdicts import verdict
from revelu.tasks.extract.job import CertifyingJob

NAMES = ["a", "b", "c", "sex"]


def with_a_rare_neuron(network, share):
    """A network with one neuron more, that is on at so large a share of N(0, I)."""
    (W, A), (b, c) = network.weights, network.biases
    row = np.eye(network.dim_in)[:1]
    weights = [np.vstack([W, row]), np.column_stack([A, np.ones(len(A))])]
    return Network(weights, [np.append(b, ndtri(share)), c])


def headline(found, command="extract"):
    return verdict(command, found.to_dict()).words


def table(seed=0, n=300):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.standard_normal((n, 3)), rng.integers(0, 2, n)])


def settle(network, target, seed=0, checks=3000):
    oracle = Oracle(target, network.dim_in)
    job = CertifyingJob(oracle, seed, None, "verify", "verify", checks)
    noise = measure_noise(oracle, seed)
    job.verify(network, noise)
    return job.settle(network, noise)


def test_few_failures_of_many_checks_bound_as_none_of_few_does():
    for n in (59, 300, 3000, 100_000):
        assert upper_bound(4, 4 * n, 0.99) <= upper_bound(0, n, 0.95)


@pytest.mark.parametrize("seed", range(8))
def test_a_network_wrong_at_a_tenth_of_what_is_stated_is_certified(seed):
    network = zoo.random_network([5, 6, 1], seed=seed)
    said = settle(network, with_a_rare_neuron(network, 1e-4), seed)
    assert said.status is Status.RECOVERED
    assert said.certificate.share_wrong < 1e-3
    n_wrong = round((1.0 - said.certificate.fraction_within) * said.certificate.n_checks)
    assert n_wrong <= 4
    assert (f"of which {n_wrong} differ" in said.certificate.statement) is (n_wrong > 0)


@pytest.mark.parametrize("share", [4e-3, 2e-2])
@pytest.mark.parametrize("seed", range(4))
def test_a_network_wrong_at_more_than_is_stated_is_not(share, seed):
    network = zoo.random_network([5, 6, 1], seed=seed)
    said = settle(network, with_a_rare_neuron(network, share), seed)
    assert said is None or said.status is Status.UNVERIFIED


def test_what_differs_beyond_the_domain_is_said_and_does_not_count():
    network = zoo.random_network([5, 6, 1], seed=3)
    target = with_a_rare_neuron(network, 1e-12)
    found = revelu.verify(network, target)
    beyond = found.certificate.beyond
    assert found.status is Status.RECOVERED
    assert 0 < beyond.n_wrong < beyond.n_inputs
    assert beyond.distance * np.sqrt(5.0) > 5.0
    assert beyond.share < 1e-3
    assert f"; {beyond.n_wrong} of {beyond.n_inputs}" in headline(found, "verify")
    X = np.random.default_rng(1).standard_normal((100_000, 5))
    assert np.array_equal(network(X), target(X))


def test_rows_that_disagree_are_counted_and_named():
    rows, network = table(), zoo.random_network([4, 6, 1], seed=1)

    def step(X):
        return network(X)[:, 0] + 3.0 * (X[:, 3] == 1)

    domain = Domain.like(rows, name="table.csv", names=NAMES)
    found = revelu.extract(step, dim_in=4, domain=domain)
    n = int((rows[:, 3] == 1).sum())
    assert found.status is Status.UNVERIFIED
    words = f"NOT certified: {n} of the 300 rows of table.csv disagree, all with sex = 1"
    assert headline(found) == words
    assert found.ledger.n_queries < 10_000


def test_rows_that_agree_are_counted_and_columns_held_are_named():
    rows, network = table(1), zoo.random_network([4, 6, 1], seed=2)
    domain = Domain.like(rows, name="table.csv", names=NAMES)
    found = revelu.extract(network, domain=domain)
    assert found.status is Status.RECOVERED
    assert "all 300 rows of table.csv agree" in found.certificate.statement
    held = revelu.extract(network, domain=Domain.like(rows, names=NAMES, keep_discrete=True))
    value = held.held["sex"]
    assert headline(held) == f"recovered and certified where sex = {value:g}"
    assert f"held: sex at {value:g}" in held.certificate.statement
    assert held.certificate.fidelity.n_inputs == int((rows[:, 3] == value).sum())
    again = revelu.verify(held.network, network, domain=domain)
    assert again.status is Status.UNVERIFIED
    assert any("column sex is not read" in said for said in again.warnings)


def test_rows_are_asked_at_their_values_to_the_last_bit():
    rows = np.column_stack([table(2)[:, :3] * [1e-3, 1.0, 1e6], table(2)[:, 3]]) + 1.0 / 3.0
    network, asked = zoo.random_network([4, 3, 1], seed=1), []

    def target(X):
        asked.append(X.copy())
        return network(X)

    oracle = Oracle(target, 4, domain=Domain.like(rows))
    noise = measure_noise(oracle, 0)
    seen = examine_rows(
        rows[:50], network.after(oracle.domain.matrix.T, oracle.domain.center), oracle, noise
    )
    assert np.array_equal(asked[-1], rows[:50])
    assert seen.passed


def test_patterns_are_of_columns_that_tell():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.standard_normal(200), rng.integers(0, 2, (200, 2)), np.ones(200)])
    both = (rows[:, 1] == 1) & (rows[:, 2] == 0)
    assert pattern_of(rows, both, NAMES) == "all with b = 1 and c = 0"
    assert pattern_of(rows, rows[:, 1] == 1) == "all with column 1 = 1"
    assert pattern_of(rows, rows[:, 0] > 0) == ""
    assert pattern_of(rows, np.arange(200) == 7) == ""


@pytest.mark.parametrize(("n", "most", "mean"), [(3000, 1024, 8), (3000, 5, 8), (7, 1024, 3000)])
def test_requests_are_of_all_sizes_and_carry_every_row(n, most, mean):
    sizes = request_sizes(n, most, mean)
    assert sum(sizes) == n
    assert max(sizes) <= most
    assert min(sizes) >= 1
    assert len(sizes) >= n / (2 * min(mean, most))
    if mean == 8 and most > 16:
        assert set(sizes) >= set(range(1, 16))


def test_checks_travel_in_hundreds_of_requests_whatever_the_workers():
    network, sizes = zoo.random_network([4, 3, 1], seed=1), []

    def target(X):
        sizes.append(len(X))
        return network(X)

    found = revelu.extract(target, dim_in=4, remote=True)
    assert found.status is Status.RECOVERED
    assert found.certificate.n_requests > 350
    assert "in 376 requests" in found.certificate.statement
    slow = revelu.open_oracle(target, dim_in=4, remote=True, rate="600/h")
    assert slow.check_requests == 10


@pytest.mark.parametrize("swaps", [False, True])
def test_a_service_of_two_models_is_met(swaps):
    one, other = (zoo.random_network([6, 5, 2], seed=seed) for seed in (1, 2))
    rng = np.random.default_rng(5)

    def service(X):
        if rng.random() >= 0.02:
            return one(X)
        return one(X)[::-1].copy() if swaps else other(X)

    job = CertifyingJob(Oracle(service, 6, is_remote=True), 0, None, "verify", "verify", 3000)
    found = job.verify(one, measure_noise(Oracle(one, 6), 0))
    assert found.status is Status.NOT_DETERMINISTIC
    assert "agree when they are asked again" in found.limit


def test_noise_is_not_taken_for_a_second_model():
    network = zoo.random_network([5, 6, 1], seed=4)
    oracle = Oracle(with_a_rare_neuron(network, 0.02), 5)
    noise = measure_noise(oracle, 0)
    job = CertifyingJob(oracle, 0, None, "verify", "verify", 500)
    said = job.verify(network, noise)
    assert said.status is Status.UNVERIFIED
    assert not said.limit


def test_a_statement_of_few_requests_says_so():
    network = zoo.random_network([5, 6, 1], seed=4)
    oracle = Oracle(network, 5, is_remote=True)
    noise = measure_noise(oracle, 0)
    seen = examine(network, oracle, noise, 3000, np.random.default_rng(0))
    said = certify(seen).statement
    assert "3,000 fresh checks in 3 requests, less than 64% of which another model" in said
