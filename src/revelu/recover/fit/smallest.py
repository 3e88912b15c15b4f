"""The smallest network that explains samples.

Widen a network until it explains the samples or more neurons gain nothing, and take out those
that are not needed.  What a search that failed has got right mostly survives: keep its best
neurons and search on.  It ends where nothing but noise is left, or where several searches agree
on the rest.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Stop
from revelu.recover.fit.growth import add_neuron, affine_fit, fit_at_once
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import by_worth, prune
from revelu.recover.refine.network_fit import NetworkFit, Samples, degrees_of_freedom, fit

log = logging.getLogger(__name__)

# Is given what has been found so far, for who must do with that after an interrupt.
Keep = Callable[[Network], None]


def forget(_network: Network) -> None:
    """Keep nothing."""


@dataclass(frozen=True)
class Explanation:
    """The end of all searches."""

    network: Network
    """With an affine rest."""
    is_exact: bool
    """Whether what it leaves is noise."""
    settled: bool
    """Whether it is, or independent searches end at the same."""


@dataclass(frozen=True)
class Smallest:
    """How the smallest network that explains samples is looked for."""

    price: Price
    """Of two networks the lower is better."""
    width: int
    """The most neurons to use."""
    max_searches: int
    at_once: bool = False
    """Whether all neurons start together; else they are added one by one, which needs fewer
    equations a parameter and more time."""
    rough: float = 2e-3
    """Share of the variation that neurons that start together may leave before the idle ones are
    taken out."""
    promising: float = 0.02
    """Neurons that leave more than this share of it are not worth pruning."""
    patience: int = 3
    """Neurons added in a row that gain no more than chance would end it."""
    kept: float = 0.65
    """Of a search that failed this share of the neurons stays for the next one."""
    fresh_every: int = 2
    """Every ``fresh_every`` searches have forgotten the others."""
    agreeing: int = 3
    """Searches that must agree on what cannot be explained."""
    equations: float = 4.0
    """Equations a parameter at which they may be trusted: fewer can be explained in many ways."""

    def explain(
        self,
        rng: np.random.Generator,
        samples: Samples,
        start: Network | None = None,
        keep: Keep = forget,
    ) -> Explanation:
        """Search until nothing but noise is left, or searches agree on what is.

        Parameters
        ----------
        start : Network, optional
            Neurons for the first search to begin with.
        keep : callable, (network) -> None
            Is given the best network of the searches until then, whenever there is a better one.
        """
        best = last = self.search(rng, samples, start)
        keep(best.network)
        agreeing, settled, chance = 1, False, np.log(samples.n_equations)
        for attempt in range(1, self.max_searches):
            enough = self.equations * degrees_of_freedom(best.network)
            settled = agreeing >= self.agreeing and samples.n_equations >= enough
            if settled or self.price.is_explained(best.network, samples):
                break
            forgets = attempt % self.fresh_every == 0
            last = self.search(rng, samples, None if forgets else self._best_of(last, samples))
            gain = self.price(best.network, samples) - self.price(last.network, samples)
            if gain > chance or self.price.is_explained(last.network, samples):
                best, agreeing = last, 1
                keep(best.network)
            elif gain > -chance:
                agreeing += 1
        is_exact = self.price.is_explained(best.network, samples)
        return Explanation(best.network, is_exact, settled=settled or is_exact)

    def search(
        self, rng: np.random.Generator, samples: Samples, start: Network | None = None
    ) -> NetworkFit:
        """Widen once, and take out the idle neurons."""
        spread = samples.spread()
        if self.at_once:
            goal = max(self.rough * spread, self.price.noise)
            found = fit_at_once(rng, samples, self.width, goal, start)
        else:
            known = None if start is None else fit(start, samples, Stop(25, goal=self.price.noise))
            found = self.grow(rng, samples, known, patience=self.patience)
        # Where neurons gained to the last none of them is idle.
        is_short = self.at_once or found.network.architecture[1] == self.width
        if is_short and found.cost > max(self.promising * spread, self.price.noise):
            return found
        pruned = prune(found, samples, self.price)
        log.debug(
            "%d samples, %d neurons: cost %.3g; %d neurons: %.3g",
            len(samples.X),
            found.network.architecture[1],
            found.cost,
            pruned.network.architecture[1],
            pruned.cost,
        )
        return pruned

    def grow(
        self,
        rng: np.random.Generator,
        samples: Samples,
        start: NetworkFit | None = None,
        *,
        patience: int,
        each: float | None = 2.0,
    ) -> NetworkFit:
        """Add neurons while they explain more than chance would; the best width of all.

        Parameters
        ----------
        start : NetworkFit, optional
            To these samples.
        patience : int
            Neurons in a row that may gain nothing.
        each : float, optional
            The price of a parameter for what counts as a gain, as in :class:`Price`.
        """
        goal = self.price.noise
        found = start or fit(affine_fit(samples), samples, Stop(25, goal=goal))
        best, idle, least = found, 0, self.price(found.network, samples, each)
        while found.cost > goal and found.network.architecture[1] < self.width:
            found = add_neuron(rng, samples, found.network, goal)
            if self.price.prefers(found.network, best.network, samples):
                best = found
            now = self.price(found.network, samples, each)
            idle, least = (0, now) if now < least else (idle + 1, least)
            if idle == patience:
                break
        return best

    def _best_of(self, found: NetworkFit, samples: Samples) -> Network | None:
        """The neurons that are worth most."""
        order = by_worth(found.network, samples)
        stay = np.sort(order[int((1.0 - self.kept) * len(order)) :])
        return found.network.take(stay) if len(order) > 1 else None
