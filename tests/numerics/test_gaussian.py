"""Normal laws by the root of their information, against their covariances in closed form."""

import numpy as np
import pytest

from revelu.numerics.gaussian import Gaussian


def drawn(rng, n=6):
    A, x = rng.standard_normal((2 * n, n)), rng.standard_normal(n)
    return A, x, Gaussian.of(A, A @ x)


@pytest.mark.parametrize("seed", range(5))
def test_a_law_has_the_moments_of_its_equations(seed):
    A, x, law = drawn(np.random.default_rng(seed))
    C = np.linalg.inv(A.T @ A)
    np.testing.assert_allclose(law.mean, x, atol=1e-12)
    np.testing.assert_allclose(law.covariance, C, atol=1e-12)
    F = np.random.default_rng(9).standard_normal((4, 6))
    np.testing.assert_allclose(law.errors_of(F), np.sqrt(np.diag(F @ C @ F.T)))
    np.testing.assert_allclose(law.wider(3.0).covariance, 9.0 * C, atol=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_moved_and_conditioned_as_kalman_says(seed):
    rng = np.random.default_rng(seed)
    _, x, law = drawn(rng)
    C, T, B = law.covariance, rng.standard_normal((6, 6)), rng.standard_normal((2, 6))
    moved = law.moved(T, np.linalg.inv(T))
    np.testing.assert_allclose(moved.mean, T @ x, atol=1e-10)
    np.testing.assert_allclose(moved.covariance, T @ C @ T.T, atol=1e-9)
    gain = C @ B.T @ np.linalg.inv(B @ C @ B.T + 0.01 * np.eye(2))
    given = law.given(B, 0.1)
    np.testing.assert_allclose(given.mean, x - gain @ B @ x, atol=1e-10)
    np.testing.assert_allclose(given.covariance, C - gain @ B @ C, atol=1e-10)
    some = np.array([4, 1])
    np.testing.assert_allclose(law.of_some(some).mean, x[some])
    np.testing.assert_allclose(law.of_some(some).covariance, C[np.ix_(some, some)], atol=1e-12)


def test_what_is_known_well_keeps_its_digits_beside_what_is_not():
    # A direction known to 1e-9 beside one known to 1e3; no covariance holds both.
    Q = np.linalg.qr(np.random.default_rng(2).standard_normal((2, 2)))[0]
    law = Gaussian.of(np.diag([1e9, 1e-3]) @ Q.T, np.zeros(2))
    np.testing.assert_allclose(law.errors_of(Q.T), [1e-9, 1e3], rtol=1e-3)
