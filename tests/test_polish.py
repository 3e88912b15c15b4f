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
from revelu.recover.fit.two_layer import Derivative, Samples, TwoLayer
from revelu.recover.refine.refinement import choose_inputs, refine, refine_matrix_free
from revelu.recovery import Status


def error_of(network, truth):
    X = np.random.default_rng(7).standard_normal((2000, truth.dim_in))
    return float(np.abs(network(X) - truth(X)).max())


def two_layer(network):
    (W, A), (b, c) = network.weights, network.biases
    return TwoLayer(W, b, A, c)


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
    network = two_layer(zoo.random_network([d, m, 1], seed=seed))
    X = np.random.default_rng(seed).standard_normal((3 * network.n_parameters, d))
    chosen = choose_inputs(network, X)
    assert len(set(chosen.tolist())) == network.n_parameters

    def smallest(rows):
        samples = Samples(rows, np.zeros((len(rows), 1)), np.ones(1))
        values = np.linalg.svd(Derivative(network.balanced(), samples).matrix(), compute_uv=False)
        return values[min(network.n_parameters, len(values)) - 1]

    assert smallest(X[chosen]) >= smallest(X[: network.n_parameters])


@pytest.mark.parametrize("with_skip", [False, True])
def test_both_ways_restore_a_perturbed_network(with_skip):
    rng = np.random.default_rng(0)
    truth = two_layer(zoo.random_network([8, 6, 2], seed=4))
    if with_skip:
        truth = TwoLayer(truth.W, truth.b, truth.A, truth.c, rng.standard_normal((2, 8)))
    start = perturbed(truth, 1e-9, 1)
    X = rng.standard_normal((3 * truth.n_parameters, 8))
    fresh = rng.standard_normal((500, 8))
    Y = truth(X)
    assert np.abs(start(fresh) - truth(fresh)).max() > 1e-10
    assert np.abs(refine(start, X, Y)(fresh) - truth(fresh)).max() < 1e-13
    free = refine_matrix_free(start, X, Y, np.full(2, 1e-15))
    assert np.abs(free(fresh) - truth(fresh)).max() < 1e-12


def test_the_command_line_polishes(tmp_path):
    truth = zoo.random_network([5, 4, 1], seed=1)
    truth.save(tmp_path / "truth.npz")
    arguments = ["extract", str(tmp_path / "truth.npz"), "--polish", "--json", "--checks", "100"]
    done = CliRunner().invoke(app, arguments)
    said = json.loads(done.stdout)
    assert done.exit_code == 0
    assert said["by_phase"]["polish"] == 25
    assert said["certificate"]["max_abs_error"] < 1e-14
