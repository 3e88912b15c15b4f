"""Single weights of an upper layer that few answers tell, as those tell them.

Let a network be exact but for the weight from a neuron below, of output ``h``, to an upper neuron
of preactivation ``z`` and output column ``a``.  Where the residual of an answer is ``r``, the
target's neuron has the preactivation ``t = r . a / |a|^2 + relu(z)`` if it is on there, so that

    (t - z) / h

is what the weight lacks: the same number at each such answer.  That needs no derivative of the
network, which has none where its neuron is off and the target's is on, and no other weight moves.
A bias is the weight from a neuron that puts out 1.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.recover.refine.network_fit import Samples, top_of, with_top
from revelu.types import BoolArray, FloatArray, IntArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SingleWeights:
    """How single weights are told from answers at which a network is wrong.

    Attributes
    ----------
    off : float
        An answer tells the rest of the network to so many errors,
    exact : float
        and is asked if that is no larger a share of what it says the weight lacks.
    n_agree : int
        So many answers agree on a weight, at least.
    n_voices : int
        Answers whose word on it is held against the others', at most.
    n_tried : int
        Weights that most agree on are tried, so many,
    max_weights : int
        and corrected one after another, at most.
    less : float
        A correction leaves no larger a share of what is wrong.
    """

    off: float = 20.0
    exact: float = 0.1
    n_agree: int = 4
    n_voices: int = 64
    n_tried: int = 16
    max_weights: int = 8
    less: float = 0.99

    def corrected(
        self,
        network: Network,
        samples: Samples,
        size_of_wrong: Callable[[Network, Samples], float],
        rng: np.random.Generator,
    ) -> Network:
        """A network that is wrong at fewer answers for weights that these agree on, or itself.

        Parameters
        ----------
        samples : Samples
            Answers, those among them at which the network is wrong.
        size_of_wrong : callable
            What a network leaves of answers, what is right counting next to nothing.
        """
        for _ in range(self.max_weights):
            least = size_of_wrong(network, samples)
            tried = [
                _changed(network, j, h, lack) for j, h, lack in self._lacks(network, samples, rng)
            ]
            better = min(tried, key=lambda n: size_of_wrong(n, samples), default=network)
            if size_of_wrong(better, samples) > self.less * least:
                break
            log.info("a weight is corrected as wrong answers tell it")
            network = better
        return network

    def _lacks(
        self, network: Network, samples: Samples, rng: np.random.Generator
    ) -> list[tuple[int, int, float]]:
        """Upper neurons, neurons below, and what weights between them lack, by most answers."""
        off = np.abs(samples.residual(network)).max(axis=1)
        wrong = np.flatnonzero(off * self.exact > self.off)
        if len(wrong) < self.n_agree:
            return []
        some = samples.take(wrong)
        H = np.column_stack([network.activations(some.X)[-2], np.ones(len(wrong))])
        Z, A = network.preactivations(some.X)[-1], network.weights[-1]
        rest = some.Y - network(some.X)
        sigma = np.broadcast_to(some.sigma, rest.shape).max(axis=1)
        voices = rng.permutation(len(wrong))[: self.n_voices]
        found = []
        for j, a in enumerate(A.T):
            size = float(a @ a)
            if not size:
                continue
            error = self.off * sigma / np.sqrt(size)
            along = rest @ a / size
            # What no neuron of this column explains is another one's.
            is_its = np.abs(rest - along[:, None] * a).max(axis=1) <= self.off * sigma
            is_on = is_its & (along + np.maximum(Z[:, j], 0.0) > 0.0)
            lack = along + np.maximum(Z[:, j], 0.0) - Z[:, j]
            found += [
                (n, j, h, value) for n, h, value in self._agreed(lack, error, H, is_on, voices)
            ]
        found.sort(key=lambda one: -one[0])
        return [one[1:] for one in found[: self.n_tried]]

    def _agreed(
        self,
        lack: FloatArray,
        error: FloatArray,
        H: FloatArray,
        is_on: BoolArray,
        voices: IntArray,
    ) -> list[tuple[int, int, float]]:
        """For each neuron below, how many answers agree, it, and what its weight lacks."""
        tells = is_on[:, None] & (H > 0.0) & (error <= self.exact * np.abs(lack))[:, None]
        found = []
        for h in np.flatnonzero(tells.sum(axis=0) >= self.n_agree):
            rows = np.flatnonzero(tells[:, h])
            says, errors = lack[rows] / H[rows, h], error[rows] / H[rows, h]
            own = np.isin(rows, voices)
            agree = np.abs(says[own, None] - says) <= errors[own, None] + errors
            n = agree.sum(axis=1)
            if len(n) and n.max() >= self.n_agree:
                group = agree[n.argmax()]
                weights = 1.0 / errors[group] ** 2
                value = float(weights @ says[group] / weights.sum())
                found.append((int(n.max()), int(h), value))
        return found


def _changed(network: Network, j: int, h: int, lack: float) -> Network:
    """A network with one weight changed, from neuron ``h`` below, or a bias, of neuron ``j``."""
    top = top_of(network)
    V, c = top.weights[0].copy(), top.biases[0].copy()
    if h < V.shape[1]:
        V[j, h] += lack
    else:
        c[j] += lack
    return with_top(network, Network([V, top.weights[1]], [c, top.biases[1]], top.skip))
