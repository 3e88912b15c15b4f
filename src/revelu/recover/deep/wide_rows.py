"""A first layer wider than the input, from answers of few digits: rows that lines agree on.

A hyperplane of the first layer meets nearly every line, and each shows where, to the digits of the
answers, and roughly in which direction.  From one line's row it is foretold where it meets the
others, the next line first where that is told best; what is met there makes the row more precise.
A hyperplane of an upper neuron has turned before it gets to another line.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.hyperplane import points_on_hyperplanes
from revelu.probe.kink_lines import KinkLines, plane_through
from revelu.probe.line import Ask
from revelu.recover.deep.rough_rows import RoughRows, unit
from revelu.recover.method import Layer
from revelu.recover.rows import Rows
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class WideRows:
    """How a first layer is found that is wider than the input.

    Attributes
    ----------
    rough : RoughRows
        How rows are measured.
    n_lines : tuple of int
        Lines of one round after the other,
    max_quiet : int
        until so many in a row show no new row: traces above a layer that lacks one go astray.
    place : float
        How far off a kink of a line may be, relative to its point: several are near each other;
    least_off : float
        and of that share at least, where most of many are nearer,
    near : float
        and from a known hyperplane so many times that.
    sharp : float
        Rows of lines err by this share of what is claimed of them at most, most by less.
    least : int
        Lines that have to agree.
    n_tests : int
        At so many points of each hyperplane it is seen first whether it may go on (0: that is not
        looked at),
    met, met_longer : float
        if it is met at this share of them, or on longer lines at that,
    middle : float
        no farther from the middle than this share of them.
    n_points : int
        Points of each hyperplane that its row is taken from at last,
    n_drawn : int
        of so many times more those that other hyperplanes are farthest from;
    fine : float
        twice as many of those rows whose error is larger,
    longer, clear : float
        on lines so many times as long, up to this share of the way to other hyperplanes,
    goes_on_longer : float
        if those that were not met at half of the points before are at this share of them;
    worst : float
        those of a larger error go.
    """

    rough: RoughRows = field(default_factory=RoughRows)
    n_lines: tuple[int, ...] = (4, *16 * (2,))
    max_quiet: int = 2
    place: float = 1e-5
    least_off: float = 0.01
    near: float = 3.0
    sharp: float = 0.5
    least: int = 2
    n_tests: int = 6
    met: float = 0.3
    met_longer: float = 0.5
    middle: float = 0.15
    n_points: int = 16
    n_drawn: int = 8
    fine: float = 4e-6
    longer: float = 10.0
    clear: float = 0.7
    goes_on_longer: float = 0.75
    worst: float = 1e-4

    def find(
        self,
        ask: Ask,
        d: int,
        noise: NoiseFloor,
        rng: np.random.Generator,
    ) -> tuple[Rows, Rows]:
        """Find rows of the first layer, and others above it, of norm 1."""
        none = Rows.none(d, len(noise.scale))
        seen, lines, first = none, np.empty(0, dtype=np.intp), none
        n_quiet = 0
        for n in self.n_lines:
            n_known = len(first)
            seen, lines, first = self._looked(ask, noise, rng, first, (seen, lines), n)
            n_quiet = n_quiet + 1 if n_known and len(first) == n_known else 0
            if n_quiet == self.max_quiet:
                break
        return first, seen.take(~self._explained(seen, first))

    def lacking(
        self,
        ask: Ask,
        d: int,
        noise: NoiseFloor,
        layer: Layer,
        rng: np.random.Generator,
        n_lines: int,
    ) -> Rows:
        """Find rows of the first layer that a layer of rows of norm 1 lacks, on fresh lines."""
        (W, b), none = layer, Rows.none(d, len(noise.scale))
        m = len(b)
        A, errors = np.tile(noise.unit, (m, 1)), np.full(m, self.fine)
        first = Rows(W, b, A, errors, -b[:, None] * W)
        found = self._looked(ask, noise, rng, first, (none, np.empty(0, dtype=np.intp)), n_lines)[2]
        return found.take(np.arange(m, len(found)))

    def _looked(
        self,
        ask: Ask,
        noise: NoiseFloor,
        rng: np.random.Generator,
        first: Rows,
        before: tuple[Rows, IntArray],
        n_lines: int,
    ) -> tuple[Rows, IntArray, Rows]:
        """Look at more lines: all rows seen, their lines, and the first layer's."""
        (seen, lines), d = before, first.W.shape[1]
        for _ in range(n_lines):
            more = self.rough.rows.find_new(ask, d, noise, first, rng)
            if more is not None:
                lines = np.append(lines, np.full(len(more), lines.max(initial=-1) + 1))
                seen = seen.joined(unit(more))
        # What a wrong plane has taken is free again once that is found not to go on.
        is_open = ~self._explained(seen, first)
        some = self.agreeing(seen.take(is_open), lines[is_open])
        more, goes_on = self.measured(ask, noise, some, first, rng)
        more = more.take(goes_on)
        return seen, lines, self.rough.joined(first, more)

    def _explained(self, seen: Rows, first: Rows) -> BoolArray:
        """Which rows of lines are those of known hyperplanes."""
        on = np.abs(seen.X @ first.W.T + first.b) <= self.near * self.place * _sizes(seen)[:, None]
        turned = np.sqrt(np.maximum(1.0 - np.abs(seen.W @ first.W.T), 0.0))
        return np.asarray((on & (turned <= SIGMAS * self.sharp * seen.errors[:, None])).any(axis=1))

    def measured(
        self, ask: Ask, noise: NoiseFloor, rows: Rows, known: Rows, rng: np.random.Generator
    ) -> tuple[Rows, BoolArray]:
        """Take the plane through points of each, those again that are vague after that.

        Returns
        -------
        rows : Rows
        goes_on : ndarray of bool, shape (m,)
            Whether the function bends where each row's hyperplane is, as far as points were taken.
        """
        goes_on = np.zeros(len(rows), dtype=bool)
        W, b, errors = rows.W.copy(), rows.b.copy(), rows.errors.copy()
        may_go_on = self._may_go_on(ask, noise, rows, known, rng)
        todo, sigma = np.flatnonzero(may_go_on), self.rough.crossings.noise * noise.relative
        d = W.shape[1]
        for n in (self.n_points, 2 * self.n_points):
            if not len(todo):
                break
            is_last = n > self.n_points
            longer = np.where(goes_on[todo], 1.0, self.longer if is_last else 1.0)
            lines = self._clear_lines(W, b, errors, todo, known, n, longer, noise, rng)
            seen = lines.read(ask(lines.points) / noise.unit, sigma)
            points = np.column_stack([lines.meets(seen), np.ones(len(lines.X))])
            parts = (a.reshape(len(todo), n, -1) for a in (seen.is_kink, points, seen.tau_error))
            for i, is_kink, A, off in zip(todo, *parts, strict=True):
                own = is_kink[:, 0]
                share = self.goes_on_longer if is_last and not goes_on[i] else 0.5
                # A plane that others bend claims more than more points of it confirm.
                goes_on[i] = False
                if own.sum() < max(d + 2, share * n):
                    continue
                row, error = plane_through(A[own], off[own, 0], np.append(W[i], b[i]))
                agrees = np.linalg.norm(row[:-1] - W[i]) <= SIGMAS * max(errors[i], self.fine)
                if agrees:
                    W[i], b[i], errors[i] = row[:-1], row[-1], error
                goes_on[i] = agrees and errors[i] < self.worst
            todo = np.flatnonzero(may_go_on & (errors > self.fine))
        return replace(rows, W=W, b=b, errors=errors), goes_on

    def _may_go_on(
        self, ask: Ask, noise: NoiseFloor, rows: Rows, known: Rows, rng: np.random.Generator
    ) -> BoolArray:
        """Whether the function bends at a few points of each hyperplane, or on longer lines there.

        Most planes that two lines happen to agree on are no neuron's.
        """
        n, may = self.n_tests, np.zeros(len(rows), dtype=bool)
        sigma = self.rough.crossings.noise * noise.relative
        for longer, share in ((1.0, self.met), (self.longer, self.met_longer)):
            todo = np.flatnonzero(~may)
            if not n or not len(todo):
                break
            W, b, errors = rows.W, rows.b, rows.errors
            wide = np.full(len(todo), longer)
            lines = self._clear_lines(W, b, errors, todo, known, n, wide, noise, rng)
            seen = lines.read(ask(lines.points) / noise.unit, sigma)
            # Kinks of others lie anywhere on a line, its own in the middle.
            own = seen.is_kink & (np.abs(seen.tau) <= self.middle * lines.T)
            may[todo] = own.reshape(len(todo), n).mean(axis=1) >= share
        return may | (n == 0)

    def _clear_lines(
        self,
        W: FloatArray,
        b: FloatArray,
        errors: FloatArray,
        which: IntArray,
        known: Rows,
        n: int,
        longer: FloatArray,
        noise: NoiseFloor,
        rng: np.random.Generator,
    ) -> KinkLines:
        """Lines across hyperplanes, ``n`` each, where no other hyperplane is near.

        Those of faint neurons show on longer ones.
        """
        rows = np.repeat(which, n * self.n_drawn)
        X, M = points_on_hyperplanes(rng, W[rows], b[rows])
        growth = noise.growth(X)
        with np.errstate(divide="ignore"):
            away = np.abs((X @ W.T + b) / (M @ W.T))
            other = np.abs((X @ known.W.T + known.b) / (M @ known.W.T))
        away[np.arange(len(X)), rows] = np.inf
        room = np.minimum(away.min(axis=1), other.min(axis=1, initial=np.inf)) / growth
        order = np.argsort(-room.reshape(len(which), -1), axis=1)[:, :n]
        best = (order + np.arange(len(which))[:, None] * n * self.n_drawn).ravel()
        how = self.rough.crossings
        T = np.clip(how.margin * errors[rows[best]], how.shortest, how.longest)
        T = np.clip(np.repeat(longer, n) * T, T, np.maximum(self.clear * room[best], T))
        T = T * growth[best]
        return KinkLines(X[best], M[best], np.zeros(len(best)), T)

    def agreeing(self, seen: Rows, lines: IntArray) -> Rows:
        """Rows that several lines agree on."""
        taken = np.zeros(len(seen), dtype=bool)
        kept, W, b, errors = [], [], [], []
        for i in np.argsort(seen.errors, kind="stable"):
            if taken[i]:
                continue
            plane = _Plane(self, seen, lines, int(i), taken)
            if plane.is_first:
                taken[plane.members] = True
                kept.append(i)
                W.append(plane.row[:-1])
                b.append(plane.row[-1])
                errors.append(plane.error)
        first = seen.take(np.array(kept, dtype=np.intp))
        if not kept:
            return first
        return replace(first, W=np.array(W), b=np.array(b), errors=np.array(errors))


class _Plane:
    """A hyperplane through what lines have shown, from one of their rows."""

    def __init__(
        self, how: WideRows, seen: Rows, lines: IntArray, start: int, taken: BoolArray
    ) -> None:
        self.how, self.seen, self.lines = how, seen, lines
        self.H = np.column_stack([seen.X, np.ones(len(seen))])
        self.off = how.place * _sizes(seen)
        self.members = [start]
        self.row = np.append(seen.W[start], seen.b[start])
        self._solve()
        is_open = ~taken & (lines != lines[start])
        while is_open.any():
            k = self._next(np.flatnonzero(is_open))
            if k is None:
                break
            self.members.append(k)
            is_open &= lines != lines[k]
            self._solve()

    def _solve(self) -> None:
        """Least squares over where it was met, and in which directions.

        Where it is met more often than it has unknowns, what is off is forgotten: of all kinks
        some are near by chance.
        """
        d, members = len(self.row) - 1, self.members
        weights = np.ones(len(members))
        for turn in range(6 if len(members) > d + 1 else 2):
            if turn > 1:
                off = np.abs(self.H[members] @ self.row) / self.off[members]
                typical = max(float(np.median(off)), self.how.least_off)
                weights = 1.0 / np.sqrt(1.0 + (off / (3.0 * typical)) ** 2)
            self._step(weights)

    def _step(self, weights: FloatArray) -> None:
        d, members = len(self.row) - 1, self.members
        w = self.row[:-1]
        across = np.eye(d) - np.outer(w, w)
        sure = weights / self.off[members]
        A = [self.H[members] * sure[:, None], np.append(w, 0.0)[None] * 1e9]
        y = [-A[0] @ self.row, np.zeros(1)]
        for k, weight in zip(members, weights, strict=True):
            error = (self.how.sharp * self.seen.errors[k] / np.sqrt(d) + 1e-6) / weight
            normal = self.seen.W[k] * np.sign(self.seen.W[k] @ w)
            A.append(np.column_stack([across, np.zeros(d)]) / error)
            y.append(across @ (normal - w) / error)
        M = np.vstack(A)
        self.row = self.row + np.linalg.lstsq(M, np.concatenate(y), rcond=None)[0]
        self.row /= np.linalg.norm(self.row[:-1])
        self.covariance = np.linalg.pinv(M.T @ M)

    @property
    def error(self) -> float:
        """Standard error of the row."""
        return float(np.sqrt(np.trace(self.covariance[:-1, :-1])))

    def _apart(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """How far points are from the hyperplane, and how well that is known."""
        H = self.H[rows]
        spread = np.einsum("ij,jk,ik->i", H, self.covariance, H)
        doubt = np.sqrt(np.maximum(spread, 0.0) + self.off[rows] ** 2)
        return np.abs(H @ self.row), doubt

    def _next(self, rows: IntArray) -> int | None:
        """What agrees with it on another line, where that was foretold best."""
        apart, doubt = self._apart(rows)
        w, errors = self.row[:-1], self.how.sharp * self.seen.errors[rows]
        turned = np.linalg.norm(
            self.seen.W[rows] * np.sign(self.seen.W[rows] @ w)[:, None] - w, axis=1
        )
        fits = (apart <= SIGMAS * doubt) & (turned <= SIGMAS * np.hypot(errors, self.error))
        if not fits.any():
            return None
        return int(rows[fits][doubt[fits].argmin()])

    @property
    def is_first(self) -> bool:
        """Whether enough lines agree."""
        return len(self.members) >= self.how.least


def _sizes(rows: Rows) -> FloatArray:
    """Of points, in homogeneous coordinates."""
    return np.asarray(np.sqrt(1.0 + (rows.X**2).sum(axis=1)))
