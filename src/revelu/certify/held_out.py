"""A certificate from samples that were kept apart, where nothing can be asked."""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from revelu.certify.firing import MOST_WRONG
from revelu.numerics.confidence import CONFIDENCE, at_most, upper_bound
from revelu.recovery import Certificate
from revelu.types import FloatArray

# A network that is wrong on a tenth of all inputs passes fewer checks than this more often than
# the confidence allows: 0.9^28 > 0.05 > 0.9^29.
FEWEST_CHECKS = math.ceil(math.log(1.0 - CONFIDENCE) / math.log(1.0 - MOST_WRONG))


def certify_held_out(
    network: Callable[[FloatArray], FloatArray],
    X: FloatArray,
    y: FloatArray,
    noise: float,
    *,
    rtol: float = 1e-9,
    ulps: float = 16.0,
    sigmas: float = 4.0,
) -> Certificate:
    """State what samples that had no part in a fit say of it.

    Parameters
    ----------
    network : callable, (n, d) -> (n, 1)
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    noise : float
        Standard deviation of the answers' noise as the fit shows it; 0 where it is exact.
    rtol : float
        Largest error of exact answers that is rounding, relative to what varies.
    ulps : float
        Units in the last place of the largest answer that are lost where that is large beside
        what varies.
    sigmas : float
        Deviations by which a root mean square may pass its expectation.

    Returns
    -------
    Certificate
        Which fails with fewer than ``FEWEST_CHECKS`` samples.
    """
    n = len(X)
    errors = np.abs(network(X)[:, 0] - y)
    # Pure noise exceeds this for some sample in one set of twenty.
    factor = float(-ndtri(0.5 * (1.0 - CONFIDENCE) / max(n, 1)))
    largest, varies = float(np.abs(y).max(initial=0.0)), float(np.ptp(y)) if n else 0.0
    rounding = rtol * varies + ulps * np.finfo(np.float64).eps * largest
    tolerance = max(factor * noise, rounding)
    within = errors <= tolerance
    rms = float(np.sqrt(np.mean(errors**2))) if n else np.inf
    # The deviation of a root mean square is 1 / sqrt(2 n) of it.
    quiet = rms <= max(noise * (1.0 + sigmas / np.sqrt(2.0 * max(n, 1))), rounding)
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
        f"at {CONFIDENCE:.0%} confidence less than {at_most(100 * bound)}% of inputs of the "
        f"samples' law differ by more than {tolerance:.2g}{of} ({kept})"
    )
