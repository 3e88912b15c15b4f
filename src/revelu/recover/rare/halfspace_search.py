"""One more halfspace among labels that the others do not explain, however many of them are wrong.

Directions are tried: those of samples labelled inside, of known units and away from them, of the
mean.  Beyond a threshold along the right one labels inside are more frequent than wrong ones are.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from revelu.recover.rare.label_noise import LabelNoise, least_evidence
from revelu.recover.rare.union_fit import fit_union
from revelu.recover.rare.units import Units
from revelu.types import BoolArray, FloatArray


def find_halfspace(
    X: FloatArray,
    fires: BoolArray,
    known: Units,
    noise: LabelNoise,
    *,
    n_tried: int = 200,
    n_fitted: int = 3,
    n_turns: int = 5,
    most: int = 200_000,
) -> Units | None:
    """Find the halfspace with the most evidence, if chance does not explain that.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Samples outside of all known units.
    fires : ndarray of bool, shape (n,)
    known : Units
    noise : LabelNoise
    n_tried : int
        Samples labelled inside whose directions are tried, the farthest ones.
    n_fitted : int
        Directions that are fitted, the best ones.
    n_turns : int
        Times that a direction is turned to the mean of what it holds.
    most : int
        Samples that directions are tried on.

    Returns
    -------
    Units or None
    """
    n, d = X.shape
    needed = least_evidence(n, d)
    few, few_fire = X[:most], fires[:most]
    if not few_fire.any() or int(fires.sum()) * noise.gains(np.array([True]))[0] < needed:
        return None
    starts = _directions(few[few_fire], known, n_tried)
    tried = sorted((_scan(few, few_fire, w) for w in starts), key=lambda start: -start.height)
    best: tuple[float, Units] | None = None
    for start in tried[:n_fitted]:
        found = _turned(few, few_fire, start, n_turns)
        W, t = fit_union(X, fires, found.w[None], np.array([found.threshold]), noise=noise)
        evidence = float(noise.gains(fires[X @ W[0] >= t[0]]).sum())
        if evidence >= needed and (best is None or evidence > best[0]):
            best = evidence, Units.one(W[0], float(t[0]), np.inf, np.inf)
    return None if best is None else best[1]


def _directions(X: FloatArray, known: Units, n: int) -> FloatArray:
    """Rows of norm 1 to try, from samples labelled inside."""
    lengths = np.linalg.norm(X, axis=1)
    far = X[np.argsort(-lengths)[:n]]
    U = np.linalg.eigh(X.T @ X)[1]
    rows = np.vstack([X.mean(axis=0), far, U.T, -U.T, known.directions, -known.directions])
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@dataclass(frozen=True)
class _Tail:
    """A direction, where its tail begins, and how much labels inside stand out there."""

    w: FloatArray
    threshold: float
    height: float


def _turned(X: FloatArray, fires: BoolArray, start: _Tail, n_turns: int) -> _Tail:
    """Turn a direction to the mean of the labels inside that it holds, as long as that helps."""
    best = start
    for _ in range(n_turns):
        held = X[fires & (X @ best.w >= best.threshold)]
        mean = held.mean(axis=0)
        turned = _scan(X, fires, mean / np.linalg.norm(mean))
        if turned.height <= best.height:
            break
        best = turned
    return best


def _scan(X: FloatArray, fires: BoolArray, w: FloatArray) -> _Tail:
    """The tail along a direction in which labels inside stand out most.

    By the likelihood ratio of two rates, beyond and below, against a single one.
    """
    along = X @ w
    ones = np.sort(along[fires])[::-1]
    ranked = np.sort(along)
    m = np.arange(1.0, len(ones) + 1.0)
    held = len(X) - np.searchsorted(ranked, ones, side="left")
    total, n = float(len(ones)), float(len(X))
    rate, beyond = total / n, m / held
    rest = n - held
    below = (total - m) / np.maximum(rest, 1.0)
    ratio = (
        xlogy(m, beyond)
        + xlogy(held - m, 1.0 - beyond)
        + xlogy(total - m, below)
        + xlogy(rest - total + m, 1.0 - below)
        - (xlogy(total, rate) + xlogy(n - total, 1.0 - rate))
    )
    ratio = np.where(beyond > rate, ratio, 0.0)
    best = int(ratio.argmax())
    return _Tail(w, float(ones[best]), float(ratio[best]))
