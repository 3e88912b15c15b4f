"""A first layer that fires rarely, from samples (GP18, Sections 2.1 and 2.2, B.6 and B.7).

Directions come from moments; then, in place of RefineEstimate, for ReLU a robust regression
where one unit fires alone, which is exact; for sign, and for what rises otherwise, the
halfspaces that agree with where f leaves its constant.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revelu.numerics.float64 import HALF_DIGITS
from revelu.numerics.least_deviations import least_deviations
from revelu.recover.method import Tell, Why
from revelu.recover.rare.firing import fit_firing, with_start
from revelu.recover.rare.halfspaces import MOST_MORE, recover_union
from revelu.recover.rare.rare_directions import begin, estimate_directions
from revelu.recover.rare.rare_samples import (
    Constant,
    RareSamples,
    fewest_samples,
    no_constant,
    rare_samples,
)
from revelu.recover.rare.smooth_layer import fit_smooth_layer
from revelu.recover.rare.units import (
    Units,
    UnitsCandidate,
    largest_other,
    samples_to_tell,
    without_guesses,
)
from revelu.types import BoolArray, FloatArray

# A unit counts as firing alone where its estimated margin is the only one above minus this: an
# error of 0.05 in a direction moves a margin by as much three standard deviations to the side.
_ALONE = 0.15


def recover_sampled_layer(
    X: FloatArray,
    y: FloatArray,
    constant: Constant,
    activation: str,
    n_units: int | None,
    rng: np.random.Generator,
    tell: Tell,
    *,
    least_quiet: float = 0.2,
    mostly_quiet: float = 0.5,
) -> UnitsCandidate:
    """Recover the layer from samples of N(0, I).

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    constant : Constant
        c_0, the answer given most often: the median, where units fire rarely.
    activation : {"relu", "sign", "sigmoid"}
    least_quiet, mostly_quiet : float
        Shares of quiet samples.  Below ``mostly_quiet`` products of units are no longer rare:
        steps are not sought there.  A regression on ReLUs is exact or fails, so that they are
        sought down to ``least_quiet``, with a warning.

    Returns
    -------
    UnitsCandidate
        ``UNRESOLVED`` where units are known from moments.
    """
    n, d = X.shape
    if activation == "sigmoid":
        samples = RareSamples.plain(X, y - y.mean())
        return fit_smooth_layer(X, y, samples, n_units, rng, tell)
    if constant.share < (least_quiet if activation == "relu" else mostly_quiet):
        return UnitsCandidate.none(d, Why.REFUTED, no_constant(constant.share))
    c0, fires = float(constant.value[0]), ~constant.is_answer(y[:, None])
    figures: dict[str, Any] = {
        "constant": c0,
        "rounding": constant,
        "quiet": constant.share,
        "n_samples": n,
    }
    if activation == "sign":
        union = recover_union(X, fires, n_units, rng, tell)
        return replace(union, method="samples", constant=constant, figures=figures)
    # 1. Directions from moments.
    samples = rare_samples(X, np.where(fires, y, c0), c0)
    start = begin(samples, activation, n_units, rng, tell)
    if isinstance(start, str):
        return UnitsCandidate.none(d, Why.UNRESOLVED, start)
    # 2. Each unit by regression where it fires alone; one more, while samples fire elsewhere.
    most_more = MOST_MORE if n_units is None else 0
    layer = _regressed(samples, start, constant.tolerance, most_more, tell)
    # 3. Where no linear function fits, a unit is still known by where it fires.
    doubts: tuple[str, ...] = ()
    if not layer.exact.all():
        tell("fitting where units fire")
        layer, doubts = _by_firing(X, y - c0, fires, layer, rng)
    kept = layer.units.told
    found, left_out = without_guesses(layer.units, len(samples.X), n)
    notes = (*left_out, *doubts)
    why = Why.UNRESOLVED if notes else Why.EXPLAINED
    if inexact := int((kept & ~layer.exact).sum()):
        notes = (*notes, _INEXACT.format(m=inexact, k=len(kept)))
    notes = (*notes, *_bent(samples, layer))
    if constant.share < mostly_quiet:
        notes = (*notes, _LOW.format(share=constant.share))
    figures |= {"start": start, "coefficients": layer.c[kept]}
    return UnitsCandidate(why, found, notes, "samples", constant=constant, figures=figures)


def recover_biased_layer(
    X: FloatArray, activation: str, n_units: int | None, rng: np.random.Generator
) -> UnitsCandidate:
    """Estimate the layer from samples kept with a probability proportional to f (GP18, B.6).

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Drawn from N(0, I), then kept or not.
    activation : {"relu", "sign", "sigmoid"}
    n_units : int, optional
        Told from noise if left out.

    Returns
    -------
    UnitsCandidate
        ``UNRESOLVED``: without answers nothing puts directions to the test.
    """
    # E[h(x)] over such samples is E[f(x) h(x)] / E[f(x)] over N(0, I).
    samples = RareSamples.plain(X, np.ones(len(X)))
    start = estimate_directions(samples, activation, n_units, rng)
    if start is None:
        return UnitsCandidate.none(X.shape[1], Why.UNRESOLVED, _NO_BIAS.format(n=len(X)))
    notes: tuple[str, ...] = (_BIASED,)
    if guesses := int((~start.told).sum()):
        needed = samples_to_tell(start.errors, len(X))
        notes = (*notes, _GUESSES.format(m=guesses, needed=needed))
    figures = {"n_samples": len(X), "start": start}
    return UnitsCandidate(
        Why.UNRESOLVED, start[start.told], notes, "biased samples", figures=figures
    )


@dataclass(frozen=True)
class _Layer:
    """Units of ``c_i relu(w_i x - t_i)``; ``c`` is NaN where no linear function fits one alone."""

    units: Units
    c: FloatArray

    @property
    def exact(self) -> BoolArray:
        return np.isfinite(self.c)

    def __getitem__(self, kept: BoolArray) -> "_Layer":
        return _Layer(self.units[kept], self.c[kept])


def _regressed(
    samples: RareSamples, start: Units, tolerance: float, most_more: int, tell: Tell
) -> _Layer:
    """Regress on every unit; on one more, while many samples that fire are no unit's."""
    fewest = fewest_samples(samples.X.shape[1])
    for left in reversed(range(most_more + 1)):
        tell(f"regression on {len(start)} units")
        layer = _alone(samples, start, tolerance)
        margins, exact = layer.units.margins(samples.X), layer.exact
        if exact.any() and (margins[:, exact].max(axis=1) > 0).all():
            # The others are not needed, wherever they came from.
            return layer[exact]
        rest = samples.X[(margins < -_ALONE).all(axis=1)]
        if not left or not exact.all() or len(rest) < fewest:
            break
        start = start.with_one_more(rest)
    return layer


def _alone(samples: RareSamples, start: Units, tolerance: float) -> _Layer:
    """L1 regression of f - c_0 = c (w x - t) for each unit where the others do not fire."""
    d = samples.X.shape[1]
    margins = start.margins(samples.X)
    W, t, c = start.directions.copy(), start.thresholds.copy(), np.full(len(start), np.nan)
    errors, threshold_errors = start.errors.copy(), start.errors.copy()
    for i in range(len(start)):
        alone = (margins[:, i] > -_ALONE) & (largest_other(margins, i) < -_ALONE)
        X, v = samples.X[alone], samples.values[alone]
        if len(X) < fewest_samples(d):
            continue
        fit = least_deviations(np.column_stack([X, np.ones(len(X))]), v)
        size = float(np.linalg.norm(fit.x[:d]))
        # A step has the slope that its rounding makes: what least_deviations takes for exact.
        if not fit.is_exact or size <= HALF_DIGITS * float(np.abs(v).max()):
            continue
        # f = c_0 + c relu(w x - t): where it fires alone the sign of c is that of f - c_0.
        c[i] = size * float(np.sign(np.median(v[fit.exact])))
        across = np.trace(fit.covariance[:d, :d])
        along = across * t[i] ** 2 + fit.covariance[d, d]
        # What is taken for the constant's rounding may be a slope of its own.
        hidden = tolerance / size
        errors[i] = float(np.sqrt(across)) / size + hidden
        threshold_errors[i] = float(np.sqrt(along)) / size + hidden
        W[i], t[i] = fit.x[:d] / c[i], -float(fit.x[d]) / c[i]
    return _Layer(Units(W, t, errors, threshold_errors), c)


def _by_firing(
    X: FloatArray, values: FloatArray, fires: BoolArray, layer: _Layer, rng: np.random.Generator
) -> tuple[_Layer, tuple[str, ...]]:
    """Units by the halfspaces at whose union f leaves its constant; exact ones stay.

    GP18's B.7 asks for no more than that ``q_i`` leaves 0 at the threshold.
    """
    units, exact = layer.units, layer.exact
    if not np.isfinite(units.thresholds).all():
        return layer, (_NO_THRESHOLD,)
    found, notes = with_start(X, fires, fit_firing(X, fires, units, rng), units)
    margins = found.margins(X)
    late = np.zeros(len(units))
    for i in np.flatnonzero(~exact):
        # A rise from 0 is seen as late as its smallest value says.
        alone = fires & (margins[:, i] <= _ALONE) & (margins[:, i] > 0)
        alone &= largest_other(margins, i) < 0
        sizes = np.abs(values[alone])
        slope = float(np.median(sizes / margins[alone, i])) if alone.any() else 0.0
        late[i] = float(sizes.min()) / slope if slope else 0.0
    found = replace(found, threshold_errors=found.threshold_errors + late)
    return replace(layer, units=units.where(exact, found)), notes


def _bent(samples: RareSamples, layer: _Layer) -> tuple[str, ...]:
    """Say where f is not linear though one unit fires alone: what fires behind it is not seen."""
    margins = layer.units.margins(samples.X)
    # What float32 rounds is no bend.
    most = 1e-6 * float(np.abs(samples.values).max())
    found = []
    for i in np.flatnonzero(layer.exact):
        alone = (margins[:, i] > 0) & (largest_other(margins, i) < 0)
        off = np.abs(samples.values[alone] - layer.c[i] * margins[alone, i]) > most
        if off.any():
            found.append(_BENT.format(i=i, m=int(off.sum()), n=int(alone.sum())))
    return tuple(found)


_LOW = (
    "only {share:.0%} of the samples are quiet: under so low a threshold products of units are "
    "not rare, and their moments may hide a unit"
)
_INEXACT = (
    "{m} of {k} units are known by where they fire alone, to the errors given: no linear "
    "function fits there, so that they are no ReLUs, or answers are rounded"
)
_BENT = (
    "where unit {i} fires alone its linear function holds not at {m:,} of {n:,} samples: its "
    "degree is higher there, or behind it is another unit, which is not found"
)
_BIASED = (
    "directions come from moments, which leave out what products of units add, and nothing "
    "certifies them: samples without answers tell no more"
)
_GUESSES = "{m} directions are left out as guesses; some {needed:,} samples would do"
_NO_BIAS = "{n:,} samples show no direction above their noise"
_NO_THRESHOLD = (
    "moments do not tell every threshold: products of units outweigh them, or units are others "
    "than was said"
)
