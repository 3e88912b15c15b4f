"""The derivative of a network's answers by weights and inputs, and of mixes of them."""

import numpy as np
import pytest

from revelu import Network, zoo
from revelu.network.derivative import MixedDerivative, NetworkDerivative, ParameterArrays


def network(widths, *, skip):
    plain = zoo.random_network(widths, seed=1)
    rng = np.random.default_rng(2)
    V = rng.standard_normal((widths[-1], widths[-3])), rng.standard_normal(widths[-1])
    return Network(plain.weights, plain.biases, V) if skip else plain


CASES = pytest.mark.parametrize(
    ("widths", "skip"), [([5, 4, 3], False), ([5, 4, 3], True), ([5, 4, 4, 3], True)]
)


@CASES
def test_mixes_of_answers_change_as_differences_say(widths, skip):
    truth, rng = network(widths, skip=skip), np.random.default_rng(3)
    X, mixes = rng.standard_normal((40, 5)), rng.standard_normal((40, 2, 3))
    p = truth.to_vector()
    J = MixedDerivative(ParameterArrays.of(truth), X, mixes)
    change, h = rng.standard_normal(len(p)), 1e-7
    if skip:
        change[-3:] = 0.0  # the constant of a skip stays
    two = (truth.like(p + side * h * change)(X) for side in (1.0, -1.0))
    slope = np.einsum("nmk,nk->nm", mixes, np.subtract(*two) / (2.0 * h)).ravel()
    np.testing.assert_allclose(J.along(change), slope, atol=1e-6)


@CASES
def test_products_of_mixes_are_those_of_their_matrix(widths, skip):
    truth, rng = network(widths, skip=skip), np.random.default_rng(4)
    X, mixes = rng.standard_normal((700, 5)), rng.standard_normal((700, 4, 3))
    J = MixedDerivative(ParameterArrays.of(truth), X, mixes)
    matrix, change, u = J.matrix(), rng.standard_normal(J.shape[1]), rng.standard_normal(J.shape[0])
    assert matrix.shape == J.shape
    np.testing.assert_allclose(J.along(change), matrix @ change, atol=1e-9)
    np.testing.assert_allclose(J.gradient(u), matrix.T @ u, atol=1e-9)
    normal = matrix.T @ matrix
    np.testing.assert_allclose(np.triu(J.normal()), np.triu(normal), atol=1e-12 * normal.max())


@CASES
def test_a_mix_changes_with_inputs_as_the_jacobian_says(widths, skip):
    truth, rng = network(widths, skip=skip), np.random.default_rng(5)
    X, mixes, errors = rng.standard_normal((40, 5)), rng.standard_normal((40, 3)), np.arange(1.0, 4)
    J = NetworkDerivative(ParameterArrays.of(truth), X, 1.0 / errors)
    expected = np.einsum("nk,nkd->nd", mixes / errors, truth.jacobian(X))
    np.testing.assert_allclose(J.by_inputs(mixes), expected, atol=1e-12)
