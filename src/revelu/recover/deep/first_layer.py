"""The first of several hidden layers (DG21, sections 3.5.1 to 3.5.3).

A hyperplane of the first layer bends the function wherever it goes (Lemma 8); one of a
later layer ends or turns where a neuron below it changes its state.  That tells them
apart (Algorithm 7).  Their rows' signs follow from the gradients: with ``d1 <= d``
independent rows a gradient has unique coefficients in them, and a neuron that is off has
the coefficient 0.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from revelu.errors import SaturatedError
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.hyperplane import bend_everywhere, bend_shares, points_on_hyperplanes
from revelu.probe.kinks import find_kinks
from revelu.probe.line import Line
from revelu.recover.line import Peeling
from revelu.recover.shallow.line_neurons import peel
from revelu.types import BoolArray, FloatArray

# A direction counts as missing when gradients leave more than this share of them in it: the
# root of what a derivative's digits leave.
_LEFT_OUT = 1e-6
_FEWEST_WITNESSES = 2

# A neuron is off where its coefficient is this share of what it is where the neuron is on.
_OFF = 1e-4

# Lines along missing directions, and crossings of one hyperplane.
_MAX_TURNS = 4

# Lines on which no end of pieces was found: so blurred, others will be, too.
_MOST_BLURRED = 4

# Rows of norm 1, and their offsets, that differ by less are one hyperplane.
_SAME = 1e-4

# A row whose relative error is larger is measured again.
_IMPRECISE = 1e-9

# Singular values of the rows that count as none; points that judge which of dependent rows
# is no first-layer neuron's, and the share of them at which one bends the function.
_DEPENDENT = 1e-6
_MANY_POINTS = 24
_ALWAYS = 0.95

# How far to either side, in |x|, another line through a kink is followed.
_NEARBY = 0.03

# The step across a hyperplane that tells the sign of a row, relative to |x|.
_STEP = 1e-3


@dataclass
class FirstLayer:
    """Rows of norm 1 and what speaks for them.

    Attributes
    ----------
    W : ndarray, shape (d1, d)
    b : ndarray, shape (d1,)
    n_missing : int
        Directions of the gradients that no row explains.
    unsigned : ndarray of bool, shape (d1,)
        Rows whose sign nothing has told.
    n_candidates : int
        Hyperplanes that were tested.
    """

    W: FloatArray
    b: FloatArray
    n_missing: int
    unsigned: BoolArray
    n_candidates: int

    @property
    def condition(self) -> float:
        """The condition number of W, by which its right inverse loses digits."""
        return float(np.linalg.cond(self.W)) if len(self.W) else 1.0


def recover_first_layer(
    oracle: Oracle, noise: NoiseFloor, peeled: Peeling, rng: np.random.Generator
) -> FirstLayer:
    """Recover every first-layer neuron that the gradients show.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
    peeled : Peeling
        The kinks of one line, with a hyperplane each.
    rng : numpy.random.Generator

    Returns
    -------
    FirstLayer

    Raises
    ------
    LimitReachedError
        If the budget ends.
    """
    search = _Search(oracle, noise, rng)
    search.test(peeled)
    for t in peeled.unresolved:
        if search.n_blurred == _MOST_BLURRED:
            break
        x = peeled.scan.line.points(np.array([t]))[0]
        search.follow(*_short_line(x, rng))
    for _ in range(_MAX_TURNS):
        directions = _left_out(peeled.jacobians, search.W)
        if not len(directions):
            break
        search.follow(_line_along(directions, rng))
    search.drop_dependent()
    search.sharpen()
    W, b = search.W, search.b
    n_missing = len(_left_out(peeled.jacobians, W))
    if len(W) > oracle.dim_in:
        return FirstLayer(W, b, 0, np.ones(len(W), dtype=bool), search.n_candidates)
    signs = _signs_by_gradients(W, b, peeled.points, peeled.jacobians)
    for j in np.flatnonzero(signs == 0.0):
        signs[j] = _sign_by_crossing(oracle, noise, W, b, int(j), rng)
    turned = np.where(signs < 0, -1.0, 1.0)
    return FirstLayer(W * turned[:, None], b * turned, n_missing, signs == 0.0, search.n_candidates)


class _Search:
    """First-layer hyperplanes found so far, line by line."""

    def __init__(self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator) -> None:
        self.oracle, self.noise, self.rng = oracle, noise, rng
        self.W, self.b = np.empty((0, oracle.dim_in)), np.empty(0)
        self.errors = np.empty(0)
        self.n_candidates = self.n_blurred = 0

    def follow(self, line: Line, interval: tuple[float, float] = (-np.inf, np.inf)) -> None:
        """Peel a line and keep what belongs to the first layer."""
        peeled = self._peel(line, interval)
        if peeled is not None:
            self.test(peeled)

    def drop_dependent(self) -> None:
        """Of dependent rows, drop those that bend the function least often, if not always.

        Above few first-layer neurons a second-layer one has few places to turn at, and a
        few points may all lie on the same of its pieces.
        """
        n_spare = len(self.W) - int(np.linalg.matrix_rank(self.W, tol=_DEPENDENT))
        if n_spare <= 0:
            return
        shares = bend_shares(self.oracle, self.noise, self.W, self.b, self.rng, _MANY_POINTS)
        order = np.argsort(shares)
        kept = np.ones(len(self.W), dtype=bool)
        kept[order[:n_spare]] = shares[order[:n_spare]] >= _ALWAYS
        self.W, self.b, self.errors = self.W[kept], self.b[kept], self.errors[kept]

    def sharpen(self) -> None:
        """Measure imprecise rows again, where their hyperplanes pass near the origin."""
        for j in np.flatnonzero(self.errors > _IMPRECISE):
            x = points_on_hyperplanes(self.rng, self.W[[j]], self.b[[j]])[0][0]
            peeled = self._peel(*_short_line(x, self.rng))
            if peeled is None:
                continue
            W, b = _unit(peeled.network.weights[0], peeled.network.biases[0])
            same = _same_hyperplanes(W, b, self.W[[j]], self.b[[j]])
            better = np.flatnonzero(same & (peeled.row_errors < self.errors[j]))
            if len(better):
                i = better[np.argmin(peeled.row_errors[better])]
                self.W[j], self.b[j], self.errors[j] = W[i], b[i], peeled.row_errors[i]

    def _peel(self, line: Line, interval: tuple[float, float]) -> Peeling | None:
        nu = float(self.noise.nu.max())
        try:
            scan = find_kinks(self.oracle, line, nu, self.noise.scale, self.rng, interval)
            self.n_blurred += not scan.complete
            return peel(self.oracle, scan, nu, self.rng)
        except SaturatedError:
            return None

    def test(self, peeled: Peeling) -> None:
        """Keep the new ones of a line's hyperplanes that bend the function everywhere."""
        W, b = _unit(peeled.network.weights[0], peeled.network.biases[0])
        self.n_candidates += len(W)
        new = ~_same_hyperplanes(W, b, self.W, self.b)
        W, b, errors = W[new], b[new], peeled.row_errors[new]
        chosen = bend_everywhere(self.oracle, self.noise, W, b, self.rng)
        self.W = np.vstack([self.W, W[chosen]])
        self.b = np.concatenate([self.b, b[chosen]])
        self.errors = np.concatenate([self.errors, errors[chosen]])


def _short_line(x: FloatArray, rng: np.random.Generator) -> tuple[Line, tuple[float, float]]:
    """A short piece of a random line through a point.

    Kinks too near each other on one line are further apart, or not at all, on another.
    """
    v = rng.standard_normal(len(x))
    v *= max(float(np.linalg.norm(x)), len(x) ** 0.5) / np.linalg.norm(v)
    return Line(x, v), (-_NEARBY, _NEARBY)


def _same_hyperplanes(
    W: FloatArray, b: FloatArray, known_W: FloatArray, known_b: FloatArray
) -> BoolArray:
    """Which hyperplanes are among the known ones, up to sign; rows of norm 1."""
    rows, known = np.column_stack([W, b]), np.column_stack([known_W, known_b])
    both = np.vstack([known, -known])
    return np.asarray((cdist(rows, both, "chebyshev") < _SAME).any(axis=1))


def _unit(W: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    norms = np.linalg.norm(W, axis=1)
    kept = norms > 0
    return W[kept] / norms[kept, None], b[kept] / norms[kept]


def _left_out(jacobians: FloatArray, W: FloatArray) -> FloatArray:
    """Orthonormal directions in which gradients change the function and no row looks.

    One Jacobian alone proves nothing: a kink may have corrupted it.
    """
    if not jacobians.size:
        return np.empty((0, W.shape[1]))
    Q = np.linalg.qr(W.T)[0]
    rest = jacobians - (jacobians @ Q) @ Q.T
    sizes = np.linalg.norm(jacobians, axis=(1, 2))
    left_out = np.linalg.norm(rest, axis=(1, 2)) > _LEFT_OUT * sizes
    if left_out.sum() < _FEWEST_WITNESSES:
        return np.empty((0, W.shape[1]))
    _, values, vt = np.linalg.svd(rest[left_out].reshape(-1, W.shape[1]), full_matrices=False)
    return np.asarray(vt[values > _LEFT_OUT * sizes.max()])


def _line_along(directions: FloatArray, rng: np.random.Generator) -> Line:
    """A line along which only missing neurons change."""
    d = directions.shape[1]
    x0 = rng.standard_normal(d)
    v = rng.standard_normal(len(directions)) @ directions
    v *= np.sqrt(d) / np.linalg.norm(v)
    return Line(x0 - v * (x0 @ v) / (v @ v), v)


def _signs_by_gradients(
    W: FloatArray, b: FloatArray, points: FloatArray, jacobians: FloatArray
) -> FloatArray:
    """+1, -1, or 0 where the gradients measured do not tell; no query is spent."""
    inverse = np.linalg.pinv(W)
    sizes = np.linalg.norm(jacobians @ inverse, axis=1)  # (n, d1)
    positive = points @ W.T + b > 0
    above = np.where(positive, sizes, 0.0).max(axis=0, initial=0.0)
    below = np.where(positive, 0.0, sizes).max(axis=0, initial=0.0)
    return np.where(below < _OFF * above, 1.0, np.where(above < _OFF * below, -1.0, 0.0))


def _sign_by_crossing(
    oracle: Oracle,
    noise: NoiseFloor,
    W: FloatArray,
    b: FloatArray,
    j: int,
    rng: np.random.Generator,
) -> float:
    """Which side of a hyperplane is flat when nothing else changes (DG21, 3.5.3)."""
    z = np.linalg.pinv(W)[:, j]
    votes = 0
    for _ in range(_MAX_TURNS):
        X, _ = points_on_hyperplanes(rng, W[[j]], b[[j]])
        step = _STEP * np.linalg.norm(X) / np.linalg.norm(z)
        Y = oracle(np.vstack([X[0], X[0] + step * z, X[0] - step * z]))
        limit = 2.0 * SIGMAS * noise.nu * noise.scale * np.sqrt(1.0 + (X**2).mean())
        up, down = (bool((np.abs(Y[i] - Y[0]) > limit).any()) for i in (1, 2))
        votes += int(up) - int(down)
        if abs(votes) > 1:
            break
    return float(np.sign(votes))
