"""The lowest layer: directions and thresholds of units that rarely fire."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from revelu.adapters import open_oracle
from revelu.certify.firing import Borders
from revelu.certify.held_out import certify_held_out
from revelu.errors import InputError, LimitReachedError
from revelu.formats.samples import check_samples
from revelu.numerics.gaussianity import measure_law
from revelu.oracle import Oracle, whole_number
from revelu.recover.rare.even_units import recover_even
from revelu.recover.rare.exponential_units import recover_exponential
from revelu.recover.rare.lowest_layer import recover_by_queries
from revelu.recover.rare.rare_directions import MOST_UNITS
from revelu.recover.rare.rare_samples import find_constant
from revelu.recover.rare.sampled_layer import recover_from_biased, recover_from_samples
from revelu.recovery import LayerRecovery, Status
from revelu.tasks.learn.samples import gather
from revelu.tasks.progress import Listener, teller
from revelu.tasks.rules.firing import (
    NO_CHECK,
    checked_by_queries,
    checked_by_samples,
    with_rare_ones_apart,
)
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)

KINDS = ("relu", "sign", "sigmoid", "exp", "even")

# These come from samples alone; the last one needs the number of units.
_STRUCTURED = ("exp", "even")

# Keeps the random choices apart from those that drew the target with the same seed.
_STREAM = 0x6C61_7965


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
    seed : int
        Decides every random choice.
    biased : bool
        ``X`` holds samples of N(0, I) that were each kept with a probability proportional to
        the answer (reports of faults, say), and there is no ``y``.
    budget : int, optional
        Most queries that may be asked, those of the certificate included.
    checks : int
        Fresh inputs of the certificate.
    dim_in, trust, max_seconds
        As for :func:`revelu.extract`.
    progress : callable, optional

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
    After Goel and Panigrahy (2018); see :mod:`revelu.recover.rare.lowest_layer`.

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
    seeds = np.random.SeedSequence([_STREAM, seed]).spawn(2)
    if biased:
        return _from_biased(target, X, y, activation, n_neurons, seeds)
    if activation in _STRUCTURED:
        return _structured(X, y, activation, n_neurons, seeds)
    if target is None:
        return _from_samples(X, y, activation, n_neurons, seeds, progress)
    oracle = open_oracle(target, dim_in=dim_in, budget=budget, trust=trust, max_seconds=max_seconds)
    if oracle.box is not None:
        raise InputError("the lowest layer is asked for everywhere; a box is not supported")
    _check_width(n_neurons, oracle.dim_in)
    return _from_queries(oracle, activation, n_neurons, checks, seeds, progress)


def _from_queries(
    oracle: Oracle,
    activation: str,
    n_neurons: int | None,
    checks: int,
    seeds: list[np.random.SeedSequence],
    progress: Listener | None,
) -> LayerRecovery:
    tell = teller(log, progress, oracle)
    found = recover_by_queries(oracle, activation, n_neurons, seeds[0], tell)
    if found.status is not Status.UNVERIFIED:
        return found
    tell("checking fresh inputs")
    if activation == "sigmoid":
        return _smooth_checked(found, oracle, checks, np.random.default_rng(seeds[1]))
    if n_neurons is not None and len(found.directions) != n_neurons:
        note = f"{len(found.directions)} units were found, not {n_neurons}"
        found = replace(found, evidence=(*found.evidence, note))

    def fires(points: FloatArray) -> BoolArray:
        return np.asarray(~found.details["rounding"].is_answer(oracle(points)))

    return checked_by_queries(found, borders_of(found), oracle, fires, checks, seeds[1])


def _from_samples(
    X: Any,
    y: Any,
    activation: str,
    n_neurons: int | None,
    seeds: list[np.random.SeedSequence],
    progress: Listener | None,
) -> LayerRecovery:
    tell = teller(log, progress)
    tell("reading samples")
    drawn = gather(X, y, seeds[1], None)
    _check_width(n_neurons, min(drawn.X.shape[1], MOST_UNITS))
    quiet = find_constant(drawn.y[:, None])

    def fires(answers: FloatArray) -> BoolArray:
        return np.asarray(~quiet.is_answer(answers[:, None]))

    if activation != "sigmoid":
        drawn = with_rare_ones_apart(drawn, fires)
    law = measure_law(drawn.X)
    found = recover_from_samples(
        law.whiten(drawn.X), drawn.y, quiet, activation, n_neurons, seeds[0], tell
    )
    directions, thresholds, scale = law.original_rows(found.directions, found.thresholds)
    details = dict(found.details)
    if "threshold_errors" in details:
        details["threshold_errors"] = details["threshold_errors"] * scale
    found = replace(
        found,
        directions=directions,
        thresholds=thresholds,
        errors=found.errors * scale,
        evidence=(*found.evidence, *((law.objection,) if law.objection else ())),
        details=details,
    )
    if not len(directions) or found.status is not Status.UNVERIFIED:
        return found
    if activation == "sigmoid":
        return _agreeing(found, law.whiten(drawn.X_held), drawn.y_held)
    return checked_by_samples(found, borders_of(found), drawn, fires)


def _from_biased(
    target: Any,
    X: Any,
    y: Any,
    activation: str,
    n_neurons: int | None,
    seeds: list[np.random.SeedSequence],
) -> LayerRecovery:
    if target is not None or y is not None or activation in _STRUCTURED:
        raise InputError("biased samples are X alone, of relu, sign or sigmoid units")
    rows = np.atleast_1d(np.asarray(X))
    X, _ = check_samples(rows, np.zeros(len(rows)))
    _check_width(n_neurons, min(X.shape[1], MOST_UNITS))
    return recover_from_biased(X, activation, n_neurons, seeds[0])


def borders_of(found: LayerRecovery) -> Borders:
    """Where units that rarely fire leave the constant."""
    return Borders(
        found.directions, found.thresholds, found.errors, found.details["threshold_errors"]
    )


def _smooth_checked(
    found: LayerRecovery, oracle: Oracle, checks: int, rng: np.random.Generator
) -> LayerRecovery:
    """Compare a fit with fresh answers."""
    n = checks if oracle.remaining is None else min(checks, oracle.remaining)
    if n < 1:
        return replace(found, status=Status.BUDGET_EXHAUSTED, evidence=(NO_CHECK,))
    X = rng.standard_normal((n, oracle.dim_in))
    try:
        with oracle.phase("verify"):
            y = oracle(X)[:, 0]
    except LimitReachedError as error:
        return replace(found, status=Status.BUDGET_EXHAUSTED, evidence=(str(error),))
    return replace(_agreeing(found, X, y), ledger=oracle.ledger())


def _agreeing(found: LayerRecovery, X: FloatArray, y: FloatArray) -> LayerRecovery:
    """Compare a fit with answers that had no part in it."""
    fit = found.details["fit"]
    certificate = certify_held_out(lambda Z: np.asarray(fit(Z)[:, None]), X, y, 0.0)
    status = Status.RECOVERED if certificate.passed else Status.UNVERIFIED
    evidence = () if certificate.passed else ("fresh answers differ from the fit",)
    return replace(found, status=status, certificate=certificate, evidence=evidence)


def _structured(
    X: Any,
    y: Any,
    activation: str,
    n_neurons: int | None,
    seeds: list[np.random.SeedSequence],
) -> LayerRecovery:
    """Layers of special shape; inputs must be N(0, I) as they are, or blocks would be mixed."""
    drawn = gather(X, y, seeds[1], None)
    rows, answers, rng = drawn.X, drawn.y, np.random.default_rng(seeds[0])
    _check_width(n_neurons, rows.shape[1])
    law = measure_law(rows)
    if activation == "exp":
        found = recover_exponential(rows, answers, rng)
    else:
        found = recover_even(rows, answers, n_neurons or 1, rng)
    if law.is_standard and not law.objection:
        return found
    reason = law.objection or "the inputs have another mean or covariance than N(0, I)"
    status = Status.PARTIAL if found.status is Status.RECOVERED else found.status
    return replace(found, status=status, evidence=(*found.evidence, reason))


def _check_width(n_neurons: int | None, d: int) -> None:
    if n_neurons is not None and n_neurons > d:
        raise InputError(
            f"{n_neurons} units: the method needs independent directions, here {d} at most"
        )
