"""Unions and intersections of halfspaces, from labels (GP18, Section 2.3, Theorem 6).

An intersection is the complement of the union of its halfspaces' complements, so that one
way does for both.  With queries every face of the convex one of the two is measured along
rays from inside it; it need not be far from the origin.  From samples the union must be rare:
directions from moments, then a fit to the labels.
"""

from collections.abc import Callable

import numpy as np

from revelu.errors import LimitReachedError
from revelu.oracle import Oracle
from revelu.probe.facets import Inside
from revelu.probe.rare import rare_samples
from revelu.recover.facets import Facets, recover_facets
from revelu.recover.firing import Firing, fit_firing
from revelu.recover.rare_directions import Start, estimate_directions
from revelu.recovery import HalfspaceRecovery, Ledger, Status
from revelu.types import BoolArray, FloatArray

# Inputs among which one on the convex side is sought, at these radii.
_N_INPUTS = 256
_RADII = (1.0, 0.1, 10.0)

# Positives a parameter of a halfspace that moments need to tell a direction at all.
_FEWEST = 4.0

# An error of a start's direction beyond which it is a guess.
_GUESS = 0.5

# Halfspaces more than the spectrum shows that are tried while labels stay unexplained.
_MOST_MORE = 2

_MAX_UNEXPLAINED = 0.02

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
        reason = _ONE_LABEL.format(n=len(_RADII) * _N_INPUTS, label=int(1 - wanted))
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
        oracle.ledger(),
        evidence=evidence,
        method="facets",
        details={"centre": centre, "rays_without_news": found.n_quiet, "missed": found.missed},
    )


def find_centre(inside: Inside, d: int, rng: np.random.Generator) -> FloatArray | None:
    """Find a place inside a convex region: the mean of what is found, or the origin."""
    origin = np.zeros(d)
    if inside(origin[None])[0]:
        return origin
    for radius in _RADII:
        X = radius * rng.standard_normal((_N_INPUTS, d))
        within = inside(X)
        if within.any():
            return np.asarray(X[within].mean(axis=0))
    return None


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
        NO_QUERIES,
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
    empty = np.empty(0)
    none = Firing(np.empty((0, d)), empty, empty, empty, n_rare)
    needed = int(np.ceil(_FEWEST * (n_units or 1) * (d + 1)))
    if n_rare < needed:
        return none, Status.PARTIAL, (too_few(n_rare, needed, n),)
    if n_rare > n // 2:
        return none, Status.NOT_IN_CLASS, (_NOT_RARE.format(share=n_rare / n),)
    # 1. Directions from the moments of the labels.
    tell("estimating directions")
    samples = rare_samples(X, fires.astype(np.float64), 0.0)
    start = estimate_directions(samples, "sign", n_units, rng)
    if start is None or not np.isfinite(start.thresholds).all():
        return none, Status.PARTIAL, (too_few(n_rare, 4 * max(n_rare, needed), n),)
    # 2. All units at once; one more while labels stay unexplained.
    for _ in range(_MOST_MORE + 1):
        k = len(start.directions)
        tell(f"fitting {k} halfspaces")
        found = fit_firing(X, fires, start.directions, start.thresholds, rng)
        unexplained = found.n_unexplained / n_rare
        if n_units is not None or unexplained <= _MAX_UNEXPLAINED or k == d:
            break
        more = estimate_directions(samples, "sign", k + 1, rng)
        if more is None:
            break
        start = more
    return judged(found, start, n_rare, n)


def judged(
    found: Firing, start: Start, n_rare: int, n: int
) -> tuple[Firing, Status, tuple[str, ...]]:
    """Replace units that labels contradict by their start, or leave out what is a guess."""
    failed = ~np.isfinite(found.errors)
    # A shared border, or a wrong number of units: the moments' error is all that is known.
    errors = np.where(failed, start.errors, found.errors)
    guess = errors > _GUESS
    kept = Firing(
        np.where(failed[:, None], start.directions, found.directions)[~guess],
        np.where(failed, start.thresholds, found.thresholds)[~guess],
        errors[~guess],
        np.where(failed, start.errors, found.threshold_errors)[~guess],
        found.n_unexplained,
    )
    evidence = []
    if guess.any():
        needed = int(n_rare * (errors[guess].max() / _GUESS * 2.0) ** 2)
        evidence.append(f"{guess.sum()} directions are left out: {too_few(n_rare, needed, n)}")
    if failed.any():
        evidence.append(_CONTRADICTED.format(m=int(failed.sum()), k=len(failed)))
    if found.n_unexplained > _MAX_UNEXPLAINED * n_rare:
        evidence.append(_UNEXPLAINED.format(m=found.n_unexplained))
    return kept, Status.PARTIAL if evidence else Status.UNVERIFIED, tuple(evidence)


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
        oracle.ledger(),
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
