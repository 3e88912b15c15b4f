"""Two hidden layers, the first wider than the input, from answers of few digits: walks, then fits.

1. :mod:`revelu.recover.deep.wide_rows` finds the hyperplanes of the first layer.
2. Walks along the surfaces of upper neurons, as in float64 but with wider ranges, read their rows,
   and these tell the signs of the first layer.
3. Where many answers are wrong then, and all signs are sure, neurons that are often on are missing:
   those are traced one by one (:mod:`revelu.recover.deep.rough_traces`).
4. Else fainter kinks show in what these rows leave of the answers: more walks.
5. All layers are fitted to what explains most answers, lest neurons that are missing move others.
   Those are left to :mod:`revelu.recover.deep.rough_growth`.
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Damping, Iterative, Stop
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.gradient import CheckedGradients
from revelu.recover.deep.frame import Frame
from revelu.recover.deep.layer_rows import LayerRows
from revelu.recover.deep.layers import Layers, LayerSearch, Level
from revelu.recover.deep.rough_outputs import RoughOutputs
from revelu.recover.deep.rough_traces import RoughTraces, TracedRow, TraceSearch
from revelu.recover.deep.seeds import Seed, SeedSearch
from revelu.recover.deep.segments import CriticalPoints, SegmentScan
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.surface import RayTuning
from revelu.recover.deep.walk import WalkTuning
from revelu.recover.deep.wide_rows import WideRows
from revelu.recover.method import Tell
from revelu.recover.refine.network_fit import Automatic, Samples, fit
from revelu.recover.rows import Rows
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


def _walk() -> WalkTuning:
    return WalkTuning(
        rays=RayTuning(known=3e-3),
        narrowest=2e-3,
        blur=160.0,
        blurred_turn=300.0,
        rounding=1e-6,
        farthest=12.0,
        far_off=1e-2,
        sure=1e-2,
        exact=1e-5,
        caution=3.0,
        seed_caution=4.0,
        rough_seed=2.0,
        same_jump=1e-2,
        vague=0.1,
        precise=1e-4,
        worst=0.02,
        lost=0.3,
        wary=True,
        n_flat=8,
        n_flat_tests=1,
        n_rounds=10,
        n_last=3,
        tries=((0.5, 6.0), (0.2, 16.0), (0.08, 40.0)),
        found=0.35,
        found_if_open=0.35,
        found_early=0.3,
    )


def _search() -> LayerSearch:
    scan = SegmentScan(side=3e-3, shortest=1e-3, edge=0.02, pair=0.2, max_rounds=8)
    gradients = CheckedGradients((0.4, 0.1, 0.03))
    seeds = SeedSearch(scan, gradients, single=0.1, precise=0.1)
    walk = _walk()
    return LayerSearch(
        walk=walk,
        mending_walk=walk,
        close=3e-4,
        same=1e-3,
        seeds=seeds,
        faint=1e-3,
        narrow=np.inf,
        at_once=1,
        far_off=1e-2,
        astray=6,
    )


@dataclass(frozen=True)
class Walked:
    """What walks have found.

    Attributes
    ----------
    network : Network
        With an affine rest.
    samples : Samples
        Answers that it was fitted to.
    n_unsure : int
        Rows of the first layer whose sign no row tells for sure, or that none reads.
    errors : ndarray, shape (r,), optional
        Of the upper rows, relative to their sizes, where no trace went on from them.
    n_wrong : int
        So many of the answers, the last ones, were kept because a network was wrong there.
    """

    network: Network
    samples: Samples
    n_unsure: int
    errors: FloatArray | None = None
    n_wrong: int = 0


@dataclass(frozen=True)
class RoughWalks:
    """How upper rows are found above a first layer that is wider than the input.

    Attributes
    ----------
    rows : WideRows
        How the first layer is found.
    search : LayerSearch
        How upper rows are walked along.
    faintest : float
        Seeds are not walked from if an answer's error is more than this share of their bend.
    segments : tuple of int
        Segments of one round after the other, on which seeds are looked for until signs are told,
    n_lines : int
        after more rows of the first layer on so many lines where they are not,
    n_beside : int
        and so many at once on which those of what is left are.
    outputs : RoughOutputs
        How the outputs are fitted,
    equations : float
        to so many answers for each unknown of the upper layer.
    traces : RoughTraces
        How upper rows are traced that walks have missed,
    missing, few : float
        which is done where so many errors or more are left of more than this share of answers.
    sure : float
        A sign below is told where the other one makes what rows leave larger by a factor of
        ``exp(sure)`` in all: six rows known to a hundredth, or four to a thousandth.
    beyond : float
        Answers off by more than so many times the median are forgotten
    n_fits, n_first_steps, n_steps : int
        in fits of all layers, of so many steps each: the first time, if normal equations are
        solved, and else,
    slow, settled : float
        fewer where one leaves more than this share of what the last has left of most, or most are
        right to so many errors.
    damping, most_dense : Damping, int
        which solve normal equations up to so many parameters,
    least_damping, most_exact : Damping, int
        or up to so many, and with less damping, where all answers count alike: then most are right,
    most_work : float
        and up to so many multiplications.
    """

    rows: WideRows = field(default_factory=WideRows)
    search: LayerSearch = field(default_factory=_search)
    faintest: float = 1e-5
    segments: tuple[int, ...] = (8, 8, 8)
    n_lines: int = 6
    n_beside: int = 8
    outputs: RoughOutputs = field(default_factory=RoughOutputs)
    equations: float = 4.0
    traces: RoughTraces = field(default_factory=RoughTraces)
    missing: float = 1000.0
    few: float = 0.02
    sure: float = 25.0
    beyond: float = 3.0
    n_fits: int = 6
    n_first_steps: int = 10
    n_steps: int = 3
    slow: float = 0.9
    settled: float = 1.0
    damping: Damping = field(default_factory=lambda: Damping(1e-3))
    most_dense: int = 4000
    least_damping: Damping = field(default_factory=lambda: Damping(1e-4))
    most_exact: int = 5000
    most_work: float = 1e12

    def find(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, tell: Tell, first: Rows
    ) -> Walked | None:
        """Find the first layer's signs and the rows above it; None where none is walked along."""
        layers = Beside(oracle, noise, rng, self.search, tell, self.faintest)
        level = self._level(oracle.dim_in, first)
        for i, n in enumerate(self.segments):
            is_last = i + 1 == len(self.segments)
            layers.search = replace(self.search, astray=np.inf) if is_last else self.search
            layers.find_rows(level, (n,))
            if level.walks and (signs_by_most(level.rows, level.frame)[1] >= self.sure).all():
                break
            if is_last:
                break
            # Walks above a layer that lacks a row go astray, and tell no signs.
            layer = first.W, first.b
            more = self.rows.lacking(oracle, oracle.dim_in, noise, layer, rng, self.n_lines)
            if len(more):
                log.info("%d more rows of the first layer", len(more))
                first = first.joined(more)
                layers = Beside(oracle, noise, rng, self.search, tell, self.faintest)
                level = self._level(oracle.dim_in, first)
        if not level.walks:
            return None
        n_below = len(level.frame.b)
        layers.drop_unread(level)
        # Of a row that was dropped it is open whether a neuron reads it that is missing.
        n_dropped = n_below - len(level.frame.b)
        n_unsure = int((~self._sign(layers, level)).sum())
        samples = self._asked(layers, len(level.walks) + 6, level.frame.size)
        # Above signs that are sure a trace finds more than a walk, and sooner.
        off = np.abs(samples.residual(self._network(level, samples))).max(axis=1)
        if not n_unsure and (off > self.missing).mean() > self.few:
            traced = self._traced(layers, level, samples, n_dropped)
            if traced is not None:
                return traced
            # A row below is not right to the digits of the answers, which fits make it.
            n_unsure += 1
        network = self._walked_beside(layers, level, samples)
        errors = [
            np.inf if walk.estimate.n_undetermined else walk.estimate.spread for walk in level.walks
        ]
        return Walked(network, samples, n_unsure + n_dropped, np.array(errors))

    @staticmethod
    def _level(d: int, first: Rows) -> Level:
        """The layer above rows.  Pieces are looked at first: few seeds are measured well."""
        frame = Frame(Stack(d), first.W, first.b)
        return Level(frame, np.zeros(first.W.shape, dtype=bool), has_others=True)

    def _asked(self, layers: "Beside", n_rows: int, size: int) -> Samples:
        """Answers enough for so many rows of so many unknowns."""
        noise, oracle = layers.noise, layers.oracle
        n = int(self.equations * n_rows * size / len(noise.scale))
        X = self._drawn(n, oracle.dim_in, layers.rng)
        return Samples(X, oracle(X), np.outer(noise.growth(X) / np.sqrt(2.0), noise.errors))

    def _traced(
        self, layers: "Beside", level: Level, samples: Samples, n_dropped: int
    ) -> Walked | None:
        """Trace the rows that walks have missed, and fit the upper layer to more answers.

        None where traces go astray.
        """
        rows = level.rows
        walked = [
            TracedRow(np.append(v, c), walk.estimate.undetermined, walk.points.X, walk.seed)
            for v, c, walk in zip(rows.l, rows.c, level.walks, strict=True)
        ]
        search = TraceSearch(
            layers.oracle,
            layers.noise,
            layers.rng,
            layers.tell,
            level.frame.stack,
            samples,
            self.traces,
            walked,
        )
        network = search.find()
        if search.is_astray:
            return None
        n_more = len(search.rows) - len(walked)
        if n_more > 0:
            samples = samples.joined(self._asked(layers, n_more, level.frame.size))
        n_wrong = 0
        if search.wrong is not None:
            samples, n_wrong = samples.joined(search.wrong), len(search.wrong.X)
        network = self.traces.refined(network, samples)
        return Walked(network, samples, n_dropped, n_wrong=n_wrong)

    def _walked_beside(self, layers: "Beside", level: Level, samples: Samples) -> Network:
        """Walk along what the rows found leave, where they are strong; return the network."""
        d = layers.oracle.dim_in
        while True:
            network, n_before = self._network(level, samples), len(level.walks)
            layers.start_beside(network)
            layers.look(level, *layers.rng.standard_normal((2, self.n_beside, d)))
            layers.walk_from(level, set())
            if len(level.walks) == n_before:
                return network

    @staticmethod
    def _drawn(n: int, d: int, rng: np.random.Generator) -> FloatArray:
        X = rng.choice([1.0, 1.5], n)[:, None] * rng.standard_normal((n, d))
        return np.asarray(X.astype(np.float32).astype(np.float64))

    def _sign(self, layers: Layers, level: Level) -> BoolArray:
        """Give the rows below the signs that most rows tell, and say which are sure.

        Then each row above has fewer unknowns.
        """
        frame = level.frame
        turned, margins = signs_by_most(level.rows, frame)
        log.info("signs told by margins of %.3g and more", margins.min(initial=np.inf))
        signs = np.where(turned, -1.0, 1.0)
        level.frame = Frame.of(frame.stack.with_layer(frame.W * signs[:, None], frame.b * signs))
        layers.rebase(level.walks, level.frame)
        worst = 5.0 * self.search.walk.worst
        level.walks = [walk for walk in level.walks if walk.estimate.spread <= worst]
        return np.asarray(margins >= self.sure)

    def _network(self, level: Level, samples: Samples) -> Network:
        """The rows, what they leave open, and the outputs: as they explain most answers."""
        stack, rows = level.frame.stack, np.column_stack([level.rows.l, level.rows.c])
        H, Y = stack.outputs(samples.X), samples.Y
        open_ = [walk.estimate.undetermined for walk in level.walks]
        told, C = self.outputs.fit(H, Y, samples.sigma, rows, open_)
        r = len(rows)
        weights, biases = [*stack.weights, told[:, :-1], C[:r].T], [*stack.biases, told[:, -1]]
        return Network(weights, [*biases, C[-1]], skip=(C[r:-1].T, np.zeros(Y.shape[1])))

    def _by_most(self, network: Network, samples: Samples) -> Samples:
        """The same with larger errors where more is left, which forgets what is far off."""
        left = np.abs(samples.residual(network))
        typical = np.maximum(self.beyond * np.median(left, axis=0), 1.0)
        return Samples(samples.X, samples.Y, samples.sigma * np.hypot(1.0, left / typical))

    def refined(self, network: Network, samples: Samples, *, is_first: bool = False) -> Network:
        """Fit all layers to what explains most answers."""
        is_dense = network.n_parameters <= self.most_dense
        n_steps = self.n_first_steps if is_first and is_dense else self.n_steps
        for _ in range(self.n_fits):
            before = self.typical(network, samples)
            if before <= self.settled:
                break
            some = self._by_most(network, samples)
            solver = Automatic(Iterative(60), self.most_dense, self.most_work)
            stop = Stop(n_steps)
            network = fit(network, some, stop, solver=solver, damping=self.damping).network
            if self.typical(network, samples) > self.slow * before:
                break
        return network

    @staticmethod
    def typical(network: Network, samples: Samples) -> float:
        """What is left of the answers, in errors: the median."""
        return float(np.median(np.abs(samples.residual(network))))

    def fitted(self, network: Network, samples: Samples) -> Network:
        """Fit all layers to all answers."""
        solver, stop = Automatic(Iterative(60), self.most_exact, self.most_work), Stop(self.n_steps)
        return fit(network, samples, stop, solver=solver, damping=self.least_damping).network


@dataclass
class Beside(Layers):
    """Layers of which a part is known: answers are less what that gives.

    Kinks of neurons that are known do not hide fainter ones then.

    Attributes
    ----------
    faintest : float
        Seeds are forgotten if an answer's error is more than this share of their bend.
    known : Network, optional
    """

    faintest: float = 0.0
    known: Network | None = field(default=None, init=False)

    def start_beside(self, network: Network) -> None:
        """Ask beside a network from now on; seeds seen before were those of more."""
        self.known = network
        self.seeds, self.places = [], CriticalPoints.none(len(self.basis))

    def ask(self, X: FloatArray) -> FloatArray:
        """Answers, less those of what is known."""
        Y = super().ask(X)
        return Y if self.known is None else np.asarray(Y - self.known(X @ self.basis))

    def ordered(self, seeds: list[Seed]) -> list[Seed]:
        """The strongest first: next to them others are faint."""
        return sorted(seeds, key=self._strength, reverse=True)

    def _strength(self, seed: Seed) -> float:
        return float(np.linalg.norm(seed.column / self.noise.unit))

    def look(self, level: Level, starts: FloatArray, ends: FloatArray) -> None:
        """Look for seeds on segments, and measure all: else it is not known which is strongest."""
        super().look(level, starts, ends)
        self.measured(len(self.places))
        self.seeds = [
            seed for seed in self.seeds if self.faintest * self._strength(seed) > self.sigma
        ]


def signs_by_most(
    rows: LayerRows, frame: Frame, *, least: float = 1e-4
) -> tuple[BoolArray, FloatArray]:
    """Which rows below are turned round, as most rows' linear parts tell; some may be false.

    Least squares, reweighted to what most agree on, then one by one: the sum of logarithms of what
    is left counts a false row little.

    Returns
    -------
    turned : ndarray of bool, shape (m,)
    margins : ndarray, shape (m,)
        By how much that sum grows with each turned otherwise.
    """
    size = np.abs(rows.v) @ np.linalg.norm(frame.W, axis=1)
    m = rows.v.shape[1]

    def left(phi: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.norm(rows.l + (rows.v * phi) @ frame.W, axis=1) / size)

    weights = 1.0 / size
    for _ in range(30):
        A = ((rows.v * weights[:, None])[:, None, :] * frame.W.T[None]).reshape(-1, m)
        phi = np.linalg.lstsq(A, -(rows.l * weights[:, None]).ravel(), rcond=1e-10)[0]
        weights = 1.0 / size / (left(phi) + 10.0 * least)
    phi = np.round(phi).clip(0.0, 1.0)
    best, improves, margins = np.log(left(phi) + least).sum(), True, np.zeros(m)
    while improves:
        improves = False
        for i in range(m):
            other = phi.copy()
            other[i] = 1.0 - other[i]
            margins[i] = np.log(left(other) + least).sum() - best
            if margins[i] < -1e-9:
                best, phi, improves = best + margins[i], other, True
    return np.asarray(phi > 0.5), margins
