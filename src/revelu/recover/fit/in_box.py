"""One hidden layer from answers of few digits that are asked in a box.

In coordinates in which the box is a cube, and inputs vary as those of N(0, I) do, the search is the
same: lines are chords from near a corner to near another, and fits are asked uniformly.  A neuron
whose hyperplane misses the box is affine in it, and part of the affine rest.
"""

from dataclasses import dataclass, field, replace
from typing import cast

from revelu.oracle import Oracle
from revelu.recover.fit.least_squares import FitSearch
from revelu.recover.in_box import OracleInBox
from revelu.recover.method import Candidate, Disagreement, Why


@dataclass
class FitInBox(FitSearch):
    """A fit inside a box.

    All coordinates are searched at once: the span of gradients and slices ask outside.

    Attributes
    ----------
    inside : OracleInBox
    """

    inside: OracleInBox = field(init=False)

    def __post_init__(self) -> None:
        how = self.method.from_chords
        self.inside = OracleInBox(self.oracle, how.cube.bound)
        self.inside.dim_out = len(self.noise.unit)
        self.oracle = cast("Oracle", self.inside)
        self.method = replace(self.method, from_lines=how.in_cube())

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Look for neurons on chords to inputs where the network was wrong, and fit again."""
        X, worst = (self.inside.coordinates(x) for x in (seen.X, seen.worst))
        return super().repair(replace(seen, X=X, worst=worst))

    @property
    def _where(self) -> str:
        return "of the box"

    def _choose_coordinates(self) -> None:
        """All of them."""

    def _refuse_smooth(self) -> None:
        """Segments that would show a smooth function are longer than a box has room for."""

    def _candidate(self, why: Why) -> Candidate:
        said = super()._candidate(why)
        return replace(said, network=said.network and self.inside.network_of_inputs(said.network))
