"""Where a line meets a hyperplane that is known roughly: four points prove it and measure it.

Two points at either end give the function on both sides; the two straight pieces meet on the
hyperplane.  That it is one kink, and whose, is told by the change of slope.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.hyperplane import points_on_hyperplanes
from revelu.probe.line import Ask
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Kinks:
    """What four points on each of n lines say: two straight pieces, and where they meet.

    ``jumps (n, k)`` is the change of slope, ``error (n,)`` its standard error relative to it;
    ``values`` and ``slopes``, shape (n, 2, k), are those at the two inner points.
    """

    is_kink: BoolArray
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

    def read(self, Y: FloatArray, sigma: float) -> Kinks:
        """Read the answers, in units of the outputs."""
        n, tau = len(self.X), self.tau
        Y = Y.reshape(n, 4, -1)
        finite = np.asarray(np.isfinite(Y).all(axis=(1, 2)))
        Y = np.where(finite[:, None, None], Y, 0.0)
        sigma_ = sigma * np.sqrt(1.0 + (self.X**2).mean(axis=1))
        half = (0.5 * self.T)[:, None]
        a, b = (Y[:, 1] - Y[:, 0]) / half, (Y[:, 3] - Y[:, 2]) / half
        jumps = b - a
        size = np.linalg.norm(jumps, axis=1)
        error = 2.0 * sigma_ * np.sqrt(Y.shape[2]) / half[:, 0]
        safe = np.where(size > 0, size, 1.0)
        gap = Y[:, 2] - Y[:, 1] - a * (tau[:, 2] - tau[:, 1])[:, None]
        # From the second point on, a (t2 - t1) + jump (t2 - tau) is the gap's rise.
        meets = tau[:, 2] - (gap * jumps).sum(axis=1) / safe**2
        # At an inner point itself the kink would be anywhere between that and the outer one.
        margin = SIGMAS * 4.0 * sigma_ / safe
        inside = (meets > tau[:, 1] + margin) & (meets < tau[:, 2] - margin)
        # With several outputs the lines of all must meet there.
        off = np.linalg.norm(gap - jumps * (tau[:, 2] - meets)[:, None], axis=1)
        inside &= off <= SIGMAS * 4.0 * sigma_ * np.sqrt(Y.shape[2])
        is_kink = finite & inside & (size > 4.0 * SIGMAS * error)
        slopes = np.stack([a, b], axis=1)
        return Kinks(is_kink, meets, 4.0 * sigma_ / safe, jumps, error / safe, Y[:, 1:3], slopes)

    def beside(self, rows: IntArray, tau: FloatArray) -> FloatArray:
        """Points on both sides of where lines meet, shape (2 m, d)."""
        step = self.T[rows] / 64.0
        return self.at(rows, np.column_stack([tau[rows] - step, tau[rows] + step]))

    def are_single(self, rows: IntArray, seen: Kinks, Z: FloatArray, sigma: float) -> BoolArray:
        """Whether the function follows the two lines up to where they meet."""
        Z = Z.reshape(len(rows), 2, -1)
        step, tau, meets = self.T[rows] / 64.0, self.tau[rows], seen.tau[rows]
        sigma_ = sigma * np.sqrt(1.0 + (self.X[rows] ** 2).mean(axis=1))
        away = np.stack([meets - step - tau[:, 1], meets + step - tau[:, 2]], axis=1)
        off = np.linalg.norm(
            Z - seen.values[rows] - seen.slopes[rows] * away[:, :, None], axis=2
        ).max(axis=1)
        return np.asarray(off <= SIGMAS * 4.0 * sigma_ * np.sqrt(Z.shape[2]))


def sharpened(
    ask: Ask,
    noise: NoiseFloor,
    W: FloatArray,
    b: FloatArray,
    errors: FloatArray,
    rng: np.random.Generator,
    *,
    spare: int = 2,
    least: float = 1e-6,
    margin: float = 50.0,
    bound: float = np.inf,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Measure first-layer rows again, from where their hyperplanes are at far apart points.

    Parameters
    ----------
    W, b : ndarray, shape (m, d) and (m,)
        Rows of norm 1.
    errors : ndarray, shape (m,)
        How far they may be off.
    spare : int
        Points beyond the d that a row needs.
    least, margin : float
        The range that is asked, relative to the point: at least, and in errors.
    bound : float
        The largest coordinate of a point.

    Returns
    -------
    W, b, errors
        A row without enough points stays as it is.
    """
    m, d = W.shape
    if not m:
        return W, b, errors
    rows = np.repeat(np.arange(m), d + spare)
    X, M = points_on_hyperplanes(rng, W[rows], b[rows], bound=bound)
    size = np.maximum(np.linalg.norm(X, axis=1), 1.0)
    T = size * np.maximum(least, margin * errors[rows])
    lines = KinkLines(X, M, np.zeros(len(X)), T)
    sigma = float((noise.nu * noise.scale / noise.unit).max())
    seen = lines.read(ask(lines.points) / noise.unit, sigma)
    W, b, errors = W.copy(), b.copy(), errors.copy()
    for i in range(m):
        mine = np.flatnonzero((rows == i) & seen.is_kink)
        if len(mine) < d:
            continue
        A = np.column_stack([lines.meets(seen)[mine], np.ones(len(mine))])
        row = np.append(W[i], b[i])
        weights = 1.0 / seen.tau_error[mine]
        for _ in range(3):
            left = A @ row
            typical = float(np.median(np.abs(left)))
            w = weights / np.maximum(1.0, np.abs(left) / (10.0 * typical + seen.tau_error[mine]))
            step = np.linalg.lstsq(A * w[:, None], -left * w, rcond=1e-10)[0]
            row = row + step
            row /= np.linalg.norm(row[:-1])
        if np.linalg.norm(row[:-1] - W[i]) < margin * max(errors[i], least):
            W[i], b[i] = row[:-1], row[-1]
            errors[i] = float(np.median(seen.tau_error[mine]))
    return W, b, errors
