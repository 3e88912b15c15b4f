"""Upper neurons that no trace has found, beside rows that traces have.

Where a first layer is known, and nearly all of what is above it, few neurons are missing: faint
ones.  A fit of all rows would move those that are right to make up for them.  So rows that are
right are held, and what they leave is fitted from random starts:

1. Rows that traces know badly are free, and so are the faintest of all; random ones join them.
2. Free rows are fitted to what the held ones leave, from several starts; the best goes on.
3. Then all rows above are fitted, then all layers; and again, as long as less is left each time.
"""

import logging
from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network, add_networks
from revelu.numerics.gauss_newton import Damping, Iterative, Stop, normal_equations
from revelu.recover.fit.growth import fit_at_once
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import prune
from revelu.recover.refine.network_fit import Automatic, NetworkFit, Samples, fit, top_of, with_top
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MissingNeurons:
    """How neurons are fitted that traces have not found.

    Attributes
    ----------
    worst : float
        Of rows that err by more than this share
    n_unsure : int
        ``n_unsure`` are free, those whose errors make most of the answers,
    n_faint : int
        and ``n_faint`` of the faintest, and those that were random before,
    n_spare : int
        beside ``n_spare`` random ones,
    n_starts : int
        from ``n_starts`` starts at most,
    much : float
        until one leaves less than this share of what was left;
    worse : float
        those go without which no more than ``worse`` times as much is left.
    n_steps, n_upper_steps, n_joint_steps : int
        Steps of the fit of free rows, of all rows above the first layer, and of all layers.
    limit : float
        The reduced cost that noise alone may leave.
    n_rounds : int
        So many rounds at most,
    gain : float
        as long as each leaves less than this share of what was left.
    upper_damping, damping : Damping
    most_dense, most_work : int, float
        All layers are fitted by normal equations up to these numbers of parameters and
        multiplications.
    """

    worst: float = 1e-3
    n_unsure: int = 6
    n_faint: int = 3
    n_spare: int = 5
    n_starts: int = 3
    much: float = 0.1
    worse: float = 1.001
    n_steps: int = 80
    n_upper_steps: int = 10
    n_joint_steps: int = 30
    limit: float = 1.5
    n_rounds: int = 4
    gain: float = 0.8
    upper_damping: Damping = field(default_factory=lambda: Damping(1e-3))
    damping: Damping = field(default_factory=lambda: Damping(1e-3))
    most_dense: int = 4000
    most_work: float = 1e12

    def completed(
        self,
        network: Network,
        samples: Samples,
        errors: FloatArray,
        rng: np.random.Generator,
    ) -> Network:
        """Fit what is missing above the first layer.

        Parameters
        ----------
        errors : ndarray, shape (r,)
            Of the upper rows, relative to their sizes.
        """
        least, H = samples.cost(network), network.activations(samples.X)[-2]
        makes = np.where(errors > self.worst, np.minimum(errors, 1.0), 0.0)
        makes *= self._strengths(top_of(network), H)
        is_free = makes > np.sort(makes)[::-1][min(self.n_unsure, len(makes) - 1)]
        for _ in range(self.n_rounds * bool(samples.reduced_cost(network) > self.limit)):
            is_free = self._with_faint(network, samples, is_free)
            above, is_free = self._above(network, samples, is_free, rng)
            found = self._all(above, samples)
            cost = samples.cost(found)
            log.info("%s: cost %.3g, %.3g before", found, cost, least)
            if cost >= least:
                break
            is_done = cost > self.gain * least or samples.reduced_cost(found) <= self.limit
            network, least = found, cost
            if is_done:
                break
        return network

    def joined(self, network: Network, samples: Samples, rng: np.random.Generator) -> Network:
        """Join random rows to a network all of whose rows are as good, where less is left then."""
        none = np.zeros(network.architecture[-2], dtype=bool)
        found, _ = self._above(network, samples, none, rng)
        return found if samples.cost(found) < samples.cost(network) else network

    def _with_faint(self, network: Network, samples: Samples, is_free: BoolArray) -> BoolArray:
        """Which rows are free, and the faintest."""
        strengths = self._strengths(top_of(network), network.activations(samples.X)[-2])
        is_faint = np.zeros(len(is_free), dtype=bool)
        is_faint[np.argsort(strengths, kind="stable")[: self.n_faint]] = True
        return is_free | is_faint

    def _above(
        self, network: Network, samples: Samples, is_free: BoolArray, rng: np.random.Generator
    ) -> tuple[Network, BoolArray]:
        """Steps 1 and 2, and a fit of all rows above the first layer; and which were random."""
        top, H = top_of(network), network.activations(samples.X)[-2]
        held, free = top.take(~is_free), top.take(is_free)
        k, m = top.dim_out, H.shape[1]
        start = Network(
            free.weights, [free.biases[0], np.zeros(k)], (np.zeros((k, m)), np.zeros(k))
        )
        left = Samples(H, samples.Y - held(H), samples.sigma)
        best = self._best(start, left, rng)
        log.info("%d free rows: cost %.3g, %.3g before", is_free.sum(), best.cost, left.cost(start))
        upper = fit(
            add_networks(held, best.network),
            Samples(H, samples.Y, samples.sigma),
            Stop(self.n_upper_steps, rtol=0.02, patience=2, goal=self.limit),
            solver=normal_equations,
            damping=self.upper_damping,
        ).network
        is_new = np.arange(upper.architecture[1]) >= len(is_free)
        return with_top(network, upper), is_new

    def _best(self, start: Network, left: Samples, rng: np.random.Generator) -> NetworkFit:
        """The best fit of free rows and random ones, from several starts."""
        width, before = start.architecture[1] + self.n_spare, left.cost(start)
        best = NetworkFit(start, before)
        for _ in range(self.n_starts):
            found = fit_at_once(rng, left, width, self.limit, start, max_steps=self.n_steps)
            best = min(best, found, key=lambda found: found.cost)
            if best.cost <= self.much * before:
                break
        # Neurons that others can do without go: more of them would fit anything.
        return prune(best, left, Price(max(2.0, self.worse * best.cost), known=True))

    @staticmethod
    def _strengths(top: Network, H: FloatArray) -> FloatArray:
        """What each neuron adds to an affine function of its sum, about, shape (r,)."""
        Z = H @ top.weights[0].T + top.biases[0]
        out = np.minimum(np.maximum(Z, 0.0).std(axis=0), np.maximum(-Z, 0.0).std(axis=0))
        return np.asarray(out * np.linalg.norm(top.weights[1], axis=0))

    def _all(self, network: Network, samples: Samples) -> Network:
        """Fit all layers."""
        solver = Automatic(Iterative(60), self.most_dense, self.most_work)
        stop = Stop(self.n_joint_steps, rtol=0.02, patience=2)
        return fit(network, samples, stop, solver=solver, damping=self.damping).network
