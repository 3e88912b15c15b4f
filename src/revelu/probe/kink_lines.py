"""Where a line meets a hyperplane that is known roughly: four points prove it and measure it.

Two points at either end give the function on both sides; the two straight pieces meet on the
hyperplane.  That it is one kink, and whose, is told by the change of slope.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.hyperplane import points_on_hyperplanes
from revelu.probe.line import Ask
from revelu.types import BoolArray, FloatArray, IntArray

# An answer beside what two others, half a range apart, foretell a whole range on: y2 - 3 y1 + 2 y0.
EXTRAPOLATED = math.hypot(1.0, 3.0, 2.0)
"""Standard error of that, in errors of an answer; nearer it is less."""


@dataclass(frozen=True, eq=False)
class Kinks:
    """What four points on each of n lines say: two straight pieces, and where they meet.

    ``jumps (n, k)`` is the change of slope, ``error (n,)`` its standard error relative to it;
    ``values`` and ``slopes``, shape (n, 2, k), are those at the two inner points.  ``is_blank``
    says where all answers are the same: no neuron below shows there.
    """

    is_kink: BoolArray
    is_blank: BoolArray
    tau: FloatArray
    tau_error: FloatArray
    jumps: FloatArray
    error: FloatArray
    values: FloatArray
    slopes: FloatArray


@dataclass(frozen=True, eq=False)
class KinkLines:
    """Lines ``X + tau M`` on which a kink is expected around ``middle``, up to half of ``T``."""

    X: FloatArray
    M: FloatArray
    middle: FloatArray
    T: FloatArray

    @property
    def tau(self) -> FloatArray:
        """Where they are asked, shape (n, 4)."""
        return np.asarray(self.middle[:, None] + self.T[:, None] * np.array([-1.0, -0.5, 0.5, 1.0]))

    def at(self, rows: IntArray, tau: FloatArray) -> FloatArray:
        """Points on some of the lines, ``tau (m, p)``, shape (m p, d)."""
        X = self.X[rows, None, :] + tau[:, :, None] * self.M[rows, None, :]
        return X.reshape(-1, X.shape[2])

    @property
    def points(self) -> FloatArray:
        """The questions, shape (4 n, d)."""
        return self.at(np.arange(len(self.X)), self.tau)

    def meets(self, seen: Kinks) -> FloatArray:
        """Where the pieces meet, shape (n, d)."""
        return np.asarray(self.X + seen.tau[:, None] * self.M)

    def read(self, Y: FloatArray, noise: NoiseFloor) -> Kinks:
        """Read the answers ``Y (4 n, k)``; what is read is in units of the outputs.

        Tests allow for the places at which answers err most, and errors are standard ones.
        """
        n, tau = len(self.X), self.tau
        finite = np.asarray(np.isfinite(Y).reshape(n, -1).all(axis=1))
        Y = np.where(np.repeat(finite, 4)[:, None], Y, 0.0)
        asked = self.points, Y, noise.unit, n
        sigma, usual = (_worst(errors, *asked) for errors in (noise.sigma_at, noise.typical_at))
        Y = Y.reshape(n, 4, -1) / noise.unit
        rounding = np.linalg.norm(sigma, axis=1)
        half = (0.5 * self.T)[:, None]
        a, b = (Y[:, 1] - Y[:, 0]) / half, (Y[:, 3] - Y[:, 2]) / half
        jumps = b - a
        size = np.linalg.norm(jumps, axis=1)
        error = 2.0 * rounding / half[:, 0]
        safe = np.where(size > 0, size, 1.0)
        gap = Y[:, 2] - Y[:, 1] - a * (tau[:, 2] - tau[:, 1])[:, None]
        # From the second point on, a (t2 - t1) + jump (t2 - tau) is the gap's rise.
        meets = tau[:, 2] - (gap * jumps).sum(axis=1) / safe**2
        # The two pieces, u and v of half a range away, err by what answers do along the jump.
        u, v = (meets - tau[:, 0]) / half[:, 0], (tau[:, 3] - meets) / half[:, 0]
        apart = np.sqrt((1.0 - u) ** 2 + u**2 + (1.0 - v) ** 2 + v**2) / safe
        place, tau_error = (
            apart * np.where(size > 0, np.linalg.norm(errors * jumps, axis=1) / safe, rounding)
            for errors in (sigma, usual)
        )
        # At an inner point itself the kink would be anywhere between that and the outer one.
        margin = SIGMAS * place
        inside = (meets > tau[:, 1] + margin) & (meets < tau[:, 2] - margin)
        # With several outputs the lines of all must meet there.
        off = np.linalg.norm(gap - jumps * (tau[:, 2] - meets)[:, None], axis=1)
        inside &= off <= SIGMAS * EXTRAPOLATED * rounding
        is_kink = finite & inside & (size > SIGMAS * error)
        slopes = np.stack([a, b], axis=1)
        differ = np.linalg.norm(np.ptp(Y, axis=1), axis=1)
        is_blank = finite & (differ <= SIGMAS * math.sqrt(2.0) * rounding)
        error = 2.0 * np.linalg.norm(usual, axis=1) / half[:, 0] / safe
        return Kinks(is_kink, is_blank, meets, tau_error, jumps, error, Y[:, 1:3], slopes)

    def beside(self, rows: IntArray, tau: FloatArray) -> FloatArray:
        """Points on both sides of where lines meet, shape (2 m, d)."""
        step = self.T[rows] / 64.0
        return self.at(rows, np.column_stack([tau[rows] - step, tau[rows] + step]))

    def are_single(
        self, rows: IntArray, seen: Kinks, Z: FloatArray, noise: NoiseFloor
    ) -> BoolArray:
        """Whether the function follows the two lines up to where they meet, by answers beside."""
        step, tau, meets = self.T[rows] / 64.0, self.tau[rows], seen.tau[rows]
        asked = self.beside(rows, seen.tau), Z, noise.unit, len(rows)
        rounding = np.linalg.norm(_worst(noise.sigma_at, *asked), axis=1)
        Z = Z.reshape(len(rows), 2, -1) / noise.unit
        away = np.stack([meets - step - tau[:, 1], meets + step - tau[:, 2]], axis=1)
        off = np.linalg.norm(
            Z - seen.values[rows] - seen.slopes[rows] * away[:, :, None], axis=2
        ).max(axis=1)
        return np.asarray(off <= SIGMAS * EXTRAPOLATED * rounding)


def _worst(
    errors: Callable[[FloatArray, FloatArray], FloatArray],
    X: FloatArray,
    Y: FloatArray,
    unit: FloatArray,
    n: int,
) -> FloatArray:
    """By output, in units, the error of the answer on each of n lines that errs most, (n, k)."""
    found = errors(X, np.where(np.isfinite(Y), Y, 0.0)) / unit
    return np.asarray(found.reshape(n, -1, Y.shape[1]).max(axis=1))


@dataclass(frozen=True)
class Sharpening:
    """The measurement of rows anew, from where their hyperplanes are at far apart points."""

    spare: float = 0.05
    """Points beyond the d that a row needs, as a share of them, 2 at least: a square system would
    magnify every error by d."""
    least: float = 1e-7
    """The range that is asked, relative to the root mean square of the point: at least,"""
    margin: float = 50.0
    """and in errors of the row."""
    near: float = 10.0
    """Where the lines meet further than ``near`` errors from the row, another neuron's kink lies
    beside this one's."""
    bound: float = np.inf
    """The largest coordinate of a point."""
    at_once: float = 4e6
    """So many numbers of inputs at once, times 4: that takes some 0.3 GB."""

    def measure(
        self,
        ask: Ask,
        noise: NoiseFloor,
        W: FloatArray,
        b: FloatArray,
        errors: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return first-layer rows measured again, and their errors.

        Parameters
        ----------
        W, b : ndarray, shape (m, d) and (m,)
            Rows of norm 1.
        errors : ndarray, shape (m,)
            How far they may be off.

        Returns
        -------
        W, b, errors
            A row without enough points stays as it is.
        """
        m, d = W.shape
        W, b, errors = W.copy(), b.copy(), errors.copy()
        if not m:
            return W, b, errors
        for some in np.array_split(np.arange(m), max(1, round(m * d**2 / self.at_once))):
            A, near, sigma = self._points(ask, noise, W[some], b[some], errors[some], rng)
            for i, points, is_own, sigmas in zip(some, A, near, sigma, strict=True):
                if is_own.sum() < d:
                    continue
                row, error = plane_through(points[is_own], sigmas[is_own], np.append(W[i], b[i]))
                if np.linalg.norm(row[:-1] - W[i]) < self.near * max(errors[i], self.least):
                    W[i], b[i], errors[i] = row[:-1], row[-1], error
        return W, b, errors

    def _points(
        self,
        ask: Ask,
        noise: NoiseFloor,
        W: FloatArray,
        b: FloatArray,
        errors: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, BoolArray, FloatArray]:
        """Points ``(x, 1)`` of each hyperplane, shape (m, n, d + 1).

        And where they are its own, and their errors across it, shape (m, n).
        """
        m, d = W.shape
        n = d + max(2, int(self.spare * d))
        rows = np.repeat(np.arange(m), n)
        X, M = points_on_hyperplanes(rng, W[rows], b[rows], bound=self.bound)
        size = noise.growth(X)
        T = size * np.maximum(self.least, self.margin * errors[rows])
        lines = KinkLines(X, M, np.zeros(len(X)), T)
        seen = lines.read(ask(lines.points), noise)
        off = size * np.maximum(self.least, errors[rows])
        is_own = seen.is_kink & (np.abs(seen.tau) <= self.near * off)
        A = np.column_stack([lines.meets(seen), np.ones(len(X))])
        return A.reshape(m, n, d + 1), is_own.reshape(m, n), seen.tau_error.reshape(m, n)


def plane_through(
    A: FloatArray, errors: FloatArray, row: FloatArray, n_steps: int = 2
) -> tuple[FloatArray, float]:
    """The plane ``A row = 0`` through points, from one near it, and its standard error.

    A few points may lie beside it.  With hardly more points than unknowns they bend it towards
    them, and stand out by what is left over the share of it that a point leaves to the others.
    """
    d = A.shape[1] - 1
    A, spare = A / errors[:, None], len(A) - d
    while True:
        # The last singular value is that of the row itself, whose length is free.
        U, s, Vt = (part[..., :d] for part in _svd(A))
        for _ in range(n_steps):
            row = row - Vt @ ((U.T @ (A @ row)) / s)
            row /= np.linalg.norm(row[:-1])
        left = np.abs(A @ row)
        out = left / np.sqrt(np.maximum(1.0 - (U**2).sum(axis=1), 1e-3))
        if out.max() <= SIGMAS or 2 * (len(A) - d) <= spare:
            break
        A = np.delete(A, int(out.argmax()), axis=0)
    typical = float(np.sqrt((left**2).sum() / max(len(A) - d, 1)))
    return row, max(typical, 1.0) * float(np.linalg.norm(Vt[:-1] / s))


def _svd(A: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return U, s, Vt.T
