"""Degradations: what is left of an answer, and what is refused."""

import math
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import revelu
from revelu.adapters.onnx_runtime import OnnxTarget
from revelu.errors import InputError, TargetError
from revelu.network import zoo
from revelu.oracle import (
    Float32,
    InFloat32,
    Labels,
    Noisy,
    Normalised,
    OnGrid,
    Oracle,
    Rounded,
    RoundedLogits,
    TopProbability,
    degrade,
    softmax,
)

NETWORK = zoo.random_network([3, 5, 4], 0)
X = np.random.default_rng(1).normal(size=(60, 3))
ALL = [
    *(Float32(), Rounded(3), Noisy(1e-3, 5), Labels(), TopProbability(), Normalised()),
    *(OnGrid(2.0**-8), RoundedLogits(2)),
]

FINITE = st.floats(allow_nan=False, allow_infinity=False)
IN_FLOAT32 = st.floats(width=64, min_value=-3e38, max_value=3e38)
TABLES = array_shapes(min_dims=2, max_dims=2, max_side=8)


def itself(X):
    """Answer the query: what comes out shows what was done to it."""
    return X


def zeros(X):
    return np.zeros((len(X), 2))


def first_input(X):
    """A target of one output, answered as (n,)."""
    return X[:, 0]


# --- TopProbability, Normalised ---

LOGITS = st.floats(min_value=-30, max_value=30)


@given(arrays(np.float64, TABLES, elements=LOGITS))
def test_the_top_probability_is_that_of_the_softmax(Y):
    got = TopProbability()(itself)(Y)
    assert got.shape == (len(Y), 1)
    for y, p in zip(Y.tolist(), got[:, 0].tolist(), strict=True):
        if len(y) > 1 and min(y) >= 0 and abs(sum(y) - 1) < 1e-5:
            continue  # probabilities already
        assert p == pytest.approx(1.0 / sum(math.exp(z - max(y)) for z in y), rel=1e-12)


@given(arrays(np.float64, TABLES, elements=st.floats(min_value=-2, max_value=9)))
def test_normalised_rows_are_probabilities_and_stay_so(Y):
    P = Normalised()(itself)(Y)
    assert (P > 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(Normalised()(itself)(P), P, rtol=1e-12, atol=1e-300)
    if Y.shape[1] > 1:
        np.testing.assert_array_equal(TopProbability()(itself)(P)[:, 0], P.max(axis=1))


# --- Float32 ---


@given(arrays(np.float64, TABLES, elements=IN_FLOAT32))
def test_float32_answers_are_the_nearest_float32(Y):
    got = Float32()(itself)(Y)
    assert got.dtype == np.float64
    for y, g in zip(Y.ravel(), got.ravel(), strict=True):
        single = np.float32(g)
        assert float(single) == g
        for neighbour in (np.nextafter(single, np.float32(side)) for side in (-np.inf, np.inf)):
            assert abs(g - y) <= abs(float(neighbour) - y)


def test_float32_casts_the_query_before_the_target_sees_it():
    seen = []
    Float32()(lambda A: seen.append(A) or A.sum(axis=1))(X)
    assert seen[0].dtype == np.float64
    assert np.array_equal(seen[0], X.astype(np.float32))
    assert not np.array_equal(seen[0], X)


def test_float32_answers_the_network_at_the_cast_query():
    truth = NETWORK(X.astype(np.float32)).astype(np.float32)
    assert np.array_equal(Float32()(NETWORK)(X), truth)


def test_an_answer_beyond_float32_is_refused_by_the_oracle():
    oracle = Oracle(Float32()(lambda A: A[:, 0] * 1e300), 1)
    with pytest.raises(TargetError, match="answered inf"):
        oracle([[1.0]])


# --- Rounded ---


@given(arrays(np.float64, TABLES, elements=FINITE), st.integers(1, 17))
def test_rounded_is_what_python_prints(Y, digits):
    got = Rounded(digits)(itself)(Y)
    assert got.shape == Y.shape
    for y, g in zip(Y.ravel().tolist(), got.ravel().tolist(), strict=True):
        assert repr(g) == repr(float(f"{y:.{digits}g}"))


@given(st.integers(1, 999), st.integers(-300, 300), st.sampled_from([-1, 1]))
def test_rounded_leaves_short_decimals_alone(mantissa, exponent, sign):
    y = sign * float(f"{mantissa}e{exponent}")
    assert Rounded(3)(itself)([[y]]).item() == y


@given(st.floats(min_value=1e-290, max_value=1e290), st.integers(1, 15))
def test_rounded_is_within_half_a_unit_of_the_last_digit(y, digits):
    got = Rounded(digits)(itself)([[y]]).item()
    unit = 10.0 ** (np.floor(np.log10(y)) + 1 - digits)
    # The logarithm of a number just under a power of ten may be that power's.
    assert abs(got - y) <= (0.5 * unit + np.spacing(y)) * (1 + 1e-12)


@given(arrays(np.float64, TABLES, elements=FINITE))
def test_seventeen_digits_lose_nothing(Y):
    assert np.array_equal(Rounded(17)(itself)(Y), Y)


@given(arrays(np.float64, TABLES, elements=FINITE), st.integers(1, 17))
def test_rounding_twice_changes_nothing(Y, digits):
    once = Rounded(digits)(itself)
    assert np.array_equal(Rounded(digits)(once)(Y), once(Y))


@pytest.mark.parametrize("digits", [0, -1, 18, 2.0, "4", True, None])
def test_rounded_refuses_other_digits(digits):
    with pytest.raises(InputError, match="digits must be"):
        Rounded(digits)


# --- OnGrid, RoundedLogits ---


def test_a_grid_has_multiples_alone_and_errs_by_half_a_step():
    Y, step = NETWORK(X), 2.0**-8
    Z = OnGrid(step)(NETWORK)(X)
    assert np.array_equal(Z / step, np.rint(Z / step))
    assert np.abs(Z - Y).max() <= step / 2
    for bad in (0.0, -1.0, np.inf):
        with pytest.raises(InputError, match="step"):
            OnGrid(bad)


def test_rounded_logits_are_those_of_the_probabilities():
    P = softmax(np.random.default_rng(0).normal(size=(200, 3)))
    Q = RoundedLogits(2).degrade_answer(P)
    np.testing.assert_allclose(Q.sum(axis=1), 1.0, rtol=1e-14)
    ratios = np.log(Q) - np.log(Q[:, :1])
    np.testing.assert_allclose(ratios, np.round(ratios, 2), atol=1e-12)
    # Two logits are off by half of the last decimal each.
    assert np.abs(ratios - (np.log(P) - np.log(P[:, :1]))).max() <= 0.01 + 1e-12
    assert np.isfinite(RoundedLogits(2).degrade_answer(np.array([[1.0, 0.0]]))).all()
    with pytest.raises(InputError, match="decimals"):
        RoundedLogits(-1)


# --- Noisy ---


@given(st.integers(0, 2**32), st.lists(st.integers(1, 7), min_size=2, max_size=5))
def test_one_seed_gives_one_sequence_however_it_is_cut(seed, sizes):
    whole, cut = Noisy(0.1, seed)(zeros), Noisy(0.1, seed)(zeros)
    parts = [cut(np.zeros((n, 3))) for n in sizes]
    assert np.array_equal(np.concatenate(parts), whole(np.zeros((sum(sizes), 3))))


def test_two_asks_differ_and_so_do_two_seeds():
    noisy = Noisy(0.1, 0)(NETWORK)
    first, second = noisy(X), noisy(X)
    assert (first != second).all()
    assert (Noisy(0.1, 1)(NETWORK)(X) != first).all()


def test_the_noise_is_gaussian_of_this_deviation_and_independent():
    n, sigma = 20_000, 0.25
    Z = Noisy(sigma, 7)(zeros)(np.zeros((n, 3))) / sigma
    # Five standard errors each: of a mean, of a second and fourth moment, of a correlation.
    assert np.abs(Z.mean(axis=0)).max() < 5 / np.sqrt(n)
    assert np.abs((Z**2).mean(axis=0) - 1).max() < 5 * np.sqrt(2 / n)
    assert np.abs((Z**4).mean(axis=0) - 3).max() < 5 * np.sqrt(96 / n)
    assert abs((Z[:, 0] * Z[:, 1]).mean()) < 5 / np.sqrt(n)
    assert np.abs((Z[1:] * Z[:-1]).mean(axis=0)).max() < 5 / np.sqrt(n - 1)


def test_no_noise_is_the_target():
    assert np.array_equal(Noisy(0, 0)(NETWORK)(X), NETWORK(X))


@pytest.mark.parametrize("sigma", [-1e-9, np.nan, np.inf, -np.inf, 1j, "0.1", None, True])
def test_noisy_refuses_other_deviations(sigma):
    with pytest.raises(InputError, match="sigma must be a finite number"):
        Noisy(sigma, 0)


@pytest.mark.parametrize("seed", [-1, 0.0, "0", None, True])
def test_noisy_refuses_other_seeds(seed):
    with pytest.raises(InputError, match="seed must be a whole number"):
        Noisy(0.1, seed)


def test_threads_share_the_sequence_of_one_instance():
    rows = np.zeros((4096, 3))
    with ThreadPoolExecutor(4) as executor:
        shared = Oracle(Noisy(1.0, 2)(zeros), 3, executor=executor, batch_rows=16)(rows)
    alone = Oracle(Noisy(1.0, 2)(zeros), 3)(rows)
    assert np.array_equal(np.sort(shared, axis=None), np.sort(alone, axis=None))


@pytest.mark.slow
def test_batches_in_processes_get_noise_of_their_own():
    def ask():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
            oracle = Oracle(Noisy(1.0, 2)(zeros), 3, executor=executor, batch_rows=4)
            return oracle(np.zeros((12, 3)))

    first, second = ask(), ask()
    assert len(np.unique(first)) == first.size
    assert np.array_equal(first, second)


# --- Labels ---


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=2), elements=FINITE))
def test_a_label_is_the_first_largest_output(Y):
    got = Labels()(itself)(Y)
    assert (got.shape, got.dtype) == ((len(Y), 1), np.float64)
    assert got[:, 0].tolist() == [row.index(max(row)) for row in Y.tolist()]


@given(arrays(np.float64, st.integers(1, 20), elements=FINITE))
def test_a_label_of_one_output_tells_whether_it_is_positive(y):
    column = Labels()(itself)(y[:, None])
    assert column.dtype == np.float64
    assert column.tolist() == [[1.0 if value > 0 else 0.0] for value in y]
    assert np.array_equal(Labels()(first_input)(y[:, None]), column)


@pytest.mark.parametrize("row", [[np.nan, 1.0], [1.0, np.nan], [np.nan]])
def test_a_nan_gets_no_label(row):
    oracle = Oracle(Labels()(lambda A: np.tile(row, (len(A), 1))), 1)
    with pytest.raises(TargetError, match="answered nan"):
        oracle([[0.0]])


# --- All ---


@pytest.mark.parametrize("degradation", ALL, ids=repr)
@pytest.mark.parametrize("target", [first_input, NETWORK], ids=["flat", "columns"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_answers_are_columns_of_float64(degradation, target, n):
    got = degradation(target)(X[:n])
    k = (
        1
        if isinstance(degradation, Labels | TopProbability)
        else target(X).reshape(len(X), -1).shape[1]
    )
    assert (got.shape, got.dtype) == ((n, k), np.float64)


@pytest.mark.parametrize("degradation", ALL, ids=repr)
def test_the_query_and_the_targets_buffer_are_left_alone(degradation):
    buffer = np.full((60, 2), 1 / 3)
    query = X.copy()
    got = degradation(lambda _: buffer)(query)
    assert np.array_equal(query, X)
    assert (buffer == 1 / 3).all()
    assert not np.shares_memory(got, buffer)


def test_degrade_applies_them_in_the_order_given():
    truth = NETWORK(X)
    noise = Noisy(1e-2, 3)(zeros)
    target = degrade(lambda A: NETWORK(A)[:, :2], Noisy(1e-2, 3), Rounded(2), Labels())
    noisy = truth[:, :2] + noise(X)
    rounded = np.array([[float(f"{y:.2g}") for y in row] for row in noisy])
    assert np.array_equal(target(X)[:, 0], rounded.argmax(axis=1))
    assert np.array_equal(
        degrade(NETWORK, Float32(), Rounded(4))(X), Rounded(4)(Float32()(NETWORK))(X)
    )
    assert not np.array_equal(
        degrade(NETWORK, Rounded(4), Float32())(X), degrade(NETWORK, Float32(), Rounded(4))(X)
    )


def test_degrade_by_nothing_is_the_target():
    assert degrade(NETWORK) is NETWORK


@pytest.mark.parametrize("other", [Labels, Rounded, itself, "float32", 4])
def test_degrade_refuses_what_is_no_degradation(other):
    with pytest.raises(InputError, match="is no degradation"):
        degrade(NETWORK, other)


@pytest.mark.parametrize("degradation", ALL, ids=repr)
def test_a_target_must_be_callable(degradation):
    with pytest.raises(InputError, match="must be callable, got str"):
        degradation("demo:digits")


@pytest.mark.parametrize("degradation", ALL, ids=repr)
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda A: np.zeros(len(A) + 1), r"shape \(3,\) to 2 queries"),
        (lambda A: np.zeros((len(A), 2, 2)), r"shape \(2, 2, 2\)"),
        (lambda A: np.zeros((len(A), 0)), r"shape \(2, 0\)"),
        (lambda _: 1.0, r"shape \(\) to 2 queries"),
        (lambda A: A[:, 0] * 1j, "not real numbers"),
        (lambda A: np.full(len(A), "1"), "not real numbers"),
        (lambda A: np.ma.masked_array(A, mask=True), "not real numbers"),
    ],
)
def test_nonsense_stays_nonsense(degradation, answer, words):
    with pytest.raises(TargetError, match=words):
        degradation(answer)(X[:2])


@pytest.mark.parametrize("degradation", ALL, ids=repr)
def test_degradations_are_equal_by_value_and_frozen(degradation):
    again = pickle.loads(pickle.dumps(degradation))  # noqa: S301
    assert again == degradation
    assert hash(again) == hash(degradation)
    with pytest.raises(AttributeError):
        degradation.digits = 3
    assert len({*ALL, again}) == len(ALL)


def test_a_degraded_target_can_be_pickled():
    target = degrade(NETWORK, Float32(), Rounded(4), Labels())
    again = pickle.loads(pickle.dumps(target))  # noqa: S301
    assert again == target
    assert np.array_equal(again(X), target(X))


def test_pickled_copies_draw_noise_of_their_own_from_the_seed():
    def copies():
        target = Noisy(1.0, 3)(zeros)
        pair = [pickle.loads(pickle.dumps(target)) for _ in range(2)]  # noqa: S301
        return [each(X) for each in (target, *pair)]

    drawn = copies()
    assert len(np.unique(drawn)) == np.size(drawn)
    assert np.array_equal(drawn, copies())


@pytest.mark.parametrize("degradation", ALL, ids=repr)
@pytest.mark.parametrize("kind", ["network", "onnx", "callable"])
def test_an_oracle_counts_as_before(degradation, kind, tmp_path):
    if kind == "onnx":
        NETWORK.save(tmp_path / "net.onnx")
        target = OnnxTarget(tmp_path / "net.onnx")
    else:
        target = NETWORK if kind == "network" else NETWORK.__call__
    ledgers = []
    for asked in (target, degrade(target, degradation)):
        oracle = revelu.open_oracle(asked, dim_in=3, budget=70)
        oracle(X)
        with oracle.phase("verify"):
            oracle(X[:9])
        with pytest.raises(revelu.LimitReachedError):
            oracle(X[:2])
        ledgers.append(oracle.ledger())
    assert ledgers[0] == ledgers[1]
    assert ledgers[0].n_queries == 69


def test_a_degraded_target_says_its_inputs_where_the_target_does():
    assert revelu.open_oracle(degrade(NETWORK, Rounded(4), Float32())).dim_in == 3
    with pytest.raises(InputError, match="has 3 inputs, not 4"):
        revelu.open_oracle(degrade(NETWORK, Rounded(4)), dim_in=4)
    with pytest.raises(InputError, match="does not say how many inputs"):
        revelu.open_oracle(degrade(itself, Rounded(4)))


# --- InFloat32 ---


def summed_one_by_one(network, x):
    """The answer to one row, every sum in float32 and in order."""
    h, single = x.astype(np.float32), np.float32
    for i, (W, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        h = np.maximum(h, single(0)) if i else h
        sums = []
        for w in W.astype(single):
            total = single(0)
            for term in w * h:
                total = single(total + term)
            sums.append(total)
        h = np.array(sums) + b.astype(single)
    return h


def test_sequential_sums_are_taken_in_order():
    X = np.random.default_rng(1).standard_normal((5, NETWORK.dim_in))
    expected = [summed_one_by_one(NETWORK, x) for x in X]
    assert np.array_equal(InFloat32()(NETWORK)(X), expected)


def test_pairwise_sums_of_many_terms_err_by_less():
    network = zoo.random_network([256, 8, 1], seed=2)
    X = np.random.default_rng(2).standard_normal((500, 256)).astype(np.float32).astype(float)
    truth = InFloat32.truth(network)(X)
    off = [np.std(InFloat32(how)(network)(X) - truth) for how in ("sequential", "pairwise")]
    # Errors of n partial sums, each the size of the last on average, and of log2(n) levels.
    assert 2.0 < off[0] / off[1] < 4.5
    assert off[1] < np.finfo(np.float32).eps * np.std(truth)


@pytest.mark.parametrize(("n", "kernel"), [(9, "pairwise"), (10, "sequential")])
def test_by_batch_sums_by_the_number_of_rows(n, kernel):
    X = np.random.default_rng(3).standard_normal((n, NETWORK.dim_in))
    expected = InFloat32(kernel)(NETWORK)(X)
    assert np.array_equal(InFloat32("by_batch", 10)(NETWORK)(X), expected)


def test_what_is_computed_in_float32_may_be_degraded_further():
    X = np.random.default_rng(4).standard_normal((7, NETWORK.dim_in))
    once = InFloat32()(NETWORK)
    assert np.array_equal(degrade(NETWORK, InFloat32(), Rounded(3))(X), Rounded(3)(once)(X))
    again = pickle.loads(pickle.dumps(once))  # noqa: S301
    assert np.array_equal(again(X), once(X))
    assert once.dim_in == NETWORK.dim_in


@pytest.mark.parametrize("arguments", [("other",), ("by_batch", 0)])
def test_other_kernels_are_refused(arguments):
    with pytest.raises(InputError):
        InFloat32(*arguments)


def test_only_a_network_is_computed_in_float32():
    with pytest.raises(InputError, match="only a Network"):
        InFloat32()(itself)
