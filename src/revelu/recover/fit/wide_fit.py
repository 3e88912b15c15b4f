"""From samples to a network that explains them: wider than need be, from random starts.

The landscape of a network with spare neurons and a free affine map has few bad minima.
Two ways to use that: start all neurons at random at once (many answers a parameter), or
add one after another where the residual asks for it (few answers a parameter).  What a
search that failed has got right mostly survives: drop the neurons of least worth and
search on.
"""

from collections.abc import Iterator

import numpy as np

from revelu.network import Network, add_networks, affine_network
from revelu.numerics.gauss_newton import Damping, Stop
from revelu.recover.fit.pruning import by_worth
from revelu.recover.refine.network_fit import Fit, Samples, fit

# Random starts of a neuron that is to explain the residual, and steps for each.
_NEURON_STARTS = 6
_NEURON_STEPS = 25

# Biases of random neurons, against pre-activations of deviation 1.
_BIAS_SPREAD = 0.6

# Ridge of the output weights of random neurons.
_RIDGE = 1e-3

# Steps after every neuron added, and of a fit of all neurons at once.
_GROWTH_STEPS = 25
_WIDE_STEPS = 120

# Of a fit in which one neuron is new.
_SOME = Damping(1e-2)

# Heavy damping at a random start, where the activation patterns are all wrong.
_WIDE_DAMPING = 1e3
_RESTART_DAMPING = 1e-1

# Of a failed search this share of the neurons stays, and after so many searches none.
_KEPT = 0.65
_FRESH_START_EVERY = 5


def searches(
    rng: np.random.Generator,
    samples: Samples,
    width: int,
    goal: float,
    start: Network | None = None,
    *,
    grows: bool,
) -> Iterator[Fit]:
    """Search for a network that explains the samples, again and again.

    Parameters
    ----------
    rng : numpy.random.Generator
    samples : Samples
    width : int
        The most neurons to use.
    goal : float
        A cost that is good enough.
    start : Network, optional
        Neurons that are known already.
    grows : bool
        One neuron after another, or all at once.

    Yields
    ------
    Fit
        Networks with an affine rest, each the end of one search.
    """
    attempt = 0
    while True:
        attempt += 1
        if grows:
            found = grow(rng, samples, width, goal, start)
        else:
            found = fit_at_once(rng, samples, width, goal, start)
        yield found
        start = None
        if attempt % _FRESH_START_EVERY:
            order = by_worth(found.network, samples)
            start = found.network.take(np.sort(order[int((1.0 - _KEPT) * len(order)) :]))


def grow(
    rng: np.random.Generator,
    samples: Samples,
    width: int,
    goal: float,
    start: Network | None = None,
) -> Fit:
    """Add the neuron that explains the residual best, refit all; again until it is small."""
    found = fit(start or affine_fit(samples), samples, Stop(_GROWTH_STEPS, goal=goal))
    while found.cost > goal and found.network.architecture[1] < width:
        rest = _rest(samples, found.network)
        starts = [
            fit(random_start(rng, rest, 1), rest, Stop(_NEURON_STEPS, rtol=1e-2), damping=_SOME)
            for _ in range(_NEURON_STARTS)
        ]
        neuron = min(starts, key=lambda found: found.cost).network
        found = fit(
            add_networks(found.network, neuron),
            samples,
            Stop(_GROWTH_STEPS, rtol=1e-2, goal=goal),
            damping=_SOME,
        )
    return found


def fit_at_once(
    rng: np.random.Generator,
    samples: Samples,
    width: int,
    goal: float,
    start: Network | None = None,
) -> Fit:
    """Fit ``width`` neurons, those of a start and random ones for the rest."""
    if start is None:
        begin, damping = affine_fit(samples), _WIDE_DAMPING
    else:
        begin, damping = start, _RESTART_DAMPING
    spare = max(width - begin.architecture[1], 0)
    begin = add_networks(begin, random_start(rng, _rest(samples, begin), spare))
    return fit(begin, samples, Stop(_WIDE_STEPS, goal=goal), damping=Damping(damping))


def random_start(rng: np.random.Generator, samples: Samples, width: int) -> Network:
    """Random neurons, their output weights by ridge regression."""
    n, d = samples.X.shape
    size = np.sqrt(np.einsum("ni,ni->", samples.X, samples.X) / samples.X.size)
    W = rng.standard_normal((width, d)) / np.sqrt(d)
    b = _BIAS_SPREAD * size * rng.standard_normal(width)
    features = np.column_stack([np.maximum(samples.X @ W.T + b, 0.0), np.ones(n)])
    gram = features.T @ features + _RIDGE * n * np.eye(width + 1)
    C = np.linalg.solve(gram, features.T @ samples.Y)
    return Network([W, C[:width].T], [b, C[width]])


def affine_fit(samples: Samples, *, n_solved: int = 1) -> Network:
    """The affine map that fits best, without neurons.

    Solved twice, the second time for what the first leaves, it is right to the last digits
    where little varies beside a large constant.
    """
    n, d = samples.X.shape
    features = np.column_stack([samples.X, np.ones(n)])
    C = np.zeros((d + 1, samples.Y.shape[1]))
    for _ in range(n_solved):
        C += np.linalg.lstsq(features, samples.Y - features @ C, rcond=None)[0]
    return affine_network(C[:d].T, C[d])


def _rest(samples: Samples, network: Network) -> Samples:
    return Samples(samples.X, samples.Y - network(samples.X), samples.sigma)
