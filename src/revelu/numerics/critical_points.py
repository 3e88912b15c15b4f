"""Where a random line crosses the hyperplanes of neurons, and how far apart (CKM21, 4.1).

The paper writes a neuron ``relu(<w, x> - b)``; here it is ``relu(w x + b)``, which changes
neither distances nor closeness.  Bounds stand up to a constant, as in print.
"""

import numpy as np

from revelu.types import BoolArray, FloatArray


def critical_points(W: FloatArray, b: FloatArray, x0: FloatArray, v: FloatArray) -> FloatArray:
    """Return the ``t`` at which neurons change their state on ``x0 + t v`` (Proposition 4.2).

    Parameters
    ----------
    W : ndarray, shape (k, d)
    b : ndarray, shape (k,)
    x0, v : ndarray, shape (d,)

    Returns
    -------
    ndarray, shape (k,)
        Infinite where the line never meets the hyperplane.

    Examples
    --------
    >>> critical_points(np.eye(2), np.array([1.0, 0.0]), np.zeros(2), np.array([2.0, 0.0]))
    array([-0.5,  inf])
    """
    slopes = W @ v
    met = slopes != 0
    return np.where(met, -(W @ x0 + b) / np.where(met, slopes, 1.0), np.inf)


def reach(W: FloatArray, b: FloatArray, delta: float) -> float:
    """Return how far out a Gaussian line's critical points lie, but for ``delta`` (Lemma 4.3).

    Parameters
    ----------
    W : ndarray, shape (k, d)
        No row is zero.
    b : ndarray, shape (k,)
    delta : float
        Probability of an exception.

    Notes
    -----
    ``k (sqrt(d) + sqrt(log 1/δ)) / δ * (|b_i| / |w_i| + sqrt(log k/δ))``, the largest over i.
    In print the bias is lost from the proof's second line to its third, and so is the
    ``1 / δ`` of the second summand.
    """
    k, d = W.shape
    offsets = np.abs(b) / np.linalg.norm(W, axis=1)
    slow = k * (np.sqrt(d) + np.sqrt(np.log(1 / delta))) / delta
    return float(slow * (offsets.max(initial=0.0) + np.sqrt(np.log(max(k, 1) / delta))))


def separation(k: int, d: int, closeness: float, delta: float) -> float:
    """Return how near two critical points come, but for ``delta`` (Lemma 4.4).

    Of neurons that are not (Δ, Δ sqrt(log k/δ))-close.

    Parameters
    ----------
    k, d : int
        Neurons and inputs.
    closeness : float
        Δ.
    delta : float
        Probability of an exception.
    """
    return float(closeness * delta**2 / (k**4 * (np.sqrt(d) + np.sqrt(np.log(k / delta)))))


def are_far(
    delta_ij: FloatArray, alpha_ij: FloatArray, closeness: float, delta: float
) -> BoolArray:
    """Tell which pairs Lemma 4.4 speaks of, shape (k, k).

    Parameters
    ----------
    delta_ij, alpha_ij : ndarray, shape (k, k)
        Of :func:`revelu.recover.close.closeness.closeness`.
    closeness, delta : float
        As for :func:`separation`.
    """
    alpha = closeness * np.sqrt(np.log(len(delta_ij) / delta))
    return np.asarray((delta_ij > closeness) | (alpha_ij > alpha))
