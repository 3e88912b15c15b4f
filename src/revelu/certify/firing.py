"""Certificates of halfspaces: labels, or what leaves a constant, change where they say."""

from collections.abc import Callable

import numpy as np

from revelu.numerics.confidence import upper_bound
from revelu.recovery import Certificate
from revelu.types import BoolArray, FloatArray

CONFIDENCE = 0.95

# A label may differ where an input is so many standard errors from a border.
_SIGMAS = 6.0

# Inputs beside borders: so far from them, relative to the distance, at least; and how much
# rays scatter around the normals.
_BESIDE = 1e-7
_SCATTER = 0.7

Fires = Callable[[FloatArray], BoolArray]


def check_by_queries(
    fires: Fires,
    W: FloatArray,
    t: FloatArray,
    errors: FloatArray,
    threshold_errors: FloatArray,
    centre: FloatArray,
    n_checks: int,
    rng: np.random.Generator,
) -> Certificate:
    """Compare ``any(W x >= t)`` with fresh answers, half of them on both sides of borders.

    Parameters
    ----------
    fires : callable, (m, d) -> (m,) of bool
        Asks.
    W : ndarray, shape (k, d)
    t, errors, threshold_errors : ndarray, shape (k,)
    centre : ndarray, shape (d,)
        Where nothing fires.
    n_checks : int
        Inputs from N(0, I); as many more stand beside borders.
    rng : numpy.random.Generator
    """
    d = len(centre)
    X = rng.standard_normal((n_checks, d))
    V = W[rng.integers(len(W), size=max(n_checks // 2, 1))]
    V = V + _SCATTER / np.sqrt(d) * rng.standard_normal((len(V), d))
    room = t - W @ centre
    with np.errstate(divide="ignore"):
        reach = room / (V @ W.T)
    radius = np.where(reach > 0, reach, np.inf).min(axis=1)
    V, radius = V[np.isfinite(radius)], radius[np.isfinite(radius)]
    # Beside a border, by more than the errors of the halfspaces explain.
    off = np.maximum(_BESIDE, _SIGMAS * float((errors + threshold_errors).max(initial=0.0)))
    near = np.vstack([centre + (radius * (1.0 + s * off))[:, None] * V for s in (-1.0, 1.0)])
    answers = fires(np.vstack([X, near]))
    plain = certify_labels(X, answers[:n_checks], W, t, errors, threshold_errors)
    expected = np.repeat([False, True], len(V))
    agree = answers[n_checks:] == expected
    beside = float(agree.mean()) if len(agree) else 1.0
    more = (
        f", and {len(agree):,} more on both sides of borders"
        if agree.all()
        else f"; {int((~agree).sum()):,} of {len(agree):,} beside borders are wrong"
    )
    return Certificate(
        **{
            **vars(plain),
            "statement": plain.statement + more,
            "n_structural": len(agree),
            "structural_within": beside,
            "passed": plain.passed and bool(agree.all()),
        }
    )


def certify_labels(
    X: FloatArray,
    fires: BoolArray,
    W: FloatArray,
    t: FloatArray,
    errors: FloatArray,
    threshold_errors: FloatArray,
) -> Certificate:
    """State what inputs that had no part in a fit say of ``any(W x >= t)``.

    Passed where every label that differs is within the stated errors of a border.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    fires : ndarray of bool, shape (n,)
    W : ndarray, shape (k, d)
    t, errors, threshold_errors : ndarray, shape (k,)
    """
    n = len(X)
    margins = X @ W.T - t
    wrong = (margins >= 0).any(axis=1) != fires
    width = np.linalg.norm(X, axis=1)[:, None] * errors + threshold_errors
    excused = (np.abs(margins) <= _SIGMAS * width).any(axis=1)
    n_wrong, n_bad = int(wrong.sum()), int((wrong & ~excused).sum())
    bound = upper_bound(n_wrong, n, CONFIDENCE)
    beyond = f", {n_bad:,} of them beyond the errors given" if n_wrong else ""
    return Certificate(
        n_checks=n,
        max_abs_error=float(n_wrong > 0),
        nrmse=float(np.sqrt(n_wrong / n) / max(fires.std(), 1.0 / n)) if n else np.inf,
        fraction_within=1.0 - n_wrong / max(n, 1),
        tolerance=0.0,
        confidence=CONFIDENCE,
        statement=(
            f"at {CONFIDENCE:.0%} confidence less than {100 * bound:.2g}% of inputs get another "
            f"label ({n:,} fresh ones, {n_wrong:,} of which did{beyond})"
        ),
        passed=n > 0 and n_bad == 0,
    )
