"""Probabilities as logits: log-ratios against the last class."""

import numpy as np

from revelu.types import FloatArray

# A softmax sums to 1 up to the rounding of its k terms and its division; 32 units
# in the last place leave room for k in the thousands.
_SUM_ULPS = 32.0

# Below this a probability is subnormal or nearly so and has lost its digits.
_SMALLEST = 1e-300


def are_probabilities(Y: FloatArray, eps: float) -> bool:
    """Tell whether every row is non-negative and sums to 1.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
    eps : float
        Unit roundoff of the answers.
    """
    if Y.shape[1] < 2 or not len(Y):
        return False
    atol = _SUM_ULPS * eps * np.sqrt(Y.shape[1])
    return bool((Y >= 0).all() and (np.abs(Y.sum(axis=1) - 1.0) <= atol).all())


def log_ratios(Y: FloatArray) -> FloatArray:
    """Return ``log(y_i / y_last)``: the logits up to a common shift.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
        Probabilities.

    Returns
    -------
    ndarray, shape (n, k - 1)
        A row with any probability too small to have digits is infinite.
    """
    saturated = np.asarray((Y < _SMALLEST).any(axis=1))
    L = np.log(np.where(saturated[:, None], 1.0, Y))
    ratios = L[:, :-1] - L[:, -1:]
    ratios[saturated] = np.inf
    return np.asarray(ratios, dtype=np.float64)
