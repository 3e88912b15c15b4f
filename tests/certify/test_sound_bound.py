"""Sound bounds: against exact rational arithmetic, whatever rounds and whatever the solver says."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import revelu
from revelu.certify.pairs import Pair
from revelu.certify.sound_bound import _Polytope, sound_bound
from revelu.errors import InputError
from revelu.network import Network
from revelu.numerics.balls import Ball
from revelu.numerics.links import Link

BOX = (-1.0, 2.0)
seeds = st.integers(0, 2**32 - 1)


def exactly(network, x):
    """Outputs at a rational input, in rational arithmetic."""
    h = below = list(x)
    for i, (W, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        z = [
            sum((Fraction(w) * v for w, v in zip(row, h, strict=True)), Fraction(c))
            for row, c in zip(W.tolist(), b.tolist(), strict=True)
        ]
        if i == network.n_hidden:
            break
        below, h = h, [max(v, Fraction(0)) for v in z]
    if network.skip is not None:
        V, c = (a.tolist() for a in network.skip)
        z = [
            y + Fraction(e) + sum(Fraction(v) * u for v, u in zip(row, below, strict=True))
            for y, e, row in zip(z, c, V, strict=True)
        ]
    return z


def differences(f, g, x):
    return [abs(a - b) for a, b in zip(exactly(f, x), exactly(g, x), strict=True)]


def corners_of_pieces(f, g):
    """Where hyperplanes of both networks and sides of the box meet, in two dimensions."""
    lines = [(Fraction(a), Fraction(b), Fraction(c)) for n in (f, g) for (a, b), c in _rows(n)]
    for side in BOX:
        lines += [(Fraction(1), Fraction(0), -Fraction(side))]
        lines += [(Fraction(0), Fraction(1), -Fraction(side))]
    lo, hi = map(Fraction, BOX)
    for (a, b, c), (p, q, r) in combinations(lines, 2):
        det = a * q - b * p
        if det:
            x, y = (b * r - c * q) / det, (c * p - a * r) / det
            if lo <= x <= hi and lo <= y <= hi:
                yield x, y


def _rows(network):
    return zip(network.weights[0].tolist(), network.biases[0].tolist(), strict=True)


def nearly(network, rng, size):
    """Another network: neurons in another order and scale, weights that differ by a share."""
    weights, biases = list(network.weights), list(network.biases)
    for i in range(network.n_hidden):
        order = rng.permutation(len(biases[i]))
        s = 10.0 ** rng.uniform(-1, 1, len(order))
        weights[i], biases[i] = weights[i][order] * s[:, None], biases[i][order] * s
        weights[i + 1] = weights[i + 1][:, order] / s
    changed = [a * (1 + size * rng.uniform(-1, 1, a.shape)) for a in (*weights, *biases)]
    return Network(changed[: len(weights)], changed[len(weights) :])


@settings(deadline=None, max_examples=60)
@given(seed=seeds, size=st.sampled_from([0.0, 1e-14, 1e-9, 1e-3, 1.0]), turned=st.booleans())
def test_no_difference_of_one_hidden_layer_exceeds_its_bound(seed, size, turned):
    rng = np.random.default_rng(seed)
    f = revelu.zoo.random_network([2, int(rng.integers(1, 5)), 2], seed=seed % 10_000)
    g = nearly(f, rng, size)
    if turned:
        g = g.turn_round(rng.random(len(g.biases[0])) < 0.5)
    bound = sound_bound(f, g, BOX, starts=5)
    largest = [Fraction(0)] * 2
    for x in corners_of_pieces(f, g):
        largest = [max(pair) for pair in zip(largest, differences(f, g, x), strict=True)]
    assert all(Fraction(b) >= y for b, y in zip(bound.bounds.tolist(), largest, strict=True))
    # What a search has found is somewhere: to the digits of a difference of two sums.
    slack = [y * Fraction(1 + 1e-6) + Fraction(1e-14) for y in largest]
    assert all(Fraction(x) <= y for x, y in zip(bound.found.tolist(), slack, strict=True))
    assert all(BOX[0] <= x <= BOX[1] for x in bound.where.tolist())
    at = differences(f, g, [Fraction(x) for x in bound.where.tolist()])
    assert abs(float(max(at)) - bound.largest_found) <= 1e-6 * bound.largest_found + 1e-14


@settings(deadline=None, max_examples=15)
@given(seed=seeds)
def test_networks_that_have_nothing_in_common_are_bounded_too(seed):
    rng = np.random.default_rng(seed)
    f, g = (revelu.zoo.random_network([2, int(k), 1], seed=int(k)) for k in rng.integers(1, 5, 2))
    bound = sound_bound(f, g, BOX, starts=5)
    largest = max(differences(f, g, x)[0] for x in corners_of_pieces(f, g))
    assert Fraction(bound.largest) >= largest


@settings(deadline=None, max_examples=15)
@given(seed=seeds, size=st.sampled_from([1e-12, 1e-4]))
def test_deep_networks_stay_under_theirs(seed, size):
    rng = np.random.default_rng(seed)
    f = revelu.zoo.random_network([3, 4, 3, 1], seed=seed % 10_000)
    if seed % 2:
        f = Network(f.weights, f.biases, (rng.standard_normal((1, 4)), rng.standard_normal(1)))
    g = Network(*[[a * (1 + size * rng.random(a.shape)) for a in p] for p in (f.weights, f.biases)])
    g = Network(g.weights, g.biases, f.skip)
    bound = sound_bound(f, g, BOX, starts=5)
    points = [*rng.uniform(*BOX, (20, 3)), bound.where]
    for x in points:
        assert differences(f, g, [Fraction(v) for v in x.tolist()])[0] <= Fraction(bound.largest)


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_multipliers_of_any_solver_give_a_bound(seed):
    rng = np.random.default_rng(seed)
    f = revelu.zoo.random_network([2, 3, 1], seed=seed % 10_000)
    g = nearly(f, rng, 0.1)
    box = Ball.between(np.full(2, BOX[0]), np.full(2, BOX[1]))
    polytope = _Polytope(Pair.of(f, g), box)
    y = rng.exponential(size=len(polytope.r)) * (rng.random(len(polytope.r)) < 0.3)
    value = sum(polytope._dual(polytope.c.mid[0], y)) + float(polytope.d.mid[0])
    largest = max(exactly(g, x)[0] - exactly(f, x)[0] for x in corners_of_pieces(f, g))
    assert value * polytope.scale >= float(largest) * (1 - 1e-12)


def test_a_recovered_network_is_bounded_within_ten_times_what_a_search_finds():
    truth = revelu.zoo.random_network([64, 32, 10], seed=5)
    found = revelu.extract(truth, seed=5).network
    bound = sound_bound(truth, found, (-1.0, 1.0))
    assert bound.n_matched == bound.n_neurons == 32
    assert 0 < bound.largest_found <= bound.largest <= 10 * bound.largest_found
    assert bound.largest < 1e-6


def test_a_network_is_itself():
    f = revelu.zoo.random_network([6, 5, 4, 2], seed=0)
    assert sound_bound(f, f, BOX).largest < 1e-200


def test_a_single_neuron_is_bounded_tightly():
    f = Network([[[1.0]], [[1.0]]], [[0.0], [0.0]])
    g = Network([[[1.0]], [[1.5]]], [[0.0], [0.0]])
    bound = sound_bound(f, g, (-1.0, 2.0))
    assert bound.largest == pytest.approx(1.0, rel=1e-12)
    assert bound.largest_found == pytest.approx(1.0, rel=1e-12)
    assert bound.where.tolist() == [2.0]


def test_what_has_no_bound_is_refused():
    f = revelu.zoo.random_network([3, 4, 1], seed=0)
    with pytest.raises(InputError, match="number of hidden layers"):
        sound_bound(f, revelu.zoo.random_network([3, 4, 4, 1], seed=0), BOX)
    with pytest.raises(InputError, match="two finite numbers"):
        sound_bound(f, f, (1.0, 1.0))


# --- what stands after the outputs


@pytest.mark.parametrize("name", ["softmax", "log-softmax", "logit", "atanh", "softmax*100"])
@given(seeds, st.floats(1e-3, 3.0))
@settings(deadline=None, max_examples=15)
def test_no_difference_of_answers_exceeds_its_bound(name, seed, size):
    """Differences of any size: a head is flat at some inputs and steep at others."""
    rng, link = np.random.default_rng(seed), Link.named(name)
    f = revelu.zoo.random_network([3, 4, 3], seed=seed)
    g = nearly(f, rng, size)
    bound = sound_bound(f, g, BOX, link=link)
    X = np.vstack([rng.uniform(*BOX, (4000, 3)), rng.choice(BOX, (64, 3))])
    apart = np.abs(_answers(link, f(X)) - _answers(link, g(X)))
    assert apart.max() <= bound.largest_answer * (1 + 1e-12) + 1e-300
    assert bound.to_dict()["largest_answer"] == bound.largest_answer


def _answers(link, Z):
    """What a head answers, in its own words: none of these is how the package computes it."""
    if link.contrast:
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        return link.scale * (P if link.name == "softmax" else np.log(P))
    return np.tanh(Z) if link.name == "atanh" else 1.0 / (1.0 + np.exp(-Z))


def test_the_slope_of_a_head_is_met():
    """Where both neurons are off the logits are near 0, where a sigmoid is steepest."""
    f = Network([[[1.0]], [[1.0]]], [[0.0], [0.0]])
    g = Network([[[1.0]], [[1.0]]], [[0.0], [1e-4]])
    bound = sound_bound(f, g, (-1.0, -0.5), link=Link.named("logit"))
    assert bound.largest_answer == pytest.approx(0.25e-4, rel=1e-9)
    at = np.array([[-0.7]])
    low, high = (_answers(Link.named("logit"), network(at))[0, 0] for network in (f, g))
    met = abs(high - low)
    assert met == pytest.approx(bound.largest_answer, rel=1e-4)


def test_it_says_what_the_bound_is_of():
    f = revelu.zoo.random_network([3, 4, 3], seed=0)
    g = nearly(f, np.random.default_rng(0), 1e-3)
    said = {
        name: sound_bound(f, g, BOX, link=Link.named(name)) for name in ("none", "softmax", "log")
    }
    assert " do answers differ by" in said["none"].words
    assert said["none"].largest_answer == said["none"].largest
    assert " do logits less the last one differ by" in said["softmax"].words
    assert (
        f"probabilities, differ by {said['softmax'].largest_answer:.2g} at most"
        in said["softmax"].words
    )
    assert said["log"].largest_answer is None
    assert "exponentials, have no bound" in said["log"].words
    unknown = sound_bound(f, g, BOX)
    assert (unknown.largest_answer, unknown.of) == (None, "outputs before any last step")


numbers = st.floats(-1e6, 1e6).map(lambda x: x if abs(x) > 1e-6 else 0.0)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6), st.integers(0, 10**6))
def test_balls_hold_what_exact_arithmetic_makes(pairs, seed):
    rng = np.random.default_rng(seed)
    a, b = (Ball(np.array(x), rng.choice([0.0, 1e-3], len(x))) for x in zip(*pairs, strict=True))
    ends = [
        [Fraction(m) + t * Fraction(r) for m, r in zip(x.mid, x.rad, strict=True)]
        for x, t in ((a, 1), (b, -1))
    ]
    holds = [
        (a + b, [x + y for x, y in zip(*ends, strict=True)]),
        (a - b, [x - y for x, y in zip(*ends, strict=True)]),
        (a * b, [x * y for x, y in zip(*ends, strict=True)]),
    ]
    product = Ball(a.mid[None], a.rad[None]) @ b.column()
    holds.append((product.row(), [sum(x * y for x, y in zip(*ends, strict=True))]))
    for ball, exact in holds:
        for low, value, high in zip(ball.low, exact, ball.high, strict=True):
            assert Fraction(low) <= value <= Fraction(high)
