"""A certificate from samples that were kept apart, where nothing can be asked."""

from collections.abc import Callable

import numpy as np
from scipy.stats import norm

from revelu.numerics.confidence import upper_bound
from revelu.recovery import Certificate
from revelu.types import FloatArray

CONFIDENCE = 0.95

# Where all of fewer agree, a network that is wrong on a tenth of all inputs would pass more
# often than the confidence allows: 0.9^28 > 0.05 > 0.9^29.
FEWEST_CHECKS = 29

# Of exact answers: the largest error that is rounding, relative to what varies, and what is
# lost where that is small beside the answers themselves.
_RTOL = 1e-9
_ROUNDINGS = 16.0

# With noise: the root mean square may pass its expectation by this many deviations, which
# are 1 / sqrt(2 n) of it.
_SIGMAS = 4.0


def certify_held_out(
    network: Callable[[FloatArray], FloatArray], X: FloatArray, y: FloatArray, noise: float
) -> Certificate:
    """State what samples that had no part in a fit say of it.

    Parameters
    ----------
    network : callable, (n, d) -> (n, 1)
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    noise : float
        Standard deviation of the answers' noise as the fit shows it; 0 where it is exact.

    Returns
    -------
    Certificate
        Which fails with fewer than ``FEWEST_CHECKS`` samples.
    """
    n = len(X)
    errors = np.abs(network(X)[:, 0] - y)
    # An error of pure noise passes this for one sample in twenty such sets.
    factor = float(norm.isf(0.5 * (1.0 - CONFIDENCE) / max(n, 1)))
    largest, varies = float(np.abs(y).max(initial=0.0)), float(np.ptp(y)) if n else 0.0
    rounding = _RTOL * varies + _ROUNDINGS * np.finfo(np.float64).eps * largest
    tolerance = max(factor * noise, rounding)
    within = errors <= tolerance
    rms = float(np.sqrt(np.mean(errors**2))) if n else np.inf
    quiet = rms <= max(noise * (1.0 + _SIGMAS / np.sqrt(2.0 * max(n, 1))), rounding)
    spread = float(y.std()) if n else 0.0
    n_failures = int((~within).sum())
    return Certificate(
        n_checks=n,
        max_abs_error=float(errors.max(initial=0.0)),
        nrmse=rms / spread if spread > 0 else rms,
        fraction_within=float(within.mean()) if n else 0.0,
        tolerance=tolerance,
        confidence=CONFIDENCE,
        statement=_statement(n, n_failures, tolerance, noise),
        passed=n >= FEWEST_CHECKS and quiet and (noise > 0 or n_failures == 0),
    )


def _statement(n: int, n_failures: int, tolerance: float, noise: float) -> str:
    if not n:
        return "nothing was verified: no sample was left"
    kept = f"{n:,} samples kept apart"
    of = f", the noise of {noise:.2g} included" if noise else ""
    if n_failures:
        return f"{n_failures:,} of {kept} differ by more than {tolerance:.2g}{of}"
    if n < FEWEST_CHECKS:
        return f"{kept} agree to {tolerance:.2g}{of}, too few to certify anything"
    bound = upper_bound(0, n, CONFIDENCE)
    return (
        f"at {CONFIDENCE:.0%} confidence less than {100 * bound:.2g}% of inputs of the samples' "
        f"law differ by more than {tolerance:.2g}{of} ({kept})"
    )
