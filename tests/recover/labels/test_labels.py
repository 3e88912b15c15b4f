"""Networks from labels alone, against known truth, with a budget of queries beside each."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import revelu
from revelu import InputError, Network, Status
from revelu.certify.labels import (
    LabelExamination,
    certify_labels,
    examine_labels,
    predict_labels,
)
from revelu.cli.app import app
from revelu.network import zoo
from revelu.oracle import Labels, Oracle, degrade
from revelu.oracle.labels import LabelTally, are_labels, as_labels
from revelu.recover.labels import FromLabels, explanation
from revelu.recover.labels.bends import Bends
from revelu.recover.labels.borders import Pool
from revelu.recover.labels.columns import Added, OutputEquations
from revelu.recover.labels.facets import Facets
from revelu.recover.labels.idle import settled
from revelu.recover.labels.polish import Polish, predicted_borders, refine, telling_borders
from revelu.recover.labels.precision import Precision, Rounding, Told, noise_of_places
from revelu.recover.labels.rows import Matching, find_rows
from revelu.tasks.units import in_units

LEFT_OPEN = "a positive factor"


def in_one_scale(network, classes=None):
    """Rows of norm 1, outputs less the first one, and constants likewise."""
    (W, A), (b, c) = network.weights, network.biases
    if classes is not None and len(A) > 1:
        A, c = A[classes], c[classes]
    A, c = (A - A[:1], c - c[:1]) if len(A) > 2 else ((A[-1:] - A[:-1].sum(axis=0)), c[-1:] - c[:1])
    if len(network.weights[1]) == 1:
        A, c = network.weights[1], network.biases[1]
    length = np.linalg.norm(W, axis=1)
    return np.column_stack([W, b]) / length[:, None], A * length, c


def largest_error(truth, recovery):
    """The largest error of any weight, in one scale, of a network whose classes are places."""
    places = [int(label) for label in recovery.classes]
    V, A, c = in_one_scale(truth, places)
    U, B, e = in_one_scale(recovery.network)
    assert U.shape == V.shape
    order = np.abs(V[:, None] - U[None]).max(axis=2).argmin(axis=1)
    a, b = np.append(A, c), np.append(B[:, order], e)
    return max(np.abs(V - U[order]).max(), np.abs(a - b * (a @ b) / (b @ b)).max())


def labels_of(recovery, X):
    return predict_labels(recovery.network, np.array(recovery.classes), X)


def wrong(truth, recovery, d, n=100_000):
    X = np.random.default_rng(99).standard_normal((n, d))
    return int((labels_of(recovery, X) != degrade(truth, Labels())(X)[:, 0]).sum())


@pytest.mark.parametrize(
    ("widths", "seed", "queries"),
    [
        ([10, 16, 1], 1, 75_000),
        ([10, 16, 1], 2, 75_000),
        ([20, 20, 5], 2, 180_000),
        ([20, 20, 5], 3, 150_000),
        ([4, 8, 1], 2, 35_000),
        ([3, 8, 1], 8, 40_000),
    ],
)
def test_every_weight_comes_back(widths, seed, queries):
    truth = zoo.random_network(widths, seed=seed)
    found = revelu.extract(degrade(truth, Labels()), seed=seed)
    assert (found.status, found.method) == (Status.RECOVERED, "labels")
    assert found.network.architecture == tuple(widths)
    assert largest_error(truth, found) < 1e-9
    assert wrong(truth, found, widths[0]) == 0
    assert found.ledger.n_queries <= queries
    assert any(LEFT_OPEN in said for said in found.warnings)


def test_ten_classes_of_many_inputs():
    truth = zoo.random_network([40, 16, 6], seed=3)
    found = revelu.extract(degrade(truth, Labels()), seed=1)
    assert found.status is Status.RECOVERED
    assert largest_error(truth, found) < 1e-9
    assert wrong(truth, found, 40) <= 10  # of a class that few inputs have
    assert found.ledger.n_queries <= 400 * truth.n_parameters
    assert found.ledger.n_rounds <= 4_000


def test_logits_are_asked_for_their_labels_alone():
    truth = zoo.random_network([10, 12, 4], seed=1)
    found = revelu.extract(truth, labels=True)
    assert found.status is Status.RECOVERED
    assert largest_error(truth, found) < 1e-9
    statement = found.certificate.statement
    assert "less than 0.1% of N(0, I) inputs get another label (3,000 fresh checks" in statement
    assert "600 more within 1e-06 of a border" in statement


@pytest.mark.parametrize("kind", ["integers", "one_hot", "minus_one"])
def test_answers_that_are_labels_are_known_for_it(kind):
    truth = zoo.random_network([8, 8, 3 if kind == "one_hot" else 1], seed=4)

    def ask(X):
        Y = truth(X)
        if kind == "one_hot":
            return np.eye(3)[Y.argmax(axis=1)]
        return np.where(Y[:, 0] > 0, 1, -1 if kind == "minus_one" else 0)

    found = revelu.extract(ask, dim_in=8)
    assert (found.status, found.method) == (Status.RECOVERED, "labels")
    X = np.random.default_rng(5).standard_normal((2000, 8))
    expected = as_labels(np.asarray(ask(X), dtype=float).reshape(len(X), -1))[:, 0]
    np.testing.assert_array_equal(labels_of(found, X), expected)
    assert found.classes[0] == (-1.0 if kind == "minus_one" else 0.0)


def test_a_label_that_turns_up_late_is_one():
    plain = zoo.random_network([6, 6, 1], seed=4)
    X = np.random.default_rng(1).standard_normal((100_000, 6))
    rare = np.quantile(plain(X)[:, 0], 0.998)
    truth = Network(plain.weights, [plain.biases[0], plain.biases[1] - rare])
    asked = []

    def ask(X):
        asked.append((truth(X) > 0).astype(int))
        return asked[-1]

    found = revelu.extract(ask, dim_in=6, seed=2)
    # 64 to measure the noise, 8 of them twice, and 256 more to see whether labels come.
    assert not np.concatenate(asked)[:320].any()
    assert (found.status, found.method) == (Status.RECOVERED, "labels")
    assert found.ledger.n_queries <= 250_000
    assert wrong(truth, found, 6) == 0


@pytest.mark.parametrize("is_whole", [True, False])
def test_labels_that_come_to_nothing_are_said_to_be_labels(is_whole):
    truth = zoo.random_network([8, 8, 3], seed=4)

    def ask(X):
        places = truth(X).argmax(axis=1)
        return places if is_whole else places + 0.5 * (X[:, 0] > 1)

    found = revelu.extract(ask, dim_in=8, budget=1000)
    assert found.status is not Status.RECOVERED
    assert found.ledger.n_queries <= 1000
    said = "the answers look like class labels (0, 1, 2) and were taken for such" in "".join(
        found.evidence
    )
    assert said == is_whole


def test_jumps_between_labels_are_not_called_out_of_class():
    truth = zoo.random_network([3, 8, 1], seed=63_970_006)
    found = revelu.extract(degrade(truth, Labels()), seed=63_970_006, budget=150_000)
    assert (found.status, found.method) == (Status.PARTIAL, "labels")


def test_labels_inside_a_box_end_with_a_reason():
    truth = zoo.random_network([6, 6, 1], seed=2)
    found = revelu.extract(degrade(truth, Labels()), box=(-1.0, 1.0))
    assert found.status is Status.UNVERIFIED
    assert any("inside a box" in said for said in found.evidence)


def test_a_class_that_never_occurs_is_left_out():
    plain = zoo.random_network([10, 12, 4], seed=1)
    constants = plain.biases[1] - np.array([0.0, 0.0, 100.0, 0.0])
    truth = Network(plain.weights, [plain.biases[0], constants])
    found = revelu.extract(degrade(truth, Labels()))
    assert (found.status, found.classes) == (Status.RECOVERED, (0.0, 1.0, 3.0))
    assert wrong(truth, found, 10) == 0


def test_a_neuron_that_no_border_meets_is_not_invented():
    plain = zoo.random_network([6, 6, 1], seed=2)
    W = np.vstack([plain.weights[0], np.zeros(6)])
    A = np.column_stack([plain.weights[1], [0.7]])
    dead = Network([W, A], [np.append(plain.biases[0], -1.0), plain.biases[1]])
    found = revelu.extract(degrade(dead, Labels()))
    assert (found.status, found.network.architecture) == (Status.RECOVERED, (6, 6, 1))
    assert wrong(dead, found, 6) == 0


def test_a_neuron_that_is_on_at_every_border_leaves_it_partial():
    truth = zoo.random_network([4, 8, 1], seed=5)
    found = revelu.extract(truth, labels=True)
    assert found.status is Status.PARTIAL
    assert any("on at every border" in said for said in found.evidence)
    assert wrong(truth, found, 4, 20_000) <= 20


def test_parallel_neurons_are_told_apart():
    plain = zoo.random_network([8, 5, 1], seed=6)
    W, b = np.vstack([plain.weights[0], plain.weights[0][:1]]), np.append(plain.biases[0], 0.9)
    truth = Network([W, np.column_stack([plain.weights[1], [-0.8]])], [b, plain.biases[1]])
    found = revelu.extract(degrade(truth, Labels()))
    assert (found.status, found.network.architecture) == (Status.RECOVERED, (8, 6, 1))
    assert wrong(truth, found, 8) == 0


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (DecisionTreeClassifier(random_state=0), "parallel to axes"),
        (RandomForestClassifier(20, random_state=0), "parallel to axes"),
        (KNeighborsClassifier(1), "without a bend"),
        (SVC(), "square of the distance"),
    ],
    ids=["tree", "forest", "neighbours", "rbf"],
)
def test_what_is_no_network_is_refused_with_evidence(wine, model, words):
    found = revelu.extract(model.fit(*wine).predict, dim_in=13, budget=400_000)
    assert found.status is Status.NOT_IN_CLASS
    assert any(words in said for said in found.evidence)
    assert found.network is None
    assert found.certificate is None
    assert found.ledger.n_queries <= 220_000


@pytest.mark.slow
def test_two_hidden_layers_come_back():
    truth = zoo.random_network([10, 8, 8, 3], seed=1)
    found = revelu.extract(degrade(truth, Labels()), budget=800_000, seed=1)
    assert (found.status, found.method) == (Status.RECOVERED, "labels")
    assert found.network.architecture == (10, 8, 8, 3)
    assert wrong(truth, found, 10) == 0
    assert first_rows_error(truth, found.network.hyperplanes()) < 1e-10


def first_rows_error(truth, layer):
    """The largest error of any row of a first layer, with rows of norm 1, up to their signs."""
    V, U = (
        np.column_stack([W, b]) / np.linalg.norm(W, axis=1)[:, None]
        for W, b in (truth.hyperplanes(), layer)
    )
    near = [np.abs(V[:, None] - s * U[None]).max(axis=2) for s in (1.0, -1.0)]
    return np.minimum(*near).min(axis=1).max()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "seed", "budget", "words"),
    [
        ([6, 10, 8, 3], 1, 500_000, "up to their signs"),
        ([12, 8, 8, 6, 3], 1, 800_000, "what is above it"),
        ([10, 8, 8, 3], 1, 200_000, "do not fit the budget"),
    ],
    ids=["wider_than_the_input", "three_layers", "budget"],
)
def test_a_first_layer_alone_is_partial(widths, seed, budget, words):
    truth = zoo.random_network(widths, seed=seed)
    found = revelu.extract(degrade(truth, Labels()), budget=budget, seed=1)
    assert found.status in {Status.PARTIAL, Status.BUDGET_EXHAUSTED}
    assert found.network is None
    W, b = found.first_layer
    assert len(W) == widths[1]
    assert first_rows_error(truth, (W, b)) < 1e-6
    assert any(words in said for said in found.evidence)


def test_a_linear_classifier_has_no_neuron(wine):
    model = LogisticRegression().fit(*wine)
    found = revelu.extract(model.predict, dim_in=13)
    assert (found.status, found.network.architecture) == (Status.RECOVERED, (13, 0, 3))
    np.testing.assert_array_equal(labels_of(found, wine[0]), model.predict(wine[0]))
    assert found.ledger.n_queries <= 40_000


def drawn_anew(truth, share, rng, X):
    labels = degrade(truth, Labels())(X)[:, 0]
    return np.where(rng.random(len(labels)) < share, 1.0 - labels, labels)


@pytest.mark.slow
def test_many_neurons_on_few_inputs_have_a_skip_for_their_signs():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier((60,), random_state=1).fit(X, y)
    found = revelu.extract(model.predict, dim_in=4, seed=1)
    assert found.status is Status.RECOVERED
    assert any("signs of neurons are not told" in said for said in found.evidence)
    fresh = np.random.default_rng(5).standard_normal((100_000, 4))
    np.testing.assert_array_equal(labels_of(found, fresh), model.predict(fresh))
    np.testing.assert_array_equal(labels_of(found, X), model.predict(X))
    rows = row_errors(model, found.network)
    assert (rows < 1e-6).sum() >= 58
    assert found.ledger.n_queries <= 450_000


def row_errors(model, network):
    """How far the nearest row of a network is from each of a model's, up to its sign."""
    V, U = (
        np.column_stack([W, b]) / np.linalg.norm(W, axis=1)[:, None]
        for W, b in (
            (model.coefs_[0].T, model.intercepts_[0]),
            (network.weights[0], network.biases[0]),
        )
    )
    return np.minimum(*(np.abs(V[:, None] - s * U).max(axis=2) for s in (1, -1))).min(axis=1)


def test_steps_of_many_weights_are_those_of_few():
    truth = zoo.random_network([6, 5, 3], seed=1)
    rng, classes = np.random.default_rng(0), np.arange(3.0)
    skip = rng.standard_normal((3, 6)), truth.biases[1]
    truth = Network(truth.weights, [truth.biases[0], np.zeros(3)], skip)
    borders, _ = predicted_borders(truth, *rng.standard_normal((2, 1000, 6)), classes)
    start = truth.like(truth.to_vector() + 1e-6 * rng.standard_normal(truth.n_parameters))
    for most in (4000, 1):
        network = refine(start, borders, classes, replace(Polish(), most_parameters=most))
        F = network(borders.X)
        i, a, b = np.arange(len(F)), borders.a.astype(int), borders.b.astype(int)
        assert np.abs(F[i, a] - F[i, b]).max() < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.002])
def test_noisy_labels_are_not_deterministic(share):
    truth = zoo.random_network([10, 16, 1], seed=1)
    target = partial(drawn_anew, truth, share, np.random.default_rng(1))
    found = revelu.extract(target, dim_in=10, labels=True, budget=300_000)
    assert found.status in {Status.NOT_DETERMINISTIC, Status.BUDGET_EXHAUSTED}
    assert found.certificate is None


def test_a_constant_tells_nothing():
    found = revelu.extract(lambda X: np.zeros(len(X)), dim_in=5, labels=True)
    assert found.status is Status.UNVERIFIED
    assert any("got the label 0" in said for said in found.evidence)
    assert found.ledger.n_queries <= 10_000


def test_one_input_tells_no_weight():
    target = degrade(zoo.random_network([1, 8, 3], seed=3), Labels())
    found = revelu.extract(target, labels=True)
    assert found.status is Status.UNVERIFIED
    assert any("points" in said for said in found.evidence)


def in_float32(network, activation=lambda z: np.maximum(z, np.float32(0.0))):
    """Labels of a network that computes in float32 throughout, and what it stands for."""
    (W, A), (b, c) = (
        [part.astype(np.float32) for part in parts] for parts in (network.weights, network.biases)
    )

    def labels(X):
        H = activation(np.asarray(X, np.float32) @ W.T + b)
        return (H @ A.T + c).argmax(axis=1)[:, None].astype(float)

    return labels, Network([W.astype(float), A.astype(float)], [b.astype(float), c.astype(float)])


@pytest.mark.parametrize(("widths", "seed"), [([10, 12, 4], 2), ([4, 8, 3], 1)])
def test_labels_in_float32_tell_weights_to_six_digits(widths, seed):
    target, truth = in_float32(zoo.random_network(widths, seed=seed))
    found = revelu.extract(target, dim_in=widths[0], seed=seed, budget=2_500 * truth.n_parameters)
    assert found.status is Status.RECOVERED
    assert largest_error(truth, found) < 1e-5
    assert wrong(truth, found, widths[0]) <= 10


def test_labels_in_float32_of_curved_borders_are_not_in_the_class(wine):
    X, y = wine
    model = SVC().fit(X, y)
    found = revelu.extract(
        lambda X: model.predict(X.astype(np.float32).astype(float)), dim_in=13, budget=100_000
    )
    assert found.status is Status.NOT_IN_CLASS
    assert any("square of the distance" in said for said in found.evidence)
    assert found.network is None


@pytest.mark.slow
def test_labels_in_float32_of_nearest_neighbours_are_not_recovered(wine):
    X, y = wine
    model = KNeighborsClassifier(1).fit(X, y)
    found = revelu.extract(
        lambda X: model.predict(X.astype(np.float32).astype(float)), dim_in=13, budget=800_000
    )
    assert found.status in {Status.NOT_IN_CLASS, Status.UNVERIFIED, Status.BUDGET_EXHAUSTED}
    assert found.network is None


@pytest.mark.slow
def test_units_rounded_off_less_than_float32_tells_are_not_certified():
    # Softplus of so large a slope is a ReLU but for 2e-4 at its bend, a thousand times the noise.
    def softplus(z):
        beta = np.float32(3000.0)
        return (np.logaddexp(np.float32(0.0), beta * z) / beta).astype(np.float32)

    target, _ = in_float32(zoo.random_network([8, 8, 3], seed=5), softplus)
    found = revelu.extract(target, dim_in=8, seed=1, budget=600_000)
    assert found.status is Status.UNVERIFIED


def test_labels_of_few_digits_tell_what_borders_are_told_to():
    truth = zoo.random_network([8, 8, 3], seed=5)
    target = degrade(truth, Labels())
    oracle = Oracle(lambda X: target(X.astype(np.float32).astype(float)), 8)
    rng = np.random.default_rng(3)
    pool = Pool(lambda X: oracle(X)[:, 0], 8, rng)
    pool.fill()
    noise = noise_of_places(pool.ask, pool.borders(24, 1e-13), Precision(), Rounding(), rng)
    # Half a unit in the last place of coordinates that are mostly in [1/2, 2].
    assert 2.0**-26 < noise < 2.0**-21
    told = Told.to(noise, Rounding())
    assert told.places < told.normals < told.rows < Rounding().largest
    exact = Pool(lambda X: target(X)[:, 0], 8, rng)
    exact.fill()
    assert noise_of_places(exact.ask, exact.borders(24, 1e-13), Precision(), Rounding(), rng) == 0.0


def test_a_budget_is_kept():
    truth = zoo.random_network([10, 16, 1], seed=1)
    for budget in (0, 100, 1_000, 20_000):
        found = revelu.extract(degrade(truth, Labels()), labels=True, budget=budget)
        assert found.status is Status.BUDGET_EXHAUSTED
        assert found.ledger.n_queries <= budget


def test_the_same_seed_asks_the_same_and_a_journal_goes_on(tmp_path):
    truth = zoo.random_network([6, 6, 1], seed=2)
    first = revelu.extract(degrade(truth, Labels()), labels=True, seed=3)
    journal = tmp_path / "labels.journal"
    with revelu.open_oracle(degrade(truth, Labels()), budget=9_000, journal=journal) as oracle:
        assert revelu.extract(oracle, labels=True, seed=3).status is Status.BUDGET_EXHAUSTED
    with revelu.open_oracle(degrade(truth, Labels()), journal=journal) as oracle:
        resumed = revelu.extract(oracle, labels=True, seed=3)
    assert resumed.network == first.network
    # Where an earlier run has left answers, the target is looked at now and then.
    assert first.ledger.n_queries <= resumed.ledger.n_queries <= first.ledger.n_queries + 200


def test_inside_a_box_labels_are_refused():
    truth = zoo.random_network([6, 6, 1], seed=2)
    with pytest.raises(InputError, match="box"):
        revelu.extract(truth, labels=True, box=(-1.0, 1.0))


def test_the_certificate_counts_labels():
    truth = zoo.random_network([5, 6, 3], seed=1)
    (W, A), (b, c) = truth.weights, truth.biases
    other = Network([W, A], [b, c + np.array([0.05, 0.0, 0.0])])
    oracle = Oracle(degrade(truth, Labels()), 5)
    rng = np.random.default_rng(1)
    good = certify_labels(examine_labels(truth, np.arange(3.0), oracle, 2000, rng))
    assert good.passed
    assert (good.n_checks, good.n_structural) == (2000, 400)
    bad = certify_labels(examine_labels(other, np.arange(3.0), oracle, 2000, rng))
    assert not bad.passed
    assert bad.structural_within < 0.8
    assert "get another label" in bad.statement


def test_a_certificate_holds_a_network_against_what_earlier_ones_were_asked_too():
    truth = zoo.random_network([5, 6, 3], seed=1)
    (W, A), (b, c) = truth.weights, truth.biases
    other, classes = Network([W, A], [b, c + np.array([0.05, 0.0, 0.0])]), np.arange(3.0)
    oracle, rng = Oracle(degrade(truth, Labels()), 5), np.random.default_rng(1)
    earlier = examine_labels(truth, classes, oracle, 2000, rng).by(other, classes)
    last = replace(earlier, predicted=earlier.labels)
    both = certify_labels(LabelExamination.joined([earlier, last]))
    n_wrong = int((earlier.labels != earlier.predicted)[earlier.is_drawn].sum())
    assert n_wrong
    assert not both.passed
    assert (both.n_checks, both.n_structural) == (4000, 800)
    assert both.fraction_within == 1.0 - n_wrong / 4000


def test_what_counts_as_labels():
    assert are_labels(np.array([[0.0], [1.0], [1.0], [0.0]]))
    assert are_labels(np.eye(3)[[0, 1, 2, 1]])
    assert not are_labels(np.array([[0.5], [1.0]]))
    assert not are_labels(np.zeros((8, 1)))
    assert not are_labels(np.arange(8.0)[:, None])
    tally = LabelTally()
    for Y in (np.zeros((64, 1)), np.zeros((64, 1)), np.array([[0.0], [3.0]])):
        assert not tally.are_labels
        tally.add(Y)
    assert tally.are_labels
    tally.add(np.array([[0.5]]))
    assert not tally.are_labels
    np.testing.assert_array_equal(as_labels(np.array([[-0.5], [2.5]])), [[0.0], [1.0]])


def test_the_command_writes_a_network_whose_labels_agree(tmp_path):
    truth = zoo.random_network([6, 6, 3], seed=7)
    truth.save(tmp_path / "target.npz")
    command = ["extract", f"{tmp_path / 'target.npz'}", "--labels", "-o", f"{tmp_path / 'o.npz'}"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "another label" in " ".join(done.stdout.split())
    X = np.random.default_rng(1).standard_normal((5000, 6))
    copy = revelu.load(tmp_path / "o.npz")
    np.testing.assert_array_equal(copy(X).argmax(axis=1), truth(X).argmax(axis=1))


def test_a_bend_of_two_inputs_that_was_met_twice_makes_no_neuron():
    rng = np.random.default_rng(1)
    X = np.repeat(rng.standard_normal((6, 2)), 2, axis=0)
    before, behind = (lines_through(X, rng) for _ in range(2))
    found = find_rows(Bends(before, behind, X), Matching())
    assert len(found) == 0


def lines_through(X, rng):
    N = rng.standard_normal(X.shape)
    N /= np.linalg.norm(N, axis=1)[:, None]
    F = np.column_stack([N, -(N * X).sum(axis=1)])
    a, small = np.zeros(len(X)), np.full(len(X), 1e-12)
    return Facets(X, F, a, a + 1.0, small + 1e-3, small, small)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "seed"),
    [
        ([2, 12, 3], 63_971_000),
        ([2, 12, 3], 63_971_009),
        ([2, 12, 3], 64_140_000),  # a bend's neuron puts out something to a third class
        ([2, 12, 3], 64_140_003),  # neurons part borders that do not meet, and bend none
        ([2, 12, 3], 64_140_004),  # a class ends in a sharp corner
        ([2, 12, 3], 64_170_003),  # lines have to move before labels are right
    ],
)
def test_two_inputs_have_the_same_labels_and_say_which_lines_are_told(widths, seed):
    truth = zoo.random_network(widths, seed=seed)
    found = revelu.extract(degrade(truth, Labels()), seed=seed)
    assert found.status is Status.RECOVERED
    assert any("one choice of many" in said for said in found.evidence)
    assert wrong(truth, found, 2) == 0
    assert found.ledger.n_queries <= 350 * truth.n_parameters


def test_labels_of_a_domain_are_certified_in_the_targets_units():
    truth, scale = zoo.random_network([6, 8, 3], seed=3), np.arange(1.0, 7.0)
    target = truth.after(np.diag(1.0 / scale), -1.0 / scale)
    domain = revelu.Domain.gaussian(np.ones(6), scale)
    found = revelu.extract(target, labels=True, domain=domain, budget=60_000)
    assert found.status is Status.RECOVERED
    X = 1.0 + scale * np.random.default_rng(4).standard_normal((20_000, 6))
    assert (labels_of(found, X) == target(X).argmax(axis=1)).all()


def test_rounding_that_moves_borders_is_said():
    truth = zoo.random_network([6, 8, 3], seed=3)
    # So far from 0 rounding is larger than what borders are apart.
    far = revelu.Domain.gaussian(np.full(6, 1e12), np.ones(6))
    inner = revelu.extract(truth, labels=True, budget=60_000)
    moved = in_units(inner, far, np.random.default_rng(0))
    assert moved.status is Status.UNVERIFIED
    assert not moved.certificate.passed
    assert "rounding changes" in moved.evidence[-1]


@pytest.mark.slow
def test_three_bends_are_on_a_line_of_which_one_is_told_to_few_digits():
    X, y = make_moons(1000, noise=0.2, random_state=64_033_001)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier(random_state=64_033_001).fit(X, y)
    found = revelu.extract(model.predict, dim_in=2, seed=64_033_001)
    assert found.status is Status.RECOVERED
    fresh = np.random.default_rng(5).standard_normal((100_000, 2))
    np.testing.assert_array_equal(labels_of(found, fresh), model.predict(fresh))
    assert found.ledger.n_queries <= 70_000


@pytest.mark.slow
def test_inputs_rounded_to_float16_are_not_called_a_tree():
    labels = degrade(zoo.random_network([10, 8, 4], seed=7), Labels())
    found = revelu.extract(
        lambda X: labels(X.astype(np.float16).astype(np.float64)), dim_in=10, seed=1, budget=60_000
    )
    assert found.status is Status.UNVERIFIED
    assert any("float16" in said for said in found.evidence)


@pytest.mark.parametrize("wrong_by", [0.0, 20.0, -20.0])
def test_labels_tell_entries_that_borders_leave_open(wrong_by):
    """Whatever an idle entry was at first, the network has the label of every input asked."""
    truth = zoo.random_network([6, 8, 4], seed=5)
    (W, A), (b, c) = truth.weights, truth.biases
    X = np.random.default_rng(6).standard_normal((2000, 6))
    labels = truth(X).argmax(axis=1)
    entry = np.zeros((1, 4, 8))
    entry[0, 2, 3] = 1.0
    idle = Added(entry, np.zeros((1, 4, 6)), np.zeros((1, 4)))
    none = Added(entry[:0], np.zeros((0, 4, 6)), np.zeros((0, 4)))
    columns = OutputEquations(
        A + wrong_by * entry[0], np.zeros((4, 6)), c, idle, none, 1, np.zeros(0, bool), 0.0, 1.0
    )
    V = np.column_stack([W, b])
    told = settled(columns, V, X, labels)
    assert (told.network(V)(X).argmax(axis=1) == labels).all()
    assert abs(told.A[2, 3] - A[2, 3]) < 0.1
    assert wrong_by or told is columns


@pytest.mark.parametrize("seed", [36_000_013, 36_200_246])
def test_classes_that_share_no_border_have_factors_of_their_own(seed):
    """One class lies between the two others: labels tell both borders, and no ratio of theirs."""
    truth = zoo.random_network([8, 3, 3], seed=seed)
    found = revelu.extract(degrade(truth, Labels()), dim_in=8, labels=True, seed=1, budget=40_000)
    assert found.status is Status.RECOVERED
    assert any("2 sets" in said for said in found.evidence)
    assert wrong(truth, found, 8) == 0
    middle = 1 if seed == 36_000_013 else 0
    for end in {0, 1, 2} - {middle}:
        pair = [in_one_scale(n, [middle, end]) for n in (truth, found.network)]
        (V, A, c), (U, B, e) = pair
        order = np.abs(V[:, None] - U[None]).max(axis=2).argmin(axis=1)
        a, b = np.append(A, c), np.append(B[:, order], e)
        assert max(np.abs(V - U[order]).max(), np.abs(a - b * (a @ b) / (b @ b)).max()) < 1e-7


@pytest.mark.slow
def test_a_network_whose_borders_are_denied_again_and_again_is_given_up(monkeypatch):
    # All borders seen are those of the network, and of those it predicts none is met.
    met = []

    def never_met(_ask, borders, _polish):
        met.append(len(borders))
        return np.full(len(borders), np.nan)

    monkeypatch.setattr(explanation, "half_widths", never_met)
    truth = zoo.random_network([4, 5, 3], seed=1)
    found = revelu.extract(degrade(truth, Labels()), seed=0)
    assert (found.status, found.network) == (Status.UNVERIFIED, None)
    assert any(said.startswith("5 neurons explain the borders") for said in found.evidence)
    assert len(met) == FromLabels().max_denied + 1
    assert min(met) > 0
    assert found.ledger.n_queries <= 250_000


@pytest.mark.parametrize(
    ("widths", "seed", "most"),
    [([3, 8, 1], 64_140_003, 60_000), ([3, 8, 1], 64_140_008, 67_000)],
)
def test_weights_that_few_borders_tell_are_right(widths, seed, most):
    # Two neurons are on together at all borders chosen without: errors of 9e-9 and 3e-6 stay.
    truth = zoo.random_network(widths, seed=seed)
    found = revelu.extract(degrade(truth, Labels()), seed=seed)
    assert found.status is Status.RECOVERED
    assert largest_error(truth, found) < 1e-11
    assert found.ledger.n_queries <= most


def test_borders_are_chosen_that_tell_what_others_leave_open():
    truth = zoo.random_network([3, 4, 2], seed=0)
    rng, classes, tuning = np.random.default_rng(0), np.arange(2.0), Polish()
    every, _ = predicted_borders(truth, *rng.standard_normal((2, 4000, 3)), classes)
    on = np.hstack(truth.preactivations(every.X))[:, 0] > 0
    some, others = every.take(np.flatnonzero(on)[:60]), every.take(~on)
    chosen = telling_borders(truth, some, others, classes, tuning)
    assert 60 < len(chosen) <= 60 + 12

    p = truth.to_vector()
    start = truth.like(p + 1e-6 * rng.standard_normal(len(p)))
    error = [
        relative_row_error(truth, refine(start, points, classes, tuning))
        for points in (some, chosen)
    ]
    assert error[0] > 1e-8
    assert error[1] < 1e-12


def relative_row_error(truth, network):
    """The largest error of rows of unit length, in order."""
    V, U = (
        np.column_stack([net.weights[0], net.biases[0]])
        / np.linalg.norm(net.weights[0], axis=1)[:, None]
        for net in (truth, network)
    )
    return np.abs(V - U).max()
