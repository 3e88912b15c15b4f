"""Three hidden layers and more, and first layers wider than the input."""

from functools import cache

import numpy as np
import pytest

import revelu
from revelu import Network, Status
from revelu.network import zoo
from revelu.oracle import Oracle, measure_noise
from revelu.recover.deep import layer as deep_layer
from revelu.recover.deep.gradient_rows import AlwaysOnSearch
from revelu.recover.deep.gradient_signs import SignSearch
from revelu.recover.deep.hypotheses import Hypotheses
from revelu.recover.deep.kink_equations import Equations
from revelu.recover.deep.layer_estimate import FoundLayer
from revelu.recover.deep.missing_weights import WeightFit, absorb_skip
from revelu.recover.deep.output_layer import OutputFit, is_faint, without_skip
from revelu.recover.deep.rows_from_kinks import RowSearch
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.state import DeepSearch
from revelu.recover.deep.test_inputs import InputChoice
from revelu.recover.deep.witnesses import WitnessSearch


def error_of(found, truth, n=4000):
    X = np.random.default_rng(8).standard_normal((n, truth.dim_in))
    return np.abs(found(X) - truth(X)).max() / truth(X).std()


def stack_of(truth, n_layers):
    return Stack(truth.dim_in, truth.weights[:n_layers], truth.biases[:n_layers])


def segments(rng, d, n):
    x, arms = rng.standard_normal((n, d)), 8.0 * rng.standard_normal((n, d))
    return x - arms, x + arms


@cache
def witnesses_of(widths, n_known, seed=3, n=16):
    truth = zoo.random_network(list(widths), seed=seed)
    oracle = Oracle(truth, widths[0])
    noise, rng = measure_noise(oracle, 1), np.random.default_rng(5)
    before = oracle.n_queries
    found = WitnessSearch().collect(
        oracle, noise, stack_of(truth, n_known), *segments(rng, widths[0], n), rng
    )
    return truth, found, oracle.n_queries - before


@pytest.mark.parametrize(
    ("widths", "n_known"), [((6, 5, 5, 4, 1), 1), ((5, 8, 6, 3), 0), ((20, 8, 6, 5, 2), 1)]
)
def test_every_witness_is_a_neurons_kink_and_none_a_known_ones(widths, n_known):
    truth, found, n_queries = witnesses_of(widths, n_known)
    assert len(found) > 40
    assert stack_of(truth, len(widths) - 2).explains(found.X).all()
    assert not stack_of(truth, n_known).explains(found.X).any()
    # Some gradients on either side, and a few points to find it.
    assert n_queries < 4 * (widths[0] + 12) * len(found)


def test_gradients_beside_kinks_are_the_networks_own():
    truth, found, _ = witnesses_of((6, 5, 5, 4, 1), 1)
    M, _ = stack_of(truth, 3).maps(found.points)
    assert np.abs(found.gradients - truth.weights[-1] @ M).max() < 1e-8


@pytest.mark.parametrize(("widths", "layer"), [((8, 8, 6, 4, 1), 1), ((6, 10, 6, 1), 0)])
def test_kinks_agree_on_the_rows_of_the_layer_that_made_them(widths, layer):
    truth, found, _ = witnesses_of(widths, layer, n=24)
    stack = stack_of(truth, layer)
    M, h = stack.maps(found.X)
    equations = Equations.of(found.X, found.normals, M, h)
    rows = RowSearch().find(equations)
    W, b = truth.weights[layer], truth.biases[layer]
    true = np.column_stack([W, b]) / np.linalg.norm(np.column_stack([W, b]), axis=1)[:, None]
    own = (np.abs(h @ W.T + b) < 1e-8).sum(axis=0)
    best = np.max([np.abs(true @ v) for v, _ in rows], axis=0)
    assert (best[own > 20] > 1 - 1e-10).all()
    # A true row has all of its own kinks, and no others.
    for v, members in rows:
        j = int(np.argmax(np.abs(true @ v)))
        if abs(true[j] @ v) > 1 - 1e-10:
            assert (np.abs(h[members] @ W[j] + b[j]) < 1e-7).all()


@pytest.mark.parametrize("widths", [(8, 8, 6, 4, 1), (6, 10, 6, 1), (6, 6, 6, 6, 3)])
def test_signs_follow_from_gradients_alone(widths):
    truth, found, _ = witnesses_of(widths, 0, n=24)
    rng = np.random.default_rng(2)
    for layer in range(2):
        M, h = stack_of(truth, layer).maps(found.points)
        W, b = truth.weights[layer], truth.biases[layer]
        signs = rng.choice([-1.0, 1.0], len(b))
        Z = (h @ W.T + b) * signs
        seen = SignSearch().find(W * signs[:, None], Z, M, found.gradients, rng)
        assert (seen.signs == signs).all()
        assert len(seen.explained) >= 0.99 * seen.n_informative > 0
        # Without one of its neurons a layer does not explain the gradients.
        some = np.arange(len(b)) != int(np.argmax((Z * signs > 0).mean(axis=0)))
        less = SignSearch().find((W * signs[:, None])[some], Z[:, some], M, found.gradients, rng)
        assert len(less.explained) < 0.9 * less.n_informative


def test_neurons_that_gradients_do_not_tell_of_are_not_said_to_be_superfluous():
    truth, found, _ = witnesses_of((6, 6, 6, 6, 3), 0, n=24)
    stack = stack_of(truth, 1)
    M, h = stack.maps(found.points)
    W, b = truth.weights[1], truth.biases[1]
    Z = h @ W.T + b
    rare = int(np.argmin((Z > 0).mean(axis=0)))
    never = Z[:, rare] <= 0
    seen = SignSearch().find(
        W, Z[never], M[never], found.gradients[never], np.random.default_rng(2)
    )
    assert seen.idle[rare]
    assert not seen.needed[rare]
    assert not (seen.idle & seen.needed).any()


def test_doubtful_rows_do_not_complete_a_layer_that_lacks_a_neuron():
    widths = (24, 20, 6, 4, 1)
    truth, found, _ = witnesses_of(widths, 0, n=24)
    oracle, stack = Oracle(truth, 24), stack_of(truth, 1)
    search = DeepSearch(oracle, measure_noise(oracle, 1), np.random.default_rng(2), stack)
    search.witnesses, search.is_border = found, np.zeros(len(found), dtype=bool)
    rows = np.column_stack([truth.weights[1], truth.biases[1]])
    rows /= np.linalg.norm(rows, axis=1)[:, None]

    def oriented(rows, undetermined):
        search.hypotheses[1] = Hypotheses(rows)
        return deep_layer._orient(search, FoundLayer(rows[:, :-1], rows[:, -1], undetermined))

    assert oriented(rows, np.zeros((6, 20), dtype=bool)).is_exact
    # A neuron that lacks some weights, and a row that is none and lacks more.
    lacks, undetermined = np.vstack([rows, np.eye(21)[0]]), np.zeros((7, 20), dtype=bool)
    undetermined[5, :5] = undetermined[6, 5:10] = True
    lacks[:, :-1][undetermined] = 0.0
    layer, without = oriented(lacks, undetermined), oriented(lacks[:6], undetermined[:6])
    assert layer.is_complete
    assert not layer.is_exact
    assert layer.orientation.n_informative == without.orientation.n_informative
    # The neuron that is missing is found from gradients, but for its bias.
    layer = oriented(lacks[[0, 1, 2, 3, 4, 6]], undetermined[[0, 1, 2, 3, 4, 6]])
    assert layer.n_always_on == 1
    assert not layer.is_exact
    w = layer.W[0] / np.linalg.norm(layer.W[0])
    assert abs(w @ rows[5, :-1]) > (1 - 1e-10) * np.linalg.norm(rows[5, :-1])


def test_a_last_neuron_that_hardly_ever_fires_is_told_from_the_skip():
    rng = np.random.default_rng(4)
    W = rng.standard_normal((4, 5))
    b = np.array([0.3, -0.2, 0.1, 0.0])
    plain = zoo.random_network([6, 5, 4, 1], seed=4)
    first = plain.weights[0], plain.biases[0]
    X = rng.standard_normal((20_000, 6))
    z = np.maximum(X @ first[0].T + first[1], 0.0) @ W.T
    b[3] = -np.quantile(z[:, 3], 0.998)
    truth = Network([first[0], W, plain.weights[2]], [first[1], b, plain.biases[2]])
    oracle = Oracle(truth, 6)
    layer = FoundLayer(W, b, np.zeros(W.shape, dtype=bool))
    stack = Stack(6, [first[0]], [first[1]])
    found = OutputFit().find(oracle, measure_noise(oracle, 1), stack, layer, rng)
    fires = X[z[:, 3] + b[3] > 0]
    assert len(fires) > 20
    assert np.abs(found(fires) - truth(fires)).max() < 1e-8


def test_rows_that_reach_no_output_are_told():
    truth = zoo.random_network([4, 5, 3, 2], seed=1)
    W, A = np.vstack([truth.weights[1], np.ones(5)]), np.column_stack([truth.weights[2], [0, 0]])
    b = np.append(truth.biases[1], 0.5)
    wider = Network([truth.weights[0], W, A], [truth.biases[0], b, truth.biases[2]])
    assert is_faint(wider).tolist() == [False, False, False, True]
    assert not is_faint(truth).any()


def test_a_weight_that_the_skip_has_taken_is_found_where_the_neuron_rests():
    truth = zoo.random_network([6, 5, 4, 2], seed=6)
    X = np.random.default_rng(3).standard_normal((4000, 6))
    h = np.maximum(X @ truth.weights[0].T + truth.biases[0], 0.0)
    W, b = truth.weights[1].copy(), truth.biases[1].copy()
    b[0] = -np.quantile(h @ W[0], 0.02)
    undetermined = [np.zeros((5, 6), dtype=bool), np.zeros((4, 5), dtype=bool)]
    column = int(np.argmin((h > 0).mean(axis=0)))
    undetermined[1][0, column] = True
    W[0, column] *= 0.2
    truth = Network([truth.weights[0], W, truth.weights[2]], [truth.biases[0], b, truth.biases[2]])
    lacks, V = W.copy(), np.zeros((2, 5))
    lacks[0, column] = 0.0
    V[:, column] = truth.weights[2][:, 0] * W[0, column]
    biases = [truth.biases[0], b, truth.biases[2]]
    network = Network([truth.weights[0], lacks, truth.weights[2]], biases, skip=(V, np.zeros(2)))
    assert np.abs(network(X) - truth(X)).max() > 1e-3
    filled = WeightFit(undetermined, X, truth(X)).fit(network)
    assert np.abs(filled(X) - truth(X)).max() < 1e-8


def test_breaks_are_where_known_neurons_change():
    truth = zoo.random_network([5, 6, 4, 1], seed=2)
    stack, rng = stack_of(truth, 2), np.random.default_rng(0)
    x0, v = rng.standard_normal((2, 5))
    ts = stack.breaks(x0, v, -3.0, 3.0)
    assert stack.explains(x0 + ts[:, None] * v).all()
    # Between two of them nothing changes.
    grid = np.linspace(-3.0, 3.0, 4001)
    on = np.column_stack(stack.states(x0 + grid[:, None] * v))
    changed = grid[:-1][(on[1:] != on[:-1]).any(axis=1)]
    assert all(np.abs(ts - t).min() < 2e-3 for t in changed)


def test_a_layer_without_neurons_explains_no_kink():
    stack = Stack(2, [np.eye(2), np.empty((0, 2))], [np.zeros(2), np.empty(0)])
    assert stack.explains(np.array([[0.0, 1.0], [1.0, 1.0]])).tolist() == [True, False]


def test_three_hidden_layers_are_recovered_with_their_widths():
    truth = zoo.random_network([40, 20, 10, 10, 1], seed=1)
    recovery = revelu.extract(truth, method="deep", seed=1, checks=1000)
    assert recovery.status is Status.RECOVERED
    assert recovery.method == "deep"
    assert recovery.network.architecture[:3] == (40, 20, 10)
    assert error_of(recovery.network, truth) < 1e-8
    assert recovery.ledger.n_recovery <= 300 * truth.n_parameters
    assert len(recovery.details["layers"]) >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "recovered", "exact"),  # of 4 networks, and of their layers; 3, 3, 0 and 6, 8, 4
    [((8, 6, 6, 4, 3), 2, 5), ((6, 9, 6, 1), 2, 7), ((6, 5, 5, 4, 4, 1), 0, 3)],
)
def test_deep_networks_are_recovered_or_said_not_to_be(widths, recovered, exact):
    n_recovered = n_exact = 0
    for seed in range(4):
        truth = zoo.random_network(list(widths), seed=seed + 40)
        recovery = revelu.extract(truth, seed=seed, checks=1000)
        n_exact += len(recovery.details["layers"])
        if recovery.status is not Status.RECOVERED:
            assert recovery.evidence
            continue
        n_recovered += 1
        X = np.random.default_rng(8).standard_normal((20_000, truth.dim_in))
        wrong = np.abs(recovery.network(X) - truth(X)).max(axis=1) > 1e-6 * truth(X).std()
        assert wrong.mean() <= 2 * 0.003, seed
    assert n_recovered >= recovered
    assert n_exact >= exact


def test_neighbouring_kinks_share_the_gradient_between_them():
    _, found, _ = witnesses_of((6, 5, 5, 4, 1), 0)
    assert len(np.unique(found.points, axis=0)) == len(found.points) < 1.3 * len(found)


def test_measured_gradients_show_where_a_network_is_another():
    truth, found, _ = witnesses_of((6, 5, 5, 4, 1), 0)
    oracle = Oracle(truth, 6)
    noise, rng = measure_noise(oracle, 1), np.random.default_rng(2)
    assert not len(InputChoice().suspects(truth, found, noise, rng))
    W, b = truth.weights[1].copy(), truth.biases[1].copy()
    W[0], b[0] = 0.0, -1.0
    biases = [truth.biases[0], b, *truth.biases[2:]]
    lacks = Network([truth.weights[0], W, *truth.weights[2:]], biases)
    found = InputChoice().suspects(lacks, found, noise, rng)
    assert len(found)
    assert (stack_of(truth, 2).outputs(found)[:, 0] > 0).all()


def test_a_neuron_that_is_always_on_is_found_from_what_gradients_leave():
    truth, found, _ = witnesses_of((8, 8, 6, 6, 2), 1)
    stack = stack_of(truth, 1)
    W, b = truth.weights[1], truth.biases[1]
    M, h = stack.maps(found.points)
    Z = h @ W.T + b
    # The one neuron that is on at all of these points.
    always_on = int(np.argmax((Z > 0).mean(axis=0)))
    some = Z[:, always_on] > 0
    others = np.arange(len(b)) != always_on
    rng = np.random.default_rng(3)
    signs = rng.choice([-1.0, 1.0], others.sum())
    u, turned = AlwaysOnSearch().find_row(
        W[others] * signs[:, None],
        Z[some][:, others] * signs,
        M[some],
        found.gradients[some],
        rng,
    )
    assert abs(u @ W[always_on]) > (1 - 1e-10) * np.linalg.norm(W[always_on])
    assert (turned == signs).all()


def test_no_row_explains_what_two_missing_neurons_leave():
    truth, found, _ = witnesses_of((8, 8, 6, 6, 2), 1)
    stack = stack_of(truth, 1)
    W, b = truth.weights[1], truth.biases[1]
    M, h = stack.maps(found.points)
    Z = h @ W.T + b
    few = np.argsort((Z > 0).mean(axis=0))[:-2]
    rng = np.random.default_rng(3)
    assert AlwaysOnSearch().find_row(W[few], Z[:, few], M, found.gradients, rng) is None


def test_weights_follow_from_gradients_where_regions_agree():
    truth, found, _ = witnesses_of((8, 8, 6, 6, 2), 1)
    stack = stack_of(truth, 1)
    W, b = truth.weights[1], truth.biases[1]
    M, h = stack.maps(found.points)
    on = h @ W.T + b > 0
    j = int(np.argmax(on.mean(axis=0)))
    others = np.arange(len(b)) != j
    undetermined = np.zeros(8, dtype=bool)
    undetermined[2] = True
    lacks = np.where(undetermined, 0.0, W[j])
    row = AlwaysOnSearch().find_weights(
        lacks, undetermined, W[others], on[:, others], M, found.gradients
    )
    assert np.abs(row - W[j]).max() < 1e-6 * np.abs(W[j]).max()
    # One region says the same at all its points.
    same = np.repeat(np.flatnonzero(on[:, j] & M[:, 2].any(axis=1))[:1], 50)
    row = AlwaysOnSearch().find_weights(
        lacks, undetermined, W[others], on[same][:, others], M[same], found.gradients[same]
    )
    assert (row == lacks).all()


@pytest.mark.parametrize("n_outputs", [1, 4])
def test_a_skip_of_undetermined_weights_is_taken_for_them(n_outputs):
    truth = zoo.random_network([6, 5, 4, n_outputs], seed=6)
    X = np.random.default_rng(3).standard_normal((2000, 6))
    h = np.maximum(X @ truth.weights[0].T + truth.biases[0], 0.0)
    W, b, A = truth.weights[1].copy(), truth.biases[1].copy(), truth.weights[2]
    b[1] = 1.0 - (h @ W[1]).min()
    truth = Network([truth.weights[0], W, A], [truth.biases[0], b, truth.biases[2]])
    undetermined = np.zeros((4, 5), dtype=bool)
    undetermined[1, 2] = True
    lacks = np.where(undetermined, 0.0, W)
    # Another neuron has the other sign: its affine map is in the skip, too.
    V = np.outer(A[:, 1], undetermined[1] * W[1]) + np.outer(A[:, 0], W[0])
    signs = np.array([-1.0, 1.0, 1.0, 1.0])
    biases = [truth.biases[0], b * signs, truth.biases[2] + A[:, 0] * b[0]]
    skip = V, np.zeros(n_outputs)
    network = Network([truth.weights[0], lacks * signs[:, None], A], biases, skip=skip)
    assert np.abs(network(X) - truth(X)).max() < 1e-10
    plain = absorb_skip(network, undetermined)
    assert plain.skip is None
    assert plain.architecture == truth.architecture
    assert np.abs(plain(X) - truth(X)).max() < 1e-10
    assert np.abs(plain.weights[1] - W).max() < 1e-10
    # Where the known weights do not allow it, it stays.
    assert absorb_skip(network, np.roll(undetermined, 1, axis=1)).skip is not None


def test_a_skip_of_rank_one_is_one_more_neuron():
    plain = zoo.random_network([6, 5, 4, 3], seed=6)
    rng = np.random.default_rng(1)
    V = np.outer(rng.standard_normal(3), rng.standard_normal(5))
    network = Network(plain.weights, plain.biases, skip=(V, np.zeros(3)))
    wider = without_skip(network, rng)
    X = 2.0 * rng.standard_normal((5000, 6))
    assert wider.skip is None
    assert wider.architecture == (6, 5, 5, 3)
    assert np.abs(wider(X) - network(X)).max() < 1e-10


def test_neurons_that_always_fire_do_not_end_the_search():
    truth = zoo.random_network([10, 10, 10, 10, 10], seed=7_600_000)
    X = np.random.default_rng(0).standard_normal((4000, 10))
    assert (stack_of(truth, 2).states(X)[1].mean(axis=0) > 0.99).any()
    recovery = revelu.extract(truth, method="deep", seed=1, checks=1000)
    assert recovery.status is Status.RECOVERED
    assert recovery.network.architecture[:3] == (10, 10, 10)
    assert error_of(recovery.network, truth) < 1e-8
    assert recovery.ledger.n_recovery <= 300 * truth.n_parameters


def test_of_rows_of_one_neuron_that_which_knows_most_is_kept():
    rng = np.random.default_rng(1)
    v, other = rng.standard_normal((2, 7))
    part = np.where(np.arange(7) < 3, 0.0, -2.0 * v)
    known = Hypotheses(np.array([part, other, v]))
    known.merge()
    assert (known.rows == np.array([other, v])).all()
    known.learn(part)
    assert (known.rows == np.array([other, v])).all()
    less = np.where(np.arange(7) < 2, 0.0, other)
    known.rows[0] = less
    known.learn(-other)
    assert np.allclose(known.rows, [other, v])
