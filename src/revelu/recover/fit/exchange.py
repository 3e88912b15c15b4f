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
from revelu.recover.refine.network_fit import Samples, fit

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NeuronExchange:
    """How a wide network is found that explains answers in plenty."""

    equations: float = 6.0
    """Answers a parameter; fits to four ended at a hundred times the errors."""
    promising: float = 0.1
    """It is tried where growth has left less than this share of the variation: of regressors it
    left 0.0005 to 0.02, of a function that jumps 0.6."""
    apart: float = 0.2
    """How far copies are turned at most, relative to their rows: of regressors 0.2 and 0.5 found 50
    neurons, and where these are all but parallel 0.2 alone."""
    patience: int = 4
    """Where ``patience`` exchanges leave more than half of what was left before, room is made for
    half as many neurons more."""
    stop: Stop = field(default_factory=lambda: Stop(50, rtol=2e-3, patience=8))
    """What ends the steps between exchanges; they pass through plateaus."""
    most_work: float = 3e12
    """Multiplications of all: a minute or two."""

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
        network, left = affine_fit(samples), [np.inf] * self.patience
        try:
            with at_most(self.most_work):
                while True:
                    n = int(np.ceil(self.equations * sizes.n_parameters(width) / sizes.k))
                    if n > len(samples.X):
                        samples = samples.joined(ask(n - len(samples.X)))
                    network = self._split(network, width, samples, rng)
                    found = fit(network, samples, self.stop, damping=Damping())
                    network = found.network
                    log.debug("%s, %d answers: %.3g", network, len(samples.X), found.cost)
                    if price.is_explained(network, samples):
                        return prune(found, samples, price).network, samples
                    left.append(min(left[-1], found.cost))
                    if left[-1] > 0.5 * left[-1 - self.patience]:
                        if width == most:
                            return None
                        width, left = min(most, width + -(-width // 2)), [np.inf] * self.patience
        except WorkEndedError:
            return None

    def _split(
        self, network: Network, width: int, samples: Samples, rng: np.random.Generator
    ) -> Network:
        """Join a fifth as many neurons, those worth most turned a little, and take others out."""
        n = -(-width // 5)
        if not network.architecture[1]:
            return add_networks(network, random_start(rng, samples, n))
        order = by_worth(network, samples)
        rest = network.take(np.sort(order[max(len(order) + n - width, 0) :]))
        split = network.take(order[-n:])
        (W, A), (b, c) = split.weights, split.biases
        size = self.apart * np.linalg.norm(W, axis=1) * rng.random(len(W)) / np.sqrt(W.shape[1])
        W = W + size[:, None] * rng.standard_normal(W.shape)
        copies = Network([W, A], [b + size * rng.standard_normal(len(b)), np.zeros_like(c)])
        return with_output_layer(add_networks(rest, copies), samples)
