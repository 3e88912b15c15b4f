"""Where a function is asked: everywhere, where all coordinates are positive, or in a cube.

What a hidden layer puts out is positive: above it a function can be asked on the orthant alone, and
a hyperplane of the next layer goes on no further than to its walls.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from revelu.probe.box import segment
from revelu.probe.hyperplane import points_on_hyperplanes
from revelu.probe.line import Line, random_line
from revelu.types import FloatArray


class Region(Protocol):
    """What searches draw from."""

    def points(self, rng: np.random.Generator, n: int, d: int) -> FloatArray:
        """Points, shape (n, d)."""
        ...

    def points_on_hyperplanes(
        self, rng: np.random.Generator, W: FloatArray, b: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """A point of each hyperplane ``W x + b = 0``, and the unit normals, shape (m, d)."""
        ...

    def line(self, rng: np.random.Generator, d: int) -> Line:
        """A line through the region."""
        ...

    def interval(self, line: Line) -> tuple[float, float]:
        """Least and largest ``t`` of a line to ask at."""
        ...

    def shares(self, x: FloatArray, moves: FloatArray) -> FloatArray:
        """Signed shares of moves from a point that end inside, those of most room, shape (n,)."""
        ...

    def inside(self, X: FloatArray, moves: FloatArray) -> FloatArray:
        """Shorten moves from points so that they end inside, shape (n, d)."""
        ...

    def clip(self, X: FloatArray) -> FloatArray:
        """The nearest points inside, shape (n, d)."""
        ...


class Everywhere:
    """Gaussian points."""

    def points(self, rng: np.random.Generator, n: int, d: int) -> FloatArray:
        """Standard normal points, shape (n, d)."""
        return np.asarray(rng.standard_normal((n, d)))

    def points_on_hyperplanes(
        self, rng: np.random.Generator, W: FloatArray, b: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Such points projected onto hyperplanes."""
        return points_on_hyperplanes(rng, W, b)

    def line(self, rng: np.random.Generator, d: int) -> Line:
        """A line through two such points."""
        return random_line(rng, d)

    def interval(self, line: Line) -> tuple[float, float]:
        """Lines have no ends."""
        del line
        return -np.inf, np.inf

    def shares(self, x: FloatArray, moves: FloatArray) -> FloatArray:
        """All of each."""
        del x
        return np.ones(len(moves))

    def inside(self, X: FloatArray, moves: FloatArray) -> FloatArray:
        """All moves end inside."""
        del X
        return moves

    def clip(self, X: FloatArray) -> FloatArray:
        """All are."""
        return X


@dataclass(frozen=True)
class Orthant:
    """Points of positive coordinates, of many sizes: neurons are on there in many patterns.

    Attributes
    ----------
    tail : float
        Standard deviation of the logarithm of what normal coordinates are multiplied by,
    tail_on_lines : float
        and of the ends of lines, which are near the walls.
    margin : float
        Points of hyperplanes are no nearer to a wall, relative to the size of their coordinates.
    max_tries : int
        Draws of a point of a hyperplane.
    """

    tail: float = 0.8
    tail_on_lines: float = 1.5
    margin: float = 0.02
    max_tries: int = 100

    def points(self, rng: np.random.Generator, n: int, d: int) -> FloatArray:
        """Points whose coordinates vary in size, shape (n, d)."""
        Z, tails = rng.standard_normal((2, n, d))
        return np.asarray(np.abs(Z) * np.exp(self.tail * tails))

    def points_on_hyperplanes(
        self, rng: np.random.Generator, W: FloatArray, b: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Points moved onto each hyperplane, small coordinates the less, and drawn anew outside.

        Moving along ``D w`` with ``D = diag(x^2)`` changes coordinates relative to their size.
        Where no draw ends inside, a point is returned that lies on no hyperplane.
        """
        norms = np.linalg.norm(W, axis=1)
        normals, b, d = W / norms[:, None], b / norms, W.shape[1]
        X, todo = self.points(rng, len(W), d), np.arange(len(W))
        for _ in range(self.max_tries):
            if not len(todo):
                break
            drawn = self.points(rng, len(todo), d)
            moves, off = drawn**2 * normals[todo], (drawn * normals[todo]).sum(axis=1) + b[todo]
            moves *= (off / (moves * normals[todo]).sum(axis=1))[:, None]
            drawn -= moves
            size = np.sqrt((drawn**2).mean(axis=1))
            is_inside = drawn.min(axis=1) > self.margin * size
            X[todo[is_inside]] = drawn[is_inside]
            todo = todo[~is_inside]
        return X, normals

    def line(self, rng: np.random.Generator, d: int) -> Line:
        """A line that is inside for ``|t| <= 1`` at least, from near some walls to near others."""
        ends = np.exp(self.tail_on_lines * rng.standard_normal((2, d)))
        ends *= np.sqrt(d) / np.linalg.norm(ends, axis=1, keepdims=True)
        # Of ends of one length, half the sum and half the difference are orthogonal.
        return Line(0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0]))

    def interval(self, line: Line) -> tuple[float, float]:
        """Beyond the walls rows are left out, but the line goes on."""
        del line
        return -np.inf, np.inf

    def shares(self, x: FloatArray, moves: FloatArray) -> FloatArray:
        """All of each: differences are as long as pieces allow."""
        del x
        return np.ones(len(moves))

    def inside(self, X: FloatArray, moves: FloatArray) -> FloatArray:
        """Shorten moves to half of the way to the nearest wall."""
        with np.errstate(divide="ignore"):
            room = np.where(moves < 0, -X / moves, np.inf).min(axis=1)
        return np.asarray(moves * np.minimum(0.5 * room, 1.0)[:, None])

    def clip(self, X: FloatArray) -> FloatArray:
        """Negative coordinates become 0."""
        return np.asarray(np.maximum(X, 0.0))


@dataclass(frozen=True)
class Cube:
    """Points of the cube ``|x_i| <= bound``; no question leaves it but by a rounding.

    Half of the points are uniform, and half on faces, edges or corners, which are farther apart
    than any others: there are neurons that fire on corners alone.

    Attributes
    ----------
    bound : float
        At the root of 3 coordinates vary as standard normal ones do.
    nearest, farthest : float
        Lines end between these shares of the way from the middle to a corner and to its opposite,
        coordinate by coordinate: the longest chords meet most hyperplanes, and short of the faces
        there is room for differences.
    """

    bound: float = 3.0**0.5
    nearest: float = 0.93
    farthest: float = 0.99

    def points(self, rng: np.random.Generator, n: int, d: int) -> FloatArray:
        """Uniform points, and such of which any share of the coordinates is at a face, (n, d)."""
        X = rng.uniform(-self.bound, self.bound, (n, d))
        is_outer = rng.random((n // 2, d)) >= rng.random((n // 2, 1))
        corners = rng.choice([-self.bound, self.bound], is_outer.shape)
        X[1::2] = np.where(is_outer, corners, X[1::2])
        return np.asarray(X)

    def points_on_hyperplanes(
        self, rng: np.random.Generator, W: FloatArray, b: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Points of the cube, where a hyperplane has some, else points outside of it."""
        return points_on_hyperplanes(rng, W, b, bound=self.bound)

    def line(self, rng: np.random.Generator, d: int) -> Line:
        """The chord from near a corner to near the opposite one."""
        corner = self.near_corners(rng, rng.choice([-1.0, 1.0], (1, d)))[0]
        return self.chord(corner, self.near_corners(rng, -corner[None])[0])

    def chord(self, start: FloatArray, end: FloatArray) -> Line:
        """The line between two points for ``|t| <= 1``."""
        return segment(self.clip(start), self.clip(end))[0]

    def near_corners(self, rng: np.random.Generator, X: FloatArray) -> FloatArray:
        """Points near the corners that others are nearest to, shape (n, d)."""
        shares = rng.uniform(self.nearest, self.farthest, X.shape)
        return np.asarray(np.where(X < 0.0, -1.0, 1.0) * self.bound * shares)

    def around(self, rng: np.random.Generator, x: FloatArray, n: int) -> FloatArray:
        """Points that share more or less of their coordinates with one, shape (n, d)."""
        is_shared = rng.random((n, len(x))) < rng.random((n, 1))
        return np.asarray(np.where(is_shared, x, self.points(rng, n, len(x))))

    def interval(self, line: Line) -> tuple[float, float]:
        """From end to end."""
        del line
        return -1.0, 1.0

    def shares(self, x: FloatArray, moves: FloatArray) -> FloatArray:
        """Of each move, or of its opposite where that has more room."""
        rooms = np.stack([self._room(x, moves), self._room(x, -moves)])
        turned = np.where(rooms[0] >= np.minimum(rooms[1], 1.0), 1.0, -1.0)
        return np.asarray(turned * np.clip(rooms.max(axis=0), 0.0, 1.0))

    def inside(self, X: FloatArray, moves: FloatArray) -> FloatArray:
        """Shorten moves where they would end beyond a face."""
        return np.asarray(moves * np.clip(self._room(X, moves), 0.0, 1.0)[:, None])

    def _room(self, X: FloatArray, moves: FloatArray) -> FloatArray:
        """How many times each move fits, shape (n,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            fits = np.where(moves != 0.0, (self.bound - np.sign(moves) * X) / np.abs(moves), np.inf)
        return np.asarray(fits.min(axis=1))

    def clip(self, X: FloatArray) -> FloatArray:
        """Coordinates end at the faces."""
        return np.asarray(np.clip(X, -self.bound, self.bound))
