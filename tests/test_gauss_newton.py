"""The fit of all layers together, against finite differences and a known truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revelu.network import zoo
from revelu.recover.refine import gauss_newton
from revelu.recover.refine.gauss_newton import Layers, polish


def layers_of(widths, seed, *, with_skip):
    network = zoo.random_network(list(widths), seed=seed)
    V = None
    if with_skip:
        V = np.random.default_rng(seed).standard_normal((widths[-1], widths[-3]))
    return Layers(list(network.weights), list(network.biases), V)


def answers(layers, X):
    return layers.output(layers.activations(X))


def flat(layers):
    return np.concatenate([a.ravel() for a in layers.arrays()])


def operators(monkeypatch, layers, X, residual):
    """The linear operators that a step hands to its solver, and the solver's right side."""
    seen = {}

    def solver(operator, right, **_options):
        seen["operator"], seen["right"] = operator, right
        return (np.zeros(operator.shape[1]),)

    monkeypatch.setattr(gauss_newton, "lsmr", solver)
    gauss_newton._step(layers, X, residual)
    return seen["operator"], seen["right"]


SHAPES = [(5, 4, 2), (4, 6, 1), (5, 4, 6, 1), (6, 5, 3, 2), (5, 4, 4, 3, 2)]


@pytest.mark.parametrize("with_skip", [False, True])
@pytest.mark.parametrize("widths", SHAPES)
def test_the_operator_is_the_derivative_and_its_adjoint_the_transpose(
    widths, with_skip, monkeypatch
):
    layers = layers_of(widths, 3, with_skip=with_skip)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((11, widths[0]))
    residual = rng.standard_normal((11, widths[-1]))
    operator, right = operators(monkeypatch, layers, X, residual)
    # The solver sees columns scaled to norm 1: matvec of sizes * step is J step.
    on = [h > 0 for h in layers.activations(X)[1:]]
    sizes = gauss_newton._column_sizes(layers, layers.activations(X), on)
    columns = np.column_stack([operator.matvec(e) for e in np.eye(len(sizes))])
    norms = np.linalg.norm(columns, axis=0)
    assert np.isclose(norms, 1.0).sum() == (norms > 0).sum()
    eps = 1e-6
    for _ in range(4):
        step = rng.standard_normal(len(sizes))
        ahead, behind = (answers(layers.moved(s * eps * step), X) for s in (1.0, -1.0))
        slope = ((ahead - behind) / (2 * eps)).ravel()
        np.testing.assert_allclose(operator.matvec(sizes * step), slope, atol=1e-6)
        y = rng.standard_normal(residual.size)
        assert y @ operator.matvec(step) == pytest.approx(operator.rmatvec(y) @ step, rel=1e-10)
    np.testing.assert_allclose(np.sqrt((right**2).mean()), 1.0)


@settings(max_examples=10)
@given(
    widths=st.sampled_from([(5, 4, 2), (5, 4, 6, 1), (6, 5, 3, 2), (5, 4, 4, 3, 2)]),
    with_skip=st.booleans(),
    seed=st.integers(0, 10**4),
)
def test_perturbed_weights_are_restored(widths, with_skip, seed):
    truth = layers_of(widths, seed, with_skip=with_skip)
    rng = np.random.default_rng(seed)
    n = 20 * sum(a.size for a in truth.arrays())
    X = rng.standard_normal((n, widths[0]))
    Y = answers(truth, X)
    noise = 1e-7 * rng.standard_normal(len(flat(truth)))
    start = truth.moved(noise)
    found = polish(start, X, Y)

    def error(layers, X):
        return np.sqrt(((answers(layers, X) - answers(truth, X)) ** 2).mean())

    fresh = rng.standard_normal((500, widths[0]))
    assert error(found, X) < 1e-2 * error(start, X)
    assert error(found, fresh) < 0.1 * error(start, fresh)
    # The scales of hidden neurons are free, and left be; so is what few answers depend on.
    assert np.abs(flat(found) - flat(truth)).max() < 1e-4


def test_what_is_right_already_is_not_made_worse():
    truth = layers_of((5, 4, 6, 1), 0, with_skip=True)
    X = np.random.default_rng(0).standard_normal((400, 5))
    found = polish(truth, X, answers(truth, X))
    assert np.array_equal(flat(found), flat(truth))


@pytest.mark.parametrize("seed", range(4))
def test_the_error_on_the_block_never_grows(seed):
    layers = layers_of((4, 3, 5, 1), seed, with_skip=False)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 4))
    # No network of these widths gives such answers.
    Y = rng.standard_normal((60, 1))
    found = polish(layers, X, Y)
    before, after = (np.linalg.norm(answers(each, X) - Y) for each in (layers, found))
    assert after <= before
    assert [a.shape for a in found.arrays()] == [a.shape for a in layers.arrays()]


def test_neurons_that_never_fire_are_left_where_they_are():
    truth = layers_of((5, 4, 2), 1, with_skip=False)
    biases = [truth.biases[0].copy(), truth.biases[1]]
    biases[0][1] = -1e3
    dead = Layers(truth.weights, biases, None)
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 5))
    start = dead.moved(1e-7 * rng.standard_normal(len(flat(dead))))
    found = polish(start, X, answers(dead, X))
    np.testing.assert_array_equal(found.weights[0][1], start.weights[0][1])
    np.testing.assert_array_equal(found.weights[1][:, 1], start.weights[1][:, 1])
    assert np.abs(answers(found, X) - answers(dead, X)).max() < 1e-11
