"""Many neurons where answers are plenty: those worth most are split, idle ones make room.

Of one or two answers a parameter a search ends beside the truth, where many networks explain nearly
as much.  Of several, damped steps of few neurons go down until each stands for a bundle of the
target's, which in trained networks lie close to each other.  Those that are worth most
(:func:`revelu.recover.fit.pruning.by_worth`) are joined by copies that are turned a little, with
the output weights that fit best (splitting, Liu, Wu and Wang 2019), and steps go on.  From some
width on as many that are missed least are taken out first.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network, add_networks
from revelu.numerics.gauss_newton import Damping, Stop
from revelu.numerics.interruption import WorkEndedError, at_most
from revelu.recover.fit.growth import affine_fit, random_start
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
        Answers a parameter; of four, fits of 50 neurons ended at a hundred times the errors,
        however long they went on.
    promising : float
        It is tried where growth has left less than this share of the variation: of regressors it
        left 0.0005 to 0.02, of a function that jumps 0.6.
    apart : float
        How far copies are turned at most, relative to their rows: of regressors the neurons of a
        bundle are a hundredth to a third apart.
    patience : int
        Where ``patience`` exchanges leave more than half of what was left before, room is made for
        half as many neurons more.
    stop : Stop
        What ends the steps between exchanges; they pass through plateaus.
    most_work : float
        Multiplications of all: a minute or two.
    """

    equations: float = 6.0
    promising: float = 0.1
    apart: float = 0.2
    patience: int = 4
    stop: Stop = field(default_factory=lambda: Stop(50, rtol=2e-3, patience=8))
    most_work: float = 3e12

    def find(
        self,
        widths: tuple[int, int],
        sizes: Sizes,
        samples: Samples,
        ask: Callable[[int], Samples],
        limit: float,
        rng: np.random.Generator,
    ) -> tuple[Network, Samples] | None:
        """Find a network that explains what is asked; None where exchanges gain little.

        Parameters
        ----------
        widths : (int, int)
            Neurons from which on some are taken out, first and at most.
        ask : callable, (int) -> Samples
            Answers to more inputs.
        limit : float
            The reduced cost that noise alone may leave.

        Raises
        ------
        LimitReachedError
            If queries or seconds run out.
        """
        price, (width, most) = Price(limit, known=True), widths
        found = NetworkFit(affine_fit(samples), np.inf)
        try:
            with at_most(self.most_work):
                while True:
                    n = int(np.ceil(self.equations * sizes.n_parameters(width) / sizes.k))
                    samples = samples.joined(ask(n - len(samples.X)))
                    found = self._exchanged(found.network, width, samples, price, rng)
                    if price.is_explained(found.network, samples):
                        return prune(found, samples, price).network, samples
                    if width == most:
                        return None
                    width = min(most, width + -(-width // 2))
        except WorkEndedError:
            return None

    def _exchanged(
        self,
        network: Network,
        width: int,
        samples: Samples,
        price: Price,
        rng: np.random.Generator,
    ) -> NetworkFit:
        """Split, take out and fit until samples are explained, or that gains little."""
        n = -(-width // 5)
        if not network.architecture[1]:
            network = add_networks(network, random_start(rng, samples, n))
        left = [np.inf] * self.patience
        while True:
            found = fit(network, samples, self.stop, damping=Damping())
            log.debug("%s, %d answers: %.3g", found.network, len(samples.X), found.cost)
            is_idle = min(left[-1], found.cost) > 0.5 * left[-self.patience]
            if is_idle or price.is_explained(found.network, samples):
                return found
            left.append(min(left[-1], found.cost))
            order = by_worth(found.network, samples)
            kept = order[max(len(order) + n - width, 0) :]
            copies = self._turned(found.network.take(order[-n:]), rng)
            rest = found.network.take(np.sort(kept))
            network = with_output_layer(add_networks(rest, copies), samples)

    def _turned(self, network: Network, rng: np.random.Generator) -> Network:
        """The same neurons, each turned a little, alone."""
        rows = np.column_stack([network.weights[0], network.biases[0]])
        size = self.apart * np.linalg.norm(rows[:, :-1], axis=1) * rng.random(len(rows))
        rows = rows + size[:, None] * rng.standard_normal(rows.shape) / np.sqrt(network.dim_in)
        A = network.weights[1]
        return Network([rows[:, :-1], A], [rows[:, -1], np.zeros(len(A))])
