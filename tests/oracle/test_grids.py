"""Grids of any step: read from answers, and the standard error of each answer on them."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import revelu
from revelu import Network, Status, zoo
from revelu.oracle import measure_noise
from revelu.oracle.grid import Grid, read_grid
from revelu.oracle.numbers import Numbers, read_numbers
from revelu.report.verdicts import verdict


def on_grid(Y, step):
    return np.rint(Y / step) * step


def single(Y):
    return Y.astype(np.float32).astype(np.float64)


def in_single(network, X):
    """A network computed in float32."""
    H = X.astype(np.float32)
    for W, b in zip(network.weights[:-1], network.biases[:-1], strict=True):
        H = np.maximum(H @ W.T.astype(np.float32) + b.astype(np.float32), 0.0)
    W, b = network.weights[-1], network.biases[-1]
    return (H @ W.T.astype(np.float32) + b.astype(np.float32)).astype(np.float64)


def scaled(network, factor):
    (W, A), (b, c) = network.weights, network.biases
    return Network([W, factor * A], [b, factor * c])


def softmax(Z):
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def errors_in_sigma(network, answer, *, far=1.0):
    """Root mean square of an answer's error over its standard error."""
    d = network.dim_in
    noise = measure_noise(revelu.open_oracle(answer, dim_in=d), seed=0)
    X = single(far * np.random.default_rng(7).standard_normal((400, d)))
    Y = answer(X)
    return np.sqrt(np.mean(((Y - network(X)) / noise.sigma_at(X, Y)) ** 2)), noise


@given(
    step=st.one_of(
        st.integers(2, 36).map(lambda k: 2.0**-k),
        st.integers(3, 3000).map(lambda n: 1.0 / n),
        st.floats(1e-5, 0.05),
    ),
    size=st.sampled_from([0.5, 3.0, 100.0]),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=40, deadline=None)
def test_a_grid_of_any_step_is_read(step, size, seed):
    Y = on_grid(size * np.random.default_rng(seed).standard_normal(200), step)
    # Fewer multiples of a step than a forest has trees may be votes.
    assume(step == 2.0 ** np.rint(np.log2(step)) or np.ptp(Y) >= 110.0 * step)
    grid = read_grid(Y)
    assert grid is not None
    assert grid.spacing(Y) == pytest.approx(step, rel=1e-9)
    fresh = on_grid(size * np.random.default_rng(seed + 1).standard_normal(200), step)
    assert grid.holds(fresh).all()
    assert not grid.holds(fresh + 0.3 * step).any()


def test_a_grid_whose_small_multiples_are_float32_numbers_holds_larger_ones():
    Y = on_grid(4.0 * np.random.default_rng(0).standard_normal(200), 2.0**-20)
    assert (Y.astype(np.float32) == Y).all()
    grid, far = read_grid(Y), on_grid(100.0 * np.random.default_rng(1).standard_normal(200), 2**-20)
    assert (far.astype(np.float32) != far).any()
    assert grid.holds(far).all()
    assert not grid.holds(far + 0.3 * 2.0**-20).any()


@given(seed=st.integers(0, 2**16), size=st.sampled_from([1e-3, 1.0, 300.0]))
@settings(max_examples=40, deadline=None)
def test_numbers_that_are_not_rounded_are_on_no_grid(seed, size):
    Y = size * np.random.default_rng(seed).standard_normal(56)
    assert read_grid(Y) is None
    assert read_grid(single(Y)) is None
    # Significant digits are no multiples of a step: those of larger numbers are wider.
    mantissa, exponent = np.frexp(Y)
    assert read_grid(np.ldexp(np.rint(np.ldexp(mantissa, 14)), exponent - 14)) is None


@pytest.mark.parametrize("seed", range(3))
def test_sums_that_cancel_in_float32_are_on_no_grid(seed):
    network = zoo.random_network([10, 16, 1], seed=seed)
    X = np.random.default_rng(seed).standard_normal((56, 10))
    assert read_numbers(in_single(network, X)) == Numbers("float32")


@pytest.mark.parametrize("low", [0.0, 1.0, 2.0])
def test_few_numbers_show_a_coarse_grid(low):
    """Eighths are decimals of three places, or of four digits, hardly any of which occur."""
    Y = low + np.array([[0.125, 0.25, 0.5, 0.625, 0.875, 0.125]])
    assert read_grid(Y) == Grid(2, places=3)


def test_grids_are_named():
    assert str(Grid(2, places=16)) == "a grid of 2^-16"
    assert str(read_grid(on_grid(np.linspace(-3.0, 5.0, 300), 1 / 512))) == "a grid of 2^-9"
    assert str(read_grid(on_grid(np.linspace(-3.0, 5.0, 300), 1 / 255))) == "a grid of 1/255"
    assert str(read_grid(on_grid(np.linspace(-3.0, 5.0, 300), 0.05))) == "a grid of 1/20"


@given(
    step=st.one_of(
        st.integers(6, 39).map(lambda k: 2.0**-k),
        st.integers(2, 12).map(lambda p: 10.0**-p),
        st.integers(60, 1000).map(lambda n: 1.0 / n),
    ),
    size=st.sampled_from([1.0, 30.0]),
)
@settings(max_examples=25, deadline=None)
def test_answers_on_a_grid_err_by_its_step_near_and_far(step, size):
    network = scaled(zoo.random_network([6, 8, 1], seed=1), size)
    for far in (1.0, 8.0):
        ratio, noise = errors_in_sigma(network, lambda X: on_grid(network(X), step), far=far)
        assert noise.law == "rounded"
        assert 0.85 < ratio < 1.15


@pytest.mark.parametrize(
    ("places", "low"), [(3, 0.85), (4, 0.85), (5, 0.85), (6, 0.3), (7, 0.3), (8, 0.3)]
)
@pytest.mark.parametrize("size", [1.0, 100.0])
def test_what_float32_sums_add_to_their_rounding_is_measured(places, low, size):
    """Where the sums decide, the error is twice the mean one, as for all that is computed so."""
    network = scaled(zoo.random_network([10, 16, 1], seed=1), size)
    ratio, _ = errors_in_sigma(network, lambda X: np.round(in_single(network, X), places))
    assert (low if size == 1.0 else 0.3) < ratio < 1.4


@pytest.mark.parametrize("places", [5, 6, 8])
@pytest.mark.parametrize("seed", range(3))
def test_decimals_that_are_made_float32_numbers_keep_their_own_error(places, seed):
    """Small probabilities have fewer digits than float32 numbers of their size."""
    network = scaled(zoo.random_network([13, 10, 3], seed=seed), 4.0)

    def answer(X):
        return single(np.round(softmax(network(X)), places))

    noise = measure_noise(revelu.open_oracle(answer, dim_in=13), seed=0).of_answers
    X = np.random.default_rng(7).standard_normal((400, 13))
    P = answer(X)
    ratio = np.sqrt(np.mean(((P - softmax(network(X))) / noise.sigma(P)) ** 2))
    assert noise.numbers.grid.places == places
    assert 0.85 < ratio < 1.15


@pytest.mark.parametrize(("bits", "budget"), [(39, 4.5), (31, 4.5), (23, 5.0), (15, 6.5)])
def test_a_network_on_a_grid_is_certified_to_its_step(bits, budget):
    truth = zoo.random_network([20, 10, 1], seed=8650100)
    step = 2.0**-bits

    def answer(X):
        return on_grid(truth(X), step)

    recovery = revelu.extract(answer, dim_in=20, seed=1)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert recovery.network.architecture == (20, 10, 1)
    assert f"rounding to a grid of 2^-{bits}" in recovery.certificate.statement
    X = np.random.default_rng(5).standard_normal((4000, 20))
    errors = recovery.network(X) - answer(X)
    assert recovery.certificate.tolerance <= 10.0 * np.sqrt((errors**2).mean())
    assert np.sqrt(((recovery.network(X) - truth(X)) ** 2).mean()) < step
    assert recovery.ledger.n_recovery < budget * truth.n_parameters


def test_fixed_point_answers_that_saturate_are_recovered_with_their_caps():
    """16 bits, six of them before the point, as programmable gate arrays answer."""
    truth = scaled(zoo.random_network([20, 10, 1], seed=8650000), 12.0)

    def answer(X):
        return np.clip(on_grid(truth(X), 2.0**-10), -32.0, 32.0 - 2.0**-10)

    recovery = revelu.extract(answer, dim_in=20, seed=8650000)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert any("never fall below -32 and never exceed" in note for note in recovery.evidence)
    X = np.random.default_rng(5).standard_normal((4000, 20))
    assert np.abs(recovery.network(X) - answer(X)).max() <= 2.0**-9
    assert recovery.ledger.n_recovery < 13 * truth.n_parameters


def test_a_classifier_that_sends_its_decimals_as_float32_is_certified():
    truth = scaled(zoo.random_network([4, 6, 3], seed=3), 3.0)

    def answer(X):
        return single(np.round(softmax(truth(X)), 8))

    recovery = revelu.extract(answer, dim_in=4, seed=0)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    X = np.random.default_rng(5).standard_normal((4000, 4))
    assert np.abs(softmax(recovery.network(X)) - answer(X)).max() < 2e-7
    assert recovery.ledger.n_recovery < 20 * truth.n_parameters


@pytest.mark.slow
def test_answers_too_coarse_for_lines_say_how_many_digits_would_do():
    truth = zoo.random_network([40, 20, 1], seed=8651000)
    recovery = revelu.extract(lambda X: on_grid(truth(X), 2.0**-7), dim_in=40, seed=0, budget=400)
    assert recovery.status is Status.BUDGET_EXHAUSTED
    assert any("as 3 digits more would" in said for said in recovery.evidence)
    two_more = 2.0**-7 / 100.0
    recovery = revelu.extract(lambda X: on_grid(truth(X), two_more), dim_in=40, seed=0)
    assert recovery.status is Status.RECOVERED, recovery.evidence
    assert recovery.ledger.n_recovery < 6 * truth.n_parameters


@pytest.mark.parametrize(
    "grid",
    [
        *(Grid(10, places=4), Grid(10, digits=4), Grid(10, places=5, single=True)),
        *(Grid(2, places=8), Grid(2, digits=11), Grid(10, step=0.05)),
    ],
    ids=str,
)
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(1e-2, 1e3))
@settings(deadline=None, max_examples=20)
def test_the_nearest_number_of_a_grid_is_on_it_and_half_a_step_away_at_most(grid, seed, size):
    Y = size * np.random.default_rng(seed).standard_normal((20, 3))
    Y[0] = 0.0
    found = grid.nearest(Y)
    assert grid.holds(found).all()
    # Next to a power of the base the step is that of the number above.
    most = 0.5 * np.maximum(grid.spacing(Y), grid.spacing(found))
    assert (
        np.abs(found - Y)
        <= most * (1.0 + 1e-9) + np.spacing(np.abs(Y)) + 1e-7 * grid.single * np.abs(Y)
    ).all()
    assert np.array_equal(grid.nearest(found), found)


def test_numbers_are_rounded_as_a_target_writes_them():
    Y = np.random.default_rng(0).standard_normal((50, 2))
    assert np.array_equal(Numbers("float64").nearest(Y), Y)
    assert np.array_equal(Numbers("float32").nearest(Y), Y.astype(np.float32))
    rounded = read_numbers(np.round(Y, 3))
    assert np.array_equal(rounded.nearest(Y), np.round(Y, 3))


def test_answers_that_are_0_or_have_overflowed_show_no_grid():
    assert read_numbers(np.array([[0.0], [np.inf]])).grid is None
    assert read_grid(np.zeros((3, 1))) is None


def test_what_has_overflowed_is_a_number_of_every_form_and_what_is_none_of_none():
    for grid in (Grid(10, digits=4), Grid(10, digits=4, single=True), Grid(10, places=3)):
        assert grid.holds(np.array([[np.inf], [0.125]])).all()
        assert not grid.holds(np.array([[np.nan]])).any()


@pytest.mark.parametrize("places", [2, 3])
def test_a_few_rounded_values_tell_that_they_were_rounded(places):
    Y = 10.0**-places * np.array([[0.0], [1.0], [10.0**places], [10.0**places - 1.0]])
    assert read_numbers(np.round(Y, places)).grid == Grid(10, places=places)


def test_shares_that_tell_neither_form_are_of_fixed_places():
    rng = np.random.default_rng(0)
    large = rng.uniform(0.1, 1.0, (56, 1))
    assert read_numbers(np.round(large, 3)).grid == Grid(10, places=3)
    assert read_numbers(np.round(large + 1.0, 3)).grid == Grid(10, digits=4)
    small = np.vstack([large, 10.0 ** rng.uniform(-5.0, -1.0, (20, 1))])
    digits = np.array([[float(f"{y:.3g}")] for y in small.ravel()])
    assert read_numbers(digits).grid == Grid(10, digits=3)
    assert read_numbers(np.round(small, 3)).grid == Grid(10, places=3)


@pytest.mark.parametrize("seed", range(4))
def test_steep_probabilities_of_two_decimals_are_no_disagreement(seed):
    truth = scaled(zoo.random_network([4, 6, 2], seed=seed), 6.0)
    found = revelu.verify(truth, lambda X: np.round(softmax(truth(X)), 2), link="softmax")
    certificate = found.certificate
    assert certificate.fraction_within == 1.0
    # What the digits of an output do not tell is said, and is no other network's doing.
    assert certificate.passed or certificate.is_mute
    assert not any("disagree" in said for said in found.evidence)
    assert "disagree" not in verdict("verify", found.to_dict()).words


def test_answers_that_hardly_vary_have_places_if_smaller_ones_have_as_many():
    Y = np.array([[3.282], [3.283], [3.284], [3.285], [3.287], [-0.345], [-0.233]])
    assert read_grid(Y) == Grid(10, places=3)
    assert read_grid(np.vstack([Y, [[0.2331]]])) == Grid(10, digits=4)


def test_large_half_precision_numbers_are_not_taken_for_decimals():
    Y = np.exp(np.random.default_rng(0).uniform(5.0, 11.0, (56, 1))).astype(np.float16)
    assert read_numbers(Y.astype(np.float64)).grid == Grid(2, digits=11)
    whole = np.rint(Y.astype(np.float64) + 0.3) + 0.5
    assert read_numbers(whole).grid != Grid(2, digits=11)


@pytest.mark.parametrize("digits", [3, 4, 6])
@pytest.mark.parametrize("seed", range(2))
def test_small_shares_that_are_rare_do_not_speak_against_a_network(digits, seed):
    drawn = zoo.random_network([4, 6, 1], seed=seed)
    W, A = drawn.weights
    up = 2.0 - np.median(drawn(np.random.default_rng(0).standard_normal((2000, 4))))
    truth = Network([W, A], [drawn.biases[0], drawn.biases[1] + up])

    def answer(X):
        P = 1.0 / (1.0 + np.exp(-truth(X)))
        return np.array([[float(f"{p:.{digits}g}") for p in row] for row in P])

    found = revelu.verify(truth, answer, seed=seed, link="logit")
    assert found.status is Status.RECOVERED, found.certificate.statement
    other = Network([W, 1.05 * A], truth.biases)
    found = revelu.verify(other, answer, seed=seed, link="logit")
    assert found.status is Status.UNVERIFIED
    assert not found.certificate.is_mute


def rounded_by_output(answer, places):
    """Each output to its own places, and those of None not at all."""

    def answer_rounded(X):
        columns = zip(answer(X).T, places, strict=True)
        return np.stack([y if n is None else np.round(y, n) for y, n in columns], axis=1)

    return answer_rounded


@pytest.mark.parametrize("places", [(2, None), (None, 3), (6, 2), (4, 1)])
@pytest.mark.parametrize("form", ["float64", "float32"])
def test_each_output_has_the_grid_that_it_is_rounded_to(places, form):
    network = zoo.random_network([6, 8, 2], seed=sum(map(bool, places)))
    behind = network if form == "float64" else lambda X: in_single(network, X)
    target = rounded_by_output(behind, places)
    X = np.random.default_rng(3).standard_normal((64, 6))
    numbers = read_numbers(target(X))
    Y = target(np.random.default_rng(4).standard_normal((2000, 6)))
    assert numbers.hold(Y).all()
    np.testing.assert_array_equal(numbers.nearest(Y), Y)
    expected = [np.finfo(form).eps if n is None else 10.0**-n for n in places]
    spacing = np.median(numbers.grid.spacing(np.ones((1, 2))), axis=0)
    np.testing.assert_allclose(spacing, expected, rtol=1e-9)


def test_outputs_of_the_same_places_share_one_grid():
    target = rounded_by_output(zoo.random_network([6, 8, 3], seed=1), (3, 3, 3))
    grid = read_numbers(target(np.random.default_rng(0).standard_normal((64, 6)))).grid
    assert grid == Grid(10, places=3)


@pytest.mark.parametrize("places", [(2, None), (None, 3), (6, 2)])
@pytest.mark.parametrize("form", ["float64", "float32"])
def test_networks_whose_outputs_are_rounded_differently_come_back(places, form):
    for seed in range(3):
        network = zoo.random_network([6, 8, 2], seed=40 + seed)
        behind = network if form == "float64" else lambda X, f=network: in_single(f, X)
        found = revelu.extract(rounded_by_output(behind, places), dim_in=6, seed=seed)
        assert found.status is Status.RECOVERED, found.evidence
        assert found.ledger.n_recovery <= 800
        X = np.random.default_rng(5).standard_normal((2000, 6))
        error = np.abs(found.network(X) - network(X)).max(axis=0)
        fine = 1e-12 if form == "float64" else 2e-5
        assert (error <= [fine if n is None else 2 * 10.0**-n for n in places]).all()
