"""Two hidden layers from answers of few digits: rough rows, then one joint fit.

1. ``rough_rows`` finds the first layer, and rows of what is above it.
2. ``RoughStarts`` makes rows above it of these, and, where they are many or a fit from them
   leaves much, of rows that ``rough_above`` finds on lines through the first layer.
3. The upper layer is a network of one hidden layer in what the first puts out: fitted from those
   rows, beside random ones, and pruned.
4. All layers are fitted at once, which forgives errors of a hundredth in every weight, to ever
   more answers until fresh ones agree.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from revelu.network import Network
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.gauss_newton import Iterative, Stop
from revelu.recover.deep.rough_above import RoughAbove, RoughStarts
from revelu.recover.deep.rough_rows import RoughRows
from revelu.recover.deep.rough_spare import SpareNeurons, size_of_rest, without_least
from revelu.recover.fit.growth import fit_at_once
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import prune, with_output_layer
from revelu.recover.method import Candidate, Disagreement, Search, Why
from revelu.recover.paid import Paid
from revelu.recover.refine.network_fit import Automatic, NetworkFit, Samples, fit, top_of, with_top
from revelu.recover.rows import Rows
from revelu.recover.signs import SKIP_KEPT, resolve_signs
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RoughLayers:
    """How two hidden layers are fitted."""

    first: RoughRows = field(default_factory=RoughRows)
    """How the first one is found."""
    above: RoughAbove = field(default_factory=RoughAbove)
    """How it is told that there are more than two."""
    n_searches: int = 2
    """Searches for rows of the first layer, more where no upper layer explains the answers."""
    most_unsigned: int = 2
    """Rows of which both ways are tried to turn on."""
    starts: RoughStarts = field(default_factory=RoughStarts)
    """How rows above it are begun with."""
    upper_equations: float = 6.0
    whole_equations: float = 4.0
    most_told: int = 3
    """Equations a parameter of the upper layer's fit, fewer where lines have shown rows whole and
    the first layer is not narrow; as many of an answer as it has outputs, but no more than so
    many,"""
    n_extra: tuple[int, ...] = (4, 8)
    """with as many random neurons beside the seeds' as these say in turn, where fewer leave
    much,"""
    n_starts: int = 3
    """from ``n_starts`` random starts each,"""
    close: float = 5.0
    """until one leaves no more than this many errors,"""
    near: float = 50.0
    """or ``near``, where there are random ones."""
    most_fitted: float = 4.0
    """Upper layers of no more neurons than this for each output and neuron below are fitted from
    what lines through the inputs show, and, above a first layer that is not narrow, with random
    ones besides, before lines are measured through that."""
    max_steps: int = 100
    """Of each fit,"""
    slow: float = 0.01
    """the first of which ends where three steps gain less than this share each."""
    promising: float = 0.05
    """One that leaves more than this share of the answers' variation is no start;"""
    equations: float = 1.5
    """and all layers are fitted to ``equations`` equations a parameter, at least,"""
    most_equations: float = 3.0
    """and at most: those where the network errs most, and others."""
    max_joint_steps: tuple[int, int] = (60, 20)
    """Steps of that, of the first fit and of later ones: neurons that are wrong take many,"""
    most_dense: int = 2500
    """and parameters up to which they solve normal equations,"""
    most_work: float = 1e10
    """and multiplications."""
    n_spare: int = 3
    """Neurons that are added at once where a fit leaves more than noise."""
    limit: float = 1.5
    """The reduced cost that noise alone may leave."""
    spreads: tuple[float, ...] = (1.0, 1.5, 2.5, 2.5)
    """Standard deviations of the inputs: neurons that are rarely on are so less far out."""
    rests: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6)
    """What may be left of the affine rest where it counts as none, relative to the neurons'
    maps."""
    n_fresh: int = 500
    """Fresh answers that a fit has to agree with,"""
    max_rounds: int = 10
    """in ``max_rounds`` rounds."""
    few: float = 4.0
    """Where it leaves more, neurons that are on at no more inputs than this times their unknowns
    are taken out if others then leave less."""
    below: float = 0.1
    """Where neurons added to the upper layer leave more than this share of what was left, others
    are added to the first,"""
    n_rough_steps: int = 10
    """from fits of ``n_rough_steps`` steps,"""
    rather_above: float = 0.5
    """and taken if they leave less than this share of what those above leave."""
    stake: float = 10.0
    """Answers that were explained count ``stake`` times more than others do."""
    gain: float = 0.3
    """Of rounds those count that leave less than this share of what was left before,"""
    max_stale: int = 3
    """and ``max_stale`` in a row that do not end the fits."""
    per_side: float = 2.5
    """Answers an unknown of a neuron's row on both sides of its hyperplane,"""
    n_drawn: int = 20_000
    """chosen among ``n_drawn`` inputs where too few are there,"""
    n_pools: int = 5
    """or ``n_pools`` times as many where these are too few."""
    n_around: int = 150
    """Inputs asked around those that disagree,"""
    n_spare_answers: int = 5
    """``n_spare_answers`` more around each than a row has entries,"""
    around: float = 0.1
    """how far from it, in standard deviations, or as much farther as it lies farther out."""
    max_repairs: int = 6


@dataclass
class RoughLayersSearch(Search):
    """Two hidden layers, fitted to answers."""

    how: RoughLayers = field(default_factory=RoughLayers)
    network: Network | None = field(default=None, init=False)
    """The best so far."""
    X: FloatArray = field(init=False)
    Y: FloatArray = field(init=False)
    """Shape (n, d) and (n, k).  What was asked for fits of all layers."""
    is_drawn: BoolArray = field(init=False)
    """Shape (n,).  Whether at inputs drawn and not where a network was wrong."""
    below: tuple[FloatArray, FloatArray] = field(init=False)
    """The same for fits of the upper one, in the coordinates that the first is known in."""
    has_spare_below: bool = field(default=False, init=False)
    """Whether neurons were added to the first layer that no line has shown."""
    whole: Rows = field(init=False)
    """Rows above the first layer, in what it puts out."""

    def __post_init__(self) -> None:
        k = len(self.noise.scale)
        self.X, self.Y = np.empty((0, self.oracle.dim_in)), np.empty((0, k))
        self.whole = Rows.none(0, k)
        self.is_drawn, self.below = np.zeros(0, dtype=bool), (np.empty((0, self._dim)), self.Y)

    def propose(self) -> Candidate:
        """Find the first layer, the upper one above it, and fit both."""
        return self.until_limit(self._found)

    def cut_short(self, why: Why, said: str) -> Candidate:
        """What was found, where queries, time or answers have ended the search."""
        return Candidate(self.network, why, obstacles=(said,))

    def _found(self) -> Candidate:
        first, others, said = None, self.paid.rows, self._ended("")
        for _ in range(self.how.n_searches):
            self.tell("measuring rows of two hidden layers on lines")
            first, others = self.how.first.find(
                self._answers, self._dim, self.noise, self.rng, others, first
            )
            if not 0 < len(first) <= self._dim:
                return self._wide(len(first))
            for turned in self._turned(first):
                said = self._both(turned, others)
                if said.why in {Why.EXPLAINED, Why.HYPERPLANES_END}:
                    return said
        return said

    def _wide(self, n_rows: int) -> Candidate:
        """Where no row is found, or more than inputs have dimensions."""
        need = "where answers have few digits it has to be no wider than the input"
        return self._ended(f"{n_rows} hyperplanes of a first layer were found: {need}")

    def _turned(self, first: Rows) -> Iterator[Rows]:
        """Rows of the first layer, as their neurons turn on; both ways where that does not show.

        Where many do not, one way only: each doubles what is to be tried.
        """
        signs = self.how.first.signs(self._answers, self.noise, first, self.rng)
        unsigned = np.flatnonzero(signs == 0)
        log.info("%d rows of the first layer, %d unsigned", len(first), len(unsigned))
        n_ways = 2 ** len(unsigned) if len(unsigned) <= self.how.most_unsigned else 1
        for way in range(n_ways):
            turned = np.where(signs < 0, -1, 1)
            turned[unsigned[(way >> np.arange(len(unsigned))) & 1 == 1]] = -1
            yield first.turned(turned)

    def _both(self, first: Rows, others: Rows) -> Candidate:
        """Fit an upper layer, from other starts where that leaves much, then both layers."""
        best, n_added, how = None, 0, self.how
        self.whole = Rows.none(len(first), len(self.noise.scale))
        # A joint fit takes far longer than another start, which may be better.
        for turn, (upper, n_extra) in enumerate(self._uppers(first, others)):
            if upper is not None and (best is None or upper.cost < best.cost):
                best, n_added = upper, n_extra
            # What several starts have left is of rows below.
            if best is not None and best.cost < (how.near if n_extra else how.close):
                break
            is_near = best is not None and best.cost < how.near
            if not (turn or is_near) and self._is_deeper(first):
                return self._deeper(first)
        if best is None:
            return self._ended("no upper layer explains the answers")
        return self._settled_above(first, best, is_told=best.cost < how.close and not n_added)

    def _uppers(self, first: Rows, others: Rows) -> Iterator[tuple[NetworkFit | None, int]]:
        """Fits of the upper layer from one start after another, and what was added to it."""
        how, starts = self.how, self.how.starts.find(first, others)
        # Of many neurons, what lines show of each is not enough.
        if len(first) == 1 or len(starts[1]) <= self._most_fitted(first):
            yield self._upper(first, starts, 0), 0
            if len(first) > how.above.narrow:
                yield self._upper(first, starts, how.n_extra[0]), how.n_extra[0]
        if len(first) > 1:
            self.tell(f"measuring rows above {len(first)} neurons on lines")
            self.whole = how.above.last(self._answers, self.noise, first, self.rng)
            # Of few neurons below, what lines through the inputs show is but a part of these rows.
            starts = self.whole.W, self.whole.b
            if len(first) > how.above.narrow:
                starts = how.starts.find(first, others, self.whole)
            yield self._upper(first, starts, 0), 0
        for n_extra in how.n_extra:
            yield self._upper(first, starts, n_extra), n_extra

    def _most_fitted(self, first: Rows) -> float:
        return self.how.most_fitted * len(first) * len(self.noise.scale)

    def _settled_above(self, first: Rows, upper: NetworkFit, *, is_told: bool) -> Candidate:
        """Fit both layers, the upper one from a fit of it; whether that has all of its rows."""
        del is_told
        return self._settled(self._started(first, upper.network))

    def _is_deeper(self, first: Rows) -> bool:
        """Whether hyperplanes end above the first layer, too."""
        return self.how.above.some_end(self._answers, self.noise, first, self.rng)

    def _deeper(self, first: Rows) -> Candidate:
        """Where there are more than two layers, the first one being paid for."""
        ends = f"hyperplanes end above a first layer of {len(first)} neurons"
        return Candidate(None, Why.HYPERPLANES_END, obstacles=(ends,), paid=Paid(first=first))

    def _started(self, rows: Rows, upper: Network) -> Network:
        """Known rows, and a network above them."""
        W, b = self._first_weights(rows), rows.b
        return Network([W, *upper.weights], [b, *upper.biases], skip=upper.skip)

    def _first_weights(self, first: Rows) -> FloatArray:
        """Weights of the first layer, by inputs."""
        space = self.paid.subspace
        return first.W if space is None else np.asarray(first.W @ space.basis / space.scale)

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Fit to where the network was wrong, too; until that explains the answers no more."""
        # Without a neuron above the first layer there is nothing to repair.
        if self.network is None or not self.network.architecture[-2]:
            return None
        if self.n_repairs == self.how.max_repairs:
            return None
        self.n_repairs += 1
        network = self.network

        def go_on() -> Candidate:
            self._ask(seen.X, near=True)
            said = self._settled(network)
            if said.why is not Why.EXPLAINED:
                self.n_repairs = self.how.max_repairs
            return said

        return self.until_limit(go_on)

    def _ended(self, obstacle: str) -> Candidate:
        return Candidate(self.network, Why.UNRESOLVED, obstacles=(obstacle,))

    def _upper(
        self, first: Rows, starts: tuple[FloatArray, FloatArray], n_extra: int
    ) -> NetworkFit | None:
        """Step 3: the layer above known rows, as a network of what they put out."""
        W, b, error = first.W, first.b, float(np.median(first.errors))
        V, c = starts
        is_whole = len(self.whole) and len(first) > self.how.above.narrow
        equations = self.how.whole_equations if is_whole else self.how.upper_equations
        m, k, width = len(b), len(self.noise.scale), len(c)
        n_weights = (width + n_extra) * (m + k + 1) + k * (m + 1)
        each = min(k, self.how.most_told)
        Z, Y = self._asked_below(int(np.ceil(equations * n_weights / each)))
        H = np.maximum(Z @ W.T + b, 0.0)
        # What errors of the rows make of the answers, beside the answers' own.
        samples = Samples.near(H, Y, self.noise)
        samples = replace(samples, sigma=np.hypot(samples.sigma, 2.0 * error * Y.std(axis=0)))
        empty = Network(
            [V, np.zeros((k, width))], [c, np.zeros(k)], (np.zeros((k, m)), np.zeros(k))
        )
        start = with_output_layer(empty, samples)
        self.tell(f"fitting {width + n_extra} neurons above {m} to {len(H):,} answers")
        best = self._upper_fit(start, samples, n_extra)
        for _ in range(self.how.n_starts - 1 if n_extra else 0):
            if best.cost < self.how.close:
                break
            found = self._upper_fit(start, samples, n_extra)
            best = min(best, found, key=lambda found: found.cost)
        log.info("%d neurons more: cost %.3g", n_extra, best.cost)
        if best.cost > self.how.promising * samples.spread():
            return None
        # The rows below err, too: neurons that gain less than they do are the joint fit's.
        return prune(best, samples, Price(max(2.0, 1.3 * best.cost), known=True))

    def _upper_fit(self, start: Network, samples: Samples, n_extra: int) -> NetworkFit:
        stop = Stop(self.how.max_steps, self.how.slow, goal=self.how.limit)
        if not n_extra:
            return fit(start, samples, stop)
        return fit_at_once(
            self.rng,
            samples,
            start.architecture[1] + n_extra,
            self.how.limit,
            start,
            max_steps=self.how.max_steps,
        )

    def _settled(self, network: Network) -> Candidate:
        """Step 4: fit all layers until fresh answers agree; these come last of all."""
        self.network, n_stale, least = network, 0, np.inf
        is_pruned = network.skip is None
        for turn in range(self.how.max_rounds):
            need = int(np.ceil(self.how.equations * network.n_parameters / network.dim_out))
            self._ask_fresh(need - len(self.X))
            self._ask(self._rare(network, self.X))
            samples, everything = self._telling(network), self._everything()
            n = len(samples.X)
            self.tell(f"fitting {network.n_parameters:,} parameters to {n:,} answers")
            before, network = network, self._fitted(network, samples, is_first=turn == 0)
            if not self._explains(network):
                # A fit to what a missing neuron makes moves the others there.
                network = min(before, network, key=lambda found: size_of_rest(found, everything))
                rest = self._rest_beside(network)
                network = min(network, self._wider(network, samples, rest), key=rest)
                is_pruned = False
            explains = self._explains(network)
            if explains and not is_pruned:
                # A neuron too many would fit what others leave, at these inputs alone.
                network, is_pruned = self._pruned(network), True
            self.network = network
            bad, cost = self._wrong(network, self.how.n_fresh), self._cost(network)
            log.info("%s: cost %.3g, %d wrong", network, cost, len(bad))
            if explains and not len(bad):
                self.network = network = self._without_spare_below(self._plain(network))
                return self._explained(network)
            if not (explains or network.architecture[-2]):
                break
            n_stale = 0 if explains or cost < self.how.gain * least else n_stale + 1
            least = min(cost, least)
            if n_stale == self.how.max_stale:
                break
            if len(bad):
                # As many around each as determine a neuron's row, and the worst come first.
                n_around = network.architecture[1] + self.how.n_spare_answers
                near = np.repeat(bad[: max(self.how.n_around // n_around, 1)], n_around, axis=0)
                # Far out pieces are as much larger.
                around = self.how.around * np.maximum(self.noise.growth(near) / np.sqrt(2.0), 1.0)
                near += around[:, None] * self.rng.standard_normal(near.shape)
                self._ask(near, near=True)
        return self._ended("the layers that were fitted do not explain fresh answers")

    def _explained(self, network: Network) -> Candidate:
        """A network that explains all answers."""
        stands_for = f"{SKIP_KEPT}: it stands for upper neurons that were on wherever it was asked"
        notes = () if network.skip is None else (stands_for,)
        return Candidate(network, Why.EXPLAINED, notes=notes, warnings=(self._resolution(),))

    def _rare(self, network: Network, seen: FloatArray) -> FloatArray:
        """Inputs on those sides of hyperplanes that too few of the inputs ``seen`` lie on."""
        lacks = []
        hidden = network.weights[: network.n_hidden]
        for W, Z in zip(hidden, network.preactivations(seen), strict=False):
            wanted = int(np.ceil(self.how.per_side * (W.shape[1] + 1) / network.dim_out))
            lacks.append(wanted - np.array([(Z > 0).sum(axis=0), (Z < 0).sum(axis=0)]))
        found = [np.empty((0, network.dim_in))]
        for _ in range(self.how.n_pools):
            if not any((lack > 0).any() for lack in lacks):
                break
            pool = self.rng.standard_normal((self.how.n_drawn, network.dim_in))
            rows: list[int] = []
            for lack, Z in zip(lacks, network.preactivations(pool), strict=False):
                for i, j in np.argwhere(lack > 0):
                    on_side = np.flatnonzero((-Z if i else Z)[:, j] > 0)[: lack[i, j]]
                    lack[i, j] -= len(on_side)
                    rows += list(on_side)
            found.append(pool[np.unique(rows).astype(np.intp)])
        return np.vstack(found)

    def _cost(self, network: Network) -> float:
        """The reduced cost, but for answers that were asked where a network was wrong.

        Rounding is larger there than elsewhere.
        """
        X, Y = self.X[self.is_drawn], self.Y[self.is_drawn]
        return Samples.answered(X, Y, self.noise).reduced_cost(network)

    def _off(self, network: Network) -> FloatArray:
        """How far off a network is at each input, in errors of the answers, shape (n,)."""
        return np.asarray(np.abs(self._everything().residual(network)).max(axis=1))

    def _explains(self, network: Network) -> bool:
        """Whether a network leaves no more than noise, anywhere."""
        most = SIGMAS * self.how.limit
        return self._cost(network) <= self.how.limit and bool((self._off(network) <= most).all())

    def _everything(self) -> Samples:
        return Samples.answered(self.X, self.Y, self.noise)

    def _telling(self, network: Network) -> Samples:
        """Choose answers to fit to: those where a network errs most, and some of all others."""
        everything = self._everything()
        n = int(np.ceil(self.how.most_equations * network.n_parameters / network.dim_out))
        if n >= len(self.X):
            return everything
        order = np.argsort(-self._off(network), kind="stable")
        rest = self.rng.permutation(order[n // 3 :])[: n - n // 3]
        rows = np.concatenate([order[: n // 3], rest])
        return everything.take(rows)

    def _wrong(self, network: Network, n: int) -> FloatArray:
        """Ask fresh inputs, and return all at which a network is wrong, the worst first.

        Where none is wrong, more show both sides of every neuron: a row that is fitted where its
        neuron is rarely on may be wrong elsewhere.
        """
        n_before = len(self.X)
        self._ask_fresh(n)
        if self._explains(network):
            self._ask(self._rare(network, self.X[n_before:]))
        off = self._off(network)
        worst = np.argsort(-off, kind="stable")
        return np.asarray(self.X[worst[off[worst] > SIGMAS * self.how.limit]])

    def _fitted(self, network: Network, samples: Samples, *, is_first: bool = False) -> Network:
        """Fit all layers; iterations hardly move the weights of rare neurons."""
        n = Iterative.as_random(max(samples.n_equations / network.n_parameters, 1.2))
        iterations = Iterative(n, rtol=1e-3, white=True)
        solver = Automatic(iterations, self.how.most_dense, self.how.most_work)
        first, later = self.how.max_joint_steps
        stop = Stop(first if is_first else later, rtol=0.02, patience=3)
        return fit(network, samples, stop, solver=solver).network

    def _rest_beside(self, network: Network) -> Callable[[Network], float]:
        """How large what others leave is; what a network explains must not be bought by them.

        Answers that were asked where one was wrong are many, in few places.
        """
        everything = self._everything()
        is_right = self.is_drawn & (self._off(network) <= SIGMAS * self.how.limit)
        weights = np.where(is_right, self.how.stake, 1.0)
        return partial(size_of_rest, samples=everything, weights=weights)

    def _wider(
        self, network: Network, samples: Samples, rest: Callable[[Network], float]
    ) -> Network:
        """Add neurons that explain what is left, of the layer that explains more; fit all.

        Neurons that are on at few inputs may stand for one that is missing: they go first, if that
        leaves less in the end.
        """
        everything, spare = self._everything(), self._spare()
        n_on = (network.preactivations(self.X)[-1] > 0).sum(axis=0)
        few = n_on <= self.how.few * (network.architecture[-3] + 1)
        starts = [network]
        if few.any() and not few.all():
            starts.append(with_top(network, top_of(network).take(~few)))
        above = min((spare.above(start, everything) for start in starts), key=rest)
        above = self._fitted(above, samples)
        is_deeper = network.n_hidden > 2 or self.paid.subspace is not None
        has_none_above = not network.architecture[-2]
        if is_deeper or has_none_above or rest(above) <= self.how.below * rest(network):
            return above
        # What a neuron of the first layer makes shows only once those above it move with it.
        below = self._fitted(spare.below(network, everything), samples)
        # What is missing above is explained a little by neurons below, too.
        if rest(below) > self.how.rather_above * rest(above):
            return above
        self.has_spare_below = True
        return below

    def _spare(self) -> SpareNeurons:
        """What adds neurons."""
        how = self.how
        return SpareNeurons(
            self.rng,
            how.limit,
            how.n_spare,
            how.n_starts,
            how.n_rough_steps,
            how.n_spare_answers,
        )

    def _pruned(self, network: Network) -> Network:
        """Take out neurons that are not needed, those of the first layer that were added, too."""
        network = self._without_spare_below(network)
        everything, top = self._everything(), top_of(network)
        above = Samples(network.activations(self.X)[-2], self.Y, everything.sigma)
        smaller = prune(NetworkFit(top, above.cost(top)), above, Price(2.0, known=True)).network
        return self._replaced(network, smaller)

    def _without_spare_below(self, network: Network) -> Network:
        """Take out neurons of the first layer, if any were added, as long as others do without."""
        while self.has_spare_below:
            # One of a few: what a neuron is worth is told roughly before the others are fitted.
            ranks = range(min(self.how.n_spare, network.architecture[1]))
            each = (without_least(network, self.X, rank) for rank in ranks)
            fitted = (self._fitted(smaller, self._everything()) for smaller in each)
            smaller = next((found for found in fitted if self._explains(found)), None)
            if smaller is None:
                break
            network = smaller
        return network

    def _plain(self, network: Network) -> Network:
        """Turn upper neurons until no affine rest is left."""
        top = top_of(network)
        # The fewer digits the rows have, the more choices of signs leave nothing.
        turned = (resolve_signs(top, rtol, 0.3, 1.0)[0] for rtol in self.how.rests)
        return self._replaced(network, next((t for t in turned if t.skip is None), top))

    def _replaced(self, network: Network, top: Network) -> Network:
        """Put other layers on top and fit all to all answers, as far as these agree."""
        everything = self._everything()
        found = self._fitted(with_top(network, top), everything)
        return found if self._explains(found) else network

    def _resolution(self) -> str:
        """What such answers cannot show."""
        sigma = float(self.noise.errors.max())
        return (
            f"the answers are {self.noise.kind}, with errors of about {sigma:.1g}: any neuron that "
            f"contributes less than {self.how.limit * sigma:.1g} (root mean square over "
            f"inputs {self.oracle.where}) would be missing"
        )

    @property
    def _dim(self) -> int:
        """How many coordinates the first layer is looked for in."""
        return self.oracle.dim_in if self.paid.subspace is None else self.paid.subspace.dim

    def _answers(self, Z: FloatArray) -> FloatArray:
        """Answers at those coordinates, as lines take them; NaN where they err by more."""
        space = self.paid.subspace
        X = Z if space is None else space.points(Z)
        Y = self.oracle(X)
        return np.where(self.noise.is_told(X, Y)[:, None], Y, np.nan)

    def _asked_below(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Coordinates and answers, ``n`` at least; without a subspace those of all fits."""
        space = self.paid.subspace
        if space is None:
            self._ask_fresh(n - len(self.X))
            return self.X, self.Y
        Z, Y = self.below
        if n > len(Z):
            spreads = self.rng.choice(self.how.spreads, n - len(Z))[:, None]
            more = spreads * self.rng.standard_normal((n - len(Z), space.dim))
            X = self.oracle.in_float32(space.points(more))
            self.below = np.vstack([Z, space.coordinates(X)]), np.vstack([Y, self.oracle(X)])
        return self.below

    @property
    def _spreads(self) -> tuple[float, ...]:
        """Standard deviations of inputs that are drawn."""
        return self.how.spreads

    def _ask_fresh(self, n: int) -> None:
        if n > 0:
            spreads = self.rng.choice(self._spreads, n)[:, None]
            self._ask(spreads * self.rng.standard_normal((n, self.oracle.dim_in)))

    def _ask(self, X: FloatArray, *, near: bool = False) -> BoolArray:
        """Ask what a float32 target is asked exactly; ``near`` where a network was wrong.

        Returns
        -------
        ndarray of bool, shape (n,)
            Which were answered: a target may be saturated.
        """
        X = self.oracle.in_float32(X)
        Y = self.oracle(X)
        answered = np.asarray(np.isfinite(Y).all(axis=1))
        self.X, self.Y = np.vstack([self.X, X[answered]]), np.vstack([self.Y, Y[answered]])
        self.is_drawn = np.append(self.is_drawn, np.full(int(answered.sum()), not near))
        return answered
