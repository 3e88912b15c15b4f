"""Chords and inward derivatives, against functions that watch where they are asked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revelu.errors import SaturatedError
from revelu.probe.box import Box, inward_jacobian, segment

ERROR = np.full(2, 1e-13)


class Watched:
    """A function that keeps every point it was asked at."""

    def __init__(self, function):
        self.function, self.X = function, []

    def __call__(self, X):
        self.X.append(X.copy())
        return self.function(X)

    def asked(self):
        return np.vstack(self.X)


def a_box(rng, d):
    lo = rng.standard_normal(d)
    hi = lo + 10.0 ** rng.uniform(-3, 2, d)
    return Box(lo, np.where(rng.random(d) < 0.2, np.inf, hi))


def a_point(rng, box):
    """A point of the box, here and there on its border."""
    x = box.lo + rng.random(len(box.lo)) * np.minimum(box.hi - box.lo, 5.0)
    where = rng.random(len(x))
    return np.where(where < 0.2, box.lo, np.where((where > 0.8) & np.isfinite(box.hi), box.hi, x))


def contains(box, X):
    return bool(((box.lo <= X) & (box.hi >= X)).all())


@given(d=st.integers(1, 12), h=st.floats(1e-6, 10.0), seed=st.integers(0, 10**6))
def test_derivatives_of_an_affine_function_are_exact_and_asked_inside(d, h, seed):
    rng = np.random.default_rng(seed)
    box = a_box(rng, d)
    x, A = a_point(rng, box), rng.standard_normal((2, d))
    ask = Watched(lambda X: X @ A.T + 0.25)
    J = inward_jacobian(ask, x, h, box, ERROR * 1e3, rng)
    assert contains(box, ask.asked())
    steps = np.abs(box.inward(x, h))
    assert (steps <= h).all()
    assert (steps > 0).all()
    # Rounding of the answers over the step.
    size = np.abs(x).max() * np.abs(A).sum() + 1.0
    assert (np.abs(J - A) <= 16 * np.finfo(float).eps * size / steps).all()


@given(d=st.integers(2, 10), seed=st.integers(0, 10**6))
def test_what_a_kink_bends_is_no_derivative(d, seed):
    rng = np.random.default_rng(seed)
    box = Box.cube(0.0, 1.0, d)
    x, w = rng.uniform(0.2, 0.8, d), rng.uniform(0.5, 1.5, d) * rng.choice([-1.0, 1.0], d)
    A = rng.standard_normal((2, 1))
    # The kink is at x itself: it comes between, however short the step.
    J = inward_jacobian(lambda X: np.abs((X - x) @ w[:, None]) @ A.T, x, 0.05, box, ERROR, rng)
    signs = np.sign(w * box.inward(x, 1.0))
    if len(set(signs)) == 2:
        assert J is None
    else:  # on one side of it the function is affine, and all that is asked is there
        np.testing.assert_allclose(J, A * np.abs(w) * np.sign(box.inward(x, 1.0)), atol=1e-9)


@given(distance=st.floats(1e-4, 5e-3), seed=st.integers(0, 10**6))
def test_a_step_is_cut_until_it_is_shorter_than_the_kink_is_far(distance, seed):
    rng = np.random.default_rng(seed)
    box = Box.cube(-1.0, 1.0, 3)
    x = rng.uniform(-0.5, 0.5, 3)
    w = np.array([1.0, -1.0, 0.5]) * np.sign(box.inward(x, 1.0))
    A = np.array([[1.0], [-2.0]])

    def bent(X):
        return np.maximum((X - x) @ w[:, None] - distance, 0.0) @ A.T

    ask = Watched(bent)
    J = inward_jacobian(ask, x, 0.03, box, ERROR, rng)
    np.testing.assert_allclose(J, np.zeros((2, 3)), atol=1e-9)
    assert len(ask.X) > 1
    assert len(ask.asked()) == 5 * len(ask.X)


def test_a_saturated_neighbourhood_is_an_error():
    def saturated(X):
        return np.full((len(X), 2), np.inf)

    with pytest.raises(SaturatedError):
        inward_jacobian(
            saturated, np.zeros(2), 0.1, Box.cube(-1, 1, 2), ERROR, np.random.default_rng(0)
        )


@given(d=st.integers(1, 8), seed=st.integers(0, 10**6), t=st.floats(-1.0, 1.0))
def test_a_segment_lies_between_its_ends(d, seed, t):
    rng = np.random.default_rng(seed)
    box = a_box(rng, d)
    start, end = a_point(rng, box), a_point(rng, box)
    line, (low, high) = segment(start, end)
    X = line.points(np.array([low, high, t]))
    size = 1.0 + np.abs(X).max()
    np.testing.assert_allclose(X[:2], [start, end], rtol=0, atol=1e-15 * size * 4)
    # Rounding may take a point out by a bit or two; clip brings it back.
    np.testing.assert_allclose(box.clip(X), X, rtol=0, atol=1e-15 * size * 4)
    assert contains(box, box.clip(X))


@given(n=st.integers(1, 40), d=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_points_of_a_box_are_inside_it_and_every_other_one_a_corner(n, d, seed):
    rng = np.random.default_rng(seed)
    box = Box(lo := rng.standard_normal(d), lo + rng.uniform(0.1, 3.0, d))
    X = box.draw(rng, n)
    assert X.shape == (n, d)
    assert contains(box, X)
    assert (((box.lo == X) | (box.hi == X)).all(axis=1)[1::2]).all()
    assert box.size == pytest.approx((box.hi - box.lo).max())
