"""Certificates of halfspaces: labels, or what leaves a constant, change where they say."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import bdtrc

from revelu.numerics.confidence import (
    CONFIDENCE,
    FALSE_ALARM,
    at_most,
    standard_errors,
    upper_bound,
)
from revelu.recovery import Certificate
from revelu.types import BoolArray, FloatArray

# A certificate by samples must exclude, at its confidence, that more than this share of inputs is
# wrong; by labels, that more than this share of those on the rare side is.
MOST_WRONG = 0.1

Fires = Callable[[FloatArray], BoolArray]


@dataclass(frozen=True)
class FiringBorders:
    """Where ``any(W x >= t)`` changes, to some error.

    Attributes
    ----------
    W : ndarray, shape (k, d)
        Rows of norm 1.
    t, errors, threshold_errors : ndarray, shape (k,)
        Standard errors, of angles in radians and of thresholds.
    sigmas : float
        A label may differ where an input is within ``sigmas`` standard errors of a border: beside
        borders stand some thousand of those asked.
    """

    W: FloatArray
    t: FloatArray
    errors: FloatArray
    threshold_errors: FloatArray
    sigmas: float = standard_errors(1e3)

    def predict(self, X: FloatArray) -> BoolArray:
        """``any(W x >= t)``, (n, d) -> (n,)."""
        margins = X @ self.W.T - self.t
        return np.asarray((margins >= 0).any(axis=1))

    def contradicted(self, X: FloatArray, fires: BoolArray) -> BoolArray:
        """Inputs whose labels differ from the prediction by more than the errors explain.

        Parameters
        ----------
        X : ndarray, shape (n, d)
        fires : ndarray of bool, shape (n,)
        """
        margins = X @ self.W.T - self.t
        width = np.linalg.norm(X, axis=1)[:, None] * self.errors + self.threshold_errors
        excused = (np.abs(margins) <= self.sigmas * width).any(axis=1)
        return np.asarray(((margins >= 0).any(axis=1) != fires) & ~excused)


def check_by_queries(
    fires: Fires,
    borders: FiringBorders,
    centre: FloatArray,
    n_checks: int,
    rng: np.random.Generator,
    *,
    beside: float = 1e-7,
    beyond: float = 4.0,
) -> Certificate:
    """Compare a prediction with fresh answers, half of them at borders and beyond.

    Parameters
    ----------
    fires : callable, (m, d) -> (m,) of bool
        Asks.
    centre : ndarray, shape (d,)
        Where nothing fires.
    n_checks : int
        Inputs from N(0, I); about as many more stand on both sides of borders, and beyond
        one or two of them at a time.
    beside : float
        Least distance of the inputs at borders from them, relative to the centre's.
    beyond : float
        How many times as far as a border the inputs beyond it reach.
    """
    X = rng.standard_normal((n_checks, len(centre)))
    V, radius = _rays(borders, centre, max(n_checks // 3, 1), rng)
    # Inputs lie farther from a border than the errors of the halfspaces explain.
    worst = float((borders.errors + borders.threshold_errors).max(initial=0.0))
    off = max(beside, borders.sigmas * worst)
    far = 1.0 + off + (beyond - 1.0) * rng.random(len(V))
    factors = np.stack([np.full(len(V), 1.0 - off), np.full(len(V), 1.0 + off), far])
    near = centre + (factors * radius)[:, :, None] * V
    answers = fires(np.vstack([X, near.reshape(-1, len(centre))]))
    plain = _compared(X, answers[:n_checks], borders, "inputs")
    expected = np.repeat([False, True, True], len(V))
    agree = answers[n_checks:] == expected
    more = (
        f", and {len(agree):,} more on both sides of borders and beyond"
        if agree.all()
        else f"; {int((~agree).sum()):,} of {len(agree):,} at borders or beyond are wrong"
    )
    return replace(
        plain,
        statement=plain.statement + more,
        n_structural=len(agree),
        structural_within=float(agree.mean()) if len(agree) else 1.0,
        passed=plain.passed and bool(agree.all()),
    )


def _rays(
    borders: FiringBorders,
    centre: FloatArray,
    n: int,
    rng: np.random.Generator,
    scatter: float = 0.7,
) -> tuple[FloatArray, FloatArray]:
    """Rays that cross borders, (m, d), and the radii where they meet the first.

    They lie around the normals, by ``scatter`` times a Gaussian vector of norm about 1.
    """
    k, d = borders.W.shape
    V = borders.W[rng.integers(k, size=n)]
    # Half of them lead to where two halfspaces meet.
    V = V + np.where(rng.random(n) < 0.5, 1.0, 0.0)[:, None] * borders.W[rng.integers(k, size=n)]
    V = V + scatter / np.sqrt(d) * rng.standard_normal((n, d))
    with np.errstate(divide="ignore"):
        reach = (borders.t - borders.W @ centre) / (V @ borders.W.T)
    radius = np.where(reach > 0, reach, np.inf).min(axis=1)
    kept = np.isfinite(radius)
    return V[kept], radius[kept]


Noise = tuple[float, float]
"""Shares of wrong labels, of those outside and of those inside."""


def certify_labels(
    X: FloatArray, fires: BoolArray, borders: FiringBorders, noise: Noise | None = None
) -> Certificate:
    """State what samples that had no part in a fit say of a prediction.

    Passed where every label that differs is within the stated errors of a border, and enough
    are on the rare side to say that at most a tenth of those is wrong.  Of labels that are wrong
    at random no more may differ than the fit says, on either side; and enough be predicted to
    be rare to say that at most a tenth of those differs for another reason.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    fires : ndarray of bool, shape (n,)
    noise : (float, float), optional
        What the fit says; None where no label is wrong.
    """
    plain = _compared(X, fires, borders, "inputs of the samples' law")
    predicted = borders.predict(X)
    if noise is not None:
        n_wrong, n_rare = int((predicted & ~fires).sum()), int(predicted.sum())
        bound = upper_bound(n_wrong, n_rare, CONFIDENCE)
        return replace(
            plain,
            statement=(
                f"{plain.statement}, and of those on the rare side less than "
                f"{at_most(100 * bound)}% ({n_rare:,} fresh ones); labels are wrong at random in "
                f"{noise[0]:.2%} of the inputs, on the rare side in {noise[1]:.2%}, and those "
                "count as others here"
            ),
            passed=(
                bound - noise[1] <= MOST_WRONG and not are_other_labels(X, fires, borders, noise)
            ),
        )
    rare = fires | predicted
    n_wrong = int((predicted != fires).sum())
    bound = upper_bound(n_wrong, int(rare.sum()), CONFIDENCE)
    return replace(
        plain,
        statement=(
            f"{plain.statement}; of those on the rare side less than {at_most(100 * bound)}% "
            f"({int(rare.sum()):,} fresh ones)"
        ),
        passed=plain.passed and bound <= MOST_WRONG,
    )


def are_other_labels(
    X: FloatArray, fires: BoolArray, borders: FiringBorders, noise: Noise | None = None
) -> bool:
    """Whether labels differ from a prediction more than errors and wrong labels explain."""
    bad, predicted = borders.contradicted(X, fires), borders.predict(X)
    if noise is None:
        return bool(bad.any())
    # A binomial test on each side.
    return any(
        float(bdtrc(int((bad & side).sum()) - 1, int(side.sum()), rate)) < 0.5 * FALSE_ALARM
        for side, rate in zip((~predicted, predicted), noise, strict=True)
        if (bad & side).any()
    )


def _compared(X: FloatArray, fires: BoolArray, borders: FiringBorders, whose: str) -> Certificate:
    n = len(X)
    n_wrong = int((borders.predict(X) != fires).sum())
    n_bad = int(borders.contradicted(X, fires).sum())
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
            f"at {CONFIDENCE:.0%} confidence less than {at_most(100 * bound)}% of {whose} get "
            f"another label ({n:,} fresh ones, {n_wrong:,} of which did{beyond})"
        ),
        passed=n > 0 and n_bad == 0,
    )
