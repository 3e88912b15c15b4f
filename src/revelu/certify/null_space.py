"""Certificates of spans: what fresh moves inside the null space change."""

import numpy as np

from revelu.network.span import Span
from revelu.numerics.confidence import CONFIDENCE, at_most, upper_bound
from revelu.oracle import NoiseFloor, Oracle
from revelu.recovery import NullCertificate
from revelu.types import FloatArray


def check_null_space(
    oracle: Oracle,
    span: Span,
    n_checks: int,
    rng: np.random.Generator,
    noise: NoiseFloor | None = None,
    angle: float = 0.0,
    words: str = "",
) -> NullCertificate | None:
    """Move fresh inputs across a span and see whether an answer changes.

    Parameters
    ----------
    n_checks : int
        Fresh inputs, two queries each; fewer where the budget says so.
    noise : NoiseFloor, optional
        Of the answers; None for labels, which must not change at all.
    angle : float
        How far off the span is said to be, in radians.
    words : str
        What a domain is called, of which the inputs are coordinates.

    Returns
    -------
    NullCertificate or None
        None where there is no null space, or no query is left.
    """
    n = n_checks if oracle.remaining is None else min(n_checks, oracle.remaining // 2)
    if span.rank == span.dim_in or n < 1:
        return None
    X = rng.standard_normal((n, span.dim_in))
    moved = X + span.remove(rng.standard_normal(X.shape))
    with oracle.phase("verify"):
        Y = oracle(np.vstack([X, moved]))
    # Saturated answers cannot be compared.
    finite = np.isfinite(Y[:n]).all(axis=1) & np.isfinite(Y[n:]).all(axis=1)
    before, after = Y[:n][finite], Y[n:][finite]
    limits = np.full(Y.shape[1], 0.5) if noise is None else _limits(noise, angle, before)
    changes = np.abs(after - before)
    n_bad = int((changes > limits).any(axis=1).sum())
    bound = upper_bound(n_bad, len(before), CONFIDENCE)
    changed = f"; {n_bad:,} changed" if n_bad else ""
    inputs = f"inputs {words}" if words else "N(0, I) inputs"
    statement = (
        f"at {CONFIDENCE:.0%} confidence less than {at_most(bound)} of {inputs} answer "
        f"otherwise when moved inside the null space ({len(before):,} fresh checks{changed})"
    )
    return NullCertificate(
        n_checks=len(before),
        max_change=float(changes.max(initial=0.0)),
        tolerance=float(limits.max(initial=0.0)),
        fraction_within=1.0 - n_bad / max(len(before), 1),
        confidence=CONFIDENCE,
        statement=statement,
        passed=n_bad == 0 and len(before) > 0,
    )


def _limits(
    noise: NoiseFloor,
    angle: float,
    answers: FloatArray,
    *,
    factor: float = 32.0,
    most_by_angle: float = 0.02,
    most_by_noise: float = 0.1,
) -> FloatArray:
    """The largest change by output that rounding and the span's own error explain.

    That is ``factor`` errors, of the answer and of the span's angle.  However far off the span
    is said to be, and however large the noise, no more than a small share of what
    ``answers (m, k)`` vary by is explained so, ``most_by_angle`` and ``most_by_noise``: what is
    forgiven a vague span would hide a missing direction.  Answers that are constant but for
    their last digits vary by rounding alone.
    """
    spread, size = answers.std(axis=0), np.abs(answers).max(axis=0, initial=0.0)
    last_digits = factor * np.finfo(np.float64).eps * size
    rounding = factor * noise.nu * noise.scale * np.sqrt(6.0)
    rounding = np.minimum(rounding, np.maximum(most_by_noise * spread, last_digits))
    return np.asarray(rounding + min(factor * angle, most_by_angle) * spread)
