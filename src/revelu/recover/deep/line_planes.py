"""Hyperplanes through what several lines show, and how likely others would agree as well.

A kink tells where its line meets a hyperplane, to the digits of the answers, and roughly in which
direction.  From one kink's row it is foretold where the hyperplane meets other lines, the next line
first where that is told best; what is met there makes the row more precise.  One of a line's kinks
agrees by chance, more likely where little is known of the plane: those chances multiplied say
whether it is one.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.numerics.reweighting import cauchy
from revelu.recover.rows import Rows
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class PlaneTuning:
    """How a plane is laid through kinks."""

    place: float = 1e-5
    """How far off a kink of a line may be, relative to its point: several are near each other;"""
    least_off: float = 0.01
    """and of that share at least, where most of many are nearer."""
    sharp: float = 0.5
    """Rows of lines err by this share of what is claimed of them at most, most by less."""
    n_solves: int = 6
    """Times that kinks are weighed by how far off they are."""
    n_starts: int = 800
    """So many kinks begin planes at most, each time others: any of a plane's will do,"""
    begun: float = 0.7
    """each on this share of the lines."""


class Plane:
    """A hyperplane through what lines have shown, from one of their rows.

    Parameters
    ----------
    how : PlaneTuning
    seen : Rows
        What lines have shown, of norm 1.
    lines : ndarray of int, shape (n,)
        On which line each was.
    start : int
        The first of its members.
    is_free : ndarray of bool, shape (n,)
        Those that are on no other plane,
    is_begun : ndarray of bool, shape (n,)
        and those it is begun with, before others join it.

    Attributes
    ----------
    members : list of int
        One of a line at most.
    log_chance : float
        How likely kinks of others agree as well, the logarithm.
    row : ndarray, shape (d + 1,)
        Its normal, of norm 1, and its offset.
    covariance : ndarray, shape (d + 1, d + 1)
    """

    def __init__(
        self,
        how: PlaneTuning,
        seen: Rows,
        lines: IntArray,
        start: int,
        is_free: BoolArray,
        is_begun: BoolArray,
    ) -> None:
        self.how, self.seen, self.lines = how, seen, lines
        self.covariance: FloatArray
        self.is_free = is_free & (lines != lines[start])
        self.points = np.column_stack([seen.X, np.ones(len(seen))])
        self.off = how.place * sizes(seen.X)
        self.members, self.log_chance = [start], 0.0
        self.more, self.more_off = np.empty((0, self.points.shape[1])), np.empty(0)
        self.row = np.append(seen.W[start], seen.b[start])
        self._solve()
        self._grow(is_begun)
        self._grow()

    @property
    def error(self) -> float:
        """Standard error of the row."""
        return float(np.sqrt(np.trace(self.covariance[:-1, :-1])))

    def apart(self, points: FloatArray, off: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How far homogeneous points are from it, and how well that is known where they err."""
        spread = ((points @ self.covariance) * points).sum(axis=1)
        doubt = np.sqrt(np.maximum(spread, 0.0) + off**2)
        return np.abs(points @ self.row), doubt

    def add(self, X: FloatArray, off: FloatArray) -> None:
        """Take in points that were measured, which err by so much."""
        self.more = np.vstack([self.more, np.column_stack([X, np.ones(len(X))])])
        self.more_off = np.append(self.more_off, off)
        self._solve()

    def _grow(self, among: BoolArray | bool = True) -> None:
        """Add what agrees on lines that have no member yet."""
        is_open = self.is_free & among & ~np.isin(self.lines, self.lines[self.members])
        while is_open.any():
            k = self._next(np.flatnonzero(is_open))
            if k is None:
                break
            on_line = self.lines == self.lines[k]
            self.log_chance += self._log_chance(k, np.flatnonzero(self.is_free & on_line))
            self.members.append(k)
            is_open &= ~on_line
            self._solve()

    def _next(self, rows: IntArray) -> int | None:
        """What agrees with it on another line, where that was foretold best."""
        apart, doubt = self.apart(self.points[rows], self.off[rows])
        near = np.flatnonzero(apart <= SIGMAS * doubt)
        fits = near[self._face_alike(rows[near])]
        return int(rows[fits[doubt[fits].argmin()]]) if len(fits) else None

    def _face_alike(self, rows: IntArray) -> BoolArray:
        """Which rows have its direction but for errors."""
        w, errors = self.row[:-1], self.how.sharp * self.seen.errors[rows]
        normals = self.seen.W[rows] * np.sign(self.seen.W[rows] @ w)[:, None]
        turned = np.linalg.norm(normals - w, axis=1)
        return np.asarray(turned <= SIGMAS * np.hypot(errors, self.error))

    def _log_chance(self, k: int, on_line: IntArray) -> float:
        """How likely one of a line's kinks agrees as ``k`` does where they lie by chance.

        They are as close together near the plane as within their median distance from it.
        """
        apart, doubt = self.apart(self.points[on_line], self.off[on_line])
        typical = max(float(np.median(apart)), np.finfo(np.float64).tiny)
        width = SIGMAS * doubt[on_line == k][0] / (2.0 * typical)
        return float(np.log(min(self._face_alike(on_line).sum() * width, 1.0)))

    def _solve(self) -> None:
        """Least squares over where it was met, and in which directions.

        Where it is met more often than it has unknowns, what is off is forgotten: of all kinks
        some are near by chance.
        """
        d, members = len(self.row) - 1, self.members
        points = np.vstack([self.points[members], self.more])
        off = np.append(self.off[members], self.more_off)
        weights = np.ones(len(points))
        for turn in range(self.how.n_solves if len(points) > d + 1 else 2):
            if turn > 1:
                left = np.abs(points @ self.row) / off
                typical = max(float(np.median(left)), self.how.least_off)
                weights = cauchy(left, 3.0 * typical)
            self._step(points, off / weights, weights[: len(members)])
        left, n_spare = points @ self.row * weights / off, (weights**2).sum() - d
        # As members agree, so does the row err: where few are spare, by no less than they may.
        larger = (left**2).sum() / max(n_spare, 1.0)
        least = self.how.least_off**2 if n_spare >= d and not len(self.more) else 1.0
        self.covariance = self.covariance * max(larger, least)

    def _step(self, points: FloatArray, off: FloatArray, weights: FloatArray) -> None:
        """A step in the tangent space of rows of norm 1, towards points and directions."""
        d, w = len(self.row) - 1, self.row[:-1]
        B = np.zeros((d + 1, d))
        B[:-1, :-1] = np.linalg.qr(w[:, None], mode="complete")[0][:, 1:]
        B[-1, -1] = 1.0
        A = (points @ B) / off[:, None]
        M, right = A.T @ A, -A.T @ (points @ self.row / off)
        normals = self.seen.W[self.members] * np.sign(self.seen.W[self.members] @ w)[:, None]
        errors = self.how.sharp * self.seen.errors[self.members] / np.sqrt(d) + self.how.place
        sure = (weights / errors) ** 2
        M[np.diag_indices(d - 1)] += sure.sum()
        right[:-1] += B[:-1, :-1].T @ (sure @ (normals - w))
        inverse = np.linalg.inv(M)
        self.row = self.row + B @ (inverse @ right)
        self.row /= np.linalg.norm(self.row[:-1])
        self.covariance = B @ inverse @ B.T


def planes(
    how: PlaneTuning,
    seen: Rows,
    lines: IntArray,
    least: int,
    chance: float,
    rng: np.random.Generator,
) -> list[Plane]:
    """Planes that enough lines agree on, and no more likely by chance; no two share any.

    Those begin first whose row is known best, each on some of the lines: what has misled it once
    is not there each time.
    """
    is_free, found = np.ones(len(seen), dtype=bool), []
    n_lines = int(lines.max(initial=-1)) + 1
    starts = rng.permutation(np.flatnonzero(np.isfinite(seen.errors)))[: how.n_starts]
    for i in starts[np.argsort(seen.errors[starts], kind="stable")]:
        is_begun = (rng.random(n_lines) < how.begun)[lines]
        if not is_free[i]:
            continue
        plane = Plane(how, seen, lines, int(i), is_free, is_begun)
        if len(plane.members) >= least and plane.log_chance <= np.log(chance):
            is_free[plane.members] = False
            found.append(plane)
    return found


def rows_of(found: list[Plane], seen: Rows) -> Rows:
    """Planes as rows; of their first members are output columns and points."""
    first = seen.take(np.array([plane.members[0] for plane in found], dtype=np.intp))
    if not found:
        return first
    W, errors = np.array([plane.row for plane in found]), [plane.error for plane in found]
    return Rows(W[:, :-1], W[:, -1], first.A, np.array(errors), first.X)


def sizes(X: FloatArray) -> FloatArray:
    """Of points, in homogeneous coordinates."""
    return np.asarray(np.sqrt(1.0 + (X**2).sum(axis=1)))
