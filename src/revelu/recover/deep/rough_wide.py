"""Two hidden layers of any widths from answers of few digits.

Neurons above a first layer no wider than the input are fitted as
:mod:`revelu.recover.deep.rough_layers` says.  Of many, fits may lose some, and above a wider first
layer there is nothing to begin with: they are traced (:mod:`revelu.recover.deep.rough_upper`).  A
fit of all layers makes them exact, and where the network is wrong rows are corrected
(:mod:`revelu.recover.deep.rough_weights`), and neurons that are rarely on are traced, or grow
(:mod:`revelu.recover.deep.rough_growth`), until fresh answers agree.
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.network import Network, add_networks
from revelu.recover.deep.rough_growth import RoughGrowth
from revelu.recover.deep.rough_layers import RoughLayers, RoughLayersSearch
from revelu.recover.deep.rough_traces import TracedRow, TraceSearch
from revelu.recover.deep.rough_upper import RoughUpper
from revelu.recover.deep.rough_weights import WeightCorrections
from revelu.recover.deep.trace import Below
from revelu.recover.fit.pruning import drop_idle
from revelu.recover.method import Candidate, Disagreement, Layer, Why
from revelu.recover.refine.measured_rows import MeasuredRows
from revelu.recover.refine.network_fit import NetworkFit, Samples, top_of, with_top
from revelu.recover.rows import Rows
from revelu.recover.subspace import Subspace
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RoughWide(RoughLayers):
    """How two hidden layers are fitted."""

    few_rows: int = 4
    """Upper layers are left at fits if lines show fewer rows of theirs than this;"""
    upper: RoughUpper = field(default_factory=RoughUpper)
    """others are traced, and all above a first layer that is wider than the input."""
    corrections: WeightCorrections = field(default_factory=WeightCorrections)
    """How weights are corrected that few answers tell."""
    growth: RoughGrowth = field(default_factory=RoughGrowth)
    """How neurons are found that no trace has found,"""
    faint: float = 3.0
    """and others fitted beside them where traces end and the median of what is left is more than
    ``faint`` errors,"""
    n_joins: int = 3
    gains: float = 0.5
    """so often at most, as long as each time leaves no more than this share of it."""
    idle: float = 0.3
    """Traced rows are left out that others replace to within ``idle`` errors."""
    wide_equations: float = 2.5
    """Answers of these for each parameter."""
    wide_spreads: tuple[float, ...] = (1.0,)
    """They are asked at inputs of such standard deviations: what is wrong farther out is more, and
    hides it."""
    n_wide_fresh: int = 1500
    """Answers that a network is looked at with first,"""
    looks: float = 2.5
    narrow_looks: float = 1.0
    """and ``looks`` more for each parameter, or where the first is no wider than the input,"""
    few_wrong: int = 24
    """where fewer than ``few_wrong`` of these are wrong."""
    n_far_out: int = 128
    far_out: float = 2.0
    """Where none is wrong, ``n_far_out`` at inputs of that deviation, if the first is no wider, as
    many where an affine rest that is left is extreme, and those that tell weights."""
    hopeless: float = 0.5
    """The search ends where more than this share of fresh answers is wrong,"""
    less: float = 0.9
    """or where no less than this share of what was left is"""
    max_wide_stale: int = 2
    """in ``max_wide_stale`` rounds in a row."""
    an_answer: float = 2.0
    """What is left of drawn inputs counts alone where it differs by so much: by one answer that is
    off by e times more."""
    sharp: float = 3.0
    """It is whole only where answers count as wrong from ``sharp`` times the least on."""
    max_wide_repairs: int = 4
    """A repair is as many rounds again;"""
    nearly: float = 0.02
    """there is none, nor another start, where no larger share of inputs is wrong in the end."""


@dataclass
class RoughWideSearch(RoughLayersSearch):
    """Two hidden layers of any widths, fitted to answers."""

    how: RoughWide = field(default_factory=RoughWide)
    grows: bool = field(default=False, init=False)
    """Whether the network is fitted to most answers and grows where it is wrong: where its upper
    layer was traced, or is large."""
    has_many: bool = field(default=False, init=False)
    """Whether lines show many upper neurons."""
    layers: tuple[Layer, ...] = field(default=(), init=False)
    """The first layer, as lines have shown it, where all signs are told."""
    is_nearly_right: bool = field(default=False, init=False)
    """Whether so few inputs are wrong that no more is done."""
    measured: MeasuredRows | None = field(default=None, init=False)
    """What traces tell of hidden rows."""
    seen: Samples = field(init=False)
    """Answers that a network was looked at with, of which fits see the wrong ones alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.seen = self._everything()

    def _wide(self, n_rows: int) -> Candidate:
        """Both layers where the first is wider than the input."""
        upper = self.how.upper
        if not n_rows or self.paid.subspace is not None:
            return super()._wide(n_rows)
        first, _ = upper.rows.find(self._answers, self._dim, self.noise, self.rng)
        log.info("%d rows of a first layer wider than the input", len(first))
        found = None
        if len(first) > self._dim:
            found = upper.find(self._answers, self.oracle, self.noise, self.rng, self.tell, first)
        if found is None:
            return self._ended(
                f"{len(first)} hyperplanes of a first layer were found, and no row above them"
            )
        self.network = network = found.network
        samples, self.measured = found.samples, found.measured
        # Rows of lines are exact; a fit that lacks neurons above moves them.
        self.layers = () if found.n_unsure else ((network.weights[0], network.biases[0]),)
        self.grows, self.X, self.Y = True, samples.X, samples.Y
        self.is_drawn = np.arange(len(self.X)) < len(self.X) - found.n_wrong
        self.tell(f"fitting what is missing of {network.architecture[-2]} upper neurons")
        return self._settled(self._with_faint(network))

    def _both(self, first: Rows, others: Rows) -> Candidate:
        """Fit an upper layer, or trace it where it has many neurons or fits fail; then both."""
        self.grows = self.is_nearly_right = False
        n_above = len(self.how.starts.find(first, others)[1])
        self.has_many = len(first) > 1 and n_above > self._most_fitted(first)
        said = super()._both(first, others)
        is_over = said.why in {Why.EXPLAINED, Why.HYPERPLANES_END} or n_above < self.how.few_rows
        return said if is_over else self._traced_both(first, others)

    def _settled_above(self, first: Rows, upper: NetworkFit, *, is_told: bool) -> Candidate:
        """Fit both layers; to most answers where the upper one may lack some of its neurons.

        What fits of few neurons leave with random ones beside them may be of rows below, too.
        """
        is_of_below = not self.has_many and upper.cost >= self.how.close
        if is_told or is_of_below:
            return super()._settled_above(first, upper, is_told=is_told)
        if upper.cost >= self.how.near:
            return self._ended("no upper layer explains the answers")
        self.grows, network = True, self._started(first, upper.network)
        self._ask_fresh(self._n_fitted(network) - len(self.X))
        return self._settled(self._with_faint(network))

    def _traced_both(self, first: Rows, others: Rows) -> Candidate:
        """Trace an upper layer, then fit both."""
        upper, space = self.how.upper, self.paid.subspace
        self.tell(f"tracing neurons above {len(first)}")
        Z, Y = self._asked_below(upper.narrow.enough(len(first) + 1))
        some = Samples.answered(Z, Y, self.noise)
        target = self._answers, self.noise, self.rng, self.tell
        found = upper.above(*target, first, others, self.whole, some)
        is_near = found is not None and (
            upper.typical(found.network, some) <= self.how.promising * some.spread()
        )
        if not is_near and self._is_deeper(first):
            return self._deeper(first)
        if found is None:
            return self._ended("no row above the first layer was traced")
        network, X = found.network, found.samples.X
        if space is not None:
            network, X = space.in_all_coordinates(network), space.points(X)
        self.grows, self.X, self.Y = True, X, found.samples.Y
        self.is_drawn = np.arange(len(X)) < len(X) - found.n_wrong
        self._ask_fresh(self._n_fitted(network) - len(self.X))
        return self._settled(self._with_faint(network))

    def _with_faint(self, network: Network) -> Network:
        """A network that explains most answers, what no trace has found joined to it.

        What blurs all answers are rows below that are vague, which a fit mends, or faint neurons
        that are missing, which a fit makes up for by other rows.
        """
        upper, everything = self.how.upper, self._everything()
        best, least = network, np.inf
        # Where nothing is missing one fit mends what is vague; where something is, many are slow.
        once = replace(upper, n_fits=1)
        for start in (once.refined(network, everything, self.measured, is_first=True), network):
            found = upper.refined(self._joined(start), everything, self.measured, is_first=True)
            found = upper.refined(self._without_idle(found), everything, self.measured)
            if upper.typical(found, everything) < least:
                best, least = found, upper.typical(found, everything)
            if least <= self.how.faint:
                break
        return best

    def _without_idle(self, network: Network) -> Network:
        """A network without upper neurons that others replace, as rows that are no neuron's."""
        everything = self._everything()
        right = everything.take(~self.how.growth.wrong(network, everything))
        above = Samples(network.activations(right.X)[-2], right.Y, right.sigma)
        found = with_top(network, drop_idle(top_of(network), above, self.how.idle))
        log.info("%s: %s without what is idle", network, found)
        return found

    def _n_fitted(self, network: Network) -> int:
        """How many answers all layers are fitted to."""
        return int(self.how.wide_equations * network.n_parameters / network.dim_out)

    def _joined(self, network: Network) -> Network:
        """A network with faint neurons joined to it, as long as most answers gain by that.

        What is rarely on leaves much, but of few answers, which are not looked at.
        """
        upper, everything = self.how.upper, self._everything()
        for _ in range(self.how.n_joins):
            before = upper.typical(network, everything)
            if before <= self.how.faint:
                break
            is_right = ~self.how.growth.wrong(network, everything)
            network = self._spare().joined(network, everything.take(is_right))
            if upper.typical(network, everything) > self.how.gains * before:
                break
        return network

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Fit to where the network was wrong, too."""
        if self.grows and self.is_nearly_right:
            return None
        is_over = self.grows and self.n_repairs == self.how.max_wide_repairs
        if is_over and self.network is not None:
            self.is_nearly_right = seen.share >= 1.0 - self.how.nearly
            wrong = 1.0 - seen.share
            return self._unresolved(self.network, wrong) if self.is_nearly_right else None
        return super().repair(seen)

    def _settled(self, network: Network) -> Candidate:
        """Let the network grow where it is wrong until fresh answers agree."""
        if not self.grows and self._is_large(network):
            self.grows = True
            network = self.how.upper.refined(network, self._everything(), is_first=True)
        growth, n_stale = self.how.growth, 0
        if not self.grows:
            said = super()._settled(network)
            if said.why is not Why.EXPLAINED or not self._is_wrong_far_out():
                return said
            self.grows, network = True, said.network or network
        # What is rarely off is rarely on when it is turned round.
        often_on = (network.preactivations(self.X[self.is_drawn])[1] > 0).mean(axis=0) > 0.5
        self.network = network = network.turn_round(often_on)
        for turn in range(self.how.max_rounds):
            if not network.architecture[-2]:
                break
            self._ask(growth.where_rare(network, self.X[self.is_drawn], self.rng))
            self._ask(growth.where_untold(network, self.X[self.is_drawn], self.rng))
            network = growth.without_false(network, self._everything())
            wrong_seen = self._look(network)
            log.info("%s: %d of %d wrong", network, wrong_seen.sum(), len(wrong_seen))
            rest, best = self._sizes_of_wrong(network, self.network)
            n_stale = 0 if rest < self.how.less * best or not turn else n_stale + 1
            if rest < best:
                self.network = network
            network = self.network
            is_sharp, wrong = self._is_sharp(network), growth.wrong(network, self._everything())
            if is_sharp and not wrong.any():
                whole = self._whole(network)
                if not self._is_narrow(network) or not self._is_wrong_far_out():
                    return whole
                network = self.network
                continue
            if wrong_seen.mean() > self.how.hopeless or n_stale == self.how.max_wide_stale:
                break
            if wrong.any():
                self.tell(f"{wrong.sum()} of {len(wrong):,} answers are wrong: growing there")
                growth.around(self._asked, network, self._everything(), self.rng)
                network = self._corrected(network)
                more = self._traced(network) if is_sharp or self._is_narrow(network) else network
                if more is not network:
                    network = more
                    continue
                network = self._mended_or_grown(network) if is_sharp else self._grown(network)
                if is_sharp and not growth.wrong(network, self._everything()).any():
                    continue
            some = self._evenly(network)
            if not is_sharp:
                network = self._spare().joined(network, some)
            network = self.how.upper.refined(network, some, self.measured, is_first=not is_sharp)
        wrong = self._wrong_of(self.network, growth.least)
        share = float(wrong.mean()) if len(wrong) else 1.0
        self.is_nearly_right = share <= self.how.nearly
        return self._unresolved(self.network, share)

    def _sizes_of_wrong(self, *networks: Network) -> list[float]:
        """What networks leave of inputs drawn, where that differs, or else of all asked.

        Of what is asked around wrong answers a neuron may explain most that is none.
        """
        growth, seen = self.how.growth, self.seen
        wrong = np.any([self._wrong_of(network, growth.least) for network in networks], axis=0)
        if wrong.any():
            drawn = seen.take(wrong)
            sizes = [wrong.sum() * growth.size_of_wrong(network, drawn) for network in networks]
            # An answer that noise makes wrong is as wrong for each of them.
            if max(sizes) - min(sizes) > self.how.an_answer:
                return sizes
        asked = seen.joined(self._everything())
        return [growth.size_of_wrong(network, asked) for network in networks]

    def _is_large(self, network: Network) -> bool:
        """Whether steps of a fit take seconds each, but are not left to iterations.

        A few that forget what is far off come closer than many that do not: one rare neuron that
        is missing moves all others.
        """
        return self.how.most_dense < network.n_parameters <= self.how.upper.most_dense

    def _unresolved(self, network: Network, share: float) -> Candidate:
        """The best network, wrong at that share of inputs.

        Wrong answers that were seen count, though a certificate's checks may miss them.
        """
        said = f"the layers that were fitted are wrong at {share:.2%} of inputs"
        worst = float(np.abs(self.Y - network(self.X)).max())
        return replace(self._ended(said), worst_error=worst)

    def _corrected(self, network: Network) -> Network:
        """A network with rows as wrong answers tell them, if less is wrong then."""
        everything, growth = self._everything(), self.how.growth
        given = growth.size_of_wrong, growth.least, self.rng
        return self.how.corrections.corrected(network, everything, *given)

    def _traced(self, network: Network) -> Network:
        """A network with neurons that are traced from where it is wrong, if less is wrong then.

        A trace's row has a gradient of norm 1 at its seed, which has shown how much it bends there.
        """
        growth, everything = self.how.growth, self._everything()
        wrong = growth.wrong(network, everything)
        if not wrong.any() or wrong.all():
            return network
        # A first layer of few neurons hears no more than what it reads.
        space = Subspace.of_rows(network.weights[0])
        X, inside = space.coordinates(self.X), space.inside(network)
        upper, m = self.how.upper, len(inside.biases[0])
        # Fits leave rows of the errors that answers have.
        below = Below(inside.weights[0], inside.biases[0], np.full(m, self.noise.relative))
        search = TraceSearch(
            lambda Z: self._answers(space.points(Z)),
            *(self.noise, self.rng, self.tell, below),
            Samples(X, self.Y, everything.sigma),
            upper.narrow_beside if space.dim < self.oracle.dim_in else upper.traces,
            held=np.column_stack([network.weights[1], network.biases[1]]),
        )
        search.look_around(inside, X[wrong], X[~wrong])
        log.info("%d neurons traced where answers are wrong", len(search.rows))
        if search.rows:
            together = self._instead(network, search.rows, everything)
            network = min((network, together), key=lambda n: growth.size_of_wrong(n, everything))
        for row in search.rows:
            tried = [*self._beside(network, row), self._instead(network, [row], everything)]
            network = min((network, *tried), key=lambda n: growth.size_of_wrong(n, everything))
        return self._mended(network) if search.rows else network

    @staticmethod
    def _beside(network: Network, found: TracedRow) -> list[Network]:
        """The network with a row: it is on where that is wrong, and off where that is right."""
        (*v, c), column = found.row, found.seed.column
        neurons = [
            Network([side * np.array([v]), column[:, None]], [[side * c], 0.0 * column])
            for side in (1.0, -1.0)
        ]
        return [with_top(network, add_networks(top_of(network), one)) for one in neurons]

    def _instead(self, network: Network, found: list[TracedRow], samples: Samples) -> Network:
        """The network with rows that others stood for, roughly: outputs fitted anew leave these.

        A neuron that is nearly always on is made of others that are, but for where it is off.
        """
        (V, A), (c, _) = network.weights[1:], network.biases[1:]
        held = [np.empty((V.shape[1] + 1, 0))] * len(V)
        rows, C = self.how.upper.narrow.open_.fit(
            network.activations(samples.X)[1],
            samples.Y,
            np.broadcast_to(samples.sigma, samples.Y.shape),
            np.vstack([np.column_stack([V, c]), *(row.row for row in found)]),
            [*held, *(row.undetermined for row in found)],
        )
        r = len(rows)
        skip = (C[r:-1].T, np.zeros(len(A)))
        top = Network([rows[:, :-1], C[:r].T], [rows[:, -1], C[-1]], skip)
        return with_top(network, top)

    def _grown(self, network: Network) -> Network:
        """A network with what it lacks where it is wrong."""
        return self.how.growth.grown(network, self._everything(), self.is_drawn, self.rng)

    def _mended_or_grown(self, network: Network) -> Network:
        """A network with weights as wrong answers tell them, or with neurons besides.

        A fit makes up for a faint neuron by many rows; so where answers tell one that is missing,
        it is looked for beside the rows as they are, too.
        """
        everything, growth = self._everything(), self.how.growth
        if not growth.wrong(network, everything).any():
            return network
        mended = self._mended(network)
        if not growth.wrong(mended, everything).any():
            return mended
        found = [self._grown(mended)]
        if mended is not network and growth.tell_a_row(network, everything):
            found.append(self._grown(network))
        return min(found, key=lambda n: growth.size_of_wrong(n, everything))

    def _mended(self, network: Network) -> Network:
        """A network with weights as wrong answers tell them, too, if fewer are wrong then.

        Where no neuron is missing a weight is wrong that few of the answers have told.
        """
        everything, growth = self._everything(), self.how.growth
        limit, wrong = growth.limit(network, everything), growth.wrong(network, everything)
        found = self.how.upper.fitted(network, self._evenly(network, wrong), self.measured)
        n_left = int((np.abs(everything.residual(found)).max(axis=1) > limit).sum())
        log.info("%d wrong, %d after a fit", wrong.sum(), n_left)
        return found if n_left < self.how.less * wrong.sum() else network

    def _ended(self, obstacle: str) -> Candidate:
        ended = replace(super()._ended(obstacle), layers=self.layers)
        return replace(ended, why=Why.NEARLY) if self.is_nearly_right else ended

    def _is_sharp(self, network: Network) -> bool:
        """Whether an answer counts as wrong that is off by little more than noise."""
        growth = self.how.growth
        return growth.limit(network, self._everything()) <= self.how.sharp * growth.least

    def _is_narrow(self, network: Network) -> bool:
        """Whether the first layer is no wider than the input: then its rows are exact."""
        return len(network.biases[0]) <= self.oracle.dim_in

    def _fresh(self, n_before: int) -> Samples:
        """Answers that were asked since, before the network had seen any."""
        X, Y = self.X[n_before:], self.Y[n_before:]
        return Samples.answered(X, Y, self.noise)

    def _look(self, network: Network) -> BoolArray:
        """Look at fresh answers, and keep those at which a network is wrong; say which were.

        No others are asked for while those are wrong that were seen before, and many enough, or
        that were asked for fits.
        """
        everything, growth = self._everything(), self.how.growth
        limit = growth.limit(network, everything)
        looks = self.how.narrow_looks if self._is_narrow(network) else self.how.looks
        many = int(looks * network.n_parameters)
        is_wrong = len(self.seen.X) > 0 and bool(growth.wrong(network, everything).any())
        for n in () if is_wrong else (min(self.how.n_wide_fresh, many // 2), many):
            n_wrong = int(self._wrong_of(network, limit).sum())
            if not n_wrong or (n_wrong < self.how.few_wrong and len(self.seen.X) < many):
                self._see(self.rng.standard_normal((n, self.oracle.dim_in)))
        return self._keep_wrong(network, limit)

    def _see(self, X: FloatArray) -> None:
        """Look at answers, at inputs that float32 holds exactly."""
        X = self.oracle.in_float32(X)
        self.seen = self.seen.joined(Samples.answered(X, self.oracle(X), self.noise))

    def _is_wrong_far_out(self) -> bool:
        """Look at answers where neurons are on more often that are rarely on elsewhere.

        Those are farther out; where one is on together with one below as at few answers; and where
        an affine rest that is left is extreme: it is what neurons give that are nearly always on,
        which are off there.
        """
        network, n, d = self.network, self.how.n_far_out, self.oracle.dim_in
        growth = self.how.growth
        if network is None:
            return False
        X = self.how.far_out * self.rng.standard_normal((n, d))
        X = np.vstack([X, growth.where_untold(network, self.X, self.rng)])
        if network.skip is not None:
            drawn = self.rng.standard_normal((growth.n_inputs(d), d))
            rest = network.activations(drawn)[-2] @ network.skip[0].T
            order = np.argsort(rest @ self.rng.standard_normal(rest.shape[1]), kind="stable")
            X = np.vstack([X, drawn[order[: n // 2]], drawn[order[-(n // 2) :]]])
        before = len(self.seen.X)
        self._see(X)
        return bool(self._keep_wrong(network, growth.least)[before:].any())

    def _keep_wrong(self, network: Network, limit: float) -> BoolArray:
        """Keep those of the answers that were looked at that are wrong, and say which they are."""
        wrong = self._wrong_of(network, limit)
        more = self.seen.X[wrong]
        new = ~(more[:, None] == self.X[~self.is_drawn]).all(axis=2).any(axis=1)
        self.X = np.vstack([self.X, more[new]])
        self.Y = np.vstack([self.Y, self.seen.Y[wrong][new]])
        self.is_drawn = np.append(self.is_drawn, np.zeros(int(new.sum()), dtype=bool))
        return wrong

    def _wrong_of(self, network: Network, limit: float) -> BoolArray:
        """Which of the answers that were looked at are off by more than ``limit`` errors."""
        return np.asarray(np.abs(self.seen.residual(network)).max(axis=1) > limit)

    def _evenly(self, network: Network, wrong: BoolArray | None = None) -> Samples:
        """Answers to fit to, of which each upper neuron is on at as many, about; and wrong ones."""
        n, everything = self._n_fitted(network), self._everything()
        if n >= len(self.X):
            return everything
        on = network.preactivations(self.X)[1] > 0
        least = np.maximum(on.sum(axis=0), n / max(on.shape[1], 1))
        share = (on / least).sum(axis=1) + 1.0 / len(on)
        rows = self.rng.choice(len(on), n, replace=False, p=share / share.sum())
        if wrong is not None:
            rows = np.union1d(rows, np.flatnonzero(wrong))
        return everything.take(rows)

    @property
    def _spreads(self) -> tuple[float, ...]:
        return self.how.wide_spreads if self.grows else super()._spreads

    def _fitted(self, network: Network, samples: Samples, *, is_first: bool = False) -> Network:
        if not self.grows:
            return super()._fitted(network, samples, is_first=is_first)
        # What is explained is fitted to answers alone.
        return self.how.upper.fitted(network, samples)

    def _asked(self, X: FloatArray) -> tuple[Samples, BoolArray]:
        """Ask where a network is wrong, and keep it for fits; and which inputs were answered."""
        n_before = len(self.X)
        answered = self._ask(X, near=True)
        return self._fresh(n_before), answered

    def _whole(self, network: Network) -> Candidate:
        """Fit all layers to all answers, none of which is far off, and take out what is idle."""
        network = self._pruned(self._fitted(network, self._everything()))
        self.network = network = self._plain(network)
        off = self._off(network).max()
        log.info("%s: cost %.3g, off %.3g at most", network, self._cost(network), off)
        return self._explained(network)
