"""All halfspaces that agree with labels: their mean, and how far they are apart.

Labels without noise leave a polytope of ``(w, t)``.  A walk inside it (hit and run; Smith,
1984) gives its mean, which errs least on average, and its spread, which is the error.  Where
labels may be wrong every label that a halfspace contradicts costs likelihood: the walk is among
the cells between all labels then, each visited as often as it is likely.

Near the truth a shift of the border shifts what labels say of it, and nothing else: so the share
of the walk within some distance of its mean is the confidence that the truth is (Pitman, 1939).
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from revelu.numerics.confidence import CONFIDENCE
from revelu.numerics.float64 import TINY
from revelu.recover.rare.units import Units
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class HitAndRun:
    """A walk in a polytope ``rows @ p + gaps >= 0``; directions follow the spread seen so far."""

    steps: int = 100
    """For each dimension squared: a walk of d^2 steps forgets where it began."""
    soft_steps: int = 160
    """The same among wrong labels, where a walk climbs from cell to cell: measured for six inputs
    and 5% of wrong labels, bounds hold as often as they say from here on."""
    most_operations: float = 3e9
    """Multiplications at most, some seconds; fewer steps are taken where rows are many."""
    fewest_steps: int = 10
    """For each dimension, whatever they cost."""
    warm_up: float = 0.25
    """Share of the steps that only learn the polytope's shape."""

    def points(
        self,
        rows: FloatArray,
        gaps: FloatArray,
        start: FloatArray,
        rng: np.random.Generator,
        costs: FloatArray | None = None,
    ) -> FloatArray:
        """Points of the polytope from one inside, (m, d).

        Parameters
        ----------
        costs : ndarray, shape (c,), optional
            Log-likelihood that each of the first c inequalities costs where it does not hold;
            the others, or all, hold everywhere.
        """
        n_soft = 0 if costs is None else len(costs)
        d = len(start)
        # Among wrong labels a step sorts them, too, which costs as much as four of its products.
        steps, work = (self.steps, 1) if costs is None else (self.soft_steps, 5)
        affordable = int(self.most_operations / (work * rows.size))
        n_steps = max(min(steps * d * d, affordable), self.fewest_steps * d)
        n_warm = int(self.warm_up * n_steps)
        points = np.empty((n_steps, d))
        shape, p, depth = np.eye(d), start, rows @ start + gaps
        directions = rng.standard_normal((n_steps, d))
        shares = rng.random(n_steps)
        for i in range(n_steps):
            if i in (n_warm // 4, n_warm):
                seen = points[i // 4 : i]
                scale = np.cov(seen.T) + np.eye(d) * TINY
                # A thousandth of the mean variance on top: no direction is given up.
                shape = np.linalg.cholesky(scale + 1e-3 * np.trace(scale) / d * np.eye(d))
                depth = rows @ p + gaps
            v = shape @ directions[i]
            slope = rows @ v
            with np.errstate(divide="ignore"):
                reach = -depth / slope
            firm, slopes = reach[n_soft:], slope[n_soft:]
            lo = np.max(firm, where=slopes > 0, initial=-np.inf)
            hi = np.min(firm, where=slopes < 0, initial=np.inf)
            if costs is None:
                step = lo + shares[i] * (hi - lo)
            else:
                gains = np.copysign(costs, slope[:n_soft])
                step = _drawn(reach[:n_soft], gains, lo, hi, float(shares[i]))
            p, depth = p + step * v, depth + step * slope
            points[i] = p
        return points[n_warm:]


def version_space(
    X: FloatArray,
    inside: BoolArray,
    w: FloatArray,
    t: float,
    rng: np.random.Generator,
    *,
    walk: HitAndRun | None = None,
    costs: FloatArray | None = None,
    box: float = 1.0,
    nearest: int = 60,
    most_nearest: int = 4000,
    rounds: int = 12,
) -> Units:
    """Walk among the halfspaces that agree with labels.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    inside : ndarray of bool, shape (n,)
    w, t : ndarray, shape (d,), and float
        Near one of them, ``|w| = 1``.
    costs : ndarray, shape (n,), optional
        Log-likelihood that each label costs where a halfspace contradicts it; infinite, if left
        out.
    box : float
        What the normal and the threshold may differ from the start by, in each coordinate:
        where labels bound nothing, the error is 1 and not infinite.
    nearest, most_nearest : int
        Samples that the walk respects, for each dimension and at most: those nearest to the
        start's border.  The rest is checked afterwards, and what the mean breaks is respected
        in the next round.
    rounds : int
        Rounds at most.

    Returns
    -------
    Units
        The mean; its errors are the root mean square deviations of the walk's halfspaces from
        it, its bounds what 95% of them are within, and what the walk is off by.  Where no
        halfspace near the start agrees with labels of infinite cost, the start, with infinite
        errors.
    """
    d = X.shape[1]
    # Coordinates: w + U' a, t + s; the row's norm is put right at the end.
    U = np.linalg.svd(w[None], full_matrices=True)[2][1:]
    side = np.where(inside, 1.0, -1.0)
    rows = side[:, None] * np.column_stack([X @ U.T, -np.ones(len(X))])
    lengths = np.linalg.norm(rows, axis=1)
    gaps = side * (X @ w - t)
    rows, gaps = rows / lengths[:, None], gaps / lengths
    rows = np.vstack([rows, np.eye(d), -np.eye(d)])
    gaps = np.append(gaps, np.full(2 * d, box))
    near = np.argsort(np.abs(gaps))[: min(nearest * d, most_nearest)]
    near = np.union1d(near, np.arange(len(X), len(gaps)))
    if costs is not None:
        points = _among_wrong_labels(rows, gaps, costs, near, rng, walk or HitAndRun())
        return _mean(points, w, t, U)
    for _ in range(rounds):
        near = np.union1d(near, np.flatnonzero(gaps < 0))
        centre = _deepest(rows[near], gaps[near])
        if centre is None:
            break
        points = (walk or HitAndRun()).points(rows[near], gaps[near], centre, rng)
        p = points.mean(axis=0)
        broken = np.flatnonzero(rows @ p + gaps < 0)
        if not len(broken):
            break
        near = np.union1d(near, broken)
    if centre is None or len(broken):
        return Units.one(w, t, np.inf, np.inf)
    return _mean(points, w, t, U)


def _among_wrong_labels(
    rows: FloatArray,
    gaps: FloatArray,
    costs: FloatArray,
    near: IntArray,
    rng: np.random.Generator,
    walk: HitAndRun,
    rounds: int = 4,
) -> FloatArray:
    """Points of a walk from the start, among labels near enough for it to reach, (m, d)."""
    n, d = len(costs), rows.shape[1]
    size = len(near)
    for _ in range(rounds):
        # Labels first, then the box.
        soft = near[near < n]
        order = np.append(soft, np.arange(n, len(gaps)))
        points = walk.points(rows[order], gaps[order], np.zeros(d), rng, costs[soft])
        if len(soft) == n:
            break
        # The farthest place that the walk takes a border to, beside the farthest label.
        moved = float(np.quantile(np.abs(points @ rows[soft].T), 0.999))
        within = np.flatnonzero(np.abs(gaps[:n]) <= 1.5 * moved)
        if np.abs(gaps[soft]).max() >= moved:
            break
        size = max(2 * size, len(within))
        near = np.argsort(np.abs(gaps[:n]))[:size]
    return points


def _mean(points: FloatArray, w: FloatArray, t: float, U: FloatArray) -> Units:
    """The mean of a walk in coordinates ``w + U' a, t + s``, and how far from it the walk is."""
    p = points.mean(axis=0)
    mean = w + U.T @ p[:-1]
    norm = float(np.linalg.norm(mean))
    # The means of ten stretches of the walk tell how far its own mean is off.
    means = [part.mean(axis=0) for part in np.array_split(points, 10)]
    own = np.std(means, axis=0) / np.sqrt(len(means))
    spread = np.hypot(points.std(axis=0), own)
    angle = float(np.sqrt(np.sum(spread[:-1] ** 2)))
    off = np.abs(points - p)
    lengths = np.linalg.norm(off[:, :-1], axis=1)
    bounds = (
        float(np.hypot(np.quantile(lengths, CONFIDENCE), np.linalg.norm(own[:-1]))),
        float(np.hypot(np.quantile(off[:, -1], CONFIDENCE), own[-1])),
    )
    return Units.one(mean / norm, (t + p[-1]) / norm, angle, float(spread[-1]), bounds)


def _drawn(reach: FloatArray, gains: FloatArray, lo: float, hi: float, share: float) -> float:
    """A place of a line between two ends, as likely as labels are there.

    Parameters
    ----------
    reach, gains : ndarray, shape (m,)
        Where the line crosses what a label says, and the log-likelihood that is gained there.
    share : float
        Of the likelihood below the place.
    """
    inner = np.flatnonzero((reach > lo) & (reach < hi))
    order = inner[np.argsort(reach[inner])]
    ends = np.concatenate([[lo], reach[order], [hi]])
    heights = np.append(0.0, np.cumsum(gains[order]))
    weights = np.diff(ends) * np.exp(heights - heights.max())
    below = np.cumsum(weights)
    i = min(int(np.searchsorted(below, share * below[-1])), len(weights) - 1)
    left = share * below[-1] - (below[i] - weights[i])
    return float(ends[i] + left * (ends[i + 1] - ends[i]) / max(weights[i], TINY))


def _deepest(rows: FloatArray, gaps: FloatArray) -> FloatArray | None:
    """The centre of the largest ball; None where the constraints contradict each other."""
    m, d = rows.shape
    # Units of a typical gap, for the solver's own tolerances.
    unit = max(float(np.median(np.abs(gaps))), TINY)
    bounds = [(None, None)] * d + [(0.0, None)]
    A = np.column_stack([-rows, np.ones(m)])
    best = linprog(np.append(np.zeros(d), -1.0), A, gaps / unit, bounds=bounds, method="highs")
    if best.status != 0 or best.x[-1] <= 0:
        return None
    return np.asarray(best.x[:-1] * unit)
