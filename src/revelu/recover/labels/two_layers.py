"""Two hidden layers from labels alone: the first one, and what lies above it.

Where the rows of the first layer are known with their signs, and there are no more of them than
inputs, every output h > 0 of that layer is one of some input.  There the target is a network of
one hidden layer that reads h, and is searched for as such.  What neurons do where others of the
first layer are off is no more than that at h = 0.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network import Network
from revelu.oracle import Oracle
from revelu.probe.view import AboveLayer
from revelu.recover.labels.borders import Pool
from revelu.recover.labels.domain import LayerOutputs
from revelu.recover.labels.first_layer import Depth, FirstLayer
from revelu.recover.labels.survey import Survey
from revelu.recover.method import Candidate, Disagreement, Layer, Why
from revelu.types import FloatArray


class Above(Protocol):
    """A search for one hidden layer that reads outputs of another one."""

    pool: Pool

    def propose(self) -> Candidate:
        """Search until a network explains all border points, or there is a reason to end."""

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Go on beside inputs whose fresh labels disagree."""


@dataclass
class TwoLayers:
    """A search that has found rows whose hyperplanes end."""

    oracle: Oracle
    survey: Survey
    depth: Depth
    begin: Callable[[Oracle, LayerOutputs], Above]
    """(Oracle, LayerOutputs) -> Above.  Begins a search for what reads the first layer's
    outputs."""
    first: FirstLayer = field(init=False)
    V: FloatArray | None = field(default=None, init=False)
    orthant: LayerOutputs = field(init=False)
    above: Above | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.first = FirstLayer(self.survey, self.depth)

    def are_several(self) -> bool:
        """Whether there are rows whose hyperplanes end; if there are not, all rows stay.

        Only those are held against borders that walks have passed: others show no end.
        """
        rows = self.survey.rows
        self.first.sort(self.survey.passed)
        if len(self.first.above) >= self.depth.fewest_above:
            return True
        self.survey.rows = rows
        return False

    def propose(self) -> Candidate:
        """Find the first layer, then what is above it, as far as the budget allows."""
        try:
            return self._propose()
        except LimitReachedError as error:
            alone = self._first_alone(_SO_FAR)
            said = (*(alone.obstacles if self.first.n_found else ()), str(error))
            return replace(alone, why=Why.LIMIT, obstacles=said)

    def _propose(self) -> Candidate:
        """Search above; a row too few, and nothing fits there."""
        n_before, found = -1, Candidate(None, Why.HYPERPLANES_END, obstacles=(_NO_ROW,))
        for attempt in range(self.depth.n_attempts):
            self._survey(is_open=attempt > 0)
            if self.first.n_found in {0, n_before}:
                return found
            n_before = self.first.n_found
            found = self._first_alone(_UNSIGNED) if self.V is None else self._propose_above()
            if found.network is not None or found.why is Why.LIMIT:
                break
        return found

    def _propose_above(self) -> Candidate:
        """Search for what reads the outputs of the first layer."""
        if self.V is None:  # pragma: no cover - the caller has looked
            raise TypeError
        above = AboveLayer(self.oracle, self.V[:, :-1], self.V[:, -1])
        oracle = Oracle(above, above.dim_in, batch_rows=sys.maxsize)
        self.orthant = LayerOutputs(self.V, self.depth.margin)
        self.above = self.begin(oracle, self.orthant)
        pool = self.survey.pool
        # Classes that inputs have are to be seen here, too.
        self.above.pool.add(self.orthant.outputs(pool.rng, pool.X))
        return self._whole(self.above.propose())

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Go on beside inputs whose fresh labels disagree."""
        if self.above is None:
            return None
        # Beside walls, where such inputs are, and farther off, where borders can be followed.
        rng = self.survey.pool.rng
        some = [self.orthant.outputs(rng, seen.X, share) for share in (0.0, 0.2, 1.0)]
        candidate = self.above.repair(replace(seen, X=np.vstack(some)))
        return None if candidate is None else self._whole(candidate)

    def _survey(self, *, is_open: bool) -> None:
        """Follow borders until no row is missing, or none comes any more.

        ``is_open`` says that a row is missing, whatever normals say.
        """
        depth, idle, n_first = self.depth, 0, self.first.n_found
        while idle < depth.most_idle and not self.first.is_refuted:
            if not is_open or self.first.n_found > n_first:
                self.V = self._signed()
                if self.V is not None:
                    break
            if idle:
                self.survey.farther = depth.reach[idle % len(depth.reach)]
                self._begin_at_more(depth.n_restarts)
            self.survey.advance()
            idle = 0 if self.first.sort() else idle + 1
        self.survey.farther = 1.0
        self.first.refine()
        if self.V is not None:
            self.V = self.first.signed()

    def _signed(self) -> FloatArray | None:
        """The first layer's rows with their signs, where fresh borders show no other."""
        if self.first.signed() is None:
            return None
        self._begin_at_more(self.depth.n_confirmed)
        return self.first.signed()

    def _begin_at_more(self, n: int) -> None:
        self.survey.begin_at(self.survey.pool.borders(n, self.survey.precision.rtol))

    def _whole(self, candidate: Candidate) -> Candidate:
        """The candidate of both layers."""
        above = candidate.network
        if above is None or self.V is None:
            said = "; ".join(candidate.obstacles)
            why = Why.LIMIT if candidate.why is Why.LIMIT else Why.UNRESOLVED
            return replace(self._first_alone(_ABOVE.format(said=said)), why=why)
        ((W, b),) = self._layers()
        above = _without_skip(above)
        network = Network([W, *above.weights], [b, *above.biases])
        return replace(candidate, network=network, layers=self._layers())

    def _layers(self) -> tuple[Layer, ...]:
        V = self.first.rows.V if self.V is None else self.V
        return ((V[:, :-1], V[:, -1]),)

    def _first_alone(self, obstacle: str) -> Candidate:
        """The first layer, and why there is no more."""
        n = self.first.n_found
        layers = self._layers() if n else ()
        return Candidate(None, Why.UNRESOLVED, layers=layers, obstacles=(obstacle.format(n=n),))


def _without_skip(network: Network) -> Network:
    """The same function of h >= 0: a skip is passed on by neurons that are always on."""
    if network.skip is None:
        return network
    (W, A), (b, c), (G, e) = network.weights, network.biases, network.skip
    rows, columns = np.vstack([W, np.eye(W.shape[1])]), np.hstack([A, G])
    return Network([rows, columns], [np.append(b, np.zeros(W.shape[1])), c + e])


_NO_ROW = "hyperplanes end: borders go on straight where others bend, and no row bends all of them"
_UNSIGNED = (
    "{n} rows of the first of several hidden layers are known up to their signs: all borders bend "
    "at their hyperplanes.  Others may be missing, or there are more of them than inputs"
)
_SO_FAR = "{n} rows of the first of several hidden layers are known so far, up to their signs"
_ABOVE = (
    "the first of several hidden layers is known as far as borders show it, what is above it is "
    "not: {said}"
)
