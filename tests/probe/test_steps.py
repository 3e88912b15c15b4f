"""Trees, forests and neighbours are told from networks wherever they are asked."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import revelu
from revelu import Domain, Network, Status
from revelu.network import zoo
from revelu.oracle import Oracle, measure_noise
from revelu.oracle.grid import Grid
from revelu.probe.steps import Steps
from revelu.report.sections import conditions_table


@pytest.fixture(scope="module")
def data():
    return {
        "wine": load_wine(return_X_y=True),
        "breast_cancer": load_breast_cancer(return_X_y=True),
        "diabetes": load_diabetes(return_X_y=True),
    }


@pytest.mark.parametrize(
    ("model", "queries", "words"),
    [
        (DecisionTreeClassifier(random_state=0), 20_000, "parallel to axes"),
        (RandomForestClassifier(20, random_state=0), 20_000, "parallel to axes"),
        (SVC(), 150_000, "square of the distance"),
        (GaussianNB(), 60_000, "square of the distance"),
    ],
    ids=["tree", "forest", "rbf", "bayes"],
)
def test_labels_of_data_in_their_own_units_are_no_network(data, model, queries, words):
    X, y = data["wine"]
    found = revelu.extract(model.fit(X, y).predict, dim_in=13, data=X, labels=True, budget=400_000)
    assert found.status is Status.NOT_IN_CLASS
    assert any(words in said for said in found.evidence)
    assert found.ledger.n_queries <= queries


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("breast_cancer", RandomForestClassifier(50, random_state=0)),
        ("wine", KNeighborsClassifier()),
        ("diabetes", RandomForestRegressor(29, random_state=0)),
    ],
    ids=["two_classes", "neighbours", "regressor"],
)
def test_answers_that_jump_are_no_network(data, name, model):
    X, y = data[name]
    found = revelu.extract(model.fit(X, y), data=X, budget=20_000)
    assert found.status is Status.NOT_IN_CLASS
    assert found.network is None
    assert any("constant but for jumps" in said for said in found.evidence)
    assert found.ledger.n_queries <= 10_000


@pytest.mark.parametrize(
    "n_trees",
    [pytest.param(100, marks=pytest.mark.slow, id="grid"), pytest.param(37, id="no_grid")],
)
def test_votes_that_jump_by_one_tree_at_a_time_are_no_certified_network(data, n_trees):
    X, y = data["wine"]
    model = RandomForestClassifier(n_trees, random_state=0).fit(X, y)
    found = revelu.extract(model, data=X, budget=20_000)
    assert found.status in {Status.NOT_IN_CLASS, Status.UNVERIFIED}


def ramps(X, width, seed):
    """A network of six steep ramps, each of a single input."""
    rng = np.random.default_rng(seed)
    which, t, c = np.arange(6) % 3, rng.normal(size=6), rng.normal(size=(6, 1))
    Z = (X[:, which] - t) / width
    return (np.maximum(Z, 0.0) - np.maximum(Z - 1.0, 0.0)) @ c


@pytest.mark.parametrize("places", [2, 3])
@pytest.mark.parametrize("width", [0.1, 0.01, 0.001])
def test_rounded_ramps_of_single_inputs_are_not_called_a_step_function(width, places):
    for seed in range(3):
        oracle = Oracle(lambda X, seed=seed: np.round(ramps(X, width, seed), places), 3)
        for grid in (Grid(10, places=places), None):
            assert not Steps().evidence(oracle, grid, np.random.default_rng(seed))


@pytest.mark.parametrize("dtype", [np.float16, "bfloat16"])
def test_no_jumps_are_looked_for_in_half_precision(dtype):
    truth = zoo.random_network([4, 5, 2], seed=1)

    def answer(X):
        Y = truth(X)
        if dtype == "bfloat16":
            mantissa, exponent = np.frexp(Y)
            return np.ldexp(np.rint(mantissa * 256.0), exponent - 8)
        return Y.astype(dtype)

    assert not Steps().may_be(measure_noise(Oracle(answer, 4), 0))


@pytest.mark.slow
@pytest.mark.parametrize("places", [1, 2, 3])
def test_rounded_answers_in_a_box_end_with_a_status(places):
    truth = zoo.random_network([3, 16, 1], seed=0)
    found = revelu.extract(
        lambda X: np.round(truth(X), places), dim_in=3, box=(-2.0, 2.0), budget=600
    )
    assert found.status in {Status.UNVERIFIED, Status.BUDGET_EXHAUSTED, Status.RECOVERED}


@pytest.mark.parametrize("bound", [(0, 1), (0, 1, 2)], ids=["two", "three"])
def test_labels_of_a_maximum_are_not_called_a_tree(bound):
    def labels(X):
        return (X[:, bound].max(axis=1) > 0.5).astype(float)

    found = revelu.extract(labels, dim_in=6, labels=True, budget=400_000)
    assert found.status in {Status.RECOVERED, Status.UNVERIFIED}
    said = " ".join(found.evidence)
    assert found.status is Status.RECOVERED or "single box" in said or "as few are" in said


def softmax(Z):
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def test_probabilities_rounded_coarsely_are_not_called_torn():
    """Certain nearly everywhere, so that the noise floor sees too few values for a grid."""
    truth = zoo.random_network([30, 8, 1], seed=4)

    def rounded(X):
        z = 25.0 * (truth(X) - 1.0)
        return np.round(softmax(np.column_stack([z, np.zeros(len(z))])), 2)

    for seed in range(2):
        found = revelu.extract(rounded, dim_in=30, seed=seed, budget=4_000)
        assert found.status is not Status.NOT_IN_CLASS


SEPARATE = np.arange(1.0, 7.0)


@pytest.mark.parametrize(
    "answer",
    [
        lambda X: np.round(zoo.random_network([6, 12, 2], seed=3)(X), 2),
        lambda X: np.round(np.maximum(X, 0.0) * SEPARATE, 2),
        lambda X: np.round(X.max(axis=1), 1),
        lambda X: np.round(37.0 * zoo.random_network([6, 12, 2], seed=3)(X)) / 37.0,
        lambda X: zoo.random_network([6, 12, 2], seed=3)(X.astype(np.float16).astype(float)),
        lambda X: zoo.random_network([6, 12, 2], seed=3)(X.astype(np.float32)).astype(np.float32),
        lambda X: np.maximum(zoo.random_network([6, 12, 2], seed=3)(X) - 1.0, 0.0),
        lambda X: np.clip(1e9 * zoo.random_network([6, 12, 2], seed=3)(X), 0.0, 1.0),
    ],
    ids=["rounded", "separate", "maximum", "units", "float16", "float32", "dead", "steep"],
)
@pytest.mark.parametrize("domain", [None, Domain.gaussian(np.arange(6.0), np.arange(1.0, 7.0))])
def test_no_network_is_called_a_step_function(answer, domain):
    for seed in range(3):
        oracle = Oracle(answer, 6, domain=domain)
        noise = measure_noise(oracle, seed)
        for grid in (noise.numbers.grid, None):
            assert not Steps().evidence(oracle, grid, np.random.default_rng(seed))


def test_rounding_of_answers_that_hardly_vary_is_no_step():
    # In such units an input changes the answer by a few units of float32.
    network = zoo.random_network([9, 16, 2], seed=4, bias_std=1.0)
    W, A = (M.astype(np.float32) for M in network.weights)
    b, c = (v.astype(np.float32) for v in network.biases)

    def answer(X):
        H = np.maximum(X.astype(np.float32) @ (np.float32(1e-7) * W).T + b, np.float32(0))
        return H @ A.T + c

    oracle = Oracle(answer, 9)
    assert np.ptp(oracle(np.random.default_rng(0).standard_normal((500, 9))), axis=0).max() > 0
    for seed in range(3):
        assert not Steps().evidence(oracle, None, np.random.default_rng(seed))


def forest_of_shares(X):
    """Ten trees of one split each, that vote."""
    thresholds = np.linspace(-1.0, 1.0, 10) ** 3
    return (X[:, np.arange(10) % 6] > thresholds).mean(axis=1)


def test_votes_of_one_unit_are_not_told_from_rounding():
    for grid in (Grid(10, places=1), None):
        oracle = Oracle(forest_of_shares, 6)
        assert not Steps().evidence(oracle, grid, np.random.default_rng(1))


def test_a_spent_budget_ends_the_look_for_jumps():
    assert (
        Steps().evidence(Oracle(forest_of_shares, 6, budget=100), None, np.random.default_rng(0))
        == ""
    )


def test_a_forest_is_diagnosed_as_steps_that_no_method_recovers(data):
    X, y = data["breast_cancer"]
    found = revelu.diagnose(
        RandomForestClassifier(20, random_state=0).fit(X, y), domain=Domain.like(X)
    )
    assert (found.kind.function, found.kind.extract_with) == ("steps", None)
    assert found.status is Status.NOT_IN_CLASS


def test_a_network_that_is_off_at_places_is_recovered_as_before():
    plain = zoo.random_network([6, 10, 1], seed=2)
    truth = Network([*plain.weights], [plain.biases[0] - 1.0, plain.biases[1]])
    found = revelu.extract(truth, budget=6_000)
    assert found.status is Status.RECOVERED


def test_what_would_be_missing_is_told_of_the_domain_that_was_asked():
    truth = zoo.random_network([6, 6, 1], seed=1)
    domain = Domain.gaussian(np.ones(6), np.full(6, 2.0))
    found = revelu.extract(
        lambda X: truth(X.astype(np.float32)).astype(np.float32), dim_in=6, domain=domain
    )
    told = [said for said in found.warnings if "would be missing" in said]
    assert told
    assert all(domain.words in said and "N(0, I)" not in said for said in told)


def test_a_diagnosis_says_where_it_asked():
    truth = zoo.random_network([4, 3, 1], seed=1)
    domain = Domain.gaussian(np.ones(4), np.full(4, 2.0))
    assert revelu.diagnose(truth, domain=domain).to_dict()["domain"] == domain.words
    assert revelu.diagnose(truth).to_dict()["domain"] == "of N(0, I)"


def test_a_condition_of_which_queries_say_otherwise_has_their_reason():
    said = {"number": "1.3", "name": "shared_piece", "delta": None, "at_most": False}
    asked = {**said, "holds": False, "text": "hides between two equal pieces"}
    exact = {**said, "holds": True, "text": "no two pieces are equal"}
    account = {
        "at_risk": "shared_piece",
        "perturbation": None,
        "measured": {"conditions": [asked]},
        "exact": {"conditions": [exact]},
    }
    (row,) = conditions_table(account).rows
    assert asked["text"] in row[-1].text
    assert exact["text"] in row[-1].text


def test_units_of_decimal_places_are_no_jumps_where_significant_digits_hold_all_seen_too():
    # As a noise floor that has seen no answer under 0.1 reads them.
    oracle = Oracle(lambda X: np.round(0.03 * X.sum(axis=1, keepdims=True), 2), 3)
    for seed in range(5):
        assert not Steps().evidence(oracle, Grid(10, digits=2), np.random.default_rng(seed))


def test_steps_of_half_precision_that_only_their_own_answers_show_are_no_jumps():
    truth = zoo.random_network([4, 5, 2], seed=1)
    oracle = Oracle(lambda X: truth(X).astype(np.float16), 4)
    assert not Steps().evidence(oracle, None, np.random.default_rng(0))


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_one_unit_of_a_grid_that_few_values_do_not_show_is_no_jump(seed):
    one, two = (zoo.random_network([5, 8, k], seed=seed) for k in (1, 2))

    def to_twentieths(X):
        return np.round(20.0 * one(X)) / 20.0

    def to_tenths_and_tens(X):
        return np.round(two(X) * [10.0, 30.0]) * [0.1, 10.0]

    for answer in (to_twentieths, to_tenths_and_tens):
        oracle = Oracle(answer, 5)
        for grid in (measure_noise(oracle, seed).numbers.grid, Grid(10, places=2)):
            assert not Steps().evidence(oracle, grid, np.random.default_rng(seed))
