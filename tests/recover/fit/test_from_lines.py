"""Networks of one hidden layer from the critical points of lines, in float32 throughout."""

from dataclasses import replace

import numpy as np
import pytest

import revelu
from revelu.network import add_networks, zoo
from revelu.network.derivative import NetworkDerivative, ParameterArrays
from revelu.numerics.gauss_newton import Stop
from revelu.oracle import Oracle, degradations, measure_noise
from revelu.recover.fit.fit import Fit
from revelu.recover.fit.from_lines import FromLines, WorkEndsError
from revelu.recover.fit.from_rows import FromRows
from revelu.recover.fit.least_squares import FitSearch
from revelu.recover.fit.line_rows import LineRows
from revelu.recover.fit.missing import LackingNeurons, _Projected
from revelu.recover.fit.pruning import with_output_layer
from revelu.recover.fit.row_fits import RowFits, least, network_of
from revelu.recover.fit.sightings import MeasuredKinks, Sightings
from revelu.recover.fit.sizes import Sizes
from revelu.recover.method import Disagreement, Why
from revelu.recover.refine.network_fit import Samples, fit_by_full_steps
from revelu.recover.rows import Rows
from revelu.recovery import Status


class InFloat32:
    """A network that rounds its inputs and computes in float32, as served networks do."""

    def __init__(self, network):
        self.weights = [W.astype(np.float32) for W in network.weights]
        self.biases = [b.astype(np.float32) for b in network.biases]
        self.truth = revelu.Network(
            [W.astype(float) for W in self.weights], [b.astype(float) for b in self.biases]
        )

    def __call__(self, X):
        (W, A), (b, c) = self.weights, self.biases
        return np.maximum(X.astype(np.float32) @ W.T + b, np.float32(0)) @ A.T + c


def nrmse(found, truth):
    X = np.random.default_rng(3).standard_normal((4000, truth.dim_in))
    return np.sqrt(((found(X) - truth(X)) ** 2).mean() / truth(X).var(axis=0).mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "queries"),
    [
        ([10, 16, 1], 4.2),
        ([6, 12, 1], 4.2),
        ([20, 40, 1], 4.0),
        ([12, 16, 3], 2.5),
        ([64, 32, 10], 0.9),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(2))
def test_networks_that_compute_in_float32_come_back(widths, queries, seed):
    target = InFloat32(zoo.random_network(widths, seed=seed))
    recovery = revelu.extract(target, dim_in=widths[0], seed=seed)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert recovery.method == "fit"
    assert recovery.network.architecture == tuple(widths)
    assert recovery.network.skip is None
    assert nrmse(recovery.network, target.truth) < 3e-7
    # Where all answers have one sign, 40 queries tell that no head is on them.
    assert recovery.ledger.n_recovery < queries * target.truth.n_parameters + 40


@pytest.mark.parametrize("seed", range(2))
def test_a_neuron_that_few_inputs_fire_is_determined_by_as_many_as_it_has_weights(seed):
    # An input says one thing about a row, however many outputs there are: four of 64 inputs
    # that fire the neuron determine its column, and not its row.
    drawn = zoo.random_network([64, 12, 4], seed=seed)
    bias = -2.6 * np.linalg.norm(drawn.weights[0][0])
    first = np.concatenate([[bias], drawn.biases[0][1:]])
    target = InFloat32(revelu.Network(drawn.weights, [first, drawn.biases[1]]))
    recovery = revelu.extract(target, dim_in=64, seed=seed)
    rows = [n.weights[0] for n in (target.truth, recovery.network)]
    w, W = (R / np.linalg.norm(R, axis=1)[:, None] for R in rows)
    assert 1.0 - np.abs(W @ w[0]).max() < 1e-10
    assert recovery.ledger.n_recovery < 5.0 * target.truth.n_parameters


@pytest.mark.parametrize("seed", range(2))
def test_rows_of_a_line_are_as_good_as_their_errors_say(seed):
    target = InFloat32(zoo.random_network([10, 16, 1], seed=seed))
    truth, oracle = target.truth, Oracle(target, 10)
    noise, rng = measure_noise(oracle, 0), np.random.default_rng(seed)
    rows = Rows.none(10, 1)
    before = oracle.n_queries
    for n in (10, 14):
        rows = rows.joined(LineRows().find_new(oracle, 10, noise, rows, rng))
        assert len(rows) >= n
    assert oracle.n_queries - before < 3 * truth.n_parameters
    unit = [W / np.linalg.norm(W, axis=1)[:, None] for W in (truth.weights[0], rows.W)]
    sines = np.sqrt(np.maximum(1.0 - np.abs(unit[0] @ unit[1].T).max(axis=0) ** 2, 0.0))
    # A row may be the sum of two whose kinks could not be told apart.
    assert np.mean(sines <= 4.0 * rows.errors) >= 0.8
    assert np.median(rows.errors) < 0.02


@pytest.mark.parametrize("seed", range(2))
def test_lines_make_the_rows_exact_that_they_meet(seed):
    target = InFloat32(zoo.random_network([6, 24, 1], seed=seed))
    truth, oracle, how = target.truth, Oracle(target, 6), LineRows()
    noise, rng = measure_noise(oracle, 0), np.random.default_rng(seed)
    known, first = Sightings(Rows.none(6, 1)), None
    for _ in range(6):
        scan = how.scan(oracle, 6, noise, rng)
        kinks = MeasuredKinks.of(scan, noise)
        made_by, tells = known.makers(kinks)
        more = how.measure(oracle, scan, known.rows, made_by, noise, rng)
        known.take(kinks, made_by, tells)
        known.join(more, kinks)
        first = len(known) if first is None else first
    often = np.flatnonzero(known.n_met[:first] >= 4)
    assert len(often) > first / 2
    W = truth.weights[0] / np.linalg.norm(truth.weights[0], axis=1)[:, None]

    def errors(rows):
        unit = rows.W[often] / np.linalg.norm(rows.W[often], axis=1)[:, None]
        return np.sqrt(np.maximum(1.0 - (unit @ W.T) ** 2, 0.0)).min(axis=1)

    assert np.median(errors(known.rows)) < 0.05 * np.median(errors(known.first))
    assert oracle.n_queries < 6 * 6 * 24 * 2


@pytest.mark.parametrize(
    ("n_met", "n_unseen"),
    [(76, 1.05), (50, 12.0), (40, 20.0)],
)
def test_spare_neurons_are_tried_where_they_are_as_many_as_two_lines_have_not_seen(n_met, n_unseen):
    # Of 80 known neurons the line meets n_met, and 20 new ones: 20 (80 / n_met - 1) are unseen.
    how = FromLines()
    trials = how._trials(100, 80, 20, n_met, Sizes(10, 1))
    n_spare = int(how.spare * 100)
    tried = [(0, how.equations), (n_spare, how.equations), (n_spare, how.several_equations)]
    assert [(trial.n_spare, trial.equations) for trial in trials] == (
        tried if n_unseen <= n_spare else []
    )


def test_neurons_that_held_ones_lack_are_found_at_once():
    truth, rng = zoo.random_network([10, 40, 1], seed=4), np.random.default_rng(5)
    X = rng.standard_normal((1000, 10))
    samples = Samples(X, truth(X), np.full(1, 1e-7))
    W, b = (a + 1e-5 * rng.standard_normal(a.shape) for a in (truth.weights[0], truth.biases[0]))
    rows = Rows(W, b, truth.weights[1].T, np.full(40, 1e-3), X[:40]).take(np.arange(36))
    known = network_of(rows, samples)
    found = LackingNeurons().find(known, samples, 8, rng)
    missing, unit = truth.weights[0][36:], found.weights[0]
    norms = np.linalg.norm(missing, axis=1)[:, None] * np.linalg.norm(unit, axis=1)
    assert (np.abs(missing @ unit.T / norms).max(axis=1) > 0.99).all()
    start = with_output_layer(add_networks(known, found), samples)
    fitted = fit_by_full_steps(start, samples, Stop(15, patience=5))
    assert nrmse(fitted.network, truth) < 1e-6


def test_neurons_are_found_beside_what_a_fit_of_vague_rows_has_left():
    truth, rng = zoo.random_network([30, 24, 1], seed=4), np.random.default_rng(5)
    X = rng.standard_normal((1500, 30))
    samples = Samples(X, truth(X), np.full(1, 1e-7))
    # Rows that err by as much hide what is missing; a fit leaves them exact, but for that.
    W = truth.weights[0] + 1e-2 * rng.standard_normal((24, 30))
    rows = Rows(W, truth.biases[0], truth.weights[1].T, np.full(24, 1e-2), X[:24])
    rows, fits = rows.take(np.arange(22)), RowFits(most_dense=500)
    assert not fits.is_dense(network_of(rows, samples).n_parameters)
    lacking = fits.find(rows, samples, 0, 1.5, rng)
    assert not fits.is_near(lacking, samples, 1.5)
    found = fits.completed(lacking.network, samples, 1.5, rng)
    assert fits.is_near(found, samples, 1.5)
    assert nrmse(found.network, truth) < 1e-6
    # What explains most is begun with, whichever fit left it.
    assert least(samples, lacking, found).network is found.network


def test_fits_end_with_their_work_and_leave_what_explains_most():
    target = InFloat32(zoo.random_network([10, 16, 1], seed=3))
    oracle, rng = Oracle(target, 10), np.random.default_rng(0)
    noise = measure_noise(oracle, 0)
    how = FromLines(fits=RowFits(most_spent=1e8, most_steps=0))

    def sample(X):
        X = X.astype(np.float32).astype(float)
        return Samples(X, oracle(X), noise.errors)

    arguments = oracle, sample, Sizes(10, 1), noise
    with pytest.raises(WorkEndsError, match="took as long as they may") as ended:
        # Nothing explains answers of no noise at all.
        how.find(*arguments, 1e-9, rng)
    left = ended.value
    assert left.samples.cost(left.network) < 0.1 * left.samples.spread()
    found = FromLines().find(*arguments, 1.5, rng)
    assert nrmse(found[0], target.truth) < 1e-6


def test_a_search_whose_fits_end_says_so_and_is_neither_repaired_nor_begun_anew():
    target = InFloat32(zoo.random_network([10, 16, 1], seed=3))
    oracle = Oracle(target, 10)
    how = FromLines(fits=RowFits(most_spent=1e8, most_steps=0))
    method = replace(Fit(), from_lines=how, limit=1e-9)
    search = FitSearch(method, oracle, measure_noise(oracle, 0), np.random.default_rng(0))
    said = search.propose()
    assert said.why is Why.REFUTED
    assert any("took as long as they may" in obstacle for obstacle in said.obstacles)
    assert nrmse(said.network, target.truth) < 0.1
    seen = Disagreement(np.zeros((1, 10)), np.zeros(10), 0.9, lambda _: False)
    assert search.repair(seen) is None


def test_neurons_of_many_parameters_are_found_though_rows_of_none_stand_beside_them():
    truth, rng = zoo.random_network([40, 50, 10], seed=4), np.random.default_rng(5)
    X = rng.standard_normal((1400, 40))
    samples = Samples(X, truth(X), np.full(10, 1e-7))
    W = truth.weights[0] + 1e-5 * rng.standard_normal((50, 40))
    # Three neurons are missing, and two rows are nearly others'.
    W[47:49] = W[:2] + 0.03 * rng.standard_normal((2, 40))
    b = np.append(truth.biases[0][:47], truth.biases[0][:2])
    rows = Rows(W[:49], b, truth.weights[1].T[:49], np.full(49, 1e-3), X[:49])
    assert network_of(rows, samples).n_parameters > RowFits().most_dense
    found = RowFits().find(rows, samples, FromLines().last_spare, 1.5, rng)
    assert found.network.architecture[1] < 49 + FromLines().last_spare
    assert found.cost < 1.5
    assert nrmse(found.network, truth) < 1e-6


def test_what_spare_neurons_change_is_what_answers_less_held_features_do():
    known, start = zoo.random_network([6, 5, 3], seed=1), zoo.random_network([6, 4, 3], seed=2)
    X = np.random.default_rng(0).standard_normal((80, 6))
    problem = _Projected(known, Samples(X, known(X), np.full((80, 3), 0.1)), start)
    p, h = start.to_vector(), 1e-6
    derivative, rest = problem.derivative(p), problem.residual(p)
    J = derivative.matrix()
    steps = h * np.eye(len(p))
    moved = [(problem.residual(p - s) - problem.residual(p + s)) / (2.0 * h) for s in steps]
    np.testing.assert_allclose(J, np.transpose(moved), atol=1e-6)
    np.testing.assert_allclose(derivative.normal(), J.T @ J, atol=1e-9)
    np.testing.assert_allclose(derivative.gradient(rest), J.T @ rest, atol=1e-9)


@pytest.mark.parametrize(("widths", "queries"), [([200, 8, 4], 1.37), ([250, 6, 10], 1.6)], ids=str)
def test_answers_in_the_span_count_where_all_coordinates_are_fitted(widths, queries):
    # Whether a line more is measured depends on the last digits: these are no machine's.
    network, in_order = zoo.random_network(widths, seed=1), degradations.InFloat32()
    recovery = revelu.extract(in_order(network), seed=1)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert nrmse(recovery.network, in_order.truth(network)) < 1e-6
    assert recovery.ledger.n_recovery < queries * network.n_parameters


@pytest.mark.parametrize("widths", [[200, 8, 4], [250, 6, 10]], ids=str)
@pytest.mark.parametrize("seed", range(1, 5))
def test_networks_are_certified_whose_errors_depend_on_the_batch(widths, seed):
    """Those of NumPy's products do on some machines: large ones are summed in another order."""
    target = InFloat32(zoo.random_network(widths, seed=seed))
    recovery = revelu.extract(target, dim_in=widths[0], seed=seed)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert nrmse(recovery.network, target.truth) < 1e-6
    assert recovery.ledger.n_recovery < 2.0 * target.truth.n_parameters


def test_whole_steps_find_a_network_from_rows_that_err():
    truth, rng = zoo.random_network([10, 16, 1], seed=4), np.random.default_rng(5)
    X = rng.standard_normal((300, 10))
    samples = Samples(X, truth(X), np.full(1, 1e-9))
    start = truth.like(truth.to_vector() * (1.0 + 1e-2 * rng.standard_normal(truth.n_parameters)))
    found = fit_by_full_steps(start, samples, Stop(15, patience=5))
    assert samples.cost(start) > 1e6
    assert found.cost < 1.0
    assert nrmse(found.network, truth) < 1e-8


def test_rows_stay_what_they_are_while_they_are_held():
    truth, rng = zoo.random_network([10, 16, 1], seed=4), np.random.default_rng(5)
    X = rng.standard_normal((300, 10))
    samples = Samples(X, truth(X), np.full(1, 1e-7))
    (W, A), (b, _) = truth.weights, truth.biases
    size = np.linalg.norm(W, axis=1)[:, None]
    wrong = W + 1e-3 * size * rng.standard_normal(W.shape) / np.sqrt(10)
    # Where each bends is exact.
    on = -(b / np.linalg.norm(wrong, axis=1) ** 2)[:, None] * wrong
    rows = Rows(wrong, b, A.T, np.full(16, 1e-3), on).take(np.arange(14))
    how = FromRows()
    held = how.held(how.start(rows, None, samples), Sightings(rows), samples)
    free = fit_by_full_steps(network_of(rows, samples), samples, Stop(15, patience=5)).network
    away = [
        np.linalg.norm(found.weights[0] - W[:14] / size[:14], axis=1).max()
        for found in (held, free)
    ]
    assert away[0] < 0.02 < away[1]
    # What is left is what the missing neurons do, to a part that an affine map explains.
    assert samples.cost(held) > 1e4


def test_answers_that_lack_a_neuron_stand_out_beside_rows_that_are_held():
    truth, rng = zoo.random_network([10, 16, 3], seed=4), np.random.default_rng(5)
    (W, A), (b, c) = truth.weights, truth.biases
    size = np.linalg.norm(W, axis=1)
    # One neuron is on at few of the answers.
    b = np.append(b[:15], -2.0 * size[15])
    truth = revelu.Network([W, A], [b, c])
    X = rng.standard_normal((500, 10))
    samples = Samples(X, truth(X), np.full(3, 1e-7))
    wrong = W + 1e-3 * size[:, None] * rng.standard_normal(W.shape) / np.sqrt(10)
    on = -(b / np.linalg.norm(wrong, axis=1) ** 2)[:, None] * wrong
    rows = Rows(wrong, b, A.T, np.full(16, 1e-3), on).take(np.arange(15))
    how = FromRows()
    held = how.held(how.start(rows, None, samples), Sightings(rows), samples)
    left = np.abs(samples.residual(held)).max(axis=1)
    is_on = X @ W[15] + b[15] > 0
    assert 5 < is_on.sum() < 50
    assert np.array_equal(left > 20.0, is_on)


def test_factors_of_sightings_are_those_of_their_variances():
    rng = np.random.default_rng(2)
    target = InFloat32(zoo.random_network([6, 8, 2], seed=1))
    oracle = Oracle(target, dim_in=6)
    noise, how = measure_noise(oracle, 0), LineRows()
    known = Sightings(Rows.none(6, 2))
    for _ in range(3):
        kinks = MeasuredKinks.of(how.scan(oracle, 6, noise, rng), noise)
        made_by, tells = known.makers(kinks)
        more = how.measure(oracle, kinks.scan, known.rows, made_by, noise, rng)
        known.take(kinks, made_by, tells)
        known.join(more, kinks)
    for j, R in enumerate(known.factors()):
        c = rng.standard_normal(7)
        expected = np.linalg.norm(np.linalg.solve(R.T, c)) ** 2
        assert np.isclose(known.variance(j, c), expected, rtol=1e-3)
    kept = np.array([0, 2])
    errors = known.factors()[kept]
    known.keep(kept)
    assert len(known) == 2
    assert np.array_equal(known.factors(), errors)


@pytest.mark.parametrize("has_skip", [False, True])
@pytest.mark.parametrize("by_input", [False, True])
def test_normal_equations_of_pairs_are_those_of_the_derivative(has_skip, by_input):
    rng = np.random.default_rng(3)
    truth = zoo.random_network([7, 5, 3], seed=2)
    if has_skip:
        skip = (rng.standard_normal((3, 7)), np.zeros(3))
        truth = revelu.Network(truth.weights, truth.biases, skip)
    X, errors = rng.standard_normal((40, 7)), rng.uniform(0.5, 2.0, 3)
    if by_input:
        errors = rng.uniform(0.5, 2.0, (40, 1)) * errors
    derivative = NetworkDerivative(ParameterArrays.of(truth), X, errors)
    J = derivative.matrix()
    assert np.allclose(np.triu(derivative.normal()), np.triu(J.T @ J), rtol=1e-12, atol=1e-10)


def test_a_line_without_kinks_leaves_an_affine_function_to_the_fit():
    V = np.random.default_rng(1).standard_normal((5, 1))
    recovery = revelu.extract(lambda X: (X @ V).astype(np.float32), dim_in=5)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture == (5, 0, 1)
