"""A survey of borders: facets, bends, and the neurons that they tell, in rounds that all share.

Every generation begins walks on the facets known so far.  A walk ends at a bend: of a known
neuron, which is crossed; of one that another bend has shown, which a few slopes tell; or of a
new one, behind which a whole facet is measured.  Two bends make a neuron.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from revelu.recover.labels.bends import (
    Bends,
    Ends,
    cross_known,
    cross_seen,
    measure_behind,
    step_behind,
)
from revelu.recover.labels.borders import Borders, Pool
from revelu.recover.labels.facets import Facets, measure_facets
from revelu.recover.labels.precision import Precision, Told
from revelu.recover.labels.rows import Matching, NeuronRows, distinct, find_rows, holds_row
from revelu.recover.labels.walks import WalkPace, meeting, n_passed, step_lengths, walk
from revelu.types import FloatArray


@dataclass(frozen=True)
class Effort:
    """How much a generation does."""

    n_walks: int = 32
    """Walks that a generation follows."""
    n_measured: int = 12
    n_heights: int = 200
    """Bends of neurons not seen before behind which it measures, and heights that may take, of
    which each bend has one less than inputs; the larger number counts.  The others wait."""
    first_step: float = 1e-3
    """How far beside points of the first borders to look."""
    reach: tuple[float, ...] = (1.0, 2.5, 10.0)
    """Walks head for inputs of N(0, s²), s one of these."""
    n_returns: int = 8
    """Walks along bends whose neuron has no second bend yet, which it has behind others."""
    beside: float = 0.1
    """How far from such a bend they run, of the way that led there."""
    most_silent: int = 12
    """Walks that pass hyperplanes of known neurons by mistake, at most, before rows are held
    against borders elsewhere,"""
    most_slight: float = 0.05
    """and share of hyperplanes met that they pass so: bends by less than ``WalkPace.slightest`` are
    not seen, and come by chance."""
    least_told: float = np.inf
    """Rows that are known less precisely may be of no neuron, and count not."""
    precise: float = 1e-5
    """Bends of known neurons are measured, too, until these are known so precisely."""

    def at(self, told: Told) -> "Effort":
        """Return what serves where labels tell few digits."""
        precise = max(self.precise, 4.0 * told.rows)
        return replace(
            self,
            first_step=max(self.first_step, told.step / 2.0),
            precise=precise,
            least_told=precise,
        )


@dataclass
class Survey:
    """What is known of facets, bends and neurons."""

    pool: Pool
    """Inputs, and how they are asked."""
    precision: Precision
    pace: WalkPace
    matching: Matching
    effort: Effort
    rows: NeuronRows = field(init=False)
    """Neurons found."""
    facets: Facets = field(init=False)
    unmatched: Bends = field(init=False)
    """Bends of others."""
    waiting: Ends | None = field(default=None, init=False)
    """Bends behind which nothing was measured yet."""
    farther: float = field(default=1.0, init=False)
    """Walks head for inputs ``farther`` times as far out."""
    n_met: int = field(default=0, init=False)
    n_silent: int = field(default=0, init=False)
    """How often walks ended at the hyperplane of a known neuron, and how often they passed one."""
    passed: FloatArray = field(init=False)
    """Shape (k, d + 1).  Rows whose hyperplanes they passed."""

    def __post_init__(self) -> None:
        self.rows, self.facets = NeuronRows.none(self.pool.dim), Facets.none(self.pool.dim)
        self.unmatched = Bends(self.facets, self.facets, self.facets.X)
        self.n_walked, self.headings = np.empty(0), self.facets.X
        self.forget_passed()

    @property
    def hyperplanes_end(self) -> bool:
        """Whether there are places where known neurons would bend borders that do not bend.

        With two inputs three bends may lie on a line by chance, which then is no neuron's.
        """
        slight = self.effort.most_slight * (self.n_silent + self.n_met)
        return self.pool.dim > 2 and self.n_silent > max(self.effort.most_silent, slight)

    @property
    def n_measured(self) -> int:
        """Bends behind which a generation measures."""
        return max(self.effort.n_measured, self.effort.n_heights // (self.pool.dim - 1))

    @property
    def is_busy(self) -> bool:
        """Whether bends wait that may show more neurons."""
        return self.waiting is not None and len(self.waiting) > self.n_measured

    def forget_passed(self) -> None:
        """Count anew where walks pass hyperplanes."""
        self.n_silent, self.passed = 0, np.empty((0, self.pool.dim + 1))

    def begin_at(self, borders: Borders) -> None:
        """Measure facets at points of borders."""
        h = np.full(len(borders), self.effort.first_step)
        facets, _ = measure_facets(
            self.pool.ask,
            borders.X,
            borders.E,
            borders.a,
            borders.b,
            h,
            self.precision,
            self.pool.rng,
        )
        self._keep(facets)

    def advance(self) -> int:
        """Run a generation; return how many neurons it has found."""
        ends = self._walk()
        ends = self._cross_known(ends)
        # A facet takes a slope for each input but one, a bend seen before a few and a doubt less.
        if self.pool.dim - 1 > self.pace.n_slopes + 1:
            ends = self._cross_seen(ends)
        self._measure(ends)
        return self._match()

    def _keep(self, facets: Facets, headings: FloatArray | None = None) -> None:
        """Take facets in; where a heading is given, the next walk there takes it."""
        self.facets = self.facets.joined(facets)
        self.n_walked = np.append(self.n_walked, np.zeros(len(facets)))
        nowhere = np.full(facets.X.shape, np.nan)
        self.headings = np.vstack([self.headings, nowhere if headings is None else headings])

    def _walk(self) -> Ends:
        """Follow facets, and find borders behind their ends."""
        bound = np.flatnonzero(np.isfinite(self.headings).all(axis=1))
        n_waiting = 0 if self.waiting is None else len(self.waiting)
        facets, U, then = self._returns()
        n = max(self.effort.n_walks - n_waiting - len(facets) - len(bound), 1)
        # Those that were followed least.
        order = np.lexsort((self.pool.rng.random(len(self.facets)), self.n_walked))
        chosen = np.resize(order, n)
        np.add.at(self.n_walked, chosen, 1)
        scale = self.farther * self.pool.rng.choice(self.effort.reach, size=(n, 1))
        inputs = (
            scale * self.pool.domain.draw(self.pool.rng, (n, self.pool.dim)) - self.facets.X[chosen]
        )
        onward = self.headings[bound].copy()
        self.headings[bound] = np.nan
        facets = facets.joined(self.facets.take(bound)).joined(self.facets.take(chosen))
        U = inside(facets, np.vstack([U, onward, inputs]))
        then = np.vstack([then, onward, inputs])
        walks = walk(self.pool.ask, facets, U, then, self.precision, self.pace)
        reach = self.pool.domain.reach(walks.facets.X, walks.U)
        walks = replace(walks, good=np.minimum(walks.good, reach))
        told = self.rows.V[self.rows.err <= self.effort.least_told]
        passed = n_passed(walks, told, self.pace)
        self.n_silent += int(passed.sum())
        self.passed = np.vstack([self.passed, told[passed > 0]])
        # Where a facet ends at a wall of the domain, nothing is to be seen.
        s = step_lengths(walks.facets.X, self.pace)
        walks = walks.take(np.isfinite(walks.bad) & (walks.bad + s < reach))
        ends = step_behind(self.pool.ask, walks, self.precision, self.pace)
        return ends if self.waiting is None else self.waiting.joined(ends)

    def _returns(self) -> tuple[Facets, FloatArray, FloatArray]:
        """Walks beside bends of unmatched neurons: facets, directions, and where to go then.

        Both planes at a bend vanish along directions in which its neuron's does, too.  Behind the
        next bend of another neuron, that way ahead leads to this one's next.
        """
        n = min(self.effort.n_returns, len(self.unmatched))
        some = self.unmatched.take(self.pool.rng.permutation(len(self.unmatched))[:n])
        ahead = some.X - some.before.X
        facets = some.before.moved_to(some.X - self.effort.beside * ahead)
        U = self.pool.rng.standard_normal(ahead.shape)
        for _ in range(2):
            U = inside(some.behind, inside(some.before, U))
        return facets, U, ahead

    def _cross_known(self, ends: Ends) -> Ends:
        """Cross the hyperplanes of known neurons; return the other ends."""
        if not len(self.rows) or not len(ends):
            return ends
        which = meeting(ends.walks, self.rows.V, ends.s)
        # What may be new is measured first; then known neurons that are told to few digits.
        rough = np.flatnonzero((which >= 0) & (self.rows.err[which] > self.effort.precise))
        rough = rough[: max(self.n_measured - int((which < 0).sum()), 0)]
        is_rough = np.isin(np.arange(len(ends)), rough)
        some = np.flatnonzero((which >= 0) & ~is_rough)
        self.n_met += len(some)
        chosen, which = ends.take(some), which[some]
        V, err = self.rows.V[which], self.rows.err[which]
        facets, good = cross_known(
            self.pool.ask, chosen, V, err, self.precision, self.pace, self.pool.rng
        )
        self._keep(facets.take(good), chosen.walks.then[good])
        # Where another bend is as near as that, the end is given up: walks cost less.
        left = np.ones(len(ends), bool)
        left[some] = False
        # What may be new comes first.
        return ends.take(left & ~is_rough).joined(ends.take(left & is_rough))

    def _cross_seen(self, ends: Ends) -> Ends:
        """Cross the hyperplanes of neurons that one bend has shown; return the other ends."""
        bends, done = cross_seen(
            self.pool.ask, ends, self.unmatched, self.precision, self.pace, self.pool.rng
        )
        self._keep(bends.behind, ends.walks.then[done])
        self.unmatched = self.unmatched.joined(bends)
        left = np.ones(len(ends), bool)
        left[done] = False
        return ends.take(left)

    def _measure(self, ends: Ends) -> None:
        """Measure behind the first of the ends; the others wait."""
        first = np.arange(len(ends)) < self.n_measured
        self.waiting = ends.take(~first)
        ends = ends.take(first)
        bends, rows = measure_behind(self.pool.ask, ends, self.precision, self.pace, self.pool.rng)
        self._keep(bends.behind, ends.walks.then[rows])
        self.unmatched = self.unmatched.joined(bends)

    def _match(self) -> int:
        """Find neurons that bends have in common; return how many are new."""
        self._drop_known()
        found = find_rows(self.unmatched, self.matching)
        self.rows = self.rows.joined(found)
        self._drop_known()
        self.unmatched = distinct(self.unmatched, self.matching)
        return len(found)

    def _drop_known(self) -> None:
        known = holds_row(self.unmatched, self.rows.V, self.matching).any(axis=1)
        self.rows = self.rows.refined(self.unmatched.take(np.flatnonzero(known)))
        self.unmatched = self.unmatched.take(np.flatnonzero(~known))


def inside(facets: Facets, U: FloatArray) -> FloatArray:
    """Unit vectors (n, d) inside the planes of facets, the nearest to ``U``."""
    for _ in range(2):  # what rounding leaves is taken out
        U = U - (U * facets.N).sum(axis=1)[:, None] * facets.N
        U = U / np.linalg.norm(U, axis=1)[:, None]
    return U
