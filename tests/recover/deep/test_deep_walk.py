"""Walks, the rows they give, the signs these tell, and the rows of a first layer."""

from functools import cache

import numpy as np
import pytest

from revelu.network import zoo
from revelu.oracle import NoiseFloor, Oracle, measure_noise
from revelu.oracle.numbers import Numbers
from revelu.probe.kink_lines import KinkLines
from revelu.recover.deep.first_rows import FirstRows
from revelu.recover.deep.frame import KnownLayers
from revelu.recover.deep.layer_rows import LayerRows
from revelu.recover.deep.layers import Layers, LayerSearch, Level
from revelu.recover.deep.seeds import SeedSearch
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.walk import Walk
from revelu.recover.shallow.lines import first_line


def stack_of(truth, n_layers):
    return Stack(truth.dim_in, truth.weights[:n_layers], truth.biases[:n_layers])


def unit_rows(W, b):
    return np.column_stack([W, b]) / np.linalg.norm(W, axis=1)[:, None]


def apart_up_to_sign(A, B):
    """Largest differences of all pairs of rows, up to sign, shape (len(A), len(B))."""
    return np.minimum(np.abs(A[:, None] - B).max(axis=2), np.abs(A[:, None] + B).max(axis=2))


def owners_of(truth, X):
    """Layer and neuron whose sum is 0 at each point, and how far it is off."""
    h, layers, neurons, near = X, [], [], []
    for n, (W, b) in enumerate(zip(truth.weights[:-1], truth.biases[:-1], strict=True)):
        z = h @ W.T + b
        layers.append(np.full(z.shape, n))
        neurons.append(np.broadcast_to(np.arange(z.shape[1]), z.shape))
        near.append(np.abs(z))
        h = np.maximum(z, 0.0)
    layers, neurons, near = map(np.hstack, (layers, neurons, near))
    i, best = np.arange(len(X)), near.argmin(axis=1)
    return layers[i, best], neurons[i, best], near[i, best]


@cache
def seeds_of(widths, n_known, seed, n=4):
    """A random network, an oracle of it, and seeds of what is above its first layers."""
    truth = zoo.random_network(list(widths), seed=seed)
    oracle = Oracle(truth, widths[0])
    noise, rng = measure_noise(oracle, 1), np.random.default_rng(seed)
    starts, ends = 2.0 * rng.standard_normal((2, n, widths[0]))
    stack = stack_of(truth, n_known)
    cuts = [stack.breaks(x, v, 0.0, 1.0) for x, v in zip(starts, ends - starts, strict=True)]
    seeds = SeedSearch().find(oracle, noise, starts, ends, cuts, rng)
    return truth, oracle, noise, seeds


def frame_of(truth, n_known, rng):
    """The frame above some layers, the last of them with random signs."""
    W, b = truth.weights[n_known - 1], truth.biases[n_known - 1]
    turned = rng.choice([-1.0, 1.0], len(b))
    return KnownLayers(stack_of(truth, n_known - 1), W * turned[:, None], b * turned), turned


def all_known(frame):
    """Which weights of the rows on top of a frame are not known: none."""
    return np.zeros(frame.W.shape, dtype=bool)


def run(walk, oracle):
    """Answer what a walk asks."""
    step = walk.run()
    X = next(step, None)
    while X is not None:
        try:
            X = step.send(oracle(X))
        except StopIteration:
            return


@cache
def walks_of(widths, n_known, seed, per_neuron=1, deeper=False):
    """Walks from seeds of the next layer, or of layers above it, and their neurons."""
    truth, oracle, noise, seeds = seeds_of(widths, n_known, seed, 8)
    rng = np.random.default_rng(seed)
    frame, turned = frame_of(truth, n_known, rng)
    layers, neurons, _ = owners_of(truth, np.array([s.x for s in seeds]))
    walks = []
    for layer in range(n_known + deeper, len(truth.biases) - 1 if deeper else n_known + 1):
        for j in range(len(truth.biases[layer])):
            for i in np.flatnonzero((layers == layer) & (neurons == j))[:per_neuron]:
                walk = Walk(frame, seeds[i], noise, rng)
                before = oracle.n_queries
                run(walk, oracle)
                walks.append((walk, j, oracle.n_queries - before))
    return truth, frame, turned, walks


def true_theta(frame, turned, signs, w, bias):
    """A neuron's unknowns for a walk's signs, from the definition."""
    wrong = w * turned * (signs != turned)
    return np.concatenate([w, wrong @ frame.W, [bias + wrong @ frame.b]])


@pytest.mark.parametrize(
    ("widths", "n_known", "seed"),
    [((6, 8, 5, 1), 1, 0), ((5, 8, 6, 3), 0, 1), ((6, 6, 5, 4, 2), 1, 2)],
)
def test_every_seed_is_one_neurons_kink_and_has_its_gradients(widths, n_known, seed):
    truth, _, _, seeds = seeds_of(widths, n_known, seed)
    X = np.array([s.x for s in seeds])
    layers, _, near = owners_of(truth, X)
    assert len(seeds) > 10
    assert (near < 1e-6).all()
    assert (layers >= n_known).all()
    for s in seeds:
        step = 1e-5 * np.eye(widths[0])
        sides = [
            truth(s.x + side * 3e-5 * s.normal + step) - truth(s.x + side * 3e-5 * s.normal - step)
            for side in (1.0, -1.0)
        ]
        jump = (sides[0] - sides[1]) / 2e-5
        # Across the hyperplane the gradients change by the normal times the column.
        size = np.linalg.norm(s.column)
        if np.linalg.matrix_rank(jump, tol=1e-3 * size) == 1:
            np.testing.assert_allclose(jump, np.outer(s.normal, s.column), atol=1e-3 * size)


# Seeds, walks accepted of neurons begun, and queries an unknown of one walk on average.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "floor"), [((6, 18, 10, 1), 0.85), ((5, 24, 12, 2), 0.85), ((10, 14, 12, 1), 0.85)]
)
def test_walks_read_the_rows_of_the_next_layer(widths, floor):
    n, n_right, costs = 0, 0, []
    for seed in range(3):
        truth, frame, turned, walks = walks_of(widths, 1, seed)
        for walk, j, cost in walks:
            n += 1
            costs.append(cost / frame.size)
            theta = true_theta(frame, turned, walk.signs, truth.weights[1][j], truth.biases[1][j])
            found, known = walk.estimate.theta, ~walk.is_open
            if not walk.is_accepted:
                continue
            true, found = theta[known], found[known]
            scale = (found @ true) / (true @ true)
            off = np.linalg.norm(found - scale * true) / np.linalg.norm(found)
            # What has been accepted is true.
            assert off < 1e-7, (seed, j)
            n_right += bool(known.all())
    assert n >= 8 * 3
    assert n_right >= floor * n
    assert np.mean(costs) < 25.0


@pytest.mark.parametrize("widths", [(6, 10, 8, 6, 1), (8, 8, 8, 8, 3)])
def test_walks_from_seeds_of_deeper_layers_are_not_accepted(widths):
    n = n_accepted = 0
    for seed in range(6):
        _, _, _, walks = walks_of(widths, 1, seed, deeper=True)
        n += len(walks)
        n_accepted += sum(walk.is_accepted for walk, _, _ in walks)
        # Where all of a row is known no deeper neuron passes for one of this layer.
        assert not any(w.is_accepted and not w.estimate.n_undetermined for w, _, _ in walks)
    assert n >= 20
    # Some hold up to unknowns that they lack: 1 of 29 and 4 of 38.
    assert n_accepted <= 0.15 * n


@pytest.mark.parametrize("seed", range(2))
def test_walks_through_two_known_layers_read_the_third(seed):
    truth, frame, turned, walks = walks_of((6, 9, 8, 6, 1), 2, seed)
    n_right = 0
    for walk, j, _ in walks:
        theta = true_theta(frame, turned, walk.signs, truth.weights[2][j], truth.biases[2][j])
        known = ~walk.is_open
        if walk.is_accepted:
            true, found = theta[known], walk.estimate.theta[known]
            cosine = abs(true @ found) / np.linalg.norm(true) / np.linalg.norm(found)
            assert 1.0 - cosine < 1e-12, j
            n_right += 1
    assert len(walks) >= 3
    assert n_right >= 0.7 * len(walks)


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_walks_are_sums_and_explain_their_points(seed):
    truth, frame, turned, walks = walks_of((6, 18, 10, 1), 1, seed)
    good = [(w, j) for w, j, _ in walks if w.is_accepted and not w.estimate.n_undetermined]
    rows = LayerRows.of(frame, [w for w, _ in good])
    X = np.random.default_rng(3).standard_normal((200, 6))
    h = np.maximum(X @ truth.weights[0].T + truth.biases[0], 0.0)
    Z = h @ truth.weights[1].T + truth.biases[1]
    for (_, j), z in zip(good, rows.sums(frame, X).T, strict=True):
        assert abs(np.corrcoef(z, Z[:, j])[0, 1]) > 1 - 1e-12
    points = np.vstack([w.points.X for w, _ in good])
    assert rows.explain(frame, points, 1e-6).all()
    assert not rows.explain(frame, X, 1e-6).any()
    signs, known, fits, *_ = rows.signs(frame, all_known(frame))
    assert known.all()
    assert fits.all()
    assert (signs == turned).all()
    # In a frame of the right signs the linear part is gone.
    right = KnownLayers.of(frame.stack.with_layer(frame.W * signs[:, None], frame.b * signs))
    for walk, j in good:
        points = walk.points.X
        other = Walk(right, walk.seed, walk.noise, np.random.default_rng(0))
        other.points, other.errors = walk.points, walk.errors
        other.rebase(right)
        assert other.estimate.n_undetermined == 0
        true = np.append(truth.weights[1][j], truth.biases[1][j])
        cosine = other.estimate.theta @ true / np.linalg.norm(true)
        assert abs(cosine) / np.linalg.norm(other.estimate.theta) > 1 - 1e-12
        assert len(other.points) == len(points)


def planted(rng, n, m, d, n_false=0):
    """Rows above others of planted signs, some of them of no neuron."""
    frame = KnownLayers(Stack(d), rng.standard_normal((m, d)), rng.standard_normal(m))
    phi, v = rng.integers(0, 2, m), rng.standard_normal((n, m))
    linear = -(v * phi) @ frame.W
    linear[:n_false] = rng.standard_normal((n_false, d))
    rows = LayerRows(
        v,
        linear,
        rng.standard_normal(n),
        np.zeros((n, m + d), dtype=bool),
    )
    return frame, rows, np.where(phi, -1.0, 1.0)


@pytest.mark.parametrize(("n", "m", "d"), [(4, 6, 8), (10, 20, 5), (6, 30, 10), (3, 4, 2)])
def test_planted_signs_are_found(n, m, d):
    for seed in range(10):
        frame, rows, true = planted(np.random.default_rng(seed), n, m, d)
        signs, known, fits, *_ = rows.signs(frame, all_known(frame))
        assert known.all()
        assert fits.all()
        assert (signs == true).all()


@pytest.mark.parametrize(("n", "m", "d"), [(8, 6, 8), (12, 20, 5)])
def test_a_false_row_is_told_and_does_not_spoil_the_signs(n, m, d):
    n_right = 0
    for seed in range(10):
        frame, rows, true = planted(np.random.default_rng(seed), n, m, d, n_false=1)
        signs, known, fits, *_ = rows.signs(frame, all_known(frame))
        n_right += bool((signs == true).all() and known.all())
        # Never is it said to fit where the others do.
        assert not (fits[0] and fits[1:].all())
        if (signs == true).all():
            assert fits.tolist() == [False] + [True] * (n - 1)
    assert n_right >= 8


@pytest.mark.parametrize(("n", "m", "d"), [(8, 8, 10), (6, 4, 12)])
def test_rows_of_which_something_is_open_tell_signs_by_the_rest(n, m, d):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        frame, rows, true = planted(rng, n, m, d)
        is_open = np.zeros((n, m + d), dtype=bool)
        is_open[np.arange(n), rng.integers(0, m + d, n)] = True
        # Through an open weight any multiple of what it reads may be in the linear part.
        linear = rows.l + np.where(is_open[:, :m], rng.standard_normal((n, m)), 0.0) @ frame.W
        linear += np.where(is_open[:, m:], rng.standard_normal((n, d)), 0.0)
        v = np.where(is_open[:, :m], 0.0, rows.v)
        signs, known, fits, *_ = LayerRows(v, linear, rows.c, is_open).signs(
            frame, all_known(frame)
        )
        assert known.all()
        assert fits.all()
        assert (signs == true).all()


def test_rows_that_are_too_few_leave_signs_open():
    rng = np.random.default_rng(5)
    frame, rows, _ = planted(rng, 1, 12, 4)
    _, known, *_ = rows.signs(frame, all_known(frame))
    assert not known.any()
    # A row below that no row takes anything of is not told, the others are.
    frame, rows, true = planted(rng, 9, 6, 5)
    v, linear = rows.v.copy(), rows.l.copy()
    v[:, 2] = 0.0
    linear = -(v * (true < 0)) @ frame.W
    signs, known, fits, *_ = LayerRows(v, linear, rows.c, rows.undetermined).signs(
        frame, all_known(frame)
    )
    assert known.tolist() == [True, True, False, True, True, True]
    assert (signs == true)[known].all()
    assert fits.all()


@pytest.mark.parametrize(
    ("n", "m", "d", "n_missing"),
    [(4, 7, 10, 1), (6, 9, 20, 2), (20, 30, 16, 1), (32, 30, 32, 8), (40, 60, 32, 2)],
)
def test_signs_are_found_where_neurons_below_are_missing(n, m, d, n_missing):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        frame, rows, true = planted(rng, n, m, d)
        missing = rng.standard_normal((n_missing, d))
        linear = rows.l + rng.standard_normal((n, n_missing)) @ missing
        rows = LayerRows(rows.v, linear, rows.c, rows.undetermined)
        signs, known, directions = rows.signs_of_low_rank(frame)
        assert known.all()
        assert (signs == true).all()
        assert len(directions) == n_missing
        # What is left is the weights of those that are missing.
        assert missing @ directions.T @ directions == pytest.approx(missing, abs=1e-9)
        # Two rows tell little of so many signs.
        few = rows.take(np.arange(n_missing + 1))
        assert not few.signs_of_low_rank(frame)[1].any() or m < d - n_missing


def test_a_layer_without_rows_tells_nothing_and_is_one():
    frame, _, _ = planted(np.random.default_rng(3), 4, 7, 10)
    rows = LayerRows.of(frame, [])
    assert not rows.explain(frame, np.ones((2, 10)), 1.0).any()
    assert not rows.undetermined.all(axis=1).any()
    assert (~rows.undetermined).shape == (0, 17)


def test_rows_are_alike_up_to_scale_as_far_as_both_are_known():
    rng = np.random.default_rng(6)
    v, other = rng.standard_normal((2, 8))
    V = np.array([v, -2.0 * v, other, np.where(np.arange(8) < 3, 0.0, v), v])
    undetermined = np.zeros((5, 8), dtype=bool)
    undetermined[3, :3] = True
    undetermined[4, 2:] = True  # knows too few
    rows = LayerRows(V[:, :6], V[:, 6:], np.zeros(5), undetermined)
    assert rows.alike(1e-8).tolist() == [1, 3]


@pytest.mark.parametrize("seed", range(103, 107))
def test_the_rows_of_a_narrow_first_layer_are_found_to_their_last_digits(seed):
    truth = zoo.random_network([30, 20, 10, 8, 6, 1], seed=seed)
    oracle = Oracle(truth, 30)
    noise, rng = measure_noise(oracle, 1), np.random.default_rng(seed)
    (W, b), _ = FirstRows().find(oracle, noise, first_line(oracle, noise, rng), rng)
    apart = apart_up_to_sign(unit_rows(W, b), unit_rows(truth.weights[0], truth.biases[0]))
    assert sorted(apart.argmin(axis=1)) == list(range(20))
    # What they are off by grows from layer to layer.
    assert apart.min(axis=1).max() < 1e-11


@pytest.mark.parametrize("widths", [(5, 16, 8, 1), (4, 24, 10, 2), (10, 30, 12, 1)])
def test_the_rows_of_a_wide_first_layer_are_found_and_no_others(widths):
    n_found = n_all = 0
    costs = []
    for seed in range(4):
        truth = zoo.random_network(list(widths), seed=seed)
        oracle = Oracle(truth, widths[0])
        noise, rng = measure_noise(oracle, 1), np.random.default_rng(seed)
        line = first_line(oracle, noise, rng)
        (W, b), seeds = FirstRows().find(oracle, noise, line, rng)
        true = unit_rows(truth.weights[0], truth.biases[0])
        apart = apart_up_to_sign(unit_rows(W, b), true)
        # Every row is one of the truth, to rounding, and none is twice there.
        assert apart.min(axis=1).max() < 1e-9, seed
        assert len(set(apart.argmin(axis=1))) == len(b), seed
        n_found, n_all = n_found + len(b), n_all + len(true)
        layers, _, near = owners_of(truth, np.array([s.x for s in seeds]))
        assert (near < 1e-6).all()
        assert ((layers > 0).mean() if len(layers) else 1.0) > 0.95
        costs.append(oracle.n_queries / truth.weights[0].size)
    assert n_found >= 0.97 * n_all
    assert np.mean(costs) < 60.0


def test_walks_along_one_neuron_tell_together_what_each_leaves_open():
    _, _, _, walks = walks_of((6, 18, 10, 1), 1, 0, per_neuron=2)
    found = {}
    for walk, j, _ in walks:
        if walk.is_accepted:
            found.setdefault(j, []).append(walk)
    pairs = [pair for pair in found.values() if len(pair) == 2]
    n_joined = 0
    for (one, other), stranger in zip(pairs, [*pairs[1:], pairs[0]], strict=True):
        # Each forgets all points at which one row below is on: its entry is open.
        forget_where_on(one, 0)
        forget_where_on(other, 1)
        n_open = one.estimate.n_undetermined
        one.join(stranger[1], 1e-6)
        assert one.estimate.n_undetermined == n_open
        if n_open and other.estimate.n_undetermined and one.has(other, 1e-6):
            one.join(other, 1e-6)
            assert one.estimate.n_undetermined < n_open
            n_joined += 1
    assert n_joined >= 3


def forget_where_on(walk, j):
    """Leave a walk its seed, and the points where a row on top of the frame is off."""
    off = walk.signs[j] * np.where(walk.points.on[-1][:, j], 1.0, -1.0) < 0
    kept = np.flatnonzero(off | (np.arange(len(off)) == 0))
    walk.points, walk.errors = walk.points.take(kept), [walk.errors[i] for i in kept]
    walk.rebase(walk.frame)


def test_lines_on_which_no_answer_changes_are_blank():
    X = np.array([[0.0, -3.0], [0.0, 0.0], [0.0, 3.0]])
    lines = KinkLines(X, np.tile([1.0, 0.0], (3, 1)), np.zeros(3), np.full(3, 0.1))
    # A kink at 0, a slope, and nothing.
    P = lines.points.reshape(3, 4, 2)
    Y = np.stack([np.maximum(P[0, :, 0], 0.0), P[1, :, 0], np.ones(4)])
    one = np.ones(1)
    noise = NoiseFloor("random", 1e-15 * one, one, one, 0.0, 0.0, Numbers("float64"))
    seen = lines.read(Y.reshape(-1, 1), noise)
    assert seen.is_kink.tolist() == [True, False, False]
    assert seen.is_blank.tolist() == [False, False, True]


def test_walks_from_deeper_neurons_end_sooner_where_neurons_of_the_layer_are_known():
    widths, n_known = (8, 8, 8, 8, 8, 1), 2
    truth, oracle, noise, seeds = seeds_of(widths, n_known, 3, 16)
    frame, stack = KnownLayers.of(stack_of(truth, n_known)), stack_of(truth, n_known)
    W, b = truth.weights[n_known], truth.biases[n_known]
    deeper = np.flatnonzero(owners_of(truth, np.array([s.x for s in seeds]))[0] > n_known)
    assert len(deeper) > 20
    spent = []
    for sums in (None, lambda X: stack.outputs(X) @ W.T + b):
        before = oracle.n_queries
        for i in deeper:
            rng = np.random.default_rng(i)
            walk = Walk(frame, seeds[i], noise, rng, sums_beside=sums)
            run(walk, oracle)
        spent.append(oracle.n_queries - before)
    assert spent[1] <= min(0.75 * spent[0], 40 * len(deeper))


@pytest.mark.parametrize("missing", [[2], [1, 4]])
def test_seeds_of_neurons_whose_weights_span_a_space_are_told_from_others(missing):
    truth, _, _, seeds = seeds_of((8, 8, 8, 8, 8, 1), 1, 3)
    layers, neurons, _ = owners_of(truth, np.array([s.x for s in seeds]))
    expected = [
        s for s, i, j in zip(seeds, layers, neurons, strict=True) if i == 1 and j in missing
    ]
    found = SeedSearch().in_span(seeds, stack_of(truth, 1), truth.weights[1][missing])
    assert 0 < len(found) < len(seeds)
    assert [s.x.tolist() for s in found] == [s.x.tolist() for s in expected]


@pytest.mark.parametrize("missing", [[2], [1, 4]])
def test_missing_neurons_are_found_from_what_spans_their_weights(missing):
    truth, oracle, noise, _ = seeds_of((8, 8, 8, 8, 1), 1, 4)
    layers = Layers(oracle, noise, np.random.default_rng(0), LayerSearch(), lambda _: None)
    frame = KnownLayers.of(stack_of(truth, 1))
    layers.levels = [Level(frame, all_known(frame))]
    before, found = oracle.n_queries, list[int]()
    directions = np.random.default_rng(1).standard_normal((len(missing),) * 2)
    directions = directions @ truth.weights[1][missing]
    while not set(missing) <= set(found) and layers.find_more(directions):
        walks = layers.levels[0].walks
        owners, neurons, _ = owners_of(truth, np.array([walk.seed.x for walk in walks]))
        assert (owners == 1).all()
        found = neurons.tolist()
    assert sorted(found) == missing
    # In place of the thousands of a search among all seeds.
    assert oracle.n_queries - before <= 1500 * len(missing)
