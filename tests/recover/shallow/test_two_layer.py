"""Recovery against the truth, with a query budget beside every shape."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import revelu
from revelu.network import zoo
from revelu.oracle import Oracle, measure_noise
from revelu.probe.line import Line
from revelu.recover.method import Why
from revelu.recover.shallow.blocks import choose_blocks
from revelu.recover.shallow.lines import reach
from revelu.recover.shallow.one_hidden import OneHidden
from revelu.recover.signs import resolve_signs


def recover(network, seed, **options):
    """What one line and its repairs give, and the oracle that was asked."""
    oracle = Oracle(network, network.dim_in, **options)
    noise = measure_noise(oracle, seed)
    search = OneHidden().start(oracle, noise, np.random.default_rng(seed + 1), lambda _: None)
    return search.propose(), oracle


def largest_error(found, network, seed=99):
    X = np.random.default_rng(seed).standard_normal((1000, network.dim_in))
    return np.abs(found(X) - network(X)).max()


def unit(widths):
    d, m, k = widths
    return m * (d + 2) if k == 1 else m * (d + 1) + k * (m + 1)


@pytest.mark.parametrize(
    ("widths", "n", "queries"),
    [
        ((10, 16, 1), 12, 1.35),
        ((20, 40, 1), 4, 1.20),
        ((784, 16, 1), 2, 1.10),
        ((64, 32, 10), 6, 0.22),
        ((5, 3, 2), 10, 3.0),
        ((3, 30, 4), 6, 3.0),
        ((1, 6, 1), 6, 5.0),
    ],
)
def test_shapes_are_recovered_within_their_budgets(widths, n, queries):
    costs = []
    for seed in range(n):
        network = zoo.random_network(list(widths), seed=seed + 500)
        found, oracle = recover(network, seed)
        assert found.network.architecture == widths
        assert largest_error(found.network, network) < 1e-7
        costs.append(oracle.ledger().n_recovery / unit(widths))
    assert np.median(costs) <= queries


@pytest.mark.parametrize("widths", [(10, 8, 1), (6, 12, 3), (10, 16, 1)])
def test_parameters_are_those_of_the_truth(widths):
    network = zoo.random_network(list(widths), seed=77)
    found, _ = recover(network, 5)
    assert found.network.skip is None
    assert revelu.align(found.network, network).max_parameter_error < 1e-7


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    input_scale=st.sampled_from([1e-6, 1.0, 1e6]),
    output_scale=st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_scales_of_inputs_and_outputs_do_not_matter(seed, input_scale, output_scale):
    network = zoo.scaled(zoo.random_network([6, 7, 2], seed=seed), input_scale, output_scale)
    found, _ = recover(network, seed)
    X = np.random.default_rng(1).standard_normal((500, 6))
    size = np.abs(network(X)).max()
    assert largest_error(found.network, network) < 1e-6 * size


def test_a_partial_budget_keeps_the_neurons_that_were_paid_for():
    network = zoo.random_network([40, 12, 1], seed=3)
    whole = recover(network, 1)[1].n_queries
    said, oracle = recover(network, 1, budget=whole // 2)
    assert said.why is Why.LIMIT
    assert oracle.n_queries <= whole // 2
    found = said.network
    assert 0 < found.architecture[1] < 12
    rows = np.column_stack([found.weights[0], found.biases[0]])
    truth = np.column_stack([network.weights[0], network.biases[0]])
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    truth /= np.linalg.norm(truth, axis=1)[:, None]
    np.testing.assert_allclose(np.abs(rows @ truth.T).max(axis=1), 1.0, atol=1e-9)


def test_kinks_too_near_each_other_are_parted_on_another_line():
    rng = np.random.default_rng(12)
    network = zoo.random_network([8, 10, 1], seed=4)
    oracle = Oracle(network, 8)
    noise = measure_noise(oracle, 0)
    # Aim the first line so that two hyperplanes meet it 1e-9 apart.
    from revelu.probe.kinks import find_kinks
    from revelu.probe.line import Line
    from revelu.recover.shallow.line_neurons import peel
    from revelu.recover.shallow.lines import add_line

    W, b = network.weights[0][:2], network.biases[0][:2]
    x0 = np.linalg.lstsq(W, -b, rcond=None)[0] + 1e-9 * rng.standard_normal(8)
    v = rng.standard_normal(8) * np.sqrt(8)
    line = Line(x0 + 0.7 * v, v)
    scan = find_kinks(oracle, line, float(noise.nu.max()), noise.scale, rng)
    first = peel(oracle, scan, float(noise.nu.max()), rng)
    found, left = first.network, first.n_unresolved
    kinks = np.sort(-(network.weights[0] @ line.x0 + network.biases[0]) / (network.weights[0] @ v))
    assert np.diff(kinks).min() < 1e-7
    if not left:  # the pair was taken for one kink: its residual shows it
        assert largest_error(found, network) > 1e-3
    for _ in range(4):
        found, left = add_line(oracle, found, noise, rng)
    assert largest_error(found, network) < 1e-7


@given(st.integers(1, 8), st.integers(1, 10), st.integers(1, 4), st.integers(0, 10**6))
@settings(max_examples=40)
def test_signs_are_resolved_whatever_they_were(d, m, k, seed):
    network = zoo.random_network([d, m, k], seed=seed)
    flip = np.random.default_rng(seed).integers(0, 2, m)
    W, A = network.weights
    b, c = network.biases
    turned = np.where(flip, -1.0, 1.0)
    skip = ((A * flip) @ W, (A * flip) @ b)
    hidden = revelu.Network([W * turned[:, None], A], [b * turned, c], skip=skip)
    assert largest_error(hidden, network) < 1e-9
    resolved, notes = resolve_signs(hidden, 1e-8)
    assert largest_error(resolved, network) < 1e-6
    if m <= k * d:
        assert not notes
        assert revelu.align(resolved, network).max_parameter_error < 1e-6


def test_ambiguous_signs_keep_the_skip():
    network = zoo.sign_ambiguous(6, seed=1)
    found, _ = recover(network, 3)
    assert largest_error(found.network, network) < 1e-7


@given(st.integers(0, 14), st.integers(1, 9), st.booleans(), st.integers(0, 10**6))
def test_blocks_cover_what_can_be_measured_once(m, k, some_are_empty, seed):
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((m, k))
    columns /= np.linalg.norm(columns, axis=1)[:, None]
    half_gaps = rng.uniform(0, 0.2, m + 1)
    if some_are_empty:
        half_gaps[rng.random(m + 1) < 0.3] = 0.0
    single = rng.random(m) < 0.8
    first, blocks = choose_blocks(columns, half_gaps, single, 0.01)
    covered = [j for block in blocks for j in range(block.start, block.stop)]
    assert covered == list(range(first, first + len(covered)))
    measured = [first, *(block.stop for block in blocks)]
    widest = half_gaps.max()
    assert all(half_gaps[p] >= min(0.01, widest) for p in measured)
    for block in blocks:
        if block.is_solvable:
            assert single[block.start : block.stop].all()
            assert block.stop - block.start <= max(1, k - 2)


@given(st.integers(0, 14), st.integers(1, 9), st.integers(0, 10**6))
def test_blocks_are_filled_with_kinks_of_known_neurons(m, k, seed):
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((m, k))
    columns /= np.linalg.norm(columns, axis=1)[:, None]
    half_gaps, single, known = (
        rng.uniform(0.02, 0.2, m + 1),
        rng.random(m) < 0.8,
        rng.random(m) < 0.5,
    )
    _, blocks = choose_blocks(columns, half_gaps, single, 0.01, is_known=known)
    for block in blocks:
        if block.is_solvable:
            assert single[block.start : block.stop].all()
            assert (~known[block.start : block.stop]).sum() <= max(1, k - 2)


def test_known_kinks_between_new_ones_cost_no_piece():
    columns, half_gaps, single = np.ones((9, 1)), np.full(10, 0.1), np.ones(9, dtype=bool)
    known = np.ones(9, dtype=bool)
    known[[0, 4, 8]] = False
    pieces = []
    for is_known in (None, known):
        first, blocks = choose_blocks(columns, half_gaps, single, 0.01, is_known=is_known)
        assert all(block.is_solvable for block in blocks)
        pieces.append({first, *(block.stop for block in blocks)})
    assert [len(measured) for measured in pieces] == [10, 4]
    # Each new kink is alone between two of them.
    edges = sorted(pieces[1])
    assert [(~known[a:b]).sum() for a, b in pairwise(edges)] == [1, 1, 1]


@pytest.mark.parametrize("seed", range(6))
def test_neurons_that_died_in_training_do_not_disturb_the_others(seed):
    # What weight decay leaves of a dead neuron: a faint kink, far out on every line.
    network = zoo.random_network([64, 32, 10], seed=seed + 900)
    (W, A), (b, c) = (map(np.array, pair) for pair in (network.weights, network.biases))
    W[:2] *= 3e-6
    A[:, :2] *= 5e-4
    b[:2] = [0.28, -0.17]
    network = revelu.Network([W, A], [b, c])
    recovery = revelu.extract(network, seed=seed)
    assert recovery.status is revelu.Status.RECOVERED
    assert recovery.network.architecture[1] in {30, 31, 32}
    assert largest_error(recovery.network, network) < 1e-7
    unmatched = revelu.align(recovery.network, network).unmatched
    assert set(unmatched) <= {"truth: weights[0][0]", "truth: weights[0][1]"}


@pytest.mark.parametrize(("start", "least"), [(0.05, 0.02), (3.0, 2.7)])
def test_a_line_is_followed_as_far_as_both_classes_have_digits(start, least):
    """From ``x_1 = 0`` on the first probability is under 1e-4, and has lost its digits."""
    border = np.log(1e4)
    oracle = Oracle(lambda X: two_classes(X[:, 0] + border), 2)
    measure_noise(oracle, 0)
    before = oracle.n_queries
    lo, hi = reach(oracle, Line(np.array([-start, 0.0]), np.array([1.0, 0.0])))
    assert least <= hi <= start
    assert lo <= -256.0
    assert oracle.n_queries - before <= 48


def two_classes(logit):
    """As scikit-learn has them: the first is 1 less the second."""
    p = expit(logit)
    return np.stack([1.0 - p, p], axis=1)
