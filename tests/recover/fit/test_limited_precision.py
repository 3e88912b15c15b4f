"""Extraction where answers lack digits: float32, rounded, noisy."""

import copy
import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_wine, make_friedman3
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

import revelu
from revelu.adapters.demos import demo_path
from revelu.certify import certify, examine
from revelu.certify.tolerances import Agreement
from revelu.network import to_log_ratios, zoo
from revelu.oracle import (
    Float32,
    InFloat32,
    Noisy,
    Normalised,
    Oracle,
    Rounded,
    degrade,
    measure_noise,
)
from revelu.oracle.grid import Grid, read_grid
from revelu.oracle.numbers import are_written_float32, read_numbers
from revelu.recover.fit.search import is_explained, refine, sharpen
from revelu.recover.fit.where_wrong import neuron_where_on
from revelu.recover.refine.network_fit import Samples, fit
from revelu.recovery import Status

SHAPE = [6, 5, 1]


def nrmse(found, truth, seed=3):
    X = np.random.default_rng(seed).standard_normal((4000, truth.dim_in))
    return np.sqrt(((found(X) - truth(X)) ** 2).mean() / truth(X).var(axis=0).mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("degradations", "error", "law"),
    [
        ([Float32()], 3e-7, "float32"),
        ([InFloat32("sequential")], 3e-7, "float32"),
        ([InFloat32("pairwise")], 3e-7, "float32"),
        ([InFloat32("by_batch", 64)], 3e-7, "float32"),
        ([InFloat32("by_batch", 64), Rounded(4)], 3e-4, "rounded"),
        ([Rounded(6)], 3e-6, "rounded"),
        ([Rounded(4)], 3e-4, "rounded"),
        ([Float32(), Rounded(4), Float32()], 3e-4, "rounded"),
        ([Rounded(3)], 4e-3, "rounded"),
        ([Noisy(1e-4, seed=5)], 3e-4, "random"),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(2))
def test_networks_come_back_to_the_digits_that_answers_have(degradations, error, law, seed):
    truth = zoo.random_network(SHAPE, seed=seed)
    # The noise of a value that tests share would depend on which of them ran before.
    oracle = revelu.open_oracle(degrade(truth, *copy.deepcopy(degradations)))
    recovery = revelu.extract(oracle, seed=seed)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert recovery.method == "fit"
    assert nrmse(recovery.network, truth) < error
    assert recovery.network.architecture == tuple(SHAPE)
    assert any(law in warning for warning in recovery.warnings)
    assert recovery.ledger.n_recovery <= 6 * truth.n_parameters


@pytest.mark.slow
def test_coarse_answers_to_many_inputs_show_a_network_in_a_slice():
    truth = zoo.random_network([600, 4, 4], seed=0)
    recovery = revelu.extract(revelu.open_oracle(degrade(truth, Rounded(3))), seed=0)
    found = recovery.rejected if recovery.network is None else recovery.network
    assert found.architecture == (600, 4, 4)
    # Some of them come uncertified: three digits leave 0.2% to each answer, few to each weight.
    assert nrmse(found, truth) < 1e-2
    assert recovery.ledger.n_recovery < 3 * truth.n_parameters


def rounded_samples(truth, n, seed):
    X = np.random.default_rng(seed).standard_normal((n, truth.dim_in))
    Y = degrade(truth, Rounded(3))(X)
    return Samples(X, Y, Grid(10, digits=3).spacing(Y) / np.sqrt(12.0))


def test_answers_that_round_little_show_a_faint_neuron():
    truth = zoo.random_network([10, 8, 1], seed=2)
    (W, A), (b, c) = truth.weights, truth.biases
    # Too faint for the even error, and well above that of small answers.
    A = A * np.where(np.arange(8) == 0, 0.01, 1.0)
    truth = revelu.Network([W, A], [b, c])
    without = truth.take(np.arange(1, 8))
    samples = rounded_samples(truth, 800, 7)
    even = fit(without, samples.evenly()).network
    assert is_explained(even, samples, 1.2)
    found = sharpen(np.random.default_rng(1), without, samples)
    assert found.architecture[1] == 8
    assert nrmse(found, truth) < 0.5 * nrmse(even, truth)


@pytest.mark.parametrize("seed", [3, 4])
def test_queries_where_answers_are_precise_beat_as_many_plain_ones(seed):
    truth = zoo.random_network(SHAPE, seed=seed)
    recovery = revelu.extract(degrade(truth, Rounded(3)), seed=seed)
    assert recovery.status is Status.RECOVERED
    plain = rounded_samples(truth, recovery.ledger.n_recovery, seed)
    from_truth = refine(truth, plain).network
    assert nrmse(recovery.network, truth) < nrmse(from_truth, truth)


@pytest.mark.parametrize("seed", range(2))
def test_several_outputs_need_about_a_query_a_parameter(seed):
    truth = zoo.random_network([16, 12, 6], seed=seed)
    recovery = revelu.extract(degrade(truth, Float32()), seed=seed)
    assert recovery.status is Status.RECOVERED
    assert nrmse(recovery.network, truth) < 3e-7
    assert recovery.ledger.n_recovery < 1.5 * truth.n_parameters
    rows = [
        n.weights[0] / np.linalg.norm(n.weights[0], axis=1)[:, None]
        for n in (truth, recovery.network)
    ]
    assert (np.abs(rows[0] @ rows[1].T).max(axis=1) > 1 - 1e-6).all()


def test_a_float32_file_comes_back(tmp_path):
    truth = zoo.random_network([5, 6, 3], seed=4)
    truth.save(tmp_path / "model.onnx", dtype=np.float32)
    truth = revelu.load(tmp_path / "model.onnx")
    recovery = revelu.extract(str(tmp_path / "model.onnx"))
    assert recovery.status is Status.RECOVERED
    assert nrmse(recovery.network, truth) < 3e-7


@pytest.mark.slow
def test_the_mnist_demo_comes_back():
    truth = revelu.load(demo_path("mnist"))
    recovery = revelu.extract("demo:mnist")
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == (784, 32, 10)
    assert nrmse(recovery.network, truth) < 6e-7
    assert recovery.ledger.n_recovery < 0.45 * truth.n_parameters


def test_an_affine_function_in_float32_has_no_neurons():
    V = np.random.default_rng(1).standard_normal((7, 2))
    recovery = revelu.extract(lambda X: (X @ V + 0.5).astype(np.float32), dim_in=7)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == (7, 0, 2)


def test_same_seed_same_queries_same_network():
    truth = zoo.random_network([4, 3, 1], seed=1)
    first, second = (revelu.extract(degrade(truth, Float32()), seed=3) for _ in range(2))
    assert first.network == second.network
    assert first.ledger == second.ledger


def test_noise_as_large_as_what_varies_is_not_explained():
    truth = zoo.random_network(SHAPE, seed=1)
    target = degrade(truth, Noisy(0.5, seed=1))
    recovery = revelu.extract(target)
    assert recovery.status is Status.NOT_DETERMINISTIC
    assert recovery.network is None


def test_answers_that_are_sometimes_wrong_have_no_law():
    truth, rng = zoo.random_network(SHAPE, seed=1), np.random.default_rng(2)

    def target(X):
        return truth(X) * np.where(rng.random((len(X), 1)) < 0.05, 1.5, 1.0)

    recovery = revelu.extract(target, dim_in=6, budget=260)
    assert recovery.status is not Status.RECOVERED
    assert recovery.evidence


def test_a_spent_budget_is_said_and_never_exceeded():
    truth = zoo.random_network([8, 12, 1], seed=1)
    recovery = revelu.extract(degrade(truth, Float32()), budget=150)
    assert recovery.status is Status.BUDGET_EXHAUSTED
    assert recovery.ledger.n_queries <= 150


def test_a_smooth_function_in_float32_is_not_called_recovered():
    recovery = revelu.extract(
        lambda X: np.tanh(X @ np.ones((3, 1))).astype(np.float32), dim_in=3, budget=150
    )
    assert recovery.status is not Status.RECOVERED
    assert recovery.evidence


@pytest.mark.parametrize("degradation", [Float32(), Rounded(4), Noisy(1e-4, seed=2)], ids=str)
@pytest.mark.parametrize("by", [1e-2, 0.3])
def test_a_certificate_of_coarse_answers_fails_what_is_wrong(degradation, by):
    truth = zoo.random_network([10, 16, 1], seed=1)
    weights = [W.copy() for W in truth.weights]
    weights[0][2, 3] += by
    oracle = Oracle(degrade(truth, degradation), 10)
    noise = measure_noise(oracle, 0)
    wrong = revelu.Network(weights, truth.biases)
    for network, passes in ((truth, True), (wrong, False)):
        seen = examine(network, oracle, noise, 1000, np.random.default_rng(1))
        assert certify(seen).passed is passes


@pytest.mark.slow
def test_the_certificate_speaks_in_units_of_the_target():
    truth = zoo.random_network(SHAPE, seed=1)
    rounded = revelu.extract(degrade(truth, Rounded(4)))
    assert "2 units of the target's rounding to 4 significant digits" in (
        rounded.certificate.statement
    )


@pytest.mark.parametrize("digits", range(1, 11))
def test_significant_digits_are_counted(digits):
    Y = np.random.default_rng(digits).standard_normal(300)
    rounded = degrade(lambda X: Y[: len(X)], Rounded(digits))(np.zeros((300, 1)))
    assert read_grid(rounded) == Grid(10, digits=digits)


@pytest.mark.parametrize("places", range(1, 9))
def test_decimal_places_are_counted(places):
    Y = 100 * np.random.default_rng(places).standard_normal(300)
    assert read_grid(np.round(Y, places)) == Grid(10, places=places)


@pytest.mark.parametrize("places", [3, 4])
def test_probabilities_of_one_do_not_hide_decimal_places(places):
    Y = np.round(np.random.default_rng(places).dirichlet([0.3] * 3, 64), places)
    assert read_grid(np.vstack([Y, [[1.0, 0.0, 0.0]]])) == Grid(10, places=places)


@pytest.mark.parametrize("shown", [[0.0001, 0.9999], [0.0, 1.0]])
def test_small_and_rounded_probabilities_show_decimal_places(shown):
    """One number of one digit where others have four, or one that rounding has made 0."""
    p = np.round(np.random.default_rng(0).uniform(0.1, 0.9, 20), 4)
    few = np.column_stack([p, np.round(1.0 - p, 4)])
    # What either form holds is of fixed places where answers may be shares, and only there.
    assert read_numbers(few).grid == Grid(10, places=4)
    assert read_numbers(np.round(few - 1.0, 4)).grid == Grid(10, digits=4)
    assert read_numbers(np.vstack([few, [shown]])).grid == Grid(10, places=4)
    tiny = np.vstack([few, [[1.234e-3, 5.678e-5]]])
    assert read_numbers(tiny).grid == Grid(10, digits=4)


def test_digits_of_the_smallest_numbers_are_no_fixed_places():
    Y = np.array([[1e-310, 0.5], [0.25, 1.0]])
    assert read_grid(Y) == Grid(10, digits=2)


def test_half_precision_is_a_grid_and_float64_is_none():
    Y = np.random.default_rng(0).standard_normal(300)
    assert read_grid(Y) is None
    assert read_grid(Y.astype(np.float32).astype(float)) is None
    assert read_grid(Y.astype(np.float16).astype(float)) == Grid(2, digits=11)
    assert read_grid(as_bfloat16(Y)) == Grid(2, digits=8)
    # Two digits fewer are no format's.
    assert read_grid(in_half_precision(Y, 13)) is None


def in_half_precision(Y, digits):
    """Y rounded to so many binary digits."""
    mantissa, exponent = np.frexp(Y)
    return np.ldexp(np.rint(np.ldexp(mantissa, digits)), exponent - digits)


def as_bfloat16(Y):
    return in_half_precision(np.asarray(Y, dtype=float), 8)


def computed_in_half_precision(truth, digits):
    """A network whose inputs, weights and values between are rounded to so many binary digits."""
    layers = [
        (in_half_precision(W, digits), in_half_precision(b, digits))
        for W, b in zip(truth.weights, truth.biases, strict=True)
    ]

    def answer(X):
        H = in_half_precision(X, digits)
        for W, b in layers[:-1]:
            H = in_half_precision(np.maximum(H @ W.T + b, 0.0), digits)
        W, b = layers[-1]
        return in_half_precision(H @ W.T + b, digits)

    return answer


@pytest.mark.parametrize("digits", [8, 11])
@pytest.mark.parametrize("shape", [[6, 5, 1], [10, 16, 3]])
def test_errors_of_half_precision_are_those_of_its_sums(digits, shape):
    truth = zoo.random_network(shape, seed=4)
    answer = computed_in_half_precision(truth, digits)
    noise = measure_noise(revelu.open_oracle(answer, dim_in=shape[0]), seed=0)
    X = np.random.default_rng(6).standard_normal((4000, shape[0]))
    errors = np.sqrt(((answer(X) - truth(X)) ** 2).mean(axis=0))
    assert noise.law == "half-precision"
    assert noise.grid is None
    # Twice the root mean square of 20 places, and errors of weights that stay the same.
    assert np.all(noise.errors < 3.0 * errors)
    assert np.all(noise.errors > errors / 2.0)


def test_exact_answers_that_are_cast_to_half_precision_err_by_their_rounding():
    truth = zoo.random_network([6, 5, 1], seed=4)
    oracle = revelu.open_oracle(lambda X: truth(X).astype(np.float16), dim_in=6)
    noise = measure_noise(oracle, seed=0)
    assert noise.law == "rounded"
    assert noise.grid == Grid(2, digits=11)


@pytest.mark.parametrize("seed", range(2))
def test_one_hidden_layer_comes_back_from_half_precision(seed):
    truth = zoo.random_network(SHAPE, seed=seed)
    answer = computed_in_half_precision(truth, 11)
    recovery = revelu.extract(answer, dim_in=SHAPE[0], seed=seed)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert recovery.network.architecture == tuple(SHAPE)
    X = np.random.default_rng(6).standard_normal((4000, SHAPE[0]))
    own = np.sqrt(((answer(X) - truth(X)) ** 2).mean() / truth(X).var(axis=0).mean())
    assert nrmse(recovery.network, truth) < 2.0 * own
    within = np.abs(recovery.network(X) - answer(X)) <= recovery.certificate.tolerance
    assert within.mean() > 0.998
    assert "half-precision" in recovery.certificate.statement
    assert recovery.ledger.n_recovery < 8 * truth.n_parameters


@pytest.mark.parametrize("degradation", [Rounded(3), Rounded(5), Noisy(1e-5, seed=1)], ids=str)
def test_the_error_of_an_answer_is_measured(degradation):
    truth = zoo.random_network([10, 16, 2], seed=5)
    oracle = Oracle(degrade(truth, degradation), 10)
    noise = measure_noise(oracle, 0)
    # Where answers differ at random, 140 more make the estimate steady.
    assert oracle.n_queries <= (256 if isinstance(degradation, Noisy) else 64)
    X = np.random.default_rng(1).standard_normal((3000, 10))
    Y = oracle(X)
    true = np.sqrt(((Y - truth(X)) ** 2).mean())
    measured = np.sqrt(np.mean(np.broadcast_to(noise.sigma(Y), Y.shape) ** 2))
    assert true / 2 < measured < 2 * true


def probabilities_of(logits):
    """A softmax in float64."""
    E = np.exp(logits - logits.max(axis=1, keepdims=True))
    return E / E.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("widths", "degradation", "error", "queries"),
    [
        ([10, 16, 3], Float32(), 1e-6, 6.0),
        ([20, 40, 6], Float32(), 1e-6, 3.0),
        ([32, 16, 10], Float32(), 1e-6, 2.0),
        ([13, 20, 3], Rounded(6), 1e-5, 10.0),
    ],
    ids=str,
)
def test_probabilities_of_few_digits_show_the_logits(widths, degradation, error, queries):
    truth = zoo.random_network(widths, seed=1)
    target = degrade(lambda X: probabilities_of(truth(X)), degradation)
    recovery = revelu.extract(target, dim_in=widths[0], seed=0)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert recovery.method == "fit"
    found = recovery.network
    assert found.architecture == tuple(widths)
    X = np.random.default_rng(3).standard_normal((4000, widths[0]))
    logits = truth(X)
    ratios = logits - logits[:, -1:]
    assert np.sqrt(((found(X) - ratios) ** 2).mean() / ratios.var(axis=0).mean()) < error
    assert recovery.ledger.n_recovery < queries * truth.n_parameters


def test_of_two_classes_the_digits_end_where_one_is_1_less_the_other():
    truth = zoo.random_network([12, 16, 1], seed=4)

    def target(X):
        p = expit(10.0 * truth(X))
        return np.hstack([1.0 - p, p]).astype(np.float32).astype(float)

    recovery = revelu.extract(target, dim_in=12, seed=0)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    X = np.random.default_rng(3).standard_normal((4000, 12))
    found = -recovery.network(X)[:, 0] / 10.0
    assert np.sqrt(((found - truth(X)[:, 0]) ** 2).mean() / truth(X).var()) < 1e-6
    assert recovery.ledger.n_recovery < 12 * truth.n_parameters


def noisy_probabilities(truth, sigma, seed=1):
    """Probabilities with noise of one size, that still sum to 1."""
    return degrade(lambda X: probabilities_of(truth(X)), Noisy(sigma, seed=seed), Normalised())


@pytest.mark.parametrize("sigma", [4e-5, 4e-3])
def test_each_log_ratio_of_noisy_probabilities_has_its_own_error(sigma):
    truth = zoo.scaled(zoo.random_network([10, 16, 3], seed=5), 1.0, 3.0)
    oracle = Oracle(noisy_probabilities(truth, sigma), 10)
    noise = measure_noise(oracle, 0)
    assert oracle.n_queries <= 256
    np.testing.assert_allclose(noise.drawn_anew, sigma, rtol=0.3)
    X = np.random.default_rng(1).standard_normal((3000, 10))
    Y, z = oracle(X), truth(X)
    told = np.isfinite(Y).all(axis=1)
    own = noise.sigma(Y[told])
    errors = (Y - (z[:, :-1] - z[:, -1:]))[told] / own
    assert np.ptp(np.log(own)) > np.log(10.0)
    assert 0.7 < np.sqrt((errors**2).mean()) < 1.4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "sigma", "error", "queries", "seed"),
    [(3.0, 4e-5, 1e-3, 18.0, 4), (1.0, 4e-3, 0.05, 16.0, 2)],
)
def test_noisy_probabilities_show_the_network(size, sigma, error, queries, seed):
    truth = zoo.scaled(zoo.random_network([10, 12, 3], seed=5), 1.0, size)
    # Whether a neuron of little weight is found at once is a matter of the seed.
    recovery = revelu.extract(noisy_probabilities(truth, sigma), dim_in=10, seed=seed)
    found = recovery.network or recovery.rejected
    X = np.random.default_rng(3).standard_normal((4000, 10))
    P = probabilities_of(truth(X))
    assert np.sqrt(((probabilities_of(found(X)) - P) ** 2).mean() / P.var()) < error
    assert recovery.ledger.n_recovery < queries * truth.n_parameters


def test_noise_that_hides_probabilities_is_named():
    recovery = revelu.extract(
        noisy_probabilities(zoo.random_network([6, 5, 3], seed=2), 0.3), dim_in=6, seed=0
    )
    assert recovery.status is Status.UNVERIFIED
    assert any("which noise hides" in sentence for sentence in recovery.evidence)


def test_a_network_within_the_noise_of_probabilities_passes_and_others_do_not():
    truth, sigma = zoo.random_network([8, 10, 3], seed=2), 1e-3
    oracle = Oracle(noisy_probabilities(truth, sigma), 8)
    noise = measure_noise(oracle, 1)
    right = to_log_ratios(truth)
    wrong = right.then(1.1 * np.eye(2))
    for network, passes in ((right, True), (wrong, False)):
        seen = examine(network, oracle, noise, 400, np.random.default_rng(0))
        assert seen.is_compared.all()
        assert seen.passed is passes
        assert seen.by(right).passed
        assert certify(seen).passed is passes


def test_rounded_probabilities_of_two_classes_end_where_differences_have_no_digits():
    truth = zoo.random_network([12, 10, 1], seed=4)

    def target(X):
        p = expit(20.0 * truth(X))
        return np.hstack([1.0 - p, p])

    recovery = revelu.extract(degrade(target, Rounded(3)), dim_in=12, seed=0)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    X = np.random.default_rng(3).standard_normal((4000, 12))
    found = -recovery.network(X)[:, 0] / 20.0
    assert np.sqrt(((found - truth(X)[:, 0]) ** 2).mean() / truth(X).var()) < 1e-3
    assert recovery.ledger.n_recovery < 20 * truth.n_parameters


def test_a_float32_classifier_that_is_mostly_saturated_ends():
    network = zoo.random_network([6, 5, 3], seed=2)

    def probabilities(X):
        z = (60.0 * network(X)).astype(np.float32)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    recovery = revelu.extract(probabilities, dim_in=6, budget=4000)
    assert recovery.status is Status.UNVERIFIED
    assert any("saturated" in sentence for sentence in recovery.evidence)


@pytest.mark.parametrize("shape", [[10, 2, 3], [24, 8, 1]])
def test_what_is_affine_beside_a_large_constant_is_told_by_the_first_answers(shape):
    """The constant's rounding is as large as what varies."""
    slopes = 1e-12 * np.random.default_rng(5).standard_normal((shape[-1], shape[0]))
    recovery = revelu.extract(lambda X: 1.0 + X @ slopes.T, method="fit", dim_in=shape[0], seed=5)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert recovery.network.architecture == (shape[0], 0, shape[-1])
    assert recovery.ledger.n_recovery < 30 * shape[0]


@pytest.mark.parametrize("value", [0.0, 1.0, 1.0 / 3.0])
@pytest.mark.parametrize("degradations", [[], [Float32()], [Rounded(2)]], ids=str)
def test_a_constant_is_recovered(value, degradations):
    target = degrade(lambda X: np.full((len(X), 2), value), *degradations)
    recovery = revelu.extract(target, method="fit", dim_in=3, seed=1)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert recovery.network.architecture == (3, 0, 2)


@pytest.mark.slow
def test_a_search_ends_where_twice_the_neurons_explain_no_more():
    rows, slopes = np.random.default_rng(3).standard_normal((2, 12, 3))
    target = degrade(lambda X: X @ slopes + 9.0 * np.sign(np.sin(3.0 * X @ rows)), Rounded(3))
    recovery = revelu.extract(target, method="fit", dim_in=12, seed=3)
    assert recovery.status is not Status.RECOVERED
    assert any("twice the neurons explain no more" in note for note in recovery.evidence)
    assert recovery.ledger.n_recovery < 1_000


def test_decimals_of_float32_numbers_are_taken_for_those():
    """Servers in C++, Go and Java write the shortest decimals of a float32 number."""
    network = revelu.zoo.random_network([8, 6, 2], seed=3)
    single = degrade(network, Float32())

    def written(X):
        return np.array([[float(str(np.float32(y))) for y in row] for row in single(X)])

    known, found = (revelu.extract(f, dim_in=8, seed=1) for f in (single, written))
    assert found.status is revelu.Status.RECOVERED
    assert found.ledger == known.ledger
    assert found.network == known.network


def test_decimals_of_few_digits_are_not():
    Y = np.random.default_rng(0).standard_normal((56, 2))
    rounded = np.array([[float(f"{y:.8g}") for y in row] for row in Y])
    assert not are_written_float32(rounded)
    assert not are_written_float32(Y)
    assert not are_written_float32(np.array([[float(f"{y:.4g}") for y in row] for row in Y]))
    assert are_written_float32(np.array([[float(str(y)) for y in r] for r in Y.astype("f4")]))


class Trained:
    """A model of scikit-learn that is trained, and computes in float32.

    Attributes
    ----------
    truth : Network
        The same in float64.
    """

    def __init__(self, model, X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(StandardScaler().fit_transform(X), y)
        self.weights = [W.T.astype(np.float32) for W in model.coefs_]
        self.biases = [b.astype(np.float32) for b in model.intercepts_]
        self.truth = revelu.Network(self.weights, self.biases)

    def __call__(self, X):
        h = X.astype(np.float32)
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = np.maximum(h @ W.T + b, np.float32(0))
        return h @ self.weights[-1].T + self.biases[-1]


def mostly_small(seed):
    """A regressor of Friedman's third function: a few of its answers are large."""
    X, y = make_friedman3(800, random_state=seed)
    model = MLPRegressor(
        hidden_layer_sizes=(6, 4), max_iter=300, learning_rate_init=0.01, random_state=seed
    )
    return Trained(model, X, (y - y.mean()) / y.std())


@pytest.mark.parametrize("seed", [1, 4])
def test_large_answers_of_float32_err_by_no_more_than_is_said(seed):
    """Errors that grow with the inputs alone would be exceeded thirtyfold."""
    single = mostly_small(seed)
    noise = measure_noise(Oracle(single, 4), seed)
    assert noise.law == "float32"
    X = np.float32(2.5 * np.random.default_rng(seed + 101).standard_normal((20_000, 4)))
    Y = single.truth(X.astype(float))
    off = np.abs(single(X) - Y)
    exceeded = off / noise.sigma_at(X, Y)
    assert np.sqrt((exceeded**2).mean()) < 1.2
    assert np.quantile(exceeded, 0.999) < Agreement().coarse_factor
    by_inputs = noise.growth(X)[:, None] * noise.errors / np.sqrt(2.0)
    assert (off / by_inputs).max() > 1.3 * exceeded.max()


@pytest.mark.parametrize("seed", [4, 5])
def test_the_truth_is_certified_where_a_few_answers_are_large(seed):
    single = mostly_small(seed)
    oracle = Oracle(single, 4)
    noise = measure_noise(oracle, seed)
    seen = examine(single.truth, oracle, noise, 20_000, np.random.default_rng(seed + 101))
    assert certify(seen).passed


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4, 5, 7])
def test_trained_networks_whose_answers_are_mostly_small_come_back(seed):
    single = mostly_small(seed)
    found = [revelu.extract(single, dim_in=4, seed=s) for s in (seed, 100, 102, 103)]
    # One seed in six ends unverified, of the last network three of five; which ones depends on
    # the processor's sums.
    right = [recovery for recovery in found if recovery.status is Status.RECOVERED]
    assert right, [recovery.evidence for recovery in found]
    assert all(nrmse(recovery.network, single.truth) < 1e-6 for recovery in right)


def of_wine(seed):
    """A classifier with weight decay: neurons of little weight turn on far from most inputs."""
    model = MLPClassifier(
        (20,), alpha=1.0, max_iter=300, learning_rate_init=0.03, random_state=seed
    )
    return Trained(model, *load_wine(return_X_y=True))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [44, 45, 46])
def test_answers_that_one_fit_asked_tell_the_next_more(seed):
    """Spare neurons that explain few answers are not fitted to the same few again."""
    single = of_wine(seed)
    recovery = revelu.extract(single, dim_in=13, seed=seed)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert nrmse(recovery.network, single.truth) < 1e-6


@pytest.mark.parametrize("seed", [36, 41, 53])
def test_neurons_that_turn_on_in_the_tails_alone_are_found(seed):
    single = of_wine(seed)
    recovery = revelu.extract(single, dim_in=13, seed=seed)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    far = 20.0 * np.random.default_rng(seed + 101).standard_normal((4000, 13))
    off = recovery.network(far) - single.truth(far)
    assert (np.abs(off) < 1e-5 * single.truth(far).std(axis=0)).mean() > 0.99
    assert recovery.ledger.n_recovery < 6 * single.truth.n_parameters


@pytest.mark.parametrize("d", [3, 8])
def test_a_neuron_is_what_answers_show_where_it_is_on(d):
    rng = np.random.default_rng(d)
    truth = zoo.random_network([d, 1, 2], seed=d)
    X = rng.standard_normal((4000, d))
    Y = truth(X) - truth.biases[-1]
    is_on = truth.activations(X)[1][:, 0] > 0.0
    noisy = Y + 1e-7 * rng.standard_normal(Y.shape)
    found = neuron_where_on(X[is_on], noisy[is_on])
    assert found.architecture == (d, 1, 2)
    assert np.abs(found(X) - Y).max() < 1e-6
