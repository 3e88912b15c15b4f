"""Alignment and simplification: the function stays, the symmetries go."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revelu.errors import InputError
from revelu.network import Network, align, simplify, zoo
from revelu.numerics.matching import match_rows

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = st.sampled_from([[3, 5, 1], [8, 12, 4], [5, 7, 6, 2], [6, 9, 8, 7, 3], [4, 3]])


def assert_same_function(f, g, seed=0, rtol=1e-9):
    X = np.random.default_rng(seed).normal(size=(200, f.dim_in)) * 3
    Y = f(X)
    np.testing.assert_allclose(g(X), Y, rtol=0, atol=rtol * max(np.abs(Y).max(), 1.0))


def disguised(network, seed, *, flip=True):
    """Rewrite a network by its symmetries, in loops, apart from the library's own code."""
    rng = np.random.default_rng(seed)
    W, b = [w.copy() for w in network.weights], [v.copy() for v in network.biases]
    V, c = None, None
    if network.skip is not None:
        V, c = (a.copy() for a in network.skip)
    for i in range(len(W) - 1):
        k = len(b[i])
        order, s = rng.permutation(k), np.exp(rng.normal(size=k))
        W[i], b[i] = s[:, None] * W[i][order], s * b[i][order]
        W[i + 1] = W[i + 1][:, order] / s
        if i == len(W) - 3 and V is not None:
            V = V[:, order] / s
    if flip and len(W) > 1:
        V = np.zeros((len(b[-1]), W[-2].shape[1])) if V is None else V
        c = np.zeros(len(b[-1])) if c is None else c
        for j in np.flatnonzero(rng.random(len(b[-2])) < 0.5):
            # a relu(z) = a relu(-z) + a z
            V += np.outer(W[-1][:, j], W[-2][j])
            c += W[-1][:, j] * b[-2][j]
            W[-2][j] *= -1
            b[-2][j] *= -1
    return Network(W, b, None if V is None else (V, c))


def with_parameter_moved(network, i, index, eps):
    weights = [W.copy() for W in network.weights]
    weights[i][index] += eps
    return Network(weights, network.biases, network.skip)


@settings(max_examples=60, deadline=None)
@given(widths=SHAPES, seed=SEEDS, flip=st.booleans())
def test_a_disguised_copy_is_the_network(widths, seed, flip):
    truth = zoo.random_network(widths, seed)
    copy = disguised(truth, seed + 1, flip=flip)
    assert_same_function(truth, copy)
    result = align(copy, truth)
    assert result.matched
    assert result.max_parameter_error < 1e-10
    assert_same_function(copy, result.aligned)
    assert_same_function(truth, result.reference)


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_a_true_skip_is_compared_too(seed):
    rng = np.random.default_rng(seed)
    plain = zoo.random_network([5, 7, 6, 2], seed)
    V, c = rng.normal(size=(2, 7)), rng.normal(size=2)
    truth = Network(plain.weights, plain.biases, (V, c))
    assert align(disguised(truth, seed + 1), truth).max_parameter_error < 1e-10
    # The constant counts as the last bias; what is left to tell is V, in units of
    # the first hidden layer's rows.
    moved = [*plain.biases[:-1], plain.biases[-1] + c]
    missing = align(disguised(Network(plain.weights, moved), seed + 1), truth)
    missing_V = np.abs(V * np.linalg.norm(plain.weights[0], axis=1))
    assert missing.max_parameter_error == pytest.approx(missing_V.max(), rel=1e-9)
    assert missing.worst_parameter.startswith("skip[0][")


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, exponent=st.integers(-9, -4), data=st.data())
def test_the_error_is_of_the_order_of_the_change(seed, exponent, data):
    truth = zoo.random_network([6, 8, 7, 2], seed)
    i = data.draw(st.integers(0, 2))
    index = tuple(data.draw(st.integers(0, n - 1)) for n in truth.weights[i].shape)
    eps = 10.0**exponent
    moved = with_parameter_moved(truth, i, index, eps)
    result = align(disguised(moved, seed + 1), truth)
    # Canonical entries are the given ones times scales; a direction may lie
    # along its own row, whose norm does not show there but in the next layer.
    assert eps * 1e-3 < result.max_parameter_error < eps * 1e3
    assert_same_function(moved, result.aligned)


def test_the_worst_parameter_is_named():
    truth = zoo.random_network([6, 8, 2], seed=0)
    # Rows of norm 1 and in their own order: the canonical form is the network itself.
    norms = np.linalg.norm(truth.weights[0], axis=1)
    W, b, A = (
        truth.weights[0] / norms[:, None],
        truth.biases[0] / norms,
        truth.weights[1] * norms,
    )
    truth = Network([W, A], [b, truth.biases[1]])
    A = A.copy()
    A[1, 5] += 1e-3
    result = align(Network([W, A], [b, truth.biases[1]]), truth)
    assert result.worst_parameter == "weights[1][1, 5]"
    assert result.max_parameter_error == pytest.approx(1e-3, rel=1e-9)
    b = b.copy()
    b[3] += 1e-2
    result = align(Network([W, A], [b, truth.biases[1]]), truth)
    assert result.worst_parameter == "biases[0][3]"


def test_permutations_scales_and_signs_rebuild_the_first_layer():
    truth = zoo.random_network([6, 8, 2], seed=0)
    copy = disguised(truth, 1)
    result = align(copy, truth)
    (order,), (scales,) = result.permutations, result.scales
    rebuilt = (result.signs * scales)[:, None] * copy.weights[0][order]
    np.testing.assert_allclose(rebuilt, result.aligned.weights[0], atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(rebuilt, axis=1), 1.0)
    assert set(result.signs) == {-1.0, 1.0}
    assert scales.min() > 0


def test_factors_are_of_one_network_over_the_other():
    truth = zoo.random_network([6, 8, 5, 2], seed=0)
    W, b = truth.weights, truth.biases
    larger = np.linspace(1.0, 8.0, 8)
    copy = type(truth)([W[0] * larger[:, None], W[1] / larger, W[2]], [b[0] * larger, b[1], b[2]])
    for factor, expected in zip(
        align(copy, truth).factors, (1.0 / larger, np.ones(5)), strict=True
    ):
        np.testing.assert_allclose(factor, expected, rtol=1e-12)
    assert all((factor == 1.0).all() for factor in align(truth, truth).factors)


def test_permutations_index_the_network_that_was_given():
    truth = zoo.with_dead_neurons([6, 8, 2], n_dead=2, seed=0)
    result = align(truth, truth)
    assert result.aligned.architecture == (6, 6, 2)
    assert result.permutations[0].tolist() == [2, 3, 4, 5, 6, 7]


def test_mirrored_neurons_of_the_first_layer_are_told_apart():
    network = zoo.random_network([4, 6, 5, 2], seed=0)
    W, b = [w.copy() for w in network.weights], [v.copy() for v in network.biases]
    W[0][3:], b[0][3:] = -W[0][:3], -b[0][:3]
    truth = Network(W, b)
    assert align(disguised(truth, 1), truth).max_parameter_error < 1e-12


def test_first_layer_signs_are_not_free_in_a_deep_network():
    truth = zoo.random_network([4, 6, 5, 2], seed=0)
    W, b = [w.copy() for w in truth.weights], [v.copy() for v in truth.biases]
    W[0][2] *= -1
    b[0][2] *= -1
    assert align(Network(W, b), truth).max_parameter_error > 0.1


def test_sign_ambiguous_networks_need_no_skip():
    truth = zoo.sign_ambiguous(5, seed=2)
    mirrored = Network([-truth.weights[0], truth.weights[1]], truth.biases)
    result = align(mirrored, truth)
    assert result.max_parameter_error < 1e-13
    assert result.signs.tolist() == [-1.0] * 6


def test_a_missing_neuron_is_named():
    truth = zoo.random_network([5, 6, 2], seed=0)
    keep = np.arange(6) != 4
    partial = Network(
        [truth.weights[0][keep], truth.weights[1][:, keep]],
        [truth.biases[0][keep], truth.biases[1]],
    )
    result = align(disguised(partial, 3), truth)
    assert not result.matched
    assert result.max_parameter_error == np.inf
    assert result.unmatched == ("truth: weights[0][4]",)
    assert result.worst_parameter == "truth: weights[0][4]"
    assert_same_function(partial, result.aligned)


@pytest.mark.parametrize("layer", [0, 1])
def test_a_superfluous_neuron_is_named(layer):
    recovered = zoo.random_network([5, 6, 6, 2], seed=0)
    keep = np.arange(6) != 3
    W, b = list(recovered.weights), list(recovered.biases)
    W[layer], b[layer] = W[layer][keep], b[layer][keep]
    W[layer + 1] = W[layer + 1][:, keep]
    result = align(recovered, Network(W, b))
    assert result.unmatched == (f"recovered: weights[{layer}][3]",)
    assert result.max_parameter_error == np.inf
    assert_same_function(recovered, result.aligned)


@pytest.mark.parametrize("other", [[4, 5, 2], [3, 5, 1], [3, 2], [3, 5, 5, 2]])
def test_other_shapes_are_refused(other):
    with pytest.raises(InputError, match="cannot align"):
        align(zoo.random_network(other), zoo.random_network([3, 5, 2]))


@pytest.mark.parametrize("name", zoo.KINDS)
@pytest.mark.parametrize("widths", [[6, 12, 3], [6, 5, 12, 3]])
def test_every_kind_of_the_zoo_aligns_with_its_disguise(name, widths):
    truth = zoo.KINDS[name](widths, seed=5)
    # Unidentifiable neurons survive no disguise, but their function does.
    result = align(disguised(truth, 6), truth)
    assert result.matched
    scale = max(1.0, *(np.abs(a).max() for a in result.reference.biases if a.size))
    assert result.max_parameter_error < 1e-11 * scale
    assert_same_function(truth, result.aligned, rtol=1e-10)


def test_aligns_at_full_size():
    truth = zoo.random_network([784, 128, 10], seed=0)
    assert align(disguised(truth, 1), truth).max_parameter_error < 1e-11


# simplify


@settings(max_examples=40, deadline=None)
@given(
    widths=SHAPES.filter(lambda w: len(w) > 2),
    seed=SEEDS,
    n_dead=st.integers(0, 2),
    n_duplicates=st.integers(0, 2),
)
def test_simplify_keeps_the_function(widths, seed, n_dead, n_duplicates):
    rng = np.random.default_rng(seed)
    network = zoo.random_network(widths, seed)
    W, b = [w.copy() for w in network.weights], [v.copy() for v in network.biases]
    last = len(W) - 2
    for i in range(len(W) - 1):
        for j in range(n_dead):
            W[i][j] = 0.0
        for j in range(n_duplicates):
            # The opposite orientation cannot be merged below the last hidden layer.
            factor = rng.uniform(0.5, 2.0) * (-1.0 if j and i == last else 1.0)
            W[i][-1 - j], b[i][-1 - j] = factor * W[i][-3], factor * b[i][-3]
    given_network = Network(W, b)
    simple = simplify(given_network)
    assert_same_function(given_network, simple)
    if all(k >= n_dead + 3 for k in widths[1:-1]):
        expected = [k - n_dead - n_duplicates for k in widths[1:-1]]
        assert list(simple.architecture[1:-1]) == expected
    assert simplify(simple) == simple


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_duplicates_that_cancel_vanish(sign):
    network = zoo.random_network([4, 5, 2], seed=0)
    W, b, A = (a.copy() for a in (network.weights[0], network.biases[0], network.weights[1]))
    W[4], b[4] = sign * 3.0 * W[0], sign * 3.0 * b[0]
    A[:, 4] = -A[:, 0] / 3.0
    cancelling = Network([W, A], [b, network.biases[1]])
    simple = simplify(cancelling)
    # a relu(z) - a relu(-z) = a z: the opposite pair leaves an affine map.
    assert simple.architecture == (4, 3, 2)
    assert (simple.skip is None) == (sign > 0)
    assert_same_function(cancelling, simple)


def test_opposite_duplicates_stay_below_the_last_hidden_layer():
    network = zoo.random_network([4, 5, 6, 2], seed=0)
    W, b = [w.copy() for w in network.weights], [v.copy() for v in network.biases]
    W[0][4], b[0][4] = -W[0][0], -b[0][0]
    assert simplify(Network(W, b)).architecture == (4, 5, 6, 2)


def test_negligible_is_relative_and_does_not_depend_on_units():
    network = zoo.random_network([4, 5, 2], seed=0)
    W, b, A = (a.copy() for a in (network.weights[0], network.biases[0], network.weights[1]))
    W[0] *= 1e-14
    assert simplify(Network([W, A], [b, network.biases[1]])).architecture == (4, 4, 2)
    b[0] *= 1e-14
    A[:, 0] *= 1e14
    assert simplify(Network([W, A], [b, network.biases[1]])).architecture == (4, 5, 2)
    assert simplify(zoo.scaled(network, 1e-8, 1e-15)).architecture == (4, 5, 2)


def test_a_neuron_read_by_the_faintest_output_is_kept():
    network = zoo.random_network([4, 5, 2], seed=0)
    A = network.weights[1].copy()
    A[1] *= 1e-20
    A[0, 3] = 0.0
    assert simplify(Network([network.weights[0], A], network.biases)).architecture == (4, 5, 2)


def test_unread_layers_vanish_from_the_top_down():
    network = zoo.random_network([4, 5, 6, 2], seed=0)
    W = [*network.weights[:2], np.zeros((2, 6))]
    simple = simplify(Network(W, network.biases))
    assert simple.architecture == (4, 0, 0, 2)
    np.testing.assert_array_equal(simple([[1.0, 2.0, 3.0, 4.0]])[0], network.biases[2])


def test_a_neuron_that_only_the_skip_reads_is_kept():
    network = zoo.random_network([4, 5, 6, 2], seed=0)
    W = [w.copy() for w in network.weights]
    W[1][:, 2] = 0.0
    V = np.zeros((2, 5))
    V[:, 2] = 1.0
    kept = Network(W, network.biases, (V, np.zeros(2)))
    assert simplify(kept).architecture == (4, 5, 6, 2)
    assert simplify(Network(W, network.biases)).architecture == (4, 4, 6, 2)


def test_a_constant_that_the_skip_reads_goes_to_the_bias():
    network = zoo.random_network([4, 5, 6, 2], seed=0)
    W, b = [w.copy() for w in network.weights], [v.copy() for v in network.biases]
    W[0][1], b[0][1] = 0.0, 2.0
    V = np.random.default_rng(0).normal(size=(2, 5))
    given_network = Network(W, b, (V, np.ones(2)))
    simple = simplify(given_network)
    assert simple.architecture == (4, 4, 6, 2)
    assert_same_function(given_network, simple)


# match_rows


@settings(max_examples=40, deadline=None)
@given(m=st.integers(0, 8), n=st.integers(0, 8), seed=SEEDS, up_to_sign=st.booleans())
def test_match_rows_finds_what_was_shuffled(m, n, seed, up_to_sign):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(max(m, n), 3))
    signs = rng.choice([-1.0, 1.0], len(rows)) if up_to_sign else np.ones(len(rows))
    order = rng.permutation(len(rows))
    A, B = (signs[:, None] * rows)[order][:m], rows[:n]
    found, found_signs = match_rows(A, B, up_to_sign=up_to_sign)
    assert (found >= 0).sum() == min(m, n)
    assert len(set(found[found >= 0])) == min(m, n)
    if m >= n == len(rows) or m == len(rows) >= n:
        np.testing.assert_allclose(found_signs[:, None] * A[found], B, atol=1e-15)


def test_match_rows_tells_near_duplicates_apart():
    axis = np.eye(3)
    B = np.vstack([axis, axis[0] + [0, 1e-9, 0]])
    A = B[[3, 2, 0, 1]] + 1e-12
    np.testing.assert_array_equal(match_rows(A, B)[0], [2, 3, 1, 0])


def test_match_rows_does_not_part_equal_rows_for_one_far_off():
    B = np.array([[0.0, 0.0], [1.0, 0.3]])
    A = np.array([[1.0, 0.3], [5.0, 0.0]])
    np.testing.assert_array_equal(match_rows(A, B)[0], [1, 0])


def test_match_rows_ignores_a_common_rotation():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    for up_to_sign in (False, True):
        plain = match_rows(A, B, up_to_sign=up_to_sign)
        turned = match_rows(A @ R.T, B @ R.T, up_to_sign=up_to_sign)
        np.testing.assert_array_equal(plain[0], turned[0])
        np.testing.assert_array_equal(plain[1], turned[1])
