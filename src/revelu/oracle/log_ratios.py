"""Probabilities as logits: log-ratios against the last class."""

import numpy as np

from revelu.types import BoolArray, FloatArray

# A softmax sums to 1 up to the rounding of its k terms and its division; 32 units
# in the last place leave room for k in the thousands.
_SUM_ULPS = 32.0

# Below this a probability is subnormal or nearly so and has lost its digits; in other
# formats than float64, below so many of the smallest normal number.
SMALLEST = 1e-300
_TINIES = 8.0

# A probability computed as 1 - p is a multiple of half the spacing next to 1 however small
# it is: of 2^-53 in float64.  Below this it has fewer than 12 of its 16 digits.
SMALLEST_DIFFERENCE = 1e-4
_SMALL = 2.0**-4


def are_probabilities(Y: FloatArray, eps: float, slack: FloatArray | float = 0.0) -> BoolArray:
    """Tell which rows lie between 0 and 1 and sum to 1.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
    eps : float
        Unit roundoff of the softmax.
    slack : float or ndarray, shape (n,)
        By how much rounding the answers may move a sum.

    Returns
    -------
    ndarray of bool, shape (n,)
        False of a single output.
    """
    if Y.shape[1] < 2:
        return np.zeros(len(Y), dtype=bool)
    ulps = _SUM_ULPS * eps * np.sqrt(Y.shape[1])
    inside = (Y >= 0.0).all(axis=1) & (1.0 + ulps >= Y).all(axis=1)
    return np.asarray(inside & (np.abs(Y.sum(axis=1) - 1.0) <= slack + ulps))


def smallest_with_digits(Y: FloatArray, number: np.finfo[np.floating]) -> float:
    """Tell below which size these probabilities have lost their digits.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
    number : numpy.finfo
        The format of the answers.
    """
    for column in Y.T:
        small = column[(column < _SMALL) & (column > 0)]
        steps = small * 2.0 / float(number.eps)
        # Among correctly rounded small numbers hardly one is such a multiple.  Of two
        # classes one commonly is 1 minus the other: it has to show that it is not.
        if np.array_equal(steps, np.rint(steps)) and (len(small) or Y.shape[1] == 2):
            return SMALLEST_DIFFERENCE
    return max(SMALLEST, _TINIES * float(number.tiny))


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


def softmax(Y: FloatArray) -> FloatArray:
    """Return the probabilities of which ``Y (n, k)`` are logits."""
    with np.errstate(invalid="ignore"):  # an infinite logit has no probability: NaN
        E = np.exp(Y - Y.max(axis=1, keepdims=True))
        return np.asarray(E / E.sum(axis=1, keepdims=True))
