"""Fits of all weights, from rows that err and lack neurons.

A fit from rows whose neurons are all there ends at the truth.  Where some are missing, they are
looked for in two ways:

- Beside the rows themselves (:mod:`revelu.recover.fit.missing`), from several starts.  A fit that
  lacks neurons bends all others to them, and of few inputs nothing of either is left.
- Then beside what a fit has left, which of many inputs is exact enough to be held, where rows are
  not (:meth:`RowFits.completed`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network, add_networks
from revelu.numerics.gauss_newton import Damping, Iterative, Stop
from revelu.recover.fit.growth import add_neuron
from revelu.recover.fit.missing import LackingNeurons
from revelu.recover.fit.pruning import drop_idle, with_output_layer
from revelu.recover.refine.network_fit import (
    Automatic,
    NetworkFit,
    Samples,
    degrees_of_freedom,
    fit,
    fit_by_full_steps,
)
from revelu.recover.rows import Rows


@dataclass(frozen=True)
class RowFits:
    """How rows are fitted, and neurons that they lack."""

    near: float = 2.0
    """Reduced cost, in units of what noise may leave, from which a network has no neuron missing:
    spare ones and many parameters slow the last digits down."""
    missing: LackingNeurons = field(default_factory=LackingNeurons)
    """How neurons are found that held ones lack,"""
    n_tries: int = 2
    """from other starts up to so often, which takes seconds where more answers take queries;"""
    n_faint: int = 3
    faint: float = 100.0
    """then at most ``n_faint``, one after another, where what little is left, in units of what
    noise may leave, is less than this, and normal equations serve."""
    n_more: int = 4
    """Neurons that join then what a fit has found, at once,"""
    n_joins: int = 3
    gains: float = 0.7
    """so often at most, as long as each time leaves no more than this share,"""
    determined: float = 1.15
    """and there are ``determined`` equations for each unknown."""
    most_dense: int = 2500
    """Parameters up to which each step solves normal equations,"""
    most_work: float = 1e10
    """and multiplications."""
    flat: float = 1e-3
    """Iterations end at a gradient this small, relative to what noise leaves."""
    n_damped: int = 20
    n_iterations: int = 300
    flat_damped: float = 1e-4
    """Damped steps where normal equations do not serve, iterations of each, and the gradient that
    ends them: neurons that few answers tell have faint directions."""
    n_graded: int = 8
    """Where errors of answers differ by orders of magnitude they are fitted so often at most to
    what the last fit has left."""
    most_spent: float = 4e11
    most_steps: int = 20
    """Multiplications of all fits to what lines show, or those of ``most_steps`` steps."""

    def is_dense(self, n_parameters: int) -> bool:
        """Whether each step of a fit solves normal equations."""
        return n_parameters <= self.most_dense

    def is_near(self, found: NetworkFit, samples: Samples, limit: float) -> bool:
        """Whether no neuron is missing; noise alone may leave the reduced cost ``limit``."""
        return samples.reduced_cost(found.network) <= self.near * limit

    def most_multiplications(self, n_parameters: int, samples: Samples) -> float:
        """How many all fits may take."""
        each = min(n_parameters, 2 * self.n_iterations)
        step = float(samples.n_equations) * n_parameters * each
        return max(self.most_spent, self.most_steps * step)

    def find(
        self,
        rows: Rows,
        samples: Samples,
        n_spare: int,
        limit: float,
        rng: np.random.Generator,
        best: NetworkFit | None = None,
    ) -> NetworkFit:
        """Fit all weights, those of some neurons beside the rows among them.

        Parameters
        ----------
        n_spare : int
            How many beside the rows.
        limit : float
            The reduced cost that noise alone may leave.
        best : NetworkFit, optional
            What earlier fits ended with.

        Raises
        ------
        WorkEndedError
            If the caller allows no more multiplications.
        """
        network = network_of(rows, samples)
        if not n_spare:
            return self._from_near(network, samples, limit)
        for found in self._tried(network, samples, n_spare, limit, rng):
            best = least(samples, found, best)
        best = best or self._from_near(network, samples, limit)
        if self.is_near(best, samples, limit):
            return best
        return self.completed(best.network, samples, limit, rng)

    def completed(
        self, network: Network, samples: Samples, limit: float, rng: np.random.Generator
    ) -> NetworkFit:
        """Join neurons to those that a fit has found, as long as they leave far less."""
        found = NetworkFit(network, samples.cost(network))
        for _ in range(self.n_joins):
            before = found
            more = self.missing.find(found.network, samples, self.n_more, rng)
            network = with_output_layer(add_networks(found.network, more), samples)
            if samples.n_equations < self.determined * degrees_of_freedom(network):
                break
            found = least(samples, self._from_near(network, samples, limit), found)
            if self.is_near(found, samples, limit) or found.cost > self.gains * before.cost:
                break
        return found

    def by_full_steps(self, network: Network, samples: Samples) -> NetworkFit:
        """Fit by whole steps, from a network that errs by hundredths or has a few rows wrong."""
        n = Iterative.as_random(max(samples.n_equations / degrees_of_freedom(network), 1.2))
        iterations = Iterative(n, rtol=1e-3, flat=self.flat, white=True)
        solver = Automatic(iterations, self.most_dense, self.most_work)
        stop = Stop(15, patience=5, goal=2.0)
        if samples.differ:
            for _ in range(self.n_graded):
                graded = samples.beside(network)
                network = fit_by_full_steps(network, graded, stop, solver=solver).network
                if samples.evenly().cost(network) <= 1.0:
                    break
        return fit_by_full_steps(network, samples, stop, solver=solver)

    def _tried(
        self, held: Network, samples: Samples, n_spare: int, limit: float, rng: np.random.Generator
    ) -> Iterator[NetworkFit]:
        """Fits from the neurons that held ones lack, from new starts until one explains.

        A fit that ends beside the truth says nothing about the number of answers: another start
        is free, where more answers are not.
        """
        for _ in range(self.n_tries if self.is_dense(held.n_parameters) else 1):
            found = self._beside_held(held, samples, n_spare, limit, rng)
            yield found
            if self.is_near(found, samples, limit):
                return

    def _beside_held(
        self, held: Network, samples: Samples, n_spare: int, limit: float, rng: np.random.Generator
    ) -> NetworkFit:
        """Fit all weights, and those of some neurons beside the held ones."""
        more = self.missing.find(held, samples, n_spare, rng)
        network = with_output_layer(add_networks(held, more), samples)
        if not self.is_dense(held.n_parameters):
            # Of neurons that others replace iterations solve for none, and not for these either.
            network = drop_idle(network, samples, samples.cost(network))
            return self._from_near(network, samples, limit)
        found = self.by_full_steps(network, samples)
        for _ in range(self.n_faint):
            if not limit < samples.evenly().reduced_cost(found.network) <= self.faint * limit:
                break
            network = add_neuron(rng, samples.beside(found.network), found.network, 0.0).network
            found = min(found, self.by_full_steps(network, samples), key=lambda f: f.cost)
        return found

    def _from_near(self, network: Network, samples: Samples, limit: float) -> NetworkFit:
        """Fit by whole steps; many parameters by damped ones then, where those left little.

        Of rows that belong to no neuron whole steps make neurons that others replace: iterations
        do not solve for these, and damping holds them.
        """
        found = self.by_full_steps(network, samples)
        is_little = limit < samples.reduced_cost(found.network) <= self.faint * limit
        if self.is_dense(network.n_parameters) or not is_little:
            return found
        solver = Automatic(Iterative(self.n_iterations, flat=self.flat_damped, white=True))
        stop = Stop(self.n_damped, rtol=0.05, goal=limit)
        return fit(found.network, samples, stop, solver=solver, damping=Damping(1e-6))


def network_of(rows: Rows, samples: Samples) -> Network:
    """Return the network of rows, its output layer and affine rest fitted to samples."""
    (m, d), k, norms = rows.W.shape, rows.A.shape[1], np.linalg.norm(rows.W, axis=1)
    skip = (np.zeros((k, d)), np.zeros(k))
    layers = [rows.W / norms[:, None], np.zeros((k, m))]
    return with_output_layer(Network(layers, [rows.b / norms, np.zeros(k)], skip), samples)


def least(samples: Samples, found: NetworkFit, best: NetworkFit | None) -> NetworkFit:
    """The one of two fits that leaves less of samples, which the second may not have seen."""
    if best is None:
        return found
    best = NetworkFit(best.network, samples.cost(best.network))
    return min(found, best, key=lambda one: samples.reduced_cost(one.network))
