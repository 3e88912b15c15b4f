"""Least squares over units and the polynomial above them, where units are smooth.

``f(x) = sum_S c_S prod_{i in S} u(w_i x - t_i)`` over all sets of units up to a given size.
Moments cannot tell products of units apart from the units; here both are fitted, so that products
do not bias the directions.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit

from revelu.numerics.float64 import EPS, TINY
from revelu.types import FloatArray


@dataclass(frozen=True)
class SmoothFit:
    """Units and what is above them."""

    W: FloatArray
    """Shape (k, d).  Rows of norm 1."""
    t: FloatArray
    """Shape (k,)."""
    terms: tuple[tuple[int, ...], ...]
    """Sets of units."""
    c: FloatArray
    """Shape (p,).  Their coefficients."""
    rms: float
    """What is left of the answers."""
    errors: FloatArray
    threshold_errors: FloatArray
    """Shape (k,).  Standard errors, of angles in radians and of thresholds; infinite where
    answers do not tell, of a unit that counts for nothing or of one that is there twice."""

    def __call__(self, X: FloatArray) -> FloatArray:
        """Evaluate, (n, d) -> (n,)."""
        return np.asarray(_monomials(expit(X @ self.W.T - self.t), self.terms) @ self.c)


def sets_of(k: int, degree: int) -> tuple[tuple[int, ...], ...]:
    """All sets of at most ``degree`` of k units, the empty one first."""
    return tuple(S for r in range(degree + 1) for S in combinations(range(k), r))


def fit_smooth_units(
    X: FloatArray, y: FloatArray, W: FloatArray, t: FloatArray, degree: int
) -> SmoothFit:
    """Fit sigmoid units and a polynomial, linear in each of them.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        More than there are parameters.
    y : ndarray, shape (n,)
    W : ndarray, shape (k, d)
        A start, rows of norm 1.
    t : ndarray, shape (k,)
    degree : int
        Of the polynomial.
    """
    k, d = W.shape
    terms = sets_of(k, degree)
    # Equations beside those of the answers, which are in units of their deviation, keep rows
    # at norm 1.
    norm_weight = 10.0
    scale = max(float(y.std()), TINY)

    def unpack(p: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return p[: k * d].reshape(k, d), p[k * d : k * (d + 1)], p[k * (d + 1) :]

    def residual(p: FloatArray) -> FloatArray:
        V, s, c = unpack(p)
        rest = (_monomials(expit(X @ V.T - s), terms) @ c - y) / scale
        return np.concatenate([rest, norm_weight * (np.sum(V**2, axis=1) - 1.0)])

    def jacobian(p: FloatArray) -> FloatArray:
        V, s, c = unpack(p)
        U = expit(X @ V.T - s)
        slopes = _slopes(U, terms, c) * U * (1.0 - U) / scale
        inner = (slopes[:, :, None] * X[:, None, :]).reshape(len(X), k * d)
        top = np.hstack([inner, -slopes, _monomials(U, terms) / scale])
        norms = np.zeros((k, len(p)))
        for i in range(k):
            norms[i, i * d : (i + 1) * d] = 2.0 * norm_weight * V[i]
        return np.vstack([top, norms])

    c = np.linalg.lstsq(_monomials(expit(X @ W.T - t), terms), y, rcond=None)[0]
    start = np.concatenate([W.ravel(), t, c])
    options = {"max_nfev": 200} | dict.fromkeys(("xtol", "ftol", "gtol"), 2.0 * EPS)
    fit = least_squares(residual, start, jac=jacobian, x_scale="jac", **options)
    V, s, c = unpack(fit.x)
    norms = np.linalg.norm(V, axis=1)
    rms = float(np.sqrt(np.mean(fit.fun[: len(y)] ** 2)))
    variance = _inverse_diagonal(fit.jac) * max(rms, EPS) ** 2
    return SmoothFit(
        V / norms[:, None],
        s,
        terms,
        c,
        rms * scale,
        np.sqrt(variance[: k * d].reshape(k, d).sum(axis=1)),
        np.sqrt(variance[k * d : k * (d + 1)]),
    )


def _inverse_diagonal(J: FloatArray) -> FloatArray:
    """The diagonal of ``(J' J)^-1``, infinite where J does not tell a parameter, shape (p,)."""
    # Columns of norm 1: what counts for little is told badly, and not left out.
    norms = np.maximum(np.linalg.norm(J, axis=0), TINY)
    values, V = np.linalg.eigh((J / norms).T @ (J / norms))
    rtol = len(J) * EPS  # smaller eigenvalues are rounding's: sums of as many products
    known = values > rtol * values[-1]
    diagonal = (V[:, known] ** 2 / values[known]).sum(axis=1) / norms**2
    lost = (V[:, ~known] ** 2).sum(axis=1) > rtol
    return np.asarray(np.where(lost, np.inf, diagonal))


def _monomials(U: FloatArray, terms: tuple[tuple[int, ...], ...]) -> FloatArray:
    """Products of units, (n, k) -> (n, p)."""
    return np.column_stack([np.prod(U[:, list(S)], axis=1) for S in terms])


def _slopes(U: FloatArray, terms: tuple[tuple[int, ...], ...], c: FloatArray) -> FloatArray:
    """Derivative of the polynomial by each unit, (n, k)."""
    slopes = np.zeros_like(U)
    for S, a in zip(terms, c, strict=True):
        for i in S:
            slopes[:, i] += a * np.prod(U[:, [j for j in S if j != i]], axis=1)
    return slopes
