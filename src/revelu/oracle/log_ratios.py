"""Probabilities as logits: log-ratios against the last class."""

import numpy as np

from revelu.numerics.confidence import FALSE_ALARM
from revelu.types import BoolArray, FloatArray

# Below this a float64 probability is subnormal or nearly so and has lost its digits.
SMALLEST = 1e-300

# A probability computed as 1 - p is a multiple of half the spacing next to 1 however small
# it is: of 2^-53 in float64.  Below this it has fewer than 12 of its 16 digits.
SMALLEST_DIFFERENCE = 1e-4

_EPS = float(np.finfo(np.float64).eps)


def are_probabilities(
    Y: FloatArray, eps: float, slack: FloatArray | float = 0.0, ulps: float = 32.0
) -> BoolArray:
    """Tell which rows lie between 0 and 1 and sum to 1.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
    eps : float
        Unit roundoff of the softmax.
    slack : float or ndarray, shape (n,)
        By how much rounding the answers may move a sum.
    ulps : float
        Units in the last place, times sqrt(k), by which the rounding of the k terms and of the
        division moves it; 32 leave room for k in the thousands.

    Returns
    -------
    ndarray of bool, shape (n,)
        False of a single output.
    """
    if Y.shape[1] < 2:
        return np.zeros(len(Y), dtype=bool)
    atol = ulps * eps * np.sqrt(Y.shape[1])
    inside = (Y >= 0.0).all(axis=1) & (1.0 + atol >= Y).all(axis=1)
    return np.asarray(inside & (np.abs(Y.sum(axis=1) - 1.0) <= slack + atol))


def smallest_with_digits(
    Y: FloatArray,
    number: np.finfo[np.floating],
    rounding: float = 0.0,
    scale: float = 1.0,
    *,
    is_paired: bool | None = None,
) -> FloatArray:
    """Tell below which share of the scale the numbers of each class have lost their digits, (k,).

    Parameters
    ----------
    Y : ndarray, shape (n, k)
    number : numpy.finfo
        The format of the answers.
    rounding : float
        By which share of a number rounding to few digits moves it at most.
    scale : float
        Of numbers that are shares of it: 100 of per cent.
    is_paired : bool, optional
        Whether each commonly is the scale minus another one, and counts as such unless its numbers
        refute it: by default where there are two.
    """
    # In shorter formats it is eight times the smallest normal number.
    found = np.full(Y.shape[1], max(SMALLEST, 8.0 * float(number.tiny)))
    of_two, own = Y.shape[1] == 2, number.dtype.type(scale)
    is_paired = of_two if is_paired is None else is_paired
    for j, column in enumerate(Y.T):
        # A logistic that is computed as a half and a rational function is a difference to the half.
        half = own / number.dtype.type(2.0)
        shows = is_paired and bool((column < half / 2.0).any())
        if _are_differences(column, own, number, is_paired) or _are_differences(
            column, half, number, shows
        ):
            found[j] = SMALLEST_DIFFERENCE
        # Differences of float64 numbers that were made float32 ones keep the digits of those down
        # to where half a spacing next to 1, of float64, is half a spacing of the float32 number.
        elif _are_differences(column, np.float64(scale), number, of_two):
            found[j] = max(found[j], _EPS / float(number.eps))
        # Rounded numbers do not show what they are differences of, which of two classes either may
        # be: where half a spacing next to 1, of float64, is half a unit of rounding.
        elif rounding > 0.0 and of_two:
            found[j] = max(found[j], 0.5 * _EPS / rounding)
    return found


def _are_differences(
    column: FloatArray, scale: np.floating, number: np.finfo[np.floating], is_paired: bool
) -> bool:
    """Whether answers may be the scale minus other numbers, in the format of the scale.

    Such are multiples of the spacing below it.  A number of a finer spacing is one by chance, as
    often as that is finer; all of them together are where that is likelier than a false alarm.
    """
    below = np.nextafter(scale, scale.dtype.type(0.0))
    unit = float(scale - below)
    # Numbers from the power of two below the scale on are that far apart.
    lower = column[(column > 0) & (column < float(scale) - 2.0 ** np.floor(np.log2(below)))]
    steps = lower / unit
    if not np.array_equal(steps, np.rint(steps)):
        return False
    own = np.spacing(lower.astype(number.dtype)).astype(np.float64)
    chance = np.log(np.minimum(own / unit, 1.0)).sum()
    return bool(chance <= np.log(FALSE_ALARM)) or is_paired


def log_ratios(Y: FloatArray, smallest: FloatArray | float = SMALLEST) -> FloatArray:
    """Return ``log(y_i / y_last)``: the logits up to a common shift.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
        Probabilities.
    smallest : float or ndarray, shape (k,)
        Below it a probability has no digits to speak of: of two classes of which one is computed
        as 1 minus the other, that one alone, and on the other's side logits go far.

    Returns
    -------
    ndarray, shape (n, k - 1)
        A row with any probability too small to have digits is infinite.
    """
    saturated = np.asarray((smallest > Y).any(axis=1))
    L = np.log(np.where(saturated[:, None], 1.0, Y))
    ratios = L[:, :-1] - L[:, -1:]
    ratios[saturated] = np.inf
    return np.asarray(ratios, dtype=np.float64)


def softmax(Y: FloatArray) -> FloatArray:
    """Return the probabilities of which ``Y (n, k)`` are logits."""
    with np.errstate(invalid="ignore"):  # an infinite logit has no probability: NaN
        E = np.exp(Y - Y.max(axis=1, keepdims=True))
        return np.asarray(E / E.sum(axis=1, keepdims=True))
