"""Polish: to the last digits, within its queries, and never for the worse."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import revelu
from revelu.cli.app import app
from revelu.network import zoo
from revelu.network.derivative import NetworkDerivative, ParameterArrays
from revelu.numerics.whitening import NeuronWhitening, Whitening
from revelu.oracle import Oracle, measure_noise
from revelu.recover.refine import polish
from revelu.recover.refine.network_fit import Automatic, degrees_of_freedom
from revelu.recover.refine.polish import choose_inputs, fit_to_last_digits, polish_to_known
from revelu.recovery import Status


def error_of(network, truth):
    X = np.random.default_rng(7).standard_normal((2000, truth.dim_in))
    return float(np.abs(network(X) - truth(X)).max())


def perturbed(network, size, seed):
    vector = network.to_vector()
    return network.like(vector + size * np.random.default_rng(seed).standard_normal(len(vector)))


@pytest.mark.parametrize(("widths", "most"), [([10, 16, 1], 2.35), ([12, 20, 1], 2.35)])
def test_errors_end_at_rounding_within_the_queries(widths, most):
    d, m, _ = widths
    for seed in range(2):
        truth = zoo.random_network(widths, seed=300 + seed)
        plain = revelu.extract(truth, seed=seed)
        recovery = revelu.extract(truth, seed=seed, polish=True)
        assert recovery.status is Status.RECOVERED
        assert error_of(recovery.network, truth) < 2e-14
        assert error_of(recovery.network, truth) < error_of(plain.network, truth)
        assert recovery.certificate.n_checks == plain.certificate.n_checks
        assert recovery.certificate.max_abs_error < 2e-14
        phases, before = recovery.ledger.by_phase, plain.ledger.by_phase
        assert phases["polish"] <= m * (d + 1) + 1
        assert {**phases, "polish": 0} == dict(before)
        assert recovery.ledger.n_recovery <= most * m * (d + 2)


def test_several_outputs_take_fewer_queries():
    truth = zoo.random_network([12, 8, 4], seed=5)
    recovery = revelu.extract(truth, polish=True)
    assert error_of(recovery.network, truth) < 1e-13
    assert recovery.ledger.by_phase["polish"] <= 1.3 * truth.n_parameters / 4 + 1


def test_classifiers_skips_and_constants_keep_their_shapes():
    truth = zoo.random_network([6, 4, 3], seed=2)

    def softmax(X):
        Z = np.exp(truth(X) - truth(X).max(axis=1, keepdims=True))
        return Z / Z.sum(axis=1, keepdims=True)

    found = revelu.extract(softmax, dim_in=6, polish=True)
    assert found.status is Status.RECOVERED
    assert found.network.dim_out == 3
    wide = zoo.random_network([3, 40, 1], seed=1)
    found = revelu.extract(wide, polish=True)
    assert found.status is Status.RECOVERED
    assert error_of(found.network, wide) < 1e-12
    affine = revelu.extract(lambda X: X[:, 0] + 1.0, dim_in=3, polish=True)
    assert affine.status is Status.RECOVERED
    assert affine.ledger.by_phase["polish"] == 0


@pytest.mark.parametrize(
    ("target", "options", "word"),
    [
        (zoo.random_network([6, 5, 1], seed=0), {"budget": 0, "checks": 100}, "budget"),
        (zoo.random_network([4, 3, 1], seed=0), {"box": (-3.0, 3.0)}, "box"),
    ],
)
def test_what_cannot_be_polished_is_certified_and_says_so(target, options, word):
    if "budget" in options:  # all but the last of what is wanted
        options["budget"] = revelu.extract(target, polish=True, checks=100).ledger.n_queries - 1
    recovery = revelu.extract(target, polish=True, **options)
    assert recovery.status is Status.RECOVERED
    assert recovery.ledger.by_phase["polish"] == 0
    assert any("not polished" in w and word in w for w in recovery.warnings), recovery.warnings


def test_answers_that_lack_digits_are_not_asked_again():
    truth = zoo.random_network([4, 3, 1], seed=0)
    recovery = revelu.extract(lambda X: truth(X).astype(np.float32), dim_in=4, polish=True)
    assert recovery.ledger.by_phase["polish"] == 0
    assert any("lack digits" in warning for warning in recovery.warnings)


def test_a_polish_that_spoils_is_not_kept(monkeypatch):
    truth = zoo.random_network([6, 5, 1], seed=0)

    def spoil(_oracle, network, _noise, _seed):
        wrong = network.weights[1] * 1.001
        return revelu.Network([network.weights[0], wrong], network.biases, network.skip)

    monkeypatch.setattr("revelu.tasks.extract.polish.polish_network", spoil)
    recovery = revelu.extract(truth, polish=True)
    assert recovery.status is Status.RECOVERED
    assert error_of(recovery.network, truth) < 1e-8
    assert "gained nothing" in recovery.warnings[0]


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), d=st.integers(2, 6), m=st.integers(1, 5))
def test_chosen_inputs_condition_better_than_random_ones(seed, d, m):
    network = zoo.random_network([d, m, 1], seed=seed)
    n = degrees_of_freedom(network)
    X = np.random.default_rng(seed).standard_normal((3 * n, d))
    chosen = choose_inputs(network, X)
    assert len(set(chosen.tolist())) == n
    J = NetworkDerivative(ParameterArrays.of(network), X, np.ones(1)).matrix()
    J /= np.where(J.any(axis=0), np.linalg.norm(J, axis=0), 1.0)
    smallest = [np.linalg.svd(J[rows], compute_uv=False)[n - 1] for rows in (chosen, slice(n))]
    assert smallest[0] >= smallest[1]


@pytest.mark.parametrize("with_skip", [False, True])
@pytest.mark.parametrize("most_dense", [0, 1500])
@pytest.mark.parametrize("widths", [[8, 6, 2], [8, 6, 5, 2]])
def test_both_ways_restore_a_perturbed_network(widths, most_dense, with_skip, monkeypatch):
    monkeypatch.setattr(polish, "AUTOMATIC", Automatic(most_parameters=most_dense))
    rng = np.random.default_rng(0)
    truth = zoo.random_network(widths, seed=4)
    if with_skip:
        V = rng.standard_normal((widths[-1], widths[-3]))
        truth = revelu.Network(truth.weights, truth.biases, (V, np.zeros(widths[-1])))
    start = perturbed(truth, 1e-9, 1)
    X = rng.standard_normal((3 * truth.n_parameters, widths[0]))
    noise = measure_noise(Oracle(truth, widths[0]), 0)
    assert error_of(start, truth) > 1e-10
    found = fit_to_last_digits(start, X, truth(X), noise)
    assert error_of(found, truth) < (1e-13 if most_dense else 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("most_square", [0, 8500])
def test_both_ways_restore_a_large_deep_network(most_square, monkeypatch):
    monkeypatch.setattr(polish, "AUTOMATIC", Automatic(most_parameters=0))
    truth = zoo.random_network([6, 14, 9, 7, 2], seed=4)
    start, rng = perturbed(truth, 1e-9, 1), np.random.default_rng(0)
    X = rng.standard_normal((3 * truth.n_parameters, 6))
    noise = measure_noise(Oracle(truth, 6), 0)
    assert error_of(start, truth) > 1e-10
    found = fit_to_last_digits(start, X, truth(X), noise, most_square=most_square)
    fresh = rng.standard_normal((2000, 6))
    errors = np.abs(found(fresh) - truth(fresh)).max(axis=1)
    # A few have patterns that no answer shows.
    assert np.quantile(errors, 0.99) < (1e-12 if most_square else 1e-11)


@pytest.mark.parametrize("widest", [0, 300])
def test_coordinates_of_neurons_are_white_and_have_an_adjoint(widest):
    truth, rng = zoo.random_network([5, 9, 7, 2], seed=2), np.random.default_rng(3)
    X = rng.standard_normal((400, 5))
    derivative = NetworkDerivative(ParameterArrays.of(truth), X, np.ones(2))
    squares = derivative._squares_of_paths(np.ones((400, 2)))
    white = NeuronWhitening(derivative.hs, squares, widest=widest)
    v, g = rng.standard_normal((2, truth.n_parameters))
    assert white.to_change(v) @ g == pytest.approx(v @ white.adjoint(g))
    J = derivative.matrix() @ np.column_stack([white.to_change(e) for e in np.eye(len(v))])
    sizes = np.linalg.norm(J, axis=0)
    assert np.isclose(sizes, 1.0, atol=1e-3).mean() > 0.9
    if widest:
        first = J[:, :5]  # of the first neuron
        np.testing.assert_allclose(first.T @ first, np.eye(5), atol=1e-6)


def test_coordinates_of_one_layer_are_white_where_many_inputs_lie_close_together():
    (d, m), rng = (30, 6), np.random.default_rng(4)
    truth = zoo.random_network([d, m, 2], seed=5, bias_std=0.5)
    # Slopes are taken so, at points of a slice as long as others; and as many inputs lie anywhere.
    points = 3.0 * rng.standard_normal((12, 3)) @ np.linalg.qr(rng.standard_normal((d, 3)))[0].T
    slopes = points[:, None, :] + np.vstack([np.zeros(d), 0.3 * np.eye(d)])
    X = np.vstack([slopes.reshape(-1, d), rng.standard_normal((12 * d, d))])
    derivative = NetworkDerivative(ParameterArrays.of(truth), X, np.ones(2))
    H = derivative.hs[1]
    white = Whitening(X, H, truth.weights[1], np.ones(2))
    v, g = rng.standard_normal((2, truth.n_parameters))
    assert white.to_change(v) @ g == pytest.approx(v @ white.adjoint(g))
    conditions = []
    for coordinates in (white, derivative.coordinates(white=False)):
        changes = [coordinates.to_change(e) for e in np.eye(len(v))]
        J = derivative.matrix() @ np.column_stack(changes)
        values = np.linalg.svd(J, compute_uv=False)
        # The scales of neurons are no answers' to tell.
        conditions.append(values[0] / values[len(v) - m - 1])
    assert conditions[0] < conditions[1] / 2


def test_known_answers_give_the_last_digits_and_too_few_say_nothing():
    truth, rng = zoo.random_network([6, 5, 5, 4, 2], seed=3), np.random.default_rng(2)
    weights = [W + 1e-7 * rng.standard_normal(W.shape) for W in truth.weights]
    start, noise = revelu.Network(weights, truth.biases), measure_noise(Oracle(truth, 6), 0)
    X = rng.standard_normal((400, 6))
    fresh = np.random.default_rng(7).standard_normal((2000, 6))
    errors = np.abs(polish_to_known(start, X, truth(X), noise)(fresh) - truth(fresh)).max(axis=1)
    assert np.quantile(errors, 0.999) < 1e-13  # a few have patterns that no answer shows
    assert polish_to_known(start, X[:20], truth(X[:20]), noise) is start


def test_the_command_line_polishes(tmp_path):
    truth = zoo.random_network([5, 4, 1], seed=1)
    truth.save(tmp_path / "truth.npz")
    arguments = ["extract", str(tmp_path / "truth.npz"), "--polish", "--json", "--checks", "100"]
    done = CliRunner().invoke(app, arguments)
    said = json.loads(done.stdout)
    assert done.exit_code == 0
    assert said["by_phase"]["polish"] == 25
    assert said["certificate"]["max_abs_error"] < 1e-14
