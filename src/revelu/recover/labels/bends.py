"""Bends: where facets end at the hyperplane of a neuron, and the facets behind.

Behind the end of a walk the border goes on in another facet.  As a neuron changes its state there,
the difference of two outputs changes by a multiple of its affine map v:

    F'  =  λ (F + τ v),

so v lies in the span of both planes, whatever else the network is.  Where v is known, one height
behind the bend is τ, and the facet there costs no more.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.bisection import bisect
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.records import Records
from revelu.probe.heights import Ask, are_between, heights
from revelu.recover.labels.facets import Facets, are_flat, measure_facets
from revelu.recover.labels.precision import Precision
from revelu.recover.labels.walks import WalkPace, Walks, step_lengths
from revelu.types import BoolArray, FloatArray, IntArray


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


def leave_circles(
    ask: Ask,
    walks: Walks,
    sign: FloatArray,
    own: FloatArray,
    wide: FloatArray,
    precision: Precision,
    pace: WalkPace,
) -> tuple[Ends, FloatArray]:
    """Find where circles around the ends of walks leave a class.

    Each lies in the plane of the walk and the normal.

    Parameters
    ----------
    sign : ndarray, shape (n,)
        1 where it is followed from the side before the border, -1 from the other one.
    own : ndarray, shape (n,)
        The class on that side.
    wide : ndarray, shape (n,)
        How far from the walk's direction it begins and ends, in radians.

    Returns
    -------
    ends : Ends
        Of every walk.
    angle : ndarray, shape (n,)
        From the walk's direction to the border.
    """
    X = walks.ends
    s, every = step_lengths(X, pace), np.arange(len(X))

    def rays(rows: IntArray, angle: FloatArray) -> FloatArray:
        c, t = np.cos(angle)[:, None], np.sin(angle)[:, None]
        return np.asarray(c * walks.U[rows] + t * walks.facets.N[rows])

    def is_own(rows: IntArray, angle: FloatArray) -> BoolArray:
        R = rays(rows, sign[rows] * angle)
        return np.asarray(ask(X[rows] + s[rows, None] * R) == own[rows])

    angle = sign * bisect(is_own, -wide, wide, precision.atol(X) / s)
    R, E = rays(every, angle), sign[:, None] * rays(every, angle + np.pi / 2.0)
    return Ends(walks, X + s[:, None] * R, R, E, s), angle


def step_behind(ask: Ask, walks: Walks, precision: Precision, pace: WalkPace) -> Ends:
    """Find where borders go on behind the ends of walks.

    On a circle around an end the border leaves at one place and the facet came from the opposite
    one, however sharp the bend is.
    """
    n, facets = len(walks), walks.facets
    wide = np.full(n, np.pi - pace.away)
    ends, _ = leave_circles(ask, walks, np.ones(n), facets.a, wide, precision, pace)
    # Where a third class begins, the facet ends for another reason.
    off = (precision.flat * precision.atol(walks.ends))[:, None] * ends.E
    return ends.take(are_between(ask, ends.Y, off, facets.a, facets.b))


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
    return Bends(walks.facets.take(rows), facets.take(rows), walks.ends[rows]), rows


def _same_neurons(
    walks: Walks, lines: FloatArray, slope_err: FloatArray, pairs: FloatArray, pair_errs: FloatArray
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Which walks end at a neuron seen before, what it adds to their normals, and its error."""
    n, d1 = len(lines), pairs.shape[2]
    ends, width = walks.ends, walks.bad - walks.good
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
            if rest < 2.0 * SIGMAS * own and at < near and own / sizes[-1] < errs[i]:
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
    walks = ends.walks.take(rows)
    t, met = meet_ends(walks, behind, ends.s[rows], precision, pace)
    X = walks.facets.X + t[:, None] * walks.U
    return Bends(walks.facets, behind, X).take(met), rows[met]


def meet_ends(
    walks: Walks, facets: Facets, s: FloatArray, precision: Precision, pace: WalkPace
) -> tuple[FloatArray, BoolArray]:
    """How far along walks their lines meet facets ``s (n,)`` off, and whether they end there, (n,).

    Walks go on for a while behind a bend, until their plane is as far off as its error.
    """
    near, slope = walks.facets, (facets.N * walks.U).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = -_at(facets.F, near.X) / slope
        apart = near.off + near.err * walks.bad + 2.0 * facets.err * s
        slack = (precision.flat * facets.off + pace.room * apart) / np.abs(slope)
    return t, (t > walks.good - slack) & (t < walks.bad + slack) & (slack < s)


def _at(F: FloatArray, X: FloatArray) -> FloatArray:
    """Values of affine maps ``F (n, d + 1)`` at points ``X (n, d)``, (n,)."""
    return np.asarray((F[:, :-1] * X).sum(axis=1) + F[:, -1])
