"""Kinks on a line, against the hyperplanes that a network knows it has."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import revelu
from revelu.network import zoo
from revelu.probe import kinks
from revelu.probe.kinks import KinkSearch, _angle, find_kinks
from revelu.probe.line import random_line

EPS = np.finfo(float).eps


class Counting:
    def __init__(self, function):
        self.function, self.n_queries, self.n_rounds = function, 0, 0

    def __call__(self, X):
        self.n_queries += len(X)
        self.n_rounds += 1
        return self.function(X)


def search(function, d, k, seed):
    rng = np.random.default_rng([seed, 7])
    line = random_line(rng, d)
    ask = Counting(function)
    scan = find_kinks(ask, line, 2 * EPS * np.sqrt(d), np.ones(k), rng)
    return scan, line, ask


def true_kinks(network, line):
    W, b = network.weights[0], network.biases[0]
    return np.sort(-(W @ line.x0 + b) / (W @ line.v))


@settings(max_examples=60)
@given(d=st.integers(1, 30), m=st.integers(0, 25), k=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_every_kink_is_found_at_its_place(d, m, k, seed):
    network = zoo.random_network([d, m, k], seed=seed) if m else zoo.affine(d, k, seed=seed)
    scan, line, ask = search(network, d, k, seed)
    truth = true_kinks(network, line)
    assert scan.complete, scan.message
    # Kinks nearer than the search can part come as one cluster, marked so.
    if scan.is_single.all() and len(scan.kinks) == len(truth):
        np.testing.assert_allclose(np.arctan(scan.kinks), np.arctan(truth), atol=1e-9)
    else:
        gaps = np.diff(np.arctan(truth))
        edge = np.pi / 2 - np.abs(np.arctan(truth)).max()
        assert min(gaps.min(initial=1.0), edge) < 1e-5
    assert ask.n_queries <= 12 + 8 * m


@pytest.mark.slow
@pytest.mark.parametrize(("d", "m", "k"), [(10, 16, 1), (20, 40, 1), (64, 32, 10), (784, 128, 1)])
def test_five_and_a_half_queries_a_kink(d, m, k):
    counts, rounds = [], []
    for seed in range(5):
        _, _, ask = search(zoo.random_network([d, m, k], seed=seed), d, k, seed)
        counts.append(ask.n_queries / m)
        rounds.append(ask.n_rounds)
    assert np.median(counts) <= 5.5
    assert max(rounds) <= 30


def test_jumps_are_the_output_columns():
    network = zoo.random_network([12, 9, 4], seed=5)
    scan, line, _ = search(network, 12, 4, 5)
    W, A = network.weights[0], network.weights[1]
    order = np.argsort(-(W @ line.x0 + network.biases[0]) / (W @ line.v))
    wanted = (A * np.abs(W @ line.v)).T[order]
    np.testing.assert_allclose(scan.jumps, wanted, atol=1e-7)


@given(st.floats(1e-4, 1e-1), st.integers(0, 1000))
@settings(max_examples=25)
def test_close_kinks_are_parted(gap, seed):
    rng = np.random.default_rng(seed)
    t = rng.uniform(-2, 2)

    def function(X):
        z = (X - line.x0) @ line.v / (line.v @ line.v)
        return np.maximum(z - t, 0) - 2.5 * np.maximum(z - t - gap, 0)

    line = random_line(np.random.default_rng([seed, 7]), 3)
    scan, _, _ = search(lambda X: function(X)[:, None], 3, 1, seed)
    assert scan.complete
    np.testing.assert_allclose(scan.kinks, [t, t + gap], atol=1e-8)


def test_a_jump_is_named():
    scan, _, _ = search(lambda X: (X.sum(axis=1, keepdims=True) > 0) * 1.0, 3, 1, 0)
    assert not scan.complete
    assert "jump" in scan.message


@pytest.mark.parametrize("function", [np.tanh, np.square, np.sin])
def test_a_smooth_function_ends_without_a_verdict(function):
    scan, _, ask = search(lambda X: function(X.sum(axis=1, keepdims=True)), 3, 1, 0)
    assert not scan.complete
    assert "no affine pieces" in scan.message
    assert ask.n_queries < 2000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_hundreds_of_kinks_are_pieces_in_float32(seed):
    # Most pieces of such a line are proved when it looks whether they are flat.
    network = zoo.random_network([5, 128, 128, 1], seed=seed)
    weights, biases = (
        [a.astype(np.float32) for a in part] for part in (network.weights, network.biases)
    )

    def target(X):
        H = X.astype(np.float32)
        for W, b in zip(weights[:-1], biases[:-1], strict=True):
            H = np.maximum(H @ W.T + b, 0)
        return (H @ weights[-1].T + biases[-1]).astype(np.float64)

    rng = np.random.default_rng(seed)
    scale = target(rng.standard_normal((200, 5))).std(axis=0)
    counting = Counting(target)
    scan = find_kinks(counting, random_line(rng, 5), 4e-7, scale, rng, side=3.0)
    assert scan.complete
    assert len(scan.kinks) > 192
    assert counting.n_queries <= 8 * len(scan.kinks)


def test_a_search_that_ran_out_of_rounds_tells_what_it_saw(monkeypatch):
    monkeypatch.setattr(kinks, "KinkSearch", partial(KinkSearch, max_rounds=4))
    scan, _, _ = search(zoo.random_network([8, 30, 2], seed=1), 8, 2, 3)
    assert not scan.complete
    assert "rounds" in scan.message
    assert len(scan.pieces) == len(scan.kinks) + 1 == len(scan.jumps) + 1 > 2
    left = scan.without_faint_kinks(np.inf)
    assert len(left.pieces) == len(left.kinks) + 1


@pytest.mark.parametrize("interval", [(-0.0, 100.0), (-100.0, 0.0)])
def test_a_point_at_the_end_of_a_line_is_asked_once(interval):
    # As where the target answers on one side of the point only; the answers say nothing.
    line = random_line(np.random.default_rng(3), 4)
    asked = []

    def rough(X):
        asked.extend((X - line.x0) @ line.v / (line.v @ line.v))
        return np.random.default_rng(len(asked)).standard_normal((len(X), 1))

    find_kinks(rough, line, 1e-15, np.ones(1), np.random.default_rng(0), interval, through=True)
    assert min(np.diff(np.sort(asked))) > 0.0


@pytest.mark.parametrize("saturated", [(2.0, 6.0), (-0.9, -0.2), (0.3, 1.5)])
def test_a_line_ends_before_the_place_where_the_target_is_saturated(saturated):
    network = zoo.random_network([6, 9, 2], seed=3)
    line, rng = random_line(np.random.default_rng(5), 6), np.random.default_rng(0)

    def answer(X):
        t = (X - line.x0) @ line.v / (line.v @ line.v)
        inside = (t > saturated[0]) & (t < saturated[1])
        return np.where(inside[:, None], np.inf, network(X))

    scan = find_kinks(answer, line, 2 * EPS * np.sqrt(6), np.ones(2), rng, (-10.0, 10.0))
    assert scan.complete
    lo, hi = scan.interval
    assert lo < 0.0 < hi or 0.0 in {lo, hi}
    seen = true_kinks(network, line)
    seen = seen[(seen > lo) & (seen < hi)]
    np.testing.assert_allclose(scan.kinks, seen, atol=1e-9)
    assert hi <= saturated[0] or lo >= saturated[1]


def test_the_same_seed_asks_the_same_queries():
    asked = []
    network = zoo.random_network([8, 12, 2], seed=1)

    def record(X):
        asked.append(X.copy())
        return network(X)

    search(record, 8, 2, 3)
    first, asked[:] = list(asked), []
    search(record, 8, 2, 3)
    assert all(np.array_equal(a, b) for a, b in zip(first, asked, strict=True))


@pytest.mark.parametrize("factor", [20.0, 200.0, 1e5])
@pytest.mark.parametrize("widths", [(10, 16, 1), (20, 40, 3)])
def test_answers_noisier_than_they_are_said_to_be_end_the_search(widths, factor):
    d, _, k = widths
    network, rng = zoo.random_network(list(widths), seed=5), np.random.default_rng(3)

    def noisy(X):
        sigma = factor * EPS * np.sqrt(d) * np.hypot(1.0, np.linalg.norm(X, axis=1) / np.sqrt(d))
        return network(X) + sigma[:, None] * rng.standard_normal((len(X), k))

    scan, _, ask = search(noisy, d, k, 1)
    assert not scan.complete
    assert "different pieces" in scan.message
    assert ask.n_queries <= 4 * 4 * KinkSearch.many_pieces  # the second look, at the latest


def test_a_search_without_end_says_nothing_of_the_class(monkeypatch):
    monkeypatch.setattr(kinks, "KinkSearch", partial(KinkSearch, max_rounds=4))
    recovery = revelu.extract(zoo.random_network([8, 30, 2], seed=1), dim_in=8, seed=3)
    assert recovery.status is revelu.Status.UNVERIFIED
    assert recovery.network is None
    assert "rounds" in recovery.evidence[0]


@pytest.mark.slow
@pytest.mark.parametrize("widths", [(10, 40, 1), (6, 24, 1)])
def test_bends_that_a_short_piece_goes_past_are_seen_inside_wide_pieces(widths):
    n_invented, n_queries = [], []
    for wide in (np.inf, 1.5):
        invented, asked = 0, 0
        for seed in range(10):
            network = zoo.random_network(list(widths), seed=seed)
            ask = Counting(lambda X, f=network: f(X).astype(np.float32).astype(float))
            rng = np.random.default_rng([seed, 7])
            line = random_line(rng, widths[0])
            scale = network(rng.standard_normal((500, widths[0]))).std(axis=0)
            scan = find_kinks(ask, line, 1.5e-7, scale, rng, side=3.0, wide=wide)
            apart = np.arctan(scan.kinks)[:, None] - np.arctan(true_kinks(network, line))
            invented += int((np.abs(apart).min(axis=1) > 1e-3).sum())
            asked += ask.n_queries
        n_invented.append(invented)
        n_queries.append(asked)
    # A kink at which nothing bends is what two pieces make of bends that they go past.
    assert n_invented[1] < n_invented[0] / 2
    assert n_queries[1] < 1.05 * n_queries[0]
    lengths = [_angle(piece.ts[0], piece.ts[-1]) for piece in scan.pieces]
    for piece, length in zip(scan.pieces, lengths, strict=True):
        shares = [_angle(piece.ts[0], t) / length for t in piece.ts[1:-1]]
        is_wide = length > 1.5 * np.median(lengths)
        assert not is_wide or any(0.1 < share < 0.9 for share in shares)
