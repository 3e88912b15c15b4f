"""Regression on the features that neurons compute (CKM21, section 4.4).

Neurons are ``relu(w x + b)``; the paper's have ``- b``.
"""

import numpy as np
from scipy.stats import chi2

from revelu.types import BoolArray, FloatArray

# Directions whose singular value is a smaller share of the largest are rounding.
_RANK = 1e-12

_BISECTIONS = 200


def may_be_neurons(W: FloatArray, b: FloatArray, longest: float, largest_bias: float) -> BoolArray:
    """Tell which differences of affine pieces pass the bounds (14), shape (n,).

    Parameters
    ----------
    W : ndarray, shape (n, d)
    b : ndarray, shape (n,)
    longest : float
        ``k R``, for ``k`` neurons with rows no longer than ``R``.
    largest_bias : float
        ``c Δ k^2 R sqrt(log k/δ) + k B``, for biases no larger than ``B``.
    """
    return np.asarray((np.linalg.norm(W, axis=1) <= longest) & (np.abs(b) <= largest_bias))


def draw_in_ball(rng: np.random.Generator, n: int, d: int, radius: float) -> FloatArray:
    """Draw from N(0, I) given a norm of at most ``radius`` (Definition 4.12), shape (n, d).

    Directions are uniform; squared norms follow chi squared, cut at ``radius^2``.

    Parameters
    ----------
    rng : numpy.random.Generator
    n, d : int
    radius : float
        The paper's ``sqrt(d) + O(sqrt(log 1/δ))`` leaves out a share δ.
    """
    X = rng.standard_normal((n, d))
    squares = chi2.ppf(rng.uniform(0.0, chi2.cdf(radius**2, d), n), d)
    return np.asarray(X * np.sqrt(squares / (X**2).sum(axis=1))[:, None])


def features(W: FloatArray, b: FloatArray, X: FloatArray) -> FloatArray:
    """Return ``[relu(W x + b), x, 1]`` of every row (Definition 4.12), shape (n, k + d + 1).

    Parameters
    ----------
    W : ndarray, shape (k, d)
    b : ndarray, shape (k,)
    X : ndarray, shape (n, d)
    """
    return np.column_stack([np.maximum(X @ W.T + b, 0.0), X, np.ones(len(X))])


def bounded_least_squares(Z: FloatArray, y: FloatArray, bound: float) -> FloatArray:
    """Return the least squares solution of ``Z v = y`` with ``|v| <= bound`` (19).

    Parameters
    ----------
    Z : ndarray, shape (n, p)
    y : ndarray, shape (n,)
    bound : float

    Returns
    -------
    ndarray, shape (p,)
        The shortest one where there are several.

    Notes
    -----
    Inside the ball it is the ordinary one; else the ridge solution whose norm is the
    bound, for that norm falls as the ridge grows.

    Examples
    --------
    >>> bounded_least_squares(np.eye(2), np.array([3.0, 4.0]), 1.0).round(6)
    array([0.6, 0.8])
    """
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    kept = s > _RANK * s.max(initial=0.0)
    U, s, Vt = U[:, kept], s[kept], Vt[kept]
    beta = s * (U.T @ y)
    if np.linalg.norm(beta / s**2) <= bound:
        return np.asarray(Vt.T @ (beta / s**2))
    low, high = 0.0, float(np.linalg.norm(beta)) / bound
    for _ in range(_BISECTIONS):
        ridge = (low + high) / 2
        if np.linalg.norm(beta / (s**2 + ridge)) > bound:
            low = ridge
        else:
            high = ridge
    return np.asarray(Vt.T @ (beta / (s**2 + high)))
