"""Samples weighed by their errors, whose law is not known before the network is.

The two are found in turns: what a network leaves shows the law of the errors; the law says what
each answer is worth; and answers of that worth show a better network.  Answers that err beyond
the law's tails are left out of searches, and weigh next to nothing in fits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.numerics.error_law import ErrorLaw, estimate_law
from revelu.numerics.gauss_newton import Damping, Stop
from revelu.recover.refine.network_fit import Samples, fit
from revelu.types import FloatArray

# Finds the network behind samples, from one that is near it.
Search = Callable[[Samples, Network], Network]


@dataclass(frozen=True)
class Weighed:
    """A network, and the samples that it was fitted to, as they weigh."""

    network: Network
    samples: Samples
    """All of them."""
    core: Samples
    """Without those that err beyond the law's tails."""
    law: ErrorLaw
    noise: float
    """A typical scale of the errors."""
    scales: FloatArray
    """Shape (n,).  Of the answers' errors."""
    scores: FloatArray | None = None
    """Shape (n,), or None.  What :func:`revelu.recover.fit.covariance.standard_errors` takes
    with scales; None of an even law."""
    ratios: FloatArray | None = None
    """Shape (m,), or None.  Likelihood ratio of each neuron, once they have been tested."""


@dataclass(frozen=True)
class Weighing:
    """How networks and laws are found in turns."""

    rounds: int = 8
    """At most: each brings the noise down by as much as answers of a wrong weight spoilt, and is
    the last where it does not."""
    gain: float = 0.02
    """Share of the noise that another round must have brought: less is within its error."""
    fit_rounds: int = 6
    """Of the last fit, whose weights follow the residuals."""

    def run(self, network: Network, samples: Samples, search: Search) -> Weighed:
        """Return the network and the law that fit each other.

        Parameters
        ----------
        network : Network
            A fit to samples that weigh alike.
        samples : Samples
            One output, ``sigma`` of shape (1,).
        search : callable, (samples, network) -> network
        """
        best = weighed(network, samples)
        for _ in range(self.rounds):
            if best.law.is_even:
                break
            found = weighed(search(best.core, best.network), samples)
            if found.noise > (1.0 - self.gain) * best.noise:
                same = found.network.architecture == best.network.architecture
                best = best if same and best.noise < found.noise else found
                break
            best = found
        return best

    def fitted(self, found: Weighed, samples: Samples) -> Weighed:
        """Fit all parameters to all samples, weights following the residuals."""
        for _ in range(self.fit_rounds):
            if found.law.is_even:
                return found
            stop = Stop(40, rtol=1e-2)
            network = fit(found.network, found.samples, stop, damping=Damping(1e-9)).network
            new = weighed(network, samples)
            done = abs(new.noise - found.noise) < 1e-3 * found.noise
            found = new
            if done:
                break
        return found


def weighed(network: Network, samples: Samples, worthless: float = 0.125) -> Weighed:
    """Estimate the law of what a network leaves, and weigh the samples by it.

    Parameters
    ----------
    worthless : float
        Answers that weigh less than this share of others are left out of searches.
    """
    spread, y = float(samples.sigma.ravel()[0]), samples.Y[:, 0]
    answers = network(samples.X)[:, 0]
    residual = y - answers
    law = estimate_law(residual, slopes_of(network, samples.X), answers)
    if law.is_even:
        noise = samples.reduced_cost(network) * spread
        return Weighed(network, samples, samples, law, noise, np.full(len(y), noise))
    scales = law.scales(slopes_of(network, samples.X), answers)
    noise = float(np.median(scales))
    z = residual / scales
    weights, unit = law.weights(z), spread / noise
    kept = weights > worthless * law.weights(np.zeros(1))
    weighs = scales / np.sqrt(weights)
    whole = Samples(samples.X, samples.Y, unit * weighs[:, None])
    core = Samples(samples.X[kept], samples.Y[kept], unit * scales[kept, None])
    slope = float(np.mean(law.score_slopes(z)))
    scores = z * weights / max(slope, worthless)
    return Weighed(network, whole, core, law, noise, scales, scores)


def slopes_of(network: Network, X: FloatArray) -> FloatArray:
    """Return ``|grad f|`` at each input of a network with one output, shape (n,)."""
    W, A = network.weights
    on = network.activations(X)[1] > 0.0
    gradients = (on * A[0]) @ W + network.affine[0][0]
    return np.asarray(np.linalg.norm(gradients, axis=1))
