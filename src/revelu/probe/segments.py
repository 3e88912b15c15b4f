"""Kinks on many segments at once, between those that known neurons make there.

Known neurons cut a segment into intervals, whose inner kinks are unknown neurons'.  In each
the lines through two points at either end are intersected; a point that must lie on each,
beside where they meet, proves that the interval has this one kink, else it is cut there.  All
intervals of all segments are asked together, round by round (DG21, Algorithm 1, for all kinks
at once).
"""

from dataclasses import dataclass

import numpy as np

from revelu.network.stack import Stack
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask
from revelu.types import BoolArray, FloatArray, IntArray

# A tolerance is this many standard errors.
_SIGMAS = 8.0

# Where an interval is asked first, as shares of it from either end.
_EDGE, _PAIR = 0.002, 0.05

# A kink is proved by a point so near on either side, as a share of the interval: that the two
# lines meet on the function proves nothing, for one may re-enter the other's piece.
_SIDE = 1e-3

# An interval is cut at a place at least this share from its ends.
_ROOM = 0.1

_MAX_ROUNDS = 14

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
        for _ in range(_MAX_ROUNDS):
            reach = np.linalg.norm(self.arms[rows], axis=1) * (hi - lo)
            size = np.linalg.norm(self.starts[rows] + lo[:, None] * self.arms[rows], axis=1)
            wide = reach > _SHORTEST * np.maximum(size, 1.0)
            rows, lo, hi = rows[wide], lo[wide], hi[wide]
            if not len(rows):
                break
            found, at, cut = self._look(rows, lo, hi)
            kinks.append(at[found])
            owners.append(rows[found])
            split = np.flatnonzero(np.isfinite(cut))
            rows = np.concatenate([rows[split], rows[split]])
            lo, hi = (
                np.concatenate([lo[split], cut[split]]),
                np.concatenate([cut[split], hi[split]]),
            )
        return np.concatenate(kinks), np.concatenate(owners)

    def _asked(self, rows: IntArray, T: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mixed answers at ``T`` (n, m), and their errors."""
        X = self.starts[rows, None] + T[:, :, None] * self.arms[rows, None]
        flat = X.reshape(-1, X.shape[2])
        Y = (self.ask(flat) @ self.mix).reshape(T.shape)
        return Y, self.error * np.sqrt(1.0 + (X**2).mean(axis=2))

    def _look(
        self, rows: IntArray, lo: FloatArray, hi: FloatArray
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Which intervals have one kink, where it is, and where to cut the others, or NaN."""
        width = (hi - lo)[:, None]
        shares = np.array([_EDGE, _EDGE + _PAIR, 1.0 - _EDGE - _PAIR, 1.0 - _EDGE])
        T = lo[:, None] + width * shares
        Y, E = self._asked(rows, T)
        n = len(rows)
        straight = _on_line(T, Y, E, (0, 1), 2) & _on_line(T, Y, E, (0, 1), 3)
        meets = _meeting(T, Y, (0, 1), (2, 3))
        inside = ~straight & (meets > T[:, 1]) & (meets < T[:, 2])
        found, at, cut = np.zeros(n, bool), np.full(n, np.nan), np.full(n, np.nan)
        i = np.flatnonzero(inside)
        if len(i):
            t = meets[i]
            side = _SIDE * (hi - lo)[i]
            more = np.column_stack([t - side, t + side])
            Ym, Em = self._asked(rows[i], more)
            Ta, Ya, Ea = (
                np.concatenate([p[:, :2], m, p[:, 2:]], axis=1)
                for p, m in ((T[i], more), (Y[i], Ym), (E[i], Em))
            )
            one = _on_line(Ta, Ya, Ea, (0, 2), 1) & _on_line(Ta, Ya, Ea, (3, 5), 4)
            t = _meeting(Ta, Ya, (0, 2), (3, 5))
            one &= (t > Ta[:, 2]) & (t < Ta[:, 3])
            found[i], at[i] = one, t
        again = ~straight & ~found
        middle = lo + (hi - lo) * self.rng.uniform(0.4, 0.6, n)
        use = inside & (meets > lo + _ROOM * (hi - lo)) & (meets < hi - _ROOM * (hi - lo))
        cut[again] = np.where(use, meets, middle)[again]
        return found, at, cut


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
