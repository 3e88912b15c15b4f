"""Two hidden layers from answers of few digits where the upper one is traced, then fitted.

Above a first layer that is wider than the input:

1. :mod:`revelu.recover.deep.wide_rows` finds the hyperplanes of the first layer.
2. Rows above are traced from points of their surfaces, before any sign below is known
   (:mod:`revelu.recover.deep.rough_traces`).  Where many traces go astray, rows are missing below.
3. They tell the signs of the first layer (:mod:`revelu.recover.deep.rough_signs`).
4. All layers are fitted to what explains most answers, lest neurons that are missing move others.
   Those are left to :mod:`revelu.recover.deep.rough_growth`.

Of a first layer that is no wider, signs are known and lines have shown points above it: step 2 is
enough, in coordinates of its rows.
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Damping, Iterative, Stop
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.line import Ask
from revelu.recover.deep.rough_signs import are_read, signed, signs_by_most
from revelu.recover.deep.rough_traces import RoughTraces, TraceSearch
from revelu.recover.deep.trace import Below, TraceTuning
from revelu.recover.deep.wide_rows import WideRows
from revelu.recover.method import Tell
from revelu.recover.refine.measured_rows import MeasuredRows
from revelu.recover.refine.network_fit import Automatic, Samples, fit
from revelu.recover.rows import Rows
from revelu.recover.subspace import Subspace

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Traced:
    """What traces have found."""

    network: Network
    """With an affine rest."""
    samples: Samples
    """Answers that it was fitted to."""
    n_unsure: int
    """Rows of the first layer whose sign no row tells for sure, or that none reads."""
    n_wrong: int = 0
    """So many of the answers, the last ones, were kept because a network was wrong there."""
    measured: MeasuredRows | None = None


def _narrow(farther: float = 0.0) -> RoughTraces:
    trace = TraceTuning(fewest=8.0, least=0.3, farther=farther)
    return RoughTraces(
        trace=trace,
        n_segments=(12,) * 10,
        spreads=(1.0, 1.5, 2.0, 2.0, 2.5) * 2,
        few=2,
        blurred=1e-3,
        astray=30,
        n_wrong=16,
        n_places=0,
        most_wrong=0.5,
    )


@dataclass(frozen=True)
class RoughUpper:
    """How upper rows are traced, above a first layer of any width."""

    rows: WideRows = field(default_factory=WideRows)
    """How the first layer is found."""
    traces: RoughTraces = field(default_factory=RoughTraces)
    narrow: RoughTraces = field(default_factory=_narrow)
    """How upper rows are traced, above a first layer that is wider than the input or that is not,
    where unknowns are few, surfaces close together and what a fit of all layers does not confirm is
    soon seen,"""
    narrow_beside: RoughTraces = field(default_factory=lambda: _narrow(farther=1.5))
    """and there how others are traced beside them where the network is wrong, far out as well."""
    n_searches: int = 6
    """Searches at most, before each but the first one"""
    n_lines: int = 6
    """more rows of the first layer are looked for on ``n_lines`` lines."""
    equations: float = 4.0
    """The outputs are fitted to ``equations`` answers for each unknown of the upper layer."""
    faint: float = 1e-3
    """A row below is read by one above if its weight is more than this share of the largest."""
    sure: float = 25.0
    """A sign below is told where the other one makes what rows leave larger by a factor of
    ``exp(sure)`` in all: six rows known to a hundredth, or four to a thousandth."""
    beyond: float = 3.0
    """Answers off by more than ``beyond`` times the median are forgotten"""
    n_fits: int = 6
    n_first_steps: int = 10
    n_steps: int = 3
    """in ``n_fits`` fits of all layers, whose steps are these: the first time, if normal equations
    are solved, and else,"""
    slow: float = 0.9
    settled: float = 1.0
    """fewer where one leaves more than this share of what the last has left of most, or most are
    right to ``settled`` errors."""
    damping: Damping = field(default_factory=lambda: Damping(1e-3))
    most_dense: int = 5000
    """which solve normal equations up to ``most_dense`` parameters,"""
    least_damping: Damping = field(default_factory=lambda: Damping(1e-4))
    """and with less damping where all answers count alike: then most are right,"""
    most_work: float = 1e12
    """up to ``most_work`` multiplications."""
    worst: float = 0.98
    falls: float = 0.1
    n_scales: int = 8
    """Where rows are measured all answers are fitted at ``n_scales`` scales at most, the first this
    quantile of what is left, each ``falls`` times the one before."""

    def find(
        self,
        ask: Ask,
        oracle: Oracle,
        noise: NoiseFloor,
        rng: np.random.Generator,
        tell: Tell,
        first: Rows,
    ) -> Traced | None:
        """Find rows above a first layer, and its signs; None where none is traced.

        Parameters
        ----------
        ask : callable, (n, d) -> (n, k)
            For lines, where answers have one error;
        oracle : Oracle
            for fits.
        """
        samples = Samples(np.empty((0, oracle.dim_in)), *np.empty((2, 0, len(noise.scale))))
        for turn in range(self.n_searches):
            below = Below(first.W, first.b, first.errors, is_signed=False)
            n = min(self.traces.n_told, self.traces.enough(below.size))
            samples = self._as_many(samples, oracle, noise, rng, n)
            search = TraceSearch(ask, noise, rng, tell, below, samples, self.traces)
            search.find()
            samples = search.samples
            found = self._signed(search) if search.rows else None
            is_sure = found is not None and not (found[1] or search.is_astray)
            if is_sure or turn + 1 == self.n_searches:
                break
            more = self.rows.lacking(
                ask, oracle.dim_in, noise, (first.W, first.b), rng, self.n_lines
            )
            if not len(more):
                break
            log.info("%d more rows of the first layer", len(more))
            first = first.joined(more)
        if found is None:
            return None
        upper, n_unsure, n_dropped = found
        n = int(self.equations * len(upper.rows) * upper.below.size / len(noise.scale))
        upper.samples = self._as_many(samples, oracle, noise, rng, n)
        samples, n_wrong = upper.answers
        network = upper.network()
        measured = upper.measured() if is_sure else None
        return Traced(network, samples, n_unsure + n_dropped + int(not is_sure), n_wrong, measured)

    def above(
        self,
        ask: Ask,
        noise: NoiseFloor,
        rng: np.random.Generator,
        tell: Tell,
        first: Rows,
        others: Rows,
        whole: Rows,
        samples: Samples,
    ) -> Traced | None:
        """Find rows above a first layer no wider than the input; None where none is traced.

        What lines have shown above it are seeds.  Its neurons are all that answers depend on, and
        so they are asked for in coordinates of its rows alone.

        Parameters
        ----------
        first : Rows
            Each as its neuron turns on.
        others : Rows
            Those that lines have shown above it,
        whole : Rows
            and those that lines through it have, in what it puts out.
        samples : Samples
            Answers that the outputs are fitted to.

        Returns
        -------
        Traced
            Both layers.
        """
        space = Subspace.of_rows(first.W)
        below = Below(space.coordinates(first.W), first.b, first.errors)
        inside = Samples(space.coordinates(samples.X), samples.Y, samples.sigma)
        search = TraceSearch(
            lambda Z: ask(space.points(Z)), noise, rng, tell, below, inside, self.narrow
        )
        if len(whole):
            search.confirm(replace(whole, X=space.coordinates(whole.X)))
        log.info("%d of %d rows confirmed", len(search.rows), len(whole))
        search.find_from(
            replace(others, W=space.coordinates(others.W), X=space.coordinates(others.X))
        )
        search.find()
        if not search.rows:
            return None
        asked, n_wrong = search.answers
        # What was asked of the first layer's neurons alone is an input, too.
        X = np.vstack([samples.X, space.points(asked.X[len(samples.X) :])])
        network = space.in_all_coordinates(search.network())
        return Traced(network, Samples(X, asked.Y, asked.sigma), 0, n_wrong)

    def _signed(self, search: TraceSearch) -> tuple[TraceSearch, int, int]:
        """The same as the first layer's neurons turn on; how many are unsure; how many none reads.

        Of a row that is dropped it is open whether a neuron reads it that is missing.
        """
        below, rows = search.below, search.rows
        m, A = len(below.b), np.array([row.row for row in rows])
        turned, margins = signs_by_most(A[:, :m], A[:, m:-1], below.W)
        kept = are_read(rows, self.faint)
        log.info("signs told by margins of %.3g and more", margins[kept].min(initial=np.inf))
        upper = TraceSearch(
            search.ask,
            search.noise,
            search.rng,
            search.tell,
            *(below, search.samples, self.traces),
        )
        upper.below, upper.rows = signed(below, rows, turned, kept)
        upper.wrong = search.wrong
        return upper, int((margins[kept] < self.sure).sum()), int((~kept).sum())

    @staticmethod
    def _as_many(
        samples: Samples, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, n: int
    ) -> Samples:
        """Answers to fit to, ``n`` at least."""
        n -= len(samples.X)
        if n <= 0:
            return samples
        X = rng.choice([1.0, 1.5], n)[:, None] * rng.standard_normal((n, oracle.dim_in))
        X = oracle.in_float32(X)
        return samples.joined(Samples.answered(X, oracle(X), noise))

    def _by_most(self, network: Network, samples: Samples) -> Samples:
        """The same with larger errors where more is left, which forgets what is far off."""
        left = np.abs(samples.residual(network))
        typical = np.maximum(self.beyond * np.median(left, axis=0), 1.0)
        return samples.forgiving(left, typical)

    def refined(
        self,
        network: Network,
        samples: Samples,
        measured: MeasuredRows | None = None,
        *,
        is_first: bool = False,
    ) -> Network:
        """Fit all layers to what explains most answers, beside rows that are measured."""
        is_dense = network.n_parameters <= self.most_dense
        n_steps = self.n_first_steps if is_first and is_dense else self.n_steps
        for _ in range(self.n_fits):
            before = self.typical(network, samples)
            if before <= self.settled:
                break
            some = self._by_most(network, samples)
            solver = Automatic(Iterative(60), self.most_dense, self.most_work)
            network = fit(network, some, Stop(n_steps), solver, self.damping, measured).network
            log.info("left of all layers' fit: %.3g errors", self.typical(network, samples))
            if self.typical(network, samples) > self.slow * before:
                break
        return network

    @staticmethod
    def typical(network: Network, samples: Samples) -> float:
        """What is left of the answers, in errors: the median."""
        return float(np.median(np.abs(samples.residual(network))))

    def fitted(
        self, network: Network, samples: Samples, measured: MeasuredRows | None = None
    ) -> Network:
        """Fit all layers to all answers, beside rows that are measured.

        These count as beside the worst that is left, at first: what surfaces leave open is to
        explain what is wrong, before what they tell gives way.
        """
        solver = Automatic(Iterative(60), self.most_dense, self.most_work)
        how, usual = (Stop(self.n_steps), solver, self.least_damping), np.inf
        if measured is None:
            return fit(network, samples, *how).network
        for _ in range(self.n_scales):
            left = np.abs(samples.residual(network)).max(axis=1, keepdims=True)
            usual = min(self.falls * usual, float(np.quantile(left, self.worst)))
            usual = max(usual, float(np.median(left)), 1.0)
            some = samples.forgiving(left, self.beyond * usual)
            network = fit(network, some, *how, replace(measured, usual=usual)).network
            if usual == 1.0:
                break
        return network
