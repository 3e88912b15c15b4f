"""The layers found so far, from the input up, and the next one found by walks.

Seeds that no known neuron explains are walked from, a few at a time; the rows that stand their
tests are the layer's, and tell the signs of the layer below.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from revelu.network import Network
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.float64 import HALF_DIGITS
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.deep.first_rows import FirstRows
from revelu.recover.deep.frame import KnownLayers
from revelu.recover.deep.layer_rows import LayerRows
from revelu.recover.deep.open_weights import OpenWeights
from revelu.recover.deep.output_layer import OutputFit, without_skip
from revelu.recover.deep.seeds import Seed, SeedSearch
from revelu.recover.deep.segments import CriticalPoints
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.walk import Walk, WalkTuning
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass
class Level:
    """The rows found above some layers."""

    frame: KnownLayers
    """What is known below."""
    unknown_below: BoolArray
    """Shape (m, dim).  Weights of the rows on top of the frame that are not known."""
    missing: FloatArray | None = None
    """Shape (r, dim).  What spans the weights of neurons that are missing there, where all signs
    are known."""
    walks: list[Walk] = field(default_factory=list)
    """One a neuron."""
    is_signed: bool = True
    is_sure: bool = True
    """Whether the walks tell all signs below; and whether all of them agree."""
    is_exhausted: bool = False
    """Whether they have been looked for twice."""

    @property
    def rows(self) -> LayerRows:
        """The rows of all walks in the frame."""
        return LayerRows.of(self.frame, self.walks)

    @property
    def n_open(self) -> int:
        """How many directions all rows together leave open."""
        return sum(walk.estimate.n_undetermined for walk in self.walks)

    @property
    def columns(self) -> FloatArray:
        """What the outputs make of the rows of ``above`` around each seed, shape (n, k)."""
        columns = np.array([walk.seed.column for walk in self.walks])
        return np.asarray(columns * np.linalg.norm(self.rows.l, axis=1)[:, None])

    @property
    def open_weights(self) -> OpenWeights:
        """What is not known of the rows of ``above``."""
        return OpenWeights.of([walk.estimate for walk in self.walks], self.frame.size - 1)

    @property
    def above(self) -> KnownLayers:
        """The frame of the next layer: these rows on top, their signs not known."""
        rows = self.rows
        sizes = np.linalg.norm(rows.l, axis=1)
        sizes = np.where(sizes > 0, sizes, 1.0)
        return KnownLayers(self.frame.stack, rows.l / sizes[:, None], rows.c / sizes)


@dataclass(frozen=True)
class LayerSearch:
    """What tunes the search for the neurons of a layer, for its signs, and for the outputs."""

    segments: tuple[int, ...] = (0, 4, 6, 8, 12, 16, 24, 32)
    """Segments of one round after the other, on which seeds are looked for; 0 for those known."""
    more_segments: tuple[int, ...] = (0, 24)
    """Of rounds that look again, where nothing above a layer can be found."""
    spread: float = 1.5
    """Standard deviation of their ends."""
    bound: float = np.inf
    """The largest coordinate of an input that may be asked."""
    patience: int = 3
    """Rounds in vain that end the search of a layer of which no neuron is known, or not all of
    some row: another walk along it tells the rest."""
    few: float = 0.05
    """A round is in vain if it finds no more than this share of a layer's neurons: those that few
    segments meet are found for less where a network without them is wrong."""
    at_once: int = 4
    """Seeds that are walked from side by side, at most: some are of one neuron."""
    in_vain: int = 200
    """Walks in a row without a new neuron, after which seeds that are left wait for the next layer:
    deep networks have thousands of critical points of deeper neurons.  An eighth of that where no
    known neuron changes on the piece around a seed, which tells nothing then."""
    close: float = 1e-6
    """A critical point is a known neuron's if it is this near its surface, relative to its size."""
    same: float = HALF_DIGITS
    """Rows are those of one neuron if the cosine of what both know is off 1 by less."""
    faint: float = 1e-6
    """A weight is none if it is smaller, relative to the largest of its row."""
    max_always_on: int = 2
    """Neurons of one layer that are always on, at most, where signs are not known otherwise."""
    agree: float = 0.7
    """The share of rows whose linear parts must fit before signs are taken for sure."""
    narrow: float = 0.15
    """With ``narrow`` inputs for each row below, at least, walks use its signs as soon as they are
    sure: a gradient then tells that many entries.  With fewer it tells them poorly."""
    seeds: SeedSearch = field(default_factory=SeedSearch)
    walk: WalkTuning = field(default_factory=WalkTuning)
    mending_walk: WalkTuning = field(default_factory=lambda: WalkTuning(most_open=1.0))
    """Of walks from where a network is wrong: whether a neuron mends it tells if it is one."""
    outputs: OutputFit = field(default_factory=OutputFit)


@dataclass
class Layers:
    """The layers found so far."""

    oracle: Oracle
    noise: NoiseFloor
    rng: np.random.Generator
    search: LayerSearch
    tell: Callable[[str], None]
    """Takes a line about what is done now."""
    basis: FloatArray = field(init=False)
    """Shape (r, d).  Orthonormal rows: what is not in their span the first layer does not see."""
    levels: list[Level] = field(default_factory=list, init=False)
    """The second hidden layer first."""
    places: CriticalPoints = field(init=False)
    """Of neurons that are not known, beside which no gradients were measured yet."""
    seeds: list[Seed] = field(default_factory=list, init=False)
    """Those beside which they were."""
    lacks_inputs: bool = field(default=False, init=False)
    """Whether a neuron of the first layer was found late, which may see more than the basis."""
    is_passed_on: bool = field(default=False, init=False)
    """Whether most answers are one layer of neurons on the first one's hyperplanes: above are
    neurons that are always on, and with them all of what is below counts."""
    has_dropped: bool = field(default=False, init=False)
    """Whether rows of the first layer were dropped, for none above was seen to read them: those
    that only neurons which are always on read are as right as others."""

    def __post_init__(self) -> None:
        self.narrow_to(np.eye(self.oracle.dim_in))
        self.sigma = self.noise.relative

    def narrow_to(self, basis: FloatArray) -> None:
        """Go on in the coordinates of this basis, and without what was found in others."""
        self.basis, self.seeds, self.places = basis, [], CriticalPoints.none(len(basis))

    @property
    def n_unexplained(self) -> int:
        """Critical points that no known neuron makes."""
        return len(self.seeds) + len(self.places)

    def ask(self, X: FloatArray) -> FloatArray:
        """Ask in the coordinates of the first layer's row space."""
        return self.oracle(X @ self.basis)

    def inner(self, network: Network) -> Network:
        """The network that reads these coordinates, which has fewer unknown weights."""
        return network.after(self.basis.T)

    def outer(self, inner: Network) -> Network:
        """The network that reads inputs, of one that reads these coordinates."""
        return inner.after(self.basis)

    def find_more(self, missing: FloatArray | None = None) -> bool:
        """Look again for neurons of the highest level, above which none was found; say if any.

        Or for those alone whose weights lie in the span of ``missing (r, dim)``.
        """
        if not self.levels or self.levels[-1].is_exhausted:
            return False
        top = self.levels.pop()
        n = len(top.walks)
        top.is_exhausted = missing is None
        if missing is not None:
            self._find_along(top, missing)
        else:
            self.find_rows(top, self.search.more_segments)
        self.levels.append(top)
        return len(top.walks) > n

    def _find_along(self, level: Level, directions: FloatArray) -> None:
        """Find neurons with weights in a span, between where those sum to least and to most."""
        stack, how, rng = level.frame.stack, self.search.outputs, self.rng
        for n in self.search.segments[1:3]:
            X = np.clip(stack.draw(how.n_inputs, how.spreads, rng), -how.bound, how.bound)
            sums = stack.outputs(X) @ (rng.standard_normal((n, len(directions))) @ directions).T
            order = sums.argsort(axis=0)
            low, high = (rng.permuted(part, axis=0)[0] for part in (order[:n], order[-n:]))
            n_before, seeds, places = len(level.walks), self.seeds, self.places
            self.narrow_to(self.basis)
            self.look(level, X[low], X[high])
            found = self.measured(len(self.places))
            self.seeds = self.search.seeds.in_span(found, stack, directions)
            log.info("%d of %d seeds are of missing neurons", len(self.seeds), len(found))
            self.walk_from(level, set())
            self.seeds, self.places = seeds + found, places
            if len(level.walks) > n_before:
                return

    def find_below(self, level: Level) -> None:
        """Find neurons below, for want of which a level's rows have left linear parts."""
        n_missing = np.inf
        while not level.is_sure and (level.missing is None or len(level.missing) < n_missing):
            if not self.find_more(level.missing):
                return
            n_missing = 0 if level.missing is None else len(level.missing)
            lower = self.levels[-1]
            level.frame, level.unknown_below = lower.above, lower.rows.undetermined
            self.rebase(level.walks, level.frame)
            self.find_rows(level, self.search.segments[:2])
            if not level.walks:
                # All that were found turn at no row that is known now: they are of the layer below.
                return
            self.sign(level, surely=False)

    def find_rows(self, level: Level, segments: tuple[int, ...] | None = None) -> None:
        """Find the neurons whose surfaces turn at the frame's walls and nowhere else."""
        tried: set[Seed] = set()
        n_layer, quiet, d = len(self.levels) + 2, 0, len(self.basis)
        for n in segments or self.search.segments:
            if n:
                ends = self.search.spread * self.rng.standard_normal((2, n, d))
                x, y = np.clip(ends, -self.search.bound, self.search.bound)
                self.look(level, x, y)
            before, n_open = len(level.walks), level.n_open
            self.walk_from(level, tried)
            self._move_down(level)
            told = f"layer {n_layer}: {len(level.walks)} neurons"
            self.tell(f"{told}, {self.n_unexplained} kinks unexplained")
            log.info("%s, %d seeds, %d queries", told, self.n_unexplained, self.oracle.n_queries)
            if n:
                n_new, few = len(level.walks) - before, self.search.few * len(level.walks)
                quiet = quiet + 1 if n_new <= few and level.n_open >= n_open else 0
            patience = self.search.patience if not level.walks or level.n_open else 1
            if self.lacks_inputs or quiet == patience:
                return

    def _move_down(self, level: Level) -> None:
        """Move neurons that turn at no row on top of the frame to the layer of those rows."""
        m, rows = len(level.frame.b), level.rows
        if not m or not level.walks:
            return
        size = np.linalg.norm(rows.theta[:, :-1], axis=1, keepdims=True)
        is_open = rows.undetermined[:, :m]
        flat = (is_open | (np.abs(rows.v) <= self.search.faint * size)).all(axis=1)
        flat &= ~is_open.all(axis=1)
        if not flat.any():
            return
        log.info("%d neurons belong to the layer below", flat.sum())
        moved = [walk for walk, is_flat in zip(level.walks, flat, strict=True) if is_flat]
        level.walks = [walk for walk, is_flat in zip(level.walks, flat, strict=True) if not is_flat]
        if self.levels:
            lower = self.levels[-1]
            self.rebase(moved, lower.frame)
            for walk in moved:
                self._take(lower, walk)
            level.frame, level.unknown_below = lower.above, lower.rows.undetermined
        elif len(self.basis) < self.oracle.dim_in:
            self.lacks_inputs = True
        else:
            # A hyperplane that turns nowhere is the first layer's.
            rows = rows.take(flat)
            sizes = np.linalg.norm(rows.l, axis=1)
            W = np.vstack([level.frame.W, rows.l / sizes[:, None]])
            level.frame = KnownLayers(
                level.frame.stack, W, np.append(level.frame.b, rows.c / sizes)
            )
            level.unknown_below = np.zeros(W.shape, dtype=bool)
        self.rebase(level.walks, level.frame)

    def add_first_rows(self, first: FirstRows) -> bool:
        """Add rows of the first layer that it lacks, if critical points are of some; say if any.

        Their signs are not known: what lies above tells all anew, if anything does.
        """
        if not (self.levels and self.levels[0].walks):
            return False
        level = self.levels[0]
        stack = level.frame.stack
        W, b = stack.weights[-1], stack.biases[-1]
        seeds = self.measured(self.search.at_once)
        more, offsets = first.find_among(self.ask, self.noise, (W, b), seeds, self.rng)
        if not len(offsets):
            return False
        log.info("first layer: %d more rows", len(offsets))
        found = Stack(len(self.basis), [more], [offsets])
        self._forget(lambda X: found.explains(X, self.search.close))
        level.frame = KnownLayers(stack[:-1], np.vstack([W, more]), np.append(b, offsets))
        level.unknown_below = np.zeros(level.frame.W.shape, dtype=bool)
        self.rebase(level.walks, level.frame)
        self.sign(level, surely=False)
        return True

    def rebase(self, walks: Sequence[Walk], frame: KnownLayers) -> None:
        """Write walks in another frame, and go on where that leaves something open."""
        for walk in walks:
            walk.rebase(frame)
        self._run([walk for walk in walks if walk.estimate.n_undetermined])

    def _critical_points(
        self, level: Level, starts: FloatArray, ends: FloatArray
    ) -> CriticalPoints:
        """Critical points on segments, of unknown neurons."""
        frame, rows = level.frame, level.rows
        stack = frame.stack.with_layer(frame.W, frame.b) if len(frame.b) else frame.stack
        breaks = []
        for x, v in zip(starts, ends - starts, strict=True):
            t = np.concatenate([[0.0], stack.breaks(x, v, 0.0, 1.0), [1.0]])
            Z = rows.sums(frame, x + t[:, None] * v)
            i, j = np.nonzero(Z[:-1] * Z[1:] < 0)
            own = t[i] + (t[i + 1] - t[i]) * Z[i, j] / (Z[i, j] - Z[i + 1, j])
            breaks.append(np.sort(np.concatenate([t[1:-1], own])))
        find = self.search.seeds.scan.find
        return find(self.ask, self.noise, starts, ends, breaks, self.rng)

    def look(self, level: Level, starts: FloatArray, ends: FloatArray) -> None:
        """Look for seeds on segments."""
        self.places = self.places.joined(self._critical_points(level, starts, ends))

    def walk_from(self, level: Level, tried: set[Seed], tuning: WalkTuning | None = None) -> None:
        """Walk from seeds, a few at a time: many are those of one neuron.

        Those of deeper neurons are told from others on the piece around them; where that tells
        nothing they are walked from at last, as long as they bring new neurons.
        """
        tuning = tuning or self.search.walk
        n, n_in_vain, n_then = self.search.at_once, 0, len(level.walks)
        put_off = set[Seed]()
        while n_in_vain < self.search.in_vain:
            self._forget_known(level)
            todo = [seed for seed in self.seeds if seed not in tried]
            chosen = self._apart([todo[i] for i in self.rng.permutation(len(todo))], n)
            if len(chosen) < n:
                chosen = self._apart(chosen + self.measured(n - len(chosen), level.frame.stack), n)
            how, rows = replace(tuning, is_put_off=bool(chosen)), level.rows
            if not chosen and len(level.walks) > n_then:
                # More is known that may change on those pieces.
                tried -= put_off
                n_then, put_off = len(level.walks), set()
                continue
            if not chosen:
                chosen = [seed for seed in self.seeds if seed in put_off][:n]
                n_in_vain = max(n_in_vain, 7 * self.search.in_vain // 8)
            if not chosen:
                return
            put_off -= set(chosen)
            tried.update(chosen)
            given = self.noise, self.rng, how, partial(rows.sums, level.frame)
            self._run(walks := [Walk(level.frame, seed, *given) for seed in chosen])
            before = len(level.walks)
            for walk in sorted(walks, key=lambda walk: walk.estimate.n_undetermined):
                if walk.is_accepted:
                    self._take(level, walk)
            late = {walk.seed for walk in walks if how.is_put_off and not walk.is_told}
            put_off |= late
            n_in_vain = 0 if len(level.walks) > before else n_in_vain + len(walks) - len(late)
            # The more of them were new, the more others are.
            n = min(self.search.at_once, max(2, len(level.walks) - before + 1))
            narrow = self.search.narrow * len(level.frame.b) <= len(self.basis)
            if len(level.walks) > before and narrow:
                self.sign(level, surely=True)

    def _apart(self, seeds: list[Seed], n: int) -> list[Seed]:
        """The first seed of each neuron, as far as several outputs tell, and ``n`` at most.

        What they make of a neuron is the same up to its size, where layers above have the same
        state.
        """
        unit, kept = self.noise.unit, list[int]()
        if len(unit) == 1 or not seeds:
            return seeds[:n]
        columns = np.array([seed.column / unit for seed in seeds])
        columns /= np.linalg.norm(columns, axis=1, keepdims=True)
        errors = np.array([seed.error for seed in seeds])
        for i, column in enumerate(columns):
            others = columns[kept]
            apart = np.linalg.norm(others - np.outer(others @ column, column), axis=1)
            if (apart > SIGMAS * (errors[i] + errors[kept])).all():
                kept.append(i)
            if len(kept) == n:
                break
        return [seeds[i] for i in kept]

    def measured(self, n: int, below: Stack | None = None) -> list[Seed]:
        """Measure gradients beside critical points, until there are enough more seeds."""
        more: list[Seed] = []
        while len(more) < n and len(self.places):
            order = self.rng.permutation(len(self.places))
            places, self.places = map(self.places.take, np.split(order, [n - len(more)]))
            more += self.search.seeds.measure(self.ask, self.noise, places, self.rng, below=below)
        self.seeds += more
        return more

    def _forget_known(self, level: Level) -> None:
        """Forget what lies on the surfaces of known neurons."""
        if not (self.n_unexplained and level.walks):
            return
        close = self.search.close
        self._forget(lambda X: level.rows.explain(level.frame, X, close))

    def _forget(self, are_known: Callable[[FloatArray], BoolArray]) -> None:
        """Forget critical points of which a neuron is known."""
        is_known = are_known(np.vstack([self.places.X, *(seed.x[None] for seed in self.seeds)]))
        n = len(self.places)
        self.places = self.places.take(~is_known[:n])
        self.seeds = [
            seed for seed, known in zip(self.seeds, is_known[n:], strict=True) if not known
        ]

    def _take(self, level: Level, walk: Walk) -> None:
        """Take a neuron in; of one that is there the better walk stays, with the other's points.

        Each leaves open what lies beyond walls that it has not met.
        """
        j = self._same_neuron(level, walk)
        if j is None:
            level.walks.append(walk)
            return
        worse, better = sorted(
            [walk, level.walks[j]], key=lambda walk: walk.estimate.n_undetermined, reverse=True
        )
        if better.estimate.n_undetermined:
            better.join(worse, self.search.close)
        level.walks[j] = better

    def _same_neuron(self, level: Level, walk: Walk) -> int | None:
        """Which walk is of the same neuron: its row is alike, or one has the other's points."""
        if not level.walks:
            return None
        alike = LayerRows.of(level.frame, [walk, *level.walks]).alike(self.search.same)
        if len(alike):
            return int(alike[0]) - 1
        for j, other in enumerate(level.walks):
            if other.has(walk, self.search.close) or walk.has(other, self.search.close):
                return j
        return None

    def _run(self, walks: Sequence[Walk]) -> None:
        """Run walks side by side: what they ask goes in one round."""
        steps = [walk.run() for walk in walks]
        asked = [next(step, None) for step in steps]
        while running := [i for i, X in enumerate(asked) if X is not None]:
            parts = [X for X in asked if X is not None]
            answers = np.split(self.ask(np.concatenate(parts)), np.cumsum([len(X) for X in parts]))
            for i, Y in zip(running, answers, strict=False):
                try:
                    asked[i] = steps[i].send(Y)
                except StopIteration:
                    asked[i] = None

    def sign(self, level: Level, *, surely: bool) -> None:
        """Give the rows on top of the frame the signs that the walks' linear parts tell."""
        frame = level.frame
        if not len(frame.b):
            return
        s, known, fits, missing = level.rows.signs(frame, level.unknown_below)
        voters = level.rows.tell_signs(len(frame.b))
        voters = voters if voters.any() else ~voters
        is_sure = bool(known.all() and fits[voters].mean() > self.search.agree)
        if surely and not is_sure:
            return
        level.is_signed, level.is_sure = is_sure, bool(is_sure and fits[voters].all())
        n_fit, n_voters = int(fits[voters].sum()), int(voters.sum())
        log.info("signs: %d of %d, %d of %d rows fit", known.sum(), len(s), n_fit, n_voters)
        if is_sure and not surely:
            # Rows that say other signs are none.
            false = ~fits & voters
            level.walks = [
                w for w, is_false in zip(level.walks, false, strict=True) if not is_false
            ]
        W, b = (frame.W + missing) * s[:, None], frame.b * s
        if not is_sure:
            s, known, directions = level.rows.signs_of_low_rank(frame)
            log.info("signs: %d of %d, rank %d is left", known.sum(), len(s), len(directions))
            level.is_signed = bool(known.all())
            level.missing = directions if level.is_signed and len(directions) else None
            is_more = len(directions) > self.search.max_always_on
            is_told = known.any() or not self.is_passed_on
            if not level.is_signed and (is_more or not is_told):
                # All that is below is passed on, and any signs will do.
                directions = np.eye(frame.stack.dim_out)
            always_on = [frame.stack.always_on(u, self.rng) for u in directions]
            W = np.vstack([frame.W * s[:, None], *(row[None, :-1] for row in always_on)])
            b = np.append(frame.b * s, [row[-1] for row in always_on])
        level.frame = KnownLayers.of(frame.stack.with_layer(W, b))
        self.rebase(level.walks, level.frame)
        # More is known of each: some were one neuron's.
        walks, level.walks = level.walks, []
        for walk in sorted(walks, key=lambda walk: walk.estimate.n_undetermined):
            self._take(level, walk)

    def drop_unread(self, level: Level) -> None:
        """Drop neurons below that no row reads: they were none of that layer's.

        Those whose signs are not known yet are on top of the frame, others in its stack.
        """
        rows, frame, m = level.rows, level.frame, len(level.frame.b)
        read = rows.v if m else rows.l
        is_open = rows.undetermined[:, :m] if m else rows.undetermined
        sizes = np.abs(read).max(axis=1, keepdims=True)
        kept = ((np.abs(read) > self.search.faint * sizes) & ~is_open).any(axis=0)
        # What no row has told may be read.
        kept |= is_open.all(axis=0)
        if kept.all() or not kept.any():
            return
        log.info("%d neurons below are read by none", (~kept).sum())
        self.has_dropped |= not self.levels
        if m:
            level.frame = KnownLayers(frame.stack, frame.W[kept], frame.b[kept])
            level.unknown_below = level.unknown_below[kept]
        else:
            W, b = frame.stack.weights[-1][kept], frame.stack.biases[-1][kept]
            level.frame = KnownLayers.of(frame.stack[:-1].with_layer(W, b))
        for walk in level.walks:
            walk.rebase(level.frame)
        if self.levels:
            below = self.levels[-1]
            below.walks = [
                walk for walk, is_read in zip(below.walks, kept, strict=False) if is_read
            ]

    def keep(self, kept: BoolArray) -> None:
        """Forget rows of the highest level that were none of its layer's."""
        for top in self.levels[-1:]:
            top.walks = [walk for walk, is_one in zip(top.walks, kept, strict=False) if is_one]

    def outputs(self, level: Level) -> tuple[Network, OpenWeights] | None:
        """The network, if the rows of a level are the last hidden layer's."""
        return self.outputs_above(level.above, level.open_weights, level.columns)

    def outputs_passing_on(
        self, level: Level, below: KnownLayers, unknown_below: BoolArray
    ) -> tuple[Network, OpenWeights] | None:
        """The network, if with all that is below passed on the level is the last hidden layer.

        Parameters
        ----------
        below : KnownLayers
            That of the level before rows were dropped and those on top had signs,
        unknown_below : ndarray of bool, shape (m, dim)
            and its weights that are not known.  Where no network is found the level is as it was.
        """
        before, frame, unknown = list(level.walks), level.frame, level.unknown_below
        level.frame, level.unknown_below, self.is_passed_on = below, unknown_below, True
        self.rebase(level.walks, below)
        self.sign(level, surely=False)
        found = self.outputs(level)
        if found is None:
            self.is_passed_on, level.walks = False, before
            level.frame, level.unknown_below = frame, unknown
            self.rebase(level.walks, frame)
        return found

    def outputs_above(
        self, frame: KnownLayers, open_weights: OpenWeights, columns: FloatArray | None = None
    ) -> tuple[Network, OpenWeights] | None:
        """The network, if the rows on top of a frame are the last hidden layer's.

        With it comes what is not known of that layer.
        """
        self.tell("fitting the outputs")
        found = self.search.outputs.find(
            self.ask, self.noise, frame, open_weights, columns, self.rng
        )
        if found is None:
            return None
        if found.skip is not None:
            # What stands for neurons that are always on is as good as what has shown it.
            n, found = len(frame.b), without_skip(found, self.rng, self.search.outputs.near)
            more = range(n, len(found.biases[-2]))
            open_weights = open_weights.joined(OpenWeights.free(found.weights[-2], more))
        if not len(frame.stack):
            open_weights = open_weights.through(self.basis)
        log.info("outputs: %s, %d queries", found, self.oracle.n_queries)
        return self.outer(found), open_weights
