"""The polynomial of degree two nearest to samples, and what its leading part spans."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from revelu.types import FloatArray

# Gaussian features are nearly orthonormal: LSMR is done after a few steps.
_ITERATIONS = 30
_RTOL = 1e-5

# Samples a coefficient below which only the affine part is fitted.
_FEWEST = 1.5


@dataclass(frozen=True)
class Quadratic:
    """``q(x) = c + v x + (x' M x - tr M)``, which under N(0, I) has mean ``c``.

    Its Hermite coefficients are ``c``, ``v``, ``2 M`` and 0 from there on.

    Attributes
    ----------
    c : float
    v : ndarray, shape (d,)
    M : ndarray, shape (d, d)
        Symmetric.
    """

    c: float
    v: FloatArray
    M: FloatArray

    def __call__(self, X: FloatArray) -> FloatArray:
        """Evaluate, (n, d) -> (n,)."""
        curved = np.einsum("ni,ni->n", X @ self.M, X) if self.M.any() else 0.0
        return np.asarray(self.c + X @ self.v + curved - np.trace(self.M))

    def coefficients(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Hermite coefficients of orders 0, 1 and 2."""
        return np.asarray(self.c), self.v, 2.0 * self.M


def fit_quadratic(X: FloatArray, y: FloatArray) -> Quadratic:
    """Fit by least squares; where samples are few, only the affine part.

    No matrix of features is formed: products with it and its adjoint take ``n d^2``.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    """
    n, d = X.shape
    affine = np.column_stack([np.ones(n), X])
    C = np.asarray(np.linalg.lstsq(affine, y, rcond=None)[0], dtype=np.float64)
    if n < _FEWEST * (d + 1) * (d + 2) / 2:
        return Quadratic(float(C[0]), C[1:], np.zeros((d, d)))
    root = np.sqrt(2.0)  # |He_2 tensor|: E (x' M x - tr M)^2 = 2 |M|^2

    def forward(u: FloatArray) -> FloatArray:
        M = u[d + 1 :].reshape(d, d)
        curved = np.einsum("ni,ni->n", X @ M, X) - np.trace(M)
        return np.asarray(affine @ u[: d + 1] + curved / root)

    def adjoint(r: FloatArray) -> FloatArray:
        G = X.T @ (r[:, None] * X) - r.sum() * np.eye(d)
        return np.concatenate([affine.T @ r, G.ravel() / root])

    operator = LinearOperator((n, 1 + d + d * d), matvec=forward, rmatvec=adjoint, dtype=float)
    u = lsmr(operator, y, maxiter=_ITERATIONS, atol=_RTOL, btol=_RTOL)[0]
    M = u[d + 1 :].reshape(d, d) / root
    return Quadratic(float(u[0]), u[1 : d + 1], (M + M.T) / 2.0)
