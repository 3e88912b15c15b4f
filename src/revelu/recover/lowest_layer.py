"""The first layer of a network that fires rarely (GP18, Sections 2.1 and 2.2).

``f(x) = P(u(w_1 x - t_1), ..., u(w_k x - t_k))``, P a polynomial or any network.  Where no
unit fires f is constant, and that region is convex.  With an oracle its faces are the layer
(:mod:`revelu.recover.facets`).  From samples: directions from moments (Section 2.1), then, in
place of RefineEstimate, for ReLU a robust regression where one unit fires alone, which is
exact; for sign the halfspaces that agree with where f leaves its constant.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.errors import LimitReachedError
from revelu.numerics.least_deviations import least_deviations
from revelu.oracle import Oracle
from revelu.probe.rare import Constant, RareSamples, find_constant, rare_samples
from revelu.recover.facets import Facets, recover_facets
from revelu.recover.halfspaces import (
    NO_QUERIES,
    find_centre,
    fit_rare_union,
    too_few,
    verdict,
)
from revelu.recover.rare_directions import Start, estimate_directions
from revelu.recover.smooth_layer import ask_smooth_layer, learn_smooth_layer, nothing
from revelu.recovery import LayerRecovery, Status
from revelu.types import BoolArray, FloatArray

# Inputs that show the constant, batches that show its rounding, and the least share of
# inputs that must be quiet.
_N_INPUTS = 448
_BATCHES = (1, 2, 13, 64)
_COMMON = 0.2

# Below this share of quiet samples products of units are no longer rare.
_QUIET = 0.5

# A unit fires alone where its estimated margin is the only one above this.
_ALONE = 0.15

# Samples at which a unit fires alone, for each of its parameters.
_FEWEST = 4.0

# A rise is measured so far beyond a threshold.
_BESIDE = 1e-2

# Errors beyond this are guesses.
_GUESS = 0.5

Tell = Callable[[str], None]


def recover_by_queries(
    oracle: Oracle,
    activation: str,
    n_units: int | None,
    seed: int | np.random.SeedSequence,
    tell: Tell,
) -> LayerRecovery:
    """Recover the layer from an oracle.

    Parameters
    ----------
    oracle : Oracle
    activation : {"relu", "sign", "sigmoid"}
    n_units : int, optional
        Needed for nothing but the sigmoid, where it is told from noise if left out.
    seed : int or SeedSequence
    tell : callable

    Returns
    -------
    LayerRecovery
        ``UNVERIFIED`` where the search ended, for the caller to check.
    """
    if activation == "sigmoid":
        return ask_smooth_layer(oracle, n_units, seed, tell)
    rng = np.random.default_rng(seed)
    try:
        # 1. The constant: the answer that is given most often.
        tell("looking for the constant")
        X = rng.standard_normal((_N_INPUTS, oracle.dim_in))
        answers = oracle(X)
        constant = find_constant(answers)
        if constant.share < _COMMON:
            return nothing(oracle.dim_in, Status.NOT_IN_CLASS, no_constant(constant.share), oracle)
        # A matrix product may round by its shape: a quiet input again, in other batches.
        quiet = X[np.argmax(constant.is_answer(answers))]
        for n in _BATCHES:
            constant = constant.widened(oracle(np.tile(quiet, (n, 1))))

        def inside(X: FloatArray) -> BoolArray:
            return constant.is_answer(oracle(X))

        centre = find_centre(inside, oracle.dim_in, rng)
    except LimitReachedError as error:
        return nothing(oracle.dim_in, Status.BUDGET_EXHAUSTED, str(error), oracle)
    if centre is None:  # pragma: no cover - the constant was seen a moment ago
        return nothing(oracle.dim_in, Status.PARTIAL, no_constant(constant.share), oracle)
    # 2. The faces of the region where f is that constant.
    found = recover_facets(inside, centre, rng, tell)
    status, evidence = verdict(found)
    if activation == "relu" and constant.tolerance and len(found.normals):
        found.threshold_errors = found.threshold_errors + _late(oracle, found, constant)
    details = {
        "threshold_errors": found.threshold_errors,
        "constant": constant.value,
        "rounding": constant,
        "centre": centre,
        "quiet": constant.share,
        "missed": found.missed,
    }
    return LayerRecovery(
        status,
        found.normals,
        found.thresholds,
        found.errors,
        oracle.ledger(),
        evidence=evidence,
        method="facets",
        details=details,
    )


def _late(oracle: Oracle, found: Facets, constant: Constant) -> FloatArray:
    """How far beyond its threshold a ReLU must be to be seen above the constant's rounding."""
    if not oracle.affords(len(found.normals)):
        return np.full(len(found.normals), np.inf)
    X = (found.thresholds + _BESIDE)[:, None] * found.normals
    rises = np.abs(oracle(X) - constant.value).max(axis=1)
    return np.asarray(constant.tolerance * _BESIDE / np.maximum(rises, constant.tolerance))


def recover_from_samples(
    X: FloatArray,
    y: FloatArray,
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
    # c_0, the value that is taken most often: the median, where units fire rarely.
    quiet = find_constant(y[:, None])
    constant, share = float(quiet.value[0]), quiet.share
    if share < (_COMMON if activation == "relu" else _QUIET):
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
        union, status, evidence = fit_rare_union(X, fires, n_units, rng, tell)
        return LayerRecovery(
            status,
            union.directions,
            union.thresholds,
            union.errors,
            NO_QUERIES,
            evidence=evidence,
            method="samples",
            details={**details, "threshold_errors": union.threshold_errors},
        )
    samples = rare_samples(X, y, constant)
    needed = int(np.ceil(_FEWEST * (n_units or 1) * (d + 1)))
    if len(samples.X) < needed:
        return nothing(d, Status.PARTIAL, too_few(len(samples.X), needed, len(y)))
    tell("estimating directions")
    start = estimate_directions(samples, activation, n_units, rng)
    if start is None:
        more = 4 * max(len(samples.X), needed)
        return nothing(d, Status.PARTIAL, too_few(len(samples.X), more, len(y)))
    tell(f"regression on {len(start.directions)} units")
    units = [_alone(samples, start, i) for i in range(len(start.directions))]
    found = _refined(start, units, len(samples.X), len(y), details)
    return found if not warning else _with(found, warning)


@dataclass(frozen=True)
class _Unit:
    """A ReLU by the samples at which it fires alone."""

    w: FloatArray
    t: float
    c: float
    error: float
    threshold_error: float
    n_alone: int
    is_exact: bool


def _alone(samples: RareSamples, start: Start, i: int) -> _Unit:
    """L1 regression of f - c_0 = c (w x - t) where the other units do not fire."""
    margins = samples.X @ start.directions.T - start.thresholds
    others = np.delete(margins, i, axis=1).max(axis=1, initial=-np.inf)
    alone = (margins[:, i] > -_ALONE) & (others < -_ALONE)
    X, v = samples.X[alone], samples.values[alone]
    d = X.shape[1]
    w, t = start.directions[i], float(start.thresholds[i])
    if len(X) < _FEWEST * (d + 1):
        return _Unit(w, t, np.nan, float(start.errors[i]), np.nan, len(X), is_exact=False)
    fit = least_deviations(np.column_stack([X, np.ones(len(X))]), v)
    size = float(np.linalg.norm(fit.x[:d]))
    if not fit.is_exact or size == 0:
        return _Unit(w, t, np.nan, float(start.errors[i]), np.nan, len(X), is_exact=False)
    # f = c_0 + c relu(w x - t): where it fires alone the sign of c is that of f - c_0.
    c = size * float(np.sign(np.median(v[fit.exact])))
    across = np.trace(fit.covariance[:d, :d])
    return _Unit(
        fit.x[:d] / c,
        -float(fit.x[d]) / c,
        c,
        float(np.sqrt(across)) / size,
        float(np.sqrt(across * start.thresholds[i] ** 2 + fit.covariance[d, d])) / size,
        len(X),
        is_exact=True,
    )


def _refined(
    start: Start, units: list[_Unit], n_rare: int, n: int, details: dict[str, object]
) -> LayerRecovery:
    errors = np.array([u.error for u in units])
    kept = [u for u in units if u.error <= _GUESS]
    evidence = []
    if len(kept) < len(units):
        needed = int(n_rare * (2.0 * errors.max() / _GUESS) ** 2)
        left_out = len(units) - len(kept)
        evidence.append(f"{left_out} directions are left out: {too_few(n_rare, needed, n)}")
    inexact = [u for u in kept if not u.is_exact]
    if inexact:
        fewest = min(u.n_alone for u in inexact)
        evidence.append(_INEXACT.format(m=len(inexact), k=len(units), n=fewest))
    d = start.directions.shape[1]
    return LayerRecovery(
        Status.PARTIAL if evidence else Status.UNVERIFIED,
        np.array([u.w for u in kept]).reshape(-1, d),
        np.array([u.t for u in kept]),
        np.array([u.error for u in kept]),
        NO_QUERIES,
        evidence=tuple(evidence),
        method="samples",
        details={
            **details,
            "threshold_errors": np.array([u.threshold_error for u in kept]),
            "coefficients": np.array([u.c for u in kept]),
            "start": start,
        },
    )


def no_constant(share: float) -> str:
    """Say that no constant was seen."""
    return _NO_CONSTANT.format(share=share)


def _with(found: LayerRecovery, warning: tuple[str, ...]) -> LayerRecovery:
    return LayerRecovery(**{**vars(found), "evidence": (*found.evidence, *warning)})


_NO_CONSTANT = (
    "no answer is given to more than {share:.1%} of the inputs, so that units do not fire "
    "rarely: the threshold is too low for the method, answers have noise, or the activation is "
    "smooth (activation='sigmoid')"
)
_LOW = (
    "only {share:.0%} of the samples are quiet: under so low a threshold products of units are "
    "not rare, and their moments may hide a unit"
)
_INEXACT = (
    "{m} of {k} units are known by their moments alone, which leave out what products of units "
    "add: no linear function fits where they fire alone ({n:,} samples there at the least); "
    "with more samples, or an oracle, they may be exact"
)
