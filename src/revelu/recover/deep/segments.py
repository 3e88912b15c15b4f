"""Kinks on many segments at once, between those that known neurons make there.

Known neurons cut a segment into intervals, whose inner kinks are unknown neurons'.  In each
the lines through two points at either end are intersected; a point that must lie on each,
beside where they meet, proves that the interval has this one kink, else it is cut there.  All
intervals of all segments are asked together, round by round (DG21, Algorithm 1, for all kinks
at once).
"""

from dataclasses import dataclass

import numpy as np

from revelu.errors import CurvedError
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask
from revelu.recover.deep.stack import Stack
from revelu.types import BoolArray, FloatArray, IntArray

# A tolerance is this many standard errors.
_SIGMAS = 8.0

# Where an interval is asked first, as shares of it from either end.
_EDGE, _PAIR = 0.002, 0.05

# A kink is proved by a point so near on either side, as a share of the interval: that the two
# lines meet on the function proves nothing, for one may re-enter the other's piece.
_SIDE = 1e-3

# An interval is cut at a place at least this share from its ends, and a part of one keeps points
# within this share of its own ends.
_ROOM = 0.1
_NEAR_END = 0.25

_MAX_ROUNDS = 20

# With so many parts a segment, on average, and at twice as many again, the search looks whether
# the function goes straight on in some of them, over this share of each.  Where it curves in most,
# by so many standard errors, it has no pieces; where it errs more than it should, the search ends,
# as it does where a segment has more parts than any network's.
_MANY_PARTS, _MOST_PARTS = 16, 1024
_PLACES = 16
_SHORT = 1e-3
_MOSTLY = 0.5
_CURVED = 1e5

# Intervals shorter than this, relative to the input, hold kinks that cannot be told apart.
_SHORTEST = 1e-6


@dataclass(frozen=True)
class FoundKinks:
    """Kinks of unknown neurons.

    Attributes
    ----------
    X : ndarray, shape (n, d)
    left, right : ndarray, shape (n, d)
        On the same segment, halfway to the next kink or known hyperplane on either side.
    """

    X: FloatArray
    left: FloatArray
    right: FloatArray


def find_new_kinks(
    ask: Ask,
    noise: NoiseFloor,
    stack: Stack,
    starts: FloatArray,
    ends: FloatArray,
    rng: np.random.Generator,
) -> FoundKinks:
    """Find the kinks on segments that known layers do not make.

    Parameters
    ----------
    ask : callable, (n, d) -> (n, k)
    noise : NoiseFloor
    stack : Stack
        The known layers.
    starts, ends : ndarray, shape (m, d)
    rng : numpy.random.Generator
        Mixes the outputs, and cuts where nothing else says where.

    Raises
    ------
    CurvedError
        If the function curves wherever kinks are looked for.
    """
    arms = ends - starts
    breaks = [stack.breaks(x, v, 0.0, 1.0) for x, v in zip(starts, arms, strict=True)]
    cuts = [np.concatenate([[0.0], t, [1.0]]) for t in breaks]
    rows = np.repeat(np.arange(len(cuts)), [len(t) - 1 for t in cuts])
    lo = np.concatenate([t[:-1] for t in cuts])
    hi = np.concatenate([t[1:] for t in cuts])
    search = _Search(ask, noise, starts, arms, rng)
    kinks, owners = search.run(rows, lo, hi)
    places: list[FloatArray] = []
    for i, cut in enumerate(cuts):
        own = np.sort(kinks[owners == i])
        edges = np.sort(np.concatenate([cut, own]))
        where = np.searchsorted(edges, own)
        after = edges[np.minimum(where + 1, len(edges) - 1)]
        ts = np.stack([own, (edges[where - 1] + own) / 2, (after + own) / 2])
        places.append(starts[i] + ts[:, :, None] * arms[i])
    return FoundKinks(*np.concatenate(places, axis=1))


@dataclass(frozen=True)
class _Intervals:
    """Parts of segments, and what was asked near their ends.

    ``T (n, 4)`` has two points at either end, NaN where none is known: the lines through the
    first two and the last two are what the function is there.
    """

    rows: IntArray
    lo: FloatArray
    hi: FloatArray
    T: FloatArray
    Y: FloatArray
    E: FloatArray

    @classmethod
    def unasked(cls, rows: IntArray, lo: FloatArray, hi: FloatArray) -> "_Intervals":
        nothing = np.full((len(rows), 4), np.nan)
        return cls(rows, lo, hi, nothing, nothing, nothing)

    def __len__(self) -> int:
        return len(self.rows)

    def __add__(self, other: "_Intervals") -> "_Intervals":
        mine, theirs = vars(self), vars(other)
        return _Intervals(**{name: np.concatenate([mine[name], theirs[name]]) for name in mine})

    def take(self, chosen: IntArray | BoolArray) -> "_Intervals":
        return _Intervals(*(a[chosen] for a in vars(self).values()))

    @property
    def is_alive(self) -> BoolArray:
        """Where all that was asked was answered by numbers: a target may be saturated."""
        return np.asarray((np.isnan(self.T) | np.isfinite(self.Y)).all(axis=1))

    def wanted(self) -> FloatArray:
        """Where its four points are, or should be asked, shape (n, 4)."""
        width = self.hi - self.lo
        edges = self.lo + _EDGE * width, self.hi - _EDGE * width
        first = np.where(np.isnan(self.T[:, 0]), edges[0], self.T[:, 0])
        last = np.where(np.isnan(self.T[:, 3]), edges[1], self.T[:, 3])
        inner = (
            np.maximum(first, self.lo) + _PAIR * width,
            np.minimum(last, self.hi) - _PAIR * width,
        )
        T = np.column_stack([first, *inner, last])
        return np.where(np.isnan(self.T), T, self.T)

    def joined(self, i: int, T: FloatArray, Y: FloatArray, E: FloatArray) -> "_Intervals":
        """Put points in column ``i``, shape (n,) each."""
        new = [a.copy() for a in self.points]
        for old, a in zip(new, (T, Y, E), strict=True):
            old[:, i] = a
        return _Intervals(self.rows, self.lo, self.hi, *new)

    def without(self, *columns: int) -> "_Intervals":
        """Forget the points in some columns."""
        lost = np.isin(np.arange(4), columns)
        return _Intervals(
            self.rows, self.lo, self.hi, *(np.where(lost, np.nan, a) for a in self.points)
        )

    def part(self, lo: FloatArray, hi: FloatArray) -> "_Intervals":
        """Return a part of each; points far inside it are forgotten, the line may have ended."""
        room = _NEAR_END * (hi - lo)[:, None]
        lost = np.column_stack(
            [self.T[:, :2] > lo[:, None] + room, self.T[:, 2:] < hi[:, None] - room]
        )
        return _Intervals(self.rows, lo, hi, *(np.where(lost, np.nan, a) for a in self.points))

    @property
    def points(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.T, self.Y, self.E


class _Search:
    def __init__(
        self,
        ask: Ask,
        noise: NoiseFloor,
        starts: FloatArray,
        arms: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        self.ask, self.noise, self.rng = ask, noise, rng
        self.starts, self.arms = starts, arms
        scale = np.where(noise.scale > 0, noise.scale, 1.0)
        self.mix = rng.standard_normal(len(scale)) / scale
        self.error = float(np.linalg.norm(self.mix * noise.nu * noise.scale))

    def run(self, rows: IntArray, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, IntArray]:
        """Kinks, in ``t``, and their segments."""
        kinks, owners = [np.empty(0)], [np.empty(0, dtype=np.intp)]
        todo = _Intervals.unasked(rows, lo, hi)
        many = _MANY_PARTS * len(self.starts) + len(rows)
        for _ in range(_MAX_ROUNDS):
            reach = np.linalg.norm(self.arms[todo.rows], axis=1) * (todo.hi - todo.lo)
            size = np.linalg.norm(self._at(todo.rows, todo.lo[:, None])[:, 0], axis=1)
            todo = todo.take(reach > _SHORTEST * np.maximum(size, 1.0))
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
        some = todo.take(self.rng.permutation(len(todo))[:_PLACES])
        middle, step = (some.lo + some.hi) / 2, _SHORT * (some.hi - some.lo)
        t = np.concatenate([middle - step, middle, middle + step])
        Y, E = (a.reshape(3, -1).T for a in self._asked(np.tile(some.rows, 3), t))
        apart = np.abs(Y[:, 0] - 2.0 * Y[:, 1] + Y[:, 2]) / (6.0**0.5 * E.max(axis=1))
        curved = int((apart > _CURVED).sum())
        if curved > _MOSTLY * len(some):
            raise CurvedError(
                f"the answers curve at {curved} of {len(some)} places where kinks were looked "
                "for: not a piecewise affine function"
            )
        blurred = int((apart > _SIGMAS).sum()) > _MOSTLY * len(some)
        return blurred or len(todo) > _MOST_PARTS * len(self.starts)

    def _at(self, rows: IntArray, T: FloatArray) -> FloatArray:
        return np.asarray(self.starts[rows, None] + T[:, :, None] * self.arms[rows, None])

    def _asked(self, rows: IntArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mixed answers at ``t`` (n,), and their errors."""
        X = self._at(rows, t[:, None])[:, 0]
        Y = self.ask(X)
        Y = np.where(np.isfinite(Y).all(axis=1, keepdims=True), Y, np.nan)
        return Y @ self.mix, self.error * np.sqrt(1.0 + (X**2).mean(axis=1))

    def _completed(
        self, those: _Intervals, chosen: BoolArray, columns: tuple[int, ...]
    ) -> _Intervals:
        """Ask for points that are not known in some columns of the chosen."""
        wanted = those.wanted()
        missing = np.zeros(wanted.shape, dtype=bool)
        missing[:, columns] = np.isnan(those.T[:, columns]) & chosen[:, None]
        i, j = np.nonzero(missing)
        if not len(i):
            return those
        t = wanted[i, j]
        new = [a.copy() for a in those.points]
        for a, values in zip(new, (t, *self._asked(those.rows[i], t)), strict=True):
            a[i, j] = values
        return _Intervals(those.rows, those.lo, those.hi, *new)

    def _look(self, todo: _Intervals) -> tuple[IntArray, FloatArray, _Intervals]:
        """Segments of intervals that have one kink, where it is, and parts of the others."""
        todo = self._completed(todo, np.ones(len(todo), dtype=bool), (0, 1, 3))
        todo = todo.take(todo.is_alive)
        bent = ~_on_line(*todo.points, (0, 1), 3)
        todo = self._completed(todo, bent, (2,))
        bent |= ~np.isnan(todo.T[:, 2]) & ~_on_line(*todo.points, (0, 1), 2)
        todo = todo.take(bent & todo.is_alive)
        meets = _meeting(todo.T, todo.Y, (0, 1), (2, 3))
        first, last = np.fmax(todo.T[:, 1], todo.lo), np.fmin(todo.T[:, 2], todo.hi)
        inside = (meets > first) & (meets < last)
        found, at, parts = self._prove(todo.take(inside), meets[inside])
        return found, at, parts + self._halved(todo.take(~inside))

    def _prove(
        self, those: _Intervals, meets: FloatArray
    ) -> tuple[IntArray, FloatArray, _Intervals]:
        """Ask on both sides of where lines meet; cut there where that proves no single kink."""
        side = _SIDE * (those.hi - those.lo)
        before, after = meets - side, meets + side
        Y, E = self._asked(np.tile(those.rows, 2), np.concatenate([before, after]))
        p = before, *(a[: len(meets)] for a in (Y, E))
        q = after, *(a[len(meets) :] for a in (Y, E))
        T, Y, E = (np.column_stack([a, u, v]) for a, u, v in zip(those.points, p, q, strict=True))
        # Points 4 and 5: on which of the two lines is each?
        left = [_on_line(T, Y, E, (0, i), 1) for i in (4, 5)]
        right = [_on_line(T, Y, E, (i, 3), 2) for i in (4, 5)]
        one = left[0] & right[1]
        t = _meeting(T, Y, (0, 4), (5, 3))
        one &= (t > before) & (t < after)
        # A line that goes on beyond where they meet has its end in the other part.
        goes_on, comes_earlier = ~one & left[1], ~one & ~left[1] & right[0]
        other = ~(one | goes_on | comes_earlier)
        room = _ROOM * (those.hi - those.lo)
        near = (meets < those.lo + room) | (meets > those.hi - room)
        parts = [
            those.joined(1, *q).part(after, those.hi).take(goes_on),
            those.joined(2, *p).part(those.lo, before).take(comes_earlier),
            self._halved(those.take(other & near)),
        ]
        lower, upper = those.without(2).joined(3, *p), those.without(1).joined(0, *q)
        parts += [
            lower.part(those.lo, meets).take(other & ~near & ~left[0]),
            upper.part(meets, those.hi).take(other & ~near & ~right[1]),
        ]
        return those.rows[one], t[one], sum(parts[1:], start=parts[0])

    def _halved(self, those: _Intervals) -> _Intervals:
        """Cut where nothing says where."""
        middle = those.lo + (those.hi - those.lo) * self.rng.uniform(0.4, 0.6, len(those))
        lower, upper = those.without(2, 3), those.without(0, 1)
        return lower.part(those.lo, middle) + upper.part(middle, those.hi)


def _on_line(
    T: FloatArray, Y: FloatArray, E: FloatArray, support: tuple[int, int], i: int
) -> BoolArray:
    """Whether point ``i`` lies on the line through two others."""
    a, b = support
    share = (T[:, i] - T[:, a]) / (T[:, b] - T[:, a])
    value = Y[:, a] + share * (Y[:, b] - Y[:, a])
    error = np.sqrt(((1 - share) * E[:, a]) ** 2 + (share * E[:, b]) ** 2 + E[:, i] ** 2)
    return np.asarray(np.abs(value - Y[:, i]) <= _SIGMAS * error)


def _meeting(
    T: FloatArray, Y: FloatArray, left: tuple[int, int], right: tuple[int, int]
) -> FloatArray:
    """Where the lines through two pairs of points meet; NaN where they are parallel."""
    (a, b), (c, d) = left, right
    s1 = (Y[:, b] - Y[:, a]) / (T[:, b] - T[:, a])
    s2 = (Y[:, d] - Y[:, c]) / (T[:, d] - T[:, c])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((Y[:, c] - s2 * (T[:, c] - T[:, a]) - Y[:, a]) / (s1 - s2) + T[:, a])
