"""A union of halfspaces fitted to labels: a noisy OR whose temperature falls.

``p(0 | x) = prod_i s(-beta (w_i x - t_i))``, s the logistic function: outside of every
halfspace.  A small beta forgives a start that is far off; a large one sees only the samples
next to a border.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from revelu.types import BoolArray, FloatArray

# beta times a distance beyond which a sample says nothing.
_REACH = 14.0

# Factor between two values of beta, and the first one.
_SHARPER = 2.5
_FIRST = 6.0

# A sharp fit leaves a loss of a few units: what ends a search must be far below one.
_OPTIONS = {"maxiter": 300, "ftol": 1e-7}

# Samples near borders for each parameter, at the least, and as many as a step uses.
_FEWEST = 8.0
_MOST = 300_000

_TINY = 1e-300


def fit_union(
    X: FloatArray, inside: BoolArray, W: FloatArray, t: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fit ``any(W x >= t)`` to labels.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        In random order.
    inside : ndarray of bool, shape (n,)
        Whether each is in the union.
    W : ndarray, shape (k, d)
        A start, rows of norm 1.
    t : ndarray, shape (k,)

    Returns
    -------
    W, t : ndarray
        Rows of norm 1.
    """
    beta, fewest = _FIRST, _FEWEST * W.size
    while True:
        near = np.flatnonzero(_near(X, inside, W, t, _REACH / beta))
        # Where hardly a sample is left near the borders a sharper fit says no more.
        if beta > _FIRST and len(near) < fewest:
            return W, t
        near = near[:_MOST]
        W, t = _fit(X[near], inside[near], W, t, beta)
        beta *= _SHARPER
        if beta > len(X):
            return W, t


def _near(
    X: FloatArray, inside: BoolArray, W: FloatArray, t: FloatArray, reach: float
) -> BoolArray:
    """Samples that are near a border, or on its wrong side."""
    margin = (X @ W.T - t).max(axis=1)
    return np.asarray((np.abs(margin) < reach) | ((margin > 0) != inside))


def _fit(
    X: FloatArray, inside: BoolArray, W: FloatArray, t: FloatArray, beta: float
) -> tuple[FloatArray, FloatArray]:
    k, d = W.shape
    X1 = np.column_stack([X, -np.ones(len(X))])

    def loss(p: FloatArray) -> tuple[float, FloatArray]:
        V = p.reshape(k, d + 1)
        norms = np.linalg.norm(V[:, :d], axis=1)
        unit = V / norms[:, None]
        unit[:, d] = V[:, d]
        score = beta * (X1 @ unit.T)
        outside = np.logaddexp(0.0, score).sum(axis=1)
        # -log p of each label; for those inside -log(1 - exp(-a)), a = sum softplus.
        covered = -np.expm1(-outside)
        value = outside[~inside].sum() - np.log(covered[inside] + _TINY).sum()
        pull = np.where(inside, -np.exp(-outside) / (covered + _TINY), 1.0)
        slope = beta * (pull[:, None] * expit(score)).T @ X1
        # The derivative of a row of norm 1 is across it.
        along = np.sum(slope[:, :d] * unit[:, :d], axis=1)
        slope[:, :d] = (slope[:, :d] - along[:, None] * unit[:, :d]) / norms[:, None]
        return float(value), slope.ravel()

    start = np.column_stack([W, t]).ravel()
    fit = minimize(loss, start, jac=True, method="L-BFGS-B", options=_OPTIONS)
    V = fit.x.reshape(k, d + 1)
    norms = np.linalg.norm(V[:, :d], axis=1)
    return V[:, :d] / norms[:, None], V[:, d]
