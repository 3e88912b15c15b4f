"""Least squares by Gauss-Newton steps, damped where they fail.

Each step minimises ``|r - J s|^2 + damping |s|^2`` over ``s``, for the residual ``r`` and the
derivative ``J`` at the current point, in units in which the columns of ``J`` have norm 1: the
steps do not depend on how parameters are scaled (Levenberg 1944, Marquardt 1963).  Who solves
for ``s`` is given: normal equations, an orthogonal factorisation, or iterations that only
multiply by ``J`` and its transpose.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dposv
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, lsmr

from revelu.numerics.interruption import check_cancelled, spend
from revelu.types import FloatArray


class Coordinates(Protocol):
    """Coordinates of a change of the parameters in which ``J`` is well conditioned."""

    def to_change(self, v: FloatArray) -> FloatArray:
        """Return the change that has these coordinates."""

    def adjoint(self, g: FloatArray) -> FloatArray:
        """Return the gradient by the coordinates, of a gradient by the parameters."""


class Derivative(Protocol):
    """The derivative ``J`` of a model's answers by its parameters, at one point."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of answers and number of parameters."""

    def along(self, change: FloatArray) -> FloatArray:
        """Return ``J change``."""

    def gradient(self, u: FloatArray) -> FloatArray:
        """Return ``J' u``."""

    def matrix(self) -> FloatArray:
        """Return ``J`` written out."""

    def normal(self) -> FloatArray:
        """Return the upper triangle of ``J'J``; ``J`` is not written out."""

    def coordinates(self, *, white: bool) -> Coordinates:
        """Return units in which columns have norm 1, or coordinates near an isometry."""

    def in_single(self) -> "Derivative":
        """Return the same with products in single precision, where that is faster."""


class Problem(Protocol):
    """What least squares moves: parameters, and what their answers leave."""

    def residual(self, p: FloatArray) -> FloatArray:
        """Return what is wanted less the model's answers, flat."""

    def derivative(self, p: FloatArray) -> Derivative:
        """Return the derivative of the model's answers."""


Step: TypeAlias = Callable[[float], FloatArray]
Solver: TypeAlias = Callable[[Derivative, FloatArray], Step]


class HeldProblem:
    """A problem whose parameters are held by linear equations besides, each with error 1."""

    def __init__(self, answers: Problem, equations: csr_array) -> None:
        self.answers, self.equations = answers, equations

    def residual(self, p: FloatArray) -> FloatArray:
        """Return what is wanted less what is there, over the errors."""
        return np.append(self.answers.residual(p), -(self.equations @ p))

    def derivative(self, p: FloatArray) -> "_DerivativeBeside":
        """Return the derivative of both."""
        return _DerivativeBeside(self.answers.derivative(p), self.equations)


@dataclass(frozen=True, eq=False)
class _DerivativeBeside:
    """The derivative of answers, and equations for the parameters below it."""

    of_answers: Derivative
    equations: csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """Answers and equations, by parameters."""
        n, p = self.of_answers.shape
        return n + self.equations.shape[0], p

    def along(self, change: FloatArray) -> FloatArray:
        """Return ``J change``."""
        return np.append(self.of_answers.along(change), self.equations @ change)

    def gradient(self, u: FloatArray) -> FloatArray:
        """Return ``J' u``."""
        n = self.of_answers.shape[0]
        return np.asarray(self.of_answers.gradient(u[:n]) + self.equations.T @ u[n:])

    def matrix(self) -> FloatArray:
        """Return ``J`` written out."""
        return np.vstack([self.of_answers.matrix(), self.equations.toarray()])

    def normal(self) -> FloatArray:
        """Return the upper triangle of ``J'J``."""
        return np.asarray(self.of_answers.normal() + (self.equations.T @ self.equations).toarray())

    def coordinates(self, *, white: bool) -> Coordinates:
        """Return those of the answers' derivative."""
        return self.of_answers.coordinates(white=white)

    def in_single(self) -> Derivative:
        """Return it as it is."""
        return self


@dataclass(frozen=True)
class Damping:
    """Levenberg and Marquardt's damping, and the lengths at which a step is tried.

    Attributes
    ----------
    first : float
        Of the first step, relative to the squared norms of the columns.
    least, most : float
    rises, falls : float
        Factors after a step that failed, and divisors after one that gained.
    attempts : int
        Steps that may fail one after another.
    lengths : tuple of float
        Shares of a step that are tried in order, until one gains: a whole step often
        crosses kinks that a part of it does not reach.
    """

    first: float = 1e-3
    least: float = 1e-12
    most: float = 1e6
    rises: float = 8.0
    falls: float = 5.0
    attempts: int = 6
    lengths: tuple[float, ...] = (1.0, 0.5, 0.2)


DAMPED = Damping()
UNDAMPED = Damping(first=0.0, least=0.0, attempts=1, lengths=(1.0,))


@dataclass(frozen=True)
class Stop:
    """When steps end.

    Attributes
    ----------
    max_steps : int
    rtol : float
        A step that lowers the cost by less than this share is slow.
    patience : int
        So many slow steps in a row end it; a search can pass through a plateau.
    goal : float
        A cost that is good enough.
    floor : float
        A cost that noise alone may leave: from there on one slow step ends it, for more of them
        fit the noise.
    """

    max_steps: int = 50
    rtol: float = 1e-3
    patience: int = 3
    goal: float = 0.0
    floor: float = 0.0


STOP = Stop()


def minimise(
    problem: Problem, start: FloatArray, solver: Solver, damping: Damping, stop: Stop
) -> tuple[FloatArray, float]:
    """Take steps while they lower the cost.

    Parameters
    ----------
    start : ndarray, shape (p,)
    solver : Solver
        Of each step's linear least squares.

    Returns
    -------
    p : ndarray, shape (p,)
        No worse than the start.
    cost : float
        Root mean square of its residual.
    """
    p, rest = start, problem.residual(start)
    cost, strength, slow = _size(rest), damping.first, 0
    for _ in range(stop.max_steps):
        if cost <= stop.goal or slow >= (1 if cost <= stop.floor else stop.patience):
            break
        check_cancelled()
        step = solver(problem.derivative(p), rest)
        for _ in range(damping.attempts):
            new, new_rest, new_cost = _shortened(problem, p, step(strength), cost, damping.lengths)
            if new_cost < cost or strength >= damping.most:
                break
            strength = max(strength, damping.least) * damping.rises
        if not new_cost < cost:
            break
        slow = slow + 1 if new_cost > (1.0 - stop.rtol) * cost else 0
        p, rest, cost = new, new_rest, new_cost
        strength = max(strength / damping.falls, damping.least)
    return p, cost


def take_full_steps(
    problem: Problem,
    start: FloatArray,
    solver: Solver,
    stop: Stop,
    *,
    damping: float = 1e-9,
    gain: float = 0.03,
) -> tuple[FloatArray, float]:
    """Take whole steps, whether or not each of them lowers the cost; the best point of all.

    Of a piecewise smooth model, such as a network, this is a Newton method for semismooth
    equations (Qi and Sun 1993): near a point where nothing is left it converges
    quadratically, while a cost that may only fall is caught in the creases of the pieces.

    Parameters
    ----------
    start : ndarray, shape (p,)
    solver : Solver
        Of each step's linear least squares.
    stop : Stop
        Its ``patience`` counts steps in a row after which the least cost has not fallen by
        ``gain``.
    damping : float

    Returns
    -------
    p : ndarray, shape (p,)
    cost : float
        Root mean square of its residual.
    """
    p, best, least, idle = start, start, np.inf, 0
    for turn in range(stop.max_steps + 1):
        check_cancelled()
        # A step into nowhere overflows, and ends it.
        with np.errstate(over="ignore", invalid="ignore"):
            rest = problem.residual(p)
            cost = _size(rest)
        idle = 0 if cost < (1.0 - gain) * least else idle + 1
        if cost < least:
            best, least = p, cost
        is_near = least <= stop.goal and idle > 0
        if is_near or idle >= stop.patience or turn == stop.max_steps or not np.isfinite(cost):
            break
        p = p + solver(problem.derivative(p), rest)(damping)
    return best, least


def _shortened(
    problem: Problem, p: FloatArray, step: FloatArray, cost: float, lengths: tuple[float, ...]
) -> tuple[FloatArray, FloatArray, float]:
    """The first of a few lengths that gains, with its residual and cost; or the last."""
    for length in lengths:
        new = p + length * step
        rest = problem.residual(new)
        if (new_cost := _size(rest)) < cost:
            break
    return new, rest, new_cost


def _size(rest: FloatArray) -> float:
    return float(np.sqrt(rest @ rest / len(rest)))


def normal_equations(derivative: Derivative, residual: FloatArray) -> Step:
    """Solve by Cholesky's factors of ``J'J``; a new damping costs a factorisation only.

    This squares the condition number: for steps that the next one corrects.
    """
    spend(_work(derivative))
    J = derivative.matrix()
    return solve_normal(J.T @ J, J.T @ residual)


def summed_normal_equations(derivative: Derivative, residual: FloatArray) -> Step:
    """The same for many parameters: ``J`` is not written out."""
    spend(_work(derivative))
    return solve_normal(derivative.normal(), derivative.gradient(residual))


def _work(derivative: Derivative) -> float:
    """Multiplications of the normal equations."""
    n, p = derivative.shape
    return float(n) * p**2


def solve_normal(normal: FloatArray, right: FloatArray) -> Step:
    """Solve normal equations for any damping.

    Parameters
    ----------
    normal : ndarray, shape (p, p)
        Of which the upper triangle is read; it is overwritten.
    right : ndarray, shape (p,)

    Returns
    -------
    Step
        In units in which the diagonal is 1; all zero where rounding has made them indefinite.
    """
    sizes = _nonzero(np.sqrt(np.diag(normal)))
    normal /= sizes
    normal /= sizes[:, None]
    right = right / sizes
    # Free directions, such as a neuron's scale, have eigenvalues of rounding's size.
    floor = np.finfo(np.float64).eps * len(right)

    def step(damping: float) -> FloatArray:
        damped = normal.copy()
        damped[np.diag_indices_from(damped)] += damping + floor
        _, solution, failed = dposv(damped, right, overwrite_a=True)
        return np.zeros_like(right) if failed else np.asarray(solution / sizes)

    return step


@dataclass
class Chord:
    """Solve by the normal equations of the first derivative, all steps with the same factors.

    Steps are those of the chord method (Kantorovich 1948): near a solution each takes away all
    but what the derivative has changed since.  One fit takes one of these.

    Attributes
    ----------
    ridge : float
        What is added to squared singular values, in units in which columns have norm 1: fainter
        directions would be led astray by what rounding leaves of others.
    """

    ridge: float = 1e-9
    _factors: tuple[FloatArray, FloatArray] | None = field(default=None, init=False)

    def __call__(self, derivative: Derivative, residual: FloatArray) -> Step:
        """Return the step, which takes no damping."""
        if self._factors is None:
            spend(_work(derivative))
            normal = derivative.normal()
            sizes = _nonzero(np.sqrt(np.diag(normal)))
            normal /= sizes
            normal /= sizes[:, None]
            normal[np.diag_indices_from(normal)] += self.ridge
            check_cancelled()
            try:
                factor, _ = scipy.linalg.cho_factor(normal, overwrite_a=True, check_finite=False)
            except scipy.linalg.LinAlgError:
                # Indefinite by rounding: no step, which ends the fit where it is.
                return lambda _: np.zeros(len(sizes))
            self._factors = factor, sizes
        factor, sizes = self._factors
        right = derivative.gradient(residual) / sizes
        change = scipy.linalg.cho_solve((factor, False), right, check_finite=False) / sizes
        return lambda _: np.asarray(change)


@dataclass(frozen=True)
class Orthogonal:
    """Solve by a QR decomposition with column pivoting, to the last digits; undamped.

    Attributes
    ----------
    rank_rtol : float
        Directions fainter than this share of the strongest are left alone, free ones among
        them.
    """

    rank_rtol: float = 1e-10

    def __call__(self, derivative: Derivative, residual: FloatArray) -> Step:
        """Return the step, which takes no damping."""
        spend(_work(derivative))
        J = derivative.matrix()
        sizes = _nonzero(np.sqrt(np.einsum("ij,ij->j", J, J)))
        J /= sizes
        solution = scipy.linalg.lstsq(
            J,
            residual,
            cond=self.rank_rtol,
            lapack_driver="gelsy",
            check_finite=False,
            overwrite_a=True,
        )[0]
        return lambda _: np.asarray(solution / sizes)


@dataclass(frozen=True)
class Iterative:
    """Solve by LSMR (Fong and Saunders 2011), which writes no matrix out.

    Attributes
    ----------
    iterations : int
        At most, a step.
    rtol : float
        A linear residual smaller than it was by this factor ends them: what the
        linearisation leaves is more (Dembo, Eisenstat and Steihaug 1982).
    flat : float
        So does a gradient ``J' r`` smaller than this share of ``|J| |r|``, with the Frobenius norm
        of what iterations have seen of ``J``.  Of noise a linear residual is left that no iteration
        makes smaller, and they would go on to the last.  In white coordinates, where the least
        singular value is a third or a quarter of the root mean square, and after the 30 iterations
        that such a condition takes (a norm of 8 times that), what could still be gained is under
        ``(8 flat / 0.25)^2`` of the squared residual: 0.1% for 0.001.
    white : bool
        Whether to work in white coordinates: near a solution that takes half the
        iterations.  Far from one, where neurons are alike by chance, it overfits them.
    """

    iterations: int = 40
    rtol: float = 1e-2
    flat: float = 0.0
    white: bool = False

    @staticmethod
    def as_random(equations_a_parameter: float, per_condition: float = 15.0) -> int:
        """Return how many iterations a matrix takes that is not far from a random one.

        LSMR needs them in proportion to the condition number, which of ``r`` equations a parameter
        is ``(1 + 1/sqrt r) / (1 - 1/sqrt r)`` (Marchenko and Pastur 1967).

        Parameters
        ----------
        equations_a_parameter : float
            More than 1.
        per_condition : float
            Iterations for each unit of the condition number: the error falls by
            ``(c - 1) / (c + 1)`` in each, hence by ``exp(-2 * 15)`` in all, below rounding.
        """
        root = np.sqrt(equations_a_parameter)
        condition = (1.0 + 1.0 / root) / (1.0 - 1.0 / root)
        return int(np.ceil(per_condition * condition))

    def __call__(self, derivative: Derivative, residual: FloatArray) -> Step:
        """Return the step as a function of the damping."""
        coordinates = derivative.coordinates(white=self.white)
        single = derivative.in_single()

        def along(v: FloatArray) -> FloatArray:
            check_cancelled()
            spend(2.0 * derivative.shape[0] * derivative.shape[1])
            return single.along(coordinates.to_change(v))

        operator = LinearOperator(
            derivative.shape,
            matvec=along,
            rmatvec=lambda u: coordinates.adjoint(single.gradient(u)),
            dtype=np.float64,
        )

        def step(damping: float) -> FloatArray:
            solution = lsmr(
                operator,
                residual,
                damp=np.sqrt(damping),
                maxiter=self.iterations,
                atol=self.flat,
                btol=self.rtol,
                conlim=0.0,
            )[0]
            return coordinates.to_change(solution)

        return step


def _nonzero(sizes: FloatArray) -> FloatArray:
    """Replace each 0 by 1: the parameter stays where it is."""
    return np.where(sizes > 0, sizes, 1.0)
