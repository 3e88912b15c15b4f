"""Rows that several lines have met, each from all that these say of it.

A line that meets the hyperplane of a neuron ``f = ... + a relu(w'x + b)`` shows where, and by how
much the slope changes there: two linear equations for ``(w, b)``, scaled so that ``|a| = 1``::

    w' x + b = 0     at the kink ``x``, to the error of its place times ``|w' v|``;
    w' v = |jump|    along the line ``v``, to the error of the slopes beside it.

Both are far more exact than the difference of gradients that a row was measured by, which stays as
what was known before (its error is ``e |w| / sqrt(d)`` in each direction).  They are put
together as Gaussian ones (:mod:`revelu.numerics.equations`).
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.numerics.equations import Equations
from revelu.numerics.matching import match_within
from revelu.oracle import NoiseFloor
from revelu.probe.line import Line
from revelu.probe.scan import LineScan
from revelu.recover.rows import Rows
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class MeasuredKinks:
    """The kinks of a line, with their errors."""

    scan: LineScan
    places: FloatArray
    """Shape (n,).  Standard errors of where they are, of ``arctan t``."""
    jumps: FloatArray
    """Shape (n,).  Standard errors of the norms of their jumps."""

    @classmethod
    def of(cls, scan: LineScan, noise: NoiseFloor) -> "MeasuredKinks":
        """Those of a line that was searched."""
        lift, errors = np.hypot(1.0, scan.kinks), noise.typical * scan.sigma
        beside = list(pairwise([piece.strained(errors) for piece in scan.pieces]))
        places = np.array([left.meet(right, errors).error for left, right in beside])
        # A slope is the difference of two answers over the angle between them.
        slopes = [errors * np.hypot(p.slope_error(), q.slope_error()) for p, q in beside]
        jumps = np.linalg.norm(np.reshape(slopes, scan.jumps.shape), axis=1)
        return cls(scan, places, jumps / lift)

    def equations(self, i: int, column: FloatArray, side: float) -> Equations:
        """What a kink says of the row that makes it, on whose side the line goes."""
        line, t = self.scan.line, float(self.scan.kinks[i])
        along = float(self.scan.jumps[i] @ column) / float(column @ column)
        E = np.vstack([np.append(line.points(np.array([t]))[0], 1.0), np.append(line.v, 0.0)])
        place = abs(along) * self.places[i] * (1.0 + t**2)
        slope = self.jumps[i] / float(np.linalg.norm(column))
        return Equations(E, np.array([0.0, side * along]), np.array([place, slope]))


@dataclass
class Sightings:
    """Rows, and what lines have shown of them."""

    rows: Rows
    """From all of it."""
    first: Rows = field(init=False)
    """As they were measured."""
    equations: list[Equations] = field(init=False)
    """Of each row."""
    n_expected: IntArray = field(init=False)
    n_met: IntArray = field(init=False)
    """Shape (m,).  Lines since then that would meet a row's hyperplane where they were asked,
    and that did."""

    def __post_init__(self) -> None:
        m, e = self.rows.W.shape[0], self.rows.W.shape[1] + 1
        self.first = self.rows
        self.equations = [Equations(np.empty((0, e)), np.empty(0), np.empty(0))] * m
        self.n_expected, self.n_met = np.zeros(m, np.intp), np.zeros(m, np.intp)

    def __len__(self) -> int:
        return len(self.rows)

    def makers(
        self,
        kinks: MeasuredKinks,
        *,
        sure: float = 4.0,
        same: float = 0.01,
        by_chance: float = 0.02,
    ) -> tuple[IntArray, BoolArray]:
        """Tell which row makes each kink of a line, one to one.

        Parameters
        ----------
        sure : float
            Standard errors of a row, beyond which another neuron makes the kink.
        same : float
            Share of a jump that fainter kinks beside it, which no line shows, may add.
        by_chance : float
            A line tells of a row where it has fewer kinks of others than this that lie where the
            row may be, and bend as it may: of a vague row one of several says nothing.

        Returns
        -------
        made_by : ndarray of int, shape (n,)
            -1 where no row makes it.
        tells : ndarray of bool, shape (m,)
            Of which rows the line tells.
        """
        scan, found = kinks.scan, np.full(len(kinks.scan.kinks), -1, dtype=np.intp)
        if not len(self) or not len(found):
            return found, np.ones(len(self), dtype=bool)
        slopes, t = _met(self.rows, scan.line)
        at = np.column_stack([scan.line.points(t), np.ones(len(t))])
        along = np.append(scan.line.v, 0.0)
        place = np.sqrt([self.variance(j, c) for j, c in enumerate(at)]) / np.abs(slopes)
        slope = np.sqrt([self.variance(j, along) for j in range(len(t))])
        near = sure * place / (1.0 + t**2) + SIGMAS * kinks.places[:, None]
        columns = self.rows.A * np.abs(slopes)[:, None]
        like = sure * slope * np.linalg.norm(self.rows.A, axis=1) + SIGMAS * kinks.jumps[:, None]
        like += same * np.linalg.norm(columns, axis=1)
        apart = np.abs(np.arctan(scan.kinks)[:, None] - np.arctan(t)) / near
        differ = np.linalg.norm(scan.jumps[:, None] - columns, axis=2) / like
        made_by = match_within(np.maximum(apart, differ))
        # Angles of kinks are even on a line of a Gaussian's: a window takes its share of pi.
        chances = (differ < 1.0) * np.minimum(2.0 * near / np.pi, 1.0)
        tells = np.zeros(len(t), dtype=bool)
        for _ in range(len(t)):
            # A kink of a row that the line tells of is that row's alone.
            is_told = (made_by >= 0) & tells[made_by]
            tells = chances[~is_told].sum(axis=0) < by_chance
        return made_by, tells

    def take(self, kinks: MeasuredKinks, made_by: IntArray, tells: BoolArray) -> None:
        """Take in what a line says of the rows that make its kinks.

        Parameters
        ----------
        made_by : ndarray of int, shape (n,)
        tells : ndarray of bool, shape (m,)
            Which row makes each kink, and of which the line tells, as :meth:`makers` says.
        """
        scan, t = kinks.scan, _met(self.rows, kinks.scan.line)[1]
        self.n_expected += (t > scan.interval[0]) & (t < scan.interval[1]) & tells
        seen = np.flatnonzero(made_by >= 0)
        seen = seen[tells[made_by[seen]]]
        self.n_met[made_by[seen]] += 1
        for i in seen[scan.is_single[seen]].tolist():
            self._add(kinks, i, int(made_by[i]))

    def join(self, more: Rows, kinks: MeasuredKinks) -> None:
        """Take in rows that a line has shown, with what it says of them beside."""
        n, line, scan = len(self), kinks.scan.line, kinks.scan
        t = (more.X - line.x0) @ line.v / (line.v @ line.v)
        which = [int(np.abs(scan.kinks - place).argmin()) for place in t]
        # Along the line a row is the change of the slope.
        along = kinks.jumps[which] / np.linalg.norm(scan.jumps[which], axis=1)
        other = Sightings(replace(more, errors=np.hypot(more.errors, along)))
        more = other.rows
        self.rows, self.first = self.rows.joined(more), self.first.joined(more)
        self.equations = self.equations + other.equations
        self.n_expected = np.append(self.n_expected, other.n_expected)
        self.n_met = np.append(self.n_met, other.n_met)
        for j, i in enumerate(which, start=n):
            self._add(kinks, i, j)

    def keep(self, which: IntArray) -> None:
        """Forget the other rows."""
        self.rows, self.first = self.rows.take(which), self.first.take(which)
        self.equations = [self.equations[j] for j in which.tolist()]
        self.n_expected, self.n_met = self.n_expected[which], self.n_met[which]

    def confirmed(self, enough: int = 2) -> Rows:
        """Return the rows that lines have met, or that fewer than ``enough`` should have."""
        return self.rows.take((self.n_expected < enough) | (self.n_met > 0))

    def variance(self, j: int, c: FloatArray) -> float:
        """Return the variance of ``c' (w, b)`` of a row, ``c`` being of shape (d + 1,)."""
        return self.equations[j].variance(self._before(j), c) * self._strain(j) ** 2

    def factors(self) -> FloatArray:
        """``R`` with ``R'R`` the precision of each row ``(w, b)``, shape (m, d + 1, d + 1)."""
        found = np.empty((len(self), *2 * (self.first.W.shape[1] + 1,)))
        for j, known in enumerate(self.equations):
            found[j] = known.factor(self._before(j)) / self._strain(j)
        return found

    def _strain(self, j: int) -> float:
        """By how much what is known of a row disagrees: faint bends that no line shows shift it."""
        u0 = np.append(self.first.W[j], self.first.b[j])
        return self.equations[j].strain(self._before(j), u0, n_free=1)

    def _before(self, j: int) -> FloatArray:
        """The variances of a row before any equation; of its bias nothing is known."""
        W, X = self.first.W[j], self.first.X[j]
        each = self.first.errors[j] ** 2 * float(W @ W) / len(W)
        return np.append(np.full(len(W), each), float(W @ W) * (len(W) + float(X @ X)))

    def near_middle(self, within: float) -> Self:
        """The same where hyperplanes pass the middle, with ``within`` for a standard error."""
        for j, size in enumerate(np.linalg.norm(self.rows.W, axis=1).tolist()):
            bias = np.eye(1, self.rows.W.shape[1] + 1, self.rows.W.shape[1])
            self._know(j, Equations(bias, np.zeros(1), np.array([within * size])))
        return self

    def _add(self, kinks: MeasuredKinks, i: int, j: int) -> None:
        """Add what a kink says of a row, and solve for it."""
        side = float(np.sign(self.rows.W[j] @ kinks.scan.line.v)) or 1.0
        self._know(j, kinks.equations(i, self.first.A[j], side))

    def _know(self, j: int, more: Equations) -> None:
        self.equations[j] = known = self.equations[j].joined(more)
        u = known.mean(self._before(j), np.append(self.first.W[j], self.first.b[j]))
        W, b = self.rows.W.copy(), self.rows.b.copy()
        W[j], b[j] = u[:-1], u[-1]
        self.rows = replace(self.rows, W=W, b=b)


def _met(rows: Rows, line: Line) -> tuple[FloatArray, FloatArray]:
    """How fast a line goes through the hyperplanes of rows, and where."""
    slopes = rows.W @ line.v
    slopes = np.where(slopes == 0, np.finfo(np.float64).tiny, slopes)
    return slopes, -(rows.W @ line.x0 + rows.b) / slopes
