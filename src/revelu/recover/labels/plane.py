"""A network of two inputs whose labels have given polygons for borders.

Bends tell neurons, and where no slopes of edges solve their equations (``edge_slopes``), neurons
are missing that bend no border.  One whose line crosses none may part borders that do not meet.
And a bend's neuron may put out something to a third class whose borders are on both sides of its
line: lines through the bend, which add nothing to the difference of its own two classes, have that
class get what it gets.

Where bends may share a line with others a search tries that out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.network import Network
from revelu.recover.labels.edge_slopes import Choice, EdgeEquations, SlopeCone
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
from revelu.recover.labels.polygons import Polygons
from revelu.types import FloatArray, IntArray


@dataclass(frozen=True)
class Drawing:
    """How a network is found that has polygons for borders."""

    collinearity: Collinearity = Collinearity()  # noqa: RUF009 - frozen
    cone: SlopeCone = SlopeCone()  # noqa: RUF009
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
    n_ways: int = 360
    """Directions in which lines that cross no edge are looked for."""


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
    equations: EdgeEquations = field(init=False)
    linked_first: bool = field(default=False, init=False)
    nodes_left: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        edges = self.polygons.edges
        self.bends = bends_of(self.polygons, self.drawing.collinearity)
        a, b = (np.searchsorted(self.classes, labels) for labels in (edges.a, edges.b))
        self.equations = EdgeEquations(
            self.polygons, self.bends, a, b, len(self.classes), self.drawing.cone
        )

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
        lines, middles = list(self.gaps), self.equations.middles()
        a, b = self.equations.a, self.equations.b
        for i, (lo, hi) in choice.alone:
            F, G, edge = self.bends.F[i], self.bends.G[i], int(self.bends.before[i])
            V = middle_ratios(np.array(lo), np.array(hi)) * G - F
            is_behind, own = middles @ V > 0, (a[edge], b[edge])
            others = np.setdiff1d(np.arange(self.equations.k), own)
            of = [(a == c) | (b == c) for c in others]
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
        if not self.equations.allow(choice):
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

    def _network_of(self, choice: Choice) -> Network | None:
        """The network of a choice that has all labels, too; None where there is none."""
        equations = self.equations
        V, turned = equations.sides(choice)
        null, cone = equations.null(equations.at_edges(choice, V, turned)), equations.cone(choice)
        rows, first = np.where(turned[:, None], -V, V), len(choice.lines)
        for _ in range(self.drawing.n_rounds):
            gaps = equations.gaps(choice, rows, turned, self.X, self.labels)
            x = equations.solved(null, cone, gaps)
            if x is None:
                return None
            network, every = equations.network(choice, x, turned)
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
