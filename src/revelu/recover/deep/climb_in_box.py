"""Deep networks behind an oracle that answers in a box only.

In coordinates in which inputs drawn from N(0, I) are mostly inside, the climb is the same: rays
end at the faces, random inputs are moved to them, and what would be asked outside is not asked.
"""

from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from revelu.network import Network
from revelu.oracle import Oracle
from revelu.probe.box import Box
from revelu.recover.deep.climb import Climb
from revelu.recover.method import Candidate, Disagreement, Layer, Why
from revelu.types import FloatArray


class OracleInBox:
    """An oracle in coordinates in which its box is ``|u| <= bound``.

    Questions outside are not asked: their answers are NaN.
    """

    def __init__(self, oracle: Oracle, bound: float) -> None:
        lo, hi = oracle.box or (-bound, bound)
        self.oracle, self.bound = oracle, bound
        self.box = Box.cube(lo, hi, oracle.dim_in)
        self.dim_in, self.dim_out = oracle.dim_in, 0
        self.centre, self.scale = (lo + hi) / 2.0, (hi - lo) / (2.0 * bound)

    @property
    def n_queries(self) -> int:
        """What was asked."""
        return self.oracle.n_queries

    def check_time(self) -> None:
        """Raise where the time is spent."""
        self.oracle.check_time()

    def __call__(self, U: FloatArray) -> FloatArray:
        """Ask those inside."""
        inside = np.abs(U).max(axis=1, initial=0.0) <= self.bound
        X = self.box.clip(self.centre + self.scale * U[inside])
        asked = self.oracle(X) if len(X) else np.empty((0, self.dim_out))
        self.dim_out = asked.shape[1]
        Y = np.full((len(U), self.dim_out), np.nan)
        Y[inside] = asked
        return Y

    def coordinates(self, X: FloatArray) -> FloatArray:
        """The coordinates of inputs, shape (n, d)."""
        return np.asarray((X - self.centre) / self.scale)

    def of_inputs(self, layer: Layer) -> Layer:
        """A first layer that reads inputs, of one that reads coordinates."""
        W, b = layer[0] / self.scale, layer[1]
        return W, b - self.centre * W.sum(axis=1)


@dataclass
class ClimbInBox(Climb):
    """A deep network under way, inside a box.

    Attributes
    ----------
    inside : OracleInBox
    """

    inside: OracleInBox = field(init=False)

    def __post_init__(self) -> None:
        bound = self.method.in_box
        self.inside = OracleInBox(self.oracle, bound)
        self.inside.dim_out = len(self.noise.unit)
        self.oracle, self.method = cast("Oracle", self.inside), self.method.within(bound)
        super().__post_init__()

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Look for what is missing at inputs where the network was wrong."""
        return super().repair(replace(seen, X=self.inside.coordinates(seen.X)))

    def _climb(self) -> Candidate:
        d = self.inside.dim_in
        rows = np.empty((0, d + 1))
        find = self.method.first.find_others
        first, seeds = find(self.oracle, self.noise, rows, np.empty(0), self.rng)
        if len(first[1]) < d:
            told = (
                f"{len(first[1])} neurons of a first layer were found for {d} inputs: inside a box "
                "deep networks are recovered whose first layer is no narrower than the input"
            )
            return self._candidate(Why.UNRESOLVED, told)
        return self._climb_from(first, seeds)

    def _candidate(self, why: Why, *obstacles: str) -> Candidate:
        said = super()._candidate(why, *obstacles)
        layers = tuple(said.layers)
        if layers:
            layers = (self.inside.of_inputs(layers[0]), *layers[1:])
        network = None if said.network is None else self._of_inputs(said.network)
        figures = {**said.figures, "layers": list(layers)}
        return replace(said, network=network, layers=layers, figures=figures)

    def _of_inputs(self, network: Network) -> Network:
        """The network in the inputs' own units."""
        W, b = self.inside.of_inputs((network.weights[0], network.biases[0]))
        skip = network.skip
        if skip is not None and network.n_hidden == 1:
            skip = self.inside.of_inputs(skip)
        return Network([W, *network.weights[1:]], [b, *network.biases[1:]], skip)
