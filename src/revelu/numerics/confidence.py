"""How sure a run is: one false-alarm probability for its tests, one confidence for its bounds.

A test compares a number with its standard error.  How many standard errors it allows follows
from how many tests share :data:`FALSE_ALARM`.  Some searches allow more: where an error is a bound
and no standard error, they multiply it by a field of their own that says why.
"""

from decimal import ROUND_CEILING, Context

from scipy.special import betaincinv, ndtri

FALSE_ALARM = 1e-6
"""Probability that Gaussian noise passes for a finding in any test of one kind in a run."""

CONFIDENCE = 0.95
"""Of the statements that certificates make."""


def standard_errors(n_tests: float = 1e9) -> float:
    """Return how many standard errors noise exceeds in none of a run's tests.

    Each of ``n_tests`` two-sided tests is given an equal part of `FALSE_ALARM` (Bonferroni).
    The number is rounded to a whole one: standard errors are estimates themselves.

    Parameters
    ----------
    n_tests : float
        The default is for tests of single answers: ten million queries with a hundred outputs
        each, more than a run asks.

    Examples
    --------
    >>> [standard_errors(n) for n in (1, 1e3, 1e6, 1e9)]
    [5.0, 6.0, 7.0, 8.0]
    """
    return float(round(-ndtri(0.5 * FALSE_ALARM / n_tests)))


SIGMAS = standard_errors()
"""Standard errors allowed to an answer, or to what is computed from a few of them."""

_TWO_UP = Context(prec=2, rounding=ROUND_CEILING)


def upper_bound(n_failures: int, n: int, confidence: float = CONFIDENCE) -> float:
    """Upper confidence bound on a failure rate (Clopper and Pearson, 1934).

    Parameters
    ----------
    n : int
        Independent trials.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    float
        With no failure, ``1 - (1 - confidence)^(1/n)``; with no trial, 1.

    Examples
    --------
    >>> round(upper_bound(0, 3000), 6)
    0.000998
    """
    if n_failures >= n:
        return 1.0
    return float(betaincinv(n_failures + 1, n - n_failures, confidence))


def at_most(bound: float) -> str:
    """Write a bound with two digits, rounded up: what is stated has to be shown.

    Examples
    --------
    >>> at_most(upper_bound(0, 2900))
    '0.0011'
    >>> at_most(99.2)
    '100'
    """
    value = float(_TWO_UP.create_decimal_from_float(bound))
    return f"{value:.0f}" if 10.0 <= value <= 100.0 else f"{value:.2g}"
