"""A first layer that fires rarely, from samples (GP18, Sections 2.1 and 2.2, B.6 and B.7).

Directions come from moments; then, in place of RefineEstimate, for ReLU a robust regression
where one unit fires alone, which is exact; for sign, and for what rises otherwise, the
halfspaces that agree with where f leaves its constant.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.least_deviations import least_deviations
from revelu.recover.rare.firing import fit_firing
from revelu.recover.rare.halfspaces import (
    FEWEST,
    GUESS,
    MOST_MORE,
    NO_QUERIES,
    Units,
    fit_rare_union,
    too_few,
    with_start,
)
from revelu.recover.rare.lowest_layer import COMMON, no_constant
from revelu.recover.rare.rare_directions import estimate_directions
from revelu.recover.rare.rare_samples import Constant, RareSamples, biased_samples, rare_samples
from revelu.recover.rare.smooth_layer import learn_smooth_layer, nothing
from revelu.recovery import LayerRecovery, Status
from revelu.types import BoolArray, FloatArray

# Below this share of quiet samples products of units are no longer rare.
_QUIET = 0.5

# A unit fires alone where its estimated margin is the only one above this.
_ALONE = 0.15

# A slope so small beside the values is rounding: what least_deviations takes for exact.
_FLAT = 1e-8

# Beyond the rounding of float32, a linear function does not hold.
_OFF = 1e-6

Tell = Callable[[str], None]


def recover_from_samples(
    X: FloatArray,
    y: FloatArray,
    quiet: Constant,
    activation: str,
    n_units: int | None,
    seed: int | np.random.SeedSequence,
    tell: Tell,
) -> LayerRecovery:
    """Recover the layer from samples of N(0, I).

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    quiet : Constant
        c_0, the answer given most often: the median, where units fire rarely.
    activation : {"relu", "sign", "sigmoid"}
    n_units : int, optional
    seed : int or SeedSequence
    tell : callable

    Returns
    -------
    LayerRecovery
        As from :func:`recover_by_queries`; ``PARTIAL`` where units are known from moments.
    """
    rng = np.random.default_rng(seed)
    d = X.shape[1]
    if activation == "sigmoid":
        return learn_smooth_layer(X, y, n_units, seed, tell)
    constant, share = float(quiet.value[0]), quiet.share
    if share < (COMMON if activation == "relu" else _QUIET):
        return nothing(d, Status.NOT_IN_CLASS, no_constant(share))
    fires = ~quiet.is_answer(y[:, None])
    y = np.where(fires, y, constant)
    details: dict[str, object] = {
        "constant": constant,
        "rounding": quiet,
        "quiet": share,
        "n_samples": len(y),
    }
    warning = (_LOW.format(share=share),) if share < _QUIET else ()
    if activation == "sign":
        union, status, reasons = fit_rare_union(X, fires, n_units, rng, tell)
        return LayerRecovery(
            status,
            union.directions,
            union.thresholds,
            union.errors,
            ledger=NO_QUERIES,
            evidence=reasons,
            method="samples",
            details={**details, "threshold_errors": union.threshold_errors},
        )
    samples = rare_samples(X, y, constant)
    needed = int(np.ceil(FEWEST * (n_units or 1) * (d + 1)))
    if len(samples.X) < needed:
        return nothing(d, Status.PARTIAL, too_few(len(samples.X), needed, len(y)))
    tell("estimating directions")
    start = estimate_directions(samples, activation, n_units, rng)
    if start is None:
        more = 4 * max(len(samples.X), needed)
        return nothing(d, Status.PARTIAL, too_few(len(samples.X), more, len(y)))
    first = Units(start.directions, start.thresholds, start.errors)
    units, begun = _regressed(samples, first, quiet.tolerance, n_units is None, tell)
    evidence: tuple[str, ...] = ()
    if not all(u.is_exact for u in units):
        # Where no linear function fits, a unit is still known by where it fires.
        tell("fitting where units fire")
        units, evidence = _by_firing(X, y - constant, fires, units, begun, rng)
    details["start"] = start
    found = _collected(units, d, evidence, len(samples.X), len(y), details)
    return replace(found, evidence=(*found.evidence, *_bent(samples, units), *warning))


def recover_from_biased(
    X: FloatArray, activation: str, n_units: int | None, seed: int | np.random.SeedSequence
) -> LayerRecovery:
    """Estimate the layer from samples kept with a probability proportional to f (GP18, B.6).

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Drawn from N(0, I), then kept or not.
    activation : {"relu", "sign", "sigmoid"}
    n_units : int, optional
        Told from noise if left out.
    seed : int or SeedSequence

    Returns
    -------
    LayerRecovery
        ``PARTIAL``: without answers nothing certifies directions.
    """
    d = X.shape[1]
    samples = biased_samples(X)
    start = estimate_directions(samples, activation, n_units, np.random.default_rng(seed))
    if start is None:
        return nothing(d, Status.PARTIAL, _NO_BIAS.format(n=len(X)))
    kept = start.errors <= GUESS
    evidence: tuple[str, ...] = (_BIASED,)
    if not kept.all():
        needed = int(len(X) * (2.0 * float(start.errors.max()) / GUESS) ** 2)
        left_out = f"{int((~kept).sum())} directions are left out as guesses"
        evidence = (*evidence, f"{left_out}; some {needed:,} samples would do")
    return LayerRecovery(
        Status.PARTIAL,
        start.directions[kept],
        start.thresholds[kept],
        start.errors[kept],
        ledger=NO_QUERIES,
        evidence=evidence,
        method="biased samples",
        details={"n_samples": len(X), "start": start},
    )


@dataclass(frozen=True)
class _Unit:
    """A unit, with c where a linear function fits the samples at which it fires alone."""

    w: FloatArray
    t: float
    error: float
    threshold_error: float
    c: float = np.nan
    is_exact: bool = False


def _regressed(
    samples: RareSamples, start: Units, tolerance: float, may_add: bool, tell: Tell
) -> tuple[list[_Unit], Units]:
    """Regress on every unit; one more, while many samples that fire are no unit's."""
    d = samples.X.shape[1]
    for left in reversed(range(MOST_MORE + 1)):
        tell(f"regression on {len(start.errors)} units")
        units = [_alone(samples, start, i, tolerance) for i in range(len(start.errors))]
        margins = np.column_stack([samples.X @ u.w - u.t for u in units])
        sure = np.array([u.is_exact for u in units])
        if sure.any() and not sure.all() and (margins[:, sure].max(axis=1) > 0).all():
            # The others are not needed, wherever they came from.
            kept = np.flatnonzero(sure)
            return [units[i] for i in kept], start
        rest = samples.X[(margins < -_ALONE).all(axis=1)]
        if not (left and may_add and sure.all()) or len(rest) < FEWEST * (d + 1):
            break
        start = start.with_one_more(rest)
    return units, start


def _alone(samples: RareSamples, start: Units, i: int, tolerance: float) -> _Unit:
    """L1 regression of f - c_0 = c (w x - t) where the other units do not fire."""
    margins = samples.X @ start.directions.T - start.thresholds
    others = np.delete(margins, i, axis=1).max(axis=1, initial=-np.inf)
    alone = (margins[:, i] > -_ALONE) & (others < -_ALONE)
    X, v = samples.X[alone], samples.values[alone]
    d = X.shape[1]
    w, t = start.directions[i], float(start.thresholds[i])
    as_it_is = _Unit(w, t, float(start.errors[i]), float(start.errors[i]))
    if len(X) < FEWEST * (d + 1):
        return as_it_is
    fit = least_deviations(np.column_stack([X, np.ones(len(X))]), v)
    size = float(np.linalg.norm(fit.x[:d]))
    # A step has the slope that its rounding makes.
    if not fit.is_exact or size <= _FLAT * float(np.abs(v).max()):
        return as_it_is
    # f = c_0 + c relu(w x - t): where it fires alone the sign of c is that of f - c_0.
    c = size * float(np.sign(np.median(v[fit.exact])))
    across = np.trace(fit.covariance[:d, :d])
    # What is taken for the constant's rounding may be a slope of its own.
    hidden = tolerance / size
    return _Unit(
        fit.x[:d] / c,
        -float(fit.x[d]) / c,
        float(np.sqrt(across)) / size + hidden,
        float(np.sqrt(across * start.thresholds[i] ** 2 + fit.covariance[d, d])) / size + hidden,
        c,
        is_exact=True,
    )


def _bent(samples: RareSamples, units: list[_Unit]) -> tuple[str, ...]:
    """Say where f is not linear though one unit fires alone: what fires behind it is not seen."""
    margins = np.column_stack([samples.X @ u.w - u.t for u in units])
    scale = float(np.abs(samples.values).max())
    found = []
    for i in np.flatnonzero([u.is_exact for u in units]):
        alone = (margins[:, i] > 0) & (np.delete(margins, i, axis=1) < 0).all(axis=1)
        off = np.abs(samples.values[alone] - units[i].c * margins[alone, i]) > _OFF * scale
        if off.any():
            found.append(_BENT.format(i=i, m=int(off.sum()), n=int(alone.sum())))
    return tuple(found)


def _by_firing(
    X: FloatArray,
    values: FloatArray,
    fires: BoolArray,
    units: list[_Unit],
    start: Units,
    rng: np.random.Generator,
) -> tuple[list[_Unit], tuple[str, ...]]:
    """Units by the halfspaces at whose union f leaves its constant; exact ones stay.

    So far GP18's B.7 asks for no more than that ``q_i`` leaves 0 at the threshold.
    """
    W, t = np.array([u.w for u in units]), np.array([u.t for u in units])
    if not np.isfinite(t).all():
        return units, (_NO_THRESHOLD,)
    fit = fit_firing(X, fires, W, t, rng)
    found, evidence = with_start(X, fires, fit, Units(W, t, start.errors))
    margins = X @ found.directions.T - found.thresholds
    fitted = []
    for i, unit in enumerate(units):
        # A rise from 0 is seen as late as its smallest value says.
        near = fires & (np.abs(margins[:, i]) <= _ALONE) & (margins[:, i] > 0)
        alone = near & (np.delete(margins, i, axis=1).max(axis=1, initial=-np.inf) < 0)
        sizes = np.abs(values[alone])
        slope = float(np.median(sizes / margins[alone, i])) if alone.any() else 0.0
        late = float(sizes.min()) / slope if slope else 0.0
        fitted.append(
            unit
            if unit.is_exact
            else _Unit(
                found.directions[i],
                float(found.thresholds[i]),
                float(found.errors[i]),
                float(found.threshold_errors[i]) + late,
            )
        )
    return fitted, evidence


def _collected(
    units: list[_Unit],
    d: int,
    evidence: tuple[str, ...],
    n_rare: int,
    n: int,
    details: dict[str, object],
) -> LayerRecovery:
    kept = [u for u in units if u.error <= GUESS]
    if len(kept) < len(units):
        worst = min(max(u.error for u in units), np.pi / 2.0)
        needed = int(n_rare * (2.0 * worst / GUESS) ** 2)
        left_out = len(units) - len(kept)
        evidence = (
            f"{left_out} directions are left out: {too_few(n_rare, needed, n)}",
            *evidence,
        )
    status = Status.PARTIAL if evidence else Status.UNVERIFIED
    if inexact := sum(not u.is_exact for u in kept):
        evidence = (*evidence, _INEXACT.format(m=inexact, k=len(units)))
    return LayerRecovery(
        status,
        np.array([u.w for u in kept]).reshape(-1, d),
        np.array([u.t for u in kept]),
        np.array([u.error for u in kept]),
        ledger=NO_QUERIES,
        evidence=evidence,
        method="samples",
        details={
            **details,
            "threshold_errors": np.array([u.threshold_error for u in kept]),
            "coefficients": np.array([u.c for u in kept]),
        },
    )


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
_NO_BIAS = "{n:,} samples show no direction above their noise"
_NO_THRESHOLD = (
    "moments do not tell every threshold: products of units outweigh them, or units are others "
    "than was said"
)
