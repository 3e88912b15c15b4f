"""Borders of two inputs as a whole: polygons, traced from vertex to vertex.

With two inputs a facet is an edge between two vertices, or goes on for ever.  On a circle around
a vertex labels tell all borders that leave it: one where a neuron bends the border, two where a
third class begins.  Edges that are known at both ends are measured anew between them, so that
they, and the vertices where they meet, are as precise as labels tell.
"""

from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from revelu.numerics.float64 import EPS
from revelu.probe.heights import Ask, heights, input_sizes
from revelu.recover.labels.borders import Borders
from revelu.recover.labels.corners import Corners, find_corners
from revelu.recover.labels.facets import Facets, are_flat, measure_facets
from revelu.recover.labels.precision import Precision
from revelu.recover.labels.walks import WalkPace, Walks, walk
from revelu.types import BoolArray, FloatArray, IntArray


class EdgeEnd(IntEnum):
    """Ends of edges that are at no vertex."""

    OPEN = -1
    """Not followed yet."""
    FAR = -2
    """The edge goes on for ever."""
    LOST = -3
    """What leaves it was not found."""


@dataclass(frozen=True)
class Tracing:
    """How polygons are traced."""

    bracket: float = 1e-4
    """How precisely the end of an edge is found before what leaves it is, in steps behind it."""
    shrink: float = 8.0
    attempts: int = 5
    """Where borders do not leave a vertex from where an edge has ended, another one is near: the
    circle around it is ``shrink`` times smaller, ``attempts`` times."""
    same: float = 1e-7
    """Vertices and lines that differ by less are one, relative to an input's size."""
    inset: float = 0.1
    """How far from its vertices an edge is measured anew, in its lengths,"""
    longest: float = 10.0
    """the most of which that count, in sizes of an input."""
    longer: float = 8.0
    n_longer: int = 5
    """Before it is followed an edge is measured over ``longer`` times the distance, ``n_longer``
    times."""
    most_edges: int = 2000
    """More are not followed: borders may be curved."""
    rtol: float = 2.0 * EPS
    """How precisely it is: to roundings of float64."""
    flat: float = 100.0
    """An edge is flat to within ``flat`` times ``rtol``."""


@dataclass(frozen=True, eq=False)
class Polygons:
    """Edges of borders and the vertices where they end."""

    edges: Facets
    """``a < b`` in all of them."""
    ends: IntArray
    """Shape (n, 2).  Vertices where edges end behind their point and before it, along their
    tangents; or FAR, or LOST."""
    vertices: FloatArray
    """Shape (m, 2)."""

    @property
    def extents(self) -> FloatArray:
        """Where edges end along their tangents, from their points, (n, 2)."""
        return _extents(self.edges, self.ends, self.vertices)

    def at(self, vertex: int) -> IntArray:
        """Edges that end at a vertex."""
        return np.flatnonzero((self.ends == vertex).any(axis=1))

    def labels_at(self, X: FloatArray, P: FloatArray, labels: FloatArray) -> FloatArray:
        """Labels of inputs ``X (n, 2)`` without asking, by those ``(n,)`` of others ``P (n, 2)``.

        The first edge on the way from one to the other tells, and where there is none both have
        the same label.
        """
        edges, T, U = self.edges, self.extents, tangents(self.edges.F)
        at_X, at_P = (some @ edges.N.T + edges.F[:, 2] for some in (X, P))
        with np.errstate(divide="ignore", invalid="ignore"):
            t = at_X / (at_X - at_P)
            along = (1.0 - t) * (X @ U.T) + t * (P @ U.T) - (edges.X * U).sum(axis=1)
        crossed = (at_X * at_P < 0) & (along > T[:, 0]) & (along < T[:, 1])
        t = np.where(crossed, t, np.inf)
        rows, first = np.arange(len(X)), t.argmin(axis=1)
        own = np.where(at_X[rows, first] < 0, edges.a[first], edges.b[first])
        return np.asarray(np.where(np.isfinite(t[rows, first]), own, labels))


def tangents(F: FloatArray) -> FloatArray:
    """Unit vectors along lines ``F (n, 3)``, with the normal on their right, (n, 2)."""
    return np.column_stack([-F[:, 1], F[:, 0]])


def _extents(edges: Facets, ends: IntArray, vertices: FloatArray) -> FloatArray:
    """Where edges end along their tangents, from their points; NaN where that is not known."""
    T = np.full(ends.shape, np.nan)
    U = tangents(edges.F)
    for side, far in enumerate((-np.inf, np.inf)):
        own = ends[:, side]
        T[own == EdgeEnd.FAR, side] = far
        known = np.flatnonzero(own >= 0)
        T[known, side] = ((vertices[own[known]] - edges.X[known]) * U[known]).sum(axis=1)
    return T


@dataclass
class Tracer:
    """Edges known so far, and their ends."""

    ask: Ask
    rng: np.random.Generator
    precision: Precision
    pace: WalkPace
    tracing: Tracing
    edges: Facets = field(init=False)
    ends: IntArray = field(init=False)
    vertices: FloatArray = field(init=False)
    """As of :class:`Polygons`."""

    def __post_init__(self) -> None:
        self.edges, self.vertices = Facets.none(2), np.empty((0, 2))
        self.ends = np.empty((0, 2), np.intp)
        self.pace = replace(self.pace, bracket=self.tracing.bracket)

    @property
    def is_full(self) -> bool:
        """Whether there are more edges than are followed."""
        return len(self.edges) > self.tracing.most_edges

    def knows(self, X: FloatArray) -> BoolArray:
        """Whether points ``X (n, 2)`` are on edges that are known, (n,)."""
        return np.asarray((self._places(X) >= 0).any(axis=1))

    def trace(self, starts: Borders, h: float) -> None:
        """Follow all borders from some of their points, which are flat within ``h``."""
        sizes = np.full(len(starts), h)
        facets, _ = measure_facets(
            self.ask, starts.X, starts.E, starts.a, starts.b, sizes, self.precision, self.rng
        )
        self._take_in(facets, np.full((len(facets), 2), EdgeEnd.OPEN))
        while (self.ends == EdgeEnd.OPEN).any() and not self.is_full:
            self._advance()

    def polygons(self) -> Polygons:
        """All edges, as precisely as labels tell, and their vertices."""
        edges = self._measured_anew()
        found = Polygons(edges, self.ends, self.vertices.copy())
        for i in range(len(self.vertices)):
            F = edges.F[found.at(i)]
            if len(F) > 1:
                found.vertices[i] = np.linalg.lstsq(F[:, :2], -F[:, 2], rcond=None)[0]
        return found

    def _places(self, X: FloatArray) -> FloatArray:
        """How far points are from the nearer end of edges that hold them, (n, edges); or -1."""
        F, U = self.edges.F, tangents(self.edges.F)
        off = np.abs(X @ F[:, :2].T + F[:, 2])
        t = X @ U.T - (self.edges.X * U).sum(axis=1)
        room = self.tracing.same * input_sizes(X)[:, None]
        T = _extents(self.edges, self.ends, self.vertices)
        with np.errstate(invalid="ignore"):
            inside = np.minimum(t - T[:, 0], T[:, 1] - t)
        return np.where((off < room) & (inside > -room), np.maximum(inside, 0.0), -1.0)

    def _take_in(self, facets: Facets, ends: IntArray) -> None:
        """Take in edges that are not known yet."""
        swapped = facets.a > facets.b
        sign = np.where(swapped, -1.0, 1.0)[:, None]
        facets = replace(
            facets,
            F=facets.F * sign,
            a=np.where(swapped, facets.b, facets.a),
            b=np.where(swapped, facets.a, facets.b),
        )
        ends = np.where(swapped[:, None], ends[:, ::-1], ends)
        self.edges = self.edges.joined(facets)
        self.ends = np.vstack([self.ends, ends])
        self._drop_doubles()

    def _drop_doubles(self) -> None:
        """Leave out edges whose point is on another one that is known to both ends."""
        left = np.ones(len(self.edges), bool)
        holds = self._places(self.edges.X) >= 0
        N = self.edges.N
        same = np.abs(N[:, :1] * N[None, :, 1] - N[:, 1:] * N[None, :, 0]) < 1e-4
        along = (N @ N.T) > 0
        pairs = (self.edges.a[:, None] == self.edges.a) & (self.edges.b[:, None] == self.edges.b)
        double = holds & same & along & pairs
        for i in range(len(left)):
            others = double[i] & left
            others[i] = False
            left[i] = not others.any()
        self.edges, self.ends = self.edges.take(left), self.ends[left]

    def _advance(self) -> None:
        """Follow all edges to their ends, and take in what leaves those."""
        rows, sides = np.nonzero(self.ends == EdgeEnd.OPEN)
        facets = self.edges.take(rows)
        U = tangents(facets.F) * np.where(sides, 1.0, -1.0)[:, None]
        facets = self._sharpened(facets, U)
        U = tangents(facets.F) * np.where(sides, 1.0, -1.0)[:, None]
        walks = walk(self.ask, facets, U, np.full(U.shape, np.nan), self.precision, self.pace)
        ended = np.isfinite(walks.bad)
        at = np.where(ended, self._vertices_at(walks), EdgeEnd.FAR)
        new = np.flatnonzero(at == EdgeEnd.LOST)
        corners = self._turn(walks.take(new))
        first: list[int] = []
        for i, X in enumerate(corners.X):
            at[new[i]] = self._vertex(X)
            if np.isfinite(X).all() and at[new[i]] == EdgeEnd.LOST:
                at[new[i]] = len(self.vertices)
                self.vertices = np.vstack([self.vertices, X])
                first.append(i)
        self.ends[rows, sides] = at
        chosen = np.flatnonzero(np.isin(corners.of, first))
        leaving, R = corners.leaving.take(chosen), corners.R[chosen]
        ends = np.full((len(chosen), 2), EdgeEnd.OPEN)
        side = np.where((tangents(leaving.F) * R).sum(axis=1) > 0, 0, 1)
        ends[np.arange(len(chosen)), side] = at[new[corners.of[chosen]]]
        self._take_in(leaving, ends)

    def _sharpened(self, facets: Facets, U: FloatArray) -> Facets:
        """Measure edges again along directions ``U (n, 2)``, farther out, as long as they are flat.

        The farther apart two points of an edge are the smaller are the bends that it shows.
        """
        tracing, todo = self.tracing, np.arange(len(facets))
        for _ in range(tracing.n_longer):
            if not len(todo):
                break
            some = facets.take(todo)
            t = tracing.longer * some.h
            room = self.precision.flat * some.off + self.pace.room * (some.off + some.err * t)
            far = some.X + t[:, None] * U[todo]
            longer = self._between(some, some.X, far, room, max_widenings=1)
            size = input_sizes(far)
            flat = tracing.flat * tracing.rtol * size
            met = np.flatnonzero(np.isfinite(longer.F).all(axis=1))
            todo, longer, flat = todo[met], longer.take(met), flat[met]
            good = are_flat(self.ask, longer, flat, self.precision.n_tests, self.rng)
            facets = facets.replaced(todo[good], longer.take(good))
            todo = todo[good]
        return facets

    def _between(
        self, edges: Facets, P: FloatArray, Q: FloatArray, half: FloatArray, max_widenings: int
    ) -> Facets:
        """Edges by the borders beside two points of each, ``P`` and ``Q (n, 2)``.

        NaN where no border is within ``half (n,)``.
        """
        X, E = np.vstack([P, Q]), np.tile(edges.N, (2, 1))
        size = input_sizes(X)
        atol = self.tracing.rtol * size
        t = heights(
            self.ask,
            X,
            E,
            np.tile(edges.a, 2),
            np.tile(half, 2),
            atol,
            max_widenings=max_widenings,
        )
        P, Q = np.split(X + t[:, None] * E, 2)
        length = np.linalg.norm(Q - P, axis=1)
        N = np.column_stack([Q - P, np.zeros(len(P))])[:, [1, 0]] * [1.0, -1.0] / length[:, None]
        N *= np.sign((N * edges.N).sum(axis=1))[:, None]
        middle, off = (P + Q) / 2.0, np.maximum(*np.split(atol, 2))
        F = np.column_stack([N, -(N * middle).sum(axis=1)])
        return Facets(middle, F, edges.a, edges.b, length / 2.0, 2.0 * off / length, off)

    def _vertex(self, X: FloatArray) -> int:
        """The known vertex at ``X (2,)``; LOST for none."""
        if not len(self.vertices) or not np.isfinite(X).all():
            return EdgeEnd.LOST
        apart = np.abs(self.vertices - X).max(axis=1)
        best = int(apart.argmin())
        room = self.tracing.same * max(float(np.abs(X).max()), 1.0)
        return best if apart[best] < room else EdgeEnd.LOST

    def _vertices_at(self, walks: Walks) -> IntArray:
        """The known vertices at which walks have ended, (n,); LOST for none."""
        with np.errstate(invalid="ignore"):
            middle, width = (walks.good + walks.bad) / 2.0, walks.bad - walks.good
        found = np.full(len(middle), EdgeEnd.LOST)
        for i in np.flatnonzero(np.isfinite(walks.bad)):
            offset = self.vertices - walks.facets.X[i]
            size = max(float(np.abs(walks.facets.X[i] + middle[i] * walks.U[i]).max()), 1.0)
            off = np.abs(offset @ walks.facets.N[i])
            along = np.abs(offset @ walks.U[i] - middle[i]) - width[i]
            near = np.maximum(off, along) < self.tracing.same * size
            if near.any():
                found[i] = int(np.where(near, np.abs(along), np.inf).argmin())
        return found

    def _turn(self, walks: Walks) -> "Corners":
        """Find what leaves the ends of walks."""
        n = len(walks.U)
        found, todo, pace = Corners.none(n), np.arange(n), self.pace
        for attempt in range(self.tracing.attempts):
            if not len(todo):
                break
            some = walks.take(todo)
            more = find_corners(self.ask, some, self.precision, pace, self.rng, sharp=attempt > 0)
            found = found.join(more, todo)
            todo = todo[~np.isfinite(more.X).all(axis=1)]
            pace = replace(pace, step=pace.step / self.tracing.shrink)
        return found

    def _measured_anew(self) -> Facets:
        """Edges by two points each, one near each end."""
        tracing, edges = self.tracing, self.edges
        U, (lo, hi) = tangents(edges.F), _extents(edges, self.ends, self.vertices).T
        longest = tracing.longest * input_sizes(edges.X)
        lo = np.where(np.isfinite(lo), lo, -edges.h)
        hi = np.where(np.isfinite(hi), hi, edges.h)
        far = [self.ends[:, side] == EdgeEnd.FAR for side in (0, 1)]
        lo, hi = np.where(far[0], hi - longest, lo), np.where(far[1], lo + longest, hi)
        P, Q = (
            edges.X + (lo + share * (hi - lo))[:, None] * U
            for share in (tracing.inset, 1.0 - tracing.inset)
        )
        reach = np.maximum(np.abs(lo), np.abs(hi))
        room = self.precision.flat * (self.precision.atol(P) + edges.off) + edges.err * reach
        anew = self._between(edges, P, Q, 2.0 * room, max_widenings=6)
        good = np.flatnonzero(np.isfinite(anew.F).all(axis=1))
        return edges.replaced(good, anew.take(good))
