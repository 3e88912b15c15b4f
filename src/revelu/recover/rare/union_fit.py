"""A union of halfspaces fitted to labels: a noisy OR whose temperature falls.

``p(0 | x) = prod_i s(-beta (w_i x - t_i))``, s the logistic function: outside of every
halfspace.  A small beta forgives a start that is far off; a large one sees only the samples
next to a border.  Of labels that may be wrong, ``p`` is mixed with their rates.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from revelu.numerics.float64 import TINY
from revelu.recover.rare.label_noise import LabelNoise
from revelu.types import BoolArray, FloatArray


def fit_union(
    X: FloatArray,
    inside: BoolArray,
    W: FloatArray,
    t: FloatArray,
    *,
    noise: LabelNoise | None = None,
    first: float = 6.0,
    sharper: float = 2.5,
    fewest: float = 8.0,
    most: int = 300_000,
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
    noise : LabelNoise, optional
        Wrong labels to begin with; counted anew for each beta, farther from borders than it is
        soft.  None where no label is wrong.
    first : float
        The first beta: a border is soft over 1 / 6, about the error of a start in a threshold.
    sharper : float
        Factor between two values of beta, small enough for one fit to lead to the next.
    fewest : float
        Samples near borders that a sharper fit needs for each number in ``W``; with fewer the
        labels say no more.
    most : int
        Samples that one fit uses.

    Returns
    -------
    W, t : ndarray
        Rows of norm 1.
    """
    beta = first
    while beta <= len(X) or beta == first:
        # At 14 / beta from every border the loss is exp(-14) = 1e-6: such a sample counts only
        # where it is on the wrong side, and not even there if labels may be wrong.
        margin = (X @ W.T - t).max(axis=1)
        beside = np.abs(margin) < 14.0 / beta
        near = np.flatnonzero(beside if noise is not None else beside | ((margin > 0) != inside))
        if beta > first and len(near) < fewest * W.size:
            break
        near = near[:most]
        W, t = _fit(X[near], inside[near], W, t, beta, noise or LabelNoise())
        if noise is not None:
            depth = (X @ W.T - t).max(axis=1)
            noise = LabelNoise.measured(depth, inside, 3.0 / beta)
        beta *= sharper
    return W, t


def _fit(
    X: FloatArray,
    inside: BoolArray,
    W: FloatArray,
    t: FloatArray,
    beta: float,
    noise: LabelNoise,
) -> tuple[FloatArray, FloatArray]:
    k, d = W.shape
    X1 = np.column_stack([X, -np.ones(len(X))])
    raised, signal = noise.raised, noise.signal
    with np.errstate(divide="ignore"):
        log_missed, log_signal = np.log(noise.missed), np.log(signal)

    def loss(p: FloatArray) -> tuple[float, FloatArray]:
        V = p.reshape(k, d + 1)
        norms = np.linalg.norm(V[:, :d], axis=1)
        unit = V / norms[:, None]
        unit[:, d] = V[:, d]
        score = beta * (X1 @ unit.T)
        outside = np.logaddexp(0.0, score).sum(axis=1)
        # Without noise -log p of a label is a = sum softplus, or -log(1 - exp(-a)) inside.
        log_none = np.logaddexp(log_missed, log_signal - outside)
        one = raised - signal * np.expm1(-outside)
        value = -log_none[~inside].sum() - np.log(one[inside] + TINY).sum()
        bare = np.exp(log_signal - outside)
        pull = np.where(inside, -bare / (one + TINY), np.exp(log_signal - outside - log_none))
        slope = beta * (pull[:, None] * expit(score)).T @ X1
        # The derivative of a row of norm 1 is across it.
        along = np.sum(slope[:, :d] * unit[:, :d], axis=1)
        slope[:, :d] = (slope[:, :d] - along[:, None] * unit[:, :d]) / norms[:, None]
        return float(value), slope.ravel()

    # A sharp fit leaves a loss of a few units: the search ends far below one.
    options = {"maxiter": 300, "ftol": 1e-7}
    start = np.column_stack([W, t]).ravel()
    fit = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    V = fit.x.reshape(k, d + 1)
    norms = np.linalg.norm(V[:, :d], axis=1)
    return V[:, :d] / norms[:, None], V[:, d]
