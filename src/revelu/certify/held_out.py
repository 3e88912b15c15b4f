"""A certificate from samples that were kept apart, where nothing can be asked."""

import math
from collections.abc import Callable

import numpy as np

from revelu.certify.firing import MOST_WRONG
from revelu.numerics.confidence import CONFIDENCE, at_most, upper_bound
from revelu.numerics.error_law import EXACT, ErrorLaw
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
    scales: FloatArray | None = None,
    law: ErrorLaw = EXACT,
    *,
    rtol: float = 1e-9,
    ulps: float = 16.0,
    sigmas: float = 4.0,
    far: float = 0.05,
) -> Certificate:
    """State what samples that had no part in a fit say of it.

    Parameters
    ----------
    network : callable, (n, d) -> (n, 1)
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    noise : float
        Standard deviation of the answers' noise as the fit shows it, or of a typical answer;
        0 where it is exact.
    scales : ndarray, shape (n,), optional
        Of each answer's noise, where they are not alike.
    law : ErrorLaw
        Of what is left over these.
    rtol : float
        Largest error of exact answers that is rounding, relative to what varies.
    ulps : float
        Units in the last place of the largest answer that are lost where that is large beside
        what varies.
    sigmas : float
        Deviations by which a root mean square may pass its expectation.
    far : float
        Of errors with heavy tails a tolerance leaves out ``far``, beside outliers.

    Returns
    -------
    Certificate
        Which fails with fewer than ``FEWEST_CHECKS`` samples.
    """
    n = len(X)
    errors = np.abs(network(X)[:, 0] - y)
    # Pure noise exceeds this for some sample in one set of twenty; that of heavy tails for some
    # in a hundred and the outliers, for no factor holds all of it that says anything.
    factor = law.quantile(far + law.outliers if law.is_heavy else (1.0 - CONFIDENCE) / max(n, 1))
    largest, varies = float(np.abs(y).max(initial=0.0)), float(np.ptp(y)) if n else 0.0
    rounding = rtol * varies + ulps * np.finfo(np.float64).eps * largest
    tolerance = max(factor * noise, rounding)
    each = np.full(n, noise) if scales is None else scales
    within = errors <= np.maximum(factor * each, rounding)
    rms = float(np.sqrt(np.mean(errors**2))) if n else np.inf
    n_failures = int((~within).sum())
    if law.is_heavy:
        quiet = _as_many_far(errors / each, law, sigmas, (0.5, 0.2, far))
    else:
        # The deviation of a root mean square is 1 / sqrt(2 n) of it.
        allowed = np.maximum(each * (1.0 + sigmas / np.sqrt(2.0 * max(n, 1))), rounding)
        quiet = n > 0 and bool(np.mean((errors / allowed) ** 2) <= 1.0)
    spread = float(y.std()) if n else 0.0
    return Certificate(
        n_checks=n,
        max_abs_error=float(errors.max(initial=0.0)),
        nrmse=rms / spread if spread > 0 else rms,
        fraction_within=float(within.mean()) if n else 0.0,
        tolerance=tolerance,
        confidence=CONFIDENCE,
        statement=_statement(n, n_failures, tolerance, noise, law),
        passed=n >= FEWEST_CHECKS and quiet and (noise > 0 or n_failures == 0),
    )


def _as_many_far(z: FloatArray, law: ErrorLaw, sigmas: float, shares: tuple[float, ...]) -> bool:
    """Whether no more errors are far out than the law has: by half of them, some, and few."""
    n = len(z)
    allowed = ((p, n * p + sigmas * np.sqrt(n * p * (1.0 - p))) for p in shares)
    return all(int((z > law.quantile(p)).sum()) <= most for p, most in allowed)


def _statement(n: int, n_failures: int, tolerance: float, noise: float, law: ErrorLaw) -> str:
    if not n:
        return "nothing was verified: no sample was left"
    kept = f"{n:,} samples kept apart"
    of = f", the noise of {noise:.2g} included" if noise else ""
    if law.slope or law.share:
        of = f" where the noise is {noise:.2g}, and in proportion elsewhere"
    if n_failures and law.is_heavy and n >= FEWEST_CHECKS:
        bound = upper_bound(n_failures, n, CONFIDENCE)
        return (
            f"at {CONFIDENCE:.0%} confidence less than {at_most(100 * bound)}% of inputs of the "
            f"samples' law differ by more than {tolerance:.2g}{of} ({n_failures:,} of {kept} do)"
        )
    if n_failures:
        return f"{n_failures:,} of {kept} differ by more than {tolerance:.2g}{of}"
    if n < FEWEST_CHECKS:
        return f"{kept} agree to {tolerance:.2g}{of}, too few to certify anything"
    bound = upper_bound(0, n, CONFIDENCE)
    return (
        f"at {CONFIDENCE:.0%} confidence less than {at_most(100 * bound)}% of inputs of the "
        f"samples' law differ by more than {tolerance:.2g}{of} ({kept})"
    )
