"""Deep networks behind an oracle that answers in a box only.

In coordinates in which inputs drawn from N(0, I) are mostly inside, the climb is the same: rays
end at the faces, random inputs are moved to them, and what would be asked outside is not asked.
"""

from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from revelu.oracle import Oracle
from revelu.recover.deep.climb import Climb
from revelu.recover.in_box import OracleInBox
from revelu.recover.method import Candidate, Disagreement, Why


@dataclass
class ClimbInBox(Climb):
    """A deep network under way, inside a box."""

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
        network = said.network and self.inside.network_of_inputs(said.network)
        figures = {**said.figures, "layers": list(layers)}
        return replace(said, network=network, layers=layers, figures=figures)
