"""Whether a neuron is more than what errors explain: a likelihood ratio of known false alarms.

A neuron that is not there fits what errors leave.  How much of it, at most?  On ``n`` samples in
``d`` variables a hyperplane has ``C = 2 sum_{i <= d} binom(n - 1, i)`` ways to be on at some of
them and off at the others (Cover 1965).  For each of them a neuron is linear in ``d + 1``
numbers, and what it explains by chance, twice the logarithm of the likelihood ratio, has a
chi-squared law of ``d + 1`` degrees of freedom.  So the largest of all exceeds ``T`` with a
probability of at most ``C P(chi^2 > T)``.

The likelihood is that of the law of the errors, and of a law that errs there the ratio is divided
by how far the residuals exceed it where the neuron acts (White 1980): with ``z`` what the network
leaves, over its scale, and ``g`` what the neuron changes, by ``sum z^2 g^2 / sum g^2``.
"""

import numpy as np
from scipy.special import gammaln

from revelu.network import Network
from revelu.numerics.confidence import FALSE_ALARM
from revelu.numerics.gauss_newton import Damping, Stop
from revelu.recover.fit.growth import add_neuron
from revelu.recover.fit.weighing import Weighed
from revelu.recover.refine.network_fit import Samples, fit
from revelu.types import FloatArray


def chance_ratio(n: int, d: int, false_alarm: float = FALSE_ALARM) -> float:
    """Return what no neuron that is not there reaches, but with probability ``false_alarm``.

    Parameters
    ----------
    n, d : int
        Samples and variables.
    """
    i = np.arange(min(d, n - 1) + 1)
    logs = gammaln(n) - gammaln(i + 1) - gammaln(n - i)
    count = float(np.logaddexp.reduce(logs) + np.log(2.0))
    wanted, k = count - np.log(false_alarm), d + 1.0
    # Chernoff: P(chi^2_k > T) <= exp(-(T - k - k log(T / k)) / 2).
    T = 2.0 * wanted + k
    for _ in range(50):
        T = 2.0 * wanted + k + k * np.log(T / k)
    return float(T)


def ratio_of(network: Network, without: Network, found: Weighed) -> float:
    """Return the likelihood ratio of a network over one with a neuron less, twice its logarithm."""
    X, y, law, scales = found.samples.X, found.samples.Y[:, 0], found.law, found.scales
    z, z_without = ((y - net(X)[:, 0]) / scales for net in (network, without))
    gain = law.log_likelihood(z) - law.log_likelihood(z_without)
    acts = (z_without - z) ** 2
    acted = max(float(acts.sum()), np.finfo(np.float64).tiny)
    excess = float(np.sum(law.weights(z) * z**2 * acts)) / acted
    return max(2.0 * float(gain.sum()), 0.0) / max(excess, 1.0)


def without_chance(found: Weighed) -> tuple[Network, FloatArray]:
    """Leave out the neurons that errors explain.

    Returns
    -------
    network : Network
    ratios : ndarray, shape (m,)
        Of the neurons that stay; each is more than :func:`chance_ratio`.
    """
    network, samples = found.network, found.samples
    least = chance_ratio(*samples.X.shape)
    while m := network.architecture[1]:
        ratios = np.zeros(m)
        for j in np.argsort(_sizes(network, samples)):
            smaller = _without(network, int(j), samples)
            ratios[j] = ratio_of(network, smaller, found)
            if ratios[j] <= least:
                network = smaller
                break
        else:
            return network, ratios
    return network, np.zeros(0)


def one_more(
    rng: np.random.Generator, found: Weighed, core: Samples, n_tries: int
) -> Network | None:
    """Return the network with a neuron more that is beyond chance; None where none is found.

    Parameters
    ----------
    core : Samples
        Where it is looked for.
    n_tries : int
    """
    least = chance_ratio(*found.samples.X.shape)
    for _ in range(n_tries):
        grown = add_neuron(rng, core, found.network, 0.0).network
        grown = fit(grown, found.samples, Stop(40), damping=Damping(1e-6)).network
        if ratio_of(grown, found.network, found) > least:
            return grown
    return None


def _without(network: Network, j: int, samples: Samples) -> Network:
    rest = network.take(np.arange(network.architecture[1]) != j)
    return fit(rest, samples, Stop(40), damping=Damping(1e-6)).network


def _sizes(network: Network, samples: Samples) -> FloatArray:
    """What each neuron adds, weighed as the answers are: those that add least are tried first."""
    added = network.activations(samples.X)[1] * network.weights[1][0] / samples.sigma.reshape(-1, 1)
    return np.asarray(added.std(axis=0))
