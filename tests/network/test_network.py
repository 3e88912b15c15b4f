"""Network: what it accepts, what it computes, what it is as a Python object."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from revelu.errors import InputError
from revelu.network import Network, zoo

W1, B1 = [[1.0, -1.0], [0.5, 2.0], [3.0, 0.0]], [0.1, 0.2, 0.3]
W2, B2 = [[1.0, 2.0, 3.0]], [4.0]


def naive(network, x):
    """Evaluate one point by Python loops, after the definition alone."""
    h = before = list(x)
    last = len(network.weights) - 1
    for i, (W, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        z = [
            sum(w * v for w, v in zip(row, h, strict=True)) + c for row, c in zip(W, b, strict=True)
        ]
        if i == last:
            break
        before, h = h, [v if v > 0 else 0.0 for v in z]
    if network.skip is not None:
        V, c = network.skip
        for j, row in enumerate(V):
            z[j] += sum(v * u for v, u in zip(row, before, strict=True)) + c[j]
    return z


def with_random_skip(network, seed):
    rng = np.random.default_rng(seed)
    dim = network.architecture[max(len(network.weights) - 2, 0)]
    skip = (rng.normal(size=(network.dim_out, dim)), rng.normal(size=network.dim_out))
    return Network(network.weights, network.biases, skip)


@settings(max_examples=40, deadline=None)
@given(
    widths=st.lists(st.integers(1, 6), min_size=2, max_size=5),
    skip=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_evaluates_as_defined(widths, skip, seed):
    network = zoo.random_network(widths, seed)
    if skip:
        network = with_random_skip(network, seed)
    X = np.random.default_rng(seed).normal(size=(5, widths[0])) * 3
    Y = network(X)
    assert Y.shape == (5, widths[-1])
    assert Y.dtype == np.float64
    expected = np.array([naive(network, x) for x in X])
    np.testing.assert_allclose(Y, expected, rtol=1e-12, atol=1e-11)


def test_hidden_width_zero_is_affine():
    network = Network([np.empty((0, 2)), np.empty((1, 0))], [[], [1.0]], ([[2.0, 3.0]], [4.0]))
    assert network.architecture == (2, 0, 1)
    assert network([[1.0, 10.0]]).tolist() == [[37.0]]


def test_skip_reads_the_input_of_the_last_hidden_layer():
    # x = -1 and 2: the first layer gives 0 and 2; the second is switched off by its bias.
    network = Network([[[1.0]], [[1.0]], [[1.0]]], [[0.0], [-9.0], [0.0]], ([[5.0]], [1.0]))
    assert network([[-1.0], [2.0]]).ravel().tolist() == [1.0, 11.0]


def test_properties():
    network = Network([W1, W2], [B1, B2], ([[1.0, 2.0]], [3.0]))
    assert (network.dim_in, network.dim_out) == (2, 1)
    assert network.architecture == (2, 3, 1)
    assert network.n_parameters == 6 + 3 + 3 + 1 + 2 + 1


@pytest.mark.parametrize(
    ("weights", "biases", "skip", "message"),
    [
        ([], [], None, "0 weight matrices"),
        ([W1, W2], [B1], None, "as many biases"),
        ([W1, [[1.0, 2.0]]], [B1, B2], None, r"weights\[1\] takes 2 inputs"),
        (
            [W1, W2],
            [[1.0], B2],
            None,
            r"biases\[0\] has 1 entries for 3 rows .*\(neurons, inputs\)",
        ),
        ([[1.0, 2.0]], [[1.0]], None, r"weights\[0\] needs 2 dim"),
        ([W1, W2], [B1, [[4.0]]], None, r"biases\[1\] needs 1 dim"),
        ([[[np.nan]]], [[0.0]], None, r"weights\[0\] holds a number that is not finite"),
        ([[[1.0]]], [[np.inf]], None, r"biases\[0\] holds a number that is not finite"),
        ([[["one"]]], [[0.0]], None, r"weights\[0\] is not a numeric array"),
        ([[[1.0, 2.0], [3.0]]], [[0.0, 0.0]], None, r"weights\[0\] is not a numeric array"),
        ([W1, W2], [B1, B2], ([[1.0, 2.0, 3.0]], [0.0]), "skip has shapes"),
        ([W1, W2], [B1, B2], ([[1.0, 2.0]], [0.0, 1.0]), "skip has shapes"),
        ([W1, W2], [B1, B2], ([1.0, 2.0], [0.0]), "skip V needs 2"),
        ([W1, W2], [B1, B2], ([[np.inf, 2.0]], [0.0]), "skip V holds"),
    ],
)
def test_what_is_no_network_is_named(weights, biases, skip, message):
    with pytest.raises(InputError, match=message):
        Network(weights, biases, skip)


@pytest.mark.parametrize("X", [[1.0, 2.0], [[1.0]], [[1.0, 2.0, 3.0]], np.zeros((1, 2, 1))])
def test_inputs_of_another_shape_are_refused(X):
    with pytest.raises(InputError, match=r"shape \(n, 2\)"):
        Network([W1, W2], [B1, B2])(X)


def test_no_inputs_no_outputs():
    assert Network([W1, W2], [B1, B2])(np.empty((0, 2))).shape == (0, 1)


def test_is_immutable():
    W = np.array(W1)
    network = Network([W, W2], [B1, B2], ([[1.0, 2.0]], [3.0]))
    W[0, 0] = 99.0
    assert network.weights[0][0, 0] == 1.0
    for array in (*network.weights, *network.biases, *network.skip):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    for name in ("weights", "biases", "skip", "other"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(network, name, ())
    with pytest.raises(AttributeError, match="immutable"):
        del network.weights


@pytest.mark.parametrize("skip", [None, ([[1.0, 2.0]], [3.0])])
def test_pickle_keeps_everything(skip):
    network = Network([W1, W2], [B1, B2], skip)
    copy = pickle.loads(pickle.dumps(network))  # noqa: S301
    assert copy == network
    assert (copy.skip is None) == (skip is None)
    assert not copy.weights[0].flags.writeable


def test_equality_and_hash():
    network = Network([W1, W2], [B1, B2])
    assert network == Network([W1, W2], [B1, B2])
    assert hash(network) == hash(Network([W1, W2], [B1, B2]))
    assert network != Network([W1, W2], [B1, [5.0]])
    assert network != Network([W1, W2], [B1, B2], (np.zeros((1, 2)), np.zeros(1)))
    assert network != Network([W1], [B1])
    assert network != "a network"


def test_repr_tells_the_architecture():
    network = zoo.random_network([784, 128, 10])
    assert repr(network) == "<Network 784-128-10, 101,770 parameters>"
    assert "with skip" in repr(with_random_skip(network, 0))


def test_notebook_table_has_a_row_a_layer():
    html = with_random_skip(zoo.random_network([4, 3, 2]), 0)._repr_html_()
    assert html.count("<tr>") == 4  # the head, two layers, the skip
    assert "<td>ReLU</td><td>4</td><td>3</td><td>15</td>" in html
    assert "<td>output</td><td>3</td><td>2</td><td>8</td>" in html
    assert "<td>skip</td><td>4</td><td>2</td><td>10</td>" in html


DEPTHS = [[3, 2], [4, 6, 2], [3, 5, 4, 2], [3, 4, 5, 4, 1]]


def drawn(widths, *, skip, seed=1):
    """A network and inputs for it."""
    network = zoo.random_network(widths, seed)
    X = np.random.default_rng(seed).normal(size=(20, widths[0]))
    return with_random_skip(network, seed) if skip else network, X


@pytest.mark.parametrize("widths", DEPTHS)
def test_layers_read_what_the_layer_below_gives(widths):
    network, X = drawn(widths, skip=False)
    hs, zs = network.activations(X), network.preactivations(X)
    assert network.n_hidden == len(widths) - 2 == len(zs) == len(hs) - 1
    np.testing.assert_array_equal(hs[0], X)
    for i, z in enumerate(zs):
        np.testing.assert_array_equal(z, hs[i] @ network.weights[i].T + network.biases[i])
        np.testing.assert_array_equal(hs[i + 1], np.where(z > 0, z, 0.0))


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("widths", DEPTHS)
def test_linear_maps_are_derivatives(widths, skip):
    network, X = drawn(widths, skip=skip)
    *hidden, (J, Y) = network.linear_maps(X)
    np.testing.assert_allclose(Y, network(X), rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(network.jacobian(X), J)
    for (_, z), expected in zip(hidden, network.preactivations(X), strict=True):
        np.testing.assert_array_equal(z, expected)
    step = 1e-7
    for i in range(network.dim_in):
        e = step * np.eye(network.dim_in)[i]
        up, down = network.preactivations(X + e), network.preactivations(X - e)
        up, down = [*up, network(X + e)], [*down, network(X - e)]
        for (gradient, _), a, b in zip([*hidden, (J, Y)], up, down, strict=True):
            np.testing.assert_allclose(gradient[:, :, i], (a - b) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("method", ["activations", "preactivations", "jacobian"])
def test_passes_refuse_inputs_of_another_shape(method):
    network, X = drawn([4, 6, 2], skip=False)
    with pytest.raises(InputError, match=r"\(n, 4\)"):
        getattr(network, method)(X[:, :3])


@pytest.mark.parametrize("skip", [False, True])
def test_vector_of_parameters_makes_the_network_again(skip):
    network, _ = drawn([3, 5, 4, 2], skip=skip)
    vector = network.to_vector()
    assert vector.shape == (network.n_parameters,)
    assert network.like(vector) == network
    assert network.like(2.0 * vector).biases[-1].tolist() == (2.0 * network.biases[-1]).tolist()


@pytest.mark.parametrize("widths", DEPTHS)
def test_folded_skip_has_no_constant(widths):
    network, X = drawn(widths, skip=True)
    folded = network.folded()
    np.testing.assert_allclose(folded(X), network(X), rtol=1e-13, atol=1e-13)
    assert (folded.skip is None) == (network.n_hidden == 0)
    assert not folded.affine[1].any()


def test_skip_that_vanishes_is_folded_away():
    network, X = drawn([4, 6, 2], skip=False)
    assert network.folded() is network
    shifted = Network(network.weights, network.biases, (np.zeros((2, 4)), [1.0, 2.0]))
    assert shifted.folded().skip is None
    np.testing.assert_allclose(shifted.folded()(X), network(X) + np.array([1.0, 2.0]))
    assert [a.tolist() for a in network.affine] == [[[0.0] * 4] * 2, [0.0] * 2]


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("widths", DEPTHS[1:])
def test_turning_neurons_round_leaves_the_function(widths, skip):
    network, X = drawn(widths, skip=skip)
    turned = network.turn_round(np.array([0, 2]))
    np.testing.assert_allclose(turned(X), network(X), rtol=1e-12, atol=1e-12)
    signs = np.ones(widths[-2])
    signs[[0, 2]] = -1.0
    np.testing.assert_array_equal(turned.biases[-2], signs * network.biases[-2])
    assert network.turn_round(signs < 0) == turned


def test_taking_neurons_drops_the_terms_of_the_others():
    network, X = drawn([3, 5, 4, 2], skip=True)
    some, others = (
        network.take(np.array([True, False, True, False])),
        network.take(np.array([3, 1])),
    )
    affine_part = network.take(np.zeros(4, dtype=bool))
    assert some.architecture == others.architecture == (3, 5, 2, 2)
    together = some(X) + others(X) - affine_part(X)
    np.testing.assert_allclose(together, network(X), rtol=1e-12, atol=1e-12)


def test_then_maps_the_outputs():
    network, X = drawn([3, 5, 4, 2], skip=True)
    M = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 3.0]])
    np.testing.assert_allclose(network.then(M)(X), network(X) @ M.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("widths", [(5, 4, 2), (5, 4, 3, 2)])
def test_a_network_after_a_linear_map_is_their_composition(widths):
    rng = np.random.default_rng(3)
    network = zoo.random_network(list(widths), seed=1)
    V, c = rng.standard_normal((2, widths[-3])), rng.standard_normal(2)
    network = Network(network.weights, network.biases, skip=(V, c))
    M, X = rng.standard_normal((5, 7)), rng.standard_normal((20, 7))
    np.testing.assert_allclose(network.after(M)(X), network(X @ M.T), rtol=0, atol=1e-12)
