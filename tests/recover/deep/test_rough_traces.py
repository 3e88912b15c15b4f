"""Rows of upper neurons from float32 answers, traced above a first layer that is known."""

from itertools import pairwise

import numpy as np
import pytest

import revelu
from revelu.numerics.gaussian import Gaussian
from revelu.oracle import Oracle, measure_noise
from revelu.recover.deep.rough_signs import are_read, signed, signs_by_most
from revelu.recover.deep.rough_traces import RoughTraces, TracedRow, TraceSearch
from revelu.recover.deep.rough_upper import RoughUpper
from revelu.recover.deep.seeds import Seed
from revelu.recover.deep.trace import Below, Trace, open_directions
from revelu.recover.refine.network_fit import Samples

# Weights are float32 numbers: what is left of rows that are known is their rounding.
FLOAT32 = float(np.finfo(np.float32).eps)


def target(seed, widths=(4, 16, 8, 1), n_on=0):
    """A random network that computes in float32, and its weights; so many neurons are always on."""
    rng = np.random.default_rng(seed)
    weights = [
        (rng.standard_normal((m, d)) / np.sqrt(d)).astype(np.float32).astype(float)
        for d, m in pairwise(widths)
    ]
    biases = [(0.5 * rng.standard_normal(m)).astype(np.float32).astype(float) for m in widths[1:]]
    biases[0][:n_on] += 6.0
    # The sums above stay where they were.
    biases[1] -= np.float32(6.0 * weights[1][:, :n_on].sum(axis=1))
    truth = revelu.Network(weights, biases)

    def answer(X):
        H = X.astype(np.float32)
        for W, b in zip(truth.weights[:-1], truth.biases[:-1], strict=True):
            H = np.maximum(H @ W.T.astype(np.float32) + b.astype(np.float32), np.float32(0))
        return H @ truth.weights[-1].T.astype(np.float32) + truth.biases[-1].astype(np.float32)

    oracle = Oracle(answer, widths[0])
    return truth, oracle, measure_noise(oracle, seed)


def seed_of(truth, j, rng, error=1e-3):
    """A point of a neuron's surface, and its gradient with an error, as lines show them."""
    below = below_of(truth)
    row = np.append(truth.weights[1][j], truth.biases[1][j])
    for _ in range(1000):
        x, y = rng.standard_normal((2, truth.dim_in))
        t = np.linspace(0.0, 1.0, 4001)
        z = below.features(x + t[:, None] * (y - x)) @ row
        at = np.flatnonzero(z[:-1] * z[1:] < 0)
        if len(at):
            i = at[0]
            x = x + (t[i] + (t[1] - t[0]) * z[i] / (z[i] - z[i + 1])) * (y - x)
            gradient = below.gradients(x[None], row)[0]
            x = x - gradient * (below.features(x[None])[0] @ row) / (gradient @ gradient)
            size = np.linalg.norm(gradient)
            normal = gradient / size + error / 2.0 * rng.standard_normal(len(x))
            return Seed(x, normal / np.linalg.norm(normal), truth.weights[2][:, j] * size, error)
    raise AssertionError("no point of the surface")


def below_of(truth):
    return Below(truth.weights[0], truth.biases[0], np.full(len(truth.biases[0]), FLOAT32))


def rows_of(truth):
    return np.column_stack([truth.weights[1], truth.biases[1]])


def apart(truth, row, j):
    """By how much sums differ at inputs near the surface, relative to their deviation."""
    X = np.random.default_rng(9).standard_normal((4000, truth.dim_in))
    F = below_of(truth).features(X)
    z, found = F @ rows_of(truth)[j], F @ row
    near = np.abs(z) < np.quantile(np.abs(z), 0.5)
    a = np.linalg.lstsq(found[near, None], z[near], rcond=None)[0]
    return np.abs(found[near] * a - z[near]).max() / z.std()


def rms_in_errors(truth, law, j):
    """How far sums near the surface are off, in what the row's law foretells of them."""
    X = np.random.default_rng(9).standard_normal((4000, truth.dim_in))
    F, true = below_of(truth).features(X), rows_of(truth)[j]
    row, size = law.mean, np.linalg.lstsq((law.root @ true)[:, None], law.root @ law.mean)[0][0]
    near = np.abs(F @ true) < np.quantile(np.abs(F @ true), 0.5)
    foretold = law.errors_of(F)[near]
    return np.sqrt(np.mean(((F @ row - size * F @ true)[near] / foretold) ** 2))


def trace_of(truth, noise, seed, others, rng, below=None):
    scale = float(np.abs(truth.weights[1]).mean())
    below = below_of(truth) if below is None else below
    return Trace(below, others, seed, noise, scale, rng)


@pytest.mark.parametrize("seed", range(3))
def test_a_trace_reads_a_row_from_one_point_of_its_surface(seed):
    truth, oracle, noise = target(seed)
    rng, rows = np.random.default_rng(seed), rows_of(truth)
    # The neuron that bends most inputs, and of the others half are known.
    X = rng.standard_normal((2000, truth.dim_in))
    on = (truth.preactivations(X)[1] > 0).mean(axis=0)
    j = int(np.argmin(np.abs(on - 0.5)))
    others = np.delete(rows, j, axis=0)[::2]
    before = oracle.n_queries
    trace = trace_of(truth, noise, seed_of(truth, j, rng), others, rng)
    trace.run(oracle)
    assert trace.is_found
    assert trace.n_found > 0.8 * trace.n_asked
    assert apart(truth, trace.theta, j) < 3e-4
    assert rms_in_errors(truth, trace.law, j) < 2.0
    assert oracle.n_queries - before < 2_000


@pytest.mark.parametrize("seed", range(3))
def test_a_trace_needs_no_signs_below_and_tells_them(seed):
    truth, oracle, noise = target(seed)
    rng, rows = np.random.default_rng(seed), rows_of(truth)
    turned = rng.random(16) < 0.5
    signs = np.where(turned, -1.0, 1.0)
    W, b = truth.weights[0] * signs[:, None], truth.biases[0] * signs
    below = Below(W, b, np.full(len(b), FLOAT32), is_signed=False)
    # What a turned neuron passes on is what it gives less its sum.
    V = rows[:, :-1] * turned
    open_rows = np.column_stack([rows[:, :-1], -V @ below.W, rows[:, -1] - V @ below.b])
    on = (truth.preactivations(rng.standard_normal((2000, 4)))[1] > 0).mean(axis=0)
    found, chosen, before = [], [], oracle.n_queries
    for j in np.argsort(np.abs(on - 0.5))[:5]:
        others = np.delete(open_rows, j, axis=0)
        trace = trace_of(truth, noise, seed_of(truth, j, rng), others, rng, below)
        trace.run(oracle)
        if trace.is_found:
            points = np.array(trace.points)
            found.append(TracedRow(trace.law, 16, 0.05, points, trace.seed))
            chosen.append(j)
    # From one point of its surface a neuron may be lost, from another it is not.
    assert len(found) >= 4
    assert oracle.n_queries - before < 8_000
    A = np.array([row.row for row in found])
    told, margins = signs_by_most(A[:, :16], A[:, 16:-1], below.W)
    assert (told == turned).all()
    assert margins.min() > 2.0
    layer, above = signed(below, found, told, are_read(found, 1e-3))
    np.testing.assert_allclose(layer.W, truth.weights[0])
    for j, row in zip(chosen, above, strict=True):
        assert len(row.row) == 17
        assert row.n_open or rms_in_errors(truth, row.law, j) < 2.0


def test_a_network_with_open_signs_is_that_of_its_rows_and_outputs():
    rng = np.random.default_rng(3)
    below = Below(
        rng.standard_normal((6, 3)), rng.standard_normal(6), np.full(6, FLOAT32), is_signed=False
    )
    rows, C = rng.standard_normal((4, below.size)), rng.standard_normal((4 + below.size, 2))
    X = 3.0 * rng.standard_normal((200, 3))
    F = below.features(X)
    expected = np.maximum(F @ rows.T, 0.0) @ C[:4] + F @ C[4:]
    np.testing.assert_allclose(below.network(rows, C)(X), expected, atol=1e-10)
    # Features change along a direction as their slopes say, and sums as their gradients do.
    step = 1e-7 * rng.standard_normal(X.shape)
    moved = below.features(X + step) - F
    np.testing.assert_allclose(moved, below.slopes(X, step), atol=1e-12)
    gradients = below.gradients(X, rows[0])
    np.testing.assert_allclose((gradients * step).sum(axis=1), moved @ rows[0], atol=1e-12)


def test_what_is_open_of_a_row_has_a_constant():
    truth, oracle, noise = target(1, n_on=7)
    rng, rows = np.random.default_rng(1), rows_of(truth)
    X = rng.standard_normal((2000, truth.dim_in))
    on = (truth.preactivations(X)[1] > 0).mean(axis=0)
    j = int(np.argmin(np.abs(on - 0.5)))
    trace = trace_of(truth, noise, seed_of(truth, j, rng), rows[:0], rng)
    trace.run(oracle)
    # Seven sums of four inputs and a constant: some of their weights are open.
    least = trace.how.vague * trace.scale
    undetermined = open_directions(trace.law, len(trace.below.b), least)
    assert undetermined.shape[1] > 0
    known = np.column_stack([trace.theta, undetermined])
    left = known @ np.linalg.lstsq(known, rows[j])[0] - rows[j]
    assert np.abs(left).max() < 0.02 * np.abs(rows[j]).max()


def test_a_point_of_no_surface_is_not_traced():
    truth, oracle, noise = target(0)
    rng = np.random.default_rng(0)
    false = Seed(0.3 * rng.standard_normal(4), np.eye(4)[0], np.ones(1), 1e-3)
    trace = trace_of(truth, noise, false, rows_of(truth)[:0], rng)
    trace.run(oracle)
    assert not trace.is_found


def test_rows_that_walks_have_missed_are_traced():
    # Of twelve searches nine end with every neuron; a row that a place shows badly ends others.
    assert sum(is_whole_after_traces(seed) for seed in range(1, 5)) >= 3


def is_whole_after_traces(seed):
    truth, oracle, noise = target(seed)
    rng, rows = np.random.default_rng(seed), rows_of(truth)
    X = rng.standard_normal((4000, 4)).astype(np.float32).astype(float)
    samples = Samples(X, oracle(X), np.outer(noise.growth(X) / np.sqrt(2.0), noise.errors))
    on = (truth.preactivations(X)[1] > 0).mean(axis=0)
    known = []
    for j in np.argsort(np.abs(on - 0.5))[:2]:
        one = seed_of(truth, j, rng)
        known.append(row_of(rows[j], np.empty((17, 0)), one.x[None], one))
    how, below = RoughTraces(), below_of(truth)
    search = TraceSearch(oracle, noise, rng, lambda _: None, below, samples, how, known)
    search.find()
    assert len(search.rows) > len(known)
    upper = RoughUpper()
    network = upper.refined(search.network(), samples, search.measured(), is_first=True)
    # Rows hold a fit while neurons are missing; what is explained is fitted to answers alone.
    network = upper.fitted(network, samples)
    off = np.abs(network(X) - truth(X)) / truth(X).std()
    return np.median(off) < 1e-5


def row_of(row, open_, points, seed):
    """A row of which some directions are open, and all else is known."""
    covariance = open_ @ open_.T + 1e-12 * np.eye(len(row))
    told = np.linalg.inv(np.linalg.cholesky(covariance))
    law = Gaussian.of(told, told @ row)
    return TracedRow(law, len(row) - 1, 0.1, points, seed)


def search_of(truth, oracle, noise, rows, rng, n=4000, **options):
    """A search that knows some rows, ``(row, undetermined)`` each, and answers."""
    X = rng.standard_normal((n, truth.dim_in)).astype(np.float32).astype(float)
    samples = Samples(X, oracle(X), np.outer(noise.growth(X) / np.sqrt(2.0), noise.errors))
    nowhere = np.full((1, truth.dim_in), 1e3)
    seed = Seed(nowhere[0], np.eye(truth.dim_in)[0], np.ones(truth.dim_out), 1.0)
    known = [row_of(row, open_, nowhere, seed) for row, open_ in rows]
    how, below = RoughTraces(**options), below_of(truth)
    return TraceSearch(oracle, noise, rng, lambda _: None, below, samples, how, known)


def test_a_row_at_whose_surface_nothing_bends_is_left_out():
    truth, oracle, noise = target(1)
    rng, closed = np.random.default_rng(1), np.empty((17, 0))
    on = (truth.preactivations(rng.standard_normal((4000, 4)))[1] > 0).mean(axis=0)
    rows = rows_of(truth)[(on > 0.1) & (on < 0.9)]
    false = rows[0] * rng.choice([-1.0, 1.0], 17)
    given = [(row, closed) for row in (*rows, false)]
    search = search_of(truth, oracle, noise, given, rng)
    search._drop_false()
    left = np.array([row.row for row in search.rows])
    np.testing.assert_array_equal(left, rows)
    assert not search.is_astray


def test_traces_are_given_up_where_many_of_their_rows_are_none():
    truth, oracle, noise = target(1)
    rng, closed = np.random.default_rng(1), np.empty((17, 0))
    false = [rows_of(truth)[0] * rng.choice([-1.0, 1.0], 17) for _ in range(5)]
    search = search_of(truth, oracle, noise, [(row, closed) for row in false], rng)
    search._drop_false()
    assert not search.rows
    assert search.is_astray


def test_a_row_stays_whose_open_weights_alone_put_its_surface_elsewhere():
    truth, oracle, noise = target(1)
    rng = np.random.default_rng(1)
    on = (truth.preactivations(rng.standard_normal((4000, 4)))[1] > 0).mean(axis=0)
    row, other = rows_of(truth)[np.argsort(np.abs(on - 0.5))[:2]]
    open_ = np.eye(17)[:, :8]
    off = row + open_ @ rng.choice([-0.5, 0.5], 8)
    given = [(off, open_), (other, np.empty((17, 0)))]
    search = search_of(truth, oracle, noise, given, rng)
    search._drop_false()
    assert len(search.rows) == 2


def test_a_seed_that_says_little_closes_no_row():
    truth, oracle, noise = target(2, widths=(5, 16, 8, 1))
    rng, rows = np.random.default_rng(2), rows_of(truth)
    on = (truth.preactivations(rng.standard_normal((4000, 5)))[1] > 0).mean(axis=0)
    j = int(np.abs(on - 0.5).argmin())
    seed = seed_of(truth, j, rng, error=0.02)
    open_ = np.eye(17)[:, np.flatnonzero(truth.weights[0] @ seed.x + truth.biases[0] > 0)[:2]]
    search = search_of(truth, oracle, noise, [(rows[j] + 0.3 * open_[:, 0], open_)], rng)
    assert not search._closes(seed)


def test_a_seed_tells_what_is_open_of_its_own_row_and_of_no_other():
    truth, oracle, noise = target(2, widths=(5, 16, 8, 1))
    rng, rows = np.random.default_rng(2), rows_of(truth)
    on = (truth.preactivations(rng.standard_normal((4000, 5)))[1] > 0).mean(axis=0)
    j, other = np.argsort(np.abs(on - 0.5))[:2]
    seed = seed_of(truth, j, rng, error=1e-4)
    on = truth.weights[0] @ seed.x + truth.biases[0] > 0
    open_ = np.eye(17)[:, np.flatnonzero(on)[:1]]
    off = rows[j] + 0.3 * open_[:, 0]
    search = search_of(truth, oracle, noise, [(off, open_)], rng)
    assert not search._closes(seed_of(truth, other, rng, error=1e-4))
    assert search.rows[0].n_open == 1
    assert search._closes(seed)
    assert search.rows[0].n_open == 0
    np.testing.assert_allclose(search.rows[0].row, rows[j], atol=2e-3)


def test_two_traces_of_a_neuron_that_leave_open_what_the_other_tells_are_one_row():
    truth, oracle, noise = target(2, widths=(5, 16, 8, 1))
    rng, rows = np.random.default_rng(2), rows_of(truth)
    on = (truth.preactivations(rng.standard_normal((4000, 5)))[1] > 0).mean(axis=0)
    j, other = np.argsort(np.abs(on - 0.5))[:2]
    search = search_of(truth, oracle, noise, [(rows[j], np.empty((17, 0)))], rng)
    X = rng.standard_normal((4000, 5))
    states = X @ truth.weights[0].T + truth.biases[0] > 0

    def part(j, side, weight):
        """A row that has seen one side of the first hyperplane, and knows its weight or not."""
        points = X[states[:, 0] == side]
        below, row = search.below, rows[j]
        for _ in range(50):
            G = below.gradients(points, row)
            off = below.features(points) @ row
            points = points - (off / (G**2).sum(axis=1))[:, None] * G
        known = np.abs(below.features(points) @ row) < 1e-9
        points = points[known & ((below.on(points)[:, 0]) == side)][:60]
        assert len(points) == 60
        seen, open_ = row.copy(), np.eye(17)[:, :1] if not side else np.eye(17)[:, 1:3]
        seen[np.flatnonzero(open_.any(axis=1))] += weight
        return row_of(seen, open_, points, search.rows[0].seed)

    search.rows = [part(j, True, 0.3)]
    search._take(part(other, False, 0.3))
    assert len(search.rows) == 2
    search._take(part(j, False, 0.3))
    assert len(search.rows) == 2
    found = next(row for row in search.rows if len(row.points) == 120)
    np.testing.assert_allclose(found.row, rows[j], atol=1e-6)


def test_neurons_that_few_inputs_turn_on_are_traced_where_answers_are_wrong():
    plain, _, _ = target(1)
    weights, biases = [W.copy() for W in plain.weights], [b.copy() for b in plain.biases]
    H = plain.activations(np.random.default_rng(8).standard_normal((20_000, 4)))[1]
    rare = int(np.abs(weights[2][0]).argmax())
    sums = H @ weights[1][rare]
    biases[1][rare] = np.float32(-np.quantile(sums, 0.99))
    truth = revelu.Network(weights, biases)
    oracle = Oracle(lambda X: truth(X).astype(np.float32), 4)
    noise, rng = measure_noise(oracle, 1), np.random.default_rng(1)
    given = [(row, np.empty((17, 0))) for row in np.delete(rows_of(truth), rare, axis=0)]
    search = search_of(truth, oracle, noise, given, rng)
    before = oracle.n_queries
    assert search._look_where_wrong()
    assert min(apart(truth, row.row, rare) for row in search.rows) < 1e-4
    assert oracle.n_queries - before < 60_000
