"""Standard errors of weights: what answers tell, held against the truth."""

import json
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from revelu.cli.app import app
from revelu.formats import load_arrays
from revelu.network import align, zoo
from revelu.numerics.digits import digits_of
from revelu.numerics.information import Information
from revelu.oracle import Domain, InFloat32, Noisy, Rounded, degrade
from revelu.recover.refine.weight_errors import Asked, InputReading, WeightErrors
from revelu.recovery import told_errors


def z_scores(recovery, truth):
    """Errors of all weights and biases, in the errors that are stated, one row."""
    found = align(recovery.network, truth)
    assert found.matched
    orders = [np.arange(truth.dim_in), *found.permutations, np.arange(truth.dim_out)]
    z = []
    for i, (W, b) in enumerate(recovery.standard_errors[: truth.n_hidden + 1]):
        rows, columns = orders[i + 1], orders[i]
        a, c = found.aligned.weights[i], found.aligned.biases[i]
        z += [(a - found.reference.weights[i]) / W[np.ix_(rows, columns)]]
        z += [(c - found.reference.biases[i]) / b[rows]]
    return np.concatenate([part.ravel() for part in z])


def test_information_is_the_inverse_of_the_normal_equations():
    rng = np.random.default_rng(0)
    scales = 10.0 ** np.array([-8, 0, 7, 3])
    J, r = rng.standard_normal((40, 4)) * scales, rng.standard_normal(40)
    found = Information.of([np.column_stack([J[:9], r[:9]]), np.column_stack([J[9:], r[9:]])], 4)
    # Of columns of one size, normal equations have digits enough.
    unit = J / scales
    wanted = np.sqrt(np.diag(np.linalg.inv(unit.T @ unit))) / scales
    assert np.allclose(found.errors(found.moves), wanted, rtol=1e-10)
    solution = np.linalg.lstsq(unit, r, rcond=None)[0] / scales
    assert np.allclose(found.solution, solution, rtol=1e-9)


def test_small_errors_stand_beside_large_ones():
    J = np.diag([1e15, 1.0, 1e-3])
    found = Information.of([np.column_stack([J, np.zeros(3)])], 3)
    assert np.allclose(found.errors(found.moves), [1e-15, 1.0, 1e3], rtol=1e-12)


def test_what_no_equation_tells_is_open():
    rng = np.random.default_rng(1)
    J = rng.standard_normal((30, 4))
    J[:, 2] = J[:, 0]  # only their sum is told
    J[:, 3] = 0.0
    found = Information.of([np.column_stack([J, np.zeros(30)])], 4)
    assert np.array_equal(np.isinf(found.errors(found.moves)), [True, False, True, True])
    both = found.moves[0] + found.moves[2]
    assert np.isclose(found.errors(both), 1.0 / np.linalg.norm(J[:, 0]), rtol=0.5)


def asked_of(network, n, sigma, rng):
    X = rng.standard_normal((n, network.dim_in))
    errors = np.full((n, network.dim_out), sigma)
    return Asked(X, network(X) + errors * rng.standard_normal(errors.shape), errors)


@pytest.mark.parametrize("widths", [[4, 5, 2], [4, 5, 3, 1]], ids=str)
@pytest.mark.parametrize("in_units", [False, True], ids=["coordinates", "inputs"])
def test_errors_of_a_fit_are_those_that_repeated_fits_have(widths, in_units):
    rng = np.random.default_rng(2)
    truth = zoo.random_network(widths, seed=3)
    d = truth.dim_in
    M = rng.standard_normal((d, d)) * [1.0, 30.0, 0.1, 3.0]
    reading = InputReading(M, rng.standard_normal(d), np.zeros(d, dtype=bool)) if in_units else None
    z = []
    for _ in range(20):
        found = WeightErrors.of(truth, asked_of(truth, 800, 1e-4, rng))
        mine, theirs = found.network, truth
        if reading is not None:
            mine, theirs = (n.after(reading.M, reading.t) for n in (mine, theirs))
        mine, theirs = mine.with_unit_rows(), theirs.with_unit_rows()
        for i, (W, b) in enumerate(found.layers(found.network, reading)):
            z += [((mine.weights[i] - theirs.weights[i]) / W).ravel()]
            z += [(mine.biases[i] - theirs.biases[i]) / b]
    z = np.concatenate(z)
    assert 0.9 < np.sqrt(np.mean(z**2)) < 1.1
    assert np.mean(np.abs(z) > 4) < 1e-3


def test_a_worse_estimate_has_larger_errors():
    rng = np.random.default_rng(4)
    truth = zoo.random_network([4, 5, 1], seed=5).with_unit_rows()
    moved = truth.like(truth.to_vector() + 1e-3 * rng.standard_normal(truth.n_parameters))
    found = WeightErrors.of(moved, asked_of(truth, 800, 1e-5, rng))
    away = moved.with_unit_rows()
    for i, (W, b) in enumerate(found.layers(moved)):
        assert np.all(np.abs(away.weights[i] - truth.weights[i]) < 4.0 * W)
        assert np.all(np.abs(away.biases[i] - truth.biases[i]) < 4.0 * b)


def test_what_nothing_shows_has_an_infinite_error():
    rng = np.random.default_rng(6)
    truth = zoo.random_network([3, 4, 1], seed=7)
    W, b = truth.weights[0], truth.biases[0].copy()
    b[2] = -100.0  # off wherever it is asked
    idle = revelu.Network([W, truth.weights[1]], [b, truth.biases[1]])
    (W, b), (A, c) = WeightErrors.of(idle, asked_of(idle, 400, 1e-6, rng)).layers(idle)
    is_idle = np.arange(4) == 2
    assert np.isinf(W[is_idle]).all()
    assert np.isinf(b[is_idle]).all()
    assert np.isinf(A[:, is_idle]).all()
    assert np.isfinite(W[~is_idle]).all()
    assert np.isfinite(A[:, ~is_idle]).all()
    assert np.isfinite(c).all()


@pytest.mark.parametrize(
    ("degradations", "most_queries"),
    [
        ([], 3300),
        ([InFloat32("sequential")], 3700),
        ([Noisy(1e-4, seed=5)], 3700),
        pytest.param([Rounded(6)], 3700, marks=pytest.mark.slow),
        pytest.param([Rounded(4)], 3700, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_stated_errors_are_true(degradations, most_queries):
    z = []
    for seed in range(2):
        network = zoo.random_network([5, 4, 1], seed=8660 + seed)
        truth = InFloat32.truth(network) if any(map(is_single, degradations)) else network
        target = degrade(network, *degradations) if degradations else network
        recovery = revelu.extract(target, dim_in=5, seed=seed)
        assert recovery.ledger.n_queries < most_queries
        z.append(z_scores(recovery, truth))
    z = np.concatenate(z)
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.5
    assert np.mean(np.abs(z) > 4) <= 0.02


def is_single(degradation):
    return isinstance(degradation, InFloat32)


def test_errors_are_in_the_targets_units():
    rng = np.random.default_rng(8)
    inside = zoo.random_network([4, 3, 1], seed=9)
    center, spread = np.array([100.0, -3.0, 0.0, 5.0]), np.array([20.0, 0.1, 1.0, 1e3])
    truth = inside.after(np.diag(1.0 / spread), -center / spread)
    data = center + spread * rng.standard_normal((300, 4))
    recovery = revelu.extract(truth, domain=Domain.like(data), seed=1)
    z = z_scores(recovery, truth)
    assert 0.3 < np.sqrt(np.mean(z**2)) < 1.5


def test_of_probabilities_the_last_output_is_0_by_agreement():
    network = zoo.random_network([4, 3, 3], seed=10)

    def ask(X):
        Z = network(X)
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        return P / P.sum(axis=1, keepdims=True)

    recovery = revelu.extract(ask, dim_in=4, seed=1)
    A, c = recovery.standard_errors[-1]
    assert A.shape == (3, 3)
    assert not A[-1].any()
    assert c[-1] == 0.0
    assert np.all(A[:-1] > 0.0)


def test_what_is_not_certified_has_none():
    recovery = revelu.extract(zoo.random_network([5, 4, 1], seed=1), budget=80, seed=1)
    assert recovery.status is not revelu.Status.RECOVERED
    assert recovery.standard_errors is None


@pytest.fixture(scope="module")
def recovered():
    return revelu.extract(zoo.random_network([5, 4, 1], seed=1), budget=4000, seed=1)


def test_an_archive_keeps_them(recovered, tmp_path):
    path = tmp_path / "found.npz"
    recovered.network.save(path, standard_errors=recovered.standard_errors)
    assert revelu.load(path) == recovered.network
    for kept, known in zip(load_arrays(path).errors, recovered.standard_errors, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(kept, known, strict=True))
    recovered.network.save(path)
    assert load_arrays(path).errors is None


@pytest.mark.parametrize(
    "change",
    [
        lambda named: named.update(weight_errors_0=named["weight_errors_0"][:, 1:]),
        lambda named: named.update(bias_errors_1=np.array([np.nan])),
        lambda named: named.update(bias_errors_1=np.array([-1.0])),
        lambda named: named.pop("bias_errors_1"),
        lambda named: named.update(bias_errors_7=np.zeros(1)),
    ],
)
def test_an_archive_with_errors_of_another_network_is_refused(recovered, tmp_path, change):
    path = tmp_path / "found.npz"
    recovered.network.save(path, standard_errors=recovered.standard_errors)
    with np.load(path) as archive:
        named = dict(archive)
    change(named)
    np.savez(path, **named)
    with pytest.raises(revelu.FormatError, match="standard errors"):
        revelu.load(path)


def test_an_account_has_them(recovered):
    account = json.loads(json.dumps(recovered.to_dict()))
    for told, (W, b) in zip(account["standard_errors"], recovered.standard_errors, strict=True):
        assert np.allclose(told["weights"], W)
        assert np.allclose(told["biases"], b)
    assert [layer["numbers"] for layer in account["digits"]] == [24, 5]
    assert all(8.0 < layer["half"] <= 16.0 for layer in account["digits"])
    assert "digits" in str(recovered)


def test_what_nothing_tells_is_null_in_an_account():
    told = told_errors([(np.array([[np.inf, 0.5]]), np.array([0.1]))], [np.array([0.0, 1.0, 2.0])])
    assert told["standard_errors"] == [{"weights": [[None, 0.5]], "biases": [0.1]}]
    assert told["digits"][0]["untold"] == 1


@pytest.mark.parametrize(
    ("errors", "digits"), [(1e-5, 5.0), (10.0, 0.0), (np.inf, 0.0), (0.0, 16.0)]
)
def test_digits_are_those_beside_a_typical_number(errors, digits):
    values = np.array([1.0, -1.0, 0.0]) * np.sqrt(1.5)
    assert np.allclose(digits_of([values], [np.full(3, errors)]), digits)


def test_a_file_is_inspected(recovered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recovered.network.save("found.npz", standard_errors=recovered.standard_errors)
    recovered.network.save("found.onnx")
    run = partial(CliRunner(env={"COLUMNS": "200"}).invoke, app)
    told = run(["inspect", "found.npz", "--errors"])
    assert told.exit_code == 0
    lines = [line for line in told.stdout.splitlines() if line.startswith("layer")]
    assert len(lines) == 5
    assert all(line.count("±") == n for line, n in zip(lines, [6, 6, 6, 6, 5], strict=True))
    account = json.loads(run(["inspect", "found.npz", "--json"]).stdout)
    assert account["standard_errors"] == recovered.to_dict()["standard_errors"]
    assert account["certified"] is True
    without = run(["inspect", "found.onnx", "--errors"])
    assert without.exit_code == 0
    assert "keeps none" in without.stdout
    assert run(["inspect", "nothing.npz"]).exit_code == 2


def test_an_extraction_writes_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zoo.random_network([4, 3, 1], seed=2).save("truth.npz")
    done = CliRunner().invoke(app, ["extract", "truth.npz", "-o", "found.npz"])
    assert done.exit_code == 0
    assert len(load_arrays(tmp_path / "found.npz").errors) == 2
