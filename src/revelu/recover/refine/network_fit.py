"""Least squares over all weights of a network of any depth."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from revelu.network import Network
from revelu.network.derivative import Layout, NetworkDerivative, ParameterArrays
from revelu.numerics.gauss_newton import (
    DAMPED,
    STOP,
    Damping,
    Derivative,
    HeldProblem,
    Iterative,
    Problem,
    Solver,
    Step,
    Stop,
    minimise,
    normal_equations,
    summed_normal_equations,
    take_full_steps,
)
from revelu.oracle import NoiseFloor
from revelu.recover.refine.measured_rows import MeasuredRows
from revelu.types import BoolArray, FloatArray, IntArray


def degrees_of_freedom(network: Network) -> int:
    """Count what answers can determine: neither a neuron's scale nor a second constant."""
    skip_constant = 0 if network.skip is None else network.dim_out
    return network.n_parameters - sum(network.architecture[1:-1]) - skip_constant


@dataclass(frozen=True)
class Samples:
    """Inputs, answers, and how far an answer may be off."""

    X: FloatArray
    """Shape (n, d)."""
    Y: FloatArray
    """Shape (n, k)."""
    sigma: FloatArray
    """Shape (k,) or (n, k).  Standard error of an answer."""
    errors_of: Callable[[FloatArray], FloatArray] | None = None
    """(n, k) -> (n, k).  Standard errors of other answers, where those differ by orders of
    magnitude: behind a head."""

    @classmethod
    def answered(cls, X: FloatArray, Y: FloatArray, noise: NoiseFloor) -> Self:
        """Answers with their errors; saturated ones, which say nothing, are left out.

        An output that never varies has no error, and leaves nothing.
        """
        seen = np.isfinite(Y).all(axis=1)
        sigma = noise.sigma_at(X[seen], Y[seen])
        return cls(X[seen], Y[seen], np.where(sigma > 0.0, sigma, 1.0))

    @classmethod
    def near(cls, X: FloatArray, Y: FloatArray, noise: NoiseFloor) -> Self:
        """Answers with the error that those at N(0, I) have, or 1 where these have none."""
        return cls(X, Y, np.where(noise.errors > 0.0, noise.errors, 1.0))

    @property
    def differ(self) -> bool:
        """Whether errors differ by orders of magnitude."""
        return self.errors_of is not None

    @property
    def n_equations(self) -> int:
        """Answers, each output counted."""
        return self.Y.size

    def residual(self, network: Network) -> FloatArray:
        """Return ``(Y - f(X)) / sigma``, shape (n, k)."""
        return np.asarray((self.Y - network(self.X)) / self.sigma)

    def cost(self, network: Network) -> float:
        """Root mean square of the residual: 1 where only noise is left."""
        return float(np.sqrt(np.mean(self.residual(network) ** 2)))

    def reduced_cost(self, network: Network) -> float:
        """The same, with the degrees of freedom that the fit has used up given back."""
        left = self.n_equations - degrees_of_freedom(network)
        return self.cost(network) * float(np.sqrt(self.n_equations / left)) if left > 0 else np.inf

    def spread(self) -> float:
        """Root mean square of the answers about their mean, in units of ``sigma``."""
        return float(np.sqrt(np.mean(((self.Y - self.Y.mean(axis=0)) / self.sigma) ** 2)))

    def evenly(self) -> "Samples":
        """The same with one error an output, the root mean square of all answers'.

        Where errors differ by orders of magnitude it is the median, and larger ones stay.
        """
        sigma = np.broadcast_to(self.sigma, self.Y.shape)
        if self.differ:
            return replace(self, sigma=np.maximum(sigma, np.median(sigma, axis=0)))
        return replace(self, sigma=np.sqrt(np.mean(sigma**2, axis=0)))

    def beside(self, network: Network, share: float = 0.1) -> "Samples":
        """The same for a network that lacks neurons, where errors differ by orders of magnitude.

        To their own errors comes that of the network, a share of what it typically leaves: else a
        few precise answers are explained, and all others left.
        """
        if not self.differ:
            return self
        left = np.median(np.abs(self.Y - network(self.X)), axis=0)
        return replace(self, sigma=np.hypot(self.sigma, share * left))

    def forgiving(self, off: FloatArray, scale: FloatArray | float) -> "Samples":
        """The same where answers that are far off count by less, as of errors of Cauchy's law.

        Parameters
        ----------
        off : ndarray, shape (n, 1) or (n, k)
            How far off they are, in standard errors.
        scale : float or ndarray, shape (k,)
            What of that is usual.
        """
        return replace(self, sigma=self.sigma * np.hypot(1.0, off / scale))

    def take(self, which: BoolArray | IntArray) -> "Samples":
        """Some of them."""
        sigma = self.sigma if self.sigma.ndim == 1 else self.sigma[which]
        return replace(self, X=self.X[which], Y=self.Y[which], sigma=sigma)

    def joined(self, other: "Samples") -> "Samples":
        """Both."""
        if self.sigma.ndim == 1 and np.array_equal(self.sigma, other.sigma):
            sigma = self.sigma
        else:
            sigmas = (np.broadcast_to(s.sigma, s.Y.shape) for s in (self, other))
            sigma = np.vstack(list(sigmas))
        X, Y = np.vstack([self.X, other.X]), np.vstack([self.Y, other.Y])
        return replace(self, X=X, Y=Y, sigma=sigma)


@dataclass(frozen=True)
class NetworkFit:
    """What a least-squares search ended with."""

    network: Network
    cost: float
    """Root mean square of the residual, in units of an answer's error."""


@dataclass(frozen=True)
class Automatic:
    """Normal equations where they are quick, iterations elsewhere."""

    iterations: Iterative = field(default_factory=Iterative)
    most_parameters: int = 1500
    most_work: float = 6e9
    """Multiplications, ``n_equations * n_parameters^2``: some 0.2 s at 3e10 a second."""
    most_written: int = 1000
    """With more parameters the derivative is not written out."""

    def is_dense(self, n_equations: int, n_parameters: int) -> bool:
        """Whether steps of this shape take normal equations."""
        work = n_equations * n_parameters**2
        return n_parameters <= self.most_parameters and work <= self.most_work

    def __call__(self, derivative: Derivative, residual: FloatArray) -> Step:
        """Return the step as a function of the damping."""
        if not self.is_dense(*derivative.shape):
            return self.iterations(derivative, residual)
        is_written = derivative.shape[1] <= self.most_written
        solver = normal_equations if is_written else summed_normal_equations
        return solver(derivative, residual)


AUTOMATIC = Automatic()


def fit(
    start: Network,
    samples: Samples,
    stop: Stop = STOP,
    solver: Solver = AUTOMATIC,
    damping: Damping = DAMPED,
    measured: MeasuredRows | None = None,
    *,
    extended: bool = False,
) -> NetworkFit:
    """Fit all weights to samples, from a start.

    Parameters
    ----------
    start : Network
        With a hidden layer, which may be of width 0.
    stop : Stop
        When steps end.
    solver : Solver
        Of the linear least squares of each step.
    measured : MeasuredRows, optional
        What is known of hidden rows besides.
    extended : bool
        Whether the residual is computed in extended precision: what it is rounded to is what
        the last digits are lost to (iterative refinement, Wilkinson 1963).

    Returns
    -------
    NetworkFit
        No worse than the start; its cost is that of the answers and of what is known besides.
    """
    problem: Problem = _NetworkProblem(start, samples, extended=extended)
    if measured is not None:
        problem = HeldProblem(problem, measured.equations(start, samples.residual(start)))
    vector, cost = minimise(problem, start.to_vector(), solver, damping, stop)
    return NetworkFit(start.like(vector), cost)


def fit_by_full_steps(
    start: Network, samples: Samples, stop: Stop, *, solver: Solver = AUTOMATIC
) -> NetworkFit:
    """Fit all weights by whole Gauss-Newton steps, which costs may rise on.

    Parameters
    ----------
    start : Network
        With errors of a hundredth in its rows, or with a few rows wrong.
    stop : Stop
        When steps end.
    solver : Solver
        Of the linear least squares of each step.

    Returns
    -------
    NetworkFit
        The best of all steps.
    """
    problem = _NetworkProblem(start, samples, extended=False)
    vector, cost = take_full_steps(problem, start.to_vector(), solver, stop)
    return NetworkFit(start.like(vector), cost)


def top_of(network: Network) -> Network:
    """The last two layers, as a network of what those below make of the inputs."""
    weights, biases = network.weights, network.biases
    return Network(weights[-2:], biases[-2:], skip=network.skip)


def with_top(network: Network, top: Network) -> Network:
    """Put other last two layers above those below."""
    weights, biases = [*network.weights[:-2], *top.weights], [*network.biases[:-2], *top.biases]
    return Network(weights, biases, skip=top.skip)


def fit_top(
    start: Network,
    samples: Samples,
    stop: Stop = STOP,
    *,
    solver: Solver = summed_normal_equations,
    damping: Damping = DAMPED,
) -> Network:
    """Fit the last two layers to samples; those below stay as they are."""
    H = start.activations(samples.X)[-2]
    above = Samples(H, samples.Y, samples.sigma)
    top = fit(top_of(start), above, stop, solver=solver, damping=damping).network
    return with_top(start, top)


class _NetworkProblem:
    """The parameters of a network as what least squares moves."""

    def __init__(self, like: Network, samples: Samples, *, extended: bool) -> None:
        self.layout, self.samples = Layout(like), samples
        self.inverse_errors = 1.0 / samples.sigma
        self.extended = extended

    def residual(self, p: FloatArray) -> FloatArray:
        """Return the answers less the network's, over their errors."""
        X, Y = self.samples.X, self.samples.Y
        if not self.extended:
            return np.asarray(
                (Y - ParameterArrays(self.layout, p)(X)) * self.inverse_errors
            ).ravel()
        at, rows = (
            ParameterArrays(self.layout, p.astype(np.longdouble)),
            2048,
        )  # of 16 bytes a number
        left = [
            (Y[i : i + rows] - at(X[i : i + rows].astype(np.longdouble))).astype(np.float64)
            for i in range(0, len(X), rows)
        ]
        return np.asarray(np.concatenate(left) * self.inverse_errors).ravel()

    def derivative(self, p: FloatArray) -> NetworkDerivative:
        """Return the derivative of the answers, over their errors."""
        return NetworkDerivative(
            ParameterArrays(self.layout, p), self.samples.X, self.inverse_errors
        )
