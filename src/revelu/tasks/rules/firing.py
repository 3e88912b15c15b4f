"""Where units fire, checked: by fresh queries, or by samples that had no part in a fit."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from revelu.certify.firing import Borders, certify_labels, check_by_queries
from revelu.errors import LimitReachedError
from revelu.oracle import Oracle
from revelu.recovery import Certificate, HalfspaceRecovery, LayerRecovery, Status
from revelu.tasks.extract.job import FEWEST_CHECKS
from revelu.tasks.learn.samples import Drawn
from revelu.types import BoolArray, FloatArray

Found = TypeVar("Found", HalfspaceRecovery, LayerRecovery)

# Samples on the rare side that are kept apart, if they are no more than this share of all.
_N_RARE = 100
_MOST_APART = 0.2


def checked_by_queries(
    found: Found,
    borders: Borders,
    oracle: Oracle,
    fires: Callable[[FloatArray], BoolArray],
    checks: int,
    seed: np.random.SeedSequence,
) -> Found:
    """Attach a certificate and the status that follows from it.

    Parameters
    ----------
    found : HalfspaceRecovery or LayerRecovery
        With the place inside of all borders as ``details["centre"]``.
    borders : Borders
        Of what fires.
    oracle : Oracle
        Counts the queries that ``fires`` asks.
    fires : callable, (m, d) -> (m,) of bool
    checks : int
        Inputs; a budget may leave fewer.
    seed : SeedSequence
    """
    left = checks if oracle.remaining is None else min(checks, oracle.remaining // 2)
    if left < 1:
        return replace(found, status=Status.BUDGET_EXHAUSTED, evidence=(NO_CHECK,))
    rng = np.random.default_rng(seed)
    try:
        with oracle.phase("verify"):
            certificate: Certificate = check_by_queries(
                fires, borders, found.details["centre"], left, rng
            )
    except LimitReachedError as error:
        out = (*found.evidence, str(error))
        return replace(found, status=Status.BUDGET_EXHAUSTED, evidence=out, ledger=oracle.ledger())
    status: Status = Status.RECOVERED
    evidence: tuple[str, ...] = found.evidence
    if not certificate.passed:
        status, evidence = Status.UNVERIFIED, (*evidence, _DISAGREE)
    elif left < min(FEWEST_CHECKS, checks):
        status, evidence = Status.BUDGET_EXHAUSTED, (*evidence, _FEW_CHECKS)
    return replace(
        found, status=status, certificate=certificate, evidence=evidence, ledger=oracle.ledger()
    )


def checked_by_samples(
    found: Found, borders: Borders, drawn: Drawn, fires: Callable[[FloatArray], BoolArray]
) -> Found:
    """Attach a certificate from samples kept apart, and look for contradictions in the others.

    Parameters
    ----------
    found : HalfspaceRecovery or LayerRecovery
        Left as it is, but for the certificate, unless it is ``UNVERIFIED``.
    borders : Borders
        Of what fires.
    drawn : Drawn
    fires : callable, (n,) answers -> (n,) of bool
    """
    certificate: Certificate = certify_labels(drawn.X_held, fires(drawn.y_held), borders)
    found = replace(found, certificate=certificate)
    if found.status is not Status.UNVERIFIED:
        return found
    if certificate.passed:
        n_bad = int(borders.contradicted(drawn.X, fires(drawn.y)).sum())
        if not n_bad:
            return replace(found, status=Status.RECOVERED)
        reason = _CONTRADICTED.format(m=n_bad, n=len(drawn.X))
        return replace(found, status=Status.PARTIAL, evidence=(*found.evidence, reason))
    reason = _TOO_FEW if certificate.fraction_within == 1.0 else _DISAGREE
    return replace(found, evidence=(*found.evidence, reason))


def with_rare_ones_apart(drawn: Drawn, fires: Callable[[FloatArray], BoolArray]) -> Drawn:
    """Keep more samples apart, where few of those that are leave the constant."""
    rare = np.flatnonzero(fires(drawn.y))
    wanted = min(_N_RARE - int(fires(drawn.y_held).sum()), int(_MOST_APART * len(rare)))
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
