"""The zoo: each kind has the property it is named for, measured on its own truth."""

import pickle

import numpy as np
import pytest

from revelu.errors import InputError
from revelu.network import Network, simplify, zoo

WIDTHS = [6, 12, 3]
RNG_SEED = 7


def points(n, d, scale=1.0):
    return scale * np.random.default_rng(RNG_SEED).normal(size=(n, d))


def hyperplanes(network):
    """Unit normals and offsets of the last hidden layer."""
    W, b = network.weights[-2], network.biases[-2]
    norms = np.linalg.norm(W, axis=1)
    return W / norms[:, None], b / norms


@pytest.mark.parametrize("name", zoo.KINDS)
def test_kinds_are_networks_that_depend_on_the_seed_alone(name):
    network = zoo.KINDS[name](WIDTHS, seed=3)
    assert isinstance(network, Network)
    assert network.dim_in == WIDTHS[0]
    assert network == zoo.KINDS[name](WIDTHS, seed=3)
    assert network != zoo.KINDS[name](WIDTHS, seed=4)
    if name not in {"sign_ambiguous", "affine", "constant"}:
        assert network.architecture == tuple(WIDTHS)


@pytest.mark.parametrize("name", zoo.OUTSIDE)
def test_outsiders_answer_batches_and_can_be_pickled(name):
    target = zoo.OUTSIDE[name](WIDTHS, seed=3)
    copy = pickle.loads(pickle.dumps(target))  # noqa: S301
    Y = target(points(5, 6))
    assert Y.shape == (5, 3)
    np.testing.assert_array_equal(Y, zoo.OUTSIDE[name](WIDTHS, seed=3)(points(5, 6)))
    np.testing.assert_array_equal(Y, copy(points(5, 6)))
    assert not np.array_equal(Y, zoo.OUTSIDE[name](WIDTHS, seed=4)(points(5, 6)))


@pytest.mark.parametrize("widths", [[], [3], [3, 0, 1], [3, 2.5, 1], [-1, 2]])
def test_widths_that_make_no_sense(widths):
    with pytest.raises(InputError, match="widths"):
        zoo.random_network(widths)


def test_random_network_has_he_moments():
    network = zoo.random_network([400, 300, 200, 100], seed=0, bias_std=0.5)
    assert network.architecture == (400, 300, 200, 100)
    for W in network.weights:
        # The standard error of a standard deviation is about 1 / sqrt(2 n).
        assert abs(W.std() / np.sqrt(2 / W.shape[1]) - 1) < 5 / np.sqrt(2 * W.size)
    b = np.concatenate(network.biases)
    assert abs(b.std() / 0.5 - 1) < 5 / np.sqrt(2 * b.size)
    assert not np.any(zoo.random_network([4, 3, 1], bias_std=0.0).biases[0])


def test_dead_neurons_are_what_simplify_removes():
    network = zoo.with_dead_neurons([6, 12, 3], n_dead=3, seed=1)
    W, A = network.weights
    assert [bool(W[j].any()) for j in range(4)] == [False, True, False, True]
    assert [bool(A[:, j].any()) for j in range(4)] == [True, False, False, True]
    assert simplify(network).architecture == (6, 9, 3)


def test_duplicates_share_a_hyperplane():
    network = zoo.with_duplicates([6, 12, 3], n_duplicates=2, seed=1)
    N, t = hyperplanes(network)
    rows = np.column_stack([N, t])
    np.testing.assert_allclose(rows[10], rows[0], atol=1e-14)
    np.testing.assert_allclose(rows[11], -rows[1], atol=1e-14)
    assert simplify(network).architecture == (6, 10, 3)


@pytest.mark.parametrize("gap", [1e-3, 1e-8])
def test_near_duplicates_are_gap_apart(gap):
    network = zoo.with_near_duplicates([6, 12, 3], n_pairs=2, gap=gap, seed=1)
    rows = np.column_stack([network.weights[0], network.biases[0]])
    for i in (0, 2):
        distance = np.linalg.norm(rows[i + 1] - rows[i]) / np.linalg.norm(rows[i])
        assert distance == pytest.approx(gap, rel=1e-6)
    assert simplify(network).architecture == (6, 12, 3)


def test_tiny_weights_are_kept_with_their_outgoing_weights():
    plain = zoo.random_network(WIDTHS, seed=1)
    network = zoo.with_tiny_weights(WIDTHS, n_tiny=2, size=1e-6, seed=1)
    np.testing.assert_allclose(network.weights[0][:2], 1e-6 * plain.weights[0][:2], rtol=1e-14)
    np.testing.assert_allclose(network.biases[0][:2], 1e-6 * plain.biases[0][:2], rtol=1e-14)
    np.testing.assert_array_equal(network.weights[1], plain.weights[1])
    assert simplify(network).architecture == (6, 12, 3)


def test_close_kinks_are_gap_apart_and_told_apart():
    network = zoo.with_close_kinks(WIDTHS, gap=1e-9, seed=1)
    N, t = hyperplanes(network)
    np.testing.assert_array_equal(N[0], N[1])
    assert t[1] - t[0] == pytest.approx(1e-9, rel=1e-6)
    assert simplify(network).architecture == (6, 12, 3)


def test_a_bump_shows_only_on_its_support():
    width = 0.01
    network = zoo.with_bumps(WIDTHS, n_bumps=1, width=width, seed=1)
    N, t = hyperplanes(network)
    bump = Network(
        [network.weights[0][:3], network.weights[1][:, :3]], [network.biases[0][:3], np.zeros(3)]
    )
    centre = -t[1] * N[1]
    steps = np.array([-50.0, -0.51, 0.0, 0.25, 0.51, 50.0])[:, None] * width
    Y = bump(centre + steps * N[1])
    height = np.abs(network.weights[1][:, 0]) * np.linalg.norm(network.weights[0][0]) * width / 2
    np.testing.assert_allclose(Y[[0, 1, 4, 5]], 0.0, atol=1e-13)
    np.testing.assert_allclose(np.abs(Y[2]), height, rtol=1e-9)
    np.testing.assert_allclose(Y[3], Y[2] / 2, rtol=1e-9)


def test_far_biases_reach_the_scale():
    _, t = hyperplanes(zoo.with_far_biases(WIDTHS, scale=1e3, seed=1))
    assert np.abs(t).min() == pytest.approx(1.0)
    assert np.abs(t).max() == pytest.approx(1e3)
    assert np.sign(t).min() < 0 < np.sign(t).max()


@pytest.mark.parametrize("dim_in", [2, 5, 20])
def test_sign_ambiguous_equals_its_mirror_image(dim_in):
    network = zoo.sign_ambiguous(dim_in, seed=1)
    mirrored = Network([-network.weights[0], network.weights[1]], network.biases)
    X = points(200, dim_in)
    Y = network(X)
    assert Y.std() > 1e-2
    np.testing.assert_allclose(mirrored(X), Y, atol=1e-12)
    assert simplify(network).architecture == (dim_in, dim_in + 1, 1)


def test_sign_ambiguous_needs_two_inputs():
    with pytest.raises(InputError, match="dim_in"):
        zoo.sign_ambiguous(1)


@pytest.mark.parametrize("widths", [[6, 3], [6, 12, 3], [6, 5, 4, 3]])
@pytest.mark.parametrize("with_skip", [False, True])
def test_scaled_is_a_change_of_units(widths, with_skip):
    network = zoo.random_network(widths, seed=1)
    if with_skip:
        V = points(3, widths[max(len(widths) - 3, 0)])
        network = Network(network.weights, network.biases, (V, [1.0, 2.0, 3.0]))
    X = points(50, 6)
    np.testing.assert_allclose(
        zoo.scaled(network, 1e3, 1e-4)(1e3 * X), 1e-4 * network(X), rtol=1e-9, atol=1e-16
    )


@pytest.mark.parametrize("scales", [(0.0, 1.0), (1.0, 0.0), (np.inf, 1.0), (1.0, np.nan)])
def test_scales_that_make_no_sense(scales):
    with pytest.raises(InputError, match="scales"):
        zoo.scaled(zoo.random_network(WIDTHS), *scales)


def test_affine_and_constant_have_no_neuron():
    f, g = zoo.affine(6, 3, seed=1), zoo.constant(6, 3, seed=1)
    assert f.architecture == g.architecture == (6, 0, 3)
    X, Y = points(20, 6), points(20, 6)[::-1]
    np.testing.assert_allclose(f((X + Y) / 2), (f(X) + f(Y)) / 2, atol=1e-13)
    assert f(X).std(axis=0).min() > 1e-2
    np.testing.assert_array_equal(g(X), np.broadcast_to(g(X)[0], (20, 3)))
    assert np.abs(g(X)[0]).min() > 0


def test_outsiders_are_outside():
    X = points(500, 6)
    line = np.linspace(-3, 3, 601)[:, None] * X[0]
    # A ReLU network's second difference on a fine line is zero but at its kinks.
    for name in ("tanh", "square"):
        bend = np.diff(zoo.OUTSIDE[name](WIDTHS, seed=1)(line), n=2, axis=0)
        assert (np.abs(bend) > 1e-12).all(axis=1).mean() > 0.9
    steps = np.diff(zoo.step(WIDTHS, seed=1)(line), axis=0)
    assert 1 <= (steps != 0).any(axis=1).sum() <= WIDTHS[1]
    noise = zoo.random_answers(WIDTHS, seed=1)
    assert not np.array_equal(noise(X), noise(X))


@pytest.mark.parametrize(
    "too_narrow",
    [
        lambda: zoo.with_dead_neurons([4, 3, 1], n_dead=4),
        lambda: zoo.with_duplicates([4, 3, 1], n_duplicates=3),
        lambda: zoo.with_near_duplicates([4, 3, 1], n_pairs=2),
        lambda: zoo.with_tiny_weights([4, 3, 1], n_tiny=4),
        lambda: zoo.with_close_kinks([4, 1, 1]),
        lambda: zoo.with_bumps([4, 2, 1]),
        lambda: zoo.with_far_biases([4, 1]),
    ],
)
def test_layers_too_narrow_are_refused(too_narrow):
    with pytest.raises(InputError, match="do not fit"):
        too_narrow()
