"""Rays along a neuron's surface, and the lines of four points that find it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revelu.network import zoo
from revelu.oracle import NoiseFloor, Oracle, measure_noise
from revelu.oracle.numbers import Numbers
from revelu.probe.kink_lines import KinkLines, Sharpening
from revelu.recover.deep.frame import KnownLayers
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.surface import RayTuning, Surface


def on_surface(truth, layer, neuron, n, rng):
    """Points at which a hidden neuron's sum is 0, and a function that computes its sum."""

    def total(X):
        h = X
        for W, b in zip(truth.weights[:layer], truth.biases[:layer], strict=True):
            h = np.maximum(h @ W.T + b, 0.0)
        return h @ truth.weights[layer][neuron] + truth.biases[layer][neuron]

    ends = 2.0 * rng.standard_normal((40 * n, 2, truth.dim_in))
    off, on = ends[:, 0], ends[:, 1]
    crosses = (total(off) < 0) & (total(on) > 0)
    off, on = off[crosses][:n], on[crosses][:n]
    for _ in range(80):
        middle = (off + on) / 2
        is_on = total(middle)[:, None] > 0
        off, on = np.where(is_on, off, middle), np.where(is_on, middle, on)
    return (off + on) / 2, total


def known_surface(truth, layer, neuron, x):
    """The true surface of a hidden neuron, all rows on top of its frame off at a point."""
    stack = Stack(truth.dim_in, truth.weights[: layer - 1], truth.biases[: layer - 1])
    W, b = truth.weights[layer - 1], truth.biases[layer - 1]
    frame = KnownLayers(stack, W, b)
    on = frame.region(x[None]).on[-1][0]
    s = np.where(on, -1.0, 1.0)
    w = truth.weights[layer][neuron]
    moved = np.where(on, w, 0.0)
    theta = np.concatenate([w, moved @ W, [truth.biases[layer][neuron] + moved @ b]])
    return Surface(frame, s, np.repeat(theta[None], 7, axis=0))


def problem(widths, layer, seed):
    """A network, one of its neurons, and 120 points of that one's surface."""
    truth = zoo.random_network([*widths, 1], seed=seed)
    rng = np.random.default_rng(seed)
    on = truth.activations(2.0 * rng.standard_normal((500, truth.dim_in)))[layer + 1] > 0
    neuron = int(np.abs(on.mean(axis=0) - 0.5).argmin())
    X, total = on_surface(truth, layer, neuron, 120, rng)
    return truth, neuron, X, total, rng


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("widths", "layer"), [((5, 12, 6), 1), ((8, 6, 5), 1), ((5, 9, 8, 4), 2), ((4, 7, 6, 6, 3), 3)]
)
def test_rays_stay_on_the_true_surface_over_many_walls(widths, layer, seed):
    truth, neuron, X, total, rng = problem(widths, layer, seed)
    surface = known_surface(truth, layer, neuron, X[0])
    at = surface.frame.region(X)
    n_turns = rng.integers(1, 12, len(X))
    stops = surface.trace(at, rng.standard_normal(X.shape), RayTuning(), n_turns)
    assert len(stops) > 5
    away = np.linalg.norm(stops.at.X[:, None] - X[None], axis=2).min(axis=1)
    assert np.median(away) > 0.1
    size = 1.0 + np.linalg.norm(stops.at.X, axis=1)
    slopes = np.linalg.norm(surface.gradients(stops.at), axis=1)
    assert (np.abs(total(stops.at.X)) <= 1e-9 * size * np.maximum(slopes, 1e-3)).all()
    # The states carried along are those of the place.
    read = surface.frame.region(stops.at.X)
    assert all((a == b).all() for a, b in zip(stops.at.on, read.on, strict=True))
    # No ray went further than it may.
    farthest = RayTuning().farthest * np.sqrt(truth.dim_in)
    assert (np.linalg.norm(stops.at.X, axis=1) < farthest + np.sqrt(truth.dim_in)).all()
    np.testing.assert_allclose(np.linalg.norm(stops.moves, axis=1), 1.0)
    assert (stops.doubt <= 1e-12 * size).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("widths", "layer"), [((5, 12, 6), 1), ((5, 9, 8, 4), 2)])
def test_rays_stop_at_walls_that_are_not_known_and_nowhere_else(widths, layer, seed):
    truth, neuron, X, total, rng = problem(widths, layer, seed)
    known = known_surface(truth, layer, neuron, X[0])
    unknown = np.arange(len(known.frame.b)) % 3 == 0
    members = known.members.copy()
    members[0, : len(unknown)][unknown] = 0.0
    members[1:, : len(unknown)][:, unknown] = rng.standard_normal((6, unknown.sum()))
    surface = replace(known, members=members)
    at = surface.frame.region(np.repeat(X[:1], 200, axis=0))
    stops = surface.trace(at, rng.standard_normal(at.X.shape), RayTuning())
    assert len(stops) > 20
    assert (stops.layers == layer - 1).all()
    assert unknown[stops.neurons].all()
    z = surface.frame.sums(stops.at)[-1][np.arange(len(stops)), stops.neurons]
    size = 1.0 + np.linalg.norm(stops.at.X, axis=1)
    assert (np.abs(z) <= 1e-9 * size).all()
    # Up to there what is not known does not count: they are on the surface.
    assert (np.abs(total(stops.at.X)) <= 1e-8 * size).all()
    # The states are those beyond the wall, and there is room up to the next one.
    beyond = surface.frame.region(stops.at.X + (0.5 * stops.room)[:, None] * stops.moves)
    assert all((a == b).all() for a, b in zip(stops.at.on, beyond.on, strict=True))
    best = stops.best()
    assert sorted(best.neurons) == sorted(set(stops.neurons))
    for neuron, doubt in zip(best.neurons, best.doubt, strict=True):
        assert doubt == stops.doubt[stops.neurons == neuron].min()


def test_doubt_is_the_distance_that_members_disagree_by():
    truth, neuron, X, _, rng = problem((5, 12, 6), 1, 2)
    known = known_surface(truth, 1, neuron, X[0])
    members = known.members.copy()
    members[1:, -1] += np.array([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0]) * 1e-3
    surface = replace(known, members=members)
    at = surface.frame.region(X)
    G = surface.gradients(at)
    # Moved along the gradient by the doubt, a sum changes by what the members are apart.
    rise = surface.values(at)[:, 1:].std(axis=1)
    np.testing.assert_allclose(surface.doubt(at) * np.linalg.norm(G, axis=1), rise)
    np.testing.assert_allclose(rise, 1e-3)
    E = surface.along(at, rng.standard_normal(X.shape))
    assert np.abs((E * G).sum(axis=1)).max() < 1e-12
    N = rng.standard_normal(X.shape)
    M, slope = surface.across(at, N)
    assert np.abs((M * N).sum(axis=1)).max() < 1e-11
    np.testing.assert_allclose((M * G).sum(axis=1), slope, atol=1e-12)


def bent(X, kinks, jumps, slopes, values):
    """Functions of the first input: straight, and bent at some places by some columns."""
    t = X[:, :1]
    Y = values + t * slopes
    for place, jump in zip(kinks, jumps, strict=True):
        Y = Y + np.maximum(t - place, 0.0) * jump
    return Y


def lines_around(middles, T, d=3):
    X, M = np.zeros((len(middles), d)), np.zeros((len(middles), d))
    M[:, 0] = 1.0
    return KinkLines(X, M, np.asarray(middles, float), np.full(len(middles), float(T)))


def floor_of(sigma, k=1):
    """Answers of k outputs that err by sigma where inputs are small."""
    nu, one = np.full(k, sigma), np.ones(k)
    return NoiseFloor("random", nu, one, one, 0.0, 0.0, Numbers("float64"))


@given(
    st.integers(0, 2**20),
    st.integers(1, 4),
    st.floats(-0.45, 0.45),
    st.sampled_from([1e-14, 1e-10, 1e-6]),
)
def test_one_kink_is_found_where_it_is_with_its_jump(seed, k, place, sigma):
    rng = np.random.default_rng(seed)
    jump, slopes, values = rng.standard_normal((3, k))
    jump *= 1.0 + 0.5 / np.linalg.norm(jump)
    lines = lines_around([0.0], 1.0)
    Y = bent(lines.points, [place], [jump], slopes, values)
    seen = lines.read(Y + sigma * rng.standard_normal(Y.shape), floor_of(sigma, k))
    assert seen.is_kink.all()
    assert abs(seen.tau[0] - place) <= 8.0 * seen.tau_error[0] + 1e-14
    apart = np.linalg.norm(seen.jumps[0] - jump) / np.linalg.norm(jump)
    assert apart <= 8.0 * seen.error[0] + 1e-14
    np.testing.assert_allclose(lines.meets(seen)[0, 0], seen.tau[0])
    both = lines.beside(np.arange(1), seen.tau)
    Z = bent(both, [place], [jump], slopes, values) + sigma * rng.standard_normal((2, k))
    assert lines.are_single(np.arange(1), seen, Z, floor_of(sigma, k)).all()


@given(st.integers(0, 2**20), st.integers(1, 4), st.sampled_from([1e-14, 1e-8, 1e-4]))
def test_a_straight_line_has_no_kink(seed, k, sigma):
    rng = np.random.default_rng(seed)
    lines = lines_around([0.0, 3.0], 1.0)
    Y = bent(lines.points, [], [], *rng.standard_normal((2, k)))
    seen = lines.read(Y + sigma * rng.standard_normal(Y.shape), floor_of(sigma, k))
    assert not seen.is_kink.any()


@pytest.mark.parametrize("k", [2, 3, 5])
def test_several_outputs_tell_two_kinks_from_one(k):
    rng = np.random.default_rng(k)
    n_kinks = 0
    for _ in range(50):
        jumps = rng.standard_normal((2, k))
        lines = lines_around([0.0], 1.0)
        Y = bent(lines.points, rng.uniform(-0.4, 0.4, 2), jumps, *rng.standard_normal((2, k)))
        n_kinks += int(lines.read(Y, floor_of(1e-12, k)).is_kink.sum())
    assert n_kinks == 0


@pytest.mark.parametrize("k", [1, 3])
def test_two_more_points_tell_two_kinks_from_one(k):
    rng = np.random.default_rng(k)
    jump = rng.standard_normal(k)
    lines = lines_around([0.0], 1.0)
    # Along each other they look like one to four points, whatever the outputs.
    kinks, jumps = [-0.2, 0.3], [jump, 0.7 * jump]
    args = kinks, jumps, rng.standard_normal(k), rng.standard_normal(k)
    seen = lines.read(bent(lines.points, *args), floor_of(1e-12, k))
    assert seen.is_kink.all()
    Z = bent(lines.beside(np.arange(1), seen.tau), *args)
    assert not lines.are_single(np.arange(1), seen, Z, floor_of(1e-12, k)).any()


def test_answers_that_are_no_numbers_are_no_kinks():
    lines = lines_around([0.0, 0.1, 0.2], 1.0)
    Y = bent(lines.points, [0.1], [np.ones(2)], np.ones(2), np.ones(2)).reshape(3, 4, 2)
    Y[0, 3], Y[1, 0, 1] = np.nan, np.inf
    assert lines.read(Y.reshape(-1, 2), floor_of(1e-12, 2)).is_kink.tolist() == [False, False, True]


@pytest.mark.parametrize("error", [1e-9, 1e-7, 1e-5])
def test_sharpened_rows_are_the_first_layers_to_rounding(error):
    truth = zoo.random_network([6, 10, 5, 2], seed=1)
    rng = np.random.default_rng(2)
    oracle = Oracle(truth, 6)
    noise = measure_noise(oracle, 1)
    norms = np.linalg.norm(truth.weights[0], axis=1)
    W, b = truth.weights[0] / norms[:, None], truth.biases[0] / norms
    rough = W + error * rng.standard_normal(W.shape) / np.sqrt(6)
    size = np.linalg.norm(rough, axis=1)
    before = oracle.n_queries
    V, c, errors = Sharpening().measure(
        oracle, noise, rough / size[:, None], b / size, np.full(10, error), rng
    )
    assert oracle.n_queries - before == 10 * 4 * (6 + 2)
    off = np.hypot(np.linalg.norm(V - W, axis=1), c - b)
    assert (off <= 1e-2 * error).sum() >= 9
    assert (off < 1e-11).sum() >= 9
    # A row that was measured anew says how far it may be off.
    new = errors < error
    assert new.sum() >= 9
    assert (off[new] <= 100.0 * errors[new]).all()


def test_rows_among_many_others_are_sharpened_by_their_own_kinks_alone():
    # On some of 190 lines to a row other neurons' kinks lie beside its own.
    truth = zoo.random_network([180, 90, 60, 1], seed=4)
    rng, oracle = np.random.default_rng(5), Oracle(truth, 180)
    norms = np.linalg.norm(truth.weights[0], axis=1)[:, None]
    true = np.column_stack([truth.weights[0], truth.biases[0]]) / norms
    rough = true + 3e-8 * rng.standard_normal(true.shape) / np.sqrt(180)
    W, b, errors = Sharpening().measure(
        oracle, measure_noise(oracle, 1), rough[:, :-1], rough[:, -1], np.full(90, 3e-8), rng
    )
    off = np.linalg.norm(np.column_stack([W, b]) - true, axis=1)
    assert (errors < 3e-8).mean() > 0.9
    assert (off <= np.maximum(100.0 * errors, 1e-12)).all()
    assert oracle.n_queries <= 64 + 90 * 4 * 1.05 * 180


def test_a_row_that_is_no_first_layers_stays_as_it_is():
    truth = zoo.random_network([6, 10, 5, 2], seed=1)
    oracle, rng = Oracle(truth, 6), np.random.default_rng(3)
    w = rng.standard_normal((2, 6))
    w /= np.linalg.norm(w, axis=1)[:, None]
    b, errors = np.array([0.1, 0.2]), np.full(2, 1e-9)
    W, c, after = Sharpening().measure(oracle, measure_noise(oracle, 1), w, b, errors, rng)
    assert (w == W).all()
    assert (c == b).all()
    assert (after == errors).all()
