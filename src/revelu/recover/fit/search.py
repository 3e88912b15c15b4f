"""Networks that explain answers whose noise is known: found, refined, sharpened."""

import logging
from dataclasses import replace

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Damping, Iterative, Stop
from revelu.recover.fit.graded import Graded
from revelu.recover.fit.growth import affine_fit
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import by_worth
from revelu.recover.fit.sizes import Sizes
from revelu.recover.fit.smallest import Smallest
from revelu.recover.refine.network_fit import (
    Automatic,
    NetworkFit,
    Samples,
    degrees_of_freedom,
    fit,
)

log = logging.getLogger(__name__)


def explain(
    rng: np.random.Generator,
    samples: Samples,
    limit: float,
    start: Network | None = None,
    *,
    sizes: Sizes | None = None,
    n_spare: int = 8,
) -> Network:
    """Find the smallest network that explains samples, as they weigh.

    Weights that differ by orders of magnitude, as the errors of rounded answers do, make
    more minima: let these weigh alike.

    Parameters
    ----------
    limit : float
        The reduced cost that noise alone may leave.
    start : Network, optional
        Neurons that are known already.
    n_spare : int
        How many neurons more than those may be used, at least.

    Returns
    -------
    Network
        With an affine rest; :func:`is_explained` tells whether it explains the samples.
    """
    n = len(samples.X)
    price = Price(limit, known=True)
    affine = affine_fit(samples)
    if price.is_explained(affine, samples):
        return affine
    sizes = sizes or Sizes(samples.X.shape[1], samples.Y.shape[1])
    # Where neurons are known, some beside them are missing.
    width = max(sizes.width(n), 0 if start is None else start.architecture[1] + n_spare)
    if samples.differ:
        found = [Graded().find(rng, samples, width, limit, start)]
        while len(found) < sizes.n_searches(n) and not price.is_explained(found[-1], samples):
            found.append(Graded().find(rng, samples, width, limit))
        return min(found, key=samples.evenly().cost)
    smallest = Smallest(
        price, width, sizes.n_searches(n), at_once=not sizes.grows(n), fresh_every=5
    )
    return smallest.explain(rng, samples, start).network


def is_explained(network: Network, samples: Samples, limit: float) -> bool:
    """Whether what a network leaves of the samples is their noise."""
    return Price(limit).is_explained(network, samples.evenly())


def is_near(network: Network, samples: Samples, share: float = 3e-3) -> bool:
    """Whether a network leaves so little that most of its neurons must be right.

    Parameters
    ----------
    share : float
        Of the variation, which it may leave.
    """
    even = samples.evenly()
    return network.architecture[1] > 0 and even.cost(network) < share * even.spread()


def refine(
    network: Network, samples: Samples, *, max_steps: int = 40, flat: float = 1e-3
) -> NetworkFit:
    """Fit all parameters from a network that is right but for its digits.

    In the end each answer weighs by its own error.

    Parameters
    ----------
    flat : float
        Iterations end at a gradient this small, relative to what noise leaves.
    """
    ratio = max(samples.n_equations / degrees_of_freedom(network), 1.5)
    iterations = Iterative.as_random(ratio)
    solver = Automatic(Iterative(iterations, flat=flat, white=True))
    # Steps by iterations take long, and so the last of those that gain nothing is not taken.
    is_dense = solver.is_dense(samples.n_equations, network.n_parameters)
    stop = Stop(max_steps, rtol=0.02, patience=2, floor=0.0 if is_dense else 1.0)
    found = fit(network, samples.evenly(), stop, solver=solver, damping=Damping(1e-9))
    if samples.sigma.ndim == 1:
        return found
    if not is_dense:
        return fit(found.network, samples, stop, solver=solver, damping=Damping(1e-9))
    return fit(found.network, samples, Stop(max_steps), damping=Damping(1e-6))


def refine_as_weighed(network: Network, samples: Samples, *, max_steps: int = 40) -> Network:
    """Fit all parameters, each answer weighing by its own error, from a network near it."""
    return fit(network, samples, Stop(max_steps), damping=Damping(1e-6)).network


def complete(
    rng: np.random.Generator, network: Network, samples: Samples, noise: float = 0.0
) -> Network:
    """Add the neurons that Schwarz's criterion asks for, to a network that is nearly right.

    What noise may leave leaves room for neurons that matter little.  In a slice of the inputs,
    where answers are many for each parameter, and far out, they show all the same.
    """
    found, smallest = (
        fit(network, samples, Stop(), damping=Damping()),
        Smallest(Price(noise), len(samples.X), 1),
    )
    return smallest.grow(rng, samples, found, patience=2, each=None).network


def sharpen(
    rng: np.random.Generator,
    network: Network,
    samples: Samples,
    *,
    tempers: tuple[float, ...] = (1.0, 0.5, 0.25, 0.12, 0.06, 0.0),
) -> Network:
    """Let the precise answers speak: they show neurons that are lost in the even error.

    Rounding errs by less where an answer is small.  A search that weighs answers so from
    the start ends in minima of a few precise ones; here their weights grow step by step,
    and at each a neuron is added where Schwarz's criterion asks for it.

    Parameters
    ----------
    network : Network
        That explains the samples, all of them weighing alike.
    samples : Samples
        With an error of its own for each answer, shape (n, k).
    tempers : tuple of float
        Shares of the even error that are added to each answer's own, until none is.

    Returns
    -------
    Network
        Fitted to the samples as they weigh.
    """
    even, price = samples.evenly().sigma, Price(0.0)
    best = refine(network, samples).network
    smallest, sharp = Smallest(price, len(samples.X), 1), network
    for share in tempers:
        tempered = replace(samples, sigma=np.hypot(samples.sigma, share * even))
        found = fit(sharp, tempered, Stop(40), damping=Damping(1e-6))
        sharp = smallest.grow(rng, tempered, found, patience=1, each=None).network
    sharp = _without_idle(sharp, samples, price)
    log.debug("%d neurons sharpened to %d", network.architecture[1], sharp.architecture[1])
    return sharp if price.prefers(sharp, best, samples) else best


def _without_idle(network: Network, samples: Samples, price: Price) -> Network:
    """Take out neurons, the least worth first, while Schwarz's criterion gains.

    Each refit begins at the weights as they are: :func:`revelu.recover.fit.pruning.prune` solves
    for the output layer first, all answers weighing alike.
    """
    while network.architecture[1]:
        least = int(by_worth(network, samples)[0])
        rest = network.take(np.arange(network.architecture[1]) != least)
        smaller = fit(rest, samples, Stop(40), damping=Damping(1e-6)).network
        if not price.prefers(smaller, network, samples):
            break
        network = smaller
    return network
