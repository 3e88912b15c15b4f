"""What is known below a neuron: features, gradients, walls and the states between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revelu.network import zoo
from revelu.recover.deep.frame import KnownLayers
from revelu.recover.deep.stack import Stack


def frame_below(truth, layer, turned=None):
    """The frame of a hidden layer, counted from 0: rows on top of it as ``turned`` says."""
    stack = Stack(truth.dim_in, truth.weights[: layer - 1], truth.biases[: layer - 1])
    W, b = truth.weights[layer - 1], truth.biases[layer - 1]
    turned = np.ones(len(b)) if turned is None else turned
    return KnownLayers(stack, W * turned[:, None], b * turned)


def unknowns(frame, w, bias, turned, s):
    """What the frame calls a neuron: where s is wrong, relu(t u) = relu(-t u) + t u."""
    wrong = w * turned * (s != turned)
    return np.concatenate([w, wrong @ frame.W, [bias + wrong @ frame.b]])


@st.composite
def frames(draw):
    """A network of one to three hidden layers and more, a frame in it, signs and inputs."""
    seed = draw(st.integers(0, 2**20))
    n_hidden = draw(st.integers(2, 4))
    rng = np.random.default_rng(seed)
    widths = [int(n) for n in rng.integers(2, 9, n_hidden + 1)]
    truth = zoo.random_network([*widths, 1], seed=seed)
    layer = draw(st.integers(1, n_hidden - 1))
    turned = rng.choice([-1.0, 1.0], widths[layer])
    return truth, layer, frame_below(truth, layer, turned), turned, rng


def true_sums(truth, layer, X):
    """Sums of a hidden layer, from the definition."""
    h = X
    for W, b in zip(truth.weights[:layer], truth.biases[:layer], strict=True):
        h = np.maximum(h @ W.T + b, 0.0)
    return h @ truth.weights[layer].T + truth.biases[layer]


@given(frames())
def test_a_sum_is_linear_in_its_unknowns_whatever_the_signs(problem):
    truth, layer, frame, turned, rng = problem
    X = 2.0 * rng.standard_normal((50, truth.dim_in))
    Z = true_sums(truth, layer, X)
    s = rng.choice([-1.0, 1.0], len(frame.b))
    F = frame.features(frame.region(X), s)
    assert F.shape == (50, frame.size)
    for w, bias, z in zip(truth.weights[layer], truth.biases[layer], Z.T, strict=True):
        theta = unknowns(frame, w, bias, turned, s)
        np.testing.assert_allclose(F @ theta, z, rtol=0, atol=1e-11 * (1 + np.abs(z).max()))


@given(frames())
def test_derivatives_are_those_of_differences(problem):
    truth, _, frame, _, rng = problem
    d = truth.dim_in
    at = frame.region(rng.standard_normal((20, d)))
    s = rng.choice([-1.0, 1.0], len(frame.b))
    theta = rng.standard_normal((20, frame.size))
    # In one region everything is affine: any step will do.
    moves = rng.standard_normal((20, d))
    F = frame.features(at, s)
    slopes = frame.features(at.moved(at.X + moves), s) - F
    scale = 1.0 + np.abs(F).max() + np.abs(slopes).max()
    np.testing.assert_allclose(frame.features(at, s, moves), slopes, rtol=0, atol=1e-12 * scale)
    G = frame.gradients(at, s, theta)
    along = (G * moves).sum(axis=1)
    np.testing.assert_allclose(along, (slopes * theta).sum(axis=1), rtol=0, atol=1e-10 * scale)
    np.testing.assert_allclose(frame.gradients(at, s, theta[0])[0], G[0], rtol=0, atol=1e-12)
    J = frame.jacobian(at.take(np.array([3])), s)
    np.testing.assert_allclose(J @ moves[3], slopes[3], rtol=0, atol=1e-11 * scale)


@given(frames())
def test_normals_are_gradients_of_the_known_sums(problem):
    truth, _, frame, _, rng = problem
    n = 30
    at = frame.region(rng.standard_normal((n, truth.dim_in)))
    layers = rng.integers(0, len(frame.weights), n)
    neurons = np.array([rng.integers(len(frame.biases[i])) for i in layers])
    N = frame.normals(at, layers, neurons)
    for k in range(n):
        one = at.take(np.full(truth.dim_in, k))
        moved = one.moved(one.X + np.eye(truth.dim_in))
        before, after = frame.sums(one)[layers[k]], frame.sums(moved)[layers[k]]
        rise = (after - before)[:, neurons[k]]
        np.testing.assert_allclose(N[k], rise, rtol=0, atol=1e-11 * (1 + np.abs(rise).max()))


@given(frames())
def test_the_next_wall_is_the_first_place_where_a_state_changes(problem):
    truth, _, frame, _, rng = problem
    at = frame.region(rng.standard_normal((12, truth.dim_in)))
    moves = rng.standard_normal(at.X.shape)
    t, layers, neurons = frame.next_wall(at, moves)
    for k in range(len(at)):
        # Up to there the states that are read off inputs are the same; beyond it one is not.
        reach = min(t[k], 100.0)
        inside = at.X[k] + np.linspace(0.0, 1.0 - 1e-9, 200)[:, None] * reach * moves[k]
        for own, seen in zip(at.on, frame.region(inside).on, strict=True):
            assert (seen == own[k]).all()
        if not np.isfinite(t[k]):
            assert layers[k] == neurons[k] == -1
            continue
        wall = at.take(np.array([k])).moved((at.X[k] + t[k] * moves[k])[None])
        z = frame.sums(wall)[layers[k]][0, neurons[k]]
        assert abs(z) <= 1e-10 * (1.0 + np.linalg.norm(wall.X))
        past = frame.region((at.X[k] + (t[k] + 1e-7 * (1 + t[k])) * moves[k])[None])
        assert past.on[layers[k]][0, neurons[k]] != at.on[layers[k]][k, neurons[k]]


@given(frames())
def test_features_go_on_across_a_wall(problem):
    truth, _, frame, _, rng = problem
    at = frame.region(rng.standard_normal((12, truth.dim_in)))
    moves = rng.standard_normal(at.X.shape)
    t, layers, neurons = frame.next_wall(at, moves)
    met = np.isfinite(t)
    before = at.take(met).moved(at.X[met] + t[met, None] * moves[met])
    after = frame.crossed(before, layers[met], neurons[met])
    s = rng.choice([-1.0, 1.0], len(frame.b))
    size = 1.0 + np.abs(frame.features(before, s)).max(initial=0.0)
    np.testing.assert_allclose(
        frame.features(after, s), frame.features(before, s), rtol=0, atol=1e-10 * size
    )
    # One state each has been turned over, and the first one's is as it was.
    turns = sum((a != b).sum(axis=1) for a, b in zip(before.on, after.on, strict=True))
    assert (turns == 1).all()
    again = frame.crossed(after, layers[met], neurons[met])
    assert all((a == b).all() for a, b in zip(again.on, before.on, strict=True))


def test_a_ray_turns_no_corner_twice():
    truth = zoo.random_network([4, 7, 6, 1], seed=3)
    frame = frame_below(truth, 2)
    rng = np.random.default_rng(0)
    at, E = frame.region(rng.standard_normal((40, 4))), rng.standard_normal((40, 4))
    start, gone = at.X, np.zeros(40)
    for _ in range(6):
        t, layers, neurons = frame.next_wall(at, E)
        t = np.where(np.isfinite(t), t, 0.0)
        assert (t >= 0).all()
        gone += t
        meets = layers >= 0
        at = at.moved(at.X + t[:, None] * E)
        turned = frame.crossed(at.take(meets), layers[meets], neurons[meets])
        for mine, new in zip(at.on, turned.on, strict=True):
            mine[meets] = new
    np.testing.assert_allclose(at.X, start + gone[:, None] * E, atol=1e-12)
    # Half-way to the wall after, the states carried along are those of the place.
    room = np.minimum(frame.next_wall(at, E)[0], 1.0)
    read = frame.region(at.X + 0.5 * room[:, None] * E)
    assert all((a == b).all() for a, b in zip(at.on, read.on, strict=True))


def test_a_frame_without_rows_on_top_is_of_a_stack():
    truth = zoo.random_network([3, 5, 4, 1], seed=1)
    frame = KnownLayers.of(Stack(3, truth.weights[:2], truth.biases[:2]))
    assert frame.size == 4 + 1
    X = np.random.default_rng(2).standard_normal((30, 3))
    F = frame.features(frame.region(X), np.empty(0))
    h = np.maximum(true_sums(truth, 1, X), 0.0)
    np.testing.assert_allclose(F, np.column_stack([h, np.ones(30)]), atol=1e-12)
    inputs = KnownLayers.of(Stack(3))
    np.testing.assert_allclose(
        inputs.features(inputs.region(X), np.empty(0)), np.column_stack([X, np.ones(30)])
    )
    assert np.isinf(inputs.next_wall(inputs.region(X), X)[0]).all()


def test_breaks_are_where_known_neurons_change():
    truth = zoo.random_network([5, 6, 4, 1], seed=2)
    stack, rng = Stack(5, truth.weights[:2], truth.biases[:2]), np.random.default_rng(0)
    x0, v = rng.standard_normal((2, 5))
    ts = stack.breaks(x0, v, -3.0, 3.0)
    assert stack.explains(x0 + ts[:, None] * v, 1e-6).all()
    # Between two of them nothing changes.
    grid = np.linspace(-3.0, 3.0, 4001)
    on = np.column_stack(stack.states(x0 + grid[:, None] * v))
    changed = grid[:-1][(on[1:] != on[:-1]).any(axis=1)]
    assert all(np.abs(ts - t).min() < 2e-3 for t in changed)


def test_a_layer_without_neurons_explains_no_kink():
    stack = Stack(2, [np.eye(2), np.empty((0, 2))], [np.zeros(2), np.empty(0)])
    assert stack.explains(np.array([[0.0, 1.0], [1.0, 1.0]]), 1e-6).tolist() == [True, False]


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_what_a_stack_gives_is_what_the_network_computes(n_layers):
    truth = zoo.random_network([4, 6, 5, 7, 2], seed=n_layers)
    stack = Stack(4, truth.weights[:n_layers], truth.biases[:n_layers])
    X = np.random.default_rng(5).standard_normal((40, 4))
    h = np.maximum(true_sums(truth, n_layers - 1, X), 0.0)
    np.testing.assert_allclose(stack.outputs(X), h, atol=1e-12)
    M, values = stack.maps(X)
    np.testing.assert_allclose(values, h, atol=1e-12)
    step = 1e-7
    rise = (stack.outputs(X + step * np.eye(4)[0]) - h) / step
    near = np.abs(M[:, :, 0] - rise).max(axis=1) < 1e-5
    assert near.mean() > 0.95  # but where a hyperplane comes between
