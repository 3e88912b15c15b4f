"""Three hidden layers from answers of few digits: a layer of rough rows on the other.

1. ``rough_rows`` finds the first layer, ``rough_above`` the second through it.
2. The third is a network of one hidden layer in what the second puts out.
3. All layers are fitted at once, to ever more answers until fresh ones agree (``rough_layers``).
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.network import Network, add_networks
from revelu.numerics.gauss_newton import Stop
from revelu.probe.view import AboveLayer
from revelu.recover.deep.rough_layers import RoughLayers, RoughLayersSearch
from revelu.recover.method import Candidate, Why
from revelu.recover.refine.network_fit import NetworkFit, Samples, fit
from revelu.recover.rows import Rows
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RoughTower(RoughLayers):
    """How three hidden layers are fitted: above a second that lacks a neuron no fit leads anywhere.

    Another search for it is cheap, and so is another start of the third.
    """

    n_searches: int = 3
    n_extra: tuple[int, ...] = (0, 4, 8, 12)
    n_starts: int = 4
    promising: float = 1e-3
    max_stale: int = 2
    n_fresh: int = 1000
    n_last: int = 6000
    """Fresh answers that a fit has to agree with last: neurons of a third layer are rare."""
    max_growths: int = 5
    """Neurons are added to a fit of the third layer so often,"""
    grows: float = 0.9
    """as long as that leaves no more than this share of what was left."""


@dataclass
class RoughTowerSearch(RoughLayersSearch):
    """Three hidden layers, fitted to answers."""

    how: RoughTower = field(default_factory=RoughTower)
    first: Rows = field(init=False)
    """Of the first layer, as its neurons turn on."""

    def _found(self) -> Candidate:
        """Find the first layer and the second, then the third above them, and fit all."""
        if self.paid.first is None and self.paid.rows is not None:
            return self._ended("two hidden layers do not explain the answers, nor are more seen")
        self.first = self._first()
        if not len(self.first) or len(self.first) > self._dim:
            return self._ended(
                f"{len(self.first)} hyperplanes of a first layer were found: where answers have "
                "few digits it has to be no wider than the input"
            )
        if len(self.first) == 1:
            # One number shows no more than one layer of kinks.
            return self._ended("a first layer of 1 neuron was found: what is above shows no rows")
        second, said = None, self._ended("")
        for _ in range(self.how.n_searches):
            self.tell(f"measuring rows above {len(self.first)} neurons on lines")
            second, others = self.how.above.find(
                self._answers, self.noise, self.first, self.rng, second
            )
            if not len(second) or len(second) > len(self.first):
                return self._ended(
                    f"{len(second)} hyperplanes of a second layer were found above "
                    f"{len(self.first)} neurons: where answers have few digits it has to be no "
                    "wider than the first"
                )
            said = self._both(self._turned_above(second), others)
            if said.why is Why.EXPLAINED:
                break
        return said

    def _first(self) -> Rows:
        """The first layer's rows; those that nothing shows the sign of belong to no neuron."""
        if self.paid.first is not None:
            return self.paid.first
        rows = self.how.first.find(self._answers, self._dim, self.noise, self.rng)[0]
        signs = self.how.first.signs(self._answers, self.noise, rows, self.rng)
        return rows.turned(signs).take(signs != 0)

    def _turned_above(self, second: Rows) -> Rows:
        """Rows of the second layer as their neurons turn on; both ways where that does not show."""
        above = AboveLayer(self._answers, self.first.W, self.first.b)
        signs = self.how.above.rows.signs(above, self.noise, second, self.rng)
        log.info("%d rows of the second layer, %d unsigned", len(second), (signs == 0).sum())
        back = second.take(signs == 0)
        return second.turned(np.where(signs < 0, -1, 1)).joined(back.turned(-np.ones(len(back))))

    def _both(self, first: Rows, others: Rows) -> Candidate:
        """Fit the third layer above the second, and all from the best: wrong ones lead nowhere."""
        best: NetworkFit | None = None
        starts = self.how.starts.find(first, others)
        for n_extra in self.how.n_extra:
            found = self._upper(first, starts, n_extra)
            if found is not None and (best is None or found.cost < best.cost):
                best = found
            if best is not None and best.cost < self.how.close:
                break
        if best is None:
            return self._ended("no third layer explains the answers")
        return self._settled(self._started(first, best.network))

    def _upper_fit(self, start: Network, samples: Samples, n_extra: int) -> NetworkFit:
        """Fit the third layer, and add neurons to it where that leaves most."""
        best = super()._upper_fit(start, samples, n_extra)
        for _ in range(self.how.max_growths):
            if best.cost < self.how.close:
                break
            left = replace(samples, Y=samples.Y - best.network(samples.X))
            stop = Stop(self.how.max_steps, goal=self.how.limit)
            found = fit(add_networks(best.network, self._spare().fitted(left)), samples, stop)
            if found.cost > self.how.grows * best.cost:
                break
            best = found
        return best

    def _wrong(self, network: Network, n: int) -> FloatArray:
        """Ask fresh inputs, and more where these do not show that a network is wrong."""
        bad = super()._wrong(network, n)
        if len(bad) or not self._explains(network):
            return bad
        return super()._wrong(network, self.how.n_last)

    def _started(self, rows: Rows, upper: Network) -> Network:
        """The first layer, the second, and a network above it."""
        weights, biases = [rows.W, *upper.weights], [rows.b, *upper.biases]
        W = self._first_weights(self.first)
        return Network([W, *weights], [self.first.b, *biases], skip=upper.skip)

    def _asked_below(self, n: int) -> tuple[FloatArray, FloatArray]:
        """What the first layer puts out, and answers, ``n`` at least."""
        Z, Y = super()._asked_below(n)
        return np.maximum(Z @ self.first.W.T + self.first.b, 0.0), Y
