"""Searches from random starts among answers whose errors differ by orders of magnitude.

Behind a head a few answers have all digits, most have some, and those next to saturation none.  A
search that weighs them so from the start explains a few and nothing else.  To the error of each
comes an even one, of what a network of so few neurons may leave, which falls: all answers say
where neurons are, and the precise ones, in the end, how exactly.

1. Fit more neurons than are needed, with an even error that falls to a thousandth of what varies.
2. Take out those that are not needed.
3. Let the even error fall on, and add neurons where one is missing: a faint one shows at last.
"""

import logging
from dataclasses import dataclass, replace

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Damping, Stop
from revelu.recover.fit.growth import fit_at_once
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import prune
from revelu.recover.fit.smallest import Smallest
from revelu.recover.refine.network_fit import NetworkFit, Samples, fit
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Graded:
    """How the even error falls."""

    first: float = 1e-2
    """Its share of what varies at first,"""
    falls: float = 10.0**0.5
    """by which factor it falls,"""
    n_spared: int = 2
    """and how often until neurons that are not needed go: at a thousandth what is left of a network
    shows them."""
    finest: float = 0.05
    """It falls until no larger share of the answers has smaller errors."""
    lost: float = 10.0
    """A search ends where what is left is ``lost`` times the errors."""
    patience: int = 2
    """Neurons added in a row that gain nothing."""
    max_steps: int = 40
    """Of each fit."""

    def find(
        self,
        rng: np.random.Generator,
        samples: Samples,
        width: int,
        limit: float,
        start: Network | None = None,
    ) -> Network:
        """Find a network that explains samples, each by its own error.

        Parameters
        ----------
        width : int
            The most neurons to use.
        limit : float
            The reduced cost that noise alone may leave.
        start : Network, optional
            Neurons that are known already.
        """
        even = self._even_errors(samples, self.first)
        n_spared = min(self.n_spared, len(even) - 1)
        graded = _graded(samples, even[0])
        found = fit_at_once(rng, graded, width, limit, start)
        for error in even[1 : n_spared + 1]:
            if found.cost > self.lost * limit:
                break
            graded = _graded(samples, error)
            found = self._refitted(found.network, graded, limit)
        if found.cost > self.lost * limit:
            return found.network
        found = prune(found, graded, Price(limit, known=True))
        return self._grown(rng, samples, found.network, width, limit, even[n_spared:])

    def completed(
        self,
        rng: np.random.Generator,
        samples: Samples,
        network: Network,
        n_more: int,
        limit: float,
    ) -> Network:
        """Add neurons to a network that does not explain samples, ``n_more`` at most."""
        left = np.median(np.abs(samples.Y - network(samples.X)) / self._varies(samples))
        even = self._even_errors(samples, min(float(left), self.first))
        width = network.architecture[1] + n_more
        return self._grown(rng, samples, network, width, limit, even)

    def _grown(
        self,
        rng: np.random.Generator,
        samples: Samples,
        network: Network,
        width: int,
        limit: float,
        even: list[FloatArray],
    ) -> Network:
        """Let the even error fall, and add neurons where some are missing."""
        price, smallest = Price(limit, known=True), Smallest(Price(limit), width, 1)
        for error in even:
            graded = _graded(samples, error)
            found = self._refitted(network, graded, limit)
            grown = smallest.grow(rng, graded, found, patience=self.patience)
            is_grown = grown is not found and price.is_explained(grown.network, graded)
            found = prune(grown, graded, price) if is_grown else grown
            network = found.network
            log.debug("even error %.2g: %s, cost %.3g", error.max(), network, found.cost)
            if found.cost > self.lost * limit:
                break
        return network

    def _refitted(self, network: Network, graded: Samples, limit: float) -> NetworkFit:
        return fit(network, graded, Stop(self.max_steps, goal=limit), damping=Damping(1e-3))

    def _even_errors(self, samples: Samples, first: float) -> list[FloatArray]:
        """The even errors of each output, the last one 0, shapes (k,)."""
        varies = self._varies(samples)
        # One that is a tenth of the typical error adds no more than half a percent to it.  Where
        # errors differ it falls on to those of the finest answers: a step from far above them
        # would leave a network as far from these as one that is wrong.
        typical = np.median(samples.sigma, axis=0) / varies
        finest = np.quantile(samples.sigma, self.finest, axis=0) / varies
        least = float(min(0.1 * typical.max(), finest.max()))
        n = max(int(np.ceil(np.log(first / least) / np.log(self.falls))), 0)
        return [*(first * self.falls**-i * varies for i in range(n)), np.zeros(len(varies))]

    @staticmethod
    def _varies(samples: Samples) -> FloatArray:
        """Median deviation of the answers, 1 of constants."""
        varies = np.median(np.abs(samples.Y - np.median(samples.Y, axis=0)), axis=0)
        return np.where(varies > 0, varies, 1.0)


def _graded(samples: Samples, even: FloatArray) -> Samples:
    """Samples with an even error beside their own."""
    return replace(samples, sigma=np.hypot(samples.sigma, even))
