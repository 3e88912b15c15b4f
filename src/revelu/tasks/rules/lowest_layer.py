"""The lowest layer: directions and thresholds of units that rarely fire."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from revelu.certify.held_out import certify_held_out
from revelu.errors import InputError, LimitReachedError
from revelu.formats.samples import check_samples
from revelu.numerics.confidence import upper_bound
from revelu.numerics.gaussianity import measure_law
from revelu.oracle import whole_number
from revelu.recover.method import Tell, Why
from revelu.recover.rare import (
    recover_biased_layer,
    recover_even_units,
    recover_exponential_units,
    recover_layer,
    recover_sampled_layer,
)
from revelu.recover.rare.rare_directions import MOST_UNITS
from revelu.recover.rare.rare_samples import find_constant
from revelu.recover.rare.smooth_units import SmoothFit
from revelu.recover.rare.units import UnitsCandidate
from revelu.recovery import LayerRecovery, Ledger, Status
from revelu.tasks.job import Job, check_progress, open_target, random_seeds
from revelu.tasks.learn.samples import Drawn, gather
from revelu.tasks.notebook import listener
from revelu.tasks.progress import Listener, teller
from revelu.tasks.rules.firing import (
    NO_CHECK,
    NO_QUERIES,
    checked_by_queries,
    checked_by_samples,
    in_original_inputs,
    status_of,
    with_rare_ones_apart,
)
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)

KINDS = ("relu", "sign", "sigmoid", "exp", "even")

# These come from samples alone; the last one needs the number of units.
_STRUCTURED = ("exp", "even")

_STREAM = "laye"
"""Of the random choices."""


def recover_lowest_layer(
    target: Any = None,
    X: Any = None,
    y: Any = None,
    activation: str = "relu",
    n_neurons: int | None = None,
    seed: int = 0,
    *,
    biased: bool = False,
    budget: int | None = None,
    checks: int = 1000,
    dim_in: int | None = None,
    trust: bool = False,
    max_seconds: float | None = None,
    progress: Listener | None = None,
) -> LayerRecovery:
    """Recover a first layer that fires rarely, whatever stands above it.

    Parameters
    ----------
    target : Oracle, Network, callable, path or str, optional
        What can be asked, as for :func:`revelu.open_oracle`.
    X, y : array_like, shapes (n, d) and (n,), optional
        Samples of N(0, I), or another Gaussian, in place of a target; ``X`` may be the path of
        a file or a folder that holds both.
    activation : {"relu", "sign", "sigmoid", "exp", "even"}
        ``u`` in ``u(directions @ x - thresholds)``.  ``"exp"``: rows are multiples of 0/1 vectors
        with disjoint supports; ``"even"``: rows are orthonormal, no threshold, and
        ``n_neurons`` is needed; both from samples only.
    n_neurons : int, optional
        If known, for samples; at most the number of inputs.
    biased : bool
        ``X`` holds samples of N(0, I) that were each kept with a probability proportional to
        the answer (reports of faults, say), and there is no ``y``.
    checks : int
        Fresh inputs of the certificate.
    seed, budget, dim_in, trust, max_seconds, progress
        As of :func:`revelu.extract`.

    Returns
    -------
    LayerRecovery
        ``RECOVERED`` where fresh inputs leave the constant exactly where the units say.
        ``PARTIAL`` where directions are known to the errors given only.  A unit that fires only
        where another one does, as behind one of the same direction, is not seen.

    Raises
    ------
    InputError
        If an argument makes no sense, or neither or both of target and samples are given.

    Notes
    -----
    After Goel and Panigrahy (2018); see :mod:`revelu.recover.rare`.

    Examples
    --------
    >>> import numpy as np, revelu
    >>> def f(X):  # two units, and their product
    ...     u, v = np.maximum(X @ [0.6, 0.8, 0.0] - 2, 0), np.maximum(X[:, 2] - 1.5, 0)
    ...     return 1 + u + v + u * v
    >>> found = revelu.recover_lowest_layer(f, dim_in=3)
    >>> found.status.value, sorted(found.thresholds.round(9).tolist())
    ('recovered', [1.5, 2.0])
    """
    if activation not in KINDS:
        raise InputError(f"unknown activation {activation!r}; known: {', '.join(KINDS)}")
    seed = whole_number("seed", seed, 0)
    checks = whole_number("checks", checks, 1)
    if n_neurons is not None:
        n_neurons = whole_number("n_neurons", n_neurons, 1)
    if (target is None) == (X is None):
        raise InputError("give either a target to ask, or samples X and y")
    if activation in _STRUCTURED and target is not None:
        raise InputError(f"{activation!r} units come from samples X and y only")
    if activation == "even" and n_neurons is None:
        raise InputError("'even' units need n_neurons")
    if biased and (target is not None or y is not None or activation in _STRUCTURED):
        raise InputError("biased samples are X alone, of relu, sign or sigmoid units")
    if target is None:
        check_progress(progress)
        for_search, for_samples = random_seeds(_STREAM, seed).spawn(2)
        rng = np.random.default_rng(for_search)
        if biased:
            return _from_biased(X, activation, n_neurons, rng)
        tell = teller(log, listener(progress))
        tell("reading samples")
        drawn = gather(X, y, for_samples, None)
        if activation in _STRUCTURED:
            return _structured(drawn, activation, n_neurons, rng)
        return _from_samples(drawn, activation, n_neurons, rng, tell)
    oracle = open_target(
        target,
        seed,
        progress,
        everywhere="the search for the lowest layer",
        dim_in=dim_in,
        budget=budget,
        trust=trust,
        max_seconds=max_seconds,
    )
    _check_width(n_neurons, oracle.dim_in)
    job = Job(oracle, seed, progress, "lowest layer", _STREAM)
    return job.finished(_from_queries(job, activation, n_neurons, checks))


def _from_queries(job: Job, activation: str, n_neurons: int | None, checks: int) -> LayerRecovery:
    oracle = job.oracle
    for_search, for_checks = job.seeds.spawn(2)
    rng = np.random.default_rng(for_search)
    candidate = recover_layer(oracle, activation, n_neurons, rng, job.tell)
    found = _result(candidate, oracle.ledger())
    if candidate.fit is not None:
        return _fit_checked(job, found, candidate.fit, checks, np.random.default_rng(for_checks))
    constant = candidate.constant
    if constant is None:
        return found
    if candidate.why is Why.EXPLAINED and n_neurons not in (None, len(candidate.units)):
        note = f"{len(candidate.units)} units were found, not {n_neurons}"
        found = replace(found, evidence=(*found.evidence, note))
    is_quiet = constant.is_answer
    return checked_by_queries(
        job, found, candidate, lambda X: ~is_quiet(oracle(X)), checks, for_checks
    )


def _from_samples(
    drawn: Drawn, activation: str, n_neurons: int | None, rng: np.random.Generator, tell: Tell
) -> LayerRecovery:
    _check_width(n_neurons, min(drawn.X.shape[1], MOST_UNITS))
    constant = find_constant(drawn.y[:, None])

    def fires(answers: FloatArray) -> BoolArray:
        return ~constant.is_answer(answers[:, None])

    if activation != "sigmoid":
        drawn = with_rare_ones_apart(drawn, fires)
    law = measure_law(drawn.X)
    candidate = recover_sampled_layer(
        law.whiten(drawn.X), drawn.y, constant, activation, n_neurons, rng, tell
    )
    candidate = in_original_inputs(candidate, law)
    found = _result(candidate, NO_QUERIES)
    if candidate.why is not Why.EXPLAINED:
        return found
    if candidate.fit is not None:
        return _agreeing(found, candidate.fit, law.whiten(drawn.X_held), drawn.y_held)
    return checked_by_samples(found, candidate, drawn, fires)


def _from_biased(
    X: Any, activation: str, n_neurons: int | None, rng: np.random.Generator
) -> LayerRecovery:
    rows = np.atleast_1d(np.asarray(X))
    X, _ = check_samples(rows, np.zeros(len(rows)))
    _check_width(n_neurons, min(X.shape[1], MOST_UNITS))
    return _result(recover_biased_layer(X, activation, n_neurons, rng), NO_QUERIES)


def _structured(
    drawn: Drawn, activation: str, n_neurons: int | None, rng: np.random.Generator
) -> LayerRecovery:
    """Layers of special shape; inputs must be N(0, I) as they are, or blocks would be mixed."""
    _check_width(n_neurons, drawn.X.shape[1])
    law = measure_law(drawn.X)
    if activation == "exp":
        candidate = recover_exponential_units(drawn.X, drawn.y, rng)
    else:
        candidate = recover_even_units(drawn.X, drawn.y, n_neurons or 1, rng)
    found = _result(candidate, NO_QUERIES)
    is_normal = law.is_standard and not law.objection
    if candidate.why is Why.EXPLAINED:
        # Two halves of the samples agree: that was the check.
        found = replace(found, status=Status.RECOVERED if is_normal else Status.PARTIAL)
    if is_normal:
        return found
    reason = law.objection or "the inputs have another mean or covariance than N(0, I)"
    return replace(found, evidence=(*found.evidence, reason))


def _result(candidate: UnitsCandidate, ledger: Ledger) -> LayerRecovery:
    units, details = candidate.units, dict(candidate.figures)
    if candidate.constant is not None or not np.isnan(units.threshold_errors).all():
        details["threshold_errors"] = units.threshold_errors
    if candidate.centre is not None:
        details |= {"centre": candidate.centre, "missed": upper_bound(0, candidate.n_quiet)}
    if candidate.fit is not None:
        details["fit"] = candidate.fit
    return LayerRecovery(
        status_of(candidate.why),
        units.directions,
        units.thresholds,
        units.errors,
        ledger=ledger,
        evidence=candidate.notes,
        method=candidate.method,
        details=details,
    )


def _fit_checked(
    job: Job, found: LayerRecovery, fit: SmoothFit, checks: int, rng: np.random.Generator
) -> LayerRecovery:
    """Compare a fit with fresh answers."""
    job.tell("checking fresh inputs")
    oracle = job.oracle
    n = checks if oracle.remaining is None else min(checks, oracle.remaining)
    if n < 1:
        return replace(found, status=Status.BUDGET_EXHAUSTED, evidence=(NO_CHECK,))
    X = rng.standard_normal((n, oracle.dim_in))
    try:
        with oracle.phase("verify"):
            y = oracle(X)[:, 0]
    except LimitReachedError as error:
        return replace(found, status=Status.BUDGET_EXHAUSTED, evidence=(str(error),))
    return _agreeing(found, fit, X, y)


def _agreeing(found: LayerRecovery, fit: SmoothFit, X: FloatArray, y: FloatArray) -> LayerRecovery:
    """Compare a fit with answers that had no part in it."""
    certificate = certify_held_out(lambda Z: np.asarray(fit(Z)[:, None]), X, y, 0.0)
    found = replace(found, certificate=certificate)
    if certificate.passed:
        return replace(found, status=Status.RECOVERED)
    return replace(found, evidence=(*found.evidence, "fresh answers differ from the fit"))


def _check_width(n_neurons: int | None, d: int) -> None:
    if n_neurons is not None and n_neurons > d:
        raise InputError(
            f"{n_neurons} units: the method needs independent directions, here {d} at most"
        )
