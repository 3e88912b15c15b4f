"""Inputs that somebody cares about: the certificate is judged on them, too."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from revelu.certify import certify, examine, examine_given
from revelu.cli.app import app
from revelu.network import zoo
from revelu.oracle import Float32, Oracle, degrade, measure_noise
from revelu.recovery import Status

CHECKS = 200


def draw(n, d, seed=0):
    return 3.0 * np.random.default_rng(seed).standard_normal((n, d))


@pytest.fixture
def network():
    return zoo.random_network([6, 8, 3], seed=1)


def wrong_at(network, point):
    """The network everywhere but at one point."""
    return lambda X: network(X) + (point == X).all(axis=1)[:, None] * [0.0, 0.0, 100.0]


def test_fidelity_is_what_it_says(network):
    X = draw(40, 6)
    recovery = revelu.extract(network, checks=CHECKS, inputs=X)
    plain = revelu.extract(network, checks=CHECKS)
    fidelity = recovery.certificate.fidelity
    assert recovery.status is Status.RECOVERED
    assert fidelity.n_inputs == 40
    assert fidelity.fraction_within == fidelity.labels_equal == 1.0
    error = np.abs(recovery.network(X) - network(X)).max()
    assert fidelity.max_abs_error == pytest.approx(error, rel=0.5)
    assert "all 40 inputs given agree" in recovery.certificate.statement
    assert recovery.ledger.n_queries == plain.ledger.n_queries + 40
    assert plain.certificate.fidelity is None


def test_one_output_has_no_label():
    network = zoo.random_network([4, 3, 1], seed=1)
    recovery = revelu.extract(network, checks=CHECKS, inputs=draw(1, 4))
    assert recovery.certificate.fidelity.labels_equal is None
    assert "largest output" not in recovery.certificate.statement


def test_a_certificate_fails_where_one_input_disagrees(network):
    X = draw(10, 6)
    target = wrong_at(network, X[3])
    recovery = revelu.extract(target, "one_hidden", dim_in=6, checks=CHECKS, inputs=X)
    assert recovery.status is Status.UNVERIFIED
    certificate = recovery.certificate
    assert not certificate.passed
    assert certificate.fraction_within == 1.0
    assert certificate.fidelity.fraction_within == 0.9
    assert certificate.fidelity.labels_equal <= 0.9
    assert certificate.fidelity.max_abs_error == pytest.approx(100.0)
    assert "1 of the 10 inputs given differs" in certificate.statement


def test_what_gaussian_checks_miss_inputs_show(network):
    (W, A), (b, c) = network.weights, network.biases
    rare = revelu.Network(
        [np.vstack([W, [1.0, 0, 0, 0, 0, 0]]), np.column_stack([A, np.ones(3)])],
        [np.append(b, -6.0), c],
    )
    oracle = Oracle(rare, 6)
    noise = measure_noise(oracle, 0)
    seen = examine(network, oracle, noise, 500, np.random.default_rng(0), structural=False)
    X = np.zeros((4, 6))
    X[:2, 0] = 8.0
    given = examine_given(X, network, oracle, noise)
    assert certify(seen).passed
    assert not certify(seen, given).passed
    assert certify(seen, given).fidelity.fraction_within == 0.5
    assert certify(seen, examine_given(X[2:], network, oracle, noise)).passed


def test_polish_is_judged_on_them_too(network):
    recovery = revelu.extract(network, checks=CHECKS, inputs=draw(40, 6), polish=True)
    assert recovery.certificate.fidelity.n_inputs == 40
    assert recovery.certificate.fidelity.max_abs_error < 1e-11


def test_of_float32_answers_and_of_probabilities(network):
    X = draw(30, 6)
    for target in (degrade(network, Float32()), lambda X: softmax(network(X))):
        recovery = revelu.extract(target, dim_in=6, checks=CHECKS, inputs=X)
        assert recovery.status is Status.RECOVERED
        assert recovery.certificate.fidelity.fraction_within == 1.0
        assert recovery.certificate.fidelity.labels_equal == 1.0


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_in_a_box(network):
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (20, 6))
    recovery = revelu.extract(network, box=(-1, 1), checks=CHECKS, inputs=X)
    assert recovery.certificate.fidelity.fraction_within == 1.0


def test_more_inputs_than_the_budget_allows(network):
    recovery = revelu.extract(network, budget=400, checks=CHECKS, inputs=draw(300, 6))
    assert recovery.status is Status.BUDGET_EXHAUSTED
    assert recovery.ledger.n_queries <= 400


@pytest.mark.parametrize(
    ("X", "word"),
    [
        (np.zeros((3, 5)), "(3, 5)"),
        (np.zeros(6), "(6,)"),
        (np.zeros((0, 6)), "no row"),
        (np.full((2, 6), np.nan), "not finite"),
        (np.zeros((2, 6), dtype=complex), "complex"),
        ([["a"] * 6], "numeric"),
        ([[1.0], [1.0, 2.0]], "numeric"),
        (np.full((1, 6), 2.0), "leaves the box"),
    ],
)
def test_what_are_no_inputs_is_refused_before_anything_is_asked(network, X, word):
    oracle = Oracle(network, 6, box=(-1.0, 1.0))
    with pytest.raises(revelu.InputError) as caught:
        revelu.extract(oracle, inputs=X)
    assert word in str(caught.value)
    assert oracle.n_queries == 0


@pytest.fixture
def folder(tmp_path, monkeypatch, network):
    monkeypatch.chdir(tmp_path)
    network.save("truth.npz")
    np.save("x.npy", draw(20, 6))
    np.save("narrow.npy", np.zeros((3, 5)))
    np.save("objects.npy", np.array([{}]), allow_pickle=True)
    (tmp_path / "empty.npy").touch()
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000, 600), }"
    (tmp_path / "huge.npy").write_bytes(
        b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header + b"\n"
    )
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_on_the_command_line():
    line = ["extract", "truth.npz", "--inputs", "x.npy", "--checks", str(CHECKS)]
    result = CliRunner().invoke(app, [*line, "--json"])
    assert result.exit_code == 0
    fidelity = json.loads(result.stdout)["certificate"]["fidelity"]
    assert fidelity["n_inputs"] == 20
    assert fidelity["labels_equal"] == 1.0
    assert "all 20 inputs given agree" in CliRunner().invoke(app, line).stdout.replace("\n", " ")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["narrow", "objects", "empty", "huge", "absent", "archive"])
def test_other_files_are_bad_usage(name):
    path = "truth.npz" if name == "archive" else f"{name}.npy"
    result = CliRunner().invoke(app, ["extract", "truth.npz", "--inputs", path])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
