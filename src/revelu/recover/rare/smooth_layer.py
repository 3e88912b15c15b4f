"""A first layer of sigmoids under a high threshold (GP18, Section 2.1 and B.6).

A sigmoid is never constant: there is no border to find.  Directions come from moments, with
an oracle under a widened Gaussian with exact weights; what products of units add to the
moments bends them by more than chance does.  So units and a polynomial of low degree above
them are fitted together; where nothing is left of the answers, both are exact.
"""

from collections.abc import Callable

import numpy as np

from revelu.errors import LimitReachedError
from revelu.oracle import Ledger, Oracle
from revelu.recover.rare.rare_directions import Start, estimate_directions
from revelu.recover.rare.rare_samples import RareSamples, draw_rare
from revelu.recover.rare.smooth_units import SmoothFit, fit_smooth_units, sets_of
from revelu.recovery import LayerRecovery, Status
from revelu.types import FloatArray

# The widened Gaussian of importance sampling, its queries where the budget sets none, and
# the plain ones that measure the mean.
_WIDTH = 1.25
_N_QUERIES = 1_000_000
_N_PILOT = 20_000

# Of the polynomial; samples for each parameter of a fit; parameters at most.
_MOST_DEGREE = 3
_SAMPLES = 6
_MOST_PARAMETERS = 600

# What a fit leaves of exact answers, relative to their deviation.
_EXACT = 1e-9

# A unit of an exact fit that is off by more, in radians, is one that answers do not tell.
_SPARE = 1e-3

# Where moments do not tell a threshold, a fit starts here.
_THRESHOLD = 3.0

# Errors beyond this are guesses.
_GUESS = 0.5

Tell = Callable[[str], None]


def ask_smooth_layer(
    oracle: Oracle, n_units: int | None, seed: int | np.random.SeedSequence, tell: Tell
) -> LayerRecovery:
    """Recover the layer by importance sampling; see :func:`learn_smooth_layer`."""
    rng = np.random.default_rng(seed)
    n = _N_QUERIES if oracle.remaining is None else min(_N_QUERIES, oracle.remaining)
    n -= 2 * _N_PILOT
    if n < _N_PILOT:
        reason = f"{3 * _N_PILOT:,} queries at least are needed for a smooth activation"
        return nothing(oracle.dim_in, Status.BUDGET_EXHAUSTED, reason, oracle)
    try:
        tell("measuring the mean")
        X = rng.standard_normal((_N_PILOT, oracle.dim_in))
        y = oracle(X)[:, 0]
        tell("drawing from a widened Gaussian")
        samples = draw_rare(oracle, n, float(y.mean()), rng, width=_WIDTH)
    except LimitReachedError as error:
        return nothing(oracle.dim_in, Status.BUDGET_EXHAUSTED, str(error), oracle)
    tell("estimating directions")
    start = estimate_directions(samples, "sigmoid", n_units, rng)
    return _refined(start, X, y, samples, oracle)


def learn_smooth_layer(
    X: FloatArray,
    y: FloatArray,
    n_units: int | None,
    seed: int | np.random.SeedSequence,
    tell: Tell,
) -> LayerRecovery:
    """Recover a layer of sigmoids from samples of N(0, I).

    Returns
    -------
    LayerRecovery
        ``UNVERIFIED`` where a fit explains the answers, for the caller to check, with the fit
        in ``details["fit"]``; else ``PARTIAL``.
    """
    tell("estimating directions")
    samples = RareSamples(X, y - y.mean(), len(y), float(len(y)))
    start = estimate_directions(samples, "sigmoid", n_units, np.random.default_rng(seed))
    return _refined(start, X, y, samples, None)


def _refined(
    start: Start | None,
    X: FloatArray,
    y: FloatArray,
    samples: RareSamples,
    oracle: Oracle | None,
) -> LayerRecovery:
    d = X.shape[1]
    if start is None:
        reason = f"{samples.n:,} samples show no direction above their noise"
        return nothing(d, Status.PARTIAL, reason, oracle)
    details = {"constant": float(y.mean()), "effective_samples": samples.effective, "start": start}
    t = np.where(np.isfinite(start.thresholds), start.thresholds, _THRESHOLD)
    fit = _fit(X, y, start.directions, t)
    spare = np.zeros(len(t), dtype=np.bool_)
    if fit is not None and fit.rms <= _EXACT * float(y.std()):
        spare = fit.errors > _SPARE
        if spare.any() and not spare.all():
            # Units that answers do not tell: what is left without them?
            fit = _fit(X, y, fit.W[~spare], fit.t[~spare])
    ledger = Ledger(0, 0, {}) if oracle is None else oracle.ledger()
    is_exact = fit is not None and fit.rms <= _EXACT * float(y.std())
    if fit is not None and is_exact and fit.errors.max() <= _SPARE:
        return LayerRecovery(
            Status.UNVERIFIED,
            fit.W,
            fit.t,
            fit.errors,
            ledger=ledger,
            evidence=(_SPARE_UNITS.format(m=spare.sum()),) if spare.any() else (),
            method="fit",
            details={**details, "threshold_errors": fit.threshold_errors, "fit": fit},
        )
    errors = start.errors
    if fit is not None and len(fit.W) == len(errors):
        # How far products of units bend the moments, as far as a fit tells.
        bent = np.arccos(np.clip(np.sum(fit.W * start.directions, axis=1), -1.0, 1.0))
        errors = np.hypot(errors, bent)
    kept = errors <= _GUESS
    evidence = [_INEXACT]
    if not kept.all():
        evidence.append(
            f"{int((~kept).sum())} of {len(kept)} directions are left out as guesses; more "
            "samples, or the right number of units, may show them"
        )
    return LayerRecovery(
        Status.PARTIAL,
        start.directions[kept],
        start.thresholds[kept],
        errors[kept],
        ledger=ledger,
        evidence=tuple(evidence),
        method="moments",
        details=details,
    )


def _fit(X: FloatArray, y: FloatArray, W: FloatArray, t: FloatArray) -> SmoothFit | None:
    """Fit polynomials of rising degree until nothing is left; None where none is afforded."""
    k, d = W.shape
    best = None
    for degree in range(1, _MOST_DEGREE + 1):
        p = k * (d + 1) + len(sets_of(k, degree))
        if p > _MOST_PARAMETERS or _SAMPLES * p > len(X):
            break
        rows = slice(0, 2 * _SAMPLES * p)
        best = fit_smooth_units(X[rows], y[rows], W, t, degree)
        if best.rms <= _EXACT * float(y.std()):
            break
    return best


def nothing(d: int, status: Status, reason: str, oracle: Oracle | None = None) -> LayerRecovery:
    """No direction at all, and why."""
    ledger = Ledger(0, 0, {}) if oracle is None else oracle.ledger()
    empty = np.empty(0)
    return LayerRecovery(status, np.empty((0, d)), empty, empty, ledger=ledger, evidence=(reason,))


_SPARE_UNITS = "{m} units of those fitted count for nothing, or are there twice: they are left out"
_INEXACT = (
    "no polynomial of low degree above smooth units explains the answers: directions come from "
    "moments, to the errors given, and nothing certifies them"
)
