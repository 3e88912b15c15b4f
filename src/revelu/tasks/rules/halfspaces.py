"""Halfspaces: rules with rare positives, read back from labels."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from revelu.adapters import open_oracle
from revelu.certify.firing import Borders
from revelu.errors import InputError
from revelu.numerics.gaussianity import measure_law
from revelu.oracle import Oracle, whole_number
from revelu.recover.rare.halfspaces import recover_by_queries, recover_from_labels
from revelu.recovery import HalfspaceRecovery, Status
from revelu.tasks.learn.samples import gather
from revelu.tasks.progress import Listener, teller
from revelu.tasks.rules.firing import checked_by_queries, checked_by_samples, with_rare_ones_apart
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)

WAYS = ("or", "and")

# Keeps the random choices apart from those that drew the target with the same seed.
_STREAM = 0x6861_6C66

_WHOLE = 2**62


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
    seed : int
        Decides every random choice.
    n_halfspaces : int, optional
        If known, for samples; queries count for themselves.
    budget : int, optional
        Most queries that may be asked, those of the certificate included.
    checks : int
        Fresh inputs of the certificate; as many more stand beside borders.
    dim_in, trust, max_seconds
        As for :func:`revelu.extract`.
    progress : callable, optional
        Called with a :class:`revelu.tasks.progress.Progress` now and then.

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
    After Goel and Panigrahy (2018), Theorem 6; see :mod:`revelu.recover.rare.halfspaces`.

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
    seeds = np.random.SeedSequence([_STREAM, seed]).spawn(2)
    if target is None:
        return _from_samples(X, y, combine, n_halfspaces, seeds, progress)
    oracle = open_oracle(target, dim_in=dim_in, budget=budget, trust=trust, max_seconds=max_seconds)
    if oracle.box is not None:
        raise InputError("halfspaces are asked for everywhere; a box is not supported")
    return _from_queries(oracle, combine, checks, seeds, progress)


def _from_queries(
    oracle: Oracle,
    combine: str,
    checks: int,
    seeds: list[np.random.SeedSequence],
    progress: Listener | None,
) -> HalfspaceRecovery:
    def ask(points: FloatArray) -> FloatArray:
        return as_labels(oracle(points), oracle.name)[:, None].astype(np.float64)

    def fires(points: FloatArray) -> BoolArray:
        return np.asarray(as_labels(oracle(points), oracle.name) == (combine == "or"))

    tell = teller(log, progress, oracle)
    outer = Oracle(ask, oracle.dim_in, name=oracle.name, batch_rows=_WHOLE)
    found = replace(recover_by_queries(outer, combine, seeds[0], tell), ledger=oracle.ledger())
    if found.status is not Status.UNVERIFIED:
        return found
    tell("checking fresh inputs")
    return checked_by_queries(found, borders_of(found), oracle, fires, checks, seeds[1])


def _from_samples(
    X: Any,
    y: Any,
    combine: str,
    n_halfspaces: int | None,
    seeds: list[np.random.SeedSequence],
    progress: Listener | None,
) -> HalfspaceRecovery:
    def fires(answers: FloatArray) -> BoolArray:
        return np.asarray(as_labels(answers[:, None], "y") == (combine == "or"))

    tell = teller(log, progress)
    tell("reading samples")
    if isinstance(y, np.ndarray) and y.dtype == np.bool_:
        y = y.astype(np.float64)
    drawn = gather(X, y, seeds[1], None)
    if drawn.disagreement > 0:
        raise InputError("an input that repeats has both labels: they are no function of it")
    as_labels(np.append(drawn.y, drawn.y_held)[:, None], "y")
    drawn = with_rare_ones_apart(drawn, fires)
    law = measure_law(drawn.X)
    labels = as_labels(drawn.y[:, None], "y")
    found = recover_from_labels(law.whiten(drawn.X), labels, combine, n_halfspaces, seeds[0], tell)
    normals, thresholds, scale = law.original_rows(found.normals, found.thresholds)
    found = replace(
        found,
        normals=normals,
        thresholds=thresholds,
        errors=found.errors * scale,
        threshold_errors=found.threshold_errors * scale,
        evidence=(*found.evidence, *((law.objection,) if law.objection else ())),
    )
    if not len(normals):
        return found
    return checked_by_samples(found, borders_of(found), drawn, fires)


def borders_of(found: HalfspaceRecovery) -> Borders:
    """Turn halfspaces to the rare side: into the union, out of the intersection."""
    side = 1.0 if found.combine == "or" else -1.0
    return Borders(
        side * found.normals, side * found.thresholds, found.errors, found.threshold_errors
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
