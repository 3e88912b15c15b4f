"""Many neurons from random starts, where answers are plenty: idle ones are exchanged.

Of one or two answers a parameter a search ends beside the truth, where many networks explain nearly
as much.  Of eight, damped steps of more neurons than the target has go down until some of them do
the same as others, or nothing, while neurons of the target are missing.  The fifth that is missed
least (:func:`revelu.recover.fit.pruning.by_worth`) is taken out, as many neurons that explain what
is left are found while the others are held (:mod:`revelu.recover.fit.missing`), and steps go on.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network, add_networks
from revelu.numerics.gauss_newton import Damping, Stop
from revelu.numerics.interruption import WorkEndedError, at_most
from revelu.recover.fit.growth import affine_fit, random_start
from revelu.recover.fit.missing import LackingNeurons
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import by_worth, prune, with_output_layer
from revelu.recover.fit.sizes import Sizes
from revelu.recover.refine.network_fit import NetworkFit, Samples, fit

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NeuronExchange:
    """How a wide network is found that explains answers in plenty.

    Attributes
    ----------
    equations : float
        Answers a parameter; of half of that, fits of 50 neurons ended at a hundred times the
        errors, however long they went on.
    promising : float
        It is tried where growth has left less than this share of the variation: of regressors it
        left 0.0005 to 0.02, of a function that jumps 0.6.
    patience : int
        It ends where ``patience`` exchanges leave more than half of what was left before.
    stop : Stop
        What ends the steps between exchanges; they pass through plateaus.
    most_work : float
        Multiplications of all: a minute or two.
    """

    equations: float = 8.0
    promising: float = 0.1
    patience: int = 4
    stop: Stop = field(default_factory=lambda: Stop(50, rtol=2e-3, patience=8))
    most_work: float = 3e12

    def find(
        self,
        width: int,
        sizes: Sizes,
        samples: Samples,
        ask: Callable[[int], Samples],
        limit: float,
        rng: np.random.Generator,
    ) -> tuple[Network, Samples] | None:
        """Find a network that explains what is asked; None where exchanges gain little.

        Parameters
        ----------
        width : int
            Neurons to begin with, more than the target has.
        ask : callable, (int) -> Samples
            Answers to more inputs.
        limit : float
            The reduced cost that noise alone may leave.

        Raises
        ------
        LimitReachedError
            If queries or seconds run out.
        """
        price, missing = Price(limit, known=True), LackingNeurons(equations=self.equations)
        n = int(np.ceil(self.equations * sizes.n_parameters(width) / sizes.k))
        samples = samples.joined(ask(n - len(samples.X)))
        network = affine_fit(samples)
        network = add_networks(network, random_start(rng, samples, width))
        best, left = NetworkFit(network, np.inf), [np.inf] * self.patience
        n_exchanged = -(-width // 5)
        try:
            with at_most(self.most_work):
                while True:
                    found = fit(network, samples, self.stop, damping=Damping())
                    best = min(best, found, key=lambda one: one.cost)
                    log.debug("%d neurons, %d answers: %.3g", width, n, found.cost)
                    if price.is_explained(best.network, samples):
                        return prune(best, samples, price).network, samples
                    if best.cost > 0.5 * left[-self.patience]:
                        return None
                    left.append(best.cost)
                    kept = np.sort(by_worth(best.network, samples)[n_exchanged:])
                    network = with_output_layer(best.network.take(kept), samples)
                    more = missing.find(network, samples, n_exchanged, rng)
                    network = with_output_layer(add_networks(network, more), samples)
        except WorkEndedError:
            return None
