"""What a network costs that explains samples: what it leaves, and its parameters."""

from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.recover.refine.network_fit import Samples, degrees_of_freedom


@dataclass(frozen=True)
class Price:
    """Schwarz's criterion (1978), where a cost below the noise is as good as one at it."""

    noise: float
    """The reduced cost that noise or rounding may leave: what leaves no more is explained."""
    known: bool = False
    """Whether noise leaves just that, and not more: then what a network leaves above it is worth
    any number of neurons, and parameters are free."""

    def is_explained(self, network: Network, samples: Samples) -> bool:
        """Whether what a network leaves of the samples is noise."""
        return samples.reduced_cost(network) <= self.noise

    def __call__(self, network: Network, samples: Samples, each: float | None = None) -> float:
        """Return ``n log(cost^2) + p log(n)`` of a network with ``p`` degrees of freedom.

        Parameters
        ----------
        samples : Samples
            ``n`` equations.
        each : float, optional
            Price of a parameter, in place of ``log(n)``.  At 2 it is Akaike's criterion
            (1974): twice what a parameter that explains nothing gains by chance.
        """
        n = samples.n_equations
        # Answers that are all one number leave nothing.
        cost = max(samples.cost(network), self.noise, np.finfo(np.float64).tiny)
        each = np.log(n) if each is None else each
        each = 0.0 if self.known else each
        return float(2.0 * n * np.log(cost) + degrees_of_freedom(network) * each)

    def prefers(self, new: Network, old: Network, samples: Samples) -> bool:
        """Whether a network is the better explanation.

        What explains the samples is better than what does not; of two that do, the smaller.
        """
        explained = [self.is_explained(network, samples) for network in (new, old)]
        if all(explained):
            return degrees_of_freedom(new) < degrees_of_freedom(old)
        return explained[0] or (not explained[1] and self(new, samples) < self(old, samples))
