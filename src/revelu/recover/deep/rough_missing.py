"""Upper neurons that no trace has found, beside rows that traces have.

Where a first layer is known, and nearly all of what is above it, few neurons are missing: faint
ones.  A fit of all rows would move those that are right to make up for them.  So these are held,
and what they leave is fitted by random rows, from several starts; the best are joined to them, and
all rows above are fitted.
"""

import logging
from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network, add_networks
from revelu.numerics.gauss_newton import Damping, Stop, normal_equations
from revelu.recover.fit.growth import fit_at_once
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import prune
from revelu.recover.refine.network_fit import NetworkFit, Samples, fit, top_of, with_top

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MissingNeurons:
    """How neurons are fitted that traces have not found."""

    n_spare: int = 5
    """Random rows,"""
    n_starts: int = 3
    """from this many starts at most,"""
    much: float = 0.1
    """until one leaves less than this share of what was left;"""
    worse: float = 1.001
    """those go without which no more than ``worse`` times as much is left."""
    n_steps: int = 80
    n_upper_steps: int = 10
    """Steps of the fit of random rows, and of all rows above the first layer."""
    limit: float = 1.5
    """The reduced cost that noise alone may leave."""
    upper_damping: Damping = field(default_factory=lambda: Damping(1e-3))

    def joined(self, network: Network, samples: Samples, rng: np.random.Generator) -> Network:
        """Join random rows to a network, where less is left then."""
        top, H = top_of(network), network.activations(samples.X)[-2]
        k, m = top.dim_out, H.shape[1]
        none = np.empty((0, m)), np.empty((k, 0))
        rest = np.zeros((k, m)), np.zeros(k)
        start = Network(list(none), [np.empty(0), np.zeros(k)], rest)
        left = Samples(H, samples.Y - top(H), samples.sigma)
        best = self._best(start, left, rng)
        log.info("random rows: cost %.3g, %.3g before", best.cost, left.cost(start))
        upper = fit(
            add_networks(top, best.network),
            Samples(H, samples.Y, samples.sigma),
            Stop(self.n_upper_steps, rtol=0.02, patience=2, goal=self.limit),
            solver=normal_equations,
            damping=self.upper_damping,
        ).network
        found = with_top(network, upper)
        return found if samples.cost(found) < samples.cost(network) else network

    def _best(self, start: Network, left: Samples, rng: np.random.Generator) -> NetworkFit:
        """The best fit of random rows, from several starts."""
        before = left.cost(start)
        best = NetworkFit(start, before)
        for _ in range(self.n_starts):
            found = fit_at_once(rng, left, self.n_spare, self.limit, start, max_steps=self.n_steps)
            best = min(best, found, key=lambda found: found.cost)
            if best.cost <= self.much * before:
                break
        # Neurons that others can do without go: more of them would fit anything.
        return prune(best, left, Price(max(2.0, self.worse * best.cost), known=True))
