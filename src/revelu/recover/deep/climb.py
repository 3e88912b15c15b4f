"""Networks of any depth and width, layer by layer.

    f(x) = A relu(W_L ... relu(W_2 relu(W_1 x + b_1) + b_2) ... + b_L) + c

Beyond DG21, which closes with "we believe it is possible to prove similar results ... for
deeper models".  From the input up: the first layer from lines (``first_rows``); the rows of every
other layer from walks along the surfaces of its neurons (``walk``), and with them the signs of the
layer below (``layer_rows``); the outputs where the layer is the last (``output_layer``); a fit of
all layers at once; and again where fresh answers begin to disagree.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.spatial.distance import cdist

from revelu.errors import CurvedError, LimitReachedError, SaturatedError
from revelu.network import Network
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.gauss_newton import Stop
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.deep.first_rows import FirstRows
from revelu.recover.deep.frame import Frame
from revelu.recover.deep.layer_rows import LayerRows
from revelu.recover.deep.output_layer import OutputFit, is_faint, without_skip
from revelu.recover.deep.seeds import Seed, SeedSearch
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.walk import Walk, WalkTuning
from revelu.recover.method import Candidate, Disagreement, Layer, Method, Search, Why
from revelu.recover.refine.network_fit import Samples, fit
from revelu.recover.refine.polish import polish_to_known
from revelu.recover.shallow.lines import ended, first_line
from revelu.recover.shallow.one_hidden import OneHidden
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass
class Level:
    """The rows found above some layers.

    Attributes
    ----------
    frame : Frame
        What is known below.
    walks : list of Walk
        One a neuron.
    is_signed, is_sure : bool
        Whether the walks tell all signs below; and whether all of them agree.
    is_mended : bool
        Whether neurons were inserted where a network was wrong.
    is_exhausted : bool
        Whether they have been looked for twice.
    open_weights : ndarray of bool, shape (m, dim)
        Weights of the rows on top of the frame that are not known.
    """

    frame: Frame
    open_weights: BoolArray
    walks: list[Walk] = field(default_factory=list)
    is_signed: bool = True
    is_sure: bool = True
    is_mended: bool = False
    is_exhausted: bool = False

    @property
    def rows(self) -> LayerRows:
        """The rows of all walks in the frame."""
        return LayerRows.of(self.frame, self.walks)

    @property
    def above(self) -> Frame:
        """The frame of the next layer: these rows on top, their signs not known."""
        rows = self.rows
        sizes = np.linalg.norm(rows.l, axis=1)
        sizes = np.where(sizes > 0, sizes, 1.0)
        return Frame(self.frame.stack, rows.l / sizes[:, None], rows.c / sizes)


@dataclass
class Climb(Search):
    """A deep network under way, from the input up.

    Attributes
    ----------
    basis : ndarray, shape (r, d)
        Orthonormal rows: what is not in their span the first layer does not see.
    levels : list of Level
        The second hidden layer first.
    seeds : list of Seed
        Of neurons that are not known.
    network : Network, optional
        The best so far.
    X, Y : ndarray, shape (n, d) and (n, k)
        Points that it is held against.
    """

    method: "Deep"
    basis: FloatArray = field(init=False)
    levels: list[Level] = field(default_factory=list, init=False)
    seeds: list[Seed] = field(default_factory=list, init=False)
    network: Network | None = field(default=None, init=False)
    X: FloatArray = field(init=False)
    Y: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        d, k, unit = self.oracle.dim_in, len(self.noise.scale), self.noise.unit
        self.basis = np.eye(d)
        self.X, self.Y = np.empty((0, d)), np.empty((0, k))
        self.sigma = float((self.noise.nu * self.noise.scale / unit).max())

    def propose(self) -> Candidate:
        """Climb, then look again until fresh points find nothing wrong."""
        self.tell("recovering layer by layer")
        return self._until_limit(self._climb)

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Look for what is missing at inputs where the network was wrong."""
        if self.network is None or self.n_repairs == self.method.max_repairs:
            return None
        self.n_repairs += 1
        self.tell("looking for neurons that fire where the network was wrong")

        def go_on() -> Candidate:
            self._hold_against(seen.X)
            return self._explain()

        return self._until_limit(go_on)

    def _until_limit(self, go_on: Callable[[], Candidate]) -> Candidate:
        try:
            return go_on()
        except (LimitReachedError, SaturatedError) as error:
            return self._candidate(Why.of(error), str(error))
        except CurvedError as error:
            return Candidate(None, Why.CURVED, obstacles=(str(error),))

    def _climb(self) -> Candidate:
        self.line = self.line or first_line(self.oracle, self.noise, self.rng)
        scan = self.line.scan
        if not scan.complete and not scan.ran_out:
            return ended(scan)
        if scan.complete and not len(scan.kinks):
            # An affine map, as far as a line tells.
            return (
                OneHidden().start(self.oracle, self.noise, self.rng, self.tell, self.line).propose()
            )
        find = self.method.first.find
        (W, b), self.seeds = find(self.oracle, self.noise, self.line, self.rng)
        if not len(b):
            return self._candidate(
                Why.HYPERPLANES_END,
                "none of the hyperplanes found bends the function wherever it goes: there is no "
                "first layer of ReLUs that each see all inputs (max-pooling looks like this)",
            )
        if len(b) < len(self.basis):
            self.basis, self.seeds = np.linalg.qr(W.T)[0].T, []
        frame = Frame(Stack(len(self.basis)), W @ self.basis.T, b)
        undetermined = np.zeros(frame.W.shape, dtype=bool)
        self.network = self._outputs(frame, undetermined)
        while self.network is None and len(self.levels) < self.method.max_layers:
            level = Level(frame, undetermined)
            self._find_rows(level, self.method.segments)
            if not level.walks and not self._find_more():
                break
            if level.walks:
                self._sign(level, surely=False)
                self._drop_unread(level)
                self.levels.append(level)
            if sum(not level.is_signed for level in self.levels) > self.method.max_unsure:
                break
            top = self.levels[-1]
            frame, undetermined = top.above, top.rows.undetermined
            self.network = self._outputs(frame, undetermined)
        return self._explain()

    # Rows of one layer.

    def _ask(self, X: FloatArray) -> FloatArray:
        """Ask in the coordinates of the first layer's row space."""
        return self.oracle(X @ self.basis)

    def _find_more(self) -> bool:
        """Look again for neurons of the highest level, above which none was found; say if any."""
        if not self.levels or self.levels[-1].is_exhausted:
            return False
        top = self.levels.pop()
        n = len(top.walks)
        self._find_rows(top, self.method.more_segments)
        top.is_exhausted = True
        self.levels.append(top)
        return len(top.walks) > n

    def _find_rows(self, level: Level, segments: tuple[int, ...]) -> None:
        """Find the neurons whose surfaces turn at the frame's walls and nowhere else."""
        tried: set[Seed] = set()
        n_layer = len(self.levels) + 2
        quiet, d = 0, len(self.basis)
        for n in segments:
            if n:
                x, y = self.method.spread * self.rng.standard_normal((2, n, d))
                self.seeds += self._new_seeds(level, x, y)
            before = len(level.walks)
            self._walk(level, tried)
            self._move_down(level)
            self.tell(
                f"layer {n_layer}: {len(level.walks)} neurons, {len(self.seeds)} critical points "
                "not explained"
            )
            log.info(
                "layer %d: %d rows, %d seeds left, %d queries",
                n_layer,
                len(level.walks),
                len(self.seeds),
                self.oracle.n_queries,
            )
            if n:
                quiet = quiet + 1 if len(level.walks) == before else 0
            if quiet == (1 if level.walks else self.method.patience):
                return

    def _move_down(self, level: Level) -> None:
        """Move neurons that turn at no row on top of the frame to the layer of those rows."""
        m, rows = len(level.frame.b), level.rows
        if not m or not level.walks:
            return
        size = np.linalg.norm(rows.theta[:, :-1], axis=1, keepdims=True)
        is_open = rows.undetermined[:, :m]
        flat = (is_open | (np.abs(rows.v) <= self.method.faint * size)).all(axis=1)
        flat &= ~is_open.all(axis=1)
        if not flat.any():
            return
        log.info("%d neurons belong to the layer below", flat.sum())
        moved = [walk for walk, is_flat in zip(level.walks, flat, strict=True) if is_flat]
        level.walks = [walk for walk, is_flat in zip(level.walks, flat, strict=True) if not is_flat]
        if self.levels:
            lower = self.levels[-1]
            self._rebase(moved, lower.frame)
            for walk in moved:
                self._take(lower, walk)
            level.frame, level.open_weights = lower.above, lower.rows.undetermined
        else:
            # A hyperplane that turns nowhere is the first layer's.
            rows = rows.take(flat)
            sizes = np.linalg.norm(rows.l, axis=1)
            W = np.vstack([level.frame.W, rows.l / sizes[:, None]])
            level.frame = Frame(level.frame.stack, W, np.append(level.frame.b, rows.c / sizes))
            level.open_weights = np.zeros(W.shape, dtype=bool)
        self._rebase(level.walks, level.frame)

    def _rebase(self, walks: Sequence[Walk], frame: Frame) -> None:
        """Write walks in another frame, and go on where that leaves something open."""
        for walk in walks:
            walk.rebase(frame)
        self._run([walk for walk in walks if walk.estimate.n_undetermined])

    def _new_seeds(self, level: Level, starts: FloatArray, ends: FloatArray) -> list[Seed]:
        """Seeds on segments, of no known neuron."""
        frame, rows = level.frame, level.rows
        stack = frame.stack.with_layer(frame.W, frame.b) if len(frame.b) else frame.stack
        breaks = []
        for x, v in zip(starts, ends - starts, strict=True):
            t = np.concatenate([[0.0], stack.breaks(x, v, 0.0, 1.0), [1.0]])
            Z = rows.sums(frame, x + t[:, None] * v)
            i, j = np.nonzero(Z[:-1] * Z[1:] < 0)
            own = t[i] + (t[i + 1] - t[i]) * Z[i, j] / (Z[i, j] - Z[i + 1, j])
            breaks.append(np.sort(np.concatenate([t[1:-1], own])))
        find = self.method.search_of_seeds.find
        return find(
            self._ask,
            self.noise,
            starts,
            ends,
            breaks,
            self.rng,
            lambda X: rows.explain(frame, X, self.method.close),
        )

    def _walk(self, level: Level, tried: set[Seed]) -> None:
        """Walk from seeds, a few at a time: many are those of one neuron."""
        n = self.method.at_once
        while True:
            self._forget_known(level)
            todo = [seed for seed in self.seeds if seed not in tried]
            if not todo:
                return
            chosen = [todo[i] for i in self.rng.permutation(len(todo))[:n]]
            tried.update(chosen)
            walks = [
                Walk(level.frame, seed, self.noise.unit, self.sigma, self.rng, self.method.walk)
                for seed in chosen
            ]
            self._run(walks)
            before = len(level.walks)
            for walk in sorted(walks, key=lambda walk: walk.estimate.n_undetermined):
                if walk.is_accepted:
                    self._take(level, walk)
            # The more of them were new, the more others are.
            n = max(2, min(self.method.at_once, len(level.walks) - before + 1))
            narrow = self.method.narrow * len(level.frame.b) <= len(self.basis)
            if len(level.walks) > before and narrow:
                self._sign(level, surely=True)

    def _forget_known(self, level: Level) -> None:
        """Forget seeds on the surfaces of known neurons."""
        if self.seeds and level.walks:
            X = np.array([seed.x for seed in self.seeds])
            known = level.rows.explain(level.frame, X, self.method.close)
            self.seeds = [s for s, is_known in zip(self.seeds, known, strict=True) if not is_known]

    def _take(self, level: Level, walk: Walk) -> None:
        """Take a neuron in, unless it is one of those that are there; then the better one stays."""
        if level.walks:
            alike = LayerRows.of(level.frame, [walk, *level.walks]).alike(self.method.same)
            if len(alike):
                j = int(alike[0]) - 1
                if walk.estimate.n_undetermined < level.walks[j].estimate.n_undetermined:
                    level.walks[j] = walk
                return
            explained = level.rows.explain(level.frame, walk.points.X, self.method.close)
            if explained.mean() > 0.5:
                return
        level.walks.append(walk)

    def _run(self, walks: Sequence[Walk]) -> None:
        """Run walks side by side: what they ask goes in one round."""
        steps = [walk.run() for walk in walks]
        asked = [next(step, None) for step in steps]
        while running := [i for i, X in enumerate(asked) if X is not None]:
            parts = [X for X in asked if X is not None]
            answers = np.split(self._ask(np.concatenate(parts)), np.cumsum([len(X) for X in parts]))
            for i, Y in zip(running, answers, strict=False):
                try:
                    asked[i] = steps[i].send(Y)
                except StopIteration:
                    asked[i] = None

    # Signs and outputs.

    def _sign(self, level: Level, *, surely: bool) -> None:
        """Give the rows on top of the frame the signs that the walks' linear parts tell."""
        frame = level.frame
        if not len(frame.b):
            return
        s, known, fits, missing = level.rows.signs(frame, level.open_weights)
        is_sure = bool(known.all() and fits.mean() > self.method.agree)
        if surely and not is_sure:
            return
        level.is_signed, level.is_sure = is_sure, bool(is_sure and fits.all())
        log.info("signs: %d of %d, %d of %d rows fit", known.sum(), len(s), fits.sum(), len(fits))
        if is_sure and not surely:
            # Rows of which all is known, and which say other signs, are none.
            false = ~fits & ~level.rows.undetermined.any(axis=1)
            level.walks = [
                w for w, is_false in zip(level.walks, false, strict=True) if not is_false
            ]
        W, b = (frame.W + missing) * s[:, None], frame.b * s
        if not is_sure:
            s, directions = level.rows.signs_of_low_rank(frame)
            log.info("signs: linear parts of rank %d are left", len(directions))
            if len(directions) > self.method.max_always_on:
                # The signs are not known: all that is below is passed on, and any will do.
                directions = np.eye(frame.stack.dim_out)
            always_on = [frame.stack.always_on(u, self.rng) for u in directions]
            W = np.vstack([frame.W * s[:, None], *(row[None, :-1] for row in always_on)])
            b = np.append(frame.b * s, [row[-1] for row in always_on])
        level.frame = Frame.of(frame.stack.with_layer(W, b))
        self._rebase(level.walks, level.frame)

    def _drop_unread(self, level: Level) -> None:
        """Drop neurons below that no row reads: they were none of that layer's."""
        rows, stack = level.rows, level.frame.stack
        sizes = np.abs(rows.l).max(axis=1, keepdims=True)
        reads = (np.abs(rows.l) > self.method.faint * sizes) & ~rows.undetermined
        kept = reads.any(axis=0)
        if kept.all() or not kept.any():
            return
        log.info("%d neurons below are read by none", (~kept).sum())
        stack = stack[:-1].with_layer(stack.weights[-1][kept], stack.biases[-1][kept])
        level.frame = Frame.of(stack)
        for walk in level.walks:
            walk.rebase(level.frame)
        if self.levels:
            below = self.levels[-1]
            below.walks = [
                walk for walk, is_read in zip(below.walks, kept, strict=False) if is_read
            ]

    def _outputs(self, frame: Frame, undetermined: BoolArray) -> Network | None:
        """The network, if the rows on top of the frame are the last hidden layer's."""
        self.tell("fitting the outputs")
        fit_outputs = self.method.outputs.find
        found = fit_outputs(
            self._ask, self.noise, frame.stack, frame.W, frame.b, undetermined, self.rng
        )
        if found is None:
            return None
        if found.skip is not None:
            found = without_skip(found, self.rng)
        log.info("outputs: %s, %d queries", found, self.oracle.n_queries)
        weights = [found.weights[0] @ self.basis, *found.weights[1:]]
        return Network(weights, found.biases, skip=found.skip)

    # What is missing.

    def _explain(self) -> Candidate:
        """Look at fresh inputs; find the neurons that are missing where the network is wrong."""
        if self.network is None:
            told = f"{len(self.levels) + 1} hidden layer(s) were looked into; what is above was not"
            return self._candidate(Why.UNRESOLVED, f"{told} understood")
        network = self._look(self.network)
        wrong, in_vain = self._wrong(network, self.X, self.Y), 0
        while wrong.any() and in_vain < self.method.patience:
            self.tell(f"{wrong.sum():,} of {len(wrong):,} inputs are not explained")
            fewest, seen = int(wrong.sum()), len(wrong)
            self.seeds = self._border_seeds(network, wrong)
            inserted = self._insert(network)
            if inserted is None:
                # Weights may be missing that few inputs show: more of those tell them.
                self._hold_against(self._around(self.X[wrong]))
            network = self._fit(inserted or network)
            wrong = self._wrong(network, self.X, self.Y)
            helps = wrong[:seen].sum() <= (1.0 - self.method.helps) * fewest
            in_vain = 0 if helps else in_vain + 1
            if not wrong.any():
                network = self._look(network)
                wrong = self._wrong(network, self.X, self.Y)
        if wrong.any():
            told = f"the network was wrong at {wrong.sum():,} of {len(wrong):,} inputs asked"
            return self._candidate(Why.UNRESOLVED, told)
        return self._candidate(Why.EXPLAINED)

    def _insert(self, network: Network) -> Network | None:
        """Insert the neurons of the seeds, at the lowest level that takes them, if that helps."""
        before = [replace(level, walks=list(level.walks)) for level in self.levels]
        for i, level in enumerate(self.levels):
            n = len(level.walks)
            self._walk(level, set())
            if len(level.walks) == n:
                continue
            level.is_mended = True
            # What is above has new neurons below.
            for lower, upper in zip(self.levels[i:], self.levels[i + 1 :], strict=False):
                upper.frame, upper.open_weights = lower.above, lower.rows.undetermined
                self._rebase(upper.walks, upper.frame)
                self._sign(upper, surely=False)
        if all(len(a.walks) == len(b.walks) for a, b in zip(before, self.levels, strict=True)):
            return None
        top = self.levels[-1]
        inserted = self._outputs(top.above, top.rows.undetermined)
        if inserted is not None and self._is_better(inserted, network):
            return inserted
        self.levels = before
        for level in self.levels:
            for walk in level.walks:
                if walk.frame is not level.frame:
                    walk.rebase(level.frame)
        return None

    def _is_better(self, network: Network, other: Network) -> bool:
        """Whether a network is wrong at no more of the points asked than another."""
        mine, others = (self._wrong(n, self.X, self.Y).sum() for n in (network, other))
        return bool(mine <= others)

    def _hold_against(self, X: FloatArray) -> None:
        """Ask inputs and keep those that are answered by numbers: a target may be saturated."""
        Y = self.oracle(X)
        alive = np.isfinite(Y).all(axis=1)
        self.X, self.Y = np.vstack([self.X, X[alive]]), np.vstack([self.Y, Y[alive]])

    def _around(self, X: FloatArray) -> FloatArray:
        """Inputs around some, shape (n_around, d)."""
        X = X[self.rng.integers(len(X), size=self.method.n_around)]
        size = np.linalg.norm(X, axis=1)[:, None] / np.sqrt(X.shape[1])
        return np.asarray(X + self.method.zoom * size * self.rng.standard_normal(X.shape))

    def _look(self, network: Network) -> Network:
        """Ask fresh inputs, and fit all layers at once."""
        method = self.method
        enough = int(method.equations * network.n_parameters / network.dim_out)
        n = max(method.n_look, enough - len(self.X))
        spread = self.rng.choice(method.spreads, n)[:, None]
        self._hold_against(spread * self.rng.standard_normal((n, self.oracle.dim_in)))
        return self._fit(network)

    def _fit(self, network: Network) -> Network:
        """Fit all layers at once to what was asked; the outcome is wrong nowhere else."""
        if network.skip is None:
            plain = network.take(~is_faint(network))
            network = plain if self._is_better(plain, network) else network
        for _ in range(2):
            self.network = network
            wrong = self._wrong(network, self.X, self.Y)
            log.info("%d of %d wrong, %d queries", wrong.sum(), len(wrong), self.oracle.n_queries)
            if wrong.any() and network.n_parameters <= self.method.dense:
                # A few weights may be off that most inputs do not show.
                samples = Samples(self.X, self.Y, self.noise.errors)
                fitted = fit(network, samples, Stop(self.method.n_steps)).network
            else:
                fitted = polish_to_known(network, self.X[~wrong], self.Y[~wrong], self.noise)
            network = fitted if self._is_better(fitted, network) else network
            if not wrong.any():
                break
        self.network = network
        return network

    def _apart(self, network: Network, X: FloatArray, Y: FloatArray) -> FloatArray:
        """How far off a network is at points, relative to the size of the answers, shape (n,)."""
        scale = self.noise.unit * self.noise.growth(X)[:, None]
        return np.asarray((np.abs(network(X) - Y) / scale).max(axis=1))

    def _wrong(self, network: Network, X: FloatArray, Y: FloatArray) -> BoolArray:
        """At which points a network is wrong, shape (n,).

        A network that is right but for small errors errs alike everywhere.
        """
        apart = self._apart(network, X, Y)
        usual = self.method.unusual * max(self.sigma, float(np.median(apart)))
        return apart > min(max(usual, self.method.right), self.method.wrong)

    def _border_seeds(self, network: Network, wrong: BoolArray) -> list[Seed]:
        """Seeds where the network begins to be wrong: there a missing neuron changes its state."""
        method, Z = self.method, self.X @ self.basis.T
        bad = Z[self.rng.permutation(np.flatnonzero(wrong))[: method.n_wrong]]
        good = Z[~wrong]
        if not len(good):
            return []
        near = cdist(bad, good).argsort(axis=1)[:, : method.n_near]
        bad, good = np.repeat(bad, near.shape[1], axis=0), good[near.ravel()]
        # What is missing sets in from nothing: its border is where the network errs at all.
        typical = np.median(self._apart(network, self.X[~wrong], self.Y[~wrong]))
        least = SIGMAS * max(self.sigma, float(typical))
        lo, hi = np.zeros((len(bad), 1)), np.ones((len(bad), 1))
        for _ in range(method.n_halvings):
            middle = (lo + hi) / 2
            X = (good + middle * (bad - good)) @ self.basis
            is_wrong = self._apart(network, X, self.oracle(X))[:, None] > least
            lo, hi = np.where(is_wrong, lo, middle), np.where(is_wrong, middle, hi)
        width = method.beside * (hi - lo)
        starts, ends = good + (lo - width) * (bad - good), good + (hi + width) * (bad - good)
        none = [np.empty(0)] * len(starts)
        find = method.search_of_seeds.find
        return find(self._ask, self.noise, starts, ends, none, self.rng)

    def _candidate(self, why: Why, *obstacles: str) -> Candidate:
        layers: list[Layer] = []
        for level in self.levels:
            if not level.is_sure or level.rows.undetermined.any():
                break
            W, b = level.frame.stack.weights[-1], level.frame.stack.biases[-1]
            layers.append((W if layers else W @ self.basis, b))
            # Neurons that were found late may be one of those that are there, or a deeper one's.
            if level.is_mended or why is Why.EXPLAINED:
                break
        worst = 0.0
        if why is Why.UNRESOLVED and self.network is not None and len(self.X):
            worst = float(np.abs(self.network(self.X) - self.Y).max())
        return Candidate(
            self.network,
            why,
            layers=tuple(layers),
            obstacles=obstacles,
            worst_error=worst,
            figures={"layers": layers},
        )


@dataclass(frozen=True)
class Deep(Method):
    """Any number of hidden layers, of any width, layer by layer.

    Attributes
    ----------
    max_layers : int
        Hidden layers after which the climb is given up.
    first : FirstRows
        Of the first layer.
    segments : tuple of int
        Segments of one round after the other, on which seeds are looked for; 0 for those known.
    more_segments : tuple of int
        Of rounds that look again, where nothing above a layer can be found.
    spread : float
        Standard deviation of their ends.
    patience : int
        Rounds in vain that end the search of a layer of which no neuron is known, or of what is
        missing.
    at_once : int
        Seeds that are walked from side by side, at most.
    close : float
        A critical point is a known neuron's if it is this near its surface, relative to its size.
    same : float
        Rows are those of one neuron if the cosine of what both know is off 1 by less.
    faint : float
        A weight is none if it is smaller, relative to the largest of its row.
    max_always_on : int
        Neurons of one layer that are always on, at most; where more seem to be, signs are not
        known.
    max_unsure : int
        Layers whose signs are not known, at most: above several nothing is to be told, and where
        no layer's are the target has other units than ReLUs.
    agree : float
        The share of rows whose linear parts must fit before signs are taken for sure.
    narrow : float
        With so many inputs for each row below, at least, walks use its signs as soon as they are
        sure: a gradient then tells that many entries.  With fewer it tells them poorly.
    n_look : int
        Fresh points of one look for errors, at least.
    equations : float
        Answers a parameter for the fit of all layers.
    spreads : tuple of float
        Standard deviations that points are drawn at.
    wrong : float
        An error, relative to the size of the answers, that is none of a right network's;
    right : float
        and one that says nothing.
    unusual : float
        Between those a point is wrong if its error is so many times the median of all.
    dense : int
        Networks of more parameters are fitted to what is right alone.
    n_steps : int
        Steps of that fit.
    helps : float
        The share of wrong points that a round has to mend, not to be in vain.
    max_repairs : int
        Searches after failed certificates.
    n_wrong, n_near : int
        Wrong points that one round looks at, and right ones near each.
    n_around : int
        Points asked around wrong ones where no neuron is missing;
    zoom : float
        how far from those, relative to their size.
    n_halvings : int
        Halvings of the way between them.
    beside : float
        How much further to either side of what they leave a kink is looked for.
    search_of_seeds : SeedSearch
    walk : WalkTuning
    outputs : OutputFit
    """

    name = "deep"
    hidden = (1, None)
    cost = "5 to 100"
    max_starts = 2
    search = Climb

    max_layers: int = 12
    first: FirstRows = field(default_factory=FirstRows)
    segments: tuple[int, ...] = (0, 4, 6, 8, 12, 16, 24, 32)
    more_segments: tuple[int, ...] = (0, 24, 32, 48)
    spread: float = 1.5
    patience: int = 3
    at_once: int = 8
    close: float = 1e-6
    same: float = 1e-8
    faint: float = 1e-6
    max_always_on: int = 2
    max_unsure: int = 1
    agree: float = 0.7
    narrow: float = 0.15
    n_look: int = 2000
    equations: float = 1.5
    spreads: tuple[float, ...] = (1.0, 1.0, 1.5, 2.0, 3.0)
    wrong: float = 1e-5
    right: float = 1e-9
    unusual: float = 100.0
    dense: int = 1500
    n_steps: int = 30
    helps: float = 0.1
    max_repairs: int = 4
    n_wrong: int = 12
    n_near: int = 3
    n_around: int = 300
    zoom: float = 0.4
    n_halvings: int = 14
    beside: float = 3.0
    search_of_seeds: SeedSearch = field(default_factory=SeedSearch)
    walk: WalkTuning = field(default_factory=WalkTuning)
    outputs: OutputFit = field(default_factory=OutputFit)

    def obstacle(self, oracle: Oracle, noise: NoiseFloor) -> str:
        """It divides differences of answers."""
        del oracle
        if not noise.is_exact:
            return (
                "the answers lack the digits that deep networks need: float64 ones, not "
                f"{noise.law}; method fit takes one hidden layer"
            )
        return ""
