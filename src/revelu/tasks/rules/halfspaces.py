"""Halfspaces: rules with rare positives, read back from labels."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from revelu.certify.firing import Fires
from revelu.errors import InputError, LimitReachedError
from revelu.numerics.confidence import upper_bound
from revelu.numerics.gaussianity import measure_law
from revelu.oracle import whole_number
from revelu.recover.rare import recover_facets, recover_union
from revelu.recover.rare.units import UnitsCandidate
from revelu.recovery import HalfspaceRecovery, Ledger, Status
from revelu.tasks.job import Job, check_progress, open_target, random_seeds
from revelu.tasks.learn.samples import gather
from revelu.tasks.notebook import listener
from revelu.tasks.progress import Listener, teller
from revelu.tasks.rules.firing import (
    NO_QUERIES,
    checked_by_queries,
    checked_by_samples,
    in_original_inputs,
    status_of,
    with_rare_ones_apart,
)
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)

WAYS = ("or", "and")

_STREAM = "half"
"""Of the random choices."""


def recover_halfspaces(
    target: Any = None,
    X: Any = None,
    y: Any = None,
    combine: str = "or",
    seed: int = 0,
    *,
    n_halfspaces: int | None = None,
    budget: int | None = None,
    checks: int = 1000,
    dim_in: int | None = None,
    trust: bool = False,
    max_seconds: float | None = None,
    progress: Listener | None = None,
) -> HalfspaceRecovery:
    """Recover a union or an intersection of halfspaces from labels alone.

    Parameters
    ----------
    target : Oracle, callable, path or str, optional
        What answers labels, 0 or 1 (or -1 and 1); as for :func:`revelu.open_oracle`.  The
        halfspaces may be anywhere, and come back to near machine precision.
    X, y : array_like, shapes (n, d) and (n,), optional
        Samples of N(0, I), or another Gaussian, in place of a target; ``X`` may be the path of
        a file or a folder that holds both.  The union, or the intersection's complement, must
        be rare.
    combine : {"or", "and"}
        ``label = any(normals @ x >= thresholds)``, or ``all``.
    n_halfspaces : int, optional
        If known, for samples; queries count for themselves.
    checks : int
        Fresh inputs of the certificate; as many more stand beside borders.
    seed, budget, dim_in, trust, max_seconds, progress
        As of :func:`revelu.extract`.

    Returns
    -------
    HalfspaceRecovery
        ``RECOVERED`` where fresh labels agree; every normal has its error.

    Raises
    ------
    InputError
        If neither or both of target and samples are given, or labels are no labels.

    Notes
    -----
    After Goel and Panigrahy (2018), Theorem 6; see :mod:`revelu.recover.rare`.

    Examples
    --------
    >>> import numpy as np, revelu
    >>> alarm = lambda X: (X @ [0.6, 0.8, 0.0] >= 2) | (X[:, 2] >= 2.5)
    >>> found = revelu.recover_halfspaces(alarm, dim_in=3)
    >>> found.status.value, sorted(found.thresholds.round(9).tolist())
    ('recovered', [2.0, 2.5])
    """
    if combine not in WAYS:
        raise InputError(f"combine must be one of {', '.join(WAYS)}, got {combine!r}")
    seed = whole_number("seed", seed, 0)
    checks = whole_number("checks", checks, 1)
    if n_halfspaces is not None:
        n_halfspaces = whole_number("n_halfspaces", n_halfspaces, 1)
    if (target is None) == (X is None):
        raise InputError("give either a target to ask, or samples X and y")
    if target is None:
        check_progress(progress)
        return _from_samples(X, y, combine, n_halfspaces, seed, progress)
    oracle = open_target(
        target,
        seed,
        progress,
        everywhere="the search for halfspaces",
        dim_in=dim_in,
        budget=budget,
        trust=trust,
        max_seconds=max_seconds,
    )
    return _from_queries(Job(oracle, seed, progress, "halfspaces", _STREAM), combine, checks)


def _from_queries(job: Job, combine: str, checks: int) -> HalfspaceRecovery:
    oracle = job.oracle
    for_search, for_checks, for_repeats = job.seeds.spawn(3)

    def fires(points: FloatArray) -> BoolArray:
        return np.asarray(as_labels(oracle(points), oracle.name) == (combine == "or"))

    rng = np.random.default_rng(for_search)
    candidate = recover_facets(lambda X: ~fires(X), oracle.dim_in, rng, job.tell)
    details = {
        "centre": candidate.centre,
        "rays_without_news": candidate.n_quiet,
        "missed": upper_bound(0, candidate.n_quiet),
    }
    found = _result(candidate, combine, oracle.ledger(), details)
    found = checked_by_queries(job, found, candidate, fires, checks, for_checks)
    if found.status in {Status.RECOVERED, Status.BUDGET_EXHAUSTED}:
        return job.finished(found)
    job.tell("asking some inputs twice")
    differs = _asked_twice(job, fires, np.random.default_rng(for_repeats))
    if differs:
        found = replace(found, status=Status.NOT_DETERMINISTIC, evidence=(differs,))
    return job.finished(found)


def _asked_twice(job: Job, fires: Fires, rng: np.random.Generator, most: int = 1024) -> str:
    """Say how many of some inputs get another label when they are asked again, if any does."""
    oracle = job.oracle
    n = most if oracle.remaining is None else min(most, oracle.remaining // 2)
    if not n:
        return ""
    X = rng.standard_normal((n, oracle.dim_in))
    try:
        with oracle.phase("verify"):
            n_apart = int((fires(X) != fires(X)).sum())
    except LimitReachedError:
        return ""
    return _DIFFER.format(m=n_apart, n=n) if n_apart else ""


_DIFFER = (
    "answers to the same input differ, at {m:,} of {n:,} inputs that were asked twice: remove the "
    "randomness, or store labels and take them as samples, in which some may be wrong"
)


def _from_samples(
    X: Any,
    y: Any,
    combine: str,
    n_halfspaces: int | None,
    seed: int,
    progress: Listener | None,
) -> HalfspaceRecovery:
    for_search, for_samples = random_seeds(_STREAM, seed).spawn(2)

    def fires(answers: FloatArray) -> BoolArray:
        return np.asarray(as_labels(answers[:, None], "y") == (combine == "or"))

    tell = teller(log, listener(progress))
    tell("reading samples")
    if isinstance(y, np.ndarray) and y.dtype == np.bool_:
        y = y.astype(np.float64)
    drawn = gather(X, y, for_samples, None)
    if drawn.disagreement > 0:
        raise InputError("an input that repeats has both labels: they are no function of it")
    as_labels(np.append(drawn.y, drawn.y_held)[:, None], "y")
    drawn = with_rare_ones_apart(drawn, fires)
    law, rare = measure_law(drawn.X), fires(drawn.y)
    rng = np.random.default_rng(for_search)
    candidate = recover_union(law.whiten(drawn.X), rare, n_halfspaces, rng, tell)
    candidate = in_original_inputs(candidate, law)
    details = {"n_samples": len(rare), "n_rare": int(rare.sum())}
    found = _result(candidate, combine, NO_QUERIES, details)
    return checked_by_samples(found, candidate, drawn, fires) if len(candidate.units) else found


def _result(
    candidate: UnitsCandidate, combine: str, ledger: Ledger, details: dict[str, Any]
) -> HalfspaceRecovery:
    """Halfspaces of a candidate, whose units fire in the union, or outside of the intersection."""
    side, units = 1.0 if combine == "or" else -1.0, candidate.units
    return HalfspaceRecovery(
        status_of(candidate.why),
        side * units.directions,
        side * units.thresholds,
        units.errors,
        units.threshold_errors,
        combine,
        bounds=units.bounds,
        threshold_bounds=units.threshold_bounds,
        wrong_labels=candidate.noise,
        ledger=ledger,
        evidence=candidate.notes,
        method=candidate.method,
        details=details,
    )


def as_labels(Y: FloatArray, name: str) -> BoolArray:
    """Read labels, (n, 1) -> (n,).

    Raises
    ------
    InputError
        If they are not 0 and 1, or -1 and 1.
    """
    if Y.shape[1] != 1 or not (np.isin(Y, (0.0, 1.0)).all() or np.isin(Y, (-1.0, 1.0)).all()):
        raise InputError(f"{name} holds other numbers than the labels 0 and 1 (or -1 and 1)")
    return np.asarray(Y[:, 0] > 0)
