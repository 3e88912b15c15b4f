"""Domains: where a target is asked, and results in its own units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import revelu
from revelu import Domain
from revelu.errors import FormatError, InputError
from revelu.formats.tables import read_table
from revelu.network import zoo
from revelu.recovery import Status
from revelu.tasks.units import network_in_units


def _target(d: int = 6, seed: int = 1) -> tuple[revelu.Network, np.ndarray]:
    """A network in units of its own, far from N(0, I), and rows as it is used on."""
    rng = np.random.default_rng(seed)
    scale, shift = 10.0 ** rng.uniform(-3, 3, d), 100.0 * rng.standard_normal(d)
    inner = zoo.random_network([d, 5, 2], seed=seed)
    rows = shift + scale * rng.standard_normal((200, d))
    return inner.after(np.diag(1.0 / scale), -shift / scale), rows


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_coordinates_and_inputs_are_taken_to_each_other(seed: int, correlated: bool) -> None:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    X = rng.standard_normal((30 * d, d)) @ rng.standard_normal((d, d)) * 10.0 ** rng.uniform(-3, 3)
    X = X if correlated else X[: 5 * d + 2]
    domain = Domain.like(X).of(d)
    back = domain.to_target(domain.to_coordinates(X))
    assert np.abs(back - X).max() <= 1e-9 * np.abs(X).max()


def test_coordinates_of_data_are_about_normal() -> None:
    _, rows = _target(seed=3)
    Z = Domain.like(rows).of(6).to_coordinates(rows)
    assert np.abs(Z.mean(axis=0)).max() < 1e-9
    assert np.abs(np.cov(Z.T) - np.eye(6)).max() < 0.3  # shrunk a little


@pytest.mark.parametrize("how", ["like", "gaussian", "data"])
def test_a_network_comes_back_in_its_own_units(how: str) -> None:
    truth, rows = _target()
    domains = {
        "like": {"domain": Domain.like(rows)},
        "gaussian": {"domain": Domain.gaussian(rows.mean(axis=0), rows.std(axis=0))},
        "data": {"data": rows},
    }
    found = revelu.extract(truth, dim_in=6, budget=4500, **domains[how])
    assert found.status is revelu.Status.RECOVERED
    assert found.ledger.n_recovery <= 6 * truth.n_parameters
    assert np.abs(found.network(rows) - truth(rows)).max() <= 1e-8 * truth(rows).std()
    assert "N(0, I)" not in found.certificate.statement
    if how == "data":
        assert found.certificate.fidelity.fraction_within == 1.0
        assert found.certificate.fidelity.n_inputs == len(rows)


def test_the_same_target_is_not_recovered_where_it_is_not() -> None:
    truth, rows = _target()
    found = revelu.extract(truth, dim_in=6, domain=Domain.gaussian(0.0, 1e-9))
    # Far from every hyperplane an affine map is all there is; it is certified for there alone.
    assert found.network.architecture[1] == 0
    assert "1e-09" in found.certificate.statement
    verified = revelu.verify(found.network, truth, domain=Domain.like(rows))
    assert verified.status is revelu.Status.UNVERIFIED


def test_the_right_network_is_verified_on_the_data() -> None:
    truth, rows = _target(seed=2)
    found = revelu.verify(truth, truth, domain=Domain.like(rows), inputs=rows)
    assert found.status is revelu.Status.RECOVERED
    assert found.certificate.fidelity.max_abs_error <= 1e-9 * np.abs(truth(rows)).max()


def test_a_box_of_columns_is_never_left() -> None:
    truth, rows = _target(seed=4)
    lo, hi = rows.min(axis=0), rows.max(axis=0)
    seen: list[np.ndarray] = []

    def ask(X: np.ndarray) -> np.ndarray:
        seen.append(X)
        return truth(X)

    found = revelu.extract(ask, dim_in=6, domain=Domain.box(lo, hi))
    X = np.concatenate(seen)
    assert (lo <= X).all()
    assert (hi >= X).all()
    assert found.status is revelu.Status.RECOVERED
    inside = np.random.default_rng(5).uniform(lo, hi, (500, 6))
    assert np.abs(found.network(inside) - truth(inside)).max() <= 1e-7 * truth(inside).std()


def test_constant_and_discrete_columns_are_told_of() -> None:
    truth, rows = _target()
    rows[:, 2] = 7.0
    rows[:, 4] = np.arange(len(rows)) % 2
    domain = Domain.like(rows)
    assert domain.of(6).dim_in == 5
    assert any("column 2 of the data is" in note and "constant" in note for note in domain.notes)
    assert any("column 4 of the data is" in note and "few values" in note for note in domain.notes)
    named = Domain.like(rows, names=["age", "sex", "unit", "dose", "smoker", "bmi"])
    assert named.notes[0].startswith("column unit of the data is constant")
    assert Domain.like(rows, keep_discrete=True).of(6).dim_in == 4
    found = revelu.extract(truth, dim_in=6, domain=domain)
    assert found.status is revelu.Status.RECOVERED
    assert np.abs(found.network(rows) - truth(rows)).max() <= 1e-8 * truth(rows).std()
    # What is held was not looked at: its weights are none, and that is said.
    assert not found.network.weights[0][:, 2].any()
    assert any("column 2 of the data is" in warning for warning in found.warnings)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
def test_a_pipelines_own_scaler_suggests_where_to_ask(scaler: StandardScaler) -> None:
    _, rows = _target(seed=6)
    y = np.maximum(rows[:, 0] - rows[:, 0].mean(), 0.0) / rows[:, 0].std()
    model = make_pipeline(scaler, MLPRegressor(hidden_layer_sizes=(4,), max_iter=50, tol=1.0))
    model.fit(rows, y)
    found = revelu.extract(model)
    assert found.status is revelu.Status.RECOVERED
    expected = model.predict(rows)
    assert np.abs(found.network(rows)[:, 0] - expected).max() <= 1e-8 * expected.std()
    assert type(scaler).__name__ in found.certificate.statement


def test_a_logistic_regression_in_raw_units_is_affine() -> None:
    _, rows = _target(seed=7)
    labels = (rows[:, 1] > rows[:, 1].mean()).astype(int)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, labels)
    found = revelu.extract(model)
    assert found.status is revelu.Status.RECOVERED
    assert found.network.architecture[1] == 0
    same = found.network(rows).argmax(axis=1) == model.predict(rows)
    assert same.all()


def test_a_span_is_that_of_the_targets_inputs() -> None:
    rng = np.random.default_rng(8)
    scale = 10.0 ** rng.uniform(-1, 1, 10)
    truth = zoo.random_network([10, 3, 4, 1], seed=8).after(np.diag(1.0 / scale), -5.0 / scale)
    rows = 5.0 + scale * rng.standard_normal((50, 10))
    found = revelu.recover_span(truth, dim_in=10, domain=Domain.like(rows))
    assert found.status is revelu.Status.RECOVERED
    assert found.span.angles(truth.weights[0]).max() < 1e-6


@pytest.mark.slow
def test_an_audit_says_where_it_asked_and_has_copies_in_units() -> None:
    truth, rows = _target(d=3, seed=9)
    found = revelu.audit(truth, dim_in=3, domain=Domain.like(rows, name="rows.csv"), max_seconds=20)
    assert "rows.csv" in found.domain
    assert found.rows[0].recovered == "weights"
    assert np.abs(found.copy(rows) - truth(rows)).max() <= 1e-8 * truth(rows).std()


def test_a_journal_is_not_resumed_in_another_domain(tmp_path) -> None:
    truth, rows = _target(seed=10)
    path = tmp_path / "run.db"
    with revelu.open_oracle(truth, journal=path, domain=Domain.like(rows)) as oracle:
        first = revelu.extract(oracle)
    with revelu.open_oracle(truth, journal=path, domain=Domain.like(rows)) as oracle:
        again = revelu.extract(oracle)
    assert again.network == first.network
    for other in (None, Domain.gaussian(1.0, 2.0)):
        with pytest.raises(InputError, match="domain"):
            revelu.open_oracle(truth, journal=path, domain=other)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Domain.like([[1.0, 2.0]]), "too few"),
        (lambda: Domain.like([[1.0, np.nan], [2.0, 1.0]]), "row 0, column 1"),
        (lambda: Domain.like([[1.0, 2.0], [1.0, 2.0]]), "constant"),
        (lambda: Domain.like([["a", "b"]]), "not a table of numbers"),
        (lambda: Domain.like([1.0, 2.0]), "table"),
        (lambda: Domain.box(1.0, 1.0), "lo < hi"),
        (lambda: Domain.box([0.0, 1.0], [1.0, 2.0, 3.0]), "columns"),
        (lambda: Domain.gaussian(0.0, 0.0), "positive"),
        (lambda: Domain.gaussian([0.0, np.inf], 1.0), "finite"),
        (lambda: Domain.gaussian(0.0, 1.0).within(50.0, 60.0), "outside the box"),
    ],
)
def test_what_makes_no_domain_is_refused_in_a_line(make, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_domain_of_other_columns_asks_nothing() -> None:
    def ask(_: np.ndarray) -> np.ndarray:
        raise AssertionError

    with pytest.raises(InputError, match="3 columns"):
        revelu.extract(ask, dim_in=6, domain=Domain.gaussian([0.0, 1.0, 2.0], 1.0))


def test_tables_are_read_by_header_or_without(tmp_path) -> None:
    X = np.array([[1.0, 2.0, 3.5], [4.0, -5.0, 6e3]])
    named, plain = tmp_path / "named.csv", tmp_path / "plain.csv"
    named.write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in X) + "\n")
    plain.write_text("\n".join(";".join(map(str, row)) for row in X))
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X=X)
    for path in (named, plain, tmp_path / "x.npy", tmp_path / "x.npz"):
        assert np.array_equal(read_table(path), X)
    assert np.array_equal(read_table(named, ["c", "0"]), X[:, [2, 0]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,x\n", "column 'b' holds 'x' in line 2"),
        ("a,b\n1,\n", "column 'b' is empty in line 2"),
        ("1,2\n3\n", "line 2 has 1 columns"),
        ("", "is empty"),
    ],
)
def test_what_is_no_table_is_named_by_its_place(tmp_path, text: str, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(FormatError, match=words):
        read_table(path)


def test_columns_of_any_size_stand_beside_each_other() -> None:
    spread, mean = np.array([3e15, 0.1, 1.0]), np.array([1.7e18, 0.5, 0.0])
    rows = mean + np.random.default_rng(2).standard_normal((500, 3)) * spread
    inner = zoo.random_network([3, 8, 1], seed=2)
    found = revelu.extract(lambda X: inner((X - mean) / spread), dim_in=3, data=rows)
    assert found.status is revelu.Status.RECOVERED
    truth = inner((rows - mean) / spread)
    assert np.abs(found.network(rows) - truth).max() <= found.certificate.tolerance


def test_what_units_round_away_is_not_certified() -> None:
    center, inner = 1e10, zoo.random_network([30, 8, 1], seed=70060005)

    def target(X: np.ndarray) -> np.ndarray:
        return inner(X - center)

    domain = Domain.gaussian(center, 1.0)
    found = revelu.extract(target, dim_in=30, domain=domain, seed=70060005)
    rows = center + np.random.default_rng(4).standard_normal((4000, 30))
    wrong = np.abs(found.network(rows) - target(rows)) > found.certificate.tolerance
    assert wrong.mean() > 0.01
    assert found.status is revelu.Status.UNVERIFIED
    assert any("own units" in said for said in found.evidence)
    assert revelu.verify(found.network, target, domain=domain).status is revelu.Status.UNVERIFIED


def test_columns_that_are_held_are_not_in_the_null_space() -> None:
    truth = zoo.random_network([8, 3, 6, 1], seed=5)
    rows = np.random.default_rng(5).standard_normal((300, 8))
    rows[:, 5] = 2.0
    found = revelu.recover_span(truth, domain=Domain.like(rows))
    moved = revelu.obfuscate(rows, found.span)
    assert np.abs(truth(moved) - truth(rows)).max() <= 1e-6 * truth(rows).std()
    assert np.abs(moved[:, 5] - rows[:, 5]).max() <= 1e-9


def test_a_span_of_columns_of_very_unlike_sizes_is_not_certified() -> None:
    scale = 10.0 ** np.linspace(-9, 9, 6)
    truth = zoo.random_network([6, 2, 3, 1], seed=6).after(np.diag(1.0 / scale))
    rows = scale * np.random.default_rng(6).standard_normal((30, 6))
    found = revelu.recover_span(truth, domain=Domain.like(rows))
    assert found.status is not revelu.Status.RECOVERED


@pytest.mark.parametrize("seed", range(4))
def test_the_angle_of_a_span_in_unlike_units_is_of_the_right_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-2.5, 2.5, 12)
    truth = zoo.random_network([12, 3, 4, 1], seed=seed).after(np.diag(1.0 / scale))
    found = revelu.recover_span(truth, domain=Domain.gaussian(0.0, scale), seed=seed)
    angle = found.span.angles(truth.weights[0]).max()
    # The map's condition number, 1e4 to 1e5, is what none of these directions is turned by.
    assert angle <= found.expected_angle <= 1e3 * max(angle, 1e-12)
    assert (found.span.errors <= found.expected_angle * (1.0 + 1e-9)).all()


def test_collinear_columns_and_much_shrinking_are_told() -> None:
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((3000, 4))
    rows[:, 3] = rows[:, 0] + 1e-9 * rows[:, 3]
    assert "collinear" in Domain.like(rows).words
    assert "standard deviations" in Domain.like(rng.standard_normal((60, 5))).words
    some = rng.standard_normal((60, 5)) + 0.5 * rng.standard_normal((60, 1))
    assert "weaker for want of rows" in Domain.like(some).words


def test_constant_columns_of_any_value_are_those_of_the_rows() -> None:
    truth, rows = _target(seed=8)
    for value in (0.1, 1.0 / 3.0, 1e9 + 0.1):
        rows[:, 1] = value
        Domain.like(rows).of(6).to_coordinates(rows)
    found = revelu.verify(truth, truth, domain=Domain.like(rows), inputs=rows)
    assert found.certificate.fidelity.fraction_within == 1.0


@pytest.mark.parametrize("size", [1e-200, 1e160])
def test_columns_whose_squares_overflow_are_named(size: float) -> None:
    rows = np.random.default_rng(9).standard_normal((50, 3)) * [1.0, size, 1.0]
    with pytest.raises(InputError, match="column 1"):
        Domain.like(rows)


def test_what_is_no_domain_is_refused() -> None:
    with pytest.raises(InputError, match=r"revelu\.Domain"):
        revelu.extract(zoo.random_network([3, 2, 1], seed=1), domain="data.csv")


@pytest.mark.parametrize("seed", [0, 3])
def test_checks_that_the_statement_counts_leave_a_network_verified_in_units(seed):
    truth = zoo.random_network([5, 6, 1], seed=3)
    # A neuron that fires at one input of 5,000 is missing.
    whole = lambda X: truth(X) + np.maximum(X[:, :1] - norm.isf(2e-4), 0.0)  # noqa: E731
    plain = revelu.verify(truth, whole, seed=seed, dim_in=5)
    assert plain.status is Status.RECOVERED
    assert plain.certificate.fraction_within < 1.0
    domain = Domain.gaussian(5.0, 2.0).of(5)
    moved = lambda X: whole((X - 5.0) / 2.0)  # noqa: E731
    outer = network_in_units(truth, domain)
    found = revelu.verify(outer, moved, seed=seed, dim_in=5, domain=domain)
    assert found.status is Status.RECOVERED, found.evidence
    assert found.certificate.fraction_within == plain.certificate.fraction_within
    assert found.ledger.n_queries < 16_000
