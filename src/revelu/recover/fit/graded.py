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
from revelu.recover.refine.network_fit import Fit, Samples, fit

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Graded:
    """How the even error falls.

    Attributes
    ----------
    first : float
        Its share of what varies at first,
    falls : float
        by which factor it falls,
    spared : float
        and the share down to which neurons to spare stay.
    lost : float
        A search ends where what is left is so many times the errors.
    patience : int
        Neurons added in a row that gain nothing.
    max_steps : int
        Of each fit.
    """

    first: float = 1e-2
    falls: float = 10.0**0.5
    spared: float = 1e-3
    lost: float = 10.0
    patience: int = 2
    max_steps: int = 40

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
        price, smallest = Price(limit, known=True), Smallest(Price(limit), width, 1)
        middle = np.median(samples.Y, axis=0)
        varies = np.median(np.abs(samples.Y - middle), axis=0)
        least = float((np.median(samples.sigma, axis=0) / np.where(varies > 0, varies, 1.0)).max())
        share, n_spared = self.first, 1 + round(
            float(np.log(self.first / self.spared) / np.log(self.falls))
        )
        found: Fit | None = None
        for turn in range(99):
            is_last = share <= 0.1 * least
            even = 0.0 if is_last else share * varies
            graded = replace(samples, sigma=np.hypot(samples.sigma, even))
            if found is None:
                found = fit_at_once(rng, graded, width, limit, start)
            else:
                found = fit(
                    found.network, graded, Stop(self.max_steps, goal=limit), damping=Damping(1e-3)
                )
            if turn + 1 == n_spared or (is_last and turn + 1 < n_spared):
                found = prune(found, graded, price)
            if turn + 1 >= n_spared or is_last:
                before = found.network.architecture[1]
                found = smallest.grow(rng, graded, found, patience=self.patience)
                if found.network.architecture[1] > before and price.is_explained(
                    found.network, graded
                ):
                    found = prune(found, graded, price)
            log.debug(
                "even error %.2g: %d neurons, cost %.3g",
                share,
                found.network.architecture[1],
                found.cost,
            )
            if is_last or found.cost > self.lost * limit:
                break
            share /= self.falls
        return found.network
