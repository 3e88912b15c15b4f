"""Exact binomial confidence bounds."""

from scipy.stats import beta


def upper_bound(n_failures: int, n: int, confidence: float) -> float:
    """Upper confidence bound on a failure rate (Clopper and Pearson, 1934).

    Parameters
    ----------
    n_failures : int
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
    >>> round(upper_bound(0, 3000, 0.95), 6)
    0.000998
    """
    if n_failures >= n:
        return 1.0
    return float(beta.ppf(confidence, n_failures + 1, n - n_failures))
