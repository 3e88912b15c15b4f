"""Steps at thresholds of single inputs, as trees have them, and rounded networks do not.

Rounding makes steps of a continuous function, of one unit each, where it crosses levels; a forest
whose answers are shares of its trees has steps of one unit, too.  Near a step of rounding the
crossing moves with every input that the function depends on.  Near a tree's it stays where one
input has its threshold, however the others are moved.  Of a function that is a sum of functions of
single inputs rounding makes such steps, too; but those follow each other evenly.
"""

from dataclasses import dataclass

import numpy as np

from revelu.oracle import Oracle
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Sides:
    """Places with a step: inputs on both sides, and answers there.

    Attributes
    ----------
    P, Q : ndarray, shape (n, r)
        Coordinates, which differ in their last digits.
    E : ndarray, shape (n, r)
        Unit vectors that lead across.
    A, B : ndarray, shape (n, k)
    """

    P: FloatArray
    Q: FloatArray
    E: FloatArray
    A: FloatArray
    B: FloatArray

    def __len__(self) -> int:
        return len(self.P)

    def take(self, rows: BoolArray) -> "Sides":
        """Some of them."""
        return Sides(self.P[rows], self.Q[rows], self.E[rows], self.A[rows], self.B[rows])


@dataclass(frozen=True)
class Thresholds:
    """How steps are seen to be thresholds.

    Attributes
    ----------
    width : float
        Between inputs so far apart, relative to their size, the step is taken to be.
    moved : float
        How far all other inputs are moved.  A crossing of levels moves as far, and is still
        between inputs that are a thousandth of it apart once in a thousand times,
    n_moves : int
        on each side and each time.
    nearest, n_doublings, n_halvings : float, int, int
        Where the next steps are sought, and how precisely.
    even : float
        Steps are even whose distances differ by a smaller share.
    share, most_even : float
        Places at which one input decides, at least, and of these with even steps, at most.
    """

    width: float = 1e-9
    moved: float = 1e-6
    n_moves: int = 2
    nearest: float = 1e-6
    n_doublings: int = 24
    n_halvings: int = 24
    even: float = 0.01
    share: float = 0.75
    most_even: float = 0.5

    def are_seen(self, oracle: Oracle, sides: Sides, rng: np.random.Generator) -> bool:
        """Whether most steps are thresholds, of several inputs, and uneven."""
        _, matrix = oracle.own_inputs
        if oracle.box is not None or matrix.shape[0] != matrix.shape[1] or not len(sides):
            return False
        # Row j moves the target's input j alone.
        own: FloatArray = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
        decided = self._deciding(oracle, sides, matrix, own)
        rows = np.flatnonzero(decided >= 0)
        if len(rows) < self.share * len(sides) or len(np.unique(decided[rows])) < 2:
            return False
        some, which = sides.take(decided >= 0), decided[rows]
        stays = self._stays(oracle, some, which, (matrix, own), rng)
        if stays.sum() < self.share * len(sides):
            return False
        even = self._are_even(oracle, some.take(stays), own[which[stays]])
        return bool(even.mean() <= self.most_even)

    def _apart(self, sides: Sides) -> tuple[FloatArray, FloatArray]:
        size = np.maximum(np.abs(sides.P).max(axis=1), 1.0)[:, None]
        move = self.width * size * sides.E
        return sides.P - move, sides.Q + move

    def _deciding(
        self, oracle: Oracle, sides: Sides, matrix: FloatArray, own: FloatArray
    ) -> IntArray:
        """The one input that makes all of a step, of each; -1 where there is none."""
        P, Q = self._apart(sides)
        apart = (Q - P) @ matrix
        hybrids = P[:, None] + apart[:, :, None] * own
        Y = oracle(hybrids.reshape(-1, P.shape[1])).reshape(*apart.shape, -1)
        makes = (sides.B[:, None] == Y).all(axis=2)
        makes &= ((sides.A[:, None] == Y).all(axis=2) | makes).all(axis=1)[:, None]
        return np.where(makes.sum(axis=1) == 1, makes.argmax(axis=1), -1)

    def _stays(
        self,
        oracle: Oracle,
        sides: Sides,
        which: IntArray,
        maps: tuple[FloatArray, FloatArray],
        rng: np.random.Generator,
    ) -> BoolArray:
        """Whether steps stay where they are when all other inputs are moved."""
        matrix, own = maps
        stays = np.ones(len(sides), bool)
        # As far for each input as a coordinate would be moved.
        spreads = np.linalg.norm(matrix, axis=0)
        for _ in range(self.n_moves):
            moves = self.moved * spreads * rng.choice([-1.0, 1.0], (len(sides), len(spreads)))
            moves[np.arange(len(sides)), which] = 0.0
            for side, answers in zip(self._apart(sides), (sides.A, sides.B), strict=True):
                stays &= (oracle(side + moves @ own) == answers).all(axis=1)
        return stays

    def _are_even(self, oracle: Oracle, sides: Sides, along: FloatArray) -> BoolArray:
        """Whether the steps before and behind are as far, along the input that decides."""
        unit = along / np.linalg.norm(along, axis=1)[:, None]
        unit = unit * np.sign((unit * sides.E).sum(axis=1))[:, None]
        before = self._next(oracle, sides.P, -unit, sides.A)
        behind = self._next(oracle, sides.Q, unit, sides.B)
        seen = np.isfinite(before) & np.isfinite(behind)
        a, b = np.where(seen, before, 0.0), np.where(seen, behind, 1.0)
        return np.asarray(np.abs(a - b) <= self.even * np.maximum(a, b))

    def _next(self, oracle: Oracle, X: FloatArray, U: FloatArray, Y: FloatArray) -> FloatArray:
        """How far answers stay ``Y`` along ``U``; infinity where no end was seen."""
        lo = np.zeros(len(X))
        hi = np.full(len(X), np.inf)
        for n in range(self.n_doublings + self.n_halvings):
            is_open = np.isinf(hi)
            if n >= self.n_doublings and is_open.all():
                break
            t = np.where(is_open, self.nearest * 2.0**n, (lo + hi) / 2.0)
            t = np.where(is_open & (n >= self.n_doublings), lo, t)
            same = (oracle(X + t[:, None] * U) == Y).all(axis=1)
            lo, hi = np.where(same, t, lo), np.where(same, hi, t)
        return hi
