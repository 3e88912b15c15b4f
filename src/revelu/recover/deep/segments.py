"""Critical points on many segments at once, between those that known neurons make there.

Known neurons cut a segment into intervals, whose inner kinks are unknown neurons'.  In each the
lines through two points at either end are intersected; a point that must lie on each, beside
where they meet, proves that the interval has this one kink, else it is cut there.  All intervals
of all segments are asked together, round by round (DG21, Algorithm 1, for all kinks at once).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from revelu.errors import CurvedError
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.records import Records
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class CriticalPoints(Records):
    """Critical points of unknown neurons."""

    X: FloatArray
    """Shape (n, d)."""
    left: FloatArray
    right: FloatArray
    """Shape (n, d).  On the same segment, halfway to the next kink or known hyperplane on either
    side."""

    @classmethod
    def none(cls, d: int) -> "CriticalPoints":
        """Without any."""
        return cls(*np.empty((3, 0, d)))


@dataclass(frozen=True)
class SegmentScan:
    """The search for critical points on segments."""

    edge: float = 0.002
    pair: float = 0.05
    """Where an interval is asked: this share of it from either end, and this much further in."""
    side: float = 1e-3
    """A kink is proved by points this near on either side, as a share of the interval: that the
    two lines meet on the function proves nothing, for one may re-enter the other's piece."""
    margin: float = 0.1
    """An interval is cut at least this share from its ends, and about as near its middle."""
    near_end: float = 0.25
    """A part of an interval keeps the points that are within this share of its ends."""
    max_rounds: int = 20
    shortest: float = 1e-6
    """Kinks of intervals shorter than this, relative to the input, cannot be told apart."""
    many_parts: int = 16
    """At ``many_parts`` parts a segment, on average, and whenever they have doubled since, as many
    intervals show whether the function has pieces at all."""
    max_parts: int = 1024
    """No network has more parts a segment."""
    curved: float = 1e5
    """A function is no more affine on a short piece where its second difference exceeds this
    many standard errors."""

    def find(
        self,
        ask: Ask,
        noise: NoiseFloor,
        starts: FloatArray,
        ends: FloatArray,
        breaks: Sequence[FloatArray],
        rng: np.random.Generator,
    ) -> CriticalPoints:
        """Find the critical points on segments that known neurons do not make.

        Parameters
        ----------
        starts, ends : ndarray, shape (m, d)
        breaks : sequence of ndarray
            Where known neurons bend each segment, as shares of it, in order.
        rng : numpy.random.Generator
            Mixes the outputs, and cuts where nothing else says where.

        Raises
        ------
        CurvedError
            If the function curves wherever kinks are looked for.
        """
        arms = ends - starts
        cuts = [np.concatenate([[0.0], t, [1.0]]) for t in breaks]
        rows = np.repeat(np.arange(len(cuts)), [len(t) - 1 for t in cuts])
        lo = np.concatenate([t[:-1] for t in cuts])
        hi = np.concatenate([t[1:] for t in cuts])
        kinks, owners = _SegmentSearch(self, ask, noise, starts, arms, rng).run(rows, lo, hi)
        places: list[FloatArray] = []
        for i, cut in enumerate(cuts):
            own = np.sort(kinks[owners == i])
            edges = np.sort(np.concatenate([cut, own]))
            where = np.searchsorted(edges, own)
            after = edges[np.minimum(where + 1, len(edges) - 1)]
            ts = np.stack([own, (edges[where - 1] + own) / 2, (after + own) / 2])
            places.append(starts[i] + ts[:, :, None] * arms[i])
        return CriticalPoints(*np.concatenate(places, axis=1))


@dataclass(frozen=True)
class _Intervals(Records):
    """Parts ``lo < t < hi`` of segments, and what was asked near their ends.

    ``P (n, 4, 3)`` has ``t``, the answer and its error of two points at either end, NaN where
    none is known: the function is the lines through the first two and the last two there.
    """

    rows: IntArray
    lo: FloatArray
    hi: FloatArray
    P: FloatArray

    @property
    def is_alive(self) -> BoolArray:
        """Where all that was asked was answered by numbers: a target may be saturated."""
        return np.asarray((np.isnan(self.P[..., 0]) | np.isfinite(self.P[..., 1])).all(axis=1))

    def with_points(self, i: int, p: FloatArray) -> "_Intervals":
        """Put points, shape (n, 3), in column ``i``."""
        P = self.P.copy()
        P[:, i] = p
        return replace(self, P=P)

    def without(self, lost: BoolArray | list[bool]) -> "_Intervals":
        """Forget points, shape (n, 4), or the same ones of all intervals, shape (4,)."""
        return replace(self, P=np.where(np.asarray(lost)[..., None], np.nan, self.P))

    def part(self, lo: FloatArray, hi: FloatArray, near_end: float) -> "_Intervals":
        """Return a part of each; points far inside it are forgotten, the line may have ended."""
        room, T = near_end * (hi - lo)[:, None], self.P[..., 0]
        lost = np.column_stack([T[:, :2] > lo[:, None] + room, T[:, 2:] < hi[:, None] - room])
        return replace(self, lo=lo, hi=hi).without(lost)


class _SegmentSearch:
    def __init__(
        self,
        how: SegmentScan,
        ask: Ask,
        noise: NoiseFloor,
        starts: FloatArray,
        arms: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        self.how, self.ask, self.rng = how, ask, rng
        self.starts, self.arms = starts, arms
        self.mix = rng.standard_normal(len(noise.scale)) / noise.unit
        self.error = float(np.linalg.norm(self.mix * noise.nu * noise.scale))

    def run(self, rows: IntArray, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, IntArray]:
        """Kinks, in ``t``, and their segments."""
        kinks, owners = [np.empty(0)], [np.empty(0, dtype=np.intp)]
        todo = _Intervals(rows, lo, hi, np.full((len(rows), 4, 3), np.nan))
        many = self.how.many_parts * len(self.starts) + len(rows)
        for _ in range(self.how.max_rounds):
            reach = np.linalg.norm(self.arms[todo.rows], axis=1) * (todo.hi - todo.lo)
            size = np.linalg.norm(self._at(todo.rows, todo.lo), axis=1)
            todo = todo.take(reach > self.how.shortest * np.maximum(size, 1.0))
            if not len(todo):
                break
            if len(todo) > many:
                many *= 2
                if self._are_blurred(todo):
                    break
            found, at, todo = self._look(todo)
            kinks.append(at)
            owners.append(found)
        return np.concatenate(kinks), np.concatenate(owners)

    def _are_blurred(self, todo: _Intervals) -> bool:
        """Whether answers err more than was measured where a function goes straight on.

        Then every error is taken for a kink, and there is no end of them.
        """
        some = todo.take(self.rng.permutation(len(todo))[: self.how.many_parts])
        middle, step = (some.lo + some.hi) / 2, self.how.side * (some.hi - some.lo)
        t = np.concatenate([middle - step, middle, middle + step])
        Y, E = self._asked(np.tile(some.rows, 3), t)[:, 1:].reshape(3, -1, 2).transpose(2, 0, 1)
        # Where all three answers are 0 they have no error, and curve nowhere.
        error = np.maximum(6.0**0.5 * E.max(axis=0), np.finfo(float).tiny)
        apart = np.abs(Y[0] - 2.0 * Y[1] + Y[2]) / error
        n_curved, n_blurred = ((apart > limit).sum() for limit in (self.how.curved, SIGMAS))
        if n_curved > len(some) / 2:
            raise CurvedError(
                f"the answers curve at {n_curved} of {len(some)} places where kinks were looked "
                "for: not a piecewise affine function"
            )
        return bool(n_blurred > len(some) / 2 or len(todo) > self.how.max_parts * len(self.starts))

    def _at(self, rows: IntArray, t: FloatArray) -> FloatArray:
        return np.asarray(self.starts[rows] + t[:, None] * self.arms[rows])

    def _asked(self, rows: IntArray, t: FloatArray) -> FloatArray:
        """Points at ``t (n,)``: with their mixed answers and the errors of those, shape (n, 3)."""
        X = self._at(rows, t)
        Y = self.ask(X)
        Y = np.where(np.isfinite(Y).all(axis=1, keepdims=True), Y, np.nan)
        return np.column_stack([t, Y @ self.mix, self.error * np.sqrt(1.0 + (X**2).mean(axis=1))])

    def _completed(self, those: _Intervals, wanted: BoolArray | list[bool]) -> _Intervals:
        """Ask for points that are wanted, shape (n, 4) or (4,), and not known."""
        i, j = np.nonzero(np.isnan(those.P[..., 0]) & wanted)
        if not len(i):
            return those
        t = self._places(those)[i, j]
        P = those.P.copy()
        P[i, j] = self._asked(those.rows[i], t)
        return replace(those, P=P)

    def _places(self, those: _Intervals) -> FloatArray:
        """Where the four points of intervals are, or should be asked, shape (n, 4)."""
        T, width = those.P[..., 0], those.hi - those.lo
        first = np.where(np.isnan(T[:, 0]), those.lo + self.how.edge * width, T[:, 0])
        last = np.where(np.isnan(T[:, 3]), those.hi - self.how.edge * width, T[:, 3])
        second = np.maximum(first, those.lo) + self.how.pair * width
        third = np.minimum(last, those.hi) - self.how.pair * width
        return np.where(np.isnan(T), np.column_stack([first, second, third, last]), T)

    def _look(self, todo: _Intervals) -> tuple[IntArray, FloatArray, _Intervals]:
        """Segments of intervals that have one kink, where it is, and parts of the others."""
        todo = self._completed(todo, [True, True, False, True])
        todo = todo.take(todo.is_alive)
        bent = ~_is_on_line(todo.P, (0, 1), 3)
        todo = self._completed(todo, np.outer(bent, [False, False, True, False]))
        bent |= ~np.isnan(todo.P[:, 2, 0]) & ~_is_on_line(todo.P, (0, 1), 2)
        todo = todo.take(bent & todo.is_alive)
        meets = _meeting(todo.P, (0, 1), (2, 3))
        first, last = np.fmax(todo.P[:, 1, 0], todo.lo), np.fmin(todo.P[:, 2, 0], todo.hi)
        inside = (meets > first) & (meets < last)
        found, at, parts = self._prove(todo.take(inside), meets[inside])
        return found, at, parts.joined(self._halved(todo.take(~inside)))

    def _prove(
        self, those: _Intervals, meets: FloatArray
    ) -> tuple[IntArray, FloatArray, _Intervals]:
        """Ask on both sides of where lines meet; cut there where that proves no single kink."""
        width, near_end = those.hi - those.lo, self.how.near_end
        before, after = meets - self.how.side * width, meets + self.how.side * width
        p, q = np.split(self._asked(np.tile(those.rows, 2), np.concatenate([before, after])), 2)
        P = np.concatenate([those.P, p[:, None], q[:, None]], axis=1)
        # Points 4 and 5: on which of the two lines is each?
        left = [_is_on_line(P, (0, i), 1) for i in (4, 5)]
        right = [_is_on_line(P, (i, 3), 2) for i in (4, 5)]
        t = _meeting(P, (0, 4), (5, 3))
        one = left[0] & right[1] & (t > before) & (t < after)
        # A line that goes on beyond where they meet has its end in the other part.
        goes_on, comes_earlier = ~one & left[1], ~one & ~left[1] & right[0]
        other = ~(one | goes_on | comes_earlier)
        room = self.how.margin * width
        near = (meets < those.lo + room) | (meets > those.hi - room)
        lower = those.without([False, False, True, False]).with_points(3, p)
        upper = those.without([False, True, False, False]).with_points(0, q)
        after_them = those.with_points(1, q).part(after, those.hi, near_end)
        before_them = those.with_points(2, p).part(those.lo, before, near_end)
        parts = after_them.take(goes_on).joined(
            before_them.take(comes_earlier),
            self._halved(those.take(other & near)),
            lower.part(those.lo, meets, near_end).take(other & ~near & ~left[0]),
            upper.part(meets, those.hi, near_end).take(other & ~near & ~right[1]),
        )
        return those.rows[one], t[one], parts

    def _halved(self, those: _Intervals) -> _Intervals:
        """Cut about in the middle, where nothing says where."""
        around = 0.5 - self.how.margin, 0.5 + self.how.margin
        middle = those.lo + (those.hi - those.lo) * self.rng.uniform(*around, len(those))
        lower = those.without([False, False, True, True]).part(those.lo, middle, self.how.near_end)
        upper = those.without([True, True, False, False]).part(middle, those.hi, self.how.near_end)
        return lower.joined(upper)


def _is_on_line(P: FloatArray, support: tuple[int, int], i: int) -> BoolArray:
    """Whether point ``i`` lies on the line through two others."""
    (t0, y0, e0), (t1, y1, e1), (t, y, e) = (P[:, j].T for j in (*support, i))
    share = (t - t0) / (t1 - t0)
    value = y0 + share * (y1 - y0)
    error = np.sqrt(((1 - share) * e0) ** 2 + (share * e1) ** 2 + e**2)
    return np.asarray(np.abs(value - y) <= SIGMAS * error)


def _meeting(P: FloatArray, left: tuple[int, int], right: tuple[int, int]) -> FloatArray:
    """Where the lines through two pairs of points meet; NaN where they are parallel."""
    (ta, ya, _), (tb, yb, _), (tc, yc, _), (td, yd, _) = (P[:, j].T for j in (*left, *right))
    s1, s2 = (yb - ya) / (tb - ta), (yd - yc) / (td - tc)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((yc - s2 * (tc - ta) - ya) / (s1 - s2) + ta)
