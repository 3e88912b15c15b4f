"""Upper neurons above a first layer that is known, traced one by one beside what is known.

A trace closes within a thousand queries or two, whether the neuron is strong or faint and whether
signs below are known or not (:mod:`revelu.recover.deep.trace`).  What is known is taken off the
answers: kinks that are left are seeds of others, fainter ones from round to round.

What is rarely on, or rarely off, few segments meet.  Where fresh answers are wrong it is near:
segments go from there to inputs whose answers are right.  What is open of a row is told by a seed
that it meets, and a row at whose surface nothing bends is none.
"""

import logging
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from revelu.errors import CurvedError
from revelu.network import Network
from revelu.numerics.confidence import FALSE_ALARM, SIGMAS
from revelu.numerics.float64 import EPS, TINY
from revelu.numerics.gaussian import Gaussian
from revelu.oracle import NoiseFloor
from revelu.probe.gradient import CheckedGradients
from revelu.probe.kink_lines import KinkLines
from revelu.probe.line import Ask
from revelu.recover.deep.rough_outputs import RoughOutputs
from revelu.recover.deep.seeds import Seed, SeedSearch
from revelu.recover.deep.segments import SegmentScan
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.trace import Below, Trace, TraceTuning, open_directions
from revelu.recover.method import Tell
from revelu.recover.refine.measured_rows import MeasuredRows
from revelu.recover.refine.network_fit import Samples
from revelu.recover.rows import Rows
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class TracedRow:
    """A row above the first layer."""

    law: Gaussian
    """What is known of it."""
    n_weights: int
    """So many of its entries are weights of neurons."""
    least: float
    """Directions are open whose standard error is more."""
    points: FloatArray
    """Shape (n, d).  Of its surface."""
    seed: Seed
    """Where it was seen first."""

    @property
    def row(self) -> FloatArray:
        """Shape (size,)."""
        return self.law.mean

    @cached_property
    def undetermined(self) -> FloatArray:
        """Directions of it that are not known, shape (size, q)."""
        return open_directions(self.law, self.n_weights, self.least)

    @property
    def n_open(self) -> int:
        """How many directions are not known."""
        return int(self.undetermined.shape[1])

    def given(self, A: FloatArray, error: float) -> "TracedRow":
        """The same where ``A row`` is 0 but for errors."""
        return replace(self, law=self.law.given(A, error))


def _seeds() -> SeedSearch:
    scan = SegmentScan(side=3e-3, shortest=1e-3, edge=0.02, pair=0.2, max_rounds=8)
    return SeedSearch(scan, CheckedGradients((0.4, 0.1, 0.03)), single=0.1, precise=0.1)


@dataclass(frozen=True)
class RoughTraces:
    """How upper neurons are traced."""

    seeds: SeedSearch = field(default_factory=_seeds)
    """How they are seen."""
    trace: TraceTuning = field(default_factory=TraceTuning)
    open_: RoughOutputs = field(default_factory=lambda: RoughOutputs(most=0.98))
    outputs: RoughOutputs = field(default_factory=RoughOutputs)
    """How what is open of rows is fitted first, and then the outputs beside it."""
    equations: float = 4.0
    """So many answers tell these for each of a square of unknowns,"""
    n_told: int = 5000
    """but no more than this, and all that were wrong."""
    n_segments: tuple[int, ...] = (12, 16, 24, 32)
    """Segments of one round after the other on which seeds are looked for, until one finds"""
    few: int = 1
    blurred: float = np.inf
    """no more rows than this and answers are off by no more than this share of their variation,"""
    spreads: tuple[float, ...] = (1.0, 1.5, 2.0, 2.0)
    """and the standard deviations of their ends: what is nearly always on turns far out."""
    at_once: int = 24
    """So many are measured, and the strongest of these traced first, before others are."""
    faintest: float = 1e-4
    """Seeds are not traced if an answer's error is more than this share of their bend,"""
    worst: float = 0.02
    """or if their normals err by more."""
    close: float = 1e-4
    """A point is on a known surface if it is this near, relative to its size, and a row meets a
    seed if it has its direction, too, but for the direction's errors;"""
    chance: float = FALSE_ALARM
    """the probability is no larger that a seed of another neuron seems to meet it;"""
    told: float = 1e-3
    """what is open of it is told there if it turns the gradient by more than this share of its own
    size;"""
    same: float = 0.5
    mostly: float = 0.9
    """surfaces are one neuron's if this share of one's points are on the other, or that share of
    all where one tells what is open of the other."""
    n_looks: int = 4000
    """Then ``n_looks`` fresh answers are looked at, at most, in each of"""
    n_rounds: int = 6
    """``n_rounds`` rounds at most, as long as"""
    less: float = 0.8
    """in each no more than this share of those before is wrong;"""
    wrong: float = 30.0
    most_wrong: float = 0.3
    """they are wrong if they are off by ``wrong`` times what most are, and noise, and if a larger
    share is wrong, fits find what is missing for less,"""
    n_wrong: int = 24
    """and seeds are looked for from ``n_wrong`` of these, towards the nearest that are right"""
    around: float = 0.5
    """and to inputs that are about so far away."""
    n_places: int = 16
    """A row is none if at most of ``n_places`` places of its surface, or of all there are (0: it is
    not looked at),"""
    fewest: int = 4
    """and these are not fewer, nothing bends within"""
    near: float = 0.05
    """this distance, or what room there is to other neurons' surfaces;"""
    most_false: float = 0.15
    few_false: int = 3
    """where more than this share are none, and more than ``few_false``, the first layer is not what
    it is taken for,"""
    astray: int = 4
    """nor where ``astray`` more traces went far and failed than closed."""

    def enough(self, size: int) -> int:
        """Answers that tell rows of ``size`` unknowns, half as many of them, about."""
        return int(self.equations * size**2)


@dataclass
class TraceSearch:
    """The search for upper neurons by traces."""

    ask: Ask
    noise: NoiseFloor
    rng: np.random.Generator
    tell: Tell
    """Takes a line about what is done now."""
    below: Below
    """The first layer."""
    samples: Samples
    """Answers that the outputs are fitted to, the first of them; those that were looked at
    follow."""
    how: RoughTraces
    rows: list[TracedRow] = field(default_factory=list)
    """Those that are known,"""
    held: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    """and others that are not looked at any more, shape (r, size)."""
    wrong: Samples | None = field(default=None, init=False)
    """Answers that were wrong beside rows known then; the outputs are fitted to these, too."""
    is_astray: bool = field(default=False, init=False)
    """Whether the first layer is not what it is taken for."""
    n_lost: int = field(default=0, init=False)
    """How many more traces went far and failed than closed."""
    bending: set[TracedRow] = field(default_factory=set, init=False)
    """Rows at whose surfaces the answers bend."""

    def __post_init__(self) -> None:
        self.rows, self.held = list(self.rows), self.held.reshape(-1, self.below.size)

    def find_from(self, rows: Rows) -> None:
        """Trace what rows of lines show, whose normals are measured already."""
        self.scale = self._scale()
        seeds = [
            Seed(x, w / np.linalg.norm(w), column, float(error))
            for x, w, column, error in zip(rows.X, rows.W, rows.A, rows.errors, strict=True)
        ]
        self._trace_from(seeds)

    def confirm(self, rows: Rows) -> None:
        """Trace rows that are known roughly, from points where all of the first layer is on.

        Parameters
        ----------
        rows : Rows
            In what a signed first layer puts out, found at inputs ``X``.
        """
        self.scale, seeds = self._scale(), []
        for w, b, column, error, x in zip(*vars(rows).values(), strict=True):
            gradient = self.below.W.T @ w
            size = float(np.linalg.norm(gradient))
            row = np.append(w, b) / size
            seeds.append(Seed(x, gradient / size, column * size, float(error), row, float(error)))
        self._trace_from(seeds)

    def find(self) -> None:
        """Trace what segments show, then what shows beside that, then where that is wrong."""
        d = self.below.W.shape[1]
        for n, spread in zip(self.how.n_segments, self.how.spreads, strict=True):
            before = len(self.rows)
            starts, ends = spread * self.rng.standard_normal((2, n, d))
            rows, C = self._fit() if self.rows else (self.held, None)
            known = None if C is None else self.below.network(rows, C)
            self._look_along(starts, ends, known, rows)
            self.tell(f"layer 2: {len(self.rows)} neurons")
            log.info("%d neurons after traces, %d before", len(self.rows), before)
            n_new = len(self.rows) - before
            self._drop_false()
            if self.is_astray or not self.rows:
                return
            if n_new <= self.how.few and not self._is_blurred():
                break
        least = np.inf
        for _ in range(self.how.n_rounds):
            n_wrong = self._look_where_wrong()
            if not n_wrong or n_wrong > self.how.less * least:
                break
            least = n_wrong

    @property
    def answers(self) -> tuple[Samples, int]:
        """All that were asked, those last that were wrong beside known rows, and how many."""
        if self.wrong is None:
            return self.samples, 0
        return self.samples.joined(self.wrong), len(self.wrong.X)

    def network(self) -> Network:
        """The rows, what they leave open, and the outputs: as they explain most answers."""
        return self.below.network(*self._fit())

    def measured(self) -> MeasuredRows:
        """What traces tell of the rows, and what is known of the first layer's."""
        first, q = np.column_stack([self.below.W, self.below.b]), self.below.W.shape[1]
        rows = np.array([row.row for row in self.rows])
        sizes = np.linalg.norm(rows[:, :-1], axis=1)[:, None]
        roots = np.array([row.law.spread for row in self.rows]) / sizes[:, None]
        errors = self.below.errors / np.sqrt(q)
        of_first = errors[:, None, None] * np.eye(q + 1)
        return MeasuredRows((first, rows / sizes), (of_first, roots))

    def _fit(self) -> tuple[FloatArray, FloatArray]:
        """Rows, what they leave open as answers tell it, and outputs of these and of what is below.

        Those that are told count as they are.
        """
        n, some = self.how.n_told, self.samples
        some = Samples(some.X[:n], some.Y[:n], some.sigma[:n])
        some = some if self.wrong is None else some.joined(self.wrong)
        X, Y, sigma = some.X, some.Y, some.sigma
        rows = np.array([row.row for row in self.rows])
        open_ = [row.undetermined for row in self.rows]
        H = self.below.features(X)[:, :-1]
        # What is open of a row shows where the network is far off: at first that counts, too.
        told, _ = self.how.open_.fit(H, Y, sigma, rows, open_)
        return self.how.outputs.fit(H, Y, sigma, told, open_)

    def _is_blurred(self) -> bool:
        """Whether rows are missing that most answers depend on."""
        if np.isinf(self.how.blurred):
            return False
        off = np.abs(self.samples.residual(self.network()))
        return bool(np.median(off) > self.how.blurred * self.samples.spread())

    def _look_where_wrong(self) -> int:
        """Trace seeds around inputs at which fresh answers are wrong; say how many were."""
        how, (rows, C) = self.how, self._fit()
        known = self.below.network(rows, C)
        n = min(how.n_looks, how.enough(self.below.size))
        X = self.rng.standard_normal((n, self.below.W.shape[1]))
        fresh = Samples.answered(X, np.asarray(self.ask(X)), self.noise)
        off = np.abs(fresh.residual(known)).max(axis=1)
        is_wrong = off > how.wrong * max(float(np.median(off)), 1.0)
        log.info("%d of %d answers wrong beside %d rows", is_wrong.sum(), len(off), len(self.rows))
        if not 0.0 < is_wrong.mean() <= self.how.most_wrong:
            self.samples = self.samples.joined(fresh)
            return 0
        self.samples = self.samples.joined(fresh.take(~is_wrong))
        # What is rarely on shows in these alone.
        rare = fresh.take(is_wrong)
        self.wrong = rare if self.wrong is None else self.wrong.joined(rare)
        self._look_from(rare.X, fresh.X[~is_wrong], known, rows)
        self._drop_false()
        return int(is_wrong.sum())

    def look_around(self, known: Network, wrong: FloatArray, right: FloatArray) -> None:
        """Trace what a network of held rows lacks, from inputs at which it is wrong."""
        self._look_from(wrong, right, known, self.held)
        self._drop_false()

    def _look_from(
        self, wrong: FloatArray, right: FloatArray, known: Network, rows: FloatArray
    ) -> None:
        """Trace seeds from wrong inputs towards the nearest right ones, if any, and around them."""
        wrong = self.rng.permutation(wrong)[: self.how.n_wrong]
        ends = [wrong + self.how.around * self.rng.standard_normal(wrong.shape)]
        if len(right):
            near = [right[((right - x) ** 2).sum(axis=1).argmin()] for x in wrong]
            ends.insert(0, np.array(near).reshape(wrong.shape))
        self._look_along(np.vstack([wrong] * len(ends)), np.vstack(ends), known, rows)

    def _drop_false(self) -> None:
        """Leave out rows where whose surfaces are, mostly, nothing bends."""
        new = [row for row in self.rows if row not in self.bending]
        self.bending.update(row for row in new if self._bends(row))
        n, self.rows = len(self.rows), [row for row in self.rows if row in self.bending]
        n_false = n - len(self.rows)
        log.info("%d of %d rows bend nothing", n_false, n)
        self.is_astray |= n_false > max(self.how.few_false, self.how.most_false * n)

    def _bends(self, row: TracedRow) -> bool:
        """Whether the answers bend where a row's surface is, as far as it is told and has room."""
        others = self._with_held([other.row for other in self.rows if other is not row])
        X, M = self._surface(row)
        T = np.full(len(X), self.how.near)
        for _ in range(4):
            ends = (X + side * T[:, None] * M for side in (-1.0, 1.0))
            below, above = (self.below.states(end, others) for end in ends)
            is_clear = (below == above).all(axis=1)
            T = np.where(is_clear, T, 0.4 * T)
        # What is faint shows on ranges that are wide enough alone.
        strength = self._strength(row.seed)
        is_clear &= self.how.trace.blur * self.noise.relative < strength * T
        X, M, T = (a[is_clear][: self.how.n_places] for a in (X, M, T))
        if len(X) < self.how.fewest:
            return True
        lines = KinkLines(X, M, np.zeros(len(X)), T)
        seen = lines.read(self.ask(lines.points), self.noise)
        return bool((seen.is_kink & (np.abs(seen.tau) < 0.1 * T)).mean() > self.how.same)

    def _surface(self, known: TracedRow) -> tuple[FloatArray, FloatArray]:
        """Points of a row's surface near inputs asked, and unit normals; no open weight counts."""
        X, row = self.samples.X, known.row
        for turn in range(4):
            G = self.below.gradients(X, row)
            sizes = np.maximum(np.linalg.norm(G, axis=1), EPS)
            steps, M = -(self.below.features(X) @ row) / sizes, G / sizes[:, None]
            if turn == 0:
                nearest = np.argsort(np.abs(steps))[: 8 * self.how.n_places]
                X, M, steps = X[nearest], M[nearest], steps[nearest]
            is_there = np.abs(steps) < self.how.close * self.how.near
            X = X + np.where(is_there, 0.0, np.clip(steps, -1.0, 1.0))[:, None] * M
        open_ = np.linalg.norm(self.below.features(X) @ known.undetermined, axis=1)
        weights = row[: known.n_weights]
        is_there &= open_ * np.sqrt((weights**2).mean()) <= self.how.close * sizes
        return X[is_there], M[is_there]

    def _look_along(
        self, starts: FloatArray, ends: FloatArray, known: Network | None, rows: FloatArray
    ) -> None:
        """Trace seeds that segments show in what a network of rows leaves, the strongest first."""
        stack = Stack(starts.shape[1], [self.below.W], [self.below.b])
        if known is not None:
            stack = Stack(starts.shape[1], known.weights[:2], known.biases[:2])

        def ask(X: FloatArray) -> FloatArray:
            Y = self.ask(X)
            return Y if known is None else np.asarray(Y - known(X))

        breaks = stack.breaks_between(starts, ends)
        try:
            places = self.how.seeds.scan.find(ask, self.noise, starts, ends, breaks, self.rng)
        except CurvedError:
            # What is left bends all along where rows are known that are none.
            log.info("what %d rows leave is curved", len(rows))
            return
        self.scale, n_before = self._scale(), len(self.rows)
        for row in rows:
            places = places.take(~self._are_on(row, places.X))
        log.info("%d kinks beside %d rows", len(places), n_before)
        places = places.take(self.rng.permutation(len(places)))
        while len(places) and not self.is_astray:
            # Of many most are soon known to be of one neuron.
            first, rest = np.split(np.arange(len(places)), [self.how.at_once])
            some, places = places.take(first), places.take(rest)
            seeds = self.how.seeds.measure(ask, self.noise, some, self.rng)
            self._trace_from(seeds)
            for found in self.rows[n_before:]:
                places = places.take(~self._are_on(found.row, places.X))

    def _trace_from(self, seeds: list[Seed]) -> None:
        """Trace what no known row explains, the strongest first, until traces go astray."""
        for seed in sorted(seeds, key=self._strength, reverse=True):
            is_faint = self.how.faintest * self._strength(seed) <= self.noise.relative
            if is_faint or seed.error >= self.how.worst:
                continue
            if any(self._are_on(row.row, seed.x[None]).any() for row in self.rows):
                continue
            if self._closes(seed):
                continue
            traced = self._traced(seed)
            if traced is not None:
                self._take(traced)
            self.is_astray |= self.n_lost > self.how.astray
            if self.is_astray:
                return

    def _closes(self, seed: Seed) -> bool:
        """Whether an open row meets a seed, for one choice of what is open, which it then has.

        At the seed the row's sum is 0, and its gradient has the seed's direction: d equations.
        """
        x, d = seed.x[None], len(seed.x)
        across = np.eye(d) - np.outer(seed.normal, seed.normal)
        slopes = self.below.slopes(np.repeat(x, d, axis=0), np.eye(d))
        A = np.vstack([self.below.features(x), across @ slopes])
        for j, row in enumerate(self.rows):
            if not 0 < row.n_open < d - 1:
                continue
            s = np.linalg.svd(A @ row.undetermined, compute_uv=False)
            rank = int((s > self.how.told * np.linalg.norm(self.below.W)).sum())
            error = self.how.close + SIGMAS * seed.error
            # Equations beyond those that it solves contradict a row of another neuron.
            if not rank or error ** (d - rank) > self.how.chance:
                continue
            gradient = float(np.linalg.norm(self.below.gradients(x, row.row)))
            if not gradient:
                continue
            told = row.given(A, error * gradient)
            gradient = float(np.linalg.norm(self.below.gradients(x, told.row)))
            if np.linalg.norm(A @ told.row) <= error * gradient:
                self.rows[j] = replace(told, points=np.vstack([row.points, seed.x]))
                return True
        return False

    def _strength(self, seed: Seed) -> float:
        return float(np.linalg.norm(seed.column / self.noise.unit))

    def _traced(self, seed: Seed) -> TracedRow | None:
        """The row of a seed; None where it is not found again."""
        # What is open of a row puts its surface where another trace may find it right.
        others = self._with_held([row.row for row in self.rows if not row.n_open])
        trace = Trace(
            self.below,
            others,
            seed,
            self.noise,
            self.scale,
            self.rng,
            self.how.trace,
        )
        trace.run(self.ask)
        self.n_lost += int(trace.is_lost) - int(trace.is_found)
        if not trace.is_found:
            return None
        least, points = self.how.trace.vague * self.scale, np.array(trace.points)
        m = len(self.below.b)
        return TracedRow(trace.law, m, least, points, seed)

    def _with_held(self, rows: list[FloatArray]) -> FloatArray:
        return np.vstack([self.held, *rows])

    def _take(self, new: TracedRow) -> None:
        """Take a row in; of one that is there the one stays of which more is known."""
        for j, row in enumerate(self.rows):
            more, less = (row, new) if row.n_open <= new.n_open else (new, row)
            joined = self._joined(more, less)
            if joined is not None:
                self.rows[j] = joined
                return
        self.rows.append(new)

    def _joined(self, row: TracedRow, other: TracedRow) -> TracedRow | None:
        """A row with what another tells of it; None where that is another neuron's.

        Each leaves open what lies beyond walls that it has not met: there its surface is where the
        other says.
        """
        both = ((row, other.points), (other, row.points))
        is_same = any(self._are_on(one.row, points).mean() > self.how.same for one, points in both)
        if row.n_open:
            sizes = np.linalg.norm(self.below.gradients(other.points, row.row), axis=1)
            F = self.below.features(other.points) / np.maximum(sizes, EPS)[:, None]
            told = row.given(F, self.how.close)
            shares = (self._are_on(told.row, one.points).mean() for one in (row, other))
            if min(shares) > self.how.mostly and self._chance(F, row) < self.how.chance:
                return replace(told, points=np.vstack([row.points, other.points]))
        return row if is_same else None

    def _chance(self, F: FloatArray, row: TracedRow) -> float:
        """The probability that equations hold by chance, whatever is open of a row.

        Those that this does not solve leave a residual of their singular value, about.
        """
        Q = np.linalg.qr(F @ row.undetermined)[0]
        s = np.linalg.svd(F - Q @ (Q.T @ F), compute_uv=False) / np.sqrt(len(F))
        size = np.sqrt(np.mean(row.row[: row.n_weights] ** 2))
        return float(np.exp(np.minimum(np.log(self.how.close / (s * size + TINY)), 0.0).sum()))

    def _are_on(self, row: FloatArray, X: FloatArray) -> BoolArray:
        """Which points are on a row's surface."""
        off, gradients = np.abs(self.below.features(X) @ row), self.below.gradients(X, row)
        near = self.how.close * (1.0 + np.linalg.norm(X, axis=1))
        return np.asarray(off <= near * np.linalg.norm(gradients, axis=1))

    def _scale(self) -> float:
        """How large weights of rows are whose gradients have norm 1; half of m neurons are on."""
        m = len(self.below.b)
        X, rows = self.samples.X[:500], self._with_held([row.row for row in self.rows])
        if len(rows) < self.how.fewest:
            return float(np.sqrt(2.0 / m))
        sizes = [np.median(np.linalg.norm(self.below.gradients(X, row), axis=1)) for row in rows]
        weights = [np.sqrt((row[:m] ** 2).mean()) for row in rows]
        # Where none of the neurons that it reads is on at half of the points, a row tells nothing.
        told = [w / size for w, size in zip(weights, sizes, strict=True) if size > 0.0]
        return float(np.median(told)) if told else float(np.sqrt(2.0 / m))
