"""What no walk has told of rows, from answers where the neurons that read it are on.

A walk sees an entry of a row where the neuron's surface turns.  Where it never meets a wall, or
meets some in one way only, a part of the row is open: it counts beyond the surface, where the
answers are linear in it as long as no neuron changes its state.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from revelu.network import Network
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.float64 import EPS, HALF_DIGITS, TINY
from revelu.numerics.records import Records
from revelu.numerics.reweighting import LeastDeviations
from revelu.recover.deep.estimate import Estimate
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class OpenWeights(Records):
    """Directions in which rows of a layer, each with its bias, may be moved."""

    rows: IntArray
    """Shape (p,).  Whose."""
    directions: FloatArray
    """Shape (p, dim + 1).  As long as the row may be off along each."""

    @classmethod
    def of(
        cls, rows: Sequence[Estimate], dim: int, *, least: float = HALF_DIGITS, most: int = 200
    ) -> "OpenWeights":
        """Return what is not known of rows in a frame of known signs, up to standard errors.

        Of more directions than can be solved for those that matter most are returned: what no
        equation tells before what one does.
        """
        vague, single = (
            zip(*(row.uncertain(least) for row in rows), strict=True) if rows else ((), ())
        )
        parts = [*vague, *single]
        owners = np.repeat([*range(len(rows))] * 2, [len(part) for part in parts]).astype(np.intp)
        directions = np.vstack([np.empty((0, dim + 1)), *parts])
        is_single = np.arange(len(owners)) >= sum(len(part) for part in vague)
        order = np.lexsort([-np.linalg.norm(directions, axis=1), is_single])
        some = np.sort(order[:most])
        return cls(owners[some], directions[some])

    @classmethod
    def free(cls, W: FloatArray, rows: Sequence[int]) -> "OpenWeights":
        """Return all directions of some of the rows ``W (m, dim)``."""
        parts = [np.linalg.norm(W[i]) * np.eye(W.shape[1] + 1) for i in rows]
        owners = np.repeat(np.array(rows, dtype=np.intp), W.shape[1] + 1)
        return cls(owners, np.vstack([np.empty((0, W.shape[1] + 1)), *parts]))

    def weights(self, n_rows: int, atol: float = 1e-6) -> BoolArray:
        """Which weights are not known, shape (n_rows, dim)."""
        unknown = np.zeros((n_rows, self.directions.shape[1] - 1), dtype=bool)
        np.logical_or.at(unknown, self.rows, np.abs(self.directions[:, :-1]) > atol)
        return unknown

    def on_inputs(self, told: BoolArray) -> "OpenWeights":
        """Return what is open of the weights of some of the layer's inputs."""
        return OpenWeights(self.rows, self.directions[:, np.append(told, True)])

    def through(self, basis: FloatArray) -> "OpenWeights":
        """Return them for a layer that reads what ``basis (dim, d)`` makes its inputs."""
        weights = self.directions[:, :-1] @ basis
        return OpenWeights(self.rows, np.column_stack([weights, self.directions[:, -1]]))

    def of_rows(self, kept: BoolArray) -> "OpenWeights":
        """Return those of some of the layer's rows."""
        some = kept[self.rows]
        return OpenWeights((np.cumsum(kept) - 1)[self.rows[some]], self.directions[some])

    def moves(self, x: FloatArray, n_rows: int) -> tuple[FloatArray, FloatArray]:
        """Changes of weights and biases by multiples ``x (p,)`` of the directions."""
        change = np.zeros((n_rows, self.directions.shape[1]))
        np.add.at(change, self.rows, x[:, None] * self.directions)
        return change[:, :-1], change[:, -1]

    def fill(
        self,
        network: Network,
        X: FloatArray,
        Y: FloatArray,
        unit: FloatArray,
        *,
        noise: float,
        max_steps: int = 3,
    ) -> Network:
        """Solve for what is open of the last hidden layer.

        Parameters
        ----------
        network : Network
            Right but for that, at most inputs.
        X, Y : ndarray, shape (n, d) and (n, k)
            Answers, some of which show it.
        unit : ndarray, shape (k,)
            Units of the outputs.
        noise : float
            What answers say no less than, in their units: steps that move them by less end it.
        max_steps : int
            Times that it is solved for, with the states that the neurons have then.
        """
        A = network.weights[-1] / unit[:, None]
        for _ in range(max_steps):
            moves, chance = self.shown(network, X)
            parts, left = moves * chance, (Y - network(X)) / unit
            some = self._telling(parts, np.abs(left).max(axis=1))
            if not len(some):
                break
            F = (parts[some][:, None, :] * A[:, self.rows]).reshape(-1, len(self))
            x = robust_solution(F, (left * chance)[some].ravel(), noise)
            network = self._changed(network, x)
            if np.abs(F @ x).max(initial=0.0) <= noise:
                break
        return network

    def fill_row(
        self,
        network: Network,
        row: int,
        X: FloatArray,
        Y: FloatArray,
        unit: FloatArray,
        *,
        noise: float,
        alone: float = 1e-3,
    ) -> Network:
        """Solve for what is open of one row, where nothing else can be wrong.

        There the answers tell the neuron's sum, whether or not it is on in the network.

        Parameters
        ----------
        X, Y : ndarray, shape (n, d) and (n, k)
            Answers at which the network is wrong.
        alone : float
            What is wrong is this neuron's if so little of it is no multiple of its column.
        """
        mine = self.rows == row
        D, a = self.directions[mine], network.weights[-1][:, row] / unit
        if not a.any():
            return network
        left = (Y - network(X)) / unit
        share = left @ a / (a @ a)
        z = network.preactivations(X)[network.n_hidden - 1][:, row]
        true = np.maximum(z, 0.0) + share
        size = np.linalg.norm(left, axis=1)
        told = np.linalg.norm(left - share[:, None] * a, axis=1) <= alone * size
        told &= true > noise / np.linalg.norm(a)
        F = network.activations(X)[-2] @ D[:, :-1].T + D[:, -1]
        told &= np.abs(F).max(axis=1, initial=0.0) > 0
        if not told.any():
            return network
        x = np.zeros(len(self))
        x[mine] = robust_solution(F[told], (true - z)[told], noise)
        return self._changed(network, x)

    def _changed(self, network: Network, x: FloatArray) -> Network:
        """The network with its last hidden layer moved along the directions."""
        dW, db = self.moves(x, len(network.biases[-2]))
        weights = [*network.weights[:-2], network.weights[-2] + dW, network.weights[-1]]
        biases = [*network.biases[:-2], network.biases[-2] + db, network.biases[-1]]
        return Network(weights, biases, skip=network.skip)

    def shown(self, network: Network, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How far the sum of each row moves along its directions where it is on, (n, p).

        And the chance, (n, 1), that no row changes its state by them, up to where answers are
        linear: unknowns of size 1 or smaller, taken as uniform, leave a sum ``z`` its sign with
        probability ``|z| / |move|`` at least.
        """
        h = network.activations(X)[-2]
        sums = (h @ network.weights[-2].T + network.biases[-2])[:, self.rows]
        moves = h @ self.directions[:, :-1].T + self.directions[:, -1]
        sizes = np.abs(sums)
        chance = (sizes / np.maximum(np.abs(moves), sizes).clip(TINY)).prod(axis=1, keepdims=True)
        return moves * (sums > 0), np.asarray(chance)

    def _telling(self, parts: FloatArray, left: FloatArray, *, most: int = 800) -> IntArray:
        """Points that show each direction best, those that are off most, and some others."""
        n, p = parts.shape
        n_each = max(2, min(8, most // p))
        best = np.argsort(-np.abs(parts), axis=0)[:n_each].ravel()
        worst = np.argsort(-left)[: n_each * p]
        evenly = np.linspace(0, n - 1, min(n, 4 * n_each * p)).astype(np.intp)
        some = np.unique(np.concatenate([best, worst, evenly]))
        return np.asarray(some[np.abs(parts[some]).max(axis=1) > 0])


def robust_solution(F: FloatArray, y: FloatArray, noise: float, *, n_steps: int = 6) -> FloatArray:
    """Minimise ``sum |F x - y|``.

    Unknowns are of size 1 or smaller, and what they leave at most points is no less than noise:
    that decides where the equations do not.
    """
    x = np.zeros(F.shape[1])
    loss, left = LeastDeviations(noise), np.zeros(len(y))
    delta = max(float(np.median(np.abs(y))), noise)
    for i in range(n_steps):
        if i:
            left = np.abs(F @ x - y)
            delta = loss.scale(left)
        x = _nearly_likeliest(F, y, 1.0 / np.sqrt(left + delta), noise / np.sqrt(delta))
    left = np.abs(F @ x - y)
    usual = left <= SIGMAS * max(float(np.median(left)), noise)
    A = np.vstack([F[usual], noise * np.eye(F.shape[1])])
    right = np.append(y[usual], np.zeros(F.shape[1]))
    return np.asarray(scipy.linalg.lstsq(A, right, lapack_driver="gelsy", check_finite=False)[0])


def _nearly_likeliest(F: FloatArray, y: FloatArray, root: FloatArray, ridge: float) -> FloatArray:
    """Weighted least squares for unknowns of size 1, good enough for the weights of a next one.

    Normal equations take a tenth of the time of an orthogonal factorisation.
    """
    A = F * root[:, None]
    normal = A.T @ A
    normal[np.diag_indices_from(normal)] += ridge**2
    sizes = np.sqrt(np.diag(normal))
    normal /= sizes[:, None] * sizes
    normal[np.diag_indices_from(normal)] += len(normal) * EPS
    right = A.T @ (y * root) / sizes
    try:
        factor = scipy.linalg.cho_factor(normal, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return np.zeros(len(right))
    return np.asarray(scipy.linalg.cho_solve(factor, right, check_finite=False) / sizes)
