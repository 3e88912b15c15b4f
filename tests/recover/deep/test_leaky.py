"""Leaky units: layers as objects, slopes that a skip says, networks of several layers of them."""

from itertools import pairwise

import numpy as np
import pytest

import revelu
from revelu import Network, Status
from revelu.errors import InputError
from revelu.network import LayeredNetwork, align, simplify, with_slopes
from revelu.network.layers import Dense, Prelu, Relu
from revelu.oracle import Oracle, measure_noise
from revelu.recover.deep import Leaky
from revelu.recover.refine.layered_fit import _LayeredProblem, fit_layers
from revelu.recover.refine.network_fit import Samples


def leaky_network(widths, slopes, seed):
    rng = np.random.default_rng(seed)
    layers = []
    for d, k in pairwise(widths):
        W, b = rng.standard_normal((k, d)) / np.sqrt(d), 0.3 * rng.standard_normal(k)
        s = rng.uniform(0.05, 0.5, k) if slopes is None else np.full(k, slopes)
        layers += [Dense(W, b), Prelu(s)]
    return LayeredNetwork(layers[:-1])


def turned(network, i):
    """The same function, each leaky neuron of hidden layer i read from its other side."""
    layers = list(network.layers)
    (W, b), s, (A, c) = layers[2 * i].arrays, layers[2 * i + 1].slopes, layers[2 * i + 2].arrays
    layers[2 * i : 2 * i + 3] = [Dense(-W, -b), Prelu(1.0 / s), Dense(-A * s, c)]
    return LayeredNetwork(layers)


def nrmse(found, truth, n=2000):
    X = np.random.default_rng(7).standard_normal((n, truth.dim_in))
    Y = truth(X)
    return float(np.sqrt(((found(X) - Y) ** 2).mean() / Y.var(axis=0).mean()))


@pytest.mark.parametrize("slopes", [0.2, None])
def test_leaky_layers_are_pairs_of_relus_and_the_last_one_a_skip(slopes):
    network = leaky_network((7, 6, 5, 3), slopes, seed=1)
    dense = network.to_dense()
    X = 3.0 * np.random.default_rng(2).standard_normal((200, 7))
    assert dense.architecture == (7, 12, 5, 3)
    assert network.architecture == (7, 6, 5, 3)
    np.testing.assert_allclose(dense(X), network(X), atol=1e-12)
    np.testing.assert_allclose(simplify(network)(X), network(X), atol=1e-12)
    np.testing.assert_allclose(network.jacobian(X), dense.jacobian(X), atol=1e-12)


def test_layers_read_from_the_other_side_are_aligned():
    network = leaky_network((7, 6, 5, 3), None, seed=3)
    for i in (0, 1):
        assert align(turned(network, i), network).max_parameter_error < 1e-12
    moved = network.after(2.0 * np.eye(7), 0.5).then(np.ones((1, 3)))
    assert isinstance(moved, LayeredNetwork)
    X = np.random.default_rng(4).standard_normal((50, 7))
    np.testing.assert_allclose(moved(X), network(2.0 * X + 0.5).sum(axis=1)[:, None], atol=1e-12)


def test_slopes_have_to_be_as_many_as_neurons():
    with pytest.raises(InputError, match="4 slopes for 5 numbers"):
        LayeredNetwork([Dense(np.ones((5, 2)), np.ones(5)), Prelu(np.ones(4))])


@pytest.mark.parametrize(
    ("slopes", "dtype"), [(0.25, np.float64), (0.01, np.float32), (None, None)]
)
def test_onnx_files_have_the_units(tmp_path, slopes, dtype):
    network, path = leaky_network((4, 6, 3, 2), slopes, seed=5), tmp_path / "leaky.onnx"
    network.save(path, dtype)
    read = revelu.load(path)
    kinds = {node.op_type for node in pytest.importorskip("onnx").load(path).graph.node}
    assert kinds - {"Identity"} == {"Gemm", "PRelu" if slopes is None else "LeakyRelu"}
    assert isinstance(read, LayeredNetwork)
    assert read.describe() == network.describe()
    X = np.random.default_rng(6).standard_normal((50, 4))
    atol = 1e-5 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(read(X), network(X), atol=atol)
    np.testing.assert_allclose(revelu.open_oracle(str(path))(X), network(X), atol=atol)


def test_a_slope_that_float32_does_not_have_stays_as_it_is(tmp_path):
    network = leaky_network((4, 6, 2), 0.01, seed=5)
    network.save(tmp_path / "leaky.onnx")
    assert revelu.load(tmp_path / "leaky.onnx") == network
    network.save(tmp_path / "leaky.npz")
    assert nrmse(revelu.load(tmp_path / "leaky.npz"), network) < 1e-14


@pytest.mark.parametrize("widths", [(10, 16, 1), (20, 12, 1), (8, 12, 5)])
@pytest.mark.parametrize("slope", [0.01, 0.2, -0.3, -1.0])
def test_one_slope_is_told_from_a_skip(widths, slope):
    network = leaky_network(widths, slope, seed=8)
    rng = np.random.default_rng(9)
    written = with_slopes(network.to_dense().turn_round(rng.random(widths[1]) < 0.5), 1e-8)
    assert written.describe() == network.describe()
    assert nrmse(written, network) < 1e-12


def test_a_slope_a_neuron_is_told_where_the_skip_has_more_numbers_than_neurons():
    network = leaky_network((20, 12, 1), None, seed=10)
    written = with_slopes(network.to_dense(), 1e-8)
    np.testing.assert_allclose(np.sort(written.layers[1].slopes), np.sort(network.layers[1].slopes))
    square = leaky_network((12, 12, 1), None, seed=10).to_dense()
    assert with_slopes(square, 1e-8) is square
    assert isinstance(with_slopes(square, 1e-8, is_likely=True), LayeredNetwork)


@pytest.mark.parametrize("widths", [(10, 16, 1), (20, 12, 1), (8, 12, 5)])
def test_another_skip_stays_a_skip(widths):
    rng = np.random.default_rng(12)
    plain = revelu.zoo.random_network(list(widths), seed=11)
    skip = rng.standard_normal((widths[2], widths[0])), np.zeros(widths[2])
    other = Network(plain.weights, plain.biases, skip)
    assert with_slopes(other, 1e-8) is other
    relus = plain.turn_round(rng.random(widths[1]) < 0.5)
    assert with_slopes(relus, 1e-8) is relus


def test_the_derivative_of_layers_is_that_of_differences():
    network = leaky_network((4, 5, 3, 2), None, seed=12)
    mixed = LayeredNetwork([*network.layers[:3], Relu(), network.layers[4]])
    X = np.random.default_rng(13).standard_normal((20, 4))
    for truth in (network, mixed):
        problem = _LayeredProblem(truth.layers, Samples(X, np.zeros((20, 2)), np.ones(2)))
        p = np.concatenate([a.ravel() for a in truth.arrays])
        J = problem.derivative(p).matrix()
        h = 1e-7
        for i in range(0, len(p), 5):
            e = np.eye(len(p))[i] * h
            difference = (problem.residual(p - e) - problem.residual(p + e)) / (2.0 * h)
            np.testing.assert_allclose(J[:, i], difference, atol=1e-6)


def test_layers_that_are_nearly_right_are_fitted_to_the_last_digits():
    truth = leaky_network((6, 5, 4, 1), None, seed=14)
    rng = np.random.default_rng(15)
    off = LayeredNetwork(
        [
            type(x)(*(a * (1.0 + 1e-7 * rng.standard_normal(a.shape)) for a in x.arrays))
            for x in truth.layers
        ]
    )
    X = rng.standard_normal((250, 6))
    fitted = fit_layers(off, Samples(X, truth(X), np.full(1, 1e-15)))
    assert nrmse(off, truth) > 1e-8
    assert nrmse(fitted, truth) < 1e-12


@pytest.mark.parametrize("slopes", [0.01, 0.2, None])
@pytest.mark.parametrize(("widths", "most"), [((10, 10, 10, 1), 2200), ((20, 12, 8, 3), 1900)])
def test_two_hidden_layers_of_leaky_units_are_recovered(slopes, widths, most):
    truth = leaky_network(widths, slopes, seed=16)
    recovery = revelu.extract(truth.__call__, dim_in=widths[0], seed=1, checks=500)
    assert recovery.status is Status.RECOVERED
    assert recovery.method == "leaky"
    assert recovery.ledger.n_recovery < most
    assert recovery.network.describe() == truth.describe()
    assert align(recovery.network, truth).max_parameter_error < 1e-9


def test_three_hidden_layers_of_leaky_units_are_recovered():
    truth = leaky_network((12, 10, 8, 6, 2), 0.1, seed=17)
    recovery = revelu.extract(truth.__call__, dim_in=12, seed=1, checks=500)
    assert recovery.status is Status.RECOVERED
    assert recovery.ledger.n_recovery < 4500
    assert nrmse(recovery.network, truth) < 1e-10


def test_layers_that_cannot_be_undone_are_said_to_be_so():
    wide = leaky_network((5, 9, 6, 1), 0.2, seed=18)
    oracle = Oracle(wide.__call__, 5)
    noise = measure_noise(oracle, 1)
    said = Leaky().start(oracle, noise, np.random.default_rng(1)).propose()
    assert said.network is None
    assert "cannot be undone" in said.obstacles[0] or "no leaky units" in said.obstacles[0]


def test_relus_are_not_taken_for_leaky_units():
    truth = revelu.zoo.random_network([10, 8, 6, 1], seed=19)
    recovery = revelu.extract(truth, seed=1, checks=500)
    assert recovery.method == "two_hidden"
    assert not any("both sides" in said for said in recovery.evidence)


@pytest.mark.parametrize("budget", [300, 700, 1100, 1300])
def test_a_budget_that_ends_anywhere_is_kept(budget):
    truth = leaky_network((10, 10, 10, 1), 0.2, seed=16)
    recovery = revelu.extract(truth.__call__, dim_in=10, seed=1, checks=500, budget=budget)
    assert recovery.ledger.n_queries <= budget
    assert recovery.status is not Status.RECOVERED


@pytest.mark.parametrize("above", [False, True])
def test_residual_blocks_are_recovered(above):
    truth = revelu.zoo.random_network([8, 8, 8, 1] if above else [8, 8, 1], seed=20)
    rng = np.random.default_rng(21)
    A, B = truth.weights[-1], rng.standard_normal((8, 8)) / 3.0
    block = Network([*truth.weights[:-1], A @ B], truth.biases, (A, np.zeros(1)))

    def target(X):  # a (h + B relu(V h + c)) + e
        h = block.activations(X)
        return (h[-2] + h[-1] @ B.T) @ A.T + truth.biases[-1]

    recovery = revelu.extract(target, dim_in=8, seed=1, checks=500)
    assert recovery.status is Status.RECOVERED
    assert recovery.ledger.n_recovery < (2500 if above else 300)
    assert nrmse(recovery.network, block) < 1e-9


@pytest.mark.parametrize("slope", [0.01, 0.2])
def test_leaky_units_in_float32(slope):
    truth = leaky_network((20, 10, 4), slope, seed=22)
    layers = [[a.astype(np.float32) for a in x.arrays] for x in truth.layers]

    def target(X):
        (W, b), (s,), (A, c) = layers
        z = X.astype(np.float32) @ W.T + b
        return np.where(z > 0, z, s * z) @ A.T + c

    recovery = revelu.extract(target, dim_in=20, seed=1, checks=500)
    assert recovery.status is Status.RECOVERED
    assert recovery.ledger.n_recovery < 2500
    assert nrmse(recovery.network, truth) < 1e-6


def test_a_diagnosis_names_the_units_of_a_file(tmp_path):
    leaky_network((4, 6, 3, 2), 0.25, seed=5).save(tmp_path / "leaky.onnx")
    found = revelu.diagnose(str(tmp_path / "leaky.onnx"), perturb=1e-3, seed=1)
    assert any("4-6-3-2 of LeakyReLU(0.25)" in said for said in found.warnings)
    assert found.exact is not None
