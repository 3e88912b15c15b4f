"""Unions and intersections of halfspaces, from labels (GP18, Section 2.3, Theorem 6).

An intersection is the complement of the union of its halfspaces' complements, so that one
way does for both.  With queries every face of the convex one of the two is measured along
rays from inside it; it need not be far from the origin.  From samples the union must be rare:
directions from moments, then a fit to the labels.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.errors import LimitReachedError
from revelu.oracle import Oracle
from revelu.recover.rare.face import Inside
from revelu.recover.rare.facets import Facets, recover_facets
from revelu.recover.rare.firing import Firing, estimate_tan_alpha, fit_firing
from revelu.recover.rare.rare_directions import estimate_directions
from revelu.recover.rare.rare_samples import rare_samples
from revelu.recovery import HalfspaceRecovery, Ledger, Status
from revelu.types import BoolArray, FloatArray

# Inputs among which one on the convex side is sought, at these radii.
_N_INPUTS = 256
_RADII = (1.0, 0.1, 10.0)

# Inputs around the origin, and how near, that tell whether it is on a border.
_N_AROUND = 64
_BESIDE = 1e-6

# Positives a parameter of a halfspace that moments need to tell a direction at all.
FEWEST = 4.0

# An error of a start's direction beyond which it is a guess.
GUESS = 0.5

# Halfspaces more than the spectrum shows that are tried while labels stay unexplained.
MOST_MORE = 2

_MAX_UNEXPLAINED = 0.02

# Of the samples that a unit more is to explain, along their mean, where its threshold begins.
_LOW = 0.1

Tell = Callable[[str], None]


def recover_by_queries(
    oracle: Oracle, combine: str, seed: int | np.random.SeedSequence, tell: Tell
) -> HalfspaceRecovery:
    """Recover halfspaces from label queries, to near machine precision.

    Parameters
    ----------
    oracle : Oracle
        Answers 0 or 1, (m, d) -> (m, 1).
    combine : {"or", "and"}
    seed : int or SeedSequence
    tell : callable

    Returns
    -------
    HalfspaceRecovery
        ``UNVERIFIED`` where the search ended, for the caller to check.
    """
    rng = np.random.default_rng(seed)
    wanted = float(combine == "and")

    def inside(X: FloatArray) -> BoolArray:
        return np.asarray(oracle(X)[:, 0] == wanted)

    # 1. A place on the convex side: outside of the union, or in the intersection.
    try:
        centre = find_centre(inside, oracle.dim_in, rng)
    except LimitReachedError as error:
        return _nothing(combine, oracle.dim_in, Status.BUDGET_EXHAUSTED, str(error), oracle)
    if centre is None:
        reason = _ONE_LABEL.format(n=len(_RADII) * _N_INPUTS + _N_AROUND + 1, label=int(1 - wanted))
        return _nothing(combine, oracle.dim_in, Status.PARTIAL, reason, oracle)
    # 2. Faces, ray by ray, each to the last digits.
    found = recover_facets(inside, centre, rng, tell)
    status, evidence = verdict(found)
    # 3. Normals lead out of the convex side: into the union, out of the intersection.
    side = 1.0 if combine == "or" else -1.0
    return HalfspaceRecovery(
        status,
        side * found.normals,
        side * found.thresholds,
        found.errors,
        found.threshold_errors,
        combine,
        ledger=oracle.ledger(),
        evidence=evidence,
        method="facets",
        details={"centre": centre, "rays_without_news": found.n_quiet, "missed": found.missed},
    )


def find_centre(inside: Inside, d: int, rng: np.random.Generator) -> FloatArray | None:
    """Find a place inside a convex region: the origin, or the mean of what is found.

    On a border the origin is taken only where nothing else is found.
    """
    origin = np.zeros(d)
    around = _BESIDE * rng.standard_normal((_N_AROUND, d))
    labels = inside(np.vstack([origin, around]))
    if labels.all():
        return origin
    for radius in _RADII:
        X = radius * rng.standard_normal((_N_INPUTS, d))
        within = inside(X)
        if within.any():
            return np.asarray(X[within].mean(axis=0))
    return origin if labels[0] else None


def verdict(found: Facets) -> tuple[Status, tuple[str, ...]]:
    """Say how a search for faces ended."""
    k = len(found.normals)
    if found.ending == "budget":
        return Status.BUDGET_EXHAUSTED, (found.reason,)
    if found.ending == "bent":
        return Status.NOT_IN_CLASS, (_BENT.format(n=found.n_failures, k=k),)
    if not k:
        return Status.PARTIAL, (_NO_FACE.format(n=found.n_quiet),)
    return Status.UNVERIFIED, ()


def recover_from_labels(
    X: FloatArray,
    y: BoolArray,
    combine: str,
    n_halfspaces: int | None,
    seed: int | np.random.SeedSequence,
    tell: Tell,
) -> HalfspaceRecovery:
    """Recover halfspaces from labels of samples of N(0, I).

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray of bool, shape (n,)
    combine : {"or", "and"}
    n_halfspaces : int, optional
        If known.
    seed : int or SeedSequence
    tell : callable

    Returns
    -------
    HalfspaceRecovery
        ``UNVERIFIED`` where the search ended, for the caller to check; ``PARTIAL`` where a
        halfspace is known from moments alone or labels stay unexplained.
    """
    fires = y if combine == "or" else ~y
    found, status, evidence = fit_rare_union(
        X, fires, n_halfspaces, np.random.default_rng(seed), tell
    )
    side = 1.0 if combine == "or" else -1.0
    return HalfspaceRecovery(
        status,
        side * found.directions,
        side * found.thresholds,
        found.errors,
        found.threshold_errors,
        combine,
        ledger=NO_QUERIES,
        evidence=evidence,
        method="labels",
        details={"n_samples": len(X), "n_rare": int(fires.sum())},
    )


def fit_rare_union(
    X: FloatArray,
    fires: BoolArray,
    n_units: int | None,
    rng: np.random.Generator,
    tell: Tell,
) -> tuple[Firing, Status, tuple[str, ...]]:
    """Fit a union to labels from nothing: moments, then all units at once."""
    d, n, n_rare = X.shape[1], len(X), int(fires.sum())
    needed = int(np.ceil(FEWEST * (n_units or 1) * (d + 1)))
    if n_rare < needed:
        return _no_units(d), Status.PARTIAL, (too_few(n_rare, needed, n),)
    if n_rare > n // 2:
        return _no_units(d), Status.NOT_IN_CLASS, (_NOT_RARE.format(share=n_rare / n),)
    # 1. Directions from the moments of the labels.
    tell("estimating directions")
    samples = rare_samples(X, fires.astype(np.float64), 0.0)
    start = estimate_directions(samples, "sign", n_units, rng)
    if start is None or not np.isfinite(start.thresholds).all():
        reason = too_few(n_rare, 4 * max(n_rare, needed), n)
        return _no_units(d), Status.PARTIAL, (reason,)
    # 2. All units at once; one more, from the samples that none explains, while there are some.
    units = Units(start.directions, start.thresholds, start.errors)
    most = len(units.errors) + MOST_MORE if n_units is None else n_units
    while True:
        tell(f"fitting {len(units.errors)} halfspaces")
        found = fit_firing(X, fires, units.directions, units.thresholds, rng)
        rest = X[found.unexplained & fires]
        if len(units.errors) >= most or len(rest) < FEWEST * (d + 1):
            break
        units = Units(found.directions, found.thresholds, units.errors).with_one_more(rest)
    return judged(X, fires, found, units)


@dataclass(frozen=True)
class Units:
    """Where a fit starts: directions (k, d), thresholds and errors (k,)."""

    directions: FloatArray
    thresholds: FloatArray
    errors: FloatArray

    def with_one_more(self, rest: FloatArray) -> "Units":
        """Add a unit for samples that fire and none explains, along their mean."""
        mean = rest.mean(axis=0)
        w = mean / np.linalg.norm(mean)
        return Units(
            np.vstack([self.directions, w]),
            np.append(self.thresholds, np.quantile(rest @ w, _LOW)),
            np.append(self.errors, np.sqrt(rest.shape[1] / len(rest))),
        )


def judged(
    X: FloatArray, fires: BoolArray, found: Firing, start: Units
) -> tuple[Firing, Status, tuple[str, ...]]:
    """Leave out what is a guess, and say what speaks against the rest."""
    n, n_rare = len(X), int(fires.sum())
    weighed, evidence = with_start(X, fires, found, start)
    guess = weighed.errors > GUESS
    if guess.any():
        worst = min(float(weighed.errors.max()), np.pi / 2.0)
        needed = int(n_rare * (worst / GUESS * 2.0) ** 2)
        left_out = f"{guess.sum()} directions are left out: {too_few(n_rare, needed, n)}"
        evidence = (left_out, *evidence)
    kept = Firing(
        weighed.directions[~guess],
        weighed.thresholds[~guess],
        weighed.errors[~guess],
        weighed.threshold_errors[~guess],
        weighed.unexplained,
    )
    return kept, Status.PARTIAL if evidence else Status.UNVERIFIED, evidence


def with_start(
    X: FloatArray, fires: BoolArray, found: Firing, start: Units
) -> tuple[Firing, tuple[str, ...]]:
    """Replace units that labels contradict by their start, and say so.

    Labels with noise, a wrong number of units, or no halfspace at all: how softly samples
    begin to fire tells how far off a direction is, whatever moments or few labels say; where
    many labels are unexplained, of those that no label contradicts, too.
    """
    failed = ~np.isfinite(found.errors)
    W = np.where(failed[:, None], start.directions, found.directions)
    t = np.where(failed, start.thresholds, found.thresholds)
    errors, threshold_errors = found.errors.copy(), found.threshold_errors.copy()
    errors[failed] = threshold_errors[failed] = start.errors[failed]
    many = found.unexplained.sum() > _MAX_UNEXPLAINED * fires.sum()
    for i in np.flatnonzero(failed | many):
        soft = float(np.arctan(estimate_tan_alpha(X, fires, W, t, int(i))))
        errors[i], threshold_errors[i] = max(errors[i], soft), max(threshold_errors[i], soft)
    evidence = []
    if failed.any():
        evidence.append(_CONTRADICTED.format(m=int(failed.sum()), k=len(failed)))
    if found.unexplained.any():
        evidence.append(_UNEXPLAINED.format(m=int(found.unexplained.sum())))
    return Firing(W, t, errors, threshold_errors, found.unexplained), tuple(evidence)


def _no_units(d: int) -> Firing:
    empty = np.empty(0)
    return Firing(np.empty((0, d)), empty, empty, empty, np.empty(0, dtype=np.bool_))


def too_few(n_rare: int, needed: int, n: int) -> str:
    """Say how many more samples would do."""
    more = int(n * (needed / max(n_rare, 1) - 1.0))
    share = "none" if not n_rare else f"{n_rare:,}"
    advice = (
        f"about {max(more, n):,} more samples would do"
        if n_rare
        else "draw where it is not constant, or ask an oracle"
    )
    return f"of {n:,} samples {share} leave the constant, and some {needed:,} are needed: {advice}"


def _nothing(
    combine: str, d: int, status: Status, reason: str, oracle: Oracle
) -> HalfspaceRecovery:
    empty = np.empty(0)
    return HalfspaceRecovery(
        status,
        np.empty((0, d)),
        empty,
        empty,
        empty,
        combine,
        ledger=oracle.ledger(),
        evidence=(reason,),
        method="facets",
    )


NO_QUERIES = Ledger(0, 0, {})

_ONE_LABEL = (
    "all {n:,} inputs, near and far, got the label {label}: no halfspace is known; shift the "
    "inputs to where labels differ, or try the other way to combine"
)
_NO_FACE = "no ray of {n:,} met a border within reach of N(0, I): the labels are constant there"
_BENT = (
    "at {n} crossings in a row the border was not flat, after {k} faces: this is no union or "
    "intersection of halfspaces combined that way; try the other one"
)
_NOT_RARE = (
    "{share:.0%} of the labels are on the side that must be rare: the halfspaces are too near "
    "to the origin for the method, or it is the other way to combine; with queries they may be "
    "anywhere"
)
_CONTRADICTED = (
    "{m} of {k} halfspaces are contradicted by labels, and known by their moments alone: labels "
    "with noise, more halfspaces than were fitted, or another function"
)
_UNEXPLAINED = "{m:,} labels are not explained: halfspaces are missing, or labels have noise"
