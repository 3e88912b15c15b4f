"""Neurons that a network of two hidden layers lacks, found at inputs where it is wrong.

Where most rows are exact a network is right, to the digits of the answers, wherever no neuron is
on that is missing or badly known.  So what is wrong is found without touching what is right:

1. From inputs at which the network is wrong random walks go where it is wrong in the same
   direction: neurons that are rarely on show there as often as wanted.
2. Neurons that are wrong at many inputs where they are on go, and those that give nothing; those
   that are right at most are held; the rest are free.
3. New neurons join those, one after another, each at first the affine function that the wrong
   answers nearest to one of them show.  Rows are fitted to what the held ones leave by least
   squares that forget what is far off, more and more of it (graduated non-convexity, Blake and
   Zisserman 1987), until what noise leaves is the measure.
4. Of the free ones those go that the others can do without.

Before that, neurons go that are rarely on and false: answers are more right without them.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from revelu.network import Network, add_networks
from revelu.numerics.float64 import TINY
from revelu.numerics.gauss_newton import Damping, Stop, normal_equations
from revelu.numerics.reweighting import LeastDeviations, reweighted
from revelu.recover.deep.rough_spare import size_of_rest
from revelu.recover.refine.network_fit import Samples, fit, top_of, with_top
from revelu.types import BoolArray, FloatArray, IntArray

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class _Rest:
    """What held neurons leave of answers above the first layer, and how far off is wrong."""

    X: FloatArray
    """Shape (n, d)."""
    samples: Samples
    """What the first layer puts out, and what is left above it."""
    limit: float
    """In errors of an answer."""
    was_right: BoolArray
    """Shape (n,).  Which answers the network explained before."""
    stake: float
    """So many times as much these count: wrong ones are drawn where a neuron is wrong, again and
    again, and must not be bought by others."""

    def off(self, free: Network) -> FloatArray:
        """How far off each answer is, in errors, shape (n,)."""
        return np.asarray(np.abs(self.samples.residual(free)).max(axis=1))

    def cost(self, free: Network) -> float:
        """What is left, answers that are far off counting little more than others."""
        costs = _forgiving(self.samples.residual(free) / self.limit)
        return float(costs.sum() + (self.stake - 1.0) * costs[self.was_right].sum())

    def less(self, free: Network) -> "_Rest":
        """The same less what neurons give."""
        samples = self.samples
        left = Samples(samples.X, samples.Y - free(samples.X), samples.sigma)
        return replace(self, samples=left)

    def wrong(self, free: Network) -> IntArray:
        """Answers that are not explained."""
        return np.flatnonzero(self.off(free) > self.limit)


@dataclass(frozen=True)
class RoughGrowth:
    """How neurons are found where a network is wrong."""

    typical: float = 30.0
    """An answer is wrong if it is off by ``typical`` times the median,"""
    blurred: float = 1000.0
    """or by the median itself if that is more than ``blurred`` errors,"""
    least: float = 20.0
    """and by ``least`` errors."""
    n_starts: int = 6
    n_walkers: int = 8
    n_steps: int = 12
    """Wrong inputs that random walks start from, walks from each, and their steps, as many as of a
    robust regression,"""
    step: float = 0.3
    """which put noise in the place of this share of an input, at first;"""
    max_walks: int = 3
    """so often at most, until as many answers are wrong as new rows are begun from."""
    n_drawn: int = 50_000
    most_numbers: float = 5e6
    """Neurons are asked about that are on at few inputs, of ``n_drawn`` that are drawn, or
    ``most_numbers`` numbers,"""
    few_told: int = 10
    n_each: int = 40
    """and where a neuron is on with one below as at fewer than ``few_told`` inputs, at
    ``n_each``;"""
    far_spreads: tuple[float, ...] = (1.0, 2.0, 5.0, 15.0)
    """above a first layer that is no wider than the input also at such: two that are never on
    together near the origin leave the weight between them open, and what is affine with it."""
    lost: float = 0.3
    """Neurons go that are wrong at a larger share of the inputs where they are on."""
    doubtful: float = 3.0
    """They are free if that share is ``doubtful`` times that of all inputs,"""
    suspect: float = 0.1
    """and this at least: what is wrong by one neuron alone is so at others' inputs, too,"""
    rare: float = 0.3
    """and they are on at no more than this share;"""
    known: float = 6.0
    """or if they are on at fewer right inputs than this times the entries of a row."""
    max_new: int = 3
    """Neurons that are added at once, at most,"""
    n_tries: int = 8
    """each the best of ``n_tries`` starts, fitted alone,"""
    n_together: int = 2
    """and of the best of them the one that leaves least when all are fitted at once,"""
    n_near: float = 3.0
    """from ``n_near`` wrong answers for each entry of a row,"""
    stake: float = 3.0
    """where answers that were right count ``stake`` times as much,"""
    gain: float = 0.97
    """kept if they leave less than this share of what was left."""
    far: float = 0.8
    """Wrong answers off by more than this share of them are forgotten from the first,"""
    n_scales: int = 5
    n_fit: int = 3
    """then others, at ``n_scales`` scales one after another, with ``n_fit`` steps at each."""
    every: int = 8
    """Of answers that are right where no neuron is on that is fitted, one of ``every`` is looked
    at."""
    damping: Damping = field(default_factory=lambda: Damping(1e-6))

    def limit(self, network: Network, samples: Samples) -> float:
        """How many errors an answer may be off."""
        median = float(np.median(np.abs(samples.residual(network)).max(axis=1)))
        # Where most answers are wrong, those that are off by more than most are looked at.
        return max(self.least, median * (1.0 if median > self.blurred else self.typical))

    def size_of_wrong(self, network: Network, samples: Samples) -> float:
        """What a network leaves of answers, what is right counting next to nothing."""
        sigma = self.least * samples.sigma
        return size_of_rest(network, Samples(samples.X, samples.Y, sigma))

    def wrong(self, network: Network, samples: Samples) -> BoolArray:
        """Which answers a network does not explain, shape (n,)."""
        off = np.abs(samples.residual(network)).max(axis=1)
        return np.asarray(off > self.limit(network, samples))

    def without_false(self, network: Network, samples: Samples) -> Network:
        """Take out neurons that are rarely on where answers are more right without them.

        Such neurons were fitted to few answers, and are wrong at others.
        """
        limit, k = self.limit(network, samples), network.dim_out
        while True:
            V, A = network.weights[-2:]
            out = np.maximum(network.preactivations(samples.X)[-1], 0.0)
            left, errors = samples.residual(network), np.broadcast_to(samples.sigma, (len(out), k))
            costs = _forgiving(left / limit)
            is_rare = (out > 0).mean(axis=0) <= self.rare
            more = np.full(len(V), np.inf)
            for j in np.flatnonzero(is_rare):
                on = out[:, j] > 0
                without = left[on] + out[on, j, None] * A[:, j] / errors[on]
                more[j] = (_forgiving(without / limit) - costs[on]).sum()
            if not (more < 0.0).any():
                return network
            false = int(more.argmin())
            log.info("a neuron that is on at %.2g of inputs is false", (out[:, false] > 0).mean())
            network = with_top(network, top_of(network).take(np.arange(len(V)) != false))

    def around(
        self,
        asked: Callable[[FloatArray], tuple[Samples, BoolArray]],
        network: Network,
        samples: Samples,
        rng: np.random.Generator,
    ) -> Samples:
        """Step 1: answers at inputs around those at which a network is wrong.

        Steps leave the Gaussian as it is: what is wrong far out is no matter.
        """
        limit, found = self.limit(network, samples), []
        for _ in range(self.max_walks):
            off = np.abs(samples.residual(network)).max(axis=1)
            found.append(self._walked(asked, network, samples.take(off > limit), limit, rng))
            samples = samples.joined(found[-1])
            if self.tell_a_row(network, samples):
                break
        return reduce(Samples.joined, found)

    def tell_a_row(self, network: Network, samples: Samples) -> bool:
        """Whether as many answers are wrong as a new row is begun from."""
        return int(self.wrong(network, samples).sum()) >= self._n_near(network.architecture[-3])

    def _n_near(self, width: int) -> int:
        """How many wrong answers a row is begun from, above a layer of this width."""
        return int(self.n_near * (width + 1))

    def _walked(
        self,
        asked: Callable[[FloatArray], tuple[Samples, BoolArray]],
        network: Network,
        wrong: Samples,
        limit: float,
        rng: np.random.Generator,
    ) -> Samples:
        """Answers at inputs that random walks from wrong ones have come by."""
        starts = rng.choice(len(wrong.X), min(self.n_starts, len(wrong.X)), replace=False)
        X = np.repeat(wrong.X[starts], self.n_walkers, axis=0)
        side = wrong.residual(network)[starts]
        side = np.repeat(side / np.linalg.norm(side, axis=1, keepdims=True), self.n_walkers, axis=0)
        shares, found = np.full(len(X), self.step), []
        for _ in range(self.n_steps):
            there, stays = asked(_beside(X, shares, rng))
            # Where the target is saturated no walk goes.
            goes_on = (there.residual(network) * side[stays]).sum(axis=1) > limit
            stays[stays] = goes_on
            X[stays] = there.X[goes_on]
            # What rises by as much as it falls has half of the steps stay.
            shares = np.minimum(shares * np.sqrt(np.where(stays, 2.0, 0.5)), 1.0)
            found.append(there)
        return reduce(Samples.joined, found)

    def where_rare(self, network: Network, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Inputs at which neurons are on, of each as many as the inputs ``X`` lack.

        A row that was fitted to answers around a few wrong inputs is seldom told by others, which
        are wrong if it is false.
        """
        lacks = int(self.known * network.architecture[1])
        lacks = lacks - (network.preactivations(X)[1] > 0).sum(axis=0)
        drawn = rng.standard_normal((self.n_drawn, network.dim_in))
        on = network.preactivations(drawn)[1] > 0
        rare = [int(j) for j in np.flatnonzero((lacks > 0) & on.any(axis=0))]
        found = [self._within(network, j, drawn[on[:, j]], int(lacks[j]), rng) for j in rare]
        return np.concatenate([X[:0], *found])

    def _within(
        self, network: Network, j: int, starts: FloatArray, n: int, rng: np.random.Generator
    ) -> FloatArray:
        """Gaussian inputs at which a neuron is on, walked to from some if there are no more.

        The walk leaves the Gaussian as it is where the neuron is on.
        """
        if len(starts) >= n:
            return starts[:n]
        X, found = starts[rng.integers(len(starts), size=self.n_walkers)], [starts]
        for turn in range(1, self.n_steps * (n // self.n_walkers + 1)):
            there = _beside(X, np.full(len(X), self.step), rng)
            stays = network.preactivations(there)[1][:, j] > 0
            X = np.where(stays[:, None], there, X)
            if turn % self.n_steps == 0:
                found.append(X)
        return np.concatenate(found)[:n]

    def n_inputs(self, d: int) -> int:
        """How many inputs are drawn at most to choose some from: as many as memory takes."""
        return int(min(self.n_drawn, self.most_numbers / d))

    def where_untold(self, network: Network, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Inputs at which an upper neuron is on with one below, as at few of the inputs ``X``.

        The weight between them is told by few answers.
        """
        below, above = (Z > 0 for Z in network.preactivations(X)[:2])
        is_untold = above.T.astype(np.float64) @ below < self.few_told
        is_narrow = network.architecture[1] <= network.dim_in
        n = self.n_inputs(network.dim_in)
        spreads = np.sort(rng.choice(self.far_spreads if is_narrow else (1.0,), n))
        drawn = spreads[:, None] * rng.standard_normal((n, network.dim_in))
        below, above = (Z > 0 for Z in network.preactivations(drawn)[:2])
        tells = (below.astype(np.float64) @ is_untold.T > 0) & above
        rows = [np.flatnonzero(column)[: self.n_each] for column in tells.T]
        chosen = np.concatenate([*rows, np.empty(0, dtype=np.intp)])
        return np.asarray(drawn[np.unique(chosen)])

    def grown(
        self, network: Network, samples: Samples, is_drawn: BoolArray, rng: np.random.Generator
    ) -> Network:
        """Steps 2 to 4: a network that is wrong at fewer inputs, if one is found.

        Parameters
        ----------
        is_drawn : ndarray of bool, shape (n,)
            Which answers are none of step 1: those tell which neurons are wrong.
        """
        limit, wrong = self.limit(network, samples), self.wrong(network, samples)
        on = network.preactivations(samples.X)[1] > 0
        lost, free = self._doubtful(on[is_drawn], wrong[is_drawn], network.architecture[1])
        top = top_of(network)
        lost |= self._are_idle(top, network.activations(samples.X)[1], samples, limit)
        free &= ~lost
        base = with_top(network, top.take(~(lost | free)))
        H, rest = network.activations(samples.X)[1], samples.Y - base(samples.X)
        sigma = np.broadcast_to(samples.sigma, samples.Y.shape)
        start, above = _plain(top.take(free)), Samples(H, rest, sigma)
        was_right = np.abs(above.residual(start)).max(axis=1) <= limit
        left = _Rest(samples.X, above, limit, was_right, self.stake)
        neurons = self._spared(self._joined(start, left, rng), left)
        log.info(
            "%d neurons go, %d of %d are free, %d instead: %d of %d wrong, %d before",
            *(lost.sum(), free.sum(), len(free), neurons.architecture[1]),
            *(len(left.wrong(neurons)), len(wrong), wrong.sum()),
        )
        return with_top(base, add_networks(top_of(base), neurons))

    def _doubtful(
        self, on: BoolArray, wrong: BoolArray, n_entries: int
    ) -> tuple[BoolArray, BoolArray]:
        """Which neurons go, and which are free."""
        n_on, n_wrong = on.sum(axis=0), (on & wrong[:, None]).sum(axis=0)
        share = np.where(n_on > 0, n_wrong / np.maximum(n_on, 1), 1.0)
        is_rare = n_on <= self.rare * len(on)
        lost = (share > self.lost) & is_rare
        doubtful = (share > max(self.doubtful * wrong.mean(), self.suspect)) & is_rare
        unseen = n_on - n_wrong < self.known * n_entries
        return lost, (doubtful | unseen) & ~lost

    @staticmethod
    def _are_idle(top: Network, H: FloatArray, samples: Samples, limit: float) -> BoolArray:
        """Which neurons give less than what counts as wrong, at every input."""
        sigma = np.broadcast_to(samples.sigma, samples.Y.shape)
        out = np.maximum(H @ top.weights[0].T + top.biases[0], 0.0)
        most = (out[:, :, None] * np.abs(top.weights[1].T) / sigma[:, None, :]).max(axis=(0, 2))
        return np.asarray(most < limit)

    def _joined(self, start: Network, left: _Rest, rng: np.random.Generator) -> Network:
        """Step 3: free neurons, and new ones beside them."""
        best = start
        for _ in range(self.max_new):
            wrong = left.wrong(best)
            if len(wrong) < 2:
                break
            rest = left.less(best)
            news = [self.fitted(self._new(rest, wrong, rng), rest) for _ in range(self.n_tries)]
            news.sort(key=rest.cost)
            tried = [self.fitted(add_networks(best, new), left) for new in news[: self.n_together]]
            found = min(tried, key=left.cost)
            if left.cost(found) > self.gain * left.cost(best):
                break
            best = found
        return best

    def _new(self, rest: _Rest, wrong: IntArray, rng: np.random.Generator) -> Network:
        """A neuron: the affine function of the wrong answers nearest to one."""
        H, Y, one = rest.samples.X, rest.samples.Y, int(rng.choice(wrong))
        column = Y[one] / np.linalg.norm(Y[one])
        same = wrong[Y[wrong] @ column > 0]
        apart = np.linalg.norm(rest.X[same] - rest.X[one], axis=1)
        near = same[np.argsort(apart, kind="stable")[: self._n_near(H.shape[1])]]
        F = np.column_stack([H[near], np.ones(len(near))])
        # A few answers may be those of another neuron, too.
        row = reweighted(F, Y[near] @ column, LeastDeviations(TINY), self.n_steps)
        return Network([row[None, :-1], column[:, None]], [row[-1:], np.zeros(len(column))])

    def fitted(self, start: Network, left: _Rest, n_scales: int | None = None) -> Network:
        """Fit rows to answers, ever more of those that are far off forgotten; the last scales."""
        if not start.architecture[1]:
            return start
        network, off = start, left.off(start)
        is_wrong = off > left.limit
        far = float(np.quantile(off[is_wrong], self.far)) if is_wrong.any() else left.limit
        H, Y, errors = left.samples.X, left.samples.Y, left.samples.sigma
        for scale in np.geomspace(far, left.limit, self.n_scales)[-(n_scales or self.n_scales) :]:
            off = np.abs(left.samples.residual(network))
            # Where nothing is on and nothing is left, nothing moves: a few such answers are enough.
            is_on = (network.preactivations(H)[0] > 0).any(axis=1)
            some = is_on | (off > left.limit).any(axis=1) | (np.arange(len(H)) % self.every == 0)
            sigma = errors[some] * np.sqrt(1.0 + (off[some] / scale) ** 2)
            network = fit(
                network,
                Samples(H[some], Y[some], sigma),
                Stop(self.n_fit),
                solver=normal_equations,
                damping=self.damping,
            ).network
        return network

    def _spared(self, neurons: Network, left: _Rest) -> Network:
        """Step 4: neurons without those that the others can do without."""
        j = 0
        while j < neurons.architecture[1]:
            kept = np.arange(neurons.architecture[1]) != j
            fewer = self.fitted(neurons.take(kept), left, 1)
            if left.cost(fewer) <= left.cost(neurons) / self.gain:
                neurons = fewer
            else:
                j += 1
        return neurons


def _beside(X: FloatArray, shares: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Inputs less so much of each, and noise instead: a Gaussian stays one.

    So does its restriction to a set, where steps are taken that stay in it (Cotter, Roberts, Stuart
    and White 2013).
    """
    kept = np.sqrt(1.0 - shares**2)
    return np.asarray(kept[:, None] * X + shares[:, None] * rng.standard_normal(X.shape))


def _forgiving(off: FloatArray) -> FloatArray:
    """What answers cost, of which those that are far off cost little more, shape (n,)."""
    return np.asarray(np.log1p(np.abs(off).max(axis=1) ** 2))


def _plain(top: Network) -> Network:
    """Neurons alone, without what is affine."""
    k = top.dim_out
    return Network(top.weights, [top.biases[0], np.zeros(k)])
