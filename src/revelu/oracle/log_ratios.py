"""Probabilities as logits: log-ratios against the last class."""

import numpy as np

from revelu.types import FloatArray

# A softmax sums to 1 up to the rounding of its k terms and its division; 32 units
# in the last place leave room for k in the thousands.
_SUM_ULPS = 32.0

# Below this a probability is subnormal or nearly so and has lost its digits.
SMALLEST = 1e-300

# A probability computed as 1 - p is a multiple of 2^-53 however small it is.  Below this
# it has fewer than 12 of its 16 digits.
SMALLEST_DIFFERENCE = 1e-4
_GRID = 2.0**53
_BELOW_GRID = 2.0**-4


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


def smallest_with_digits(Y: FloatArray) -> float:
    """Tell below which size these probabilities have lost their digits.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
    """
    for column in Y.T:
        small = column[(column < _BELOW_GRID) & (column > 0)]
        on_grid = np.array_equal(small * _GRID, np.rint(small * _GRID))
        # Among correctly rounded small numbers hardly one is such a multiple.  Of two
        # classes one commonly is 1 minus the other: it has to show that it is not.
        if on_grid and (len(small) or Y.shape[1] == 2):
            return SMALLEST_DIFFERENCE
    return SMALLEST


def log_ratios(Y: FloatArray, smallest: float = SMALLEST) -> FloatArray:
    """Return ``log(y_i / y_last)``: the logits up to a common shift.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
        Probabilities.
    smallest : float
        Below it a probability has no digits to speak of.

    Returns
    -------
    ndarray, shape (n, k - 1)
        A row with any probability too small to have digits is infinite.
    """
    saturated = np.asarray(Y.min(axis=1) < smallest)
    L = np.log(np.where(saturated[:, None], 1.0, Y))
    ratios = L[:, :-1] - L[:, -1:]
    ratios[saturated] = np.inf
    return np.asarray(ratios, dtype=np.float64)
