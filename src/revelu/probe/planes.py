"""Hyperplanes that a line meets, followed in a plane: a few queries each, however many inputs.

In the plane ``x0 + t v + s u`` a hyperplane is the straight line ``t = t0 + c s``.  Between two
points of the line on either side of a kink, and nowhere beyond another one,

    g(s) = f(x0 + t+ v + s u) - f(x0 + t- v + s u),    g(s) - g(0) = -J c s,

J being the change of slope at the kink: all other neurons cancel.  What one hidden layer makes of a
neuron bends by J all along that line.  It bends by other amounts where layers above change, and a
deeper neuron's hyperplane leaves the line there.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask
from revelu.probe.scan import LineScan
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Followed:
    """What was seen of the kinks of a line, m of them, in a plane.

    Attributes
    ----------
    kinks : ndarray of int, shape (m,)
        Which of the line's they are.
    shifts : ndarray, shape (m,)
        How far the kink moves along the line for a move of 1 beside it, c above.
    errors : ndarray, shape (m,)
        Standard errors of those.
    same, other, gone : ndarray of int, shape (m,)
        Points of the hyperplane at which the function bends as it does on the line, bends by
        another amount, and goes straight on.
    """

    kinks: IntArray
    shifts: FloatArray
    errors: FloatArray
    same: IntArray
    other: IntArray
    gone: IntArray


@dataclass(frozen=True)
class Planes:
    """How hyperplanes are followed.

    Attributes
    ----------
    most_kinks : int
        The ones with the most room on the line.
    farthest : float
        Kinks further out on the line, in its own length, are left alone.
    share : float
        Of the room beside a kink where the function is asked beside it,
    step : float
        and which a step aside takes of it.
    linear : float
        By how much half a step may shift a kink by more or less than half, as a share.
    n_points : int
        Of each hyperplane, at moves aside of up to ``reach``.
    reach : float
    side, near : float
        How far to go to either side of those, in lengths of the line, and as a share of the typical
        distance between its kinks: hardly ever does another hyperplane lie between.
    off : float
        By what share of that a hyperplane may be off its place there; others are left alone.
    alike : float
        Bends of sizes that differ by a smaller share are one.
    """

    most_kinks: int = 16
    farthest: float = 4.0
    share: float = 0.5
    step: float = 0.02
    linear: float = 1e-3
    n_points: int = 4
    reach: float = 3.0
    side: float = 1e-5
    near: float = 1e-3
    off: float = 0.1
    alike: float = 1e-3

    def follow(
        self, ask: Ask, noise: NoiseFloor, scan: LineScan, rng: np.random.Generator
    ) -> Followed:
        """Follow some kinks of a line in one random plane: 6 queries a kink, 3 a point.

        Parameters
        ----------
        scan : LineScan
            A complete one.
        """
        v = scan.line.v
        u = rng.standard_normal(len(v))
        u -= v * ((u @ v) / (v @ v))
        u *= np.linalg.norm(v) / max(float(np.linalg.norm(u)), np.finfo(np.float64).tiny)
        kinks, rooms = self._chosen(scan)
        jumps = end_slopes_and_jumps(scan)[2][kinks]
        shifts, errors = self._shifts(ask, noise, scan, u, kinks, rooms, jumps)
        known = np.isfinite(shifts) & (SIGMAS * errors * self.reach <= self.off * self._side(scan))
        kinks, shifts, errors, jumps = kinks[known], shifts[known], errors[known], jumps[known]
        same, other, gone = self._looked_at(ask, noise, scan, u, (kinks, shifts, jumps), rng)
        return Followed(kinks, shifts, errors, same, other, gone)

    def _side(self, scan: LineScan) -> float:
        gaps = np.diff(scan.kinks)
        return min(self.side, self.near * float(np.median(gaps))) if len(gaps) else self.side

    def _chosen(self, scan: LineScan) -> tuple[IntArray, FloatArray]:
        """Kinks with the most room, in their order, and the room beside each, shape (m,)."""
        edges = np.concatenate([[-np.inf], scan.kinks, [np.inf]])
        rooms = np.minimum(np.diff(edges)[:-1], np.diff(edges)[1:])
        rooms = np.minimum(rooms, 1.0)
        usable = np.flatnonzero(scan.is_single & (np.abs(scan.kinks) < self.farthest))
        widest = usable[np.argsort(-rooms[usable], kind="stable")][: self.most_kinks]
        kinks = np.sort(widest)
        return kinks, rooms[kinks]

    def _shifts(
        self,
        ask: Ask,
        noise: NoiseFloor,
        scan: LineScan,
        u: FloatArray,
        kinks: IntArray,
        rooms: FloatArray,
        jumps: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Shifts for a move of 1 and their errors; nan where half a step does not shift half."""
        steps = self.step * rooms
        t = scan.kinks[kinks, None] + self.share * rooms[:, None] * np.array([-1.0, 1.0])
        moves = steps[:, None] * np.array([0.0, 0.5, 1.0])
        X = scan.line.points(t.ravel()).reshape(len(kinks), 1, 2, -1)
        X = X + moves[:, :, None, None] * u
        Y = ask(X.reshape(-1, len(u))).reshape(len(kinks), 3, 2, -1) / noise.unit
        changes = Y[:, :, 1] - Y[:, :, 0]
        changes = changes[:, 1:] - changes[:, :1]
        unit_jumps = jumps / noise.unit
        size = (unit_jumps**2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            half, whole = (-(changes[:, i] * unit_jumps).sum(axis=1) / size for i in (0, 1))
            sigma = 2.0 * noise.relative * noise.growth(X[:, 0, 0]) / np.sqrt(size)
            apart = np.abs(whole - 2.0 * half)
            limit = self.linear * np.abs(whole) + 3.0 * SIGMAS * sigma
            holds = (apart <= limit) & (np.abs(whole) < self.share * rooms)
            return np.where(holds, whole / steps, np.nan), sigma / steps

    def _looked_at(
        self,
        ask: Ask,
        noise: NoiseFloor,
        scan: LineScan,
        u: FloatArray,
        known: tuple[IntArray, FloatArray, FloatArray],
        rng: np.random.Generator,
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Points of each hyperplane where it bends the same, otherwise, and not."""
        kinks, shifts, jumps = known
        m, n = len(kinks), self.n_points
        if not m:
            return (np.zeros(0, dtype=np.intp),) * 3
        s = rng.uniform(0.1, 1.0, (m, n)) * self.reach * rng.choice([-1.0, 1.0], (m, n))
        t = scan.kinks[kinks, None] + shifts[:, None] * s
        middle = scan.line.points(t.ravel()) + s.reshape(-1, 1) * u
        size = np.linalg.norm(middle, axis=1) / np.linalg.norm(scan.line.v)
        step = self._side(scan) * np.maximum(size, 1.0)
        moves = step[:, None] * scan.line.v
        Y = ask(np.concatenate([middle - moves, middle, middle + moves])) / noise.unit
        before, at, after = Y.reshape(3, m, n, -1)
        step = step.reshape(m, n, 1)
        error = SIGMAS * noise.relative * noise.growth(middle).reshape(m, n, 1) / step
        bend, slope = (after - 2.0 * at + before) / step, (after - before) / step
        expected = (jumps / noise.unit)[:, None]
        large = np.linalg.norm(expected, axis=2)
        is_same = (
            np.linalg.norm(bend - expected, axis=2) <= self.alike * large + 4.0 * error[..., 0]
        )
        is_bent = (np.abs(bend) > 4.0 * error).any(axis=2)
        is_live = (np.abs(slope) > 4.0 * error).any(axis=2)
        count = [is_same, ~is_same & is_bent, ~is_same & ~is_bent & is_live]
        same, other, gone = (np.asarray(flags.sum(axis=1)) for flags in count)
        return same, other, gone


def end_slopes_and_jumps(scan: LineScan) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Slopes of the function on the first and the last piece of a line, and its changes between.

    Returns
    -------
    first, last : ndarray, shape (k,)
    jumps : ndarray, shape (n_kinks, k)
    """
    slopes = []
    for piece in scan.pieces:
        i, j = piece.support()
        start, end = (piece.gs[n] * np.hypot(1.0, piece.ts[n]) for n in (i, j))
        slopes.append((end - start) / (piece.ts[j] - piece.ts[i]))
    found = np.asarray(slopes)
    return found[0], found[-1], np.diff(found, axis=0)


def parallel_pairs(found: Followed, jumps: FloatArray, *, alike: float = 1e-6) -> BoolArray:
    """Tell which of the kinks followed have another one that is parallel, and bends it back.

    Parameters
    ----------
    jumps : ndarray, shape (n_kinks, k)
        Of all kinks of the line.
    alike : float
        Two jumps that cancel to this share are opposite.

    Returns
    -------
    ndarray of bool, shape (m,)
    """
    own = jumps[found.kinks]
    size = np.linalg.norm(own, axis=1)
    sums = np.linalg.norm(own[:, None] + own[None], axis=2)
    apart = np.abs(found.shifts[:, None] - found.shifts[None])
    error = SIGMAS * np.hypot(found.errors[:, None], found.errors[None])
    is_pair = (sums <= alike * size[:, None]) & (apart <= error + alike * np.abs(found.shifts))
    np.fill_diagonal(is_pair, val=False)
    return np.asarray(is_pair.any(axis=1))
