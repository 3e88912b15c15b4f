"""One hidden layer behind an oracle that answers in a box only (DG21, Theorem 2, section 3.4.1).

A neuron whose hyperplane misses the box is affine there, and no neuron of the answer.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.probe.box import Box
from revelu.recover.method import Candidate, Disagreement, Search, Why
from revelu.recover.shallow.restricted import RestrictedSearch
from revelu.recover.signs import resolve_signs
from revelu.types import FloatArray


@dataclass
class BoxedSearch(Search):
    """A network that is known in a box, and grows where fresh answers disagree."""

    search: RestrictedSearch = field(init=False)
    max_bases: int = 8
    """Points tried for the base point, around which the target must be affine."""
    max_repairs: int = 12

    def propose(self) -> Candidate:
        """Grow until fresh points of the box, and of its corners, are explained."""
        self.tell("finding neurons inside the box")
        lo, hi = self.oracle.box or (-np.inf, np.inf)
        box = Box.cube(lo, hi, self.oracle.dim_in)
        reason = ""
        for _ in range(self.max_bases):
            base = self.rng.uniform(lo, hi, self.oracle.dim_in)
            try:
                self.search = RestrictedSearch(self.oracle, box, self.noise, self.rng, base)
            except SaturatedError as error:
                reason = f"{error}, as at every one of {self.max_bases} points tried"
                continue
            except LimitReachedError as error:
                return Candidate(None, Why.LIMIT, obstacles=(str(error),))
            try:
                return self._candidate(self.search.explain_all(self._draw))
            except LimitReachedError as error:
                return self._ended(Why.LIMIT, str(error))
        return Candidate(None, Why.SATURATED, obstacles=(reason,))

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Look for what is missing at points where the network was wrong."""
        if self.n_repairs == self.max_repairs or self.search.wrong().any():
            return None
        self.n_repairs += 1
        self.tell("looking for neurons that fire where the network was wrong")
        try:
            self.search.hold_against(seen.X, self.oracle(seen.X))
            return self._candidate(self.search.explain())
        except LimitReachedError as error:
            return self._ended(Why.LIMIT, str(error))

    def _draw(self, n: int) -> tuple[FloatArray, FloatArray]:
        X = self.search.box.draw(self.rng, n)
        return X, self.oracle(X)

    def _candidate(self, explained: bool) -> Candidate:
        search = self.search
        if explained:
            return self._ended(Why.EXPLAINED)
        if search.bends:
            n = search.n_bent + search.n_straight
            bent = (
                f"{search.n_bent} of {n} hyperplanes end or bend inside the box: the target has "
                "more than one hidden layer, or is not piecewise affine"
            )
            return Candidate(None, Why.HYPERPLANES_END, obstacles=(bent,))
        reason = f"{search.wrong().mean():.1%} of the points asked are not explained"
        return self._ended(Why.UNRESOLVED, reason, *filter(None, [search.message]))

    def _ended(self, why: Why, *obstacles: str) -> Candidate:
        network, notes = resolve_signs(self.search.network, self.noise.half_digits)
        if why is Why.EXPLAINED:
            return Candidate(network, why, notes=tuple(notes))
        return Candidate(
            network,
            why,
            layers=((network.weights[0], network.biases[0]),),
            notes=tuple(notes),
            obstacles=obstacles,
            worst_error=float(self.search.apart().max(initial=0.0)),
        )
