"""Every weight of one hidden layer, from labels alone; of two by way of the first.

1. A pool of inputs, and points on the borders of its classes.
2. A survey follows the borders from bend to bend, and makes neurons of what bends have in
   common.
3. When a generation finds none, ``explanation`` makes a network of the neurons known; where there
   is none, or labels contradict it, the survey goes on.
4. Where borders go on straight at hyperplanes that bend others, there is a first layer below:
   ``two_layers`` takes over, and has another search of this kind ask for what is above it.

With two inputs all borders are polygons, and ``two_inputs`` traces them as a whole instead.  With
many inputs, and fewer neurons, ``in_span`` has another search of this kind look in the span of the
first layer, and where that ends without a network all coordinates are searched.
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.errors import LimitReachedError
from revelu.oracle import Oracle
from revelu.recover.labels.borders import Borders, Pool
from revelu.recover.labels.domain import EVERYWHERE, AllInputs, LayerOutputs
from revelu.recover.labels.explanation import BorderExplanation
from revelu.recover.labels.from_labels import FromLabels
from revelu.recover.labels.in_span import Inside, InSpan
from revelu.recover.labels.precision import Told, noise_of_places
from revelu.recover.labels.roughness import (
    OwnInputs,
    are_rough,
    curvature,
    objection,
    restlessness,
)
from revelu.recover.labels.survey import Survey
from revelu.recover.labels.two_inputs import TwoInputs
from revelu.recover.labels.two_layers import TwoLayers
from revelu.recover.method import Candidate, Disagreement, Search, Why
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@dataclass
class LabelSearch(Search):
    """The method at work on one target."""

    method: FromLabels
    domain: AllInputs = EVERYWHERE
    own: OwnInputs | None = None
    pool: Pool = field(init=False)
    survey: Survey = field(init=False)
    explanation: BorderExplanation = field(init=False)
    told: Told | None = field(default=None, init=False)
    deeper: TwoLayers | None = field(default=None, init=False)
    flat: TwoInputs | None = field(default=None, init=False)
    in_span: InSpan | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.own is None and self.domain is EVERYWHERE:
            self.own = OwnInputs(*self.oracle.own_inputs)
        self.pool = Pool(self._ask, self.oracle.dim_in, self.rng, domain=self.domain)
        self.survey = self._new_survey()

    def _new_survey(self) -> Survey:
        tuning = self.method
        return Survey(self.pool, tuning.precision, tuning.pace, tuning.matching, tuning.effort)

    def _ask(self, X: FloatArray) -> FloatArray:
        return self.oracle(X)[:, 0]

    @property
    def noise_of_places(self) -> float:
        """How precisely labels tell borders, relative to an input's size; 0 where float64 does."""
        if self.inside is not None:
            return self.inside.noise_of_places
        return 0.0 if self.told is None else self.told.places

    @property
    def classes(self) -> FloatArray:
        """The labels that the outputs of a candidate stand for, ascending."""
        return self.pool.classes if self.inside is None else self.inside.classes

    @property
    def inside(self) -> Inside | None:
        """The search in the first layer's span, where there is one."""
        return None if self.in_span is None else self.in_span.inside

    def propose(self) -> Candidate:
        """Search until a network explains all border points, or there is a reason to end."""
        try:
            slicing, d = self.method.slicing, self.oracle.dim_in
            may_slice = slicing.many_inputs is not None and self.domain is EVERYWHERE and d > 2
            is_of_many = may_slice and slicing.takes(d)
            found = self._propose_in_span() if is_of_many else None
            if found is not None:
                return found
            found = self._propose_everywhere()
            # Borders of two or three neurons alone may bend too rarely to be followed.
            is_open = found.network is None and found.why is Why.UNRESOLVED
            if is_open and may_slice and not is_of_many and len(self.classes) > 1:
                found = self._propose_in_span() or found
        except LimitReachedError as error:
            return self._ended(Why.LIMIT, str(error))
        return found

    def _propose_in_span(self) -> Candidate | None:
        """Look in the span of the first layer; None where that finds neither network nor reason."""
        tuning = self.method

        def begin(oracle: Oracle) -> LabelSearch:
            method = replace(tuning, slicing=replace(tuning.slicing, many_inputs=None))
            found = LabelSearch(method, oracle, self.noise, self.rng, self.tell)
            if self.own is not None and self.in_span is not None:
                found.own = self.own.inside(self.in_span.subspace.basis)
            return found

        self.in_span = InSpan(self.oracle, self.rng, self.tell, tuning.slicing, begin)
        return self._or_none(self.in_span.propose())

    def _or_none(self, found: Candidate | None) -> Candidate | None:
        """What was found in the span, unless all coordinates are to be searched."""
        is_open = found is None or (found.network is None and found.why is Why.UNRESOLVED)
        if is_open:
            self.in_span = None
        return None if is_open else found

    def _propose_everywhere(self) -> Candidate:
        """Search in all coordinates."""
        ended = self._begin()
        if ended is None and self.flat is not None:
            found = self.flat.propose(self.explanation.borders)
            objected = None if found.network else self._objection(is_unexplained=True)
            return found if objected is None else self._ended(*objected)
        return self._go_on() if ended is None else ended

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Go on from borders beside inputs whose fresh labels disagree."""
        if self.deeper is not None:
            found = self.deeper.repair(seen)
            return None if found is None else self._whole(found)
        self.n_repairs += 1
        if self.n_repairs > self.method.max_repairs:
            return None
        try:
            if self.in_span is not None:
                return self._or_none(self.in_span.repair(seen)) or self._propose_everywhere()
            if self.flat is not None:
                return self.flat.repair(seen)
            atol = self.method.precision.rtol
            self.explanation.add(self.pool.borders_from(seen.X, 4 * len(seen.X), atol))
            return self._go_on()
        except LimitReachedError as error:
            return self._ended(Why.LIMIT, str(error))

    def _begin(self) -> Candidate | None:
        """Look at the first borders; a candidate without a network if they are none of one."""
        self.tell("looking for borders")
        self.pool.fill()
        if len(self.classes) < 2:
            return self._ended(
                Why.UNRESOLVED, _ONE_LABEL.format(n=len(self.pool.X), label=self.classes[0])
            )
        tuning = self.method
        starts = self.pool.borders(tuning.n_starts, self.method.precision.rtol)
        self.survey.begin_at(starts)
        objected = None
        if are_rough(starts, self.survey.facets, tuning.roughness):
            objected = self._look_closely(starts)
        objected = objected or self._objection(is_unexplained=False)
        self.explanation = BorderExplanation(self.method, self.survey, self.told)
        if objected is None and self.oracle.dim_in == 2 and self.domain is EVERYWHERE:
            tuning = self.method
            self.explanation.add(starts)
            self.flat = TwoInputs(
                self._ask, self.pool, self.rng, tuning.precision, tuning.pace, tuning.two_inputs
            )
        return None if objected is None else self._ended(*objected)

    def _look_closely(self, starts: Borders) -> tuple[Why, str] | None:
        """Say why hardly a border is flat; None where labels tell few digits, to which it may be.

        The survey begins afresh then, with the precision that labels have.
        """
        tuning = self.method
        noise = noise_of_places(self._ask, starts, tuning.precision, tuning.rounding, self.rng)
        told = Told.to(noise, tuning.rounding)
        is_told = told.rows < tuning.rounding.largest
        # Where inputs are rounded labels change to and fro, too, but near by alone.
        within = told.places if is_told else 0.0
        objected = restlessness(self._ask, starts, within, tuning.roughness, self.rng)
        if objected is not None:
            return objected
        if not noise:
            return self._curved(starts) or (Why.UNRESOLVED, _SMALL.format(n=len(starts)))
        log.debug("borders are told to %.1g, rows to %.1g", told.places, told.rows)
        if not is_told:
            return Why.UNRESOLVED, _FEW_DIGITS.format(noise=noise)
        self.told, self.method = told, tuning.at(told, self.oracle.dim_in)
        self.survey = self._new_survey()
        self.survey.begin_at(starts)
        objected = self._curved(starts)
        if objected is None and not len(self.survey.facets):
            return Why.UNRESOLVED, _SMALL.format(n=len(starts))
        return objected

    def _curved(self, starts: Borders) -> tuple[Why, str] | None:
        """Say that borders are seen to curve at some of their points; None if they need not."""
        tuning, facets = self.method, self.survey.facets
        return curvature(self._ask, starts, facets, tuning.precision, tuning.roughness, self.rng)

    def _objection(self, *, is_unexplained: bool) -> tuple[Why, str] | None:
        """Say that borders are a tree's; None if they may be a network's."""
        if self.own is None:
            return None
        tuning = self.method.roughness
        return objection(self.survey.facets, self.own, tuning, is_unexplained=is_unexplained)

    def _objection_after(self, n: int) -> tuple[Why, str] | None:
        """Say why borders are none of a network after generation n; None if they may be."""
        tuning = self.method.roughness
        is_unexplained = n >= tuning.n_generations or self.survey.hyperplanes_end
        found = self._objection(is_unexplained=is_unexplained)
        told = self.survey.rows.err <= self.method.effort.precise
        is_due = n == tuning.n_rowless and not told.any() and self.domain is EVERYWHERE
        if found is None and is_due:
            starts = self.pool.borders(self.method.n_starts, self.method.precision.rtol)
            found = self._curved(starts)
        return found

    def _go_on(self) -> Candidate:
        """Follow borders, and explain them as soon as no neuron is new."""
        n_idle = 0
        for n in range(self.method.max_generations):
            self.tell(f"{len(self.survey.rows)} neurons")
            is_new = self.survey.advance()
            n_idle = 0 if is_new else n_idle + 1
            if n_idle > self.method.patience:
                break
            objected = self._objection_after(n)
            if objected is not None:
                return self._ended(*objected)
            if self.survey.hyperplanes_end:
                deeper = self._go_deeper()
                if deeper is not None:
                    return deeper
            if is_new or self.survey.is_busy:
                continue
            candidate = self.explanation.explain()
            if candidate is not None:
                return candidate
            if self.explanation.n_denied > self.method.max_denied:
                return self._ended(Why.UNRESOLVED, _DENIED.format(n=len(self.survey.rows)))
        return self._ended(Why.UNRESOLVED, _MISSING.format(n=len(self.survey.rows)))

    def _go_deeper(self) -> Candidate | None:
        """Look for a first layer, and for what is above it; None where there is one layer."""
        n, of = self.survey.n_silent, self.survey.n_silent + self.survey.n_met
        if self.domain is not EVERYWHERE:
            return self._ended(Why.HYPERPLANES_END, _THIRD) if 2 * n > of else None
        tuning = self.method

        def begin(oracle: Oracle, domain: LayerOutputs) -> LabelSearch:
            above = replace(tuning, surplus=tuning.surplus_above, n_fresh=tuning.n_fresh_above)
            return LabelSearch(above, oracle, self.noise, self.rng, self.tell, domain=domain)

        self.deeper = TwoLayers(self.oracle, self.survey, tuning.depth, begin)
        if not self.deeper.are_several():
            self.deeper = None
            self.survey.forget_passed()
            return None
        candidate = self._whole(self.deeper.propose())
        said = _END.format(n=n, of=of)
        return replace(candidate, obstacles=(said, *candidate.obstacles))

    def _whole(self, candidate: Candidate) -> Candidate:
        """A candidate of two layers, all of whose weights are fitted at once where they can be."""
        network = candidate.network
        if network is None or network.skip is not None:
            return candidate
        if network.dim_out == 1:
            network = network.then(np.array([[0.0], [1.0]]))
        # Where a border is another one, fresh labels tell what is wrong above.
        refined = self.explanation.refined(network, self.method.most_wrong)
        return candidate if refined is None else replace(candidate, network=refined)

    def _ended(self, why: Why, said: str) -> Candidate:
        """What there is to say without a network."""
        return Candidate(None, why, obstacles=(said,), figures={"neurons": len(self.survey.rows)})


_ONE_LABEL = (
    "all {n:,} inputs got the label {label:g}: no border was found, and nothing is known; a domain "
    "(--like DATA) says where labels differ"
)
_FEW_DIGITS = (
    "borders are told to {noise:.0e} of an input only: labels of a target that rounds its inputs "
    "to so few digits do not tell its weights yet"
)
_SMALL = (
    "of {n} places on borders hardly one is flat as far as labels tell, nor are they seen to "
    "curve: pieces of borders may be too small for that"
)
_END = (
    "of {of} places where borders meet hyperplanes that bend them elsewhere, they go on without a "
    "bend at {n}: there is more than one hidden layer, or none"
)
_THIRD = (
    "hyperplanes of neurons that read the first layer end: there are more than two hidden layers"
)
_DENIED = (
    "{n} neurons explain the borders that were seen, and others are predicted that are not there: "
    "what the borders leave open was not found"
)
_MISSING = (
    "{n} neurons bend the borders, and do not explain them: others are missing, or there are none"
)
