"""The span of a first layer from answers of few digits: whole gradients, then long moves.

Where answers have seven digits, elimination, one gradient after another, would drown in the
errors of the first.  Whole gradients at more points than directions, each weighed by its own
error, leave a gap in the singular values.  That basis Q, off by a small E, is then refined:
along the null space of Q a function changes by ``(J Q^T) E`` only, so moves there may be
hundreds of times longer than the distance to a kink, and err by as much less.
"""

import logging
from collections.abc import Callable

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network.span import Span, complement
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.slopes import (
    Step,
    error_at,
    find_step,
    measure_gradient,
    unit_of,
    unit_rows,
)
from revelu.recover.span.span_of_rows import expected_angle, span_of, with_errors
from revelu.recovery import SpanRecovery, Status
from revelu.types import FloatArray

log = logging.getLogger(__name__)

# Points a batch, and how often the rank must come out the same with a gap below it.
_BATCH = 8
_AGREEING = 2
_MAX_POINTS = 400

# The weakest direction is to be known as well as this before it is refined, if need be by
# so many times the points that showed it.
_START_ANGLE = 1e-2
_N_REFINEMENTS = 2

# Equations for each of the basis's unknowns in a refinement, and so many times as many where
# they would not make it so much better.
_OVERDETERMINED = 2.0
_MOST_MORE = 4
_BETTER = 0.2

_N_LINES = 2
_STEPS = (1e-3, 1.0)


def recover_noisy_span(
    oracle: Oracle,
    noise: NoiseFloor,
    seed: int | np.random.SeedSequence,
    *,
    smooth: bool = False,
    tell: Callable[[str], None] | None = None,
) -> SpanRecovery:
    """Recover the row span of the first layer from answers of few digits.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
    seed : int or SeedSequence
    smooth : bool
        Whether the target curves everywhere: differences are then central.
    tell : callable, (str) -> None
        Told what is being done.

    Returns
    -------
    SpanRecovery
        ``UNVERIFIED`` where the rank stands out by a gap, for the caller to check;
        ``PARTIAL`` where no gap shows; ``BUDGET_EXHAUSTED``.

    Notes
    -----
    Source: JWZ20, Algorithm 1, with weights; the refinement is our own.
    """
    rng = np.random.default_rng(seed)
    span, status, reason, angle = Span(np.empty((0, oracle.dim_in))), Status.PARTIAL, "", 0.0
    n_points = 0
    try:
        rows: list[FloatArray] = []
        ranks: list[int] = []
        while status is Status.PARTIAL and n_points < _MAX_POINTS:
            if tell is not None:
                tell(f"{span.rank} directions")
            for _ in range(_BATCH):
                rows += _gradients(oracle, noise, rng, smooth=smooth)
            n_points += _BATCH
            span, clear = span_of(np.vstack([np.zeros((1, oracle.dim_in)), *rows]))
            angle = expected_angle(span, oracle.dim_in)
            ranks = [*ranks, span.rank] if clear and angle < _START_ANGLE else []
            if len(ranks) > _AGREEING and len(set(ranks[-_AGREEING:])) == 1:
                status = Status.UNVERIFIED
        span = with_errors(span, np.vstack([np.zeros((1, oracle.dim_in)), *rows]))
        if status is not Status.UNVERIFIED:
            # Refinement would take the directions that are missing for errors of the others.
            reason, angle = _NO_GAP, float(np.linalg.norm(span.errors))
        can_refine = status is Status.UNVERIFIED and 0 < span.rank < oracle.dim_in
        for _ in range(_N_REFINEMENTS if can_refine else 0):
            if tell is not None:
                tell(f"refining {span.rank} directions")
            span, angle = _refine(oracle, noise, rng, span, angle, smooth=smooth)
    except LimitReachedError as error:
        status, reason = Status.BUDGET_EXHAUSTED, str(error)
    return SpanRecovery(
        status,
        span,
        ledger=oracle.ledger(),
        evidence=(reason,) if reason else (),
        method="noisy_gradients",
        details={"gradients": n_points, "expected_angle": angle},
    )


def _step_at(
    oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, *, smooth: bool
) -> tuple[FloatArray, FloatArray, Step] | None:
    """A random point, its answer in units, and a step for it."""
    x = rng.standard_normal(oracle.dim_in)
    fx = oracle(x[None])[0] / unit_of(noise)
    lines = unit_rows(rng, _N_LINES, oracle.dim_in)
    step = find_step(oracle, noise, x, fx, lines, _STEPS, smooth=smooth)
    return None if step is None or not np.isfinite(fx).all() else (x, fx, step)


def _gradients(
    oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, *, smooth: bool
) -> list[FloatArray]:
    """Whole gradients of all outputs at a random point, in units of their errors."""
    found = _step_at(oracle, noise, rng, smooth=smooth)
    if found is None:
        return []
    x, fx, step = found
    measured = measure_gradient(oracle, noise, rng, x, fx, np.eye(oracle.dim_in), step)
    return [] if measured is None else [measured[0].T / measured[1].error]


def _refine(
    oracle: Oracle,
    noise: NoiseFloor,
    rng: np.random.Generator,
    span: Span,
    angle: float,
    *,
    smooth: bool,
) -> tuple[Span, float]:
    """Solve ``(J Q^T) E = J C^T`` for the error E of the basis Q, C its null space.

    A move of length T inside the null space shifts what the network sees by T times the
    angle at most: as long as that is a step that crosses no kink, it crosses none either.
    Beyond the length of an input, the noise grows as fast as the move.  Equations are in
    units of the error of their right side; the left side errs, too, times E.
    """
    n, Q = oracle.dim_in, span.basis
    C = complement(Q)
    inside, across = np.empty((0, span.rank)), np.empty((0, len(C)))
    n_points = int(np.ceil(_OVERDETERMINED * span.rank / noise.scale.size))
    ratio, expected = 0.0, np.inf
    for i in range(_MOST_MORE * n_points):
        if i >= n_points and expected <= _BETTER * angle:
            break
        found = _step_at(oracle, noise, rng, smooth=smooth)
        known = found and measure_gradient(oracle, noise, rng, found[0], found[1], Q, found[2])
        if not (found and known):
            continue
        x, fx, step = found[0], found[1], known[1]
        longest = min(step.h / angle, np.sqrt(n))
        moved = (oracle(x + longest * C) / unit_of(noise) - fx) / longest
        if not np.isfinite(moved).all():
            continue
        # A difference errs by two answers, the moved one sqrt(1 + T^2/n) times as much.
        error = error_at(noise, np.ones(1)) * np.sqrt(2.0 + longest**2 / n) / longest
        inside = np.vstack([inside, known[0].T / error])
        across = np.vstack([across, moved.T / error])
        ratio = max(ratio, step.error / error)
        if len(inside) >= span.rank:
            least = np.linalg.svd(inside, compute_uv=False)[-1]
            left = angle * ratio * (np.sqrt(len(inside)) + np.sqrt(span.rank))
            expected = float(np.hypot(np.sqrt(len(C)), left) / max(least, 1e-300))
    if not expected < angle:
        return span, angle
    E = np.linalg.lstsq(inside, across, rcond=None)[0]
    basis = np.linalg.qr((Q + E @ C).T)[0].T
    return Span(basis, span.singular_values, span.floor, np.full(span.rank, expected)), expected


_NO_GAP = (
    "the singular values run into the noise: there may be more directions, and the weakest "
    "that were found may be noise"
)
