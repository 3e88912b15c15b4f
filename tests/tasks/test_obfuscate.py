"""Obfuscation: what a model does not see changes, what it sees does not."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revelu
from revelu.oracle import Labels, Oracle, degrade
from revelu.tasks.obfuscate import compare_answers, obfuscate_target

TRUTH = revelu.zoo.random_network([64, 12, 10, 5], seed=1)
SPAN = revelu.Span(np.linalg.qr(TRUTH.weights[0].T)[0].T)
X = np.random.default_rng(0).uniform(size=(20, 64))


@given(norm=st.floats(1e-3, 1e4), seed=st.integers(0, 99))
def test_answers_stay_and_the_noise_has_its_length(norm, seed):
    Y = revelu.obfuscate(X, SPAN, norm=norm, seed=seed)
    lengths = np.linalg.norm(Y - X, axis=1) / np.linalg.norm(X, axis=1)
    np.testing.assert_allclose(lengths, norm, rtol=1e-9)
    np.testing.assert_allclose(TRUTH(Y), TRUTH(X), atol=1e-11 * (1 + norm))


@given(norm=st.sampled_from([0.5, 3.0, 100.0]), seed=st.integers(0, 20))
def test_box_is_kept_and_answers_stay(norm, seed):
    few = X[:4]
    Y = revelu.obfuscate(few, SPAN, norm=norm, box=(0, 1), seed=seed)
    assert Y.min() >= 0.0
    assert Y.max() <= 1.0
    np.testing.assert_allclose(TRUTH(Y), TRUTH(few), atol=1e-9)
    # Projecting makes nothing longer.
    lengths = np.linalg.norm(Y - few, axis=1) / np.linalg.norm(few, axis=1)
    assert lengths.max() <= norm * (1 + 1e-9)


def test_images_in_a_box_are_beyond_recognition():
    images = np.zeros((6, 64))
    images[:, 20:44] = np.random.default_rng(2).uniform(size=(6, 24))
    Y = revelu.obfuscate(images, SPAN, norm=100.0, box=(0, 1))
    answers = compare_answers(Oracle(TRUTH, 64), images, Y)
    assert answers.same.all()
    assert np.abs(answers.correlations).max() <= 0.05
    assert answers.largest_change < 1e-9


def test_box_projection_is_the_nearest_point():
    from scipy.optimize import lsq_linear

    from revelu.numerics.box_projection import nearest_in_box

    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((8, 3)))[0].T
    x, start = rng.uniform(size=8), 3.0 * rng.standard_normal(8)
    y = nearest_in_box(x, start, Q, (0.0, 1.0))
    np.testing.assert_allclose(Q @ y, Q @ x, atol=1e-12)
    # An independent solver, the equalities as a heavy penalty.
    heavy = lsq_linear(
        np.vstack([np.eye(8), 1e4 * Q]), np.append(start, 1e4 * Q @ x), (0.0, 1.0), tol=1e-14
    )
    np.testing.assert_allclose(y, heavy.x, atol=1e-5)


def test_seed_decides():
    first, again, other = (revelu.obfuscate(X, SPAN, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1.0


def test_zero_stays_zero():
    Y = revelu.obfuscate(np.zeros((1, 64)), SPAN, box=(0, 1))
    np.testing.assert_allclose(TRUTH(Y), TRUTH(np.zeros((1, 64))), atol=1e-9)


@pytest.mark.parametrize("labels", [False, True])
def test_whole_attack_keeps_every_label(labels):
    target = degrade(TRUTH, Labels()) if labels else TRUTH
    done = obfuscate_target(target, X, labels=labels, norm=100.0, seed=3)
    assert done.recovery.status is revelu.Status.RECOVERED
    assert done.answers.same.all()
    assert np.isnan(done.answers.confidences).all() == labels
    np.testing.assert_array_equal(TRUTH(X).argmax(axis=1), TRUTH(done.outputs).argmax(axis=1))
    assert done.recovery.ledger.by_phase["recover"] <= (90_000 if labels else 900)


def test_span_that_is_known_costs_no_search(tmp_path):
    SPAN.save(tmp_path / "a.npz")
    for span in (SPAN, tmp_path / "a.npz"):
        done = obfuscate_target(TRUTH, X, span=span)
        assert done.recovery.ledger.n_queries == 2 * len(X)
        assert done.answers.same.all()


def test_one_real_answer_is_as_before_to_its_digits():
    target = revelu.zoo.random_network([20, 5, 1], seed=1)
    inputs = np.random.default_rng(0).standard_normal((3, 20))
    done = obfuscate_target(target, inputs)
    assert done.answers.same.all()
    moved = dataclasses.replace(done.answers, labels=np.add(done.answers.labels, [[0.0], [1e-3]]))
    assert not moved.same.any()


def test_nothing_is_changed_where_no_direction_was_found():
    target = Oracle(lambda Z: np.ones(len(Z)), 64)
    done = obfuscate_target(target, X, labels=True)
    assert done.answers is None
    np.testing.assert_array_equal(done.outputs, X)


@pytest.mark.parametrize(
    ("inputs", "options", "word"),
    [
        (np.ones((2, 63)), {}, r"\(n, 64\).*\(2, 63\)"),
        (np.ones(64), {}, "shape"),
        (np.full((1, 64), np.nan), {}, "finite"),
        (2 * np.ones((3, 64)), {"box": (0, 1)}, "row 0 of the inputs leaves the box"),
        (X, {"box": (1, 0)}, "lo < hi"),
        (X, {"norm": 0.0}, "norm"),
        (X, {"norm": float("inf")}, "norm"),
        (X, {"seed": -1}, "seed"),
        ([["a"] * 64], {}, "numeric"),
    ],
    ids=lambda value: None if isinstance(value, np.ndarray) else str(value)[:20],
)
def test_bad_input_is_named(inputs, options, word):
    with pytest.raises(revelu.InputError, match=word):
        revelu.obfuscate(inputs, SPAN, **options)


def test_full_rank_leaves_nothing_to_change():
    with pytest.raises(revelu.InputError, match="no null space"):
        revelu.obfuscate(np.ones((1, 3)), revelu.Span(np.eye(3)))


def test_span_of_another_width_is_named():
    with pytest.raises(revelu.InputError, match="3 inputs"):
        obfuscate_target(TRUTH, X, span=revelu.Span(np.eye(3)[:1]))
