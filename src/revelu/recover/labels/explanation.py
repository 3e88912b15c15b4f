"""The network that explains points of borders, where the rows of neurons are known.

The output layer is the null vector of equations at points of borders.  Where there is none a neuron
is missing, and the survey goes on where the points are farthest off.  All weights are fitted at
once to points of borders that the network predicts; where it predicts points that are none, it is
not believed.
"""

import logging
from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network
from revelu.numerics.confidence import SIGMAS
from revelu.recover.labels.borders import Borders, Pool
from revelu.recover.labels.columns import OutputEquations, allowances, distances, fit_columns
from revelu.recover.labels.domain import EVERYWHERE
from revelu.recover.labels.first_layer import refined_rows, share_bent
from revelu.recover.labels.from_labels import FromLabels
from revelu.recover.labels.idle import settled
from revelu.recover.labels.polish import (
    balanced_borders,
    half_widths,
    locate,
    predicted_borders,
    refine,
)
from revelu.recover.labels.precision import Told
from revelu.recover.labels.rows import NeuronRows
from revelu.recover.labels.signs import find_signs
from revelu.recover.labels.survey import Survey
from revelu.recover.method import Candidate, Why
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass
class BorderExplanation:
    """Points of borders, and the neurons of a survey that are to explain them."""

    tuning: FromLabels
    survey: Survey
    told: Told | None
    """To what labels tell, where that is not to the digits of float64."""
    pool: Pool = field(init=False)
    borders: Borders = field(init=False)
    n_farther: int = field(default=0, init=False)
    n_denied: int = field(default=0, init=False)
    """How often borders were predicted that are not there."""
    is_refined: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.pool = self.survey.pool
        nothing = np.empty((0, self.pool.dim))
        self.borders = Borders(nothing, nothing, np.empty(0), np.empty(0))

    def add(self, borders: Borders) -> None:
        """Take in more points of borders."""
        self.borders = self.borders.joined(borders)

    @property
    def _rtol(self) -> float:
        return self.tuning.precision.rtol

    def explain(self) -> Candidate | None:
        """Make a network of the neurons known; None where some are missing."""
        if self.told is not None:
            self._refine_rough_rows(self.told.normals)
        for _ in range(self.tuning.n_completions):
            columns, rest = self._columns(skip=True)
            # Where borders are left open, a null vector may be that of a few neurons alone, and
            # above a layer it may be no output layer.
            explains = rest.max() < 1.0
            found = explains and columns.is_found(self.tuning.spectrum)
            if found and self._drop_idle_rows(columns):
                continue
            if not columns.lonely.any():
                break
            # Too few points are like some of them: more around those.
            lonely = np.flatnonzero(columns.lonely)
            some = self.borders.take(self.pool.rng.permutation(lonely)[: self.tuning.n_wrong])
            self.add(self.pool.borders_near(some, 4, self._rtol))
        if not found:
            self._look_at(rest)
            return None
        if not len(self.survey.rows):
            return self._polished(columns, self.survey.rows.V)
        if self.pool.domain is not EVERYWHERE and not self.is_refined:
            # Rows to more digits, before all weights are fitted to borders that they predict.
            self.survey.rows, self.is_refined = self._sharpened(self.survey.rows), True
            columns, _ = self._columns(skip=True)
        signs = find_signs(self.survey.rows.V, columns, self.tuning.turning)
        if signs.rows is None and not signs.are_refuted:
            return self._polished(columns, self.survey.rows.V)
        if signs.rows is None:
            is_last = self.n_farther == self.tuning.n_farther
            self._look_farther()
            return self._unsigned(columns) if is_last else None
        self.survey.farther, self.n_farther = 1.0, 0
        columns, _ = self._columns(skip=False, V=signs.rows)
        return self._polished(columns, signs.rows)

    def _refine_rough_rows(self, normals: float) -> None:
        """Tell rows to more digits whose bends have told them to few; leave out what is none.

        Few digits have bends that are strangers meet by chance.  At a row that is a neuron's
        borders bend wherever they meet its hyperplane.
        """
        rows, tuning = self.survey.rows, self.tuning
        rough = rows.err > tuning.rough * normals
        if not rough.any():
            return
        some, others = rows.take(rough), rows.take(~rough)
        told = self._sharpened(some, some.joined(others))
        doubtful = told.err > tuning.effort.precise
        if doubtful.any():
            share, n = share_bent(self.pool, told.V[doubtful], tuning.precision, tuning.depth)
            kept = ~doubtful
            kept[doubtful] = (share > tuning.least_bent) | (n < tuning.depth.fewest)
            told = told.take(kept)
        self.survey.rows = rows.take(~rough).joined(told)

    def _sharpened(self, rows: NeuronRows, others: NeuronRows | None = None) -> NeuronRows:
        """Rows to more digits, as :func:`refined_rows` tells them."""
        return refined_rows(self.pool, rows, self.tuning.precision, self.tuning.depth, others)

    def _columns(
        self, *, skip: bool, V: FloatArray | None = None
    ) -> tuple[OutputEquations, FloatArray]:
        """Fit the output layer; return how far points are off, too, over what they may be, (n,)."""
        rows = self.survey.rows.V if V is None else V
        n_skip = rows.shape[1] if self.pool.domain is not EVERYWHERE else min(rows.shape) + 1
        self._add_borders(len(rows) + n_skip)
        k = len(self.pool.classes)
        pairs = self.borders.pairs(self.pool.classes)
        # Above another layer a neuron may be on wherever that can put something out.
        wide = self.pool.domain is not EVERYWHERE
        columns = fit_columns(
            rows, self.borders, pairs, k, self.tuning.spectrum, skip=skip, wide=wide
        )
        rest = distances(rows, columns, self.borders, pairs)
        null, then, scales = columns.smallest, columns.next, columns.n_scales
        log.debug("null %.1g, next %.1g, %d scales, rest %.1g", null, then, scales, np.median(rest))
        most = np.full(len(rest), self.tuning.largest_rest)
        if self.told is not None:
            err = np.minimum(self.survey.rows.err, self.tuning.effort.precise)
            most += SIGMAS * allowances(rows, err, columns, self.borders, pairs, self.told.places)
        return columns, np.nan_to_num(rest / most, nan=np.inf)

    def _drop_idle_rows(self, columns: OutputEquations) -> bool:
        """Take out rows that no output has: two bends may have had something else in common."""
        # Strangers whose spaces seem to meet have columns of the size of what rows are off.
        is_idle = self._are_idle(columns.A, 0.0 if self.told is None else SIGMAS * self.told.rows)
        if is_idle.any():
            self.survey.rows = self.survey.rows.take(~is_idle)
        return bool(is_idle.any())

    def _are_idle(self, A: FloatArray, off: float) -> BoolArray:
        """Which columns are faint, or below what they are off, relative to the largest, (m,)."""
        sizes = np.linalg.norm(A - A.mean(axis=0), axis=0)
        return np.asarray(sizes < max(self.tuning.faintest, off) * sizes.max(initial=0.0))

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
        self.n_farther = (self.n_farther + 1) % (self.tuning.n_farther + 1)
        self.survey.farther = self.tuning.farther**self.n_farther
        n = self.pool.n_first
        X = self.survey.farther * self.pool.domain.draw(self.pool.rng, (n, self.pool.dim))
        self.add(self.pool.borders_from(X, n, self._rtol))

    def _unsigned(self, columns: OutputEquations) -> Candidate:
        """A network with a skip, of which labels do not tell that nothing is missing."""
        network = columns.network(self.survey.rows.V)
        if len(self.pool.classes) == 2:
            network = network.then(np.array([[-1.0, 1.0]]))
        self.survey.farther, self.n_farther = 1.0, 0
        return Candidate(network, Why.UNRESOLVED, obstacles=(_UNSIGNED,))

    def _add_borders(self, unknowns: int) -> None:
        """Have border points enough for the unknowns of a class, in all and of each class."""
        more = self.tuning.surplus
        for _ in range(3):
            n = int(more * (len(self.pool.classes) - 1) * unknowns) + 30 - len(self.borders)
            if n > 0:
                self.add(self.pool.borders(n, self._rtol))
            for c in self.pool.classes:
                own = int(((self.borders.a == c) | (self.borders.b == c)).sum())
                if (n := int(more * unknowns) - own) > 0:
                    self.add(self.pool.borders(n, self._rtol, of=c))
        # An end that lies on a border itself may be told otherwise when asked again.
        self.borders = self.borders.take(self.borders.a != self.borders.b)

    def _look_at(self, rest: FloatArray) -> None:
        """Survey facets where points are farthest off, and anywhere."""
        worst = np.argsort(-rest)[: self.tuning.n_restarts]
        fresh = self.pool.borders(self.tuning.n_fresh, self._rtol)
        self.survey.begin_at(self.borders.take(worst).joined(fresh))
        self.add(fresh)

    def _polished(self, columns: OutputEquations, V: FloatArray) -> Candidate | None:
        """The candidate of these layers whose borders are there; None where some are not.

        What borders leave open of the output layer the labels asked have told.
        """
        labels = np.searchsorted(self.pool.classes, self.pool.labels)
        network = settled(columns, V, self.pool.X, labels).network(V)
        is_strict = (
            network.n_parameters <= self.tuning.polish.most_points
            and self.pool.domain is EVERYWHERE
        )
        refined = self.refined(network, 0.0 if is_strict else self.tuning.most_wrong)
        if refined is None:
            return None
        is_open = network.skip is not None and len(network.weights[0]) > 0
        notes = [_SIGNS_OPEN] if is_open else []
        if n := len(columns.factors):
            notes.append(_FACTORS_OPEN.format(n=n + 1))
        figures = {"neurons": len(refined.weights[0])}
        return Candidate(refined, Why.EXPLAINED, notes=tuple(notes), figures=figures)

    def refined(self, network: Network, most_wrong: float) -> Network | None:
        """Fit all weights to borders that the network predicts; None where some are not there.

        Columns that are known to a few digits predict the far borders wrongly, and those that are
        met make them better.
        """
        polish, classes = self.tuning.polish, self.pool.classes
        for _ in range(polish.n_rounds):
            expected = self._expected(network)
            widths = half_widths(self.pool.ask, expected, polish)
            met = ~np.isnan(widths)
            log.debug("borders met %d of %d", met.sum(), len(met))
            if met.mean() < polish.fewest_met:
                break
            points = locate(self.pool.ask, expected.take(met), widths[met], polish)
            network, n_idle = self._without_idle(refine(network, points, classes, polish))
            if (~met).mean() <= most_wrong and not n_idle:
                break
        if (~met).mean() > most_wrong:
            self.n_denied += 1
            self._learn_from(expected.take(np.flatnonzero(~met)[: self.tuning.n_wrong]))
            return None
        return network.then(np.array([[-1.0, 1.0]])) if len(classes) == 2 else network

    def _expected(self, network: Network) -> Borders:
        """Borders that a network predicts, on fresh segments."""
        polish, classes = self.tuning.polish, self.pool.classes
        lacking = int(polish.each_input * (self.pool.dim + 1)) - len(self.pool.X)
        if lacking > 0:
            self.pool.draw(lacking)
        P, Q, _ = self.pool.segments(int(polish.surplus * network.n_parameters) + 30)
        expected, _ = predicted_borders(network, P, Q, classes)
        if network.n_parameters <= polish.most_points:
            expected = balanced_borders(network, expected, self.pool, polish)
        return expected

    def _learn_from(self, wrong: Borders) -> None:
        """Find the borders that are there on lines on which they were predicted wrongly."""
        size = np.linalg.norm(wrong.X, axis=1)[:, None]
        places = wrong.X + np.array([-1.0, -0.1, 0.0, 0.1, 1.0])[:, None, None] * size * wrong.E
        places = self.pool.domain.nearest(places)
        n_before = len(self.pool.labels)
        self.pool.add(places.reshape(-1, wrong.X.shape[1]))
        labels = self.pool.labels[n_before:].reshape(5, -1)
        step, line = np.nonzero(labels[1:] != labels[:-1])
        ends = places[step, line], places[step + 1, line], labels[step, line]
        found = self.pool.between(*ends, self._rtol)
        self.add(found.joined(self.pool.borders_near(wrong, 2, self._rtol)))


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
