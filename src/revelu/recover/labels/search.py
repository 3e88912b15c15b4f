"""Every weight of one hidden layer, from labels alone; of two by way of the first.

1. A pool of inputs, and points on the borders of its classes.
2. A survey follows the borders from bend to bend, and makes neurons of what bends have in
   common.
3. When a generation finds none, the output layer is the null vector of equations at points of
   borders.  Where there is none a neuron is missing, and the survey goes on where the points are
   farthest off.
4. The signs of neurons are those that leave no skip.  Where nothing is missing there are such
   signs, and hardly ever where something is: without them the survey goes on, too.
5. All weights are fitted at once to points of borders that the network predicts.  Where it
   predicts points that are none, it is not believed.
6. Where borders go on straight at hyperplanes that bend others, there is a first layer below:
   ``two_layers`` takes over, and has another search of this kind ask for what is above it.

With two inputs all borders are polygons, and ``two_inputs`` traces them as a whole instead.  With
many inputs, and fewer neurons, ``in_span`` has another search of this kind look in the span of the
first layer, and where that ends without a network all coordinates are searched.
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network import Network
from revelu.oracle import Oracle
from revelu.recover.labels.borders import Borders, Pool
from revelu.recover.labels.columns import OutputEquations, allowances, distances, fit_columns
from revelu.recover.labels.domain import EVERYWHERE, AllInputs, LayerOutputs
from revelu.recover.labels.first_layer import refined_rows, share_bent
from revelu.recover.labels.from_labels import FromLabels
from revelu.recover.labels.idle import settled
from revelu.recover.labels.in_span import Inside, InSpan
from revelu.recover.labels.noise import noise_of_places
from revelu.recover.labels.polish import (
    balanced_borders,
    half_widths,
    locate,
    predicted_borders,
    refine,
)
from revelu.recover.labels.roughness import (
    OwnInputs,
    are_rough,
    curvature,
    objection,
    restlessness,
)
from revelu.recover.labels.rows import NeuronRows
from revelu.recover.labels.signs import find_signs
from revelu.recover.labels.survey import Survey
from revelu.recover.labels.told import Told
from revelu.recover.labels.two_inputs import TwoInputs
from revelu.recover.labels.two_layers import TwoLayers
from revelu.recover.method import Candidate, Disagreement, Search, Why
from revelu.types import BoolArray, FloatArray, IntArray

log = logging.getLogger(__name__)


@dataclass
class LabelSearch(Search):
    """The method at work on one target."""

    method: FromLabels
    domain: AllInputs = EVERYWHERE
    own: OwnInputs | None = None
    pool: Pool = field(init=False)
    survey: Survey = field(init=False)
    borders: Borders = field(init=False)
    n_farther: int = field(default=0, init=False)
    n_denied: int = field(default=0, init=False)
    is_refined: bool = field(default=False, init=False)
    told: Told | None = field(default=None, init=False)
    deeper: TwoLayers | None = field(default=None, init=False)
    flat: TwoInputs | None = field(default=None, init=False)
    in_span: InSpan | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.own is None and self.domain is EVERYWHERE:
            self.own = OwnInputs(*self.oracle.own_inputs)
        self.pool = Pool(self._ask, self.oracle.dim_in, self.rng, domain=self.domain)
        self.survey = self._new_survey()
        nothing = np.empty((0, self.oracle.dim_in))
        self.borders = Borders(nothing, nothing, np.empty(0), np.empty(0))

    def _new_survey(self) -> Survey:
        tuning = self.method
        return Survey(
            self._ask,
            self.oracle.dim_in,
            self.rng,
            tuning.precision,
            tuning.pace,
            tuning.matching,
            tuning.effort,
            self.domain,
        )

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
            found = self.flat.propose(self.borders)
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
            self.pool.add(seen.X)
            n = len(seen.X)
            P, Q, a = self.pool.segments(4 * n, last=n)
            self.borders = self.borders.joined(self.pool.between(P, Q, a, self._rtol))
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
        starts = self.pool.borders(tuning.n_starts, self._rtol)
        self.survey.begin_at(starts)
        objected = None
        if are_rough(starts, self.survey.facets, tuning.roughness):
            objected = self._look_closely(starts)
        objected = objected or self._objection(is_unexplained=False)
        if objected is None and self.oracle.dim_in == 2 and self.domain is EVERYWHERE:
            tuning, self.borders = self.method, starts
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
            starts = self.pool.borders(self.method.n_starts, self._rtol)
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
            candidate = self._explain()
            if candidate is not None:
                return candidate
            if self.n_denied > self.method.max_denied:
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

        self.deeper = TwoLayers(
            self.oracle, self.survey, self.pool, tuning.precision, tuning.depth, begin
        )
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
        refined = self._refined(network, self.method.most_wrong)
        return candidate if refined is None else replace(candidate, network=refined)

    def _ended(self, why: Why, said: str) -> Candidate:
        """What there is to say without a network."""
        return Candidate(None, why, obstacles=(said,), figures={"neurons": len(self.survey.rows)})

    @property
    def _rtol(self) -> float:
        return self.method.precision.rtol

    def _explain(self) -> Candidate | None:
        """Make a network of the neurons known; None where some are missing."""
        if self.told is not None:
            self._refine_rough_rows()
        for _ in range(self.method.n_completions):
            columns, rest = self._columns(skip=True)
            # Where borders are left open, a null vector may be that of a few neurons alone, and
            # above a layer it may be no output layer.
            explains = rest.max() < 1.0
            found = explains and columns.is_found(self.method.spectrum)
            if found and self._drop_idle_rows(columns):
                continue
            if not columns.lonely.any():
                break
            # Too few points are like some of them: more around those.
            lonely = np.flatnonzero(columns.lonely)
            some = self.borders.take(self.rng.permutation(lonely)[: self.method.n_wrong])
            self.borders = self.borders.joined(self.pool.borders_near(some, 4, self._rtol))
        if not found:
            self._look_at(rest)
            return None
        if not len(self.survey.rows):
            return self._polished(columns, self.survey.rows.V)
        if self.domain is not EVERYWHERE and not self.is_refined:
            self.survey.rows, self.is_refined = self._refined_rows(), True
            columns, _ = self._columns(skip=True)
        signs = find_signs(self.survey.rows.V, columns, self.method.turning)
        if signs.rows is None and not signs.are_refuted:
            return self._polished(columns, self.survey.rows.V)
        if signs.rows is None:
            is_last = self.n_farther == self.method.n_farther
            self._look_farther()
            return self._unsigned(columns) if is_last else None
        self.survey.farther, self.n_farther = 1.0, 0
        columns, _ = self._columns(skip=False, V=signs.rows)
        return self._polished(columns, signs.rows)

    def _refine_rough_rows(self) -> None:
        """Tell rows to more digits whose bends have told them to few; leave out what is none.

        Few digits have bends that are strangers meet by chance.  At a row that is a neuron's
        borders bend wherever they meet its hyperplane.
        """
        rows, tuning = self.survey.rows, self.method
        if self.told is None:  # pragma: no cover - the caller has looked
            raise TypeError
        rough = rows.err > tuning.rough * self.told.normals
        if not rough.any():
            return
        some, others = rows.take(rough), rows.take(~rough)
        told = refined_rows(self.pool, some, tuning.precision, tuning.depth, some.joined(others))
        doubtful = told.err > tuning.effort.precise
        if doubtful.any():
            share, n = share_bent(self.pool, told.V[doubtful], tuning.precision, tuning.depth)
            kept = ~doubtful
            kept[doubtful] = (share > tuning.least_bent) | (n < tuning.depth.fewest)
            told = told.take(kept)
        self.survey.rows = rows.take(~rough).joined(told)

    def _refined_rows(self) -> NeuronRows:
        """Rows to more digits, before all weights are fitted to borders that they predict."""
        tuning = self.method
        return refined_rows(self.pool, self.survey.rows, tuning.precision, tuning.depth)

    def _columns(
        self, *, skip: bool, V: FloatArray | None = None
    ) -> tuple[OutputEquations, FloatArray]:
        """Fit the output layer; return how far points are off, too, over what they may be, (n,)."""
        rows = self.survey.rows.V if V is None else V
        n_skip = rows.shape[1] if self.domain is not EVERYWHERE else min(rows.shape) + 1
        self._add_borders(len(rows) + n_skip)
        k = len(self.pool.classes)
        pairs = self._pairs(self.borders)
        # Above another layer a neuron may be on wherever that can put something out.
        wide = self.domain is not EVERYWHERE
        columns = fit_columns(
            rows, self.borders, pairs, k, self.method.spectrum, skip=skip, wide=wide
        )
        rest = distances(rows, columns, self.borders, pairs)
        log.debug(
            "null %.1g, next %.1g, %d scales, %d factors, %d idle, rest %.1g",
            columns.smallest,
            columns.next,
            columns.n_scales,
            1 + len(columns.factors),
            len(columns.idle),
            np.median(rest),
        )
        most = np.full(len(rest), self.method.largest_rest)
        if self.told is not None:
            err = np.minimum(self.survey.rows.err, self.method.effort.precise)
            most += self.method.room_of_rest * allowances(
                rows, err, columns, self.borders, pairs, self.told.places
            )
        return columns, np.nan_to_num(rest / most, nan=np.inf)

    def _drop_idle_rows(self, columns: OutputEquations) -> bool:
        """Take out rows that no output has: two bends may have had something else in common."""
        # Strangers whose spaces seem to meet have columns of the size of what rows are off.
        is_idle = self._are_idle(columns.A, 0.0 if self.told is None else 8.0 * self.told.rows)
        if is_idle.any():
            self.survey.rows = self.survey.rows.take(~is_idle)
        return bool(is_idle.any())

    def _are_idle(self, A: FloatArray, off: float) -> BoolArray:
        """Which columns are faint, or below what they are off, relative to the largest, (m,)."""
        sizes = np.linalg.norm(A - A.mean(axis=0), axis=0)
        return np.asarray(sizes < max(self.method.faintest, off) * sizes.max(initial=0.0))

    def _without_idle(self, network: Network) -> tuple[Network, int]:
        """Take out neurons that no output has when all weights are fitted, and their number."""
        if network.n_hidden != 1:
            return network, 0
        (W, A), (b, c) = network.weights, network.biases
        is_idle = self._are_idle(A, 0.0 if self.told is None else 32.0 * self.told.places)
        if not is_idle.any():
            return network, 0
        self.survey.rows = self.survey.rows.take(~is_idle)
        left = Network([W[~is_idle], A[:, ~is_idle]], [b[~is_idle], c], network.skip)
        return left, int(is_idle.sum())

    def _look_farther(self) -> None:
        """Where no border that was asked shows what is missing, look at more of them, far out."""
        self.n_farther = (self.n_farther + 1) % (self.method.n_farther + 1)
        self.survey.farther = self.method.farther**self.n_farther
        n = self.pool.n_first
        self.pool.draw(n, self.survey.farther)
        P, Q, a = self.pool.segments(n, last=n)
        self.borders = self.borders.joined(self.pool.between(P, Q, a, self._rtol))

    def _unsigned(self, columns: OutputEquations) -> Candidate:
        """A network with a skip, of which labels do not tell that nothing is missing."""
        network = columns.network(self.survey.rows.V)
        if len(self.classes) == 2:
            network = network.then(np.array([[-1.0, 1.0]]))
        self.survey.farther, self.n_farther = 1.0, 0
        return Candidate(network, Why.UNRESOLVED, obstacles=(_UNSIGNED,))

    def _pairs(self, borders: Borders) -> tuple[IntArray, IntArray]:
        """The places of the classes before and behind points."""
        classes = self.pool.classes
        return np.searchsorted(classes, borders.a), np.searchsorted(classes, borders.b)

    def _add_borders(self, unknowns: int) -> None:
        """Have border points enough for the unknowns of a class, in all and of each class."""
        more = self.method.surplus
        for _ in range(3):
            n = int(more * (len(self.pool.classes) - 1) * unknowns) + 30 - len(self.borders)
            if n > 0:
                self.borders = self.borders.joined(self.pool.borders(n, self._rtol))
            for c in self.pool.classes:
                own = int(((self.borders.a == c) | (self.borders.b == c)).sum())
                if (n := int(more * unknowns) - own) > 0:
                    self.borders = self.borders.joined(self.pool.borders(n, self._rtol, of=c))
        # An end that lies on a border itself may be told otherwise when asked again.
        self.borders = self.borders.take(self.borders.a != self.borders.b)

    def _look_at(self, rest: FloatArray) -> None:
        """Survey facets where points are farthest off, and anywhere."""
        worst = np.argsort(-rest)[: self.method.n_restarts]
        fresh = self.pool.borders(self.method.n_fresh, self._rtol)
        self.survey.begin_at(self.borders.take(worst).joined(fresh))
        self.borders = self.borders.joined(fresh)

    def _polished(self, columns: OutputEquations, V: FloatArray) -> Candidate | None:
        """The candidate of these layers whose borders are there; None where some are not.

        What borders leave open of the output layer the labels asked have told.
        """
        labels = np.searchsorted(self.pool.classes, self.pool.labels)
        network = settled(columns, V, self.pool.X, labels).network(V)
        is_strict = (
            network.n_parameters <= self.method.polish.most_points and self.domain is EVERYWHERE
        )
        refined = self._refined(network, 0.0 if is_strict else self.method.most_wrong)
        if refined is None:
            return None
        is_open = network.skip is not None and len(network.weights[0]) > 0
        notes = [_SIGNS_OPEN] if is_open else []
        if n := len(columns.factors):
            notes.append(_FACTORS_OPEN.format(n=n + 1))
        figures = {"neurons": len(refined.weights[0])}
        return Candidate(refined, Why.EXPLAINED, notes=tuple(notes), figures=figures)

    def _refined(self, network: Network, most_wrong: float) -> Network | None:
        """Fit all weights to borders that the network predicts; None where some are not there.

        Columns that are known to a few digits predict the far borders wrongly, and those that are
        met make them better.
        """
        polish, classes = self.method.polish, self.pool.classes
        for _ in range(polish.n_rounds):
            expected = self._expected(network)
            widths = half_widths(self._ask, expected, polish)
            met = ~np.isnan(widths)
            log.debug("borders met %d of %d", met.sum(), len(met))
            if met.mean() < polish.fewest_met:
                break
            points = locate(self._ask, expected.take(met), widths[met], polish)
            network, n_idle = self._without_idle(refine(network, points, classes, polish))
            if (~met).mean() <= most_wrong and not n_idle:
                break
        if (~met).mean() > most_wrong:
            self.n_denied += 1
            self._learn_from(expected.take(np.flatnonzero(~met)[: self.method.n_wrong]))
            return None
        return network.then(np.array([[-1.0, 1.0]])) if len(classes) == 2 else network

    def _expected(self, network: Network) -> Borders:
        """Borders that a network predicts, on fresh segments."""
        polish, classes = self.method.polish, self.pool.classes
        lacking = int(polish.each_input * (self.pool.dim + 1)) - len(self.pool.X)
        if lacking > 0:
            self.pool.draw(lacking)
        P, Q, _ = self.pool.segments(int(polish.surplus * network.n_parameters) + 30)
        expected, _ = predicted_borders(network, P, Q, classes)
        if network.n_parameters <= polish.most_points:
            expected = balanced_borders(network, expected, classes, self.rng, polish, self.domain)
        return expected

    def _learn_from(self, wrong: Borders) -> None:
        """Find the borders that are there on lines on which they were predicted wrongly."""
        size = np.linalg.norm(wrong.X, axis=1)[:, None]
        places = wrong.X + np.array([-1.0, -0.1, 0.0, 0.1, 1.0])[:, None, None] * size * wrong.E
        places = self.domain.nearest(places)
        n_before = len(self.pool.labels)
        self.pool.add(places.reshape(-1, wrong.X.shape[1]))
        labels = self.pool.labels[n_before:].reshape(5, -1)
        step, line = np.nonzero(labels[1:] != labels[:-1])
        ends = places[step, line], places[step + 1, line], labels[step, line]
        found = self.pool.between(*ends, self._rtol)
        self.borders = self.borders.joined(found, self.pool.borders_near(wrong, 2, self._rtol))


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
_UNSIGNED = (
    "the borders are explained, but by no choice of signs without an affine skip: a neuron may be "
    "missing that is on at every border seen, so the skip stays and the network is not called whole"
)
_SIGNS_OPEN = (
    "the signs of neurons are not told: there are more choices than can be searched, so an affine "
    "skip stands for them, and for any neuron that is on at every border seen; the labels are the "
    "same"
)
_FACTORS_OPEN = (
    "the classes fall into {n} sets that share borders with one class alone: each set has a "
    "positive factor of its own, and labels do not tell their ratio"
)
_DENIED = (
    "{n} neurons explain the borders that were seen, and others are predicted that are not there: "
    "what the borders leave open was not found"
)
_MISSING = (
    "{n} neurons bend the borders, and do not explain them: others are missing, or there are none"
)
