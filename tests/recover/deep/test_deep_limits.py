"""Where the search of deep networks ends: other functions, saturated, blurred and cut answers."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from test_deep import are_layers_of

import revelu
from revelu import Network, Status
from revelu.network import zoo
from revelu.oracle import Oracle, Rounded, degrade, measure_noise
from revelu.recover.deep import Deep
from revelu.tasks.extract.claims import doubt_about
from revelu.tasks.extract.job import CertifyingJob


def leaky(X, rng_seed=3, widths=(7, 6), slope=0.1):
    rng = np.random.default_rng(rng_seed)
    for k in widths:
        Z = X @ rng.standard_normal((X.shape[1], k)) / 2 + rng.standard_normal(k) / 3
        X = np.where(Z > 0, Z, slope * Z)
    return X @ rng.standard_normal(widths[-1])


def max_pooling(X, rng_seed=4):
    rng = np.random.default_rng(rng_seed)
    h = X @ rng.standard_normal((X.shape[1], 12)) + rng.standard_normal(12) / 3
    h = np.maximum(h.reshape(len(X), 6, 2).max(axis=2), 0.0)
    return np.maximum(h @ rng.standard_normal((6, 5)) + 0.1, 0.0) @ rng.standard_normal(5)


def tanh(X, rng_seed=5):
    rng = np.random.default_rng(rng_seed)
    for k in (7, 6):
        X = np.tanh(X @ rng.standard_normal((X.shape[1], k)) + rng.standard_normal(k) / 3)
    return X @ rng.standard_normal(6)


@pytest.mark.slow
@pytest.mark.parametrize("target", [leaky, max_pooling, tanh])
@pytest.mark.parametrize("seed", range(2))
def test_other_activations_are_never_recovered_nor_a_layer_claimed(target, seed):
    recovery = revelu.extract(
        target, method="deep", dim_in=8, seed=seed, budget=200_000, checks=300
    )
    assert target is leaky or recovery.status is not Status.RECOVERED
    assert_true(recovery, target)
    assert recovery.status is Status.RECOVERED or recovery.evidence


def assert_true(recovery, target):
    """A leaky unit is two ReLUs: what is certified holds, and no layer is said to be exact."""
    assert not recovery.details.get("layers")
    if recovery.status is Status.RECOVERED:
        X = np.random.default_rng(9).standard_normal((100_000, 8))
        off = np.abs(recovery.network(X)[:, 0] - target(X)) > recovery.certificate.tolerance
        assert off.mean() < recovery.certificate.share_wrong


@pytest.mark.slow
def test_neurons_that_are_no_relus_are_given_up_early():
    target = partial(leaky, widths=(10, 6))
    recovery = revelu.extract(target, dim_in=8, seed=1, checks=300)
    assert_true(recovery, target)
    assert recovery.ledger.n_queries < 20_000


@pytest.mark.slow
def test_two_layers_of_absolute_values_are_pairs_of_relus():
    target = partial(leaky, slope=-1.0)
    recovery = revelu.extract(target, dim_in=8, seed=1, checks=300)
    assert recovery.status is Status.RECOVERED
    X = 2.0 * np.random.default_rng(2).standard_normal((20_000, 8))
    np.testing.assert_allclose(recovery.network(X)[:, 0], target(X), atol=1e-8)
    assert recovery.ledger.n_queries < 20_000


@pytest.mark.parametrize("widths", [(8, 6, 1, 4, 1), (1, 5, 4, 3, 1)])
def test_networks_whose_answers_are_blurred_are_not_said_to_curve(widths):
    truth = zoo.random_network(list(widths), seed=1)
    recovery = revelu.extract(truth, method="deep", seed=1, checks=300, budget=12_000)
    assert recovery.status is not Status.NOT_IN_CLASS


@pytest.mark.slow
@pytest.mark.parametrize("widths", [(5, 16, 10, 1), (8, 6, 6, 4, 1)])
def test_a_budget_that_ends_anywhere_is_kept_and_what_was_found_is_true(widths):
    truth = zoo.random_network(list(widths), seed=41)
    whole = revelu.extract(truth, method="deep", seed=1, checks=300)
    n_found = 0
    for share in np.linspace(0.1, 0.9, 5):
        budget = int(share * whole.ledger.n_recovery)
        recovery = revelu.extract(truth, method="deep", budget=budget, seed=1, checks=300)
        if recovery.status is Status.RECOVERED:
            # It was found and certified before the search for rare neurons, which was cut.
            X = np.random.default_rng(9).standard_normal((20_000, widths[0]))
            off = np.abs(recovery.network(X) - truth(X)).max(axis=1)
            assert (off > recovery.certificate.tolerance).mean() <= recovery.certificate.share_wrong
        else:
            assert recovery.status is Status.BUDGET_EXHAUSTED, share
        assert recovery.ledger.n_queries <= budget
        assert are_layers_of(recovery.details["layers"], truth), share
        n_found += recovery.network is not None
    assert n_found or len(widths) > 4


@pytest.mark.parametrize("lost", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shift", [0.5, 2.5, 30.0])
def test_a_target_that_answers_no_numbers_in_a_half_space_is_told_so(lost, shift):
    truth = zoo.random_network([5, 12, 8, 1], seed=3)
    w = np.ones(5) / np.sqrt(5)

    def target(X):
        Y = truth(X)
        Y[X @ w > shift] = lost
        return Y

    with pytest.raises(revelu.TargetError, match=f"answered {lost}"):
        revelu.extract(target, method="deep", dim_in=5, seed=1, checks=300)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [1.0, 2.5, 6.0])
def test_a_classifier_that_is_saturated_in_a_half_space_ends_in_a_status(shift):
    truth = zoo.random_network([5, 12, 8, 3], seed=3)
    w = np.ones(5) / np.sqrt(5)

    def probabilities(X):
        odds = np.exp(truth(X) - truth(X).max(axis=1, keepdims=True))
        odds[X @ w > shift] = [1.0, 0.0, 0.0]
        return odds / odds.sum(axis=1, keepdims=True)

    recovery = revelu.extract(
        probabilities, method="deep", dim_in=5, seed=1, budget=60_000, checks=300
    )
    assert recovery.evidence or recovery.status is Status.RECOVERED
    assert are_layers_of(recovery.details.get("layers", []), truth)


@pytest.mark.slow
def test_a_search_goes_on_from_its_journal(tmp_path):
    truth = zoo.random_network([8, 6, 5, 1], seed=1)
    whole = revelu.extract(truth, method="deep", seed=3, checks=300)
    journal = str(tmp_path / "journal")

    def part(budget):
        with revelu.open_oracle(truth, journal=journal) as oracle:
            oracle.budget = budget
            return revelu.extract(oracle, method="deep", seed=3, checks=300)

    first = part(1000)
    assert first.status is Status.BUDGET_EXHAUSTED
    again = part(None)
    assert again.status is whole.status
    # A run asks a few rows again, to see that the target is still the same.
    assert again.ledger.n_queries <= whole.ledger.n_queries + 64
    for W, V in zip(again.network.weights, whole.network.weights, strict=True):
        assert np.array_equal(W, V)


def test_the_same_seed_asks_the_same_questions():
    truth = zoo.random_network([8, 6, 5, 1], seed=3)
    first, second = (revelu.extract(truth, method="deep", seed=4, checks=300) for _ in range(2))
    assert first.ledger == second.ledger
    assert first.network == second.network


def test_answers_of_few_digits_are_refused_before_the_search():
    truth = zoo.random_network([8, 6, 4, 3, 1], seed=2)
    recovery = revelu.extract(degrade(truth, Rounded(4)), method="deep", seed=1)
    assert recovery.status is Status.UNVERIFIED
    assert "rounded" in recovery.evidence[0]
    assert recovery.ledger.n_queries == 64


@pytest.mark.slow
def test_three_layers_in_float32_come_back_or_stay_unverified():
    truth = zoo.random_network([8, 6, 4, 3, 1], seed=2)
    recovery = revelu.extract(
        lambda X: truth(X).astype(np.float32), method="deep", dim_in=8, seed=1
    )
    off = 1.0
    if recovery.network is not None:
        X = np.random.default_rng(0).standard_normal((2000, 8))
        off = float(np.std(recovery.network(X) - truth(X)) / np.std(truth(X)))
    assert recovery.status is Status.UNVERIFIED or off < 1e-5
    assert recovery.ledger.n_queries < 300_000


@pytest.mark.slow
def test_neurons_on_at_nearly_all_inputs_do_not_make_a_layer_false():
    # Two neurons of the fourth layer are on at nearly all inputs; where one of them rests, the
    # third layer's last does, too.
    truth = zoo.random_network([30, 20, 10, 8, 6, 1], seed=7_830_018)
    recovery = revelu.extract(truth, method="deep", seed=7_830_018, budget=400_000)
    assert recovery.details["layers"]
    assert are_layers_of(recovery.details["layers"], truth)


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0.7), (-1.0, 0.7), (1.0, 1e-3)])
def test_two_neurons_along_each_other_make_no_false_layer(factor, shift):
    plain = zoo.random_network([8, 5, 4, 2], seed=0)
    W, b = plain.weights[0].copy(), plain.biases[0].copy()
    W[1], b[1] = factor * W[0], factor * b[0] + shift
    truth = Network([W, *plain.weights[1:]], [b, *plain.biases[1:]])
    recovery = revelu.extract(truth, method="deep", seed=0)
    assert are_layers_of(recovery.details["layers"], truth)


def test_an_output_that_is_always_0_is_so_exactly():
    plain = zoo.random_network([4, 6, 5, 2], seed=3)
    weights = [*plain.weights[:-1], plain.weights[-1] * [[0.0], [1.0]]]
    truth = revelu.Network(weights, [*plain.biases[:-1], plain.biases[-1] * [0.0, 1.0]])
    recovery = revelu.extract(truth, method="deep", seed=1, checks=1000)
    assert recovery.status is Status.RECOVERED
    X = np.random.default_rng(0).standard_normal((1000, 4))
    assert not recovery.network(X)[:, 0].any()


def test_neurons_that_pass_on_an_affine_map_are_counted():
    oracle = Oracle(zoo.random_network([3, 4, 2, 1], seed=0), 3)
    climb = Deep().start(oracle, measure_noise(oracle, 0), np.random.default_rng(0))
    rows = np.vstack([np.eye(3), -np.eye(3)])
    network = revelu.Network([rows, np.ones((1, 6))], [np.array([50.0] * 5 + [0.0]), np.zeros(1)])
    climb.network, climb.answers.X = network, np.random.default_rng(0).standard_normal((100, 3))
    climb.answers.is_plain = np.ones(100, dtype=bool)
    [said] = climb._always_on()
    assert said.startswith("5 of the 6 neurons of hidden layer 1 are on")


def rarely_changing(seed):
    """A deep network whose last hidden neurons fire at a hundredth to a tenth of all inputs."""
    rng = np.random.default_rng(seed)
    widths = [int(n) for n in (rng.integers(2, 8), *rng.integers(2, 6, 2), 1)]
    drawn = zoo.random_network(widths, seed=seed)
    X = rng.standard_normal((20_000, widths[0]))
    share = 10.0 ** rng.uniform(-2.0, -1.0)
    below = np.quantile(drawn.preactivations(X)[1] - drawn.biases[1], 1.0 - share, axis=0)
    return Network(drawn.weights, [drawn.biases[0], -below, drawn.biases[2]])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_no_layer_is_called_exact_where_the_answers_hardly_change(seed):
    # A deeper neuron's hyperplane bends such a function wherever anything changes.
    truth = rarely_changing(seed)
    recovery = revelu.extract(truth, seed=seed, checks=300, max_seconds=4)
    assert are_layers_of(recovery.details.get("layers", []), truth)
    if recovery.first_layer is not None:
        assert are_layers_of([recovery.first_layer], truth)


@pytest.mark.slow
def test_a_first_layer_above_which_no_row_is_left_is_not_added_to():
    truth = rarely_changing(6)
    recovery = revelu.extract(truth, seed=6, checks=300, budget=60_000)
    assert recovery.status in {Status.UNVERIFIED, Status.PARTIAL, Status.BUDGET_EXHAUSTED}
    assert are_layers_of(recovery.details.get("layers", []), truth)


def test_no_layer_is_called_exact_that_does_not_see_all_that_the_answers_do():
    truth = zoo.random_network([9, 3, 9, 1], seed=2)
    oracle = Oracle(truth, 9)
    job = CertifyingJob(oracle, 1, None, "extract", "revelu", 100)
    noise = measure_noise(oracle, 1)
    W, b = truth.weights[0], truth.biases[0]
    assert not doubt_about(job, noise, ((W, b),))
    said = doubt_about(job, noise, ((W[:2], b[:2]),))
    assert "directions that none of the 2 neurons found looks in" in said


def test_a_row_that_is_off_beside_its_hyperplane_is_not_called_exact():
    truth = zoo.random_network([5, 8, 6, 1], seed=4)
    oracle = Oracle(truth, 5)
    job = CertifyingJob(oracle, 1, None, "extract", "revelu", 100)
    noise = measure_noise(oracle, 1)
    W, b = truth.weights[0].copy(), truth.biases[0].copy()
    moves = np.linalg.norm(W[2]) * np.random.default_rng(0).standard_normal(5) / 5.0**0.5
    W[2] += 1e-9 * moves
    assert not doubt_about(job, noise, ((W, b),))
    W[2] += 4e-6 * moves
    assert "beside the hyperplane" in doubt_about(job, noise, ((W, b),))


def test_a_search_that_is_cut_anywhere_calls_no_row_exact_that_is_off():
    # Rows as the first line has shown them, two of which are known to 1e-6 alone, and no layer
    # above yet; the clock counts rows, so that the cut is where it is.
    drawn = zoo.random_network([13, 9, 3, 8], seed=1736274642)
    X = np.random.default_rng(0).standard_normal((4_000, 13))
    sums = drawn.preactivations(X)[1] - drawn.biases[1]
    rare = Network(
        drawn.weights, [drawn.biases[0], -np.quantile(sums, 0.999, axis=0), drawn.biases[2]]
    )
    truth = zoo.scaled(rare, 1.1468405406804013e-07, 1.0)
    for cut in (800, 2_000, 4_500):
        asked = []

        def target(X, asked=asked):
            asked.append(len(X))
            return truth(X)

        oracle = Oracle(target, 13, max_seconds=cut, clock=lambda asked=asked: float(sum(asked)))
        recovery = revelu.extract(oracle, seed=41002394, checks=300)
        assert recovery.status is Status.BUDGET_EXHAUSTED
        assert are_layers_of(recovery.details.get("layers", []), truth)


# Of the benchmark of deep targets: layers that fire at a thousandth to a third of the inputs.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "share"),
    [((3, 30, 3, 1), 0.003), ((5, 16, 4, 3, 10, 1), 0.01), ((9, 2, 7, 5, 8), 0.02)],
)
def test_a_network_whose_answers_hardly_change_is_not_said_to_be_none(widths, share):
    for seed in range(3):
        drawn = zoo.random_network(list(widths), seed=seed)
        X = np.random.default_rng(seed).standard_normal((4_000, widths[0]))
        top = len(widths) - 3
        sums = drawn.preactivations(X)[top] - drawn.biases[top]
        biases = list(drawn.biases)
        biases[top] = -np.quantile(sums, 1.0 - share, axis=0)
        truth = Network(drawn.weights, biases)
        recovery = revelu.extract(truth, seed=seed, checks=300, max_seconds=4)
        assert recovery.status is not Status.NOT_IN_CLASS, recovery.evidence


@pytest.mark.parametrize("j", range(3))
def test_a_row_of_the_other_sign_is_not_called_exact(j):
    truth = zoo.random_network([9, 5, 6, 4, 1], seed=3)
    oracle = Oracle(truth, 9)
    job = CertifyingJob(oracle, 1, None, "extract", "revelu", 100)
    noise = measure_noise(oracle, 1)
    W, b = truth.weights[0].copy(), truth.biases[0].copy()
    assert not doubt_about(job, noise, ((W, b),))
    W[j], b[j] = -W[j], -b[j]
    assert "sign" in doubt_about(job, noise, ((W, b),))


def test_a_layer_without_a_row_that_goes_on_is_not_called_exact():
    truth = zoo.random_network([5, 8, 6, 1], seed=4)
    oracle = Oracle(truth, 5)
    job = CertifyingJob(oracle, 1, None, "extract", "revelu", 100)
    noise = measure_noise(oracle, 1)
    W, b = truth.weights[0], truth.biases[0]
    assert not doubt_about(job, noise, ((W, b),))
    for j in range(8):
        others = np.delete(W, j, axis=0), np.delete(b, j)
        assert "goes straight on" in doubt_about(job, noise, (others,)), j


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_first_layer_lacks_no_row_that_only_one_output_reads(seed):
    # Above two rows stand neurons that pass them on: no walk tells who reads them.
    rng, d = np.random.default_rng(seed), 5
    W1, b1 = rng.standard_normal((d + 2, d)), 0.3 * rng.standard_normal(d + 2)
    W2, A = np.zeros((6, d + 2)), np.zeros((2, 6))
    W2[:4, :d], W2[4:, d:] = rng.standard_normal((4, d)), np.eye(2)
    A[0, :4], A[1, 4:] = rng.standard_normal(4), rng.standard_normal(2)
    b2 = np.append(0.3 * rng.standard_normal(4), [0.0, 0.0])
    truth = Network([W1, W2, A], [b1, b2, np.zeros(2)])
    recovery = revelu.extract(truth, seed=seed, checks=300, max_seconds=20)
    layers = recovery.details.get("layers", [])
    assert are_layers_of(layers, truth)
    assert all(len(W) == d + 2 for W, _ in layers[:1])


@pytest.mark.parametrize("method", ["auto", "near_duplicates"])
@pytest.mark.parametrize("seed", [3, 8, 11, 14])
def test_an_output_that_is_cut_off_at_zero_ends_in_a_status(seed, method):
    # At many inputs the answers are exactly 0, and so is what is typical of them.
    rng = np.random.default_rng(seed)
    widths = [4, *rng.integers(3, 8, size=rng.integers(1, 4)), 1]
    pairs = list(pairwise(widths))
    weights = [rng.standard_normal((m, k)) * 1.4 / np.sqrt(k) for k, m in pairs]
    biases = [0.3 * rng.standard_normal(m) for m in widths[1:]]
    biases[-1] = biases[-1] - rng.choice([0.0, 0.5, 1.0])
    truth = Network([*weights, [[1.0]]], [*biases, [0.0]])
    recovery = revelu.extract(truth, seed=seed, method=method, checks=200, max_seconds=2)
    if recovery.status is Status.RECOVERED:
        X = np.random.default_rng(9).standard_normal((4_000, 4))
        assert np.mean(np.abs(recovery.network(X) - truth(X)).max(axis=1) > 1e-6) <= 0.03
