"""A first layer of sigmoids under a high threshold (GP18, Section 2.1 and B.6).

A sigmoid is never constant: there is no border to find.  Directions come from moments, with
an oracle under a widened Gaussian with exact weights; what products of units add to the
moments bends them by more than chance does.  So units and a polynomial of low degree above
them are fitted together; where nothing is left of the answers, both are exact.
"""

from dataclasses import replace

import numpy as np

from revelu.errors import LimitReachedError
from revelu.oracle import Oracle
from revelu.recover.method import Tell, Why
from revelu.recover.rare.rare_directions import estimate_directions
from revelu.recover.rare.rare_samples import RareSamples, draw_rare
from revelu.recover.rare.smooth_units import SmoothFit, fit_smooth_units, sets_of
from revelu.recover.rare.units import Units, UnitsCandidate
from revelu.types import FloatArray


def ask_smooth_layer(
    oracle: Oracle,
    n_units: int | None,
    rng: np.random.Generator,
    tell: Tell,
    *,
    width: float = 1.25,
    n_queries: int = 1_000_000,
    n_pilot: int = 20_000,
) -> UnitsCandidate:
    """Recover the layer by importance sampling; see :func:`fit_smooth_layer`.

    Parameters
    ----------
    width : float
        Of the Gaussian that is drawn from: wider ones see rare events more often, but their
        weights vary more, as ``width^d``.
    n_queries : int
        Where the budget sets no fewer.
    n_pilot : int
        Queries of N(0, I) itself, which measure the mean and are fitted; as many are left to
        the certificate.
    """
    d = oracle.dim_in
    n = n_queries if oracle.remaining is None else min(n_queries, oracle.remaining)
    n -= 2 * n_pilot
    if n < n_pilot:
        reason = f"{3 * n_pilot:,} queries at least are needed for a smooth activation"
        return UnitsCandidate.none(d, Why.LIMIT, reason)
    try:
        tell("measuring the mean")
        X = rng.standard_normal((n_pilot, d))
        y = oracle(X)[:, 0]
        tell("drawing from a widened Gaussian")
        samples = draw_rare(oracle, n, float(y.mean()), rng, width=width)
    except LimitReachedError as error:
        return UnitsCandidate.none(d, Why.LIMIT, str(error))
    return fit_smooth_layer(X, y, samples, n_units, rng, tell)


def fit_smooth_layer(
    X: FloatArray,
    y: FloatArray,
    samples: RareSamples,
    n_units: int | None,
    rng: np.random.Generator,
    tell: Tell,
) -> UnitsCandidate:
    """Recover a layer of sigmoids from answers at N(0, I), and from samples with their moments.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    samples : RareSamples
        The same ones, less their mean, or more of them.

    Returns
    -------
    UnitsCandidate
        ``EXPLAINED`` with the fit where one explains the answers; else ``UNRESOLVED``.
    """
    tell("estimating directions")
    start = estimate_directions(samples, "sigmoid", n_units, rng)
    if start is None:
        reason = f"{samples.n:,} samples show no direction above their noise"
        return UnitsCandidate.none(X.shape[1], Why.UNRESOLVED, reason)
    figures = {"constant": float(y.mean()), "effective_samples": samples.effective, "start": start}
    # Where moments do not tell a threshold, a fit starts at a typical one.
    t = np.where(np.isfinite(start.thresholds), start.thresholds, 3.0)
    fit = _fit(X, y, start.directions, t)
    # A unit of an exact fit that is off by more, in radians, is one that answers do not tell.
    most_off, m_spare = 1e-3, 0
    if fit is not None and _explains(fit, y):
        spare = fit.errors > most_off
        if spare.any() and not spare.all():
            # What is left without them?
            fit, m_spare = _fit(X, y, fit.W[~spare], fit.t[~spare]), int(spare.sum())
    if fit is not None and _explains(fit, y) and fit.errors.max() <= most_off:
        units = Units(fit.W, fit.t, fit.errors, fit.threshold_errors)
        spared = (_SPARE_UNITS.format(m=m_spare),) if m_spare else ()
        return UnitsCandidate(Why.EXPLAINED, units, spared, "fit", fit=fit, figures=figures)
    errors = start.errors
    if fit is not None and len(fit.W) == len(errors):
        # How far products of units bend the moments, as far as a fit tells.
        bent = np.arccos(np.clip(np.sum(fit.W * start.directions, axis=1), -1.0, 1.0))
        errors = np.hypot(errors, bent)
    units = replace(start, errors=errors)
    left_out: tuple[str, ...] = ()
    if guesses := int((~units.told).sum()):
        left_out = (_GUESSES.format(m=guesses, k=len(units)),)
    notes = (_INEXACT, *left_out)
    return UnitsCandidate(Why.UNRESOLVED, units[units.told], notes, "moments", figures=figures)


def _explains(fit: SmoothFit, y: FloatArray) -> bool:
    """Whether a fit leaves nothing of exact answers.

    The bound leaves room, above the 1e-16 of float64, for the rounding of sums and products of
    units and for what the last step of the fit leaves.
    """
    return fit.rms <= 1e-9 * float(y.std())


def _fit(X: FloatArray, y: FloatArray, W: FloatArray, t: FloatArray) -> SmoothFit | None:
    """Fit polynomials of rising degree until nothing is left; None where none is afforded."""
    k, d = W.shape
    best = None
    for degree in (1, 2, 3):
        # Six samples for each parameter rule out a fit by chance; with 600 parameters a step
        # takes seconds.
        p = k * (d + 1) + len(sets_of(k, degree))
        if p > 600 or 6 * p > len(X):
            break
        rows = slice(0, 12 * p)
        best = fit_smooth_units(X[rows], y[rows], W, t, degree)
        if _explains(best, y):
            break
    return best


_SPARE_UNITS = "{m} units of those fitted count for nothing, or are there twice: they are left out"
_INEXACT = (
    "no polynomial of low degree above smooth units explains the answers: directions come from "
    "moments, to the errors given, and nothing certifies them"
)
_GUESSES = (
    "{m} of {k} directions are left out as guesses; more samples, or the right number of units, "
    "may show them"
)
