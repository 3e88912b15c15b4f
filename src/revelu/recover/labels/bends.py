"""Bends: where facets end at the hyperplane of a neuron, and the facets behind.

A walk follows a facet's plane until labels speak against it.  Behind, the border goes on in
another facet.  As a neuron changes its state there, the difference of two outputs changes by a
multiple of its affine map v:

    F'  =  λ (F + τ v),

so v lies in the span of both planes, whatever else the network is.  Where v is known, one height
behind the bend is τ, and the facet there costs no more.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.bisection import bisect
from revelu.recover.labels.facets import Facets, Precision, are_flat, measure_facets
from revelu.recover.labels.heights import Ask, heights
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Walks:
    """How far facets go along directions.

    Attributes
    ----------
    facets : Facets
        One for each walk.
    U : ndarray, shape (n, d)
        Unit vectors inside their planes.
    then : ndarray, shape (n, d)
        Where to go behind a known neuron's bend; NaN for anywhere.
    good, bad : ndarray, shape (n,)
        Where along them labels agree with the plane last, and disagree first; infinite where no
        end was met.
    """

    facets: Facets
    U: FloatArray
    then: FloatArray
    good: FloatArray
    bad: FloatArray

    def take(self, rows: IntArray | BoolArray) -> "Walks":
        """Some of them."""
        return Walks(
            self.facets.take(rows),
            self.U[rows],
            self.then[rows],
            self.good[rows],
            self.bad[rows],
        )

    def join(self, other: "Walks") -> "Walks":
        """These, then the others."""
        return Walks(
            self.facets.join(other.facets),
            np.vstack([self.U, other.U]),
            np.vstack([self.then, other.then]),
            np.append(self.good, other.good),
            np.append(self.bad, other.bad),
        )


@dataclass(frozen=True)
class Pace:
    """How walks go.

    Attributes
    ----------
    n_steps : int
        Places looked at first,
    stride : float
        each so many times as far as the one before.
    room : float
        Labels are looked at so many errors of the plane off it.
    step : float
        How far behind a bend the next facet is measured, relative to the place.
    bracket : float
        How precisely the bend is found first, in such steps.
    inner : float
        The step beside a point behind a bend, in such steps.
    n_slopes : int
        Slopes that tell which bend seen before has the same neuron: two are unknown.
    worst : float
        A facet known less precisely, in radians, is measured, not predicted.
    """

    n_steps: int = 8
    stride: float = 8.0
    room: float = 4.0
    step: float = 4e-3
    bracket: float = 0.05
    inner: float = 0.1
    n_slopes: int = 4
    worst: float = 1e-5


def walk(
    ask: Ask,
    facets: Facets,
    U: FloatArray,
    then: FloatArray,
    precision: Precision,
    pace: Pace,
) -> Walks:
    """Follow facets along directions until they end.

    Parameters
    ----------
    U : ndarray, shape (n, d)
        Unit vectors, each inside the plane of its facet.
    then : ndarray, shape (n, d)
        As of :class:`Walks`.
    """
    n, d = U.shape

    def holds(rows: IntArray, t: FloatArray) -> BoolArray:
        some = facets.take(rows)
        X = some.X + t[:, None] * U[rows]
        off = precision.flat * precision.atol(X) + pace.room * (some.off + some.err * t)
        step = off[:, None] * some.N
        before, behind = ask(np.concatenate([X - step, X + step])).reshape(2, -1)
        return np.asarray((before == some.a) & (behind == some.b))

    times = facets.h[:, None] * pace.stride ** np.arange(pace.n_steps)
    rows = np.repeat(np.arange(n), pace.n_steps)
    held = holds(rows, times.ravel()).reshape(n, pace.n_steps)
    first = np.where(held.all(axis=1), pace.n_steps, (~held).argmax(axis=1))
    padded = np.column_stack([np.zeros(n), times, np.full(n, np.inf)])
    good, bad = padded[np.arange(n), first], padded[np.arange(n), first + 1]
    open_ = np.flatnonzero(np.isfinite(bad))
    lo, hi = good[open_], bad[open_]
    width = pace.bracket * step_lengths(facets.X[open_] + hi[:, None] * U[open_], pace)
    middle = bisect(lambda r, t: holds(open_[r], t), lo, hi, width)
    good[open_], bad[open_] = middle - width / 2.0, middle + width / 2.0
    return Walks(facets, U, then, good, bad)


def step_lengths(X: FloatArray, pace: Pace) -> FloatArray:
    """How far to step behind bends at ``X (n, d)``, (n,)."""
    return np.asarray(pace.step * np.maximum(np.sqrt((X**2).mean(axis=1)), 1.0))


@dataclass(frozen=True, eq=False)
class Bends:
    """Bends of borders, struct of arrays.

    Attributes
    ----------
    before, behind : Facets
    X : ndarray, shape (n, d)
        Where the walk met the bend.
    """

    before: Facets
    behind: Facets
    X: FloatArray

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: IntArray | BoolArray) -> "Bends":
        """Some of them."""
        return Bends(self.before.take(rows), self.behind.take(rows), self.X[rows])

    def join(self, other: "Bends") -> "Bends":
        """These, then the others."""
        return Bends(
            self.before.join(other.before),
            self.behind.join(other.behind),
            np.vstack([self.X, other.X]),
        )


def planes_of(bends: Bends) -> tuple[FloatArray, FloatArray]:
    """Orthonormal bases (n, 2, d + 1) of what the planes of bends span, and their errors (n,)."""
    F = bends.before.F / np.linalg.norm(bends.before.F, axis=1)[:, None]
    G = bends.behind.F / np.linalg.norm(bends.behind.F, axis=1)[:, None]
    for _ in range(2):  # what rounding has left of F is taken out
        G = G - (G * F).sum(axis=1)[:, None] * F
        if _ == 0:
            angle = np.linalg.norm(G, axis=1)
        G = G / np.linalg.norm(G, axis=1)[:, None]
    return np.stack([F, G], axis=1), (bends.before.err + bends.behind.err) / angle


def step_behind(
    ask: Ask, walks: Walks, precision: Precision, pace: Pace
) -> tuple[FloatArray, FloatArray]:
    """Find borders behind the ends of walks: points (n, d), NaN where there is none, and steps."""
    ends = walks.facets.X + walks.bad[:, None] * walks.U
    s = step_lengths(ends, pace)
    Y = ends + s[:, None] * walks.U
    N = walks.facets.N
    atol = precision.atol(Y)
    tau = heights(ask, Y, N, walks.facets.a, s / 2.0, atol)
    found = np.flatnonzero(np.isfinite(tau))
    above = Y[found] + (tau[found] + precision.flat * atol[found])[:, None] * N[found]
    # Where a third class begins, the facet ends for another reason.
    tau[found[ask(above) != walks.facets.b[found]]] = np.nan
    return Y + tau[:, None] * N, s


def meeting(walks: Walks, V: FloatArray, s: FloatArray) -> IntArray:
    """Which of hyperplanes ``V (m, d + 1)`` walks meet where they end, (n,); -1 for none."""
    d = walks.U.shape[1]
    slope = walks.U @ V[:, :d].T
    with np.errstate(divide="ignore", invalid="ignore"):
        t = -(walks.facets.X @ V[:, :d].T + V[:, d]) / slope
    off = np.abs(t - (walks.good + walks.bad)[:, None] / 2.0)
    off = np.where(np.isnan(off), np.inf, off)
    nearest = off.argmin(axis=1)
    return np.where(off.min(axis=1) < s / 2.0, nearest, -1)


def n_passed(walks: Walks, V: FloatArray, pace: Pace) -> int:
    """How often walks pass hyperplanes ``V (m, d + 1)`` without a bend there."""
    d = walks.U.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = -(walks.facets.X @ V[:, :d].T + V[:, d]) / (walks.U @ V[:, :d].T)
    s = step_lengths(walks.facets.X, pace)[:, None]
    return int(((t > s) & (t < walks.good[:, None] - s)).sum())


def cross_known(
    ask: Ask,
    walks: Walks,
    Y: FloatArray,
    V: FloatArray,
    v_err: FloatArray,
    s: FloatArray,
    precision: Precision,
    pace: Pace,
    rng: np.random.Generator,
) -> tuple[Facets, BoolArray]:
    """Predict facets behind bends of known neurons from one point, and see whether they are.

    Parameters
    ----------
    Y : ndarray, shape (n, d)
        Points of the borders behind.
    V, v_err : ndarray, shape (n, d + 1) and (n,)
        The neurons' affine maps, and about how far off they are.
    """
    d = Y.shape[1]
    N, v = walks.facets.N, V[:, :d]
    # On the far side of the hyperplane, whatever the angle at which the walk has met it.
    h, atol = np.minimum(pace.inner * s, np.abs(_at(V, Y)) / 2.0), precision.atol(Y)
    # Offsets are off by what errors of normals make far from where they were measured; the slope
    # of the border behind is not:  k = -<n', u> / <n', n>  for  n' = n + τ v.
    k = heights(ask, Y + h[:, None] * walks.U, N, walks.facets.a, 2.0 * h, atol) / h
    with np.errstate(divide="ignore", invalid="ignore"):
        tau = -k / ((v * walks.U).sum(axis=1) + k * (v * N).sum(axis=1))
    tau[~np.isfinite(tau)] = np.nan
    G = N + tau[:, None] * v
    length = np.linalg.norm(G, axis=1)
    own = atol / h / np.abs((v * walks.U).sum(axis=1))
    err = (walks.facets.err + np.abs(tau) * v_err + own) / length
    G = G / length[:, None]
    facets = Facets(
        Y,
        np.column_stack([G, -(G * Y).sum(axis=1)]),
        walks.facets.a,
        walks.facets.b,
        h,
        err,
        atol,
    )
    off = precision.flat * precision.atol(Y) + pace.room * err * h
    good = (err < pace.worst) & are_flat(ask, facets, off, precision.n_tests, rng)
    return facets, good


def cross_seen(
    ask: Ask,
    walks: Walks,
    Y: FloatArray,
    s: FloatArray,
    seen: Bends,
    precision: Precision,
    pace: Pace,
    rng: np.random.Generator,
) -> tuple[Bends, IntArray]:
    """Predict facets behind bends from a few slopes, where bends seen before have their neurons.

    The neuron's normal is ``x n + y n'``, with the normals n and n' of the facets at the bend
    seen before: along a line w that follows the border behind,

        <m, w> + x <n, w> + y <n', w> = 0,

    where m is the normal before.  Slopes along lines beyond two say whether it is that neuron.

    Returns
    -------
    bends : Bends
    rows : ndarray of int
        Of the walks that they end.
    """
    n, d = Y.shape
    none = Bends(walks.facets, walks.facets, Y).take(np.empty(0, np.intp)), np.empty(0, np.intp)
    if not n or not len(seen):
        return none
    h, atol, N = pace.inner * s, precision.atol(Y), walks.facets.N
    T = rng.standard_normal((n, pace.n_slopes, d))
    T -= (T * N[:, None]).sum(axis=2)[:, :, None] * N[:, None]
    T /= np.linalg.norm(T, axis=2)[:, :, None]
    times = pace.n_slopes
    t = heights(
        ask,
        (Y[:, None] + h[:, None, None] * T).reshape(-1, d),
        np.repeat(N, times, axis=0),
        np.repeat(walks.facets.a, times),
        np.repeat(2.0 * h, times),
        np.repeat(atol, times),
    ).reshape(n, times)
    lines = T + (t / h[:, None])[:, :, None] * N[:, None]
    chosen, maps, errs = _same_neurons(walks, lines, atol / h, *planes_of(seen))
    G = N + maps[:, :d]
    length = np.maximum(np.linalg.norm(G, axis=1), np.finfo(np.float64).tiny)
    G, err = G / length[:, None], (walks.facets.err + errs) / length
    F = np.column_stack([G, -(G * Y).sum(axis=1)])
    facets = Facets(Y, F, walks.facets.a, walks.facets.b, h, err, atol)
    off = precision.flat * atol + pace.room * err * h
    rows = np.flatnonzero(chosen & (err < pace.worst))
    rows = rows[are_flat(ask, facets.take(rows), off[rows], precision.n_tests, rng)]
    middle = (walks.good + walks.bad)[rows] / 2.0
    X = walks.facets.X[rows] + middle[:, None] * walks.U[rows]
    return Bends(walks.facets.take(rows), facets.take(rows), X), rows


def _same_neurons(
    walks: Walks, lines: FloatArray, slope_err: FloatArray, pairs: FloatArray, pair_errs: FloatArray
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Which walks end at a neuron seen before, what it adds to their normals, and its error."""
    n, d1 = len(lines), pairs.shape[2]
    ends = walks.facets.X + ((walks.good + walks.bad) / 2.0)[:, None] * walks.U
    width = walks.bad - walks.good
    chosen, maps, errs = np.zeros(n, bool), np.zeros((n, d1)), np.full(n, np.inf)
    for i in range(n):
        if not np.isfinite(lines[i]).all():
            continue
        right = -lines[i] @ walks.facets.N[i]
        for pair, pair_err in zip(pairs, pair_errs, strict=True):
            left = lines[i] @ pair[:, : d1 - 1].T
            xy, _, rank, sizes = np.linalg.lstsq(left, right, rcond=None)
            if rank < 2:
                continue
            found = xy @ pair
            own = slope_err[i] + pair_err * np.abs(xy).sum()
            rest = np.linalg.norm(left @ xy - right)
            at = abs(found[:-1] @ ends[i] + found[-1])
            near = 4.0 * width[i] * np.linalg.norm(found[:-1])
            if rest < 16.0 * own and at < near and own / sizes[-1] < errs[i]:
                chosen[i], maps[i], errs[i] = True, found, own / sizes[-1]
    return chosen, maps, errs


def measure_behind(
    ask: Ask,
    walks: Walks,
    Y: FloatArray,
    s: FloatArray,
    precision: Precision,
    pace: Pace,
    rng: np.random.Generator,
) -> tuple[Bends, IntArray]:
    """Measure the facets behind bends, and keep those that meet the facet before where it ends."""
    near = walks.facets
    behind, rows = measure_facets(
        ask, Y, near.N, near.a, near.b, pace.inner * s, precision, rng
    )
    walks, s = walks.take(rows), s[rows]
    d = Y.shape[1]
    slope = (behind.N * walks.U).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = -_at(behind.F, walks.facets.X) / slope
        apart = walks.facets.off + walks.facets.err * walks.bad + behind.err * s * 2.0
        slack = (precision.flat * precision.atol(Y[rows]) + pace.room * apart) / np.abs(slope)
    met = (t > walks.good - slack) & (t < walks.bad + slack) & (slack < s)
    X = walks.facets.X + t[:, None] * walks.U
    bends = Bends(walks.facets, behind, X)
    return bends.take(met), rows[met]


def _at(F: FloatArray, X: FloatArray) -> FloatArray:
    """Values of affine maps ``F (n, d + 1)`` at points ``X (n, d)``, (n,)."""
    return np.asarray((F[:, :-1] * X).sum(axis=1) + F[:, -1])
