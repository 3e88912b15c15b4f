"""Inputs at which a network of several layers would show what it lacks.

They are chosen among many that are not asked.
"""

from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.oracle import NoiseFloor
from revelu.recover.deep.witnesses import Witnesses
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class InputChoice:
    """The choice of inputs at which a network is tested."""

    max_last: int = 40_000
    last_a_parameter: float = 100
    """Inputs in a row that must be right in the end, with one output."""
    n_inputs: int = 20_000
    """Inputs, not asked, among which rare and informative ones are chosen."""
    rarely: int = 200
    """At fewer of those a neuron is rarely in a state."""
    n_rare: int = 8
    """Rare inputs of each neuron."""
    spreads: tuple[float, ...] = (1.0, 2.0)
    """Standard deviations of inputs that are to be informative."""
    n_informative: int = 4
    """Informative inputs for each weight."""
    max_informative: int = 60
    another: float = 1e-4
    """A gradient is another one if it differs by this share of its size."""
    max_suspects: int = 16

    def n_last(self, network: Network) -> int:
        """How many inputs in a row must be right in the end.

        In proportion to the queries of a search, which several outputs shorten.
        """
        n = self.last_a_parameter * network.n_parameters / np.sqrt(network.dim_out)
        return int(min(self.max_last, n))

    def rare(self, network: Network, rng: np.random.Generator) -> FloatArray:
        """Inputs of N(0, I) at which a neuron is on that rarely is, or off, shape (n, d)."""
        hidden = network.activations(rng.standard_normal((self.n_inputs, network.dim_in)))
        chosen = [np.empty(0, dtype=np.intp)]
        for h in hidden[1:]:
            rarer = np.where((h > 0).mean(axis=0) < 0.5, h > 0, h <= 0)
            rare = np.flatnonzero(rarer.sum(axis=0) < self.rarely)
            chosen += [np.flatnonzero(rarer[:, j])[: self.n_rare] for j in rare]
        return hidden[0][np.unique(np.concatenate(chosen))]

    def informative(
        self, network: Network, undetermined: list[BoolArray], rng: np.random.Generator
    ) -> FloatArray:
        """Inputs of N(0, I), or a little further out, at which undetermined weights matter.

        Parameters
        ----------
        undetermined : list of ndarray of bool
            Which of every hidden layer's weights.

        Returns
        -------
        ndarray, shape (n, d)
            A few for each weight; for some there may be none.
        """
        n, last = self.n_inputs, len(undetermined) - 1
        X = rng.standard_normal((n, network.dim_in)) * rng.choice(self.spreads, n)[:, None]
        on = [np.ones(X.shape, dtype=bool), *(h > 0 for h in network.activations(X)[1:])]
        chosen = [np.empty(0, dtype=np.intp)]
        for i, rows in enumerate(undetermined):
            for j, k in np.argwhere(rows):
                below, own = on[i][:, k], on[i + 1][:, j]
                kinds = (own, ~own) if network.skip is not None and i == last else (own,)
                chosen += [np.flatnonzero(below & kind)[: self.n_informative] for kind in kinds]
        rows = rng.permutation(np.unique(np.concatenate(chosen)))[: self.max_informative]
        return np.asarray(X[rows])

    def suspects(
        self,
        network: Network,
        witnesses: Witnesses,
        noise: NoiseFloor,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Inputs at which gradients were measured that are not the network's, shape (n, d)."""
        X, J, unit = witnesses.points, witnesses.gradients, noise.unit[:, None]
        off = network.jacobian(X) - J
        apart, size = (np.linalg.norm(a / unit, axis=(1, 2)) for a in (off, J))
        rows = np.flatnonzero(apart > self.another * np.maximum(size, 1.0))
        return np.asarray(X[rng.permutation(rows)[: self.max_suspects]])
