"""One hidden layer from answers of few digits that are asked in a box.

In coordinates in which the box is a cube, and inputs vary as those of N(0, I) do, the search is the
same: lines are chords from near a corner to near another, and fits are asked uniformly.  A neuron
whose hyperplane misses the box is affine in it, and part of the affine rest.
"""

from dataclasses import dataclass, field, replace
from typing import cast

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network
from revelu.numerics.interruption import interruptible
from revelu.oracle import Oracle
from revelu.probe.answered import Answered
from revelu.recover.fit.from_chords import Explaining, FromChords
from revelu.recover.fit.least_squares import FitSearch
from revelu.recover.in_box import OracleInBox
from revelu.recover.method import Candidate, Disagreement, Why
from revelu.recover.refine.network_fit import Samples


@dataclass
class FitInBox(FitSearch):
    """A fit inside a box.

    All coordinates are searched at once: the span of gradients and slices ask outside.
    """

    inside: OracleInBox = field(init=False)
    how: FromChords = field(init=False)
    search: Explaining | None = field(default=None, init=False)
    """What chords have shown."""
    n_mended: int = field(default=0, init=False)
    """Repairs that looked for neurons."""

    def __post_init__(self) -> None:
        self.how = self.method.from_chords.in_cube()
        self.inside = OracleInBox(self.oracle, self.how.cube.bound)
        self.inside.dim_out = len(self.noise.unit)
        self.oracle = cast("Oracle", self.inside)
        if self.oracle.link.saturates:
            self.how = replace(self.how, region=Answered(self._answers, self.how.cube))
        self.method = replace(self.method, from_lines=self.how)

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Add neurons that chords to wrong inputs show; where there are none, fit to more."""
        X, worst = (self.inside.coordinates(x) for x in (seen.X, seen.worst))
        seen = replace(seen, X=self.how.cube.clip(X), worst=worst)
        if self.search is None or self.n_mended == self.how.max_mended:
            return super().repair(seen)
        self.n_mended += 1
        self.tell("looking for neurons on chords to inputs where the network was wrong")
        try:
            with interruptible(self.oracle.check_time):
                found = self.search.mended(seen.X)
        except (LimitReachedError, SaturatedError) as error:
            self.obstacles.append(str(error))
            return self._candidate(Why.of(error))
        if found is None:
            return super().repair(seen)
        self.best, self.samples = found, self.search.samples
        return self._candidate(Why.EXPLAINED)

    def _found_on_lines(self) -> tuple[Network, Samples] | None:
        self.search = self.how.search(
            self._answers, self._ask_at, self._sizes(), self.noise, self.limit, self.rng
        )
        found, samples = self.search.find(), self.search.samples
        return None if found is None or samples is None else (found, samples)

    @property
    def _where(self) -> str:
        return "of the box"

    def _choose_coordinates(self) -> None:
        """All of them."""

    def _refuse_smooth(self) -> None:
        """Segments that would show a smooth function are longer than a box has room for."""

    def _refuse_steps(self) -> None:
        """Jumps are looked for in the target's own inputs, once the search has ended."""

    def _candidate(self, why: Why) -> Candidate:
        said = super()._candidate(why)
        return replace(said, network=said.network and self.inside.network_of_inputs(said.network))
