"""Networks among noise of unknown law: found by answers as they weigh, and no neuron by chance."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Damping, Stop
from revelu.numerics.interruption import WorkEndedError, at_most
from revelu.recover.fit.evidence import one_more, without_chance
from revelu.recover.fit.price import Price
from revelu.recover.fit.smallest import Smallest
from revelu.recover.fit.weighing import Weighed, Weighing, weighed
from revelu.recover.method import Tell
from revelu.recover.refine.network_fit import Samples, fit


@dataclass(frozen=True)
class NoiseSearch:
    """The search for a network, and for the law of what it leaves."""

    all: Samples
    """One output, weighing alike."""
    price: Price
    widest: Callable[[int, int], int]
    """(n, d) -> int.  The most neurons that samples determine."""
    n_searched: int
    """Samples that a search from scratch takes."""
    max_searches: int
    """From scratch."""
    most: int
    """Samples that other searches take."""
    n_tries: int = 4
    """Neurons that are tried before it is taken that none is missing."""
    work: float = 1e11
    """Multiplications that searches may take after the first: half a minute's."""
    weighing: Weighing = field(default_factory=Weighing)

    def run(
        self, rng: np.random.Generator, network: Network, tell: Tell, *, settled: bool
    ) -> tuple[Weighed, bool]:
        """Return the network, and whether independent searches agree on it.

        Parameters
        ----------
        network : Network
            A fit to samples that weigh alike,
        settled : bool
            at which independent searches have ended.
        """
        tell("estimating the law of the errors")

        def search(samples: Samples, start: Network) -> Network:
            return self._searched(rng, self._some(samples), start)

        found = self.weighing.run(network, self.all, search)
        found = self.weighing.fitted(found, self.all)
        tell("testing each neuron against chance")
        with at_most(self.work):
            try:
                found = self._beyond_chance(rng, found)
            except WorkEndedError:
                settled = False
        if settled and found.law.is_even:  # that they were alike is what those have taken
            return found, settled
        tell("searching again from other starts")
        with at_most(self.work):
            return self._searched_again(rng, found)

    def _searched(
        self, rng: np.random.Generator, some: Samples, start: Network | None = None
    ) -> Network:
        width = self.widest(*some.X.shape)
        return Smallest(self.price, width, 1).search(rng, some, start).network

    def _some(self, samples: Samples) -> Samples:
        return samples.take(np.arange(min(len(samples.X), self.most)))

    def _beyond_chance(self, rng: np.random.Generator, found: Weighed) -> Weighed:
        """Without the neurons that errors explain, and with those that they do not."""
        for _ in range(self.n_tries):
            network, ratios = without_chance(found)
            if network.architecture[1] < found.network.architecture[1]:
                found = self.weighing.fitted(weighed(network, self.all), self.all)
            found = replace(found, ratios=ratios)
            more = one_more(rng, found, self._some(found.core), self.n_tries)
            if more is None:
                break
            found = self.weighing.fitted(weighed(more, self.all), self.all)
        return found

    def _searched_again(self, rng: np.random.Generator, found: Weighed) -> tuple[Weighed, bool]:
        """The best of searches from scratch, and whether several end at it.

        Pieces that a function of another kind is put together from differ from search to search.
        """
        chance, agreeing = np.log(len(found.core.X)), 1
        for _ in range(self.max_searches):
            if agreeing == Smallest.agreeing:
                break
            core = found.core
            try:
                n = min(self.n_searched, len(core.X))
                once = self._searched(rng, core.take(np.arange(n)))
                once = fit(once, self._some(core), Stop(40), damping=Damping(1e-6)).network
                last = self._beyond_chance(rng, weighed(once, self.all))
            except WorkEndedError:
                break
            gain = self.price(found.network, core) - self.price(last.network, core)
            if gain > chance:
                found, agreeing = last, 1
            elif gain > -chance:
                agreeing += 1
        return found, agreeing == Smallest.agreeing
