"""Least squares on what was served: answers behind a head, each with its own error.

What is behind a head errs by far more next to saturation than elsewhere, its errors are skewed
there, and of saturated answers nothing is left of it.  Served answers have errors of one size, and
those that are saturated say as much as the others: so the residual is that of answers, and each
step is linear in what is behind the head (Gauss-Newton, as iteratively reweighted least squares of
generalised linear models).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from revelu.network import Network
from revelu.network.derivative import Layout, MixedDerivative, ParameterArrays
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.design import Foretold
from revelu.numerics.gauss_newton import Damping, Stop, minimise, summed_normal_equations
from revelu.numerics.links import Link
from revelu.types import FloatArray


@dataclass(frozen=True, eq=False)
class Served:
    """Inputs, answers as they are served, and how far one may be off."""

    X: FloatArray
    """Shape (n, d)."""
    P: FloatArray
    """Shape (n, K)."""
    sigma: FloatArray
    """Shape (n, K).  Standard error of an answer."""
    link: Link
    """What is behind the head has ``k`` outputs; of a contrast one fewer than ``K``."""
    errors_of: Callable[[FloatArray], FloatArray]
    """(n, K) -> (n, K).  Standard errors of other answers."""

    def residual(self, network: Network) -> FloatArray:
        """Return what a network leaves of the answers, over their errors, shape (n, K)."""
        return np.asarray((self.P - self.link.head(network(self.X))) / self.sigma)

    def cost(self, network: Network) -> float:
        """Root mean square of the residual: 1 where only noise is left."""
        return float(np.sqrt(np.mean(self.residual(network) ** 2)))

    def joined(self, other: "Served") -> "Served":
        """Both."""
        pairs = ((self.X, other.X), (self.P, other.P), (self.sigma, other.sigma))
        X, P, sigma = (np.vstack(pair) for pair in pairs)
        return replace(self, X=X, P=P, sigma=sigma)

    def off(self, network: Network) -> FloatArray:
        """How far a row's answers are off at most, in their errors, shape (n,)."""
        return np.asarray(np.abs(self.residual(network)).max(axis=1))

    def by_most(self, network: Network) -> "Served":
        """The same, where answers that a network is far off count by less, as of Cauchy's errors.

        Few inputs show a neuron that is missing, most of them far out, and bend all others to it.
        """
        inflated = np.hypot(1.0, self.off(network) / SIGMAS)
        return replace(self, sigma=self.sigma * inflated[:, None])

    def factors(self, Z: FloatArray) -> FloatArray:
        """Return ``dP/dz`` over the errors at outputs ``Z (n, k)``, shape (n, K, k)."""
        return np.asarray(self.link.derivative(Z) / self.sigma[:, :, None])


def fit_served(
    start: Network,
    served: Served,
    stop: Stop = Stop(8),  # noqa: B008 - frozen
    *,
    n_weighed: int = 3,
) -> Network:
    """Fit all weights to most answers as they are served, from a network near the truth.

    Parameters
    ----------
    n_weighed : int
        How often answers are weighed anew by what is left of them, where any is far off.
    """
    for _ in range(n_weighed):
        problem = _ServedProblem(start, served.by_most(start))
        vector = start.to_vector()
        found, _ = minimise(problem, vector, summed_normal_equations, Damping(1e-6), stop)
        before, start = start, start.like(found)
        if max(served.off(before).max(), served.off(start).max()) <= SIGMAS:
            break
    return start


def foretold_answers(network: Network, served: Served, X: FloatArray) -> Foretold:
    """How a fitted network's answers err at ``X (n, d)``, by what it was fitted to."""
    problem, vector = _ServedProblem(network, served), network.to_vector()
    P = served.link.head(network(X))
    there = replace(served, X=X, P=P, sigma=served.errors_of(P))
    J = _ServedProblem(network, there).derivative(vector).matrix()
    return Foretold.of(problem.derivative(vector).normal(), J, P.shape[1])


class _ServedProblem:
    """The parameters of a network as what least squares moves."""

    def __init__(self, like: Network, served: Served) -> None:
        self.layout, self.served = Layout(like), served

    def residual(self, p: FloatArray) -> FloatArray:
        """Return the answers less the network's, over their errors."""
        head = self.served.link.head(ParameterArrays(self.layout, p)(self.served.X))
        return np.asarray((self.served.P - head) / self.served.sigma).ravel()

    def derivative(self, p: FloatArray) -> MixedDerivative:
        """Return the derivative of the answers, over their errors.

        It is that of what is behind the head, times that of the head at each input.
        """
        at = ParameterArrays(self.layout, p)
        return MixedDerivative(at, self.served.X, self.served.factors(at(self.served.X)))
