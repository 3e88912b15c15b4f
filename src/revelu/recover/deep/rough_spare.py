"""Neurons to spare: what a network that is wrong is given, in either of its hidden layers.

What is missing and rarely on shows only where answers are wrong, as an affine function of rank 1;
what is on at many inputs is found from random starts.
"""

from dataclasses import dataclass

import numpy as np

from revelu.network import Network, add_networks
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.float64 import EPS, HALF_DIGITS
from revelu.numerics.gauss_newton import Stop, normal_equations
from revelu.recover.fit.growth import fit_at_once
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import prune
from revelu.recover.fit.where_wrong import neuron_where_on
from revelu.recover.refine.network_fit import NetworkFit, Samples, fit, top_of, with_top
from revelu.types import FloatArray


@dataclass(frozen=True)
class SpareNeurons:
    """Adds a few neurons to a network that leaves much."""

    rng: np.random.Generator
    limit: float
    """Reduced cost that noise leaves, and errors of answers that count as wrong, in ``SIGMAS``."""
    n: int
    """How many are added."""
    n_starts: int
    """Random starts,"""
    n_rough_steps: int
    """of ``n_rough_steps`` steps where all layers are fitted afterwards."""
    n_answers: int
    """So many more than a row has entries say what a neuron is that is missing."""

    def above(self, network: Network, samples: Samples) -> Network:
        """Add a few neurons above the first layer."""
        left = samples.Y - network(samples.X)
        above = Samples(network.activations(samples.X)[-2], left, samples.sigma)
        return with_top(network, add_networks(top_of(network), self.fitted(above)))

    def below(self, network: Network, samples: Samples) -> Network:
        """Add a few neurons to the first layer, where answers are wrong or anywhere."""
        left = Samples(samples.X, samples.Y - network(samples.X), samples.sigma)
        spare = self._local(left)
        if not spare.architecture[1]:
            spare = fit_at_once(
                self.rng, left, self.n, self.limit, max_steps=self.n_rough_steps
            ).network
        return self._joined(network, spare, samples)

    def joined(self, network: Network, samples: Samples) -> Network:
        """Add neurons above a layer that is known, beside right rows, if less is left then.

        Where nearly all rows are known those that lack are faint ones.  A fit of all of them would
        move what is right to make up for these: so they are fitted to what is left, and all rows
        above from there on.
        """
        top, H = top_of(network), network.activations(samples.X)[-2]
        left = Samples(H, samples.Y - top(H), samples.sigma)
        more = self.fitted(left)
        # Those that others can do without go: more of them would fit anything.
        found = NetworkFit(more, left.cost(more))
        more = prune(found, left, Price(max(2.0, found.cost), known=True)).network
        above, stop = Samples(H, samples.Y, samples.sigma), Stop(self.n_rough_steps)
        upper = fit(add_networks(top, more), above, stop, normal_equations).network
        other = with_top(network, upper)
        return other if samples.cost(other) < samples.cost(network) else network

    def fitted(self, samples: Samples) -> Network:
        """A few neurons that explain most, from where answers are wrong or from random starts."""
        local = self._local(samples)
        stop = Stop(40, goal=self.limit)
        found = [local, fit(local, samples, stop).network]
        for _ in range(self.n_starts):
            if samples.reduced_cost(found[-1]) <= self.limit:
                break
            found.append(
                fit_at_once(self.rng, samples, self.n, self.limit, max_steps=stop.max_steps).network
            )
        return min(found, key=lambda spare: size_of_rest(spare, samples))

    def _local(self, samples: Samples) -> Network:
        """A few neurons, one after another, each from where most is left."""
        d, k = samples.X.shape[1], samples.Y.shape[1]
        found = Network([np.empty((0, d)), np.empty((k, 0))], [np.empty(0), np.zeros(k)])
        left = samples.Y.copy()
        for _ in range(self.n):
            off = np.abs(left / samples.sigma).max(axis=1)
            wrong = np.flatnonzero(off > SIGMAS * self.limit)
            if len(wrong) <= d + 1:
                break
            worst = samples.X[wrong[off[wrong].argmax()]]
            near = np.argsort(np.linalg.norm(samples.X[wrong] - worst, axis=1), kind="stable")
            near = wrong[near[: d + self.n_answers]]
            neuron = neuron_where_on(samples.X[near], left[near])
            found, left = add_networks(found, neuron), left - neuron(samples.X)
        return found

    @staticmethod
    def _joined(network: Network, spare: Network, samples: Samples) -> Network:
        """Add neurons of the first layer, with weights above them that explain most.

        As long as no neuron above turns on or off, these are linear: the answers change by
        ``A (g * (V h))`` where ``h`` is what the new neurons put out and ``g`` which are on above.
        """
        (W, V), (b, c) = network.weights[:2], network.biases[:2]
        new_W, new_b = spare.weights[0], spare.biases[0]
        h = np.maximum(samples.X @ new_W.T + new_b, 0.0)
        on = network.preactivations(samples.X)[1] > 0
        sigma = np.broadcast_to(samples.sigma.reshape(len(h), -1), samples.Y.shape)
        effect = network.weights[2][None] * on[:, None, :] / sigma[:, :, None]
        design = (effect[:, :, :, None] * h[:, None, None, :]).reshape(
            sigma.size, len(c) * len(new_b)
        )
        left = (samples.Y - network(samples.X)) / sigma
        new_V = np.linalg.lstsq(design, left.ravel(), rcond=HALF_DIGITS)[0].reshape(
            len(c), len(new_b)
        )
        skip = network.skip
        weights = [np.vstack([W, new_W]), np.hstack([V, new_V]), *network.weights[2:]]
        if skip is not None:
            skip = (np.hstack([skip[0], np.zeros((len(skip[0]), len(new_b)))]), skip[1])
        return Network(weights, [np.append(b, new_b), *network.biases[1:]], skip=skip)


def without_least(network: Network, X: FloatArray, rank: int = 0) -> Network:
    """Take out the neuron of the first layer that others replace best, at ``X (n, d)``.

    Or second best, by its rank.

    Those above it then take in what the others and a constant explain of it, so that copies of one
    neuron that cancel each other, however large their weights, go before what is faint and alone.

    Notes
    -----
    Source: Hassibi, Stork 1993 (optimal brain surgeon), for all that a neuron gives at once.
    """
    H = np.column_stack([network.activations(X)[1], np.ones(len(X))])
    sizes, m = np.sqrt((H**2).mean(axis=0)), H.shape[1] - 1
    H = H / np.where(sizes > 0.0, sizes, 1.0)
    _, s, vt = np.linalg.svd(H, full_matrices=False)
    # (H^T H)^-1 has on its diagonal one over the squared part of each column outside the others'
    # span; singular values below rounding count as rounding.
    s = np.maximum(s, s[0] * EPS)
    outside = 1.0 / np.linalg.norm(vt / s[:, None], axis=0)[:m]
    worth = outside * sizes[:m] * np.linalg.norm(network.weights[1], axis=0)
    least = int(np.argsort(worth, kind="stable")[rank])
    others = np.delete(np.arange(m + 1), least)
    taken_over = np.linalg.lstsq(H[:, others], H[:, least])[0] * sizes[least]
    taken_over /= np.where(sizes[others] > 0.0, sizes[others], 1.0)
    change = np.outer(network.weights[1][:, least], taken_over)
    kept = others[:-1]
    weights, biases = list(network.weights), list(network.biases)
    weights[0], biases[0] = weights[0][kept], biases[0][kept]
    weights[1], biases[1] = weights[1][:, kept] + change[:, :-1], biases[1] + change[:, -1]
    skip = network.skip and (network.skip[0][:, kept], network.skip[1])
    return Network(weights, biases, skip=skip)


def size_of_rest(network: Network, samples: Samples, weights: FloatArray | None = None) -> float:
    """What a network leaves, a few wrong answers counting for little more than a few others.

    Parameters
    ----------
    weights : ndarray, shape (n,), optional
        How much each answer counts.
    """
    rest = np.log1p(samples.residual(network) ** 2).mean(axis=1)
    return float(np.average(rest, weights=weights))
