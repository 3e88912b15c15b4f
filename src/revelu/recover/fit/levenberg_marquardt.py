"""Least squares over all parameters of a two-layer network.

Levenberg (1944) and Marquardt (1963): Gauss-Newton steps, damped where they fail.
A small network's step comes from its normal equations; a large one's from LSMR (Fong
and Saunders 2011), which multiplies with the derivative and its adjoint only.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, lsmr

from revelu.numerics.interruption import look_up
from revelu.recover.fit.two_layer import Derivative, Samples, TwoLayer
from revelu.recover.fit.whitening import Whitening
from revelu.types import FloatArray

# Normal equations up to this many multiplications a step: under a quarter of a second.
_DENSE_WORK = 6e9
_DENSE_PARAMETERS = 1500

# Products of a larger map are taken in float32: twice as fast, and each step is
# corrected by the next.
_FLOAT32_WORK = 1e8

# Iterations of LSMR a step.  Steps need not be exact before the activation patterns are.
_ITERATIONS = 40

# A linear residual this much smaller than it was is as much as a step can use: what its
# linearisation leaves is more (Dembo, Eisenstat and Steihaug 1982).
_FORCING = 1e-2

# Steps in a row that may gain little: a search can pass through a plateau.
_PATIENCE = 3

_STEP_LENGTHS = (1.0, 0.5, 0.2)
_MIN_DAMPING, _MAX_DAMPING = 1e-12, 1e6


@dataclass(frozen=True)
class Fit:
    """What a least-squares search ended with.

    Attributes
    ----------
    network : TwoLayer
    cost : float
        Root mean square of the residual, in units of an answer's error.
    """

    network: TwoLayer
    cost: float


def fit(
    start: TwoLayer,
    samples: Samples,
    *,
    max_steps: int = 50,
    goal: float = 0.0,
    rtol: float = 1e-3,
    damping: float = 1e-3,
    iterations: int = _ITERATIONS,
    patience: int = _PATIENCE,
    whiten: bool = False,
) -> Fit:
    """Fit all parameters to samples, from a start.

    Parameters
    ----------
    start : TwoLayer
    samples : Samples
    max_steps : int
    goal : float
        A cost that is good enough.
    rtol : float
        ``patience`` steps in a row that gain less than this share end the search.
    damping : float
        Of the first step, relative to the squared norms of the derivative's columns.
    iterations : int
        Of LSMR, a step.
    patience : int
    whiten : bool
        Whether LSMR works in white coordinates: near a solution that takes half the
        iterations.  Far from one, where neurons are alike by chance, it overfits them.
    """
    network = start.balanced()
    cost = samples.cost(network)
    slow = 0
    for _ in range(max_steps):
        if cost <= goal or slow >= patience:
            break
        look_up()
        solver = _solver(network, samples, iterations, whiten=whiten)
        for _ in range(6):
            candidate, new = _best_length(network, solver(damping), samples, cost)
            if new < cost or damping >= _MAX_DAMPING:
                break
            damping = max(damping, _MIN_DAMPING) * 8.0
        if not new < cost:
            break
        slow = slow + 1 if new > (1.0 - rtol) * cost else 0
        network, cost = candidate.balanced(), new
        damping = max(damping / 5.0, _MIN_DAMPING)
    return Fit(network, cost)


def _best_length(
    network: TwoLayer, step: FloatArray, samples: Samples, cost: float
) -> tuple[TwoLayer, float]:
    """The longest of a few lengths that gains."""
    vector = network.to_vector()
    for length in _STEP_LENGTHS:
        candidate = network.like(vector + length * step)
        new = samples.cost(candidate)
        if new < cost:
            break
    return candidate, new


class _Dense:
    """Damped normal equations; a new damping costs a factorisation only."""

    def __init__(self, derivative: Derivative, residual: FloatArray) -> None:
        J = derivative.matrix()
        self.scales = derivative.scales
        self.normal, self.right = J.T @ J, J.T @ residual.ravel()

    def __call__(self, damping: float) -> FloatArray:
        damped = self.normal.copy()
        diagonal = np.diag(damped)
        # Columns have a norm of about 1; what no answer depends on has 0.
        floor = np.finfo(np.float64).eps * max(float(diagonal.max()), 1.0) * len(diagonal)
        damped[np.diag_indices_from(damped)] += damping * diagonal + floor
        try:
            factor = scipy.linalg.cho_factor(damped, check_finite=False)
            step = scipy.linalg.cho_solve(factor, self.right, check_finite=False)
        except np.linalg.LinAlgError:
            step = np.zeros_like(self.right)
        return np.asarray(step * self.scales)


class _MatrixFree:
    """LSMR, in the units of the derivative or in white coordinates."""

    def __init__(
        self,
        derivative: Derivative,
        residual: FloatArray,
        iterations: int,
        whitening: Whitening | None,
    ) -> None:
        self.derivative, self.residual, self.iterations = derivative, residual.ravel(), iterations
        self.whitening = whitening

    def __call__(self, damping: float) -> FloatArray:
        operator = LinearOperator(
            self.derivative.shape,
            matvec=self._along,
            rmatvec=lambda u: self._white(self.derivative.gradient(u)),
            dtype=np.float64,
        )
        solution = lsmr(
            operator,
            self.residual,
            damp=np.sqrt(damping),
            maxiter=self.iterations,
            atol=0.0,
            btol=_FORCING,
            conlim=0.0,
        )
        return self._change(solution[0])

    def _along(self, v: FloatArray) -> FloatArray:
        look_up()
        return np.asarray(self.derivative.along(self._change(v)))

    def _change(self, v: FloatArray) -> FloatArray:
        if self.whitening is None:
            return np.asarray(v * self.derivative.scales)
        return self.whitening.to_change(v)

    def _white(self, gradient: FloatArray) -> FloatArray:
        if self.whitening is None:
            return np.asarray(gradient * self.derivative.scales)
        return self.whitening.adjoint(gradient)


def is_dense(n_equations: int, width: int, d: int, k: int) -> bool:
    """Whether networks of this shape, with an affine rest, take normal equations."""
    n_parameters = width * (d + 1 + k) + k * (d + 1)
    work = n_equations * n_parameters**2
    return n_parameters <= _DENSE_PARAMETERS and work <= _DENSE_WORK


def _solver(
    network: TwoLayer, samples: Samples, iterations: int, *, whiten: bool
) -> _Dense | _MatrixFree:
    residual = samples.residual(network)
    k, d = samples.Y.shape[1], samples.X.shape[1]
    if is_dense(samples.n_equations, network.width, d, k):
        return _Dense(Derivative(network, samples), residual)
    work = len(samples.X) * network.width * samples.X.shape[1]
    dtype = np.float32 if work > _FLOAT32_WORK else np.float64
    derivative = Derivative(network, samples, dtype)
    whitening = derivative.whitening(samples) if whiten else None
    return _MatrixFree(derivative, residual, iterations, whitening)
