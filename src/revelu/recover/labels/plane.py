"""A network of two inputs whose labels have given polygons for borders.

On an edge the difference of two outputs is ``λ F``, its line F times a slope λ > 0, which is
not known.  All else is linear in slopes:

- behind a bend it is ``λ' G``, and ``λ' G - λ F`` is a multiple of the neuron's affine map, where
  that is known; else it *is* the neuron's, and only the interval of λ' / λ is known, inside which
  its line crosses no other edge;
- the differences of three classes add up to nothing where these meet;
- at every edge, what all neurons that are on there add to a skip.

Where that has no solution neurons are missing that bend no border.  One whose line crosses none
may part borders that do not meet.  And a bend's neuron may put out something to a third class
whose borders are on both sides of its line: lines through the bend, which add nothing to the
difference of its own two classes, have that class get what it gets.

So slopes are a point of a cone, of which linear programming finds one well inside.  Where bends
may share a line with others a search tries that out.  A class that a neuron's line does not meet
is put where the neuron is off, and is low where it is on.  Labels of inputs that are known are
inequalities as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse
from scipy.optimize import linprog

from revelu.network import Network
from revelu.recover.labels.heights import input_sizes
from revelu.recover.labels.lines import (
    QUARTERS,
    BentEdges,
    Collinearity,
    NeuronLine,
    bends_of,
    find_gaps,
    find_intervals,
    find_lines,
    find_pairs,
    middle_ratios,
)
from revelu.recover.labels.polygons import EdgeEnd, Polygons, tangents
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Drawing:
    """How a network is found that has polygons for borders."""

    collinearity: Collinearity = Collinearity()  # noqa: RUF009 - frozen
    floor: float = 1e-14
    """No edge is known better than this,"""
    room: float = 100.0
    """and equations hold to within ``room`` errors, times the square root of their number."""
    most_nodes: tuple[int, int] = (2000, 5000)
    """Choices of lines that are tried out where bends that leave few ways come first, and then
    where bends do whose edges are those of bends that are chosen."""
    n_rounds: int = 16
    """How often inequalities of labels are renewed, as lines move across inputs."""
    scales: tuple[float, ...] = (1.0, 2.5, 10.0)
    n_checks: int = 10_000
    n_learned: int = 64
    """At ``n_checks`` inputs of N(0, s²) for each s polygons tell labels without asking, and those
    of a network are to be the same: it learns from ``n_learned`` at once where they are not."""
    inset: float = 0.01
    far: float = 1000.0
    """On edges other classes are below: ``inset`` of their lengths, or sizes of an input, before
    ends that are no bends, and as far out in these where an edge goes on for ever."""
    low: float = 1.0
    """How low classes are that a neuron's line does not meet, where the neuron is on."""
    n_ways: int = 360
    """Directions in which lines that cross no edge are looked for."""
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
class DrawnPlane:
    """A network with the polygons for borders."""

    network: Network
    """With an affine skip; one output a class."""
    n_told: int
    """Neurons whose lines are told, by three bends or more each."""
    n_open: int
    """Others, whose lines are chosen, among those that have the same labels."""


@dataclass
class LabelledPlane:
    """Polygons, and the labels of some inputs."""

    polygons: Polygons
    classes: FloatArray
    """Shape (k,)."""
    X: FloatArray
    labels: IntArray
    """Labels as places among the classes."""
    rng: np.random.Generator
    drawing: Drawing
    bends: BentEdges = field(init=False)
    linked_first: bool = field(default=False, init=False)
    nodes_left: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        edges = self.polygons.edges
        self.bends = bends_of(self.polygons, self.drawing.collinearity)
        self.a, self.b = (np.searchsorted(self.classes, labels) for labels in (edges.a, edges.b))
        self.err = edges.err + edges.off + self.drawing.floor
        self.n_edges, self.k = len(edges), len(self.classes)

    def draw(self) -> DrawnPlane | None:
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
        self.gaps = find_gaps(self.polygons, self.drawing.n_ways, tuning.nearest)
        asked = self.X, self.labels
        # What is chosen wrongly early is paid for by all that is tried behind it.
        for is_linked_first, most in zip((False, True), self.drawing.most_nodes, strict=True):
            self.linked_first, self.nodes_left = is_linked_first, most
            self.X, self.labels = asked
            for choice in self._choices(first, frozenset(self.intervals)):
                for whole in (choice, *self._with_unseen(choice)):
                    network = self._network_of(whole)
                    if network is not None:
                        n_open = len(whole.lines) + len(whole.alone) - len(lines)
                        return DrawnPlane(network, len(lines), n_open)
        return None

    def _with_unseen(self, choice: Choice) -> Iterator[Choice]:
        """A choice with the lines, too, of what bends no border; none where there are no such."""
        lines, middles = list(self.gaps), self._middles()
        for i, (lo, hi) in choice.alone:
            F, G, edge = self.bends.F[i], self.bends.G[i], int(self.bends.before[i])
            V = middle_ratios(np.array(lo), np.array(hi)) * G - F
            is_behind, own = middles @ V > 0, (self.a[edge], self.b[edge])
            others = np.setdiff1d(np.arange(self.k), own)
            of = [(self.a == c) | (self.b == c) for c in others]
            if any(is_behind[at].any() and not is_behind[at].all() for at in of):
                for share in QUARTERS:
                    V = middle_ratios(np.array(lo), np.array(hi), share) * G - F
                    V = V / np.linalg.norm(V[:2])
                    lines.append(NeuronLine(V, np.empty(0, np.intp), edge))
        if lines:
            yield replace(choice, lines=(*choice.lines, *lines))

    def _choices(self, choice: Choice, left: frozenset[int]) -> Iterator[Choice]:
        """All choices for bends that are left, as far as slopes allow them."""
        self.nodes_left -= 1
        if self.nodes_left < 0:
            return
        if _inside(self._null(self._at_vertices(choice)), self._cone(choice), self) is None:
            return
        if not left:
            yield choice
            return
        shared = {i: [s for s in self.shared if i in s.on and left.issuperset(s.on)] for i in left}
        i = self._next(choice, shared)
        with_more = [line for line in shared[i] if len(line.on) > 2]
        for line in with_more:
            yield from self._choices(*self._with(line, choice, left))
        for interval in self.intervals[i]:
            more = Choice(choice.lines, (*choice.alone, (i, interval)))
            yield from self._choices(more, left - {i})
        for line in shared[i][len(with_more) :]:
            yield from self._choices(*self._with(line, choice, left))

    def _next(self, choice: Choice, shared: dict[int, list[NeuronLine]]) -> int:
        """The bend to choose for next: one that leaves few ways, or that equations reach first."""
        chosen = [int(i) for line in choice.lines for i in line.on] + [i for i, _ in choice.alone]
        edges = np.column_stack([self.bends.before, self.bends.behind])
        is_linked = np.asarray(np.isin(edges, edges[chosen]).any(axis=1))

        def ways(i: int) -> tuple[bool, int, int]:
            n = len(self.intervals[i]) + len(shared[i])
            return self.linked_first and n > 1 and not is_linked[i], n, i

        return min(shared, key=ways)

    @staticmethod
    def _with(
        line: NeuronLine, choice: Choice, left: frozenset[int]
    ) -> tuple[Choice, frozenset[int]]:
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
                rows.append(row[1:] / (width * max(hi, 1.0)))
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
        inset, T, ends = self.drawing.inset, self.polygons.extents, self.polygons.ends
        size = input_sizes(self.polygons.edges.X)
        far = self.drawing.far * size[:, None] * np.array([-1.0, 1.0])
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
        rows, first = np.where(turned[:, None], -V, V), len(choice.lines)
        for _ in range(self.drawing.n_rounds):
            gaps = self._gaps(choice, rows, turned)
            x = _inside(null, cone, self, gaps)
            if x is None:
                x = _nearest(null, cone, self, gaps)
            if x is None:
                return None
            network, every = self._network(choice, x, turned)
            rows = every[first:]
            is_right = bool((network(self.X).argmax(axis=1) == self.labels).all())
            if is_right and not self._learn_from(network, every):
                return network
        return None

    def _learn_from(self, network: Network, rows: FloatArray) -> int:
        """Add inputs at which polygons tell other labels than a network; return how many did.

        Outputs are affine between lines of neurons, ``rows (m, 3)``: where these meet is where
        they are largest and smallest.
        """
        nearest, F = self.drawing.collinearity.nearest, self.polygons.edges.F
        i, j = np.triu_indices(len(rows), 1)
        meeting = np.cross(rows[i], rows[j])
        meeting = meeting[np.abs(meeting[:, 2]) > nearest]
        meeting = meeting / meeting[:, 2:]
        # On an edge both of its classes are right: lines of one bend meet there.
        meeting = meeting[
            np.abs(meeting @ F.T / np.abs(meeting).max(axis=1)[:, None]).min(axis=1) > nearest
        ]
        n, scales = self.drawing.n_checks, self.drawing.scales
        n_wrong = 0
        for X in (meeting[:, :2], *(s * self.rng.standard_normal((n, 2)) for s in scales)):
            some = self.rng.integers(len(self.X), size=len(X))
            P, of = self.X[some], self.classes[self.labels[some]]
            labels = np.searchsorted(self.classes, self.polygons.labels_at(X, P, of))
            wrong = np.flatnonzero(network(X).argmax(axis=1) != labels)
            n_wrong += len(wrong)
            wrong = wrong[: self.drawing.n_learned]
            self.X = np.vstack([self.X, X[wrong]])
            self.labels = np.append(self.labels, labels[wrong])
        return n_wrong

    def _gaps(self, choice: Choice, rows: FloatArray, turned: BoolArray) -> FloatArray:
        """Outputs of the classes that inputs have, less those of all others, as rows.

        On an edge both of its classes are above all others; these are affine along it, so its two
        ends tell.
        """
        T, edges = self._ends(), self.polygons.edges
        X = (edges.X[:, None] + T[:, :, None] * tangents(edges.F)[:, None]).reshape(-1, 2)
        X, a = np.vstack([self.X, X]), np.append(self.labels, np.repeat(self.a, 2))
        b = np.append(self.labels, np.repeat(self.b, 2))
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
    null: FloatArray, cone: FloatArray, plane: LabelledPlane, gaps: FloatArray | None = None
) -> FloatArray | None:
    """Unknowns in a null space, ``null (n, q)``, whose slopes are as far inside a cone as can be.

    The mean of slopes is 1.  None where none are inside.
    """
    drawing, (n, q) = plane.drawing, (plane.n_edges, null.shape[1])
    if not q:
        return None
    gaps = np.empty((0, len(null))) if gaps is None else gaps
    others, most = _bounded(null[n:], drawing.largest)
    least = np.concatenate([np.ones(len(cone)), np.full(len(gaps), drawing.least_gap), 0.0 * most])
    products = np.vstack([-cone @ null[:n], -gaps @ null, others])
    found = linprog(
        np.append(np.zeros(q), -1.0),
        A_ub=np.column_stack([products, least]),
        b_ub=np.append(np.zeros(len(cone) + len(gaps)), most),
        A_eq=np.append(null[:n].sum(axis=0), 0.0)[None],
        b_eq=[float(n)],
        bounds=[(None, None)] * q + [(None, 1.0)],
    )
    if found.status != 0 or found.x[-1] < drawing.least:
        return None
    return np.asarray(null @ found.x[:-1])


def _nearest(
    null: FloatArray, cone: FloatArray, plane: LabelledPlane, gaps: FloatArray
) -> FloatArray | None:
    """Unknowns whose slopes are inside a cone and that miss inequalities by the least sum.

    Inequalities are those of lines that are chosen so far: where none has all of them, lines may
    have others as they move.  None where no slopes are inside the cone.
    """
    middle = _inside(null, cone, plane)
    if middle is None:
        return None
    drawing, (n, q), k = plane.drawing, (plane.n_edges, null.shape[1]), len(gaps)
    least = drawing.edging * float((cone @ middle[:n]).min())
    others, most = _bounded(null[n:], drawing.largest)
    missed = scipy.sparse.eye_array(k)
    found = linprog(
        np.append(np.zeros(q), np.ones(k)),
        A_ub=scipy.sparse.block_array(
            [[-cone @ null[:n], None], [-gaps @ null, -missed], [others, None]]
        ),
        b_ub=np.concatenate(
            [np.full(len(cone), -least), np.full(k, -least * drawing.least_gap), most]
        ),
        A_eq=np.append(null[:n].sum(axis=0), np.zeros(k))[None],
        b_eq=[float(n)],
        bounds=[(None, None)] * q + [(0.0, None)] * k,
    )
    return np.asarray(null @ found.x[:q]) if found.status == 0 else None


def _bounded(rows: FloatArray, largest: float) -> tuple[FloatArray, FloatArray]:
    """Rows whose products are below bounds: those of ``rows (n, q)`` are no larger than that."""
    return np.vstack([rows, -rows]), np.full(2 * len(rows), largest)
