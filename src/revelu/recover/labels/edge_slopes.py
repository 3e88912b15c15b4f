"""What borders of two inputs say of their edges' slopes, and what a network adds to that.

On an edge the difference of two outputs is ``λ F``, its line F times a slope λ > 0, which is
not known.  All else is linear in slopes:

- behind a bend it is ``λ' G``, and ``λ' G - λ F`` is a multiple of the neuron's affine map, where
  that is known; else it *is* the neuron's, and only the interval of λ' / λ is known, inside which
  its line crosses no other edge;
- the differences of three classes add up to nothing where these meet;
- at every edge, what all neurons that are on there add to a skip.

So slopes are a point of a cone, of which linear programming finds one well inside.  A class that a
neuron's line does not meet is put where the neuron is off, and is low where it is on.  Labels of
inputs that are known are inequalities as well.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
from scipy.optimize import linprog

from revelu.network import Network
from revelu.probe.heights import input_sizes
from revelu.recover.labels.lines import BentEdges, NeuronLine, middle_ratios
from revelu.recover.labels.polygons import EdgeEnd, Polygons, tangents
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class SlopeCone:
    """When slopes solve equations, and how far inside inequalities they are."""

    floor: float = 1e-14
    """No edge is known better than this,"""
    room: float = 100.0
    """and equations hold to within ``room`` errors, times the square root of their number."""
    inset: float = 0.01
    far: float = 1000.0
    """On edges other classes are below: ``inset`` of their lengths, or sizes of an input, before
    ends that are no bends, and as far out in these where an edge goes on for ever."""
    low: float = 1.0
    """How low classes are that a neuron's line does not meet, where the neuron is on."""
    least: float = 1e-7
    """How far inside the cone slopes are at least, in units of their mean,"""
    least_gap: float = 1e-3
    """and outputs apart at inputs whose labels are known, in shares of that."""
    largest: float = 1e5
    """Columns and skips are no larger, in units of the mean of slopes: where neurons that are added
    take away from each other, rounding moves borders."""
    edging: float = 0.01
    """Where slopes have not all labels yet they are at least this share as far inside the cone as
    without labels."""


@dataclass(frozen=True)
class Choice:
    """Which neurons have made the bends: lines, and intervals of bends alone."""

    lines: tuple[NeuronLine, ...]
    alone: tuple[tuple[int, tuple[float, float]], ...]


@dataclass(frozen=True, eq=False)
class EdgeEquations:
    """Polygons whose edges have unknown slopes, between ``k`` classes.

    Unknowns are the slopes of edges, the columns of known lines, and a skip, in this order; class
    0 has no column and no skip.
    """

    polygons: Polygons
    bends: BentEdges
    a: IntArray
    b: IntArray
    """Shape (n_edges,).  Classes before and behind edges, as numbers below k."""
    k: int
    tuning: SlopeCone

    @property
    def n_edges(self) -> int:
        """How many slopes there are."""
        return len(self.a)

    @cached_property
    def err(self) -> FloatArray:
        """About how far off edges are, (n_edges,)."""
        edges = self.polygons.edges
        return np.asarray(edges.err + edges.off + self.tuning.floor)

    def allow(self, choice: Choice) -> bool:
        """Whether there are slopes for a choice of neurons, whatever else there is."""
        null = self.null(self.at_vertices(choice))
        return _inside(null, self.cone(choice), self) is not None

    def solved(self, null: FloatArray, cone: FloatArray, gaps: FloatArray) -> FloatArray | None:
        """Unknowns inside a cone that have all inequalities, or miss them by the least sum."""
        found = _inside(null, cone, self, gaps)
        return _nearest(null, cone, self, gaps) if found is None else found

    def at_vertices(self, choice: Choice) -> FloatArray:
        """Equations of slopes and of columns of lines, in units of their errors, (n, unknowns)."""
        bends, n = self.bends, self.n_edges
        found = [np.empty((0, n + len(choice.lines) * (self.k - 1)))]
        for vertex in range(len(self.polygons.vertices)):
            at = self.polygons.at(vertex)
            classes = np.unique([self.a[at], self.b[at]])
            if len(at) != 3 or len(classes) != 3:
                continue
            rows = np.zeros((3, found[0].shape[1]))
            outer = (self.a[at] == classes[0]) & (self.b[at] == classes[2])
            rows[:, at] = (self.polygons.edges.F[at] * np.where(outer, -1.0, 1.0)[:, None]).T
            found.append(rows / self.err[at].sum())
        for j, line in enumerate(choice.lines):
            for i in line.on:
                before, behind = bends.before[i], bends.behind[i]
                side = np.sign(line.V[:2] @ bends.R[i])
                rows = np.zeros((3, found[0].shape[1]))
                rows[:, behind], rows[:, before] = bends.G[i], -bends.F[i]
                self._add(rows, n + j * (self.k - 1), before, -side * line.V)
                found.append(rows / (self.err[before] + self.err[behind]))
            if line.edge is not None:
                row = np.zeros((1, n + len(choice.lines) * (self.k - 1)))
                self._add(row, n + j * (self.k - 1), line.edge, np.ones(1))
                found.append(row / self.err[line.edge])
        return np.vstack(found)

    def _add(self, rows: FloatArray, start: int, edge: int, what: FloatArray) -> None:
        """Add a multiple of what an edge's classes have apart, of unknowns from ``start`` on."""
        for c, sign in ((self.b[edge], 1.0), (self.a[edge], -1.0)):
            if c > 0:
                rows[:, start + c - 1] += sign * what

    def null(self, M: FloatArray) -> FloatArray:
        """An orthonormal basis of what solves equations to within their errors, (unknowns, q)."""
        if not len(M):
            return np.eye(M.shape[1])
        _, sizes, right = np.linalg.svd(M, full_matrices=True)
        sizes = np.append(sizes, np.zeros(len(right) - len(sizes)))
        return np.asarray(right[sizes < self.tuning.room * np.sqrt(len(M))].T)

    def cone(self, choice: Choice) -> FloatArray:
        """Rows whose products with slopes are positive, in units of what is well inside."""
        rows = [np.eye(self.n_edges)]
        for i, (lo, hi) in choice.alone:
            row = np.zeros((2, self.n_edges))
            before, behind = self.bends.before[i], self.bends.behind[i]
            row[0, behind], row[0, before] = 1.0, -lo
            row[1, behind], row[1, before] = -1.0, hi
            width = min(1.0, hi - lo)
            rows.append(row[:1] / (min(width, lo) if lo > 0 else 1.0))
            if np.isfinite(hi):
                rows.append(row[1:] / (width * max(hi, 1.0)))
        return np.vstack(rows)

    def sides(self, choice: Choice) -> tuple[FloatArray, BoolArray]:
        """Lines of bends alone, about, (n, 3), positive behind; and which are turned round.

        They are on behind their bend, unless more edges of other classes are there than before.
        """
        middles = self.middles()
        V, turned = np.empty((len(choice.alone), 3)), np.zeros(len(choice.alone), bool)
        for j, (i, (lo, hi)) in enumerate(choice.alone):
            r = middle_ratios(np.array(lo), np.array(hi))
            v = r * self.bends.G[i] - self.bends.F[i]
            V[j] = v * np.sign(v[:2] @ self.bends.R[i])
            own = [self.a[self.bends.before[i]], self.b[self.bends.before[i]]]
            other = ~(np.isin(self.a, own) & np.isin(self.b, own))
            turned[j] = np.sign(middles[other] @ V[j]).sum() > 0
        return V, turned

    def middles(self) -> FloatArray:
        """Points of all edges away from their ends, (n, 3), with a last coordinate of 1."""
        edges, T = self.polygons.edges, self.polygons.extents
        size = input_sizes(edges.X)
        T = np.where(self.polygons.ends == EdgeEnd.FAR, np.nan, T)
        lo = np.where(np.isnan(T[:, 0]), np.where(np.isnan(T[:, 1]), 0.0, T[:, 1]) - size, T[:, 0])
        hi = np.where(np.isnan(T[:, 1]), np.where(np.isnan(T[:, 0]), 0.0, T[:, 0]) + size, T[:, 1])
        X = edges.X + ((lo + hi) / 2.0)[:, None] * tangents(edges.F)
        return np.column_stack([X, np.ones(len(X))])

    def _ends(self) -> FloatArray:
        """Places at both ends of edges along their tangents, from their points, (n, 2).

        Before the end, where a third class is as high there.
        """
        inset, T, ends = self.tuning.inset, self.polygons.extents, self.polygons.ends
        size = input_sizes(self.polygons.edges.X)
        far = self.tuning.far * size[:, None] * np.array([-1.0, 1.0])
        T = np.where(ends == EdgeEnd.FAR, far, T)
        inner = T + inset * np.clip(T[:, ::-1] - T, -size[:, None], size[:, None])
        return np.asarray(np.where(np.isin(ends, self.bends.vertex), T, inner))

    def _outputs(
        self, choice: Choice, H: FloatArray, on: BoolArray, turned: BoolArray, at: IntArray
    ) -> FloatArray:
        """Outputs of classes ``at (n,)`` at inputs ``H (n, 3)``, as rows that unknowns multiply.

        Parameters
        ----------
        on : ndarray of bool, shape (n, m)
            Whether each of the bends' neurons is on.
        """
        k1, n = self.k - 1, self.n_edges
        start = n + len(choice.lines) * k1
        rows, every = np.zeros((len(H), start + 3 * k1)), np.arange(len(H))
        some = np.flatnonzero(at > 0)
        for j, line in enumerate(choice.lines):
            rows[some, n + j * k1 + at[some] - 1] = np.maximum(H[some] @ line.V, 0.0)
        for c in range(3):
            rows[some, start + 3 * (at[some] - 1) + c] = H[some, c]
        for j, (i, _) in enumerate(choice.alone):
            own = every[on[:, j]]
            share = self._shares(i)[at[own]] * (-1.0 if turned[j] else 1.0)
            rows[own, self.bends.behind[i]] += share * (H[own] @ self.bends.G[i])
            rows[own, self.bends.before[i]] -= share * (H[own] @ self.bends.F[i])
        return rows

    def _shares(self, i: int) -> FloatArray:
        """What outputs get of a bend's neuron, (k,): the class behind it one more than before."""
        a, b = self.a[self.bends.before[i]], self.b[self.bends.before[i]]
        shares = np.full(self.k, -self.tuning.low)
        if self.bends.sign[i] < 0:
            shares = np.full(self.k, 1.0 + self.tuning.low)
        shares[a], shares[b] = 0.0, 1.0
        return shares

    def at_edges(self, choice: Choice, V: FloatArray, turned: BoolArray) -> FloatArray:
        """Equations of all unknowns at edges: what neurons add up to is the edge's line."""
        middles, n = self.middles(), self.n_edges
        on = (middles @ V.T > 0) ^ turned
        for j, (i, _) in enumerate(choice.alone):
            on[self.bends.behind[i], j], on[self.bends.before[i], j] = ~turned[j], turned[j]
        states = [middles @ line.V > 0 for line in choice.lines]
        known = self.at_vertices(choice)
        rows = np.zeros((n, 3, known.shape[1] + 3 * (self.k - 1)))
        k1, start = self.k - 1, known.shape[1]
        for e in range(n):
            rows[e, :, e] += self.polygons.edges.F[e]
            for j, line in enumerate(choice.lines):
                if states[j][e]:
                    self._add(rows[e], n + j * k1, e, -line.V)
            for c in range(3):
                for cls, sign in ((self.b[e], -1.0), (self.a[e], 1.0)):
                    if cls > 0:
                        rows[e, c, start + 3 * (cls - 1) + c] += sign
            for j, (i, _) in enumerate(choice.alone):
                if not on[e, j]:
                    continue
                shares = self._shares(i) * (-1.0 if turned[j] else 1.0)
                share = shares[self.b[e]] - shares[self.a[e]]
                rows[e, :, self.bends.behind[i]] -= share * self.bends.G[i]
                rows[e, :, self.bends.before[i]] += share * self.bends.F[i]
        wide = np.hstack([known, np.zeros((len(known), 3 * k1))])
        return np.vstack([wide, rows.reshape(3 * n, -1) / np.linalg.norm(self.err)])

    def gaps(
        self,
        choice: Choice,
        rows: FloatArray,
        turned: BoolArray,
        inputs: FloatArray,
        labels: IntArray,
    ) -> FloatArray:
        """Outputs of the classes that inputs have, less those of all others, as rows.

        Parameters
        ----------
        rows : ndarray, shape (m, 3)
            Affine maps of the bends' neurons.
        inputs, labels : ndarray, shapes (n, 2) and (n,)

        On an edge both of its classes are above all others; these are affine along it, so its two
        ends tell.
        """
        T, edges = self._ends(), self.polygons.edges
        X = (edges.X[:, None] + T[:, :, None] * tangents(edges.F)[:, None]).reshape(-1, 2)
        X, a = np.vstack([inputs, X]), np.append(labels, np.repeat(self.a, 2))
        b = np.append(labels, np.repeat(self.b, 2))
        H = np.column_stack([X, np.ones(len(X))])
        on = H @ rows.T > 0
        own, found = self._outputs(choice, H, on, turned, a), []
        size = input_sizes(X)[:, None]
        for c in range(self.k):
            others = np.flatnonzero((a != c) & (b != c))
            at = np.full(len(others), c)
            apart = own[others] - self._outputs(choice, H[others], on[others], turned, at)
            found.append(apart / size[others])
        return np.vstack(found)

    def network(
        self, choice: Choice, x: FloatArray, turned: BoolArray
    ) -> tuple[Network, FloatArray]:
        """The network of known slopes, columns and skip, and its rows (m, 3)."""
        k1, n, m = self.k - 1, self.n_edges, len(choice.lines)
        V = [line.V for line in choice.lines]
        columns = [np.append(0.0, x[n + j * k1 : n + (j + 1) * k1]) for j in range(m)]
        for j, (i, _) in enumerate(choice.alone):
            D = (
                x[self.bends.behind[i]] * self.bends.G[i]
                - x[self.bends.before[i]] * self.bends.F[i]
            )
            size = np.linalg.norm(D[:2])
            side = np.sign(D[:2] @ self.bends.R[i])
            V.append(side * D / size * (-1.0 if turned[j] else 1.0))
            columns.append(side * size * self._shares(i))
        rows, A = np.array(V).reshape(-1, 3), np.array(columns).reshape(-1, self.k).T
        skip = np.vstack([np.zeros(3), x[n + m * k1 :].reshape(k1, 3)])
        zero = np.zeros(self.k)
        network = Network([rows[:, :2], A], [rows[:, 2], zero], (skip[:, :2], skip[:, 2]))
        return network, rows


def _inside(
    null: FloatArray, cone: FloatArray, equations: EdgeEquations, gaps: FloatArray | None = None
) -> FloatArray | None:
    """Unknowns in a null space, ``null (n, q)``, whose slopes are as far inside a cone as can be.

    The mean of slopes is 1.  None where none are inside.
    """
    tuning, (n, q) = equations.tuning, (equations.n_edges, null.shape[1])
    if not q:
        return None
    gaps = np.empty((0, len(null))) if gaps is None else gaps
    others, most = _bounded(null[n:], tuning.largest)
    least = np.concatenate([np.ones(len(cone)), np.full(len(gaps), tuning.least_gap), 0.0 * most])
    products = np.vstack([-cone @ null[:n], -gaps @ null, others])
    found = linprog(
        np.append(np.zeros(q), -1.0),
        A_ub=np.column_stack([products, least]),
        b_ub=np.append(np.zeros(len(cone) + len(gaps)), most),
        A_eq=np.append(null[:n].sum(axis=0), 0.0)[None],
        b_eq=[float(n)],
        bounds=[(None, None)] * q + [(None, 1.0)],
    )
    if found.status != 0 or found.x[-1] < tuning.least:
        return None
    return np.asarray(null @ found.x[:-1])


def _nearest(
    null: FloatArray, cone: FloatArray, equations: EdgeEquations, gaps: FloatArray
) -> FloatArray | None:
    """Unknowns whose slopes are inside a cone and that miss inequalities by the least sum.

    Inequalities are those of lines that are chosen so far: where none has all of them, lines may
    have others as they move.  None where no slopes are inside the cone.
    """
    middle = _inside(null, cone, equations)
    if middle is None:
        return None
    tuning, (n, q), k = equations.tuning, (equations.n_edges, null.shape[1]), len(gaps)
    least = tuning.edging * float((cone @ middle[:n]).min())
    others, most = _bounded(null[n:], tuning.largest)
    missed = scipy.sparse.eye_array(k)
    found = linprog(
        np.append(np.zeros(q), np.ones(k)),
        A_ub=scipy.sparse.block_array(
            [[-cone @ null[:n], None], [-gaps @ null, -missed], [others, None]]
        ),
        b_ub=np.concatenate(
            [np.full(len(cone), -least), np.full(k, -least * tuning.least_gap), most]
        ),
        A_eq=np.append(null[:n].sum(axis=0), np.zeros(k))[None],
        b_eq=[float(n)],
        bounds=[(None, None)] * q + [(0.0, None)] * k,
    )
    return np.asarray(null @ found.x[:q]) if found.status == 0 else None


def _bounded(rows: FloatArray, largest: float) -> tuple[FloatArray, FloatArray]:
    """Rows whose products are below bounds: those of ``rows (n, q)`` are no larger than that."""
    return np.vstack([rows, -rows]), np.full(2 * len(rows), largest)
