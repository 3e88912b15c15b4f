"""Diagnosis: conditions whose value is known by hand, by queries and from the weights."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import revelu
from revelu.network.arrangement import arrangement
from revelu.network.regularity import regularity
from revelu.network.separations import distance
from revelu.oracle import Float32, degrade, measure_noise
from revelu.probe.axes import kink_normals, scan_axis
from revelu.recovery import Status

zoo = revelu.zoo

SEEDS = st.integers(0, 10**6)

# Axis 0 is cut at 1 and 1.25, axis 1 at -2 and 4.
CLOSE = revelu.Network([[[1.0, -0.5], [1.0, 0.3125]], [[1.0, -2.0]]], [[-1.0, -1.25], [0.5]])


def exactly(network):
    return regularity(arrangement(network, range(network.dim_in)))


def axis_points(network, axis, t):
    X = np.zeros((len(t), network.dim_in))
    X[:, axis] = t
    return X


# -- the arrangement --------------------------------------------------------------------


@settings(max_examples=25)
@given(SEEDS, st.sampled_from([[3, 5, 1], [4, 3, 5, 2], [3, 4, 4, 3, 1], [2, 1]]), st.booleans())
def test_pieces_are_the_network_on_every_axis(seed, widths, with_skip):
    network = zoo.random_network(widths, seed=seed)
    if with_skip and len(widths) > 2:
        V = np.random.default_rng(seed).standard_normal((widths[-1], widths[-3]))
        network = revelu.Network(network.weights, network.biases, (V, np.ones(widths[-1])))
    found = arrangement(network, range(network.dim_in))
    t = np.linspace(-9.0, 9.0, 801)
    for cut in found.cuts:
        value, slope = cut.pieces[np.searchsorted(cut.kinks, t)].transpose(1, 0, 2)
        wanted = network(axis_points(network, cut.axis, t))
        np.testing.assert_allclose(value + slope * t[:, None], wanted, atol=1e-10)
        # Every kink is one, and lies on the hyperplane it is said to lie on.
        assert (np.abs(np.diff(cut.pieces[:, 1], axis=0)).max(axis=1, initial=0) > 0).all()
        own = cut.hyperplanes
        at = found.normals[own, cut.axis] * cut.kinks + found.offsets[own]
        np.testing.assert_allclose(at, 0.0, atol=1e-12 * (1 + np.abs(cut.kinks).max(initial=0)))


def test_hyperplanes_that_no_output_depends_on_are_not_critical():
    network = revelu.Network([np.eye(2) + 0.5, [[1.0, 0.0]]], [[1.0, 2.0], [0.0]])
    found = arrangement(network, range(2))
    assert [neuron[:2] for neuron in found.neurons] == [(0, 0)]
    assert [len(cut.kinks) for cut in found.cuts] == [1, 1]


# -- conditions known by hand, both ways ------------------------------------------------


@pytest.fixture(scope="module")
def close():
    return revelu.diagnose(CLOSE)


@pytest.mark.parametrize("source", ["measured", "exact"])
@pytest.mark.parametrize(
    ("name", "delta"),
    [
        ("nearest_kink", 1.0),
        ("farthest_kink", 1 / 4.0),
        ("shortest_piece", 0.25),
        # (1.25, 0) is 0.25 along axis 0 from where the first hyperplane crosses it.
        ("degeneracy", 0.25 / np.hypot(1.0, 0.5)),
        # det / product of the lengths.
        ("hyperplane_distance", 0.8125 / np.hypot(1.0, 0.5) / np.hypot(1.0, 0.3125)),
        ("axis_angle", 0.3125 / np.hypot(1.0, 0.3125)),
    ],
)
def test_conditions_are_those_computed_by_hand(close, source, name, delta):
    condition = getattr(close, source)[name]
    assert condition.holds is True
    assert condition.delta == pytest.approx(delta, rel=1e-8)


def test_overall_delta_is_the_smallest(close):
    deltas = [c.delta for c in close.exact.conditions if c.delta is not None]
    assert close.delta == min(deltas)
    assert close.status is None
    assert close.ledger.n_queries > 64
    assert "most at risk" in close.evidence[0]
    assert close.at_risk.text in close.evidence[0]


@given(SEEDS, st.floats(1e-8, np.pi / 2))
def test_distance_of_hyperplanes_is_the_sine_of_their_angle(seed, angle):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    n = np.cos(angle) * Q[0] + np.sin(angle) * Q[1]
    n /= np.linalg.norm(n)
    assert distance(Q[0], n) == pytest.approx(np.sin(angle), rel=1e-6)
    assert distance(Q[0], -n) == pytest.approx(np.sin(angle), rel=1e-6)


@pytest.mark.parametrize("angle", [0.5, 1e-3, 1e-6])
def test_hyperplanes_at_a_known_angle(angle):
    w = np.array([[0.6, 0.8], [0.6 * np.cos(angle) - 0.8 * np.sin(angle), 0.0]])
    w[1, 1] = 0.8 * np.cos(angle) + 0.6 * np.sin(angle)
    network = revelu.Network([w, [[1.0, 1.5]]], [[-1.0, 0.7], [0.0]])
    found = revelu.diagnose(network)
    for figures in (found.measured, found.exact):
        assert figures["hyperplane_distance"].delta == pytest.approx(np.sin(angle), rel=1e-4)


def test_neuron_parallel_to_an_axis_fails_or_is_bounded():
    network = revelu.Network([[[1.0, 0.0], [0.4, 1.0]], [[1.0, 1.0]]], [[-1.0, 2.0], [0.0]])
    found = revelu.diagnose(network)
    exact, measured = found.exact["axis_angle"], found.measured["axis_angle"]
    assert (exact.holds, exact.delta) == (False, 0.0)
    assert measured.at_most
    assert measured.delta < 1e-9
    assert found.delta == 0.0
    assert found.at_risk.name == "axis_angle"
    assert "axis 1" in exact.text


def test_neurons_on_one_hyperplane():
    found = revelu.diagnose(zoo.with_duplicates([5, 6, 1], seed=2))
    assert found.exact["shared_hyperplane"].holds is False
    assert found.measured["shared_hyperplane"].holds is None
    # What queries see is the network with the duplicates merged.
    assert found.measured.n_hyperplanes == found.exact.n_hyperplanes < 6


def test_pieces_that_share_an_affine_function():
    # relu(x - 1) - 2 relu(x - 2) + relu(x - 3): 0 on both sides of a bump.
    network = revelu.Network([np.ones((3, 1)), [[1.0, -2.0, 1.0]]], [[-1.0, -2.0, -3.0], [0.0]])
    found = revelu.diagnose(network)
    assert found.exact["shared_piece"].holds is False
    assert found.measured["shared_piece"].holds is False
    assert exactly(zoo.random_network([3, 4, 1], seed=1))["shared_piece"].holds is True


@given(SEEDS)
def test_grid_keeps_its_distance_from_every_kink(seed):
    network = zoo.random_network([2, 4, 1], seed=seed)
    found = arrangement(network, range(2))
    condition = regularity(found)["grid"]
    assume(condition.delta is not None)
    delta = Fraction(condition.delta)
    level = 0
    while Fraction(1, 2**level) > delta**2 / 2:
        level += 1
    spacing = Fraction(1, 2**level) / delta
    for t in (Fraction(float(t)) for cut in found.cuts for t in cut.kinks):
        apart = abs(t - round(t / spacing) * spacing)
        assert apart >= delta**2 * (1 - Fraction(1, 10**6))


def test_hyperplanes_where_one_neuron_alone_is_on_are_parallel_without_harm():
    # Axis 0 sees neuron 0 alone: both second-layer hyperplanes there are x_0 = const.
    W = [[1.0, 0.1], [-1.0, 1.0]]
    network = revelu.Network(
        [W, [[1.0, 0.5], [1.0, -0.7]], [[1.0, 1.0]]], [[0.2, -0.1], [-1.0, -2.0], [0.0]]
    )
    found = arrangement(network, range(2))
    assert found.tied.any()
    condition = regularity(found)["hyperplane_distance"]
    assert condition.holds
    assert condition.delta > 1e-3


def test_second_layer_rows_that_ignore_a_neuron_go_on_straight():
    # The second layer reads neuron 0 only, so that neuron 1 bends nothing of it.
    network = revelu.Network(
        [[[1.0, 0.2], [-0.3, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]]],
        [[3.0, -1.0], [-4.5, -0.25], [0.0]],
    )
    found = arrangement(network, range(2))
    states = {n[2] for n in found.neurons if n[:2] == (1, 0)}
    assert (len(states) > 1) == (regularity(found)["layer_state"].holds is False)
    assert len(states) > 1


# -- queries against weights ------------------------------------------------------------


@settings(max_examples=8)
@given(SEEDS, st.sampled_from([[5, 7, 1], [4, 6, 3], [4, 4, 5, 1], [6, 3, 4, 2]]))
def test_queries_measure_what_the_weights_say(seed, widths):
    network = zoo.random_network(widths, seed=seed)
    found = revelu.diagnose(network, seed=1)
    assert found.measured.n_kinks <= found.exact.n_kinks
    # Kinks too near each other, which the figures from the weights then show.
    assume(found.measured.n_kinks == found.exact.n_kinks and found.exact.delta > 1e-5)
    for name in ("nearest_kink", "farthest_kink", "shortest_piece", "axis_angle"):
        assert found.measured[name].delta == pytest.approx(found.exact[name].delta, rel=1e-4)
    if len(widths) == 3:
        assert not any("hidden layer" in note for note in found.warnings)


def test_hyperplanes_that_end_tell_of_a_second_layer():
    network = zoo.random_network([5, 4, 7, 2], seed=1)
    found = revelu.diagnose(revelu.open_oracle(network))
    assert any("more than one hidden layer" in note for note in found.warnings)
    assert found.exact is None
    # Widths are not known, and the theorems on one hidden layer do not apply.
    assert set(found.query_counts.values()) == {None}


@settings(max_examples=10)
@given(SEEDS)
def test_normals_err_by_no_more_than_they_say(seed):
    network = zoo.random_network([6, 8, 2], seed=seed)
    oracle = revelu.open_oracle(network)
    noise = measure_noise(oracle, seed=1)
    rows = network.weights[0] / np.linalg.norm(network.weights[0], axis=1, keepdims=True)
    scan = scan_axis(oracle, noise, 2, np.random.default_rng(1), (-np.inf, np.inf))
    normals, errors = kink_normals(oracle, noise, scan, 2)
    known = np.isfinite(errors)
    assert known.sum() >= 4
    for n, error in zip(normals[known], errors[known], strict=True):
        apart = min(np.linalg.norm(s * rows - n, axis=1).min() for s in (1.0, -1.0))
        assert apart <= 8.0 * 6**0.5 * error + 1e-15


def test_precision_foretells_the_error_of_a_row():
    """A piece a thousand times narrower costs three digits."""

    def network(gap):
        W = np.array([[1.0, 0.5], [1.0, -0.7]])
        return revelu.Network([W, [[1.0, 1.0]]], [[-1.0, -1.0 - gap], [0.0]])

    wide, narrow = (revelu.diagnose(network(gap)).precision for gap in (0.5, 0.5e-3))
    assert narrow.digits_lost - wide.digits_lost == pytest.approx(3.0, abs=0.5)
    assert "digits fewer" in narrow.text


# -- smoothing --------------------------------------------------------------------------


@pytest.mark.parametrize("amplitude", [0.0, -1.0, np.nan, np.inf, True, "1"])
def test_amplitude_must_be_a_positive_number(amplitude):
    with pytest.raises(revelu.InputError, match="amplitude"):
        revelu.diagnose(CLOSE, perturb=amplitude)


def test_smoothing_makes_a_parallel_neuron_general():
    network = revelu.Network([[[1.0, 0.0], [0.4, 1.0]], [[1.0, 1.0]]], [[-1.0, 2.0], [0.0]])
    found = revelu.diagnose(network, perturb=1e-2, seed=3)
    assert found.exact.delta == 0.0
    assert found.perturbed.regularity.delta > 0.0
    assert found.perturbed.lemma_amplitude == 2.0**-2
    assert revelu.diagnose(network, perturb=1e-2, seed=3).perturbed.network == (
        found.perturbed.network
    )


def test_noise_that_float64_has_no_bits_for_is_said():
    network = zoo.random_network([60, 2, 1], seed=1)
    found = revelu.diagnose(network, perturb=1e-30, budget=0)
    notes = " ".join(found.warnings)
    assert "lost in rounding" in notes
    assert "2^-60" in notes


# -- how it ends ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("tanh", Status.NOT_IN_CLASS),
        ("square", Status.NOT_IN_CLASS),
        ("step", Status.NOT_IN_CLASS),
        ("random_answers", Status.NOT_DETERMINISTIC),
    ],
)
def test_other_functions_get_a_reason_and_no_figures(kind, status):
    found = revelu.diagnose(zoo.OUTSIDE[kind]([4, 5, 1], seed=1), dim_in=4)
    assert (found.status, found.delta, found.regularity) == (status, None, None)
    assert found.evidence


def test_answers_without_digits_leave_the_weights():
    network = zoo.random_network([6, 5, 1], seed=1)
    blurred = revelu.diagnose(degrade(network, Float32()))
    assert (blurred.status, blurred.delta) == (Status.PARTIAL, None)
    assert "float32" in blurred.evidence[0]


def test_saturated_target_says_so():
    found = revelu.diagnose(lambda X: np.eye(2)[(X[:, 0] > 0) * 1], dim_in=3)
    assert (found.status, found.delta) == (Status.UNVERIFIED, None)
    assert "saturated" in found.evidence[0]


def test_classifier_is_followed_as_far_as_it_answers():
    network = zoo.random_network([4, 5, 3], seed=2)

    def answers(X):
        E = np.exp(network(X) - network(X).max(axis=1, keepdims=True))
        return E / E.sum(axis=1, keepdims=True)

    found = revelu.diagnose(answers, dim_in=4)
    truth = revelu.diagnose(network)
    assert found.probabilities
    near = ("nearest_kink", "shortest_piece")
    for name in near:
        assert found.measured[name].delta == pytest.approx(truth.exact[name].delta, rel=1e-4)


@pytest.mark.parametrize("budget", [0, 63, 64, 200, 500])
def test_budget_is_never_exceeded_and_keeps_what_was_seen(budget):
    network = zoo.random_network([10, 16, 1], seed=1)
    found = revelu.diagnose(network, budget=budget)
    assert found.status is Status.BUDGET_EXHAUSTED
    assert found.ledger.n_queries <= budget
    assert (found.measured is None) == (found.n_axes == 0)
    assert found.exact.n_kinks == 160


def test_same_seed_same_queries():
    network = zoo.random_network([20, 4, 1], seed=1)
    first, again, other = (revelu.diagnose(network, seed=s) for s in (1, 1, 2))
    assert first.ledger == again.ledger
    assert first.measured == again.measured != other.measured
    assert any("16 of 20 axes" in note for note in first.warnings)


def test_affine_target_is_regular():
    found = revelu.diagnose(zoo.affine(4, 2, seed=1))
    assert (found.delta, found.status, found.at_risk) == (1.0, None, None)


def test_weights_are_needed_to_perturb():
    with pytest.raises(revelu.InputError, match="weights"):
        revelu.diagnose(lambda X: X.sum(axis=1), perturb=0.1, dim_in=3)


def test_progress_is_told():
    seen = []
    revelu.diagnose(CLOSE, progress=seen.append)
    assert seen[-1].n_queries > 64
    assert any("axis 1 of 2" in moment.message for moment in seen)


def test_labels_alone_are_counted():
    """The rarest of these classes, 0.9% of inputs, is none of the first 64 answers."""
    network = revelu.zoo.random_network([6, 5, 3], seed=2)

    def label(X):
        return network(X).argmax(axis=1)

    X = np.random.default_rng(1).standard_normal((100_000, 6))
    shares = np.bincount(label(X), minlength=3) / len(X)
    for found in (
        revelu.diagnose(label, dim_in=6, labels=True),
        revelu.diagnose(network.__call__, dim_in=6, labels=True),
    ):
        assert (found.kind.function, found.kind.extract_with) == ("steps", "--labels")
        said = found.kind.evidence[0]
        assert f"labels of {(shares > 0).sum()} classes" in said
        assert found.ledger.n_queries == found.kind.n_queries == 2000
        assert found.status is Status.PARTIAL
    known = revelu.diagnose(network, labels=True)
    assert (known.status, known.exact is not None) == (None, True)


def test_labels_of_which_one_is_rare_are_taken_for_labels():
    network = revelu.zoo.random_network([6, 5, 3], seed=2)
    found = revelu.diagnose(lambda X: network(X).argmax(axis=1), dim_in=6)
    assert found.kind.extract_with == "--labels"


@pytest.mark.parametrize("domain", [None, revelu.Domain.box(0.0, 2.0)])
def test_a_box_is_not_left(domain):
    network, asked = revelu.zoo.random_network([6, 5, 2], seed=3), []

    def kept(function):
        def ask(X):
            asked.append(X)
            return function(X)

        return ask

    where = {"box": (0.0, 2.0)} if domain is None else {"domain": domain}
    found = revelu.diagnose(kept(network), dim_in=6, **where)
    assert found.kind.function == "piecewise linear"
    assert found.status is Status.PARTIAL
    assert "not inside a box" in found.evidence[0]
    curved = revelu.diagnose(kept(lambda X: np.sin(3.0 * network(X))), dim_in=6, **where)
    assert curved.kind.function == "smooth"
    X = np.vstack(asked)
    assert (X >= 0.0).all()
    assert (X <= 2.0).all()
    with pytest.raises(revelu.InputError, match="everywhere"):
        revelu.diagnose(network, labels=True, **where)
