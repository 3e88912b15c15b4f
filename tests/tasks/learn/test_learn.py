"""Networks from samples: the truth comes back, and nothing else is called recovered."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import revelu
from revelu.numerics.hermite import relu_coefficient
from revelu.numerics.matching import match_rows


def draw(d, m, seed):
    """A network with unit rows, drawn apart from the learner's choices."""
    rng = np.random.default_rng([22, seed])
    W = rng.standard_normal((m, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    a = rng.uniform(0.5, 1.5, m) * rng.choice([-1, 1], m)
    return revelu.Network([W, a[None]], [rng.uniform(-1, 1, m), [0.0]])


def samples(network, n, seed, noise=0.0):
    rng = np.random.default_rng([23, seed])
    X = rng.standard_normal((n, network.dim_in))
    return X, network(X)[:, 0] + noise * rng.standard_normal(n)


def largest_error(found, truth):
    """Of all parameters, signs included."""
    (W, A), (b, c) = found.weights, found.biases
    (W0, A0), (b0, c0) = truth.weights, truth.biases
    assert W.shape == W0.shape
    rows, _ = match_rows(np.column_stack([W, b]), np.column_stack([W0, b0]))
    parts = [(W[rows] - W0).ravel(), b[rows] - b0, (A[:, rows] - A0).ravel(), c - c0]
    return np.abs(np.concatenate(parts)).max()


@pytest.mark.parametrize(
    ("d", "m", "n"),
    [
        (5, 3, 240),  # 13 samples a parameter
        (10, 5, 550),  # 10
        (4, 7, 700),  # 20; more neurons than inputs
        (16, 4, 2000),  # 30; inside the span of the rows
    ],
)
def test_networks_come_back_exactly_with_their_signs(d, m, n):
    truth = draw(d, m, d)
    recovery = revelu.learn(*samples(truth, n, 1), seed=3)
    assert recovery.status is revelu.Status.RECOVERED
    assert recovery.network.skip is None
    assert largest_error(recovery.network, truth) < 1e-9
    assert recovery.details["exact"]
    assert recovery.ledger.n_queries == 0


@settings(max_examples=5)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 3))
def test_what_is_called_recovered_agrees_elsewhere(seed, d, m):
    truth = draw(d, m, seed)
    # Fewer than 300 leave too few for a certificate.
    recovery = revelu.learn(*samples(truth, max(30 * m * (d + 1), 300), seed), seed=seed)
    X = np.random.default_rng([24, seed]).standard_normal((500, d))
    assert recovery.status is revelu.Status.RECOVERED
    np.testing.assert_allclose(recovery.network(X), truth(X), atol=1e-7)


def test_same_seed_same_network():
    X, y = samples(draw(4, 2, 1), 200, 2)
    assert revelu.learn(X, y, seed=5).network == revelu.learn(X, y, seed=5).network


def test_noise_is_measured_and_error_bars_hold_the_truth():
    truth = draw(5, 2, 2)
    recovery = revelu.learn(*samples(truth, 2000, 3, noise=0.05))  # 160 a parameter
    assert recovery.status is revelu.Status.RECOVERED
    assert recovery.details["noise"] == pytest.approx(0.05, rel=0.1)
    bars = recovery.details["standard_errors"]
    largest = max(bars.W.max(), bars.b.max(), bars.A.max(), bars.c.max())
    assert largest_error(recovery.network, truth) < 5 * largest
    assert any("noise" in warning for warning in recovery.warnings)


def test_pure_noise_is_not_recovered():
    rng = np.random.default_rng(8)
    recovery = revelu.learn(rng.standard_normal((300, 4)), rng.standard_normal(300))
    assert recovery.status is revelu.Status.UNVERIFIED


def test_a_smooth_function_is_not_recovered():
    X = np.random.default_rng(9).standard_normal((250, 3))
    recovery = revelu.learn(X, np.tanh(X[:, 0]) * X[:, 1], max_searches=2)
    assert recovery.status is not revelu.Status.RECOVERED


def test_few_samples_are_not_called_recovered_wrongly():
    truth = draw(8, 6, 4)
    X, y = samples(truth, 60, 5)  # one a parameter
    recovery = revelu.learn(X, y, max_searches=3)
    assert recovery.status is revelu.Status.UNVERIFIED


def test_what_is_exact_but_hardly_checked_is_not_certified():
    truth = draw(5, 3, 5)
    few, enough = (revelu.learn(*samples(truth, n, 1), seed=3) for n in (180, 232))
    assert largest_error(few.network, truth) < 1e-9
    assert few.status is revelu.Status.UNVERIFIED
    assert few.certificate.fraction_within == 1.0
    assert "232 samples" in few.evidence[-1]
    assert enough.status is revelu.Status.RECOVERED
    # What a tenth of all inputs contradict passes at most one certificate in twenty.
    assert 0.9**enough.certificate.n_checks < 0.05 < 0.9 ** (enough.certificate.n_checks - 1)


def test_an_affine_function_has_no_neurons():
    X = np.random.default_rng(10).standard_normal((240, 3))
    recovery = revelu.learn(X, X @ [1.0, -2.0, 0.5] + 3.0)
    assert recovery.status is revelu.Status.RECOVERED
    assert recovery.network.architecture == (3, 0, 1)


def test_all_sign_patterns_are_listed():
    # Three directions in the plane with a_i w_i summing to 0, without biases: turning all
    # of them round moves nothing into the affine rest.
    angles = np.array([0.0, 2.0, 4.0]) * np.pi / 3
    W = np.column_stack([np.cos(angles), np.sin(angles)])
    truth = revelu.Network([W, np.ones((1, 3))], [np.zeros(3), [0.0]])
    recovery = revelu.learn(*samples(truth, 300, 6))  # 33 a parameter
    assert recovery.status is revelu.Status.RECOVERED
    patterns = recovery.details["sign_patterns"]
    assert len(patterns) == 2
    (Wf, A), (b, _) = recovery.network.weights, recovery.network.biases
    phi = lambda z: relu_coefficient(1, z)  # noqa: E731
    first = [(A[0] * phi(xi * b) * xi) @ Wf for xi in patterns]
    np.testing.assert_allclose(first[0], first[1], atol=1e-9)
    assert any("choices of signs" in text for text in recovery.evidence)


def test_units_that_no_sample_bends_are_left_in_an_affine_rest():
    truth = draw(6, 4, 7)
    (W, A), (b, c) = truth.weights, truth.biases
    b = b.copy()
    b[:2] = 6.0, -6.0
    truth = revelu.Network([W, A], [b, c])
    recovery = revelu.learn(*samples(truth, 1000, 7))
    X, y = samples(truth, 4000, 8)
    assert recovery.network.architecture == (6, 2, 1)
    assert recovery.network.skip is not None
    assert np.linalg.norm(recovery.network(X)[:, 0] - y) < 2e-3 * np.linalg.norm(y)
    assert any("affine rest" in text for text in recovery.evidence)


@pytest.mark.parametrize("law", ["shifted", "uniform"])
def test_other_inputs_are_whitened_or_marked(law):
    truth = draw(4, 2, 9)
    rng = np.random.default_rng(11)
    X = rng.uniform(-2, 2, (800, 4))
    if law == "shifted":
        X = rng.standard_normal((800, 4)) @ (np.eye(4) + 0.3) + 0.5
    recovery = revelu.learn(X, truth(X)[:, 0])
    assert recovery.status is revelu.Status.RECOVERED
    assert largest_error(recovery.network, truth) < 1e-8
    assert any("outside the theorems" in w for w in recovery.warnings) == (law == "uniform")


def test_the_number_given_is_compared():
    recovery = revelu.learn(*samples(draw(4, 2, 3), 300, 9), n_neurons=3)
    assert recovery.network.architecture == (4, 2, 1)
    assert any("not the 3" in w for w in recovery.warnings)


def broken(X, y, what):
    X, y = X.copy(), y.copy()
    if what == "nan":
        X[7, 1] = np.nan
    elif what == "constant":
        y[:] = 2.0
    elif what == "masked":
        X = np.ma.masked_array(X, np.abs(X) > 2)
    elif what == "rounding":
        y = 3.0 + 4e-16 * (y > 0)
    elif what == "few":
        X, y = X[:5], y[:5]
    elif what == "lengths":
        y = y[:-1]
    elif what == "text":
        y = y.astype(str)
    elif what == "outputs":
        y = np.column_stack([y, y])
    return X, y


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("nan", "row 7"),
        ("constant", "same y"),
        ("masked", "masked"),
        ("rounding", "rounding"),
        ("few", "too few"),
        ("lengths", "shape"),
        ("text", "not real numbers"),
        ("outputs", "one is learned at a time"),
    ],
)
def test_bad_samples_are_refused(what, message):
    X, y = broken(*samples(draw(3, 2, 1), 100, 1), what)
    with pytest.raises(revelu.InputError, match=message):
        revelu.learn(X, y)


@pytest.mark.parametrize(
    "arguments",
    [{"order": 3}, {"seed": -1}, {"n_neurons": 0}, {"n_neurons": 50}, {"progress": 1}, {"y": None}],
)
def test_arguments_that_make_no_sense_are_refused(arguments):
    X, y = samples(draw(3, 2, 1), 100, 1)
    with pytest.raises(revelu.InputError):
        revelu.learn(X, **{"y": y, **arguments})


@pytest.mark.parametrize("power", [-1000, -100, -40, 40, 90])
def test_any_unit_of_the_answers_gives_the_same_network(power):
    X, y = samples(draw(3, 2, 5), 300, 1)
    one, other = revelu.learn(X, y), revelu.learn(X, np.ldexp(y, power))
    assert other.status is revelu.Status.RECOVERED
    np.testing.assert_array_equal(one.network.weights[0], other.network.weights[0])
    np.testing.assert_array_equal(np.ldexp(one.network.weights[1], power), other.network.weights[1])
    bars = (np.ldexp(one.details["standard_errors"].A, power), other.details["standard_errors"].A)
    np.testing.assert_array_equal(*bars)


def test_inputs_in_units_of_their_own_are_learned():
    truth, units = draw(3, 2, 6), np.array([1e-7, 1.0, 1e7])
    X, y = samples(truth, 300, 1)
    recovery = revelu.learn(X * units, y)
    assert recovery.status is revelu.Status.RECOVERED
    Z, true = samples(truth, 100, 2)
    np.testing.assert_allclose(recovery.network(Z * units)[:, 0], true, atol=1e-9)


@pytest.mark.parametrize("column", ["constant", "repeated"])
def test_dimensions_that_inputs_do_not_vary_in_are_told(column):
    truth = draw(3, 2, 6)
    X, y = samples(truth, 300, 1)
    extra = X[:, :1] if column == "repeated" else np.full((300, 1), 7.0)
    recovery = revelu.learn(np.hstack([X, extra]), y)
    assert recovery.status is revelu.Status.RECOVERED
    assert any("vary in 3 of 4 dimensions" in warning for warning in recovery.warnings)


def test_an_offset_is_no_excuse_for_errors():
    X, y = samples(draw(3, 2, 7), 300, 1)
    recovery = revelu.learn(X, y + 2.0**20)
    assert recovery.status is revelu.Status.RECOVERED
    assert recovery.certificate.tolerance < 2e-8  # y varies by some 5


def test_samples_that_repeat_count_once():
    truth = draw(4, 3, 12)
    X, y = samples(truth, 40, 1)  # two a parameter: neurons fit them, and do not agree elsewhere
    repeated = revelu.learn(np.repeat(X, 10, axis=0), np.repeat(y, 10))
    assert repeated.status is not revelu.Status.RECOVERED
    X, y = samples(truth, 400, 1)
    twice = revelu.learn(np.vstack([X, X]), np.append(y, y))
    assert twice.status is revelu.Status.RECOVERED
    assert largest_error(twice.network, truth) < 1e-9
    corners = np.random.default_rng(1).choice([-1.0, 0.0, -0.0, 1.0], (500, 2))
    with pytest.raises(revelu.InputError, match="500 samples of 9 different inputs are too few"):
        revelu.learn(corners, corners[:, 0] * corners[:, 1])


@pytest.mark.parametrize(("m", "order"), [(3, 1), (6, 2)])
def test_the_order_at_which_theorems_apply_is_told(m, order):
    recovery = revelu.learn(*samples(draw(4, m, 1), 100 * m, 1), order="1")
    assert recovery.details["order"] == order
    assert any("order 1 was given" in w for w in recovery.warnings) == (order > 1)


def test_progress_is_told():
    messages = []
    X, y = samples(draw(3, 2, 1), 200, 1)
    revelu.learn(X, y, progress=lambda event: messages.append(event.message))
    assert any("neurons" in message for message in messages)
