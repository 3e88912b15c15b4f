"""A first layer wider than the input, from answers of few digits: rows that lines agree on.

A hyperplane of the first layer meets nearly every line, and each shows where, to the digits of the
answers, and roughly in which direction; one of an upper neuron has turned before it gets to
another line.  Planes that lines agree on better than by chance
(:mod:`revelu.recover.deep.line_planes`) are looked at once more: kinks of others lie anywhere on a
line across a plane, its own where it is told to be.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import binom

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.hyperplane import points_on_hyperplanes
from revelu.probe.kink_lines import KinkLines
from revelu.probe.line import Ask
from revelu.recover.deep.line_planes import Plane, PlaneTuning, planes, rows_of, sizes
from revelu.recover.deep.rough_rows import RoughRows, unit
from revelu.recover.method import Layer
from revelu.recover.rows import Rows
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class WideRows:
    """How a first layer is found that is wider than the input."""

    rough: RoughRows = field(default_factory=RoughRows)
    """How rows are measured."""
    planes: PlaneTuning = field(default_factory=PlaneTuning)
    """How planes are laid through what lines show."""
    n_lines: tuple[int, ...] = (8, *20 * (2,))
    """Lines of one round after the other,"""
    max_quiet: int = 3
    """until ``max_quiet`` in a row show no new row: traces above a layer that lacks one go
    astray."""
    near: float = 3.0
    """A kink is on a known hyperplane if it is no farther than ``near`` times what it may be
    off."""
    least: int = 2
    """Lines that have to agree,"""
    chance: float = 1e-4
    """so well that kinks of others would with no larger probability.  Where kinks lie around a
    plane as others' would with a larger one, it is no neuron's."""
    n_points: int = 16
    """So many points of each are measured,"""
    n_rounds: int = 3
    """and as many again, so often, until"""
    fine: float = 1.5e-6
    """its row errs by no more than this,"""
    n_drawn: int = 8
    """of ``n_drawn`` times more those that other hyperplanes are farthest from."""
    worst: float = 4e-5
    """Those of a larger error go."""

    def find(
        self, ask: Ask, d: int, noise: NoiseFloor, rng: np.random.Generator
    ) -> tuple[Rows, Rows]:
        """Find rows of the first layer, and others above it, of norm 1."""
        none = Rows.none(d, len(noise.scale))
        seen, lines, first = none, np.empty(0, dtype=np.intp), none
        n_quiet = 0
        for n in self.n_lines:
            n_known = len(first)
            before = seen, lines
            seen, lines, first = self._looked(ask, noise, rng, first, before, n, self.chance)
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
        # Of few lines none agree better than by chance: where kinks lie around the planes tells.
        before = none, np.empty(0, dtype=np.intp)
        found = self._looked(ask, noise, rng, first, before, n_lines, 1.0)[2]
        return found.take(np.arange(m, len(found)))

    def _looked(
        self,
        ask: Ask,
        noise: NoiseFloor,
        rng: np.random.Generator,
        first: Rows,
        before: tuple[Rows, IntArray],
        n_lines: int,
        by_chance: float,
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
        some = seen.take(is_open)
        found = planes(self.planes, some, lines[is_open], self.least, by_chance, rng)
        goes_on = self._go_on(ask, noise, found, first, rng)
        more = rows_of([plane for plane, goes in zip(found, goes_on, strict=True) if goes], some)
        return seen, lines, self.rough.joined(first, more)

    def _explained(self, seen: Rows, first: Rows) -> BoolArray:
        """Which rows of lines are those of known hyperplanes."""
        how, off = self.planes, np.abs(seen.X @ first.W.T + first.b)
        is_near = off <= self.near * how.place * sizes(seen.X)[:, None]
        turned = np.sqrt(np.maximum(1.0 - np.abs(seen.W @ first.W.T), 0.0))
        is_alike = turned <= SIGMAS * how.sharp * seen.errors[:, None]
        return np.asarray((is_near & is_alike).any(axis=1))

    def _go_on(
        self, ask: Ask, noise: NoiseFloor, found: list[Plane], known: Rows, rng: np.random.Generator
    ) -> BoolArray:
        """Measure points of planes, and say which of these the function bends at."""
        goes_on, is_done = np.zeros((2, len(found)), dtype=bool)
        counts = np.zeros((len(found), 3))
        n = self.n_points
        for _ in range(self.n_rounds):
            todo = np.flatnonzero(~is_done)
            if not len(todo):
                break
            rows = np.array([plane.row for plane in found])
            errors = np.array([plane.error for plane in found])
            args = rows[:, :-1], rows[:, -1], errors, todo, known, n
            lines = self._clear_lines(*args, noise, rng)
            seen = lines.read(ask(lines.points), noise)
            meets = lines.meets(seen)
            for j, i in enumerate(todo):
                on = np.arange(j * n, (j + 1) * n)
                plane, points = found[i], np.column_stack([lines.X[on], np.ones(n)])
                range_ = SIGMAS * plane.apart(points, self.planes.place * sizes(lines.X[on]))[1]
                own = seen.is_kink[on] & (np.abs(seen.tau[on]) <= range_)
                share = float(np.minimum(2.0 * range_ / lines.T[on], 1.0).mean())
                now = own.sum(), seen.is_kink[on].sum(), share * seen.is_kink[on].sum()
                counts[i] += now
                for n_own, n_kinks, n_by_chance in (now, counts[i]):
                    share = n_by_chance / max(n_kinks, 1.0)
                    goes_on[i] |= binom.sf(n_own - 1.0, n_kinks, share) <= self.chance
                plane.add(meets[on[own]], seen.tau_error[on[own]])
                is_done[i] = not own.any() or (goes_on[i] and plane.error <= self.fine)
        is_exact = np.array([plane.error < self.worst for plane in found], dtype=bool)
        return np.asarray(goes_on & is_exact)

    def _clear_lines(
        self,
        W: FloatArray,
        b: FloatArray,
        errors: FloatArray,
        which: IntArray,
        known: Rows,
        n: int,
        noise: NoiseFloor,
        rng: np.random.Generator,
    ) -> KinkLines:
        """Lines across hyperplanes, ``n`` each, where no other hyperplane is near."""
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
        T = np.clip(how.margin * errors[rows[best]], how.shortest, how.longest) * growth[best]
        return KinkLines(X[best], M[best], np.zeros(len(best)), T)
