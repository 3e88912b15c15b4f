"""The span of a first layer from gradients that were all decided in advance (JWZ20, Algorithm 1).

One round: r = k log k Gaussian points, every coordinate of every gradient, and one query
more a point that tells whether a kink was crossed.  The step has to be chosen before
anything is known of a point.  Errata: the loop runs from 1 to r, and Lemma 3.2's points are
drawn from N(0, I_n).
"""

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network.span import Span
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.slopes import error_at, unit_of, unit_rows
from revelu.recover.span.span_of_rows import span_of, with_errors
from revelu.recovery import SpanRecovery, Status
from revelu.types import FloatArray

# Steps in advance: where kinks are, a share of the root of the floor, which a thousandth of
# all points' differences cross; where all is smooth, the cube root balances.
_STEP = 1e3


def n_gradients(n_neurons: int) -> int:
    """Return Algorithm 1's r, k log k (natural logarithm, k at least 2), with gamma = 1.

    Examples
    --------
    >>> n_gradients(80)
    351
    """
    k = max(n_neurons, 2)
    return int(np.ceil(k * np.log(k)))


def recover_span_at_once(
    oracle: Oracle,
    noise: NoiseFloor,
    seed: int | np.random.SeedSequence,
    n_neurons: int,
    *,
    smooth: bool = False,
) -> SpanRecovery:
    """Recover the row span of the first layer in one round of queries.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
    seed : int or SeedSequence
    n_neurons : int
        The k of the algorithm: it fixes how many gradients are asked for.
    smooth : bool
        Whether the target curves everywhere: differences are then central.

    Returns
    -------
    SpanRecovery
        ``UNVERIFIED`` where the rank stands out by a gap, for the caller to check;
        ``PARTIAL`` where it does not; ``BUDGET_EXHAUSTED``.

    Notes
    -----
    Source: JWZ20, Algorithm 1, Lemma 3.2, Theorem 3.4: of a ReLU network at least k/2
    directions are guaranteed.
    """
    rng = np.random.default_rng(seed)
    nu = float(noise.nu.max())
    h = float(np.cbrt(nu)) if smooth else min(_STEP * np.sqrt(nu), 1.0)
    rows: list[FloatArray] = []
    n_dropped = 0
    try:
        with oracle.round():
            for _ in range(n_gradients(n_neurons)):
                gradient = _gradient(oracle, noise, rng, h, smooth=smooth)
                n_dropped += gradient is None
                rows += [] if gradient is None else [gradient]
    except LimitReachedError as error:
        empty = Span(np.empty((0, oracle.dim_in)))
        return SpanRecovery(
            Status.BUDGET_EXHAUSTED,
            empty,
            ledger=oracle.ledger(),
            evidence=(str(error),),
            method="at_once",
        )
    gradients = np.vstack([np.empty((0, oracle.dim_in)), *rows])
    sigma = error_at(noise, np.ones(1)) * 2.0**0.5 / h
    span, clear = span_of(gradients / sigma)
    span = with_errors(span, gradients)
    reason = (
        "the singular values have no gap: there may be more directions, and the weakest that "
        "were found may be noise"
    )
    return SpanRecovery(
        Status.UNVERIFIED if clear else Status.PARTIAL,
        span,
        ledger=oracle.ledger(),
        evidence=() if clear else (reason,),
        method="at_once",
        details={
            "gradients": len(gradients),
            "dropped": n_dropped,
            "expected_angle": float(np.linalg.norm(span.errors)),
        },
    )


def _gradient(
    oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, h: float, *, smooth: bool
) -> FloatArray | None:
    """One gradient of each output, shape (k, n); None where a kink is near."""
    n = oracle.dim_in
    x = rng.standard_normal(n)
    v = unit_rows(rng, 1, n)
    back = x - h * np.eye(n) if smooth else np.empty((0, n))
    Y = oracle(np.vstack([x[None], x + h * np.eye(n), x + 2.0 * h * v, back])) / unit_of(noise)
    if not np.isfinite(Y).all():
        return None
    if smooth:
        return np.asarray((Y[1 : n + 1] - Y[n + 2 :]).T / (2.0 * h))
    slopes = (Y[1 : n + 1] - Y[0]) / h
    wrong = np.abs(Y[n + 1] - Y[0] - 2.0 * h * (v @ slopes)[0])
    error = error_at(noise, x) * np.sqrt(2.0 + 8.0)
    return None if (wrong > SIGMAS * error).any() else np.asarray(slopes.T)
