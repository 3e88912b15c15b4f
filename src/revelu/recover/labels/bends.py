"""Bends: where facets end at the hyperplane of a neuron, and the facets behind.

A walk follows a facet's plane until labels speak against it.  Behind, the border goes on in
another facet.  As a neuron changes its state there, the difference of two outputs changes by a
multiple of its affine map v:

    F'  =  λ (F + τ v),

so v lies in the span of both planes, whatever else the network is.  Where v is known, one height
behind the bend is τ, and the facet there costs no more.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.bisection import bisect
from revelu.numerics.records import Records
from revelu.recover.labels.facets import Facets, Precision, are_flat, measure_facets
from revelu.recover.labels.heights import Ask, are_between, heights
from revelu.recover.labels.told import Told
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Walks(Records):
    """How far facets go along directions."""

    facets: Facets
    """One for each walk."""
    U: FloatArray
    """Shape (n, d).  Unit vectors inside their planes."""
    then: FloatArray
    """Shape (n, d).  Where to go behind a known neuron's bend; NaN for anywhere."""
    good: FloatArray
    bad: FloatArray
    """Shape (n,).  Where along them labels agree with the plane last, and disagree first;
    infinite where no end was met."""


@dataclass(frozen=True)
class WalkPace:
    """How walks go."""

    n_steps: int = 8
    """Places looked at first,"""
    stride: float = 8.0
    """each ``stride`` times as far as the one before."""
    room: float = 4.0
    """Labels are looked at ``room`` errors of the plane off it."""
    step: float = 4e-3
    """How far behind a bend the next facet is measured, relative to the place."""
    bracket: float = 0.05
    """How precisely the bend is found first, in such steps."""
    away: float = 0.1
    """How far from where the walk came from to look for the border behind, in radians."""
    inner: float = 0.1
    """The step beside a point behind a bend, in such steps."""
    n_slopes: int = 4
    """Slopes that tell which bend seen before has the same neuron: two are unknown."""
    worst: float = 1e-5
    """A facet known less precisely, in radians, is measured, not predicted."""
    slightest: float = np.inf
    """A hyperplane counts as passed where a bend by this slope would have been seen."""
    coarse: tuple[float, float] = (3.0, 0.5)
    """Stride, and the step beside a point behind a bend, where labels tell few digits."""

    def at(self, told: Told) -> "WalkPace":
        """Return what serves where labels tell few digits: longer steps.

        Facets that are predicted inherit the errors of rows, some times over behind several
        bends, and serve as long as walks on them see bends that tell a neuron.  Walks see bends
        ``room`` times as large as the normal's error at least, where they go on as far behind
        them as they came, and near their ends some times that.
        """
        if told.step <= self.step:
            return self
        stride, inner = self.coarse
        return replace(
            self,
            step=told.step,
            inner=inner,
            stride=stride,
            worst=max(self.worst, min(64.0 * told.rows, told.bend / 10.0)),
            slightest=8.0 * self.room * told.normals,
        )


def walk(
    ask: Ask,
    facets: Facets,
    U: FloatArray,
    then: FloatArray,
    precision: Precision,
    pace: WalkPace,
) -> Walks:
    """Follow facets along directions until they end.

    Parameters
    ----------
    U : ndarray, shape (n, d)
        Unit vectors, each inside the plane of its facet.
    then : ndarray, shape (n, d)
        As of :class:`Walks`.
    """
    n = len(U)

    def holds(rows: IntArray, t: FloatArray) -> BoolArray:
        some = facets.take(rows)
        X = some.X + t[:, None] * U[rows]
        off = precision.flat * precision.atol(X) + pace.room * (some.off + some.err * t)
        step = off[:, None] * some.N
        return are_between(ask, X, step, some.a, some.b)

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


def step_lengths(X: FloatArray, pace: WalkPace) -> FloatArray:
    """How far to step behind bends at ``X (n, d)``, (n,)."""
    return np.asarray(pace.step * np.maximum(np.sqrt((X**2).mean(axis=1)), 1.0))


@dataclass(frozen=True, eq=False)
class Bends(Records):
    """Bends of borders, struct of arrays."""

    before: Facets
    behind: Facets
    X: FloatArray
    """Shape (n, d).  Where the walk met the bend."""


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


@dataclass(frozen=True, eq=False)
class Ends(Records):
    """Walks that have ended, and the borders behind."""

    walks: Walks
    Y: FloatArray
    """Shape (n, d).  Points of the borders behind."""
    R: FloatArray
    E: FloatArray
    """Shape (n, d).  Unit vectors from the end to there, and across the border."""
    s: FloatArray
    """Shape (n,).  How far behind the ends they are."""


def step_behind(ask: Ask, walks: Walks, precision: Precision, pace: WalkPace) -> Ends:
    """Find where borders go on behind the ends of walks.

    On a circle around an end, in the plane of the walk and the normal, the border leaves at
    one place and the facet came from the opposite one, however sharp the bend is.
    """
    n = len(walks.U)
    middle = (walks.good + walks.bad) / 2.0
    X = walks.facets.X + middle[:, None] * walks.U
    s, N, facets = step_lengths(X, pace), walks.facets.N, walks.facets
    atol = precision.atol(X)

    def rays(rows: IntArray, angle: FloatArray) -> FloatArray:
        c, t = np.cos(angle)[:, None], np.sin(angle)[:, None]
        return np.asarray(c * walks.U[rows] + t * N[rows])

    def is_inside(rows: IntArray, angle: FloatArray) -> BoolArray:
        return np.asarray(ask(X[rows] + s[rows, None] * rays(rows, angle)) == facets.a[rows])

    every, wide = np.arange(n), np.full(n, np.pi - pace.away)
    angle = bisect(is_inside, -wide, wide, atol / s)
    R, E = rays(every, angle), rays(every, angle + np.pi / 2.0)
    ends = Ends(walks, X + s[:, None] * R, R, E, s)
    # Where a third class begins, the facet ends for another reason.
    off = (precision.flat * atol)[:, None] * E
    return ends.take(are_between(ask, ends.Y, off, facets.a, facets.b))


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


def n_passed(walks: Walks, V: FloatArray, pace: WalkPace) -> IntArray:
    """How often walks pass each of hyperplanes ``V (m, d + 1)`` without a bend there, (m,)."""
    d, facets = walks.U.shape[1], walks.facets
    with np.errstate(divide="ignore", invalid="ignore"):
        t = -(facets.X @ V[:, :d].T + V[:, d]) / (walks.U @ V[:, :d].T)
    s, good = step_lengths(facets.X, pace)[:, None], walks.good[:, None]
    unseen = pace.room * (facets.off + facets.err * walks.good)[:, None]
    with np.errstate(invalid="ignore"):
        is_seen = unseen < pace.slightest * (good - t)
    return np.asarray(((t > s) & (t < good - s) & is_seen).sum(axis=0))


def cross_known(
    ask: Ask,
    ends: Ends,
    V: FloatArray,
    v_err: FloatArray,
    precision: Precision,
    pace: WalkPace,
    rng: np.random.Generator,
) -> tuple[Facets, BoolArray]:
    """Predict facets behind bends of known neurons from one slope, and see whether they are.

    Parameters
    ----------
    V, v_err : ndarray, shape (n, d + 1) and (n,)
        The neurons' affine maps, and about how far off they are.
    """
    walks, Y, E = ends.walks, ends.Y, ends.E
    N, v = walks.facets.N, V[:, :-1]
    # On the far side of the hyperplane, whatever the angle at which the walk has met it.
    h, atol = np.minimum(pace.inner * ends.s, np.abs(_at(V, Y)) / 2.0), precision.atol(Y)
    h = np.maximum(h, atol)
    # Offsets are off by what errors of normals make far from where they were measured; a line w
    # along the border behind is not:  <n + τ v, w> = 0.
    k = heights(ask, Y + h[:, None] * ends.R, E, walks.facets.a, 2.0 * h, atol) / h
    w = ends.R + k[:, None] * E
    steep = (v * w).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        tau = -(N * w).sum(axis=1) / steep
        own = atol / h / np.abs(steep)
    tau[~np.isfinite(tau)] = np.nan
    err = walks.facets.err + np.abs(tau) * v_err + own
    facets = _facets_behind(ends, N + tau[:, None] * v, err, h, atol)
    off = precision.flat * atol + pace.room * facets.err * h
    good = (facets.err < pace.worst) & are_flat(ask, facets, off, precision.n_tests, rng)
    return facets, good


def _facets_behind(
    ends: Ends, G: FloatArray, err: FloatArray, h: FloatArray, atol: FloatArray
) -> Facets:
    """Facets behind ends, of normals ``G (n, d)`` that need not have norm 1."""
    length = np.maximum(np.linalg.norm(G, axis=1), np.finfo(np.float64).tiny)
    G = G / length[:, None]
    F = np.column_stack([G, -(G * ends.Y).sum(axis=1)])
    before = ends.walks.facets
    return Facets(ends.Y, F, before.a, before.b, h, err / length, atol)


def cross_seen(
    ask: Ask,
    ends: Ends,
    seen: Bends,
    precision: Precision,
    pace: WalkPace,
    rng: np.random.Generator,
) -> tuple[Bends, IntArray]:
    """Predict facets behind bends from a few slopes, where bends seen before have their neurons.

    The neuron's normal is ``x n + y n'``, with an orthonormal basis of the planes at the bend
    seen before: along a line w that follows the border behind,

        <m, w> + x <n, w> + y <n', w> = 0,

    where m is the normal before.  Slopes along lines beyond two say whether it is that neuron.

    Returns
    -------
    bends : Bends
    rows : ndarray of int
        Of the ends that they are.
    """
    walks, Y, E, n = ends.walks, ends.Y, ends.E, len(ends)
    if not n or not len(seen):
        none = np.empty(0, np.intp)
        return Bends(walks.facets, walks.facets, Y).take(none), none
    h, atol = pace.inner * ends.s, precision.atol(Y)
    T = rng.standard_normal((n, pace.n_slopes, Y.shape[1]))
    T -= (T * E[:, None]).sum(axis=2)[:, :, None] * E[:, None]
    T /= np.linalg.norm(T, axis=2)[:, :, None]
    times = pace.n_slopes
    t = heights(
        ask,
        (Y[:, None] + h[:, None, None] * T).reshape(-1, Y.shape[1]),
        np.repeat(E, times, axis=0),
        np.repeat(walks.facets.a, times),
        np.repeat(2.0 * h, times),
        np.repeat(atol, times),
    ).reshape(n, times)
    lines = T + (t / h[:, None])[:, :, None] * E[:, None]
    chosen, maps, errs = _same_neurons(walks, lines, atol / h, *planes_of(seen))
    facets = _facets_behind(ends, walks.facets.N + maps, walks.facets.err + errs, h, atol)
    off = precision.flat * atol + pace.room * facets.err * h
    rows = np.flatnonzero(chosen & (facets.err < pace.worst))
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
    return chosen, maps[:, :-1], errs


def measure_behind(
    ask: Ask, ends: Ends, precision: Precision, pace: WalkPace, rng: np.random.Generator
) -> tuple[Bends, IntArray]:
    """Measure the facets behind bends, and keep those that meet the facet before where it ends.

    Returns
    -------
    bends : Bends
    rows : ndarray of int
        Of the ends that they are.
    """
    near = ends.walks.facets
    behind, rows = measure_facets(
        ask, ends.Y, ends.E, near.a, near.b, pace.inner * ends.s, precision, rng
    )
    walks, s = ends.walks.take(rows), ends.s[rows]
    slope = (behind.N * walks.U).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = -_at(behind.F, walks.facets.X) / slope
        apart = walks.facets.off + walks.facets.err * walks.bad + behind.err * s * 2.0
        slack = (precision.flat * behind.off + pace.room * apart) / np.abs(slope)
    met = (t > walks.good - slack) & (t < walks.bad + slack) & (slack < s)
    X = walks.facets.X + t[:, None] * walks.U
    return Bends(walks.facets, behind, X).take(met), rows[met]


def _at(F: FloatArray, X: FloatArray) -> FloatArray:
    """Values of affine maps ``F (n, d + 1)`` at points ``X (n, d)``, (n,)."""
    return np.asarray((F[:, :-1] * X).sum(axis=1) + F[:, -1])
