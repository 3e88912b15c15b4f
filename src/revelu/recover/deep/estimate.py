"""The unknowns of one neuron, known up to a subspace, and how far they may be off.

Every critical point of a neuron is a linear equation for them.  Along a walk each new equation has
one direction that no other has told, and gives it; errors are carried by *members*, solutions of
the same equations with other noise, whose spread at an input is what the sum there may be off by.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from revelu.numerics.confidence import SIGMAS
from revelu.numerics.float64 import EPS, TINY
from revelu.numerics.reweighting import larger_than_said
from revelu.types import FloatArray


@dataclass
class Estimate:
    """What equations say of ``theta (size,)``."""

    size: int
    rng: np.random.Generator
    n_members: int = 6
    loose: float = 1e-2
    """A direction is undetermined if its standard error is larger: gradients have norm 1."""
    rounding: float = 1e-11
    """What rows are known to, relative to their size: the layers below have errors, too."""
    max_steps: int = 8
    """Steps of least deviations, where some equations contradict the rest."""
    max_refinements: int = 6
    """Solutions of each step, the next for what the last one has left,"""
    gains: float = 0.5
    """as long as that is no more than this share of what was left before."""
    members: FloatArray = field(init=False)
    """Shape (1 + n_members, size).  The first one is the solution; none has a part in what is
    undetermined."""
    undetermined: FloatArray = field(init=False)
    """Shape (size, q).  Orthonormal columns: directions that no equation has told."""
    rows: list[FloatArray] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    """The equations, ``row @ theta = value`` up to a standard error."""

    def __post_init__(self) -> None:
        self.members = np.zeros((1 + self.n_members, self.size))
        self.undetermined = np.eye(self.size)

    @property
    def theta(self) -> FloatArray:
        """The solution, shape (size,)."""
        return np.asarray(self.members[0])

    @property
    def n_undetermined(self) -> int:
        """Dimensions that no equation has told."""
        return int(self.undetermined.shape[1])

    @property
    def spread(self) -> float:
        """The largest standard error of an unknown, relative to all of them."""
        size = float(np.linalg.norm(self.theta))
        return float(self.members[1:].std(axis=0).max()) / size if size else 0.0

    def add(self, row: FloatArray, value: float, error: float) -> None:
        """Take an equation in."""
        self.rows.append(row)
        self.values.append(value)
        self.errors.append(error)
        a = row @ self.undetermined
        size = np.linalg.norm(a)
        if self.loose * size <= max(error, self.rounding * float(np.linalg.norm(row))):
            return
        noise = np.append(0.0, self.rng.standard_normal(self.n_members)) * error
        left = value + noise - self.members @ row
        self.members += np.outer(left, self.undetermined @ a) / size**2
        # Householder: the reflection that takes a to a multiple of one axis, which is then dropped.
        j = int(np.abs(a).argmax())
        a[j] += np.copysign(size, a[j])
        N = self.undetermined - np.outer(self.undetermined @ a, a) * (2.0 / (a @ a))
        self.undetermined = np.delete(N, j, axis=1)

    def drawn(self, scale: float) -> FloatArray:
        """Members with parts in what is undetermined, drawn at a scale, (1 + n_members, size)."""
        draws = self.rng.standard_normal((self.n_members, self.n_undetermined))
        members = self.members.copy()
        members[1:] += scale * draws @ self.undetermined.T
        return members

    def solve(self) -> None:
        """Solve all equations at once by least squares, without those that contradict the rest.

        Where they agree less well than their errors say, as they do above rows that have errors of
        their own, all errors are that much larger.
        """
        A, y, e = np.array(self.rows), np.array(self.values), np.array(self.errors)
        noise = self.rng.standard_normal((len(y), self.n_members)) * e[:, None]
        basis = self._determined()
        self.members = self.members @ basis @ basis.T
        weights = np.ones(len(y))
        M = A @ basis
        sizes = np.linalg.norm(M / e[:, None], axis=0)
        sizes[sizes == 0] = 1.0
        for i in range(self.max_steps):
            w, most = weights / e, np.inf
            solution = _least_squares(w[:, None] * M / sizes)
            # What the first solution leaves by rounding is more than the errors of answers.
            for _ in range(self.max_refinements):
                left = np.column_stack([y, y[:, None] + noise]) - A @ self.members.T
                self.members += (basis @ (solution(w[:, None] * left) / sizes[:, None])).T
                rest = np.abs(A @ self.theta - y) / e
                before, most = most, float((weights * rest).max())
                if most > self.gains * before:
                    break
            typical = larger_than_said(rest)
            if rest.max() <= SIGMAS * typical or i == self.max_steps - 1:
                self.members[1:] += (typical - 1.0) * (self.members[1:] - self.members[0])
                break
            # Of least deviations, and in the end without what they leave out.
            last = i >= self.max_steps - 2
            weights = (
                (rest <= SIGMAS * typical) * 1.0
                if last
                else 1.0 / np.sqrt(np.maximum(1.0, rest / typical))
            )

    def uncertain(self, least: float) -> tuple[FloatArray, FloatArray]:
        """Directions in which the solution may be off by more, as long as that, or 1.

        Returns
        -------
        vague : ndarray, shape (q, size)
            Those whose standard error is larger.
        single : ndarray, shape (r, size)
            Those that no more than one equation tells, which may be another neuron's.
        """
        U, s, V = self._singular()
        errors = 1.0 / np.maximum(np.append(s, np.zeros(V.shape[1] - len(s))), TINY)
        vague = V[:, errors > least] * np.minimum(errors[errors > least], 1.0)
        known = self.loose * s > 1.0
        U, s, V = U[:, : len(s)][:, known], s[known], V[:, : len(s)][:, known]
        # Without an equation of leverage h the error along its direction is |C b| / sqrt(1 - h).
        moves = V @ (U / s).T
        rest, sizes = 1.0 - (U**2).sum(axis=1), np.linalg.norm(moves, axis=0)
        is_told = rest > len(V) * EPS
        without = np.where(is_told, sizes / np.sqrt(np.where(is_told, rest, 1.0)), 1.0)
        single = np.flatnonzero(without > self.loose)
        directions = moves[:, single] / sizes[single] * np.minimum(without[single], 1.0)
        return vague.T, directions.T

    def _singular(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Singular vectors and values of the equations over their errors, whole V."""
        A, errors = np.array(self.rows), np.array(self.errors)
        errors = np.maximum(errors, self.rounding * np.linalg.norm(A, axis=1))
        U, s, Vt = scipy.linalg.svd(A / errors[:, None], check_finite=False)
        return U, s, Vt.T

    def _determined(self) -> FloatArray:
        """Orthonormal columns of what equations tell, shape (size, size - q); the rest is kept."""
        _, s, V = self._singular()
        n = int((self.loose * s > 1.0).sum())
        self.undetermined = V[:, n:]
        return V[:, :n]


def _least_squares(M: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Factorise ``M (n, p)``, and return what solves ``M x = y`` by least squares.

    Columns of which no more than rounding is left beside the others have no part in x.
    """
    Q, R, order = scipy.linalg.qr(M, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diag(R))
    rank = int((sizes > max(M.shape) * EPS * sizes.max(initial=0.0)).sum())
    Q, R = Q[:, :rank], R[:rank, :rank]

    def solution(y: FloatArray) -> FloatArray:
        x = np.zeros((M.shape[1], *y.shape[1:]))
        x[order[:rank]] = scipy.linalg.solve_triangular(R, Q.T @ y, check_finite=False)
        return x

    return solution
