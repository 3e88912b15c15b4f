"""The first layer of a target whose answers have few digits, roughly.

1. Lines give rows of all layers, each with its error (:mod:`revelu.recover.fit.line_rows`).
2. A hyperplane of the first layer bends the function wherever it goes, another's ends.
3. The plane through far apart points of a hyperplane is far better known than its row.
4. Where the function changes though all known sums stay as they are, a neuron is missing: lines
   along which they stay show it.
5. A step along a column of the pseudo-inverse of the rows moves one neuron alone: below 0 nothing
   changes, and above it something does.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import bdtrc

from revelu.numerics.confidence import CONFIDENCE, SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.kink_lines import plane_through
from revelu.probe.line import Ask, Line
from revelu.probe.region import Everywhere
from revelu.probe.scan import LineScan
from revelu.recover.fit.crossings import Crossings
from revelu.recover.fit.line_rows import LineRows
from revelu.recover.rows import Rows
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class RoughRows:
    """How a first layer is found where answers have few digits."""

    rows: LineRows = field(default_factory=LineRows)
    """How rows are measured."""
    crossings: Crossings = field(default_factory=Crossings)
    """How hyperplanes are followed."""
    max_lines: int = 12
    max_quiet: int = 8
    """Lines at most, and lines without a new row of the first layer that end the search."""
    unseen: float = 1.0 - CONFIDENCE
    """Of as many rows as inputs none is missing where all lines together would have met one with
    this probability's complement."""
    n_pairs: int = 24
    """Pairs of inputs between which nothing changes once no row is missing."""
    n_tests: tuple[int, ...] = (3, 8)
    """Lines across a hyperplane that tell in turn whether it goes on,"""
    n_doubted: int = 24
    """and across each where those that go on depend on each other,"""
    false: float = 0.1
    false_alarm: float = 1e-2
    """when a false one shows: more lines miss it than this share explains, of which a true one has
    no more, but with so small a probability;"""
    in_it: float = 1e-3
    """or where it is one of those that depend on each other with such a coefficient, at least,
    relative to the largest, and signs show without it."""
    spare: int = 8
    """Points of a hyperplane beyond the unknowns of its plane,"""
    max_rounds: int = 3
    """asked for in ``max_rounds`` rounds at most."""
    fine: float = 1e-5
    """Rows of a larger error are measured once more,"""
    worst: float = 1e-3
    """and left out where it stays larger than this."""
    straight: float = 0.3
    """Share of the bends at a hyperplane that as many lines may miss it by."""
    apart: float = 1e-2
    """Rows that differ by less, or by what their errors explain, are one."""
    step: float = 0.03
    """Of a test of a sign, relative to the size of the point,"""
    max_votes: int = 10
    """tested so often at most,"""
    decisive: int = 3
    """and decided by a lead of ``decisive``."""
    shows: float = 30.0
    """What a neuron changes, in errors of the answers, so that a test counts;"""
    quiet: float = 0.05
    """and what may change on its other side, as a share of it."""

    def find(
        self,
        ask: Ask,
        d: int,
        noise: NoiseFloor,
        rng: np.random.Generator,
        known: Rows | None = None,
        first: Rows | None = None,
    ) -> tuple[Rows, Rows]:
        """Find rows on lines, until none of the first layer is missing or shows.

        Parameters
        ----------
        known : Rows, optional
            Of lines that have been asked, to begin with.
        first : Rows, optional
            Of norm 1, of the first layer for sure.

        Returns
        -------
        first : Rows
            Of the first layer, of norm 1.
        others : Rows
            Of norm 1, of neurons above it, as seen on the lines.
        """
        k = len(noise.scale)
        seen, ended, n_quiet = Rows.none(d, k), Rows.none(d, k), 0
        first = Rows.none(d, k) if first is None else first
        line: Line | None = None
        unseen = 1.0
        for turn in range(self.max_lines):
            is_paid = turn == 0 and known is not None
            # A row of which it is not known whether it ends is measured again, and all are where
            # one is missing: a hyperplane that others cross too often seems to end.
            told = first.joined(ended) if line is None else first
            more, seen_share = known, 0.0
            if not is_paid:
                more, seen_share = self._on_line(ask, d, noise, told, first, rng, line)
            unseen *= 1.0 - seen_share
            was_beside, line = line is not None, None
            if more is None:
                continue
            seen = seen.joined(more)
            n_known = len(first)
            going_on, ends = self._going_on(ask, noise, first, unit(more), rng)
            first, ended = self.joined(first, going_on), ended.joined(ends)
            if _dependence(first) is not None:
                # A hyperplane that ends seldom passes for one that does not.
                first, false = self._without_false(ask, noise, first, rng)
                ended = ended.joined(false)
                if len(first) > d:
                    break
            n_quiet = n_quiet + 1 if len(first) == n_known else 0
            # Lines that show no more of the first layer show more of the upper one.
            if n_quiet == self.max_quiet:
                break
            if not (n_quiet or was_beside):
                continue
            if len(first) >= d:
                # There may be more of them than inputs, and no direction is left to tell.
                if unseen <= self.unseen:
                    break
            elif self._is_whole(ask, noise, first, rng):
                break
            if 0 < len(first) < d and isinstance(self.rows.region, Everywhere):
                line = beside(first, rng)
        others = unit(seen)
        return first, others.take(self._are_new(others, first))

    def _on_line(
        self,
        ask: Ask,
        d: int,
        noise: NoiseFloor,
        told: Rows,
        first: Rows,
        rng: np.random.Generator,
        line: Line | None,
    ) -> tuple[Rows | None, float]:
        """New rows of a line, and with which probability it has shown one that is missing.

        It meets as many hyperplanes of the first layer as of those known, and shows as many rows as
        of its kinks that no known one makes.
        """
        scan = self.rows.scan(ask, d, noise, rng, line)
        if scan is None:
            return None, 0.0
        made_by = self.rows.known_of_kinks(scan, told, noise)
        more, n_new = self.rows.measure(ask, scan, told, made_by, noise, rng), (made_by < 0).sum()
        return more, _share_met(first, scan) * len(more) / max(n_new, 1)

    def _is_whole(self, ask: Ask, noise: NoiseFloor, first: Rows, rng: np.random.Generator) -> bool:
        """Whether nothing changes where the sums of all rows stay: of fewer than inputs."""
        m, d = first.W.shape
        if not m:
            return False
        basis = np.linalg.qr(first.W.T)[0]
        region = self.crossings.region
        X, moves = np.split(region.points(rng, 2 * self.n_pairs, d), 2)
        moves = moves - X
        moves = region.inside(X, moves - (moves @ basis) @ basis.T)
        at, moved = np.split(ask(np.vstack([X, X + moves])) / noise.unit, 2)
        # Saturated answers say nothing.
        seen = np.isfinite(at + moved).all(axis=1)
        at, moved, X, moves = at[seen], moved[seen], X[seen], moves[seen]
        growth = noise.growth(X) + noise.growth(X + moves)
        # Sums change by as much as rows err along the move, and answers as they do with sums.
        sums = np.median(first.errors) * np.linalg.norm(moves, axis=1, keepdims=True)
        error = np.hypot(noise.relative * growth[:, None], sums * at.std(axis=0))
        is_same = np.abs(moved - at) <= SIGMAS * error
        return bool(seen.any() and is_same.all())

    def joined(self, first: Rows, more: Rows) -> Rows:
        """Add those of some rows that are none of the first."""
        for i in range(len(more)):
            row = more.take(np.array([i]))
            first = first.joined(row.take(self._are_new(row, first)))
        return first

    def _going_on(
        self, ask: Ask, noise: NoiseFloor, first: Rows, new: Rows, rng: np.random.Generator
    ) -> tuple[Rows, Rows]:
        """Those of some rows that bend the function wherever they go, and those that do not.

        The first are measured well.
        """
        new = new.take(self._are_new(new, first))
        ended = new.take(np.zeros(len(new), dtype=bool))
        for n in self.n_tests:
            if len(new):
                crossed = self.crossings.cross(ask, noise, new, n, rng)
                ended, new = ended.joined(new.take(crossed.ends)), new.take(crossed.goes_on)
        new = self._sharpened(ask, noise, new, rng)
        vague = np.flatnonzero(new.errors > self.fine)
        if len(vague):
            again = self._sharpened(ask, noise, new.take(vague), rng)
            sure = np.flatnonzero(new.errors <= self.fine)
            new = new.take(sure).joined(again)
        return new.take(new.errors < self.worst), ended

    def _without_false(
        self, ask: Ask, noise: NoiseFloor, rows: Rows, rng: np.random.Generator
    ) -> tuple[Rows, Rows]:
        """Rows of the first layer among some that are dependent, and those that end.

        An upper row is a combination of the first layer's.  With it among these no step moves one
        of them alone; without it each has a sign that shows.
        """
        crossed = self.crossings.cross(ask, noise, rows, self.n_doubted, rng)
        n_kinks, n_straight = crossed.is_kink.sum(axis=1), crossed.is_straight.sum(axis=1)
        # The probability that as many lines or more miss a true one.
        by_chance = bdtrc(n_straight - 1.0, n_kinks + n_straight, self.false)
        is_true = (n_straight == 0) | (by_chance > self.false_alarm)
        rows, ended = rows.take(is_true), rows.take(~is_true)
        while len(rows) <= rows.W.shape[1] and (share := _dependence(rows)) is not None:
            n_told = int(np.count_nonzero(self.signs(ask, noise, rows, rng)))
            best: int | None = None
            for i in np.flatnonzero(share > self.in_it):
                others = rows.take(np.arange(len(rows)) != i)
                n = int(np.count_nonzero(self.signs(ask, noise, others, rng)))
                if n > n_told:
                    n_told, best = n, int(i)
            if best is None:
                break
            is_true = np.arange(len(rows)) != best
            rows, ended = rows.take(is_true), ended.joined(rows.take(~is_true))
        return rows, ended

    def _sharpened(self, ask: Ask, noise: NoiseFloor, rows: Rows, rng: np.random.Generator) -> Rows:
        """Take the plane through points of each; rows that end go."""
        if not len(rows):
            return rows
        m, d = rows.W.shape
        wanted = d + 1 + self.spare + d // 10
        points: list[FloatArray] = [np.empty((0, d + 1))] * m
        off: list[FloatArray] = [np.empty(0)] * m
        n_kinks, n_straight, todo, n = np.zeros(m), np.zeros(m), np.arange(m), wanted
        for _ in range(self.max_rounds):
            crossed = self.crossings.cross(ask, noise, rows.take(todo), n, rng)
            n_kinks[todo] += crossed.is_kink.sum(axis=1)
            n_straight[todo] += crossed.is_straight.sum(axis=1)
            for i, own, A, errors in zip(
                todo, crossed.is_kink, crossed.points, crossed.errors, strict=True
            ):
                points[i] = np.vstack([points[i], A[own]])
                off[i] = np.append(off[i], errors[own])
            lacks = wanted - n_kinks
            todo = np.flatnonzero((lacks > 0) & (n_straight <= self.straight * n_kinks))
            if not len(todo):
                break
            # Some of these lines, too, will cross several hyperplanes.
            n = int(np.ceil(1.5 * lacks[todo].max()))
        W, b, sharp = rows.W.copy(), rows.b.copy(), rows.errors.copy()
        for i in np.flatnonzero(n_kinks >= d + 2):
            row, sharp[i] = plane_through(points[i], off[i], np.append(W[i], b[i]))
            W[i], b[i] = row[:-1], row[-1]
        stays = n_straight <= self.straight * n_kinks
        return replace(rows, W=W, b=b, errors=sharp).take(stays)

    def _are_new(self, rows: Rows, known: Rows) -> BoolArray:
        """Which rows are none of the known ones, up to its sign, shape (m,)."""
        apart = [np.abs(rows.W[:, None] - sign * known.W[None]).max(axis=2) for sign in (1.0, -1.0)]
        nearest = np.minimum(*apart).min(axis=1, initial=np.inf)
        return np.asarray(nearest > np.maximum(SIGMAS * rows.errors, self.apart))

    def signs(self, ask: Ask, noise: NoiseFloor, rows: Rows, rng: np.random.Generator) -> IntArray:
        """Tell the side of each hyperplane on which its neuron is on: 1, -1, or 0 if not seen."""
        columns = np.linalg.pinv(rows.W).T
        votes = np.zeros(len(rows), dtype=np.intp)
        for _ in range(self.max_votes):
            open_ = np.flatnonzero(np.abs(votes) < self.decisive)
            if not len(open_):
                break
            X, _ = self.crossings.region.points_on_hyperplanes(rng, rows.W[open_], rows.b[open_])
            size = np.linalg.norm(X, axis=1) / np.linalg.norm(columns[open_], axis=1)
            moves = (self.step * size)[:, None] * columns[open_]
            Y = ask(np.vstack([X, X + moves, X - moves])) / noise.unit
            at, up, down = np.split(Y, 3)
            rises, falls = (np.abs(Z - at).max(axis=1) for Z in (up, down))
            least = self.shows * noise.relative * noise.growth(X)
            votes[open_] += (rises > least) & (falls < self.quiet * rises)
            votes[open_] -= (falls > least) & (rises < self.quiet * falls)
        return np.sign(votes)


def _share_met(rows: Rows, scan: LineScan) -> float:
    """Share of hyperplanes that a line meets where it was asked: of infinite ones it is 1."""
    with np.errstate(divide="ignore"):
        t = -(rows.W @ scan.line.x0 + rows.b) / (rows.W @ scan.line.v)
    lo, hi = scan.interval
    return float(((lo < t) & (t < hi)).mean()) if len(rows) else 0.0


def _dependence(rows: Rows) -> FloatArray | None:
    """Coefficients of a dependence among rows, the largest 1, shape (m,); None where there is none.

    Rows that are dependent but for their errors have a singular value of no more than these.
    """
    if len(rows) < 2:
        return None
    U, s, _ = np.linalg.svd(rows.W)
    if len(rows) <= len(s) and s[-1] > SIGMAS * np.linalg.norm(rows.errors):
        return None
    return np.asarray(np.abs(U[:, -1]) / np.abs(U[:, -1]).max())


def beside(first: Rows, rng: np.random.Generator) -> Line:
    """A line along which known sums stay as they are: what bends there hears a missing neuron."""
    d = first.W.shape[1]
    basis = np.linalg.qr(first.W.T)[0]
    x, v = rng.standard_normal((2, d))
    v = v - basis @ (basis.T @ v)
    v /= np.linalg.norm(v)
    x = x - (x @ v) * v
    return Line(x, np.linalg.norm(x) * v)


def unit(rows: Rows) -> Rows:
    """Scale rows to norm 1."""
    norms = np.linalg.norm(rows.W, axis=1)
    A = rows.A * norms[:, None]
    return replace(rows, W=rows.W / norms[:, None], b=rows.b / norms, A=A)
