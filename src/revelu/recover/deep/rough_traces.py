"""Upper neurons that walks have missed, traced one by one beside what is known.

Above a first layer whose rows and signs are known a trace closes within a few thousand queries,
whether the neuron is strong or faint (:mod:`revelu.recover.deep.trace`).  What is known is taken
off the answers: kinks that are left are seeds of others, fainter ones from round to round.

What is rarely on, or rarely off, few segments meet.  Where fresh answers are wrong it is near:
segments go from there to inputs whose answers are right.  What is open of a row is told by a seed
that it meets, and a row at whose surface nothing bends is none.
"""

import logging
from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Anchored, Damping, Stop
from revelu.oracle import NoiseFloor
from revelu.probe.gradient import CheckedGradients
from revelu.probe.kink_lines import KinkLines
from revelu.probe.line import Ask
from revelu.recover.deep.rough_outputs import RoughOutputs
from revelu.recover.deep.seeds import Seed, SeedSearch
from revelu.recover.deep.segments import SegmentScan
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.trace import Trace, TraceTuning, features
from revelu.recover.method import Tell
from revelu.recover.refine.network_fit import Samples, fit_top
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class TracedRow:
    """A row above the first layer.

    Attributes
    ----------
    row : ndarray, shape (m + 1,)
    undetermined : ndarray, shape (m + 1, q)
        Directions of it that are not known.
    points : ndarray, shape (n, d)
        Of its surface.
    seed : Seed
        Where it was seen first.
    """

    row: FloatArray
    undetermined: FloatArray
    points: FloatArray
    seed: Seed

    @property
    def n_open(self) -> int:
        """How many directions are not known."""
        return int(self.undetermined.shape[1])


def _seeds() -> SeedSearch:
    scan = SegmentScan(side=3e-3, shortest=1e-3, edge=0.02, pair=0.2, max_rounds=8)
    return SeedSearch(scan, CheckedGradients((0.4, 0.1, 0.03)), single=0.1, precise=0.1)


@dataclass(frozen=True)
class RoughTraces:
    """How upper neurons are traced that walks have missed.

    Attributes
    ----------
    seeds : SeedSearch
        How they are seen.
    trace : TraceTuning
    open_, outputs : RoughOutputs
        How what is open of rows is fitted first, and then the outputs beside it.
    n_told : int
        So many answers tell these, at most, and all that were wrong.
    n_segments : tuple of int
        Segments of one round after the other on which seeds are looked for, until one finds
    few : int
        no more rows than this,
    spreads : tuple of float
        and the standard deviations of their ends: what is nearly always on turns far out.
    faintest : float
        Seeds are not traced if an answer's error is more than this share of their bend,
    worst : float
        or if their normals err by more.
    close : float
        A point is on a known surface if it is this near, relative to its size;
    slack : float
        a row meets a seed if it has its direction to so many times the direction's error, too;
    chance : float
        the probability is no larger that a seed of another neuron seems to meet it;
    told : float
        what is open of it is told there if it turns the gradient by more than this share of its
        own size;
    same : float
        surfaces are one neuron's if this share of one's points are on the other.
    n_looks : int
        Then fresh answers are looked at, in each of
    n_rounds : int
        so many rounds at most, as long as
    less : float
        in each no more than this share of those before is wrong;
    wrong, most_wrong : float
        they are wrong if they are off by so many times what most are, and noise, and if a larger
        share is wrong, fits find what is missing for less,
    n_wrong : int
        and seeds are looked for from so many of these, towards the nearest that are right
    around : float
        and to inputs that are about so far away.
    n_places : int
        A row is none if at most of so many places of its surface, or of as many as there are,
    fewest : int
        and these are not fewer, nothing bends within
    near : float
        this distance, or what room there is to other neurons' surfaces;
    most_false, few_false : float, int
        where more than this share are none, and more than so many, the first layer is not what it
        is taken for.
    n_fits : int
        The upper layer is fitted so often, as long as each fit leaves less than
    slow : float
        this share of what was left of most, to answers of which those count little that are off
    beyond : float
        by so many times what half of them are: neurons that are still missing must not move others.
    n_steps : int
        Steps of each fit,
    length : float
        which move what answers tell little of no farther than this,
    damping : Damping
    """

    seeds: SeedSearch = field(default_factory=_seeds)
    trace: TraceTuning = field(default_factory=TraceTuning)
    open_: RoughOutputs = field(default_factory=lambda: RoughOutputs(most=0.98))
    outputs: RoughOutputs = field(default_factory=RoughOutputs)
    n_told: int = 5000
    n_segments: tuple[int, ...] = (12, 16, 24, 32)
    few: int = 1
    spreads: tuple[float, ...] = (1.0, 1.5, 2.0, 2.0)
    faintest: float = 1e-4
    worst: float = 0.02
    close: float = 1e-4
    slack: float = 3.0
    chance: float = 1e-6
    told: float = 1e-3
    same: float = 0.5
    n_looks: int = 8000
    n_rounds: int = 6
    less: float = 0.8
    wrong: float = 30.0
    most_wrong: float = 0.05
    n_wrong: int = 24
    around: float = 0.5
    n_places: int = 16
    fewest: int = 4
    near: float = 0.05
    most_false: float = 0.15
    few_false: int = 3
    n_fits: int = 6
    slow: float = 0.9
    beyond: float = 3.0
    n_steps: int = 3
    length: float = 0.1
    damping: Damping = field(default_factory=lambda: Damping(1e-6))

    def refined(self, network: Network, samples: Samples) -> Network:
        """Fit the upper layer to answers, those that are far off forgotten."""
        left = np.abs(samples.residual(network))
        for _ in range(self.n_fits):
            before = float(np.median(left))
            typical = self.beyond * np.median(left, axis=0)
            sigma = samples.sigma * np.hypot(1.0, left / np.maximum(typical, 1.0))
            network = fit_top(
                network,
                Samples(samples.X, samples.Y, sigma),
                Stop(self.n_steps),
                solver=Anchored(self.length),
                damping=self.damping,
            )
            left = np.abs(samples.residual(network))
            log.info("left: %.3g errors, the median", np.median(left))
            if np.median(left) > self.slow * before:
                break
        return network


@dataclass
class TraceSearch:
    """The search for upper neurons by traces.

    Attributes
    ----------
    ask : callable
    noise : NoiseFloor
    rng : numpy.random.Generator
    tell : callable
        Takes a line about what is done now.
    stack : Stack
        The first layer, its signs known.
    samples : Samples
        Answers that the outputs are fitted to.
    how : RoughTraces
    rows : list of TracedRow
        Those that are known.
    wrong : Samples, optional
        Answers that were wrong beside rows known then; the outputs are fitted to these, too.
    is_astray : bool
        Whether the first layer is not what it is taken for.
    """

    ask: Ask
    noise: NoiseFloor
    rng: np.random.Generator
    tell: Tell
    stack: Stack
    samples: Samples
    how: RoughTraces
    rows: list[TracedRow]
    wrong: Samples | None = field(default=None, init=False)
    is_astray: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.W, self.b = self.stack.weights[-1], self.stack.biases[-1]
        self.scale = self._scale()

    def find(self) -> Network:
        """Trace what walks have left open, then what shows beside that; return the network."""
        walked, self.rows = self.rows, [row for row in self.rows if not row.n_open]
        for row in walked:
            if row.n_open:
                traced = self._traced(row.seed)
                self._take(row if traced is None or traced.n_open > row.n_open else traced)
        for n, spread in zip(self.how.n_segments, self.how.spreads, strict=True):
            before = len(self.rows)
            starts, ends = spread * self.rng.standard_normal((2, n, self.W.shape[1]))
            self._look_along(starts, ends, self.network())
            self.tell(f"layer 2: {len(self.rows)} neurons")
            log.info("%d neurons after traces, %d before", len(self.rows), before)
            n_new = len(self.rows) - before
            self._drop_false()
            if self.is_astray:
                return self.network()
            if n_new <= self.how.few:
                break
        least = self.how.n_looks / self.how.less
        for _ in range(self.how.n_rounds):
            n_wrong = self._look_where_wrong()
            if not n_wrong:
                break
            self._drop_false()
            if n_wrong > self.how.less * least:
                break
            least = n_wrong
        return self.network()

    def network(self) -> Network:
        """The rows, what they leave open, and the outputs: as they explain most answers."""
        n, some = self.how.n_told, self.samples
        some = Samples(some.X[:n], some.Y[:n], some.sigma[:n])
        some = some if self.wrong is None else some.joined(self.wrong)
        X, Y, sigma = some.X, some.Y, some.sigma
        rows = np.array([row.row for row in self.rows])
        open_ = [row.undetermined for row in self.rows]
        H = self.stack.outputs(X)
        # What is open of a row shows where the network is far off: at first that counts, too.
        told, _ = self.how.open_.fit(H, Y, sigma, rows, open_)
        told, C = self.how.outputs.fit(H, Y, sigma, told, open_)
        r = len(rows)
        weights, biases = [self.W, told[:, :-1], C[:r].T], [self.b, told[:, -1], C[-1]]
        return Network(weights, biases, skip=(C[r:-1].T, np.zeros(Y.shape[1])))

    def _look_where_wrong(self) -> int:
        """Trace seeds around inputs at which fresh answers are wrong; say how many were."""
        known, how = self.network(), self.how
        X = self.rng.standard_normal((how.n_looks, self.W.shape[1]))
        sigma = np.outer(self.noise.growth(X) / np.sqrt(2.0), self.noise.errors)
        fresh = Samples(X, np.asarray(self.ask(X)), sigma)
        off = np.abs(fresh.residual(known)).max(axis=1)
        is_wrong = off > how.wrong * max(float(np.median(off)), 1.0)
        log.info("%d of %d answers wrong beside %d rows", is_wrong.sum(), len(X), len(self.rows))
        if not 0.0 < is_wrong.mean() <= self.how.most_wrong:
            return 0
        # What is rarely on shows in these alone.
        rare = Samples(X[is_wrong], fresh.Y[is_wrong], sigma[is_wrong])
        self.wrong = rare if self.wrong is None else self.wrong.joined(rare)
        wrong = X[self.rng.permutation(np.flatnonzero(is_wrong))[: how.n_wrong]]
        right = X[~is_wrong]
        nearest = np.array([right[((right - x) ** 2).sum(axis=1).argmin()] for x in wrong])
        beside = wrong + how.around * self.rng.standard_normal(wrong.shape)
        self._look_along(np.vstack([wrong, wrong]), np.vstack([nearest, beside]), known)
        return int(is_wrong.sum())

    def _drop_false(self) -> None:
        """Leave out rows where whose surfaces are, mostly, nothing bends."""
        is_true = [self._bends(j) for j in range(len(self.rows))]
        n_false = is_true.count(False)
        log.info("%d of %d rows bend nothing", n_false, len(is_true))
        most = max(self.how.few_false, self.how.most_false * len(is_true))
        self.is_astray |= n_false > most
        self.rows = [row for row, keep in zip(self.rows, is_true, strict=True) if keep]

    def _bends(self, j: int) -> bool:
        """Whether the answers bend where a row's surface is, as far as it is told and has room."""
        others = np.array([other.row for i, other in enumerate(self.rows) if i != j])
        X, M = self._surface(self.rows[j])
        T = np.full(len(X), self.how.near)
        for _ in range(4):
            below, above = (self._states(X + side * T[:, None] * M, others) for side in (-1.0, 1.0))
            is_clear = (below == above).all(axis=1)
            T = np.where(is_clear, T, 0.4 * T)
        # What is faint shows on ranges that are wide enough alone.
        strength = self._strength(self.rows[j].seed)
        is_clear &= self.how.trace.blur * self.noise.relative < strength * T
        X, M, T = (a[is_clear][: self.how.n_places] for a in (X, M, T))
        if len(X) < self.how.fewest:
            return True
        lines = KinkLines(X, M, np.zeros(len(X)), T)
        seen = lines.read(self.ask(lines.points) / self.noise.unit, self.noise.relative)
        return bool((seen.is_kink & (np.abs(seen.tau) < 0.1 * T)).mean() > self.how.same)

    def _surface(self, known: TracedRow) -> tuple[FloatArray, FloatArray]:
        """Points of a row's surface near inputs asked, and unit normals; no open weight counts."""
        X, row = self.samples.X, known.row
        for turn in range(4):
            G = ((X @ self.W.T + self.b > 0) * row[:-1]) @ self.W
            sizes = np.maximum(np.linalg.norm(G, axis=1), 1e-12)
            steps, M = -(features(X, self.W, self.b) @ row) / sizes, G / sizes[:, None]
            if turn == 0:
                nearest = np.argsort(np.abs(steps))[: 8 * self.how.n_places]
                X, M, steps = X[nearest], M[nearest], steps[nearest]
            is_there = np.abs(steps) < self.how.close * self.how.near
            X = X + np.where(is_there, 0.0, np.clip(steps, -1.0, 1.0))[:, None] * M
        open_ = np.linalg.norm(features(X, self.W, self.b) @ known.undetermined, axis=1)
        is_there &= open_ * np.sqrt((row[:-1] ** 2).mean()) <= self.how.close * sizes
        return X[is_there], M[is_there]

    def _states(self, X: FloatArray, others: FloatArray) -> BoolArray:
        """Which neurons are on, of the first layer and of other rows."""
        upper = features(X, self.W, self.b) @ others.T > 0
        return np.hstack([X @ self.W.T + self.b > 0, upper])

    def _look_along(self, starts: FloatArray, ends: FloatArray, known: Network) -> None:
        """Trace seeds that segments show in what a network leaves, the strongest first."""

        def ask(X: FloatArray) -> FloatArray:
            return np.asarray(self.ask(X) - known(X))

        whole = self.stack.with_layer(known.weights[1], known.biases[1])
        breaks = [whole.breaks(x, v, 0.0, 1.0) for x, v in zip(starts, ends - starts, strict=True)]
        seeds = self.how.seeds.find(ask, self.noise, starts, ends, breaks, self.rng)
        sigma = self.noise.relative
        seeds = [
            seed
            for seed in sorted(seeds, key=self._strength, reverse=True)
            if seed.error < self.how.worst and self.how.faintest * self._strength(seed) > sigma
        ]
        log.info("%d seeds beside %d rows", len(seeds), len(self.rows))
        asked = np.column_stack([known.weights[1], known.biases[1]])
        for seed in seeds:
            is_known = any(self._are_on(row, seed.x[None]).any() for row in asked)
            if is_known or any(self._are_on(row.row, seed.x[None]).any() for row in self.rows):
                continue
            if self._closes(seed):
                continue
            traced = self._traced(seed)
            if traced is not None:
                self._take(traced)

    def _closes(self, seed: Seed) -> bool:
        """Whether an open row meets a seed, for one choice of what is open, which it then has.

        At the seed the row's sum is 0, and its gradient has the seed's direction: d equations.
        """
        on, d = self.W @ seed.x + self.b > 0, len(seed.x)
        across = np.eye(d) - np.outer(seed.normal, seed.normal)
        A = np.vstack([features(seed.x[None], self.W, self.b), np.zeros((d, len(on) + 1))])
        A[1:, :-1] = across @ (self.W * on[:, None]).T
        for j, row in enumerate(self.rows):
            if not 0 < row.n_open < d - 1:
                continue
            _, s, V = np.linalg.svd(A @ row.undetermined)
            rank = int((s > self.how.told * np.linalg.norm(self.W)).sum())
            told = row.undetermined @ V[:rank].T
            theta = row.row - told @ np.linalg.lstsq(A @ told, A @ row.row, rcond=None)[0]
            gradient = np.linalg.norm((on * theta[:-1]) @ self.W)
            error = self.how.close + self.how.slack * seed.error
            # Equations beyond those that it solves contradict a row of another neuron.
            if error ** (d - rank) > self.how.chance:
                continue
            if rank and np.linalg.norm(A @ theta) <= error * gradient:
                points = np.vstack([row.points, seed.x])
                self.rows[j] = TracedRow(theta, row.undetermined @ V[rank:].T, points, row.seed)
                return True
        return False

    def _strength(self, seed: Seed) -> float:
        return float(np.linalg.norm(seed.column / self.noise.unit))

    def _traced(self, seed: Seed) -> TracedRow | None:
        """The row of a seed; None where it is not found again."""
        # What is open of a row puts its surface where another trace may find it right.
        closed = [row.row for row in self.rows if not row.n_open]
        others = np.array(closed).reshape(-1, len(self.b) + 1)
        trace = Trace(
            self.W,
            self.b,
            others,
            seed,
            self.noise.unit,
            self.noise.relative,
            self.scale,
            self.rng,
            self.how.trace,
        )
        trace.run(self.ask)
        if not trace.is_found:
            return None
        return TracedRow(trace.theta, trace.undetermined, np.array(trace.points), seed)

    def _take(self, new: TracedRow) -> None:
        """Take a row in; of one that is there the one stays of which more is known."""
        for j, row in enumerate(self.rows):
            if any(
                self._are_on(one.row, other.points).mean() > self.how.same
                for one, other in ((row, new), (new, row))
            ):
                if new.n_open < row.n_open:
                    self.rows[j] = new
                return
        self.rows.append(new)

    def _are_on(self, row: FloatArray, X: FloatArray) -> BoolArray:
        """Which points are on a row's surface."""
        gradients = ((X @ self.W.T + self.b > 0) * row[:-1]) @ self.W
        off = np.abs(features(X, self.W, self.b) @ row)
        near = self.how.close * (1.0 + np.linalg.norm(X, axis=1))
        return np.asarray(off <= near * np.linalg.norm(gradients, axis=1))

    def _scale(self) -> float:
        """How large entries of known rows are whose gradients have norm 1."""
        V = np.array([row.row[:-1] for row in self.rows])
        on = self.samples.X[:500] @ self.W.T + self.b > 0
        sizes = np.array([np.linalg.norm((on * v) @ self.W, axis=1) for v in V])
        return float(np.median(np.sqrt((V**2).mean(axis=1)) / np.median(sizes, axis=1)))
