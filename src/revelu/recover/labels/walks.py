"""Walks: how far facets go, along directions inside their planes.

A walk follows a facet's plane until labels speak against it.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.numerics.bisection import bisect
from revelu.numerics.records import Records
from revelu.probe.heights import Ask, are_between
from revelu.recover.labels.facets import Facets
from revelu.recover.labels.precision import Precision, Told
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

    @property
    def ends(self) -> FloatArray:
        """About where they have ended, (n, d)."""
        return np.asarray(self.facets.X + ((self.good + self.bad) / 2.0)[:, None] * self.U)

    def to(self, V: FloatArray) -> FloatArray:
        """How far along them hyperplanes ``V (m, d + 1)`` are, (n, m)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            at = self.facets.X @ V[:, :-1].T + V[:, -1]
            return np.asarray(-at / (self.U @ V[:, :-1].T))


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


def meeting(walks: Walks, V: FloatArray, s: FloatArray) -> IntArray:
    """Which of hyperplanes ``V (m, d + 1)`` walks meet where they end, (n,); -1 for none."""
    off = np.abs(walks.to(V) - (walks.good + walks.bad)[:, None] / 2.0)
    off = np.where(np.isnan(off), np.inf, off)
    nearest = off.argmin(axis=1)
    return np.where(off.min(axis=1) < s / 2.0, nearest, -1)


def n_passed(walks: Walks, V: FloatArray, pace: WalkPace) -> IntArray:
    """How often walks pass each of hyperplanes ``V (m, d + 1)`` without a bend there, (m,)."""
    t, facets = walks.to(V), walks.facets
    s, good = step_lengths(facets.X, pace)[:, None], walks.good[:, None]
    unseen = pace.room * (facets.off + facets.err * walks.good)[:, None]
    with np.errstate(invalid="ignore"):
        is_seen = unseen < pace.slightest * (good - t)
    return np.asarray(((t > s) & (t < good - s) & is_seen).sum(axis=0))
