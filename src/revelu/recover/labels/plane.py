"""A network of two inputs whose labels have given polygons for borders.

On an edge the difference of two outputs is ``λ F``, its line F times a slope λ > 0, which is
not known.  All else is linear in slopes:

- behind a bend it is ``λ' G``, and ``λ' G - λ F`` is a multiple of the neuron's affine map, where
  that is known; else it *is* the neuron's, and only the interval of λ' / λ is known, inside which
  its line crosses no other edge;
- the differences of three classes add up to nothing where these meet;
- at every edge, what all neurons that are on there add to a skip.

So slopes are a point of a cone, of which linear programming finds one well inside.  Where bends
may share a line with others a search tries that out.  A class that a neuron's line does not meet
is put where the neuron is off, and is low where it is on.  Labels of inputs that are known are
inequalities as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linprog

from revelu.network import Network
from revelu.recover.labels.lines import (
    BentEdges,
    Collinearity,
    Line,
    bends_of,
    find_intervals,
    find_lines,
    find_pairs,
    middle_ratios,
)
from revelu.recover.labels.polygons import End, Polygons, tangents
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Drawing:
    """How a network is found that has polygons for borders.

    Attributes
    ----------
    collinearity : Collinearity
    floor : float
        No edge is known better than this,
    room : float
        and equations hold to within so many errors, times the square root of their number.
    most_nodes : int
        Choices of lines that are tried out.
    n_rounds : int
        How often inequalities of labels are renewed, as lines move across inputs.
    low : float
        How low classes are that a neuron's line does not meet, where the neuron is on.
    least : float
        How far inside the cone slopes are at least, in units of their mean,
    least_gap : float
        and outputs apart at inputs whose labels are known, in shares of that.
    """

    collinearity: Collinearity = Collinearity()  # noqa: RUF009 - frozen
    floor: float = 1e-14
    room: float = 100.0
    most_nodes: int = 2000
    n_rounds: int = 8
    low: float = 1.0
    least: float = 1e-7
    least_gap: float = 1e-3


@dataclass(frozen=True)
class Choice:
    """Which neurons have made the bends: lines, and intervals of bends alone."""

    lines: tuple[Line, ...]
    alone: tuple[tuple[int, tuple[float, float]], ...]


@dataclass(frozen=True, eq=False)
class Drawn:
    """A network with the polygons for borders.

    Attributes
    ----------
    network : Network
        With an affine skip; one output a class.
    n_told : int
        Neurons whose lines are told, by three bends or more each.
    n_open : int
        Others, whose lines are chosen, among those that have the same labels.
    """

    network: Network
    n_told: int
    n_open: int


@dataclass
class Plane:
    """Polygons, and the labels of some inputs.

    Attributes
    ----------
    classes : ndarray, shape (k,)
    X, labels : ndarray, shapes (n, 2) and (n,)
        Labels as places among the classes.
    """

    polygons: Polygons
    classes: FloatArray
    X: FloatArray
    labels: IntArray
    drawing: Drawing
    bends: BentEdges = field(init=False)
    n_nodes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        edges = self.polygons.edges
        self.bends = bends_of(self.polygons, self.drawing.collinearity)
        self.a, self.b = (np.searchsorted(self.classes, labels) for labels in (edges.a, edges.b))
        self.err = edges.err + edges.off + self.drawing.floor
        self.n_edges, self.k = len(edges), len(self.classes)

    def draw(self) -> Drawn | None:
        """Find a network that has all borders and labels; None where none is found."""
        tuning = self.drawing.collinearity
        lines = find_lines(self.polygons, self.bends, tuning)
        taken = [line.on for line in lines]
        left = np.setdiff1d(np.arange(len(self.bends)), np.concatenate([[], *taken]).astype(int))
        # Three bends of which one is told to few digits may be on a line by chance.
        loose = find_lines(self.polygons, self.bends, replace(tuning, precise=np.inf))
        some = [line for line in loose if np.isin(line.on, left).all()]
        self.shared = [*some, *find_pairs(self.polygons, self.bends, left, tuning)]
        self.intervals = {int(i): find_intervals(self.polygons, self.bends, int(i)) for i in left}
        first = Choice(tuple(lines), ())
        for choice in self._choices(first, frozenset(self.intervals)):
            network = self._network_of(choice)
            if network is not None:
                n_open = len(choice.lines) + len(choice.alone) - len(lines)
                return Drawn(network, len(lines), n_open)
        return None

    def _choices(self, choice: Choice, left: frozenset[int]) -> Iterator[Choice]:
        """All choices for bends that are left, as far as slopes allow them."""
        self.n_nodes += 1
        if self.n_nodes > self.drawing.most_nodes:
            return
        if _inside(self._null(self._at_vertices(choice)), self._cone(choice), self) is None:
            return
        if not left:
            yield choice
            return
        shared = {i: [s for s in self.shared if i in s.on and left.issuperset(s.on)] for i in left}
        i = min(left, key=lambda i: (len(self.intervals[i]) + len(shared[i]), i))
        with_more = [line for line in shared[i] if len(line.on) > 2]
        for line in with_more:
            yield from self._choices(*self._with(line, choice, left))
        for interval in self.intervals[i]:
            more = Choice(choice.lines, (*choice.alone, (i, interval)))
            yield from self._choices(more, left - {i})
        for line in shared[i][len(with_more) :]:
            yield from self._choices(*self._with(line, choice, left))

    @staticmethod
    def _with(line: Line, choice: Choice, left: frozenset[int]) -> tuple[Choice, frozenset[int]]:
        """Take a line into a choice; the bends that are left then."""
        return Choice((*choice.lines, line), choice.alone), left.difference(line.on.tolist())

    def _at_vertices(self, choice: Choice) -> FloatArray:
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
        return np.vstack(found)

    def _add(self, rows: FloatArray, start: int, edge: int, what: FloatArray) -> None:
        """Add a multiple of what an edge's classes have apart, of unknowns from ``start`` on."""
        for c, sign in ((self.b[edge], 1.0), (self.a[edge], -1.0)):
            if c > 0:
                rows[:, start + c - 1] += sign * what

    def _null(self, M: FloatArray) -> FloatArray:
        """An orthonormal basis of what solves equations to within their errors, (unknowns, q)."""
        if not len(M):
            return np.eye(M.shape[1])
        _, sizes, right = np.linalg.svd(M, full_matrices=True)
        sizes = np.append(sizes, np.zeros(len(right) - len(sizes)))
        return np.asarray(right[sizes < self.drawing.room * np.sqrt(len(M))].T)

    def _cone(self, choice: Choice) -> FloatArray:
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
                rows.append(row[1:] / width)
        return np.vstack(rows)

    def _sides(self, choice: Choice) -> tuple[FloatArray, BoolArray]:
        """Lines of bends alone, about, (n, 3), positive behind; and which are turned round.

        They are on behind their bend, unless more edges of other classes are there than before.
        """
        middles = self._middles()
        V, turned = np.empty((len(choice.alone), 3)), np.zeros(len(choice.alone), bool)
        for j, (i, (lo, hi)) in enumerate(choice.alone):
            r = middle_ratios(np.array(lo), np.array(hi))
            v = r * self.bends.G[i] - self.bends.F[i]
            V[j] = v * np.sign(v[:2] @ self.bends.R[i])
            own = [self.a[self.bends.before[i]], self.b[self.bends.before[i]]]
            other = ~(np.isin(self.a, own) & np.isin(self.b, own))
            turned[j] = np.sign(middles[other] @ V[j]).sum() > 0
        return V, turned

    def _middles(self) -> FloatArray:
        """Points of all edges away from their ends, (n, 3), with a last coordinate of 1."""
        edges, T = self.polygons.edges, self.polygons.extents
        size = np.maximum(np.abs(edges.X).max(axis=1, initial=0.0), 1.0)
        T = np.where(self.polygons.ends == End.FAR, np.nan, T)
        lo = np.where(np.isnan(T[:, 0]), np.where(np.isnan(T[:, 1]), 0.0, T[:, 1]) - size, T[:, 0])
        hi = np.where(np.isnan(T[:, 1]), np.where(np.isnan(T[:, 0]), 0.0, T[:, 0]) + size, T[:, 1])
        X = edges.X + ((lo + hi) / 2.0)[:, None] * tangents(edges.F)
        return np.column_stack([X, np.ones(len(X))])

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
        shares = np.full(self.k, -self.drawing.low)
        if self.bends.sign[i] < 0:
            shares = np.full(self.k, 1.0 + self.drawing.low)
        shares[a], shares[b] = 0.0, 1.0
        return shares

    def _at_edges(self, choice: Choice, V: FloatArray, turned: BoolArray) -> FloatArray:
        """Equations of all unknowns at edges: what neurons add up to is the edge's line."""
        middles, n = self._middles(), self.n_edges
        on = (middles @ V.T > 0) ^ turned
        for j, (i, _) in enumerate(choice.alone):
            on[self.bends.behind[i], j], on[self.bends.before[i], j] = ~turned[j], turned[j]
        states = [middles @ line.V > 0 for line in choice.lines]
        known = self._at_vertices(choice)
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

    def _network_of(self, choice: Choice) -> Network | None:
        """The network of a choice that has all labels, too; None where there is none."""
        V, turned = self._sides(choice)
        null, cone = self._null(self._at_edges(choice, V, turned)), self._cone(choice)
        H = np.column_stack([self.X, np.ones(len(self.X))])
        on = (H @ V.T > 0) ^ turned
        for _ in range(self.drawing.n_rounds):
            gaps = self._gaps(choice, H, on, turned)
            x = _inside(null, cone, self, gaps)
            if x is None:
                return None
            network, rows = self._network(choice, x, turned)
            if (network(self.X).argmax(axis=1) == self.labels).all():
                return network
            on = H @ rows[len(choice.lines) :].T > 0
        return None

    def _gaps(self, choice: Choice, H: FloatArray, on: BoolArray, turned: BoolArray) -> FloatArray:
        """Outputs of the classes that inputs have, less those of all others, as rows."""
        own = self._outputs(choice, H, on, turned, self.labels)
        found = []
        for c in range(self.k):
            others = np.flatnonzero(self.labels != c)
            at = np.full(len(others), c)
            found.append(own[others] - self._outputs(choice, H[others], on[others], turned, at))
        return np.vstack(found)

    def _network(
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
    null: FloatArray, cone: FloatArray, plane: Plane, gaps: FloatArray | None = None
) -> FloatArray | None:
    """Unknowns in a null space, ``null (n, q)``, whose slopes are as far inside a cone as can be.

    The mean of slopes is 1.  None where none are inside.
    """
    n, q = plane.n_edges, null.shape[1]
    if not q:
        return None
    slopes = null[:n]
    rows = np.column_stack([-cone @ slopes, np.ones(len(cone))])
    if gaps is not None:
        apart = np.full(len(gaps), plane.drawing.least_gap)
        rows = np.vstack([rows, np.column_stack([-gaps @ null, apart])])
    found = linprog(
        np.append(np.zeros(q), -1.0),
        A_ub=rows,
        b_ub=np.zeros(len(rows)),
        A_eq=np.append(slopes.sum(axis=0), 0.0)[None],
        b_eq=[float(n)],
        bounds=[(None, None)] * q + [(None, 1.0)],
    )
    if found.status != 0 or found.x[-1] < plane.drawing.least:
        return None
    return np.asarray(null @ found.x[:-1])
