"""Where units fire, checked: by fresh queries, or by samples that had no part in a fit."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from revelu.certify.firing import (
    FiringBorders,
    are_other_labels,
    certify_labels,
    check_by_queries,
)
from revelu.errors import LimitReachedError
from revelu.numerics.gaussianity import InputLaw
from revelu.recover.method import Why
from revelu.recover.rare.units import Units, UnitsCandidate
from revelu.recovery import HalfspaceRecovery, LayerRecovery, Ledger, Status
from revelu.tasks.extract.job import FEWEST_CHECKS
from revelu.tasks.job import Job
from revelu.tasks.learn.samples import Drawn
from revelu.types import BoolArray, FloatArray

Found = TypeVar("Found", HalfspaceRecovery, LayerRecovery)

NO_QUERIES = Ledger(0, 0, {})


def status_of(why: Why) -> Status:
    """Return the status of what is not checked, by why its search ended."""
    return {
        Why.EXPLAINED: Status.UNVERIFIED,
        Why.UNRESOLVED: Status.PARTIAL,
        Why.LIMIT: Status.BUDGET_EXHAUSTED,
    }.get(why, Status.NOT_IN_CLASS)


def checked_by_queries(
    job: Job,
    found: Found,
    candidate: UnitsCandidate,
    fires: Callable[[FloatArray], BoolArray],
    checks: int,
    seed: np.random.SeedSequence,
) -> Found:
    """Attach a certificate and the status that follows from it.

    Parameters
    ----------
    found : HalfspaceRecovery or LayerRecovery
    candidate : UnitsCandidate
        What it is made of; ``found`` is left as it is unless this explains all that was asked.
    fires : callable, (m, d) -> (m,) of bool
        Asks the oracle of the job.
    checks : int
        Inputs; a budget may leave fewer.
    """
    if candidate.why is not Why.EXPLAINED or candidate.centre is None:
        return found
    job.tell("checking fresh inputs")
    oracle = job.oracle
    left = checks if oracle.remaining is None else min(checks, oracle.remaining // 2)
    if left < 1:
        return replace(found, status=Status.BUDGET_EXHAUSTED, evidence=(NO_CHECK,))
    borders, rng = borders_of(candidate.units), np.random.default_rng(seed)
    try:
        with oracle.phase("verify"):
            certificate = check_by_queries(fires, borders, candidate.centre, left, rng)
    except LimitReachedError as error:
        evidence = (*found.evidence, str(error))
        return replace(found, status=Status.BUDGET_EXHAUSTED, evidence=evidence)
    status: Status = Status.RECOVERED
    reasons: tuple[str, ...] = found.evidence
    if not certificate.passed:
        status, reasons = Status.UNVERIFIED, (*reasons, _DISAGREE)
    elif left < min(FEWEST_CHECKS, checks):
        status, reasons = Status.BUDGET_EXHAUSTED, (*reasons, _FEW_CHECKS)
    return replace(found, status=status, certificate=certificate, evidence=reasons)


def checked_by_samples(
    found: Found,
    candidate: UnitsCandidate,
    drawn: Drawn,
    fires: Callable[[FloatArray], BoolArray],
) -> Found:
    """Attach a certificate from samples kept apart, and look for contradictions in the others.

    Parameters
    ----------
    found : HalfspaceRecovery or LayerRecovery
    candidate : UnitsCandidate
        What it is made of; unless this explains all samples, the status is left as it is.
    fires : callable, (n,) answers -> (n,) of bool
    """
    borders, held = borders_of(candidate.units), fires(drawn.y_held)
    noise = candidate.noise
    certificate = certify_labels(drawn.X_held, held, borders, noise)
    found = replace(found, certificate=certificate)
    if candidate.why is not Why.EXPLAINED:
        return found
    if not certificate.passed:
        agree = not are_other_labels(drawn.X_held, held, borders, noise)
        return replace(found, evidence=(*found.evidence, _TOO_FEW if agree else _DISAGREE))
    # Wrong labels contradict what is right; that they come at random was seen in the search.
    n_bad = int(borders.contradicted(drawn.X, fires(drawn.y)).sum())
    if not n_bad or noise is not None:
        return replace(found, status=Status.RECOVERED)
    reason = _CONTRADICTED.format(m=n_bad, n=len(drawn.X))
    return replace(found, status=Status.PARTIAL, evidence=(*found.evidence, reason))


def with_rare_ones_apart(
    drawn: Drawn,
    fires: Callable[[FloatArray], BoolArray],
    *,
    n_rare: int = 100,
    most_apart: float = 0.2,
) -> Drawn:
    """Keep more samples apart, where few of those that are leave the constant.

    Parameters
    ----------
    fires : callable, (n,) answers -> (n,) of bool
    n_rare : int
        Samples kept apart that leave the constant.
    most_apart : float
        No more than this share of all that do.
    """
    rare = np.flatnonzero(fires(drawn.y))
    wanted = min(n_rare - int(fires(drawn.y_held).sum()), int(most_apart * len(rare)))
    if wanted < 1:
        return drawn
    cut = int(rare[wanted - 1]) + 1
    return replace(
        drawn,
        X=drawn.X[cut:],
        y=drawn.y[cut:],
        X_held=np.vstack([drawn.X_held, drawn.X[:cut]]),
        y_held=np.append(drawn.y_held, drawn.y[:cut]),
    )


def borders_of(units: Units) -> FiringBorders:
    """Where units that rarely fire begin to."""
    return FiringBorders(units.directions, units.thresholds, units.errors, units.threshold_errors)


def in_original_inputs(candidate: UnitsCandidate, law: InputLaw) -> UnitsCandidate:
    """Turn units of whitened inputs into those of the inputs themselves, and note their law."""
    units = candidate.units
    W, t, scale = law.original_rows(units.directions, units.thresholds)
    return replace(
        candidate,
        units=Units(
            W,
            t,
            units.errors * scale,
            units.threshold_errors * scale,
            bounds=units.bounds * scale,
            threshold_bounds=units.threshold_bounds * scale,
        ),
        notes=(*candidate.notes, law.objection) if law.objection else candidate.notes,
    )


NO_CHECK = "the budget leaves no query for a certificate"
_FEW_CHECKS = "the budget leaves too few queries for a certificate that says anything"
_DISAGREE = (
    "fresh inputs disagree: there is more than what was found, it is combined the other way, or "
    "the target is something else"
)
_CONTRADICTED = (
    "{m:,} of {n:,} samples contradict what was found by more than its errors: something rare "
    "is missing, answers have noise, or the target is something else"
)
_TOO_FEW = "too few of the samples kept apart leave the constant to certify where they do"
