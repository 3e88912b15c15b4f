"""Networks that are wider than need be, from random starts.

The landscape of a network with spare neurons and a free affine map has few bad minima.
Two ways to use that: start all neurons at random at once (many answers a parameter), or
add one after another where the residual asks for it (few answers a parameter).
"""

from dataclasses import replace

import numpy as np

from revelu.network import Network, add_networks, affine_network
from revelu.numerics.gauss_newton import Damping, Stop
from revelu.recover.refine.network_fit import NetworkFit, Samples, fit


def affine_fit(samples: Samples) -> Network:
    """The affine map that fits best, without neurons.

    Solved twice, the second time for what the first leaves, it is right to the last digits
    where little varies beside a large constant.
    """
    n, d = samples.X.shape
    features, weights = np.column_stack([samples.X, np.ones(n)]), np.ones((n, 1))
    if samples.differ:
        # One error an input.
        weights = 1.0 / np.sqrt((samples.sigma**2).mean(axis=1, keepdims=True))
    C = np.zeros((d + 1, samples.Y.shape[1]))
    for _ in range(2):
        left = samples.Y - features @ C
        C += np.linalg.lstsq(weights * features, weights * left, rcond=None)[0]
    return affine_network(C[:d].T, C[d])


def add_neuron(
    rng: np.random.Generator,
    samples: Samples,
    network: Network,
    goal: float,
    *,
    n_starts: int = 6,
    max_steps: int = 25,
) -> NetworkFit:
    """Add the neuron that explains the residual best, and refit all.

    Parameters
    ----------
    goal : float
        A cost that is good enough.
    n_starts : int
        Random starts of the neuron.
    max_steps : int
        Of the fit of each, and of all neurons together.
    """
    rest, some = _rest(samples, network), Damping(1e-2)
    starts = [
        fit(random_start(rng, rest, 1), rest, Stop(max_steps, rtol=1e-2), damping=some)
        for _ in range(n_starts)
    ]
    neuron = min(starts, key=lambda found: found.cost).network
    stop = Stop(max_steps, rtol=1e-2, goal=goal)
    return fit(add_networks(network, neuron), samples, stop, damping=some)


def fit_at_once(
    rng: np.random.Generator,
    samples: Samples,
    width: int,
    goal: float,
    start: Network | None = None,
    *,
    max_steps: int = 120,
) -> NetworkFit:
    """Fit ``width`` neurons, those of a start and random ones for the rest."""
    # Damping is heavy at a random start, where the activation patterns are all wrong.
    damping = Damping(1e3 if start is None else 1e-1)
    start = affine_fit(samples) if start is None else start
    spare = max(width - start.architecture[1], 0)
    start = add_networks(start, random_start(rng, _rest(samples, start), spare))
    return fit(start, samples, Stop(max_steps, goal=goal), damping=damping)


def random_start(
    rng: np.random.Generator,
    samples: Samples,
    width: int,
    *,
    spread: float = 0.6,
    ridge: float = 1e-3,
) -> Network:
    """Random neurons, their output weights by ridge regression.

    Parameters
    ----------
    spread : float
        Deviation of the biases, in units of that of ``w x``.
    ridge : float
        A share of the samples' number.
    """
    n, d = samples.X.shape
    size = np.sqrt(np.einsum("ni,ni->", samples.X, samples.X) / samples.X.size)
    W = rng.standard_normal((width, d)) / np.sqrt(d)
    b = spread * size * rng.standard_normal(width)
    features = np.column_stack([np.maximum(samples.X @ W.T + b, 0.0), np.ones(n)])
    gram = features.T @ features + ridge * n * np.eye(width + 1)
    C = np.linalg.solve(gram, features.T @ samples.Y)
    return Network([W, C[:width].T], [b, C[width]])


def _rest(samples: Samples, network: Network) -> Samples:
    return replace(samples, Y=samples.Y - network(samples.X))
