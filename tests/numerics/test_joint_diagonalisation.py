"""Many matrices, one basis: exact where there is one, and better than one pencil in noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from revelu.numerics import jennrich
from revelu.numerics.hermite import network_coefficient
from revelu.numerics.joint_diagonalisation import diagonalise_jointly
from revelu.numerics.matching import match_rows

NOISE = 3e-3


def off_diagonal(V, A):
    """How far ``V A`` is from a permutation and scaling."""
    P = np.abs(V @ A)
    return float(np.sort(P / P.max(axis=1, keepdims=True), axis=1)[:, -2].max())


@given(st.integers(0, 10**6), st.integers(2, 8))
def test_a_common_basis_is_found_from_anywhere_near(seed, m):
    rng = np.random.default_rng([31, seed])
    A = np.linalg.qr(rng.standard_normal((m, m)))[0] + 0.1 * rng.standard_normal((m, m))
    C = np.array([A @ np.diag(rng.standard_normal(m)) @ A.T for _ in range(3 * m)])
    V = diagonalise_jointly(C, np.linalg.inv(A) + 0.05 * rng.standard_normal((m, m)))
    assert off_diagonal(V, A) < 1e-6


def test_rows_that_nothing_tells_apart_stay_finite():
    C = np.array([np.eye(3), 2 * np.eye(3)])
    assert np.isfinite(diagonalise_jointly(C, np.eye(3) + 0.1)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("d", "m", "order"), [(8, 8, 1), (5, 8, 2)])
def test_noise_moves_all_contractions_together_less_than_one(d, m, order, monkeypatch):
    errors = {"joint": [], "one": []}
    joint = jennrich._jointly
    for seed in range(4):
        rng = np.random.default_rng([32, seed])
        W = rng.standard_normal((m, d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        a, b = rng.uniform(0.5, 1.5, m), rng.uniform(-1, 1, m)
        tensors = []
        for k in range(2 * order, 2 * order + 3):
            T = network_coefficient(k, a, W, b)
            # Noise that is as symmetric as what it is added to.
            noise = network_coefficient(
                k, rng.standard_normal(99), rows(rng, d), rng.uniform(-1, 1, 99)
            )
            tensors.append(T + NOISE * np.linalg.norm(T) / np.linalg.norm(noise) * noise)
        for name, way in {"joint": joint, "one": no_candidate}.items():
            monkeypatch.setattr(jennrich, "_jointly", way)
            found = jennrich.directions_of_pencil(*tensors, m, order, np.random.default_rng(0))
            errors[name].append(distance(found, W))
    assert np.median(errors["joint"]) < 0.5 * np.median(errors["one"])


def rows(rng, d):
    return rng.standard_normal((99, d))


def no_candidate(*_):
    return None


def distance(candidates, W):
    if not candidates:
        return np.inf
    partners, signs = match_rows(candidates[0], W, up_to_sign=True)
    return np.abs(signs[:, None] * candidates[0][partners] - W).max()
