"""The polynomial of degree two nearest to samples, and what its leading part spans."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from revelu.types import FloatArray


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


def fit_quadratic(
    X: FloatArray, y: FloatArray, *, fewest: float = 1.5, iterations: int = 30, rtol: float = 1e-5
) -> Quadratic:
    """Fit by least squares; where samples are few, only the affine part.

    No matrix of features is formed: products with it and its adjoint take ``n d^2``.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    fewest : float
        Samples for each coefficient below which only the affine part is fitted.
    iterations, rtol : int, float
        Where LSMR ends.  Gaussian features are nearly orthonormal: a few steps do.
    """
    n, d = X.shape
    C = _affine_part(X, y)
    if n < fewest * (d + 1) * (d + 2) / 2:
        return Quadratic(float(C[0]), C[1:], np.zeros((d, d)))
    root = np.sqrt(2.0)  # |He_2 tensor|: E (x' M x - tr M)^2 = 2 |M|^2

    def forward(u: FloatArray) -> FloatArray:
        M = u[d + 1 :].reshape(d, d) / root
        quadratic = Quadratic(float(u[0]), u[1 : d + 1], M)
        return np.concatenate([quadratic(X[rows]) for rows in row_blocks(n)])

    def adjoint(r: FloatArray) -> FloatArray:
        G = -r.sum() * np.eye(d)
        for rows in row_blocks(n):
            G += weighted_gram(X[rows], r[rows])
        return np.concatenate([[r.sum()], X.T @ r, G.ravel() / root])

    operator = LinearOperator((n, 1 + d + d * d), matvec=forward, rmatvec=adjoint, dtype=float)
    u = lsmr(operator, y, maxiter=iterations, atol=rtol, btol=rtol)[0]
    M = u[d + 1 :].reshape(d, d) / root
    return Quadratic(float(u[0]), u[1 : d + 1], (M + M.T) / 2.0)


def weighted_gram(X: FloatArray, weights: FloatArray) -> FloatArray:
    """``X' diag(w) X``, (n, d) and (n,) -> (d, d).

    As a difference of two Gram matrices, one for each sign of the weights: of a product of a
    matrix with its own transpose BLAS computes one half only.
    """
    roots = np.sqrt(np.abs(weights))[:, None]
    up = weights > 0
    P, N = X[up] * roots[up], X[~up] * roots[~up]
    return np.asarray(P.T @ P - N.T @ N)


def _affine_part(X: FloatArray, y: FloatArray) -> FloatArray:
    """Least squares for ``(c, v)``; where inputs are dependent, those of least norm."""
    mean = X.mean(axis=0)
    gram, right = np.zeros((len(mean), len(mean))), np.zeros(len(mean))
    for rows in row_blocks(len(X)):
        centred = X[rows] - mean
        gram += centred.T @ centred
        right += centred.T @ y[rows]
    v = np.linalg.lstsq(gram, right, rcond=None)[0]
    return np.concatenate([[y.mean() - v @ mean], v])


def row_blocks(n: int, size: int = 8192) -> list[slice]:
    """Cut n rows into blocks whose products fit the cache."""
    return [slice(start, start + size) for start in range(0, n, size)]
