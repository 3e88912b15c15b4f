"""The smallest two-layer network that explains samples.

Search with neurons to spare, take out those that are not needed, refine what is left.
How many samples a search needs, and how many neurons samples can carry, is counted in
equations a parameter.
"""

import logging
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Damping, Iterative, Stop
from revelu.recover.fit.growth import price
from revelu.recover.fit.pruning import by_worth, prune
from revelu.recover.fit.wide_fit import affine_fit, grow, searches
from revelu.recover.refine.network_fit import Automatic, Fit, Samples, degrees_of_freedom, fit

log = logging.getLogger(__name__)

# Equations a parameter that a search needs, growing neuron by neuron or all at once.
_GROWN_EQUATIONS = 1.6
_WIDE_EQUATIONS = 2.6

# Growing neuron by neuron is worth its time up to this many multiplications a fit.
_SLOW_WORK = 3e11

# From so many outputs on there is no want of equations.
SEVERAL_OUTPUTS = 3

# Searches on the same samples: up to this width they are short, and repeated more often.
_SHORT_WIDTH = 22
_SHORT_SEARCHES = 8
_LONG_SEARCHES = 2

# Samples are made more by these factors, where a search is short, long, or all at once.
_GROWTH = 1.08
_LONG_GROWTH = 1.2
_WIDE_GROWTH = 1.3

# A neuron that fires on a few of the samples can be invented: fresh ones tell.
_HELD_OUT = 0.03
_LEAST_HELD_OUT = 8

# Shares of the variation that a search may leave: of a wide one that may end, of one
# that may have found all but a few neurons, and of one that has.
_ROUGH = 2e-3
_PROMISING = 0.02
_NEARLY = 3e-3

# Neurons beside those that are known, where some are missing.
_SPARE_NEURONS = 8

_REFINE_STEPS = 40
_REFINE_RTOL = 0.02
_REFINE_PATIENCE = 2
_ITERATIONS_A_CONDITION = 15.0

# Shares of the even error that are added to each answer's own, until none is.
_TEMPERS = (1.0, 0.5, 0.25, 0.12, 0.06, 0.0)
_LEAST_EQUATIONS = 1.5


@dataclass(frozen=True)
class Shape:
    """Inputs and outputs of the networks searched: what sizes follow from.

    Attributes
    ----------
    d, k : int
    """

    d: int
    k: int

    def n_samples(self, width: int) -> int:
        """How many samples determine a network of this width, an affine rest included."""
        n_parameters = width * (self.d + 1 + self.k) + self.k * (self.d + 1)
        grown = int(np.ceil(_GROWN_EQUATIONS * n_parameters / self.k))
        if self._is_quick(grown, width):
            return grown
        return int(np.ceil(_WIDE_EQUATIONS * n_parameters / self.k))

    def width(self, n_samples: int) -> int:
        """The widest network that so many samples determine."""
        share = _GROWN_EQUATIONS if self.grows(n_samples) else _WIDE_EQUATIONS
        left = n_samples * self.k / share - self.k * (self.d + 1)
        return max(int(left / (self.d + 1 + self.k)), 1)

    def grows(self, n_samples: int) -> bool:
        """Whether growing neuron by neuron is worth its time.

        It needs fewer answers a parameter; where every query has several, there is no
        want of them.
        """
        width = n_samples * self.k / _GROWN_EQUATIONS / (self.d + 1 + self.k)
        return self._is_quick(n_samples, max(int(width), 1))

    def is_short(self, n_samples: int) -> bool:
        """Whether a search takes next to no time."""
        return self.grows(n_samples) and self.width(n_samples) < _SHORT_WIDTH

    def more(self, n_samples: int) -> int:
        """How many samples to try next."""
        factor = _GROWTH if self.is_short(n_samples) else _LONG_GROWTH
        factor = factor if self.grows(n_samples) else _WIDE_GROWTH
        return int(np.ceil(factor * n_samples))

    def n_held_out(self, n_samples: int) -> int:
        """Fresh samples that tell an explanation from an interpolation."""
        return int(np.ceil(_HELD_OUT * n_samples)) + _LEAST_HELD_OUT

    def _is_quick(self, n_samples: int, width: int) -> bool:
        if self.k >= SEVERAL_OUTPUTS:
            return False
        n = n_samples * self.k
        work = n * (width * (self.d + 1 + self.k)) ** 2 * width
        n_parameters = width * (self.d + 1 + self.k) + self.k * (self.d + 1)
        return Automatic().is_dense(n, n_parameters) and work < _SLOW_WORK


def shape_of(samples: Samples) -> Shape:
    """The shape of networks that samples are of."""
    return Shape(samples.X.shape[1], samples.Y.shape[1])


def explain(
    rng: np.random.Generator, samples: Samples, limit: float, start: Network | None = None
) -> Network:
    """Search and prune, all answers weighing alike.

    Weights that differ by orders of magnitude, as the errors of rounded answers do, make
    more minima.

    Parameters
    ----------
    rng : numpy.random.Generator
    samples : Samples
    limit : float
        The reduced cost that noise alone may leave.
    start : Network, optional
        Neurons that are known already.

    Returns
    -------
    Network
        With an affine rest; :func:`is_explained` tells whether it explains the samples.
    """
    samples, shape = samples.evenly(), shape_of(samples)
    affine = affine_fit(samples, n_solved=2)
    if is_explained(affine, samples, limit):
        return affine
    n, grows = len(samples.X), shape.grows(len(samples.X))
    width = max(shape.width(n), 0 if start is None else start.architecture[1] + _SPARE_NEURONS)
    goal = limit if grows else max(_ROUGH * samples.spread(), limit)
    tries = _SHORT_SEARCHES if shape.is_short(n) else _LONG_SEARCHES
    ends: list[Network] = []
    for found in islice(searches(rng, samples, width, goal, start, grows=grows), tries):
        network = found.network
        if found.cost < max(_PROMISING * samples.spread(), limit):
            network = _pruned(network, samples, limit)
        log.debug(
            "%d samples, %d neurons: cost %.3g; %d neurons: %.3g",
            n,
            found.network.architecture[1],
            found.cost,
            network.architecture[1],
            samples.reduced_cost(network),
        )
        ends.append(network)
        if is_explained(network, samples, limit):
            return network
    return min(ends, key=samples.cost)


def is_explained(network: Network, samples: Samples, limit: float) -> bool:
    """Whether what a network leaves of the samples is their noise."""
    return samples.evenly().reduced_cost(network) <= limit


def is_near(network: Network, samples: Samples) -> bool:
    """Whether a network leaves so little that most of its neurons must be right."""
    even = samples.evenly()
    return network.architecture[1] > 0 and even.cost(network) < _NEARLY * even.spread()


def refine(network: Network, samples: Samples) -> Fit:
    """Fit all parameters from a network that is right but for its digits.

    In the end each answer weighs by its own error.
    """
    found = fit(
        network,
        samples.evenly(),
        Stop(_REFINE_STEPS, _REFINE_RTOL, _REFINE_PATIENCE),
        solver=Automatic(Iterative(_iterations(network, samples), white=True)),
        damping=Damping(1e-9),
    )
    if samples.sigma.ndim == 1:
        return found
    return fit(found.network, samples, Stop(_REFINE_STEPS), damping=Damping(1e-6))


def sharpen(rng: np.random.Generator, network: Network, samples: Samples) -> Network:
    """Let the precise answers speak: they show neurons that are lost in the even error.

    Rounding errs by less where an answer is small.  A search that weighs answers so from
    the start ends in minima of a few precise ones; here their weights grow step by step,
    and at each a neuron is added where Schwarz's criterion asks for it.

    Parameters
    ----------
    rng : numpy.random.Generator
    network : Network
        That explains the samples, all of them weighing alike.
    samples : Samples
        With an error of its own for each answer, shape (n, k).

    Returns
    -------
    Network
        Fitted to the samples as they weigh.
    """
    even = samples.evenly().sigma
    best = refine(network, samples).network
    found = network
    for share in _TEMPERS:
        tempered = replace(samples, sigma=np.hypot(samples.sigma, share * even))
        found = fit(found, tempered, Stop(_REFINE_STEPS), damping=Damping(1e-6)).network
        while True:
            wider = grow(rng, tempered, found.architecture[1] + 1, 0.0, found).network
            if price(wider, tempered) >= price(found, tempered):
                break
            found = wider
    found = _without_idle(found, samples)
    log.debug("%d neurons sharpened to %d", network.architecture[1], found.architecture[1])
    return found if price(found, samples) < price(best, samples) else best


def _without_idle(network: Network, samples: Samples) -> Network:
    """Take out neurons, the least worth first, while Schwarz's criterion gains."""
    while network.architecture[1]:
        least = int(by_worth(network, samples)[0])
        kept = np.arange(network.architecture[1]) != least
        found = fit(network.take(kept), samples, Stop(_REFINE_STEPS), damping=Damping(1e-6))
        smaller = found.network
        if price(smaller, samples) >= price(network, samples):
            break
        network = smaller
    return network


def _pruned(network: Network, samples: Samples, limit: float) -> Network:
    """Prune; where that ends near the noise but above it, refine and prune again."""
    network = prune(network, samples, limit).network
    if not is_explained(network, samples, limit) and is_near(network, samples):
        network = prune(refine(network, samples).network, samples, limit).network
    return network


def _iterations(network: Network, samples: Samples) -> int:
    """Iterations of LSMR that a step needs.

    A random matrix with r equations a parameter has the condition number
    ``(1 + 1/sqrt r) / (1 - 1/sqrt r)``, and this one is not far from random.
    """
    root = np.sqrt(max(samples.n_equations / degrees_of_freedom(network), _LEAST_EQUATIONS))
    return int(np.ceil(_ITERATIONS_A_CONDITION * (1.0 + 1.0 / root) / (1.0 - 1.0 / root)))
