"""Two hidden layers of any widths from answers of few digits.

A first layer no wider than the input is fitted as :mod:`revelu.recover.deep.rough_layers` says, a
wider one from walks (:mod:`revelu.recover.deep.rough_walks`): they find the neurons that are often
on, and a fit of all layers makes these exact.  Those that are rarely on are found where the network
is wrong (:mod:`revelu.recover.deep.rough_growth`), until fresh answers agree.
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.network import Network
from revelu.recover.deep.rough_growth import RoughGrowth
from revelu.recover.deep.rough_layers import RoughLayers, RoughLayersSearch
from revelu.recover.deep.rough_missing import MissingNeurons
from revelu.recover.deep.rough_walks import RoughWalks
from revelu.recover.method import Candidate, Disagreement, Layer, Why
from revelu.recover.refine.network_fit import Samples
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RoughWide(RoughLayers):
    """How two hidden layers are fitted.

    Attributes
    ----------
    walks : RoughWalks
        How they are found where the first is wider than the input.
    growth : RoughGrowth
        How neurons are found that no walk has found,
    missing : MissingNeurons
        and those fitted beside the walks' that are often on and faint,
    faint : float
        also where traces end and the median of what is left is more than so many errors.
    n_wide_rounds : int
        Rounds of growth and of a fit of all layers, at most.
    wide_equations : float
        Answers of these for each parameter.
    n_wide_fresh : int
        Fresh answers of each round, which the network has to agree with at last,
    wide_spreads : tuple of float
        at inputs of such standard deviations: what is wrong farther out is more, and hides it.
    looks : float
        Where fewer than ``few_wrong`` of these are wrong, so many more are looked at for each
        parameter,
    few_wrong : int
        and those of them kept that are wrong.
    hopeless : float
        The search ends where more than this share of fresh answers is wrong,
    less : float
        or where no less than this share of what was left is
    max_wide_stale : int
        in so many rounds in a row.
    sharp : float
        It is whole only where answers count as wrong from so many times the least on.
    max_wide_repairs : int
        A repair is as many rounds again;
    nearly : float
        there is none, nor another start, where no larger share of inputs is wrong in the end.
    """

    walks: RoughWalks = field(default_factory=RoughWalks)
    growth: RoughGrowth = field(default_factory=RoughGrowth)
    missing: MissingNeurons = field(default_factory=MissingNeurons)
    faint: float = 3.0
    n_wide_rounds: int = 10
    wide_equations: float = 2.5
    n_wide_fresh: int = 3000
    wide_spreads: tuple[float, ...] = (1.0,)
    looks: float = 5.0
    few_wrong: int = 24
    hopeless: float = 0.5
    sharp: float = 3.0
    less: float = 0.9
    max_wide_stale: int = 2
    max_wide_repairs: int = 1
    nearly: float = 2e-3


@dataclass
class RoughWideSearch(RoughLayersSearch):
    """Two hidden layers of any widths, fitted to answers.

    Attributes
    ----------
    is_wide : bool
        Whether the first is wider than the input.
    layers : tuple of (W, b)
        It, as lines have shown it, where all signs are told.
    is_nearly_right : bool
        Whether so few inputs are wrong that no more is done.
    """

    how: RoughWide = field(default_factory=RoughWide)
    is_wide: bool = field(default=False, init=False)
    layers: tuple[Layer, ...] = field(default=(), init=False)
    is_nearly_right: bool = field(default=False, init=False)

    def _wide(self, n_rows: int) -> Candidate:
        """Both layers where the first is wider than the input."""
        walks = self.how.walks
        if not n_rows or self.paid.subspace is not None:
            return super()._wide(n_rows)
        first, _ = walks.rows.find(self._answers, self._dim, self.noise, self.rng)
        log.info("%d rows of a first layer wider than the input", len(first))
        found = None
        if len(first) > self._dim:
            found = walks.find(self.oracle, self.noise, self.rng, self.tell, first)
        if found is None:
            return self._ended(
                f"{len(first)} hyperplanes of a first layer were found, and no row above them"
            )
        network, samples = found.network, found.samples
        # Rows of lines are exact; a fit that lacks neurons above moves them.
        self.layers = () if found.n_unsure else ((network.weights[0], network.biases[0]),)
        self.is_wide, self.X, self.Y = True, samples.X, samples.Y
        self.is_drawn = np.arange(len(self.X)) < len(self.X) - found.n_wrong
        self.tell(f"fitting what is missing of {network.architecture[-2]} upper neurons")
        missing, everything = self.how.missing, self._everything()
        if found.errors is not None:
            network = missing.completed(network, everything, found.errors, self.rng)
        elif walks.typical(network, everything) > self.how.faint:
            network = missing.joined(network, everything, self.rng)
        return self._settled(walks.refined(network, everything, is_first=True))

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Fit to where the network was wrong, too."""
        is_over = self.n_repairs == self.how.max_wide_repairs or self.is_nearly_right
        if self.is_wide and is_over:
            return None
        return super().repair(seen)

    def _settled(self, network: Network) -> Candidate:
        """Let the network grow where it is wrong until fresh answers agree."""
        if not self.is_wide:
            return super()._settled(network)
        growth, n_stale, least = self.how.growth, 0, np.inf
        # What is rarely off is rarely on when it is turned round.
        often_on = (network.preactivations(self.X[self.is_drawn])[1] > 0).mean(axis=0) > 0.5
        self.network = network = network.turn_round(often_on)
        for _ in range(self.how.n_wide_rounds):
            n_before = len(self.X)
            self._ask_fresh(self.how.n_wide_fresh)
            self._ask(growth.where_rare(network, self.rng))
            network = growth.without_false(network, self._everything())
            wrong, fresh = growth.wrong(network, self._everything()), self._fresh(n_before)
            n_wrong, rest = int(wrong[n_before:].sum()), growth.size_of_wrong(network, fresh)
            is_rare = wrong[n_before:][: self.how.n_wide_fresh].sum() < self.how.few_wrong
            log.info("%s: %d of %d wrong", network, n_wrong, len(fresh.X))
            n_stale = 0 if rest < self.how.less * least else n_stale + 1
            if rest < least:
                self.network, least = network, rest
            if is_rare:
                self._look(network)
                wrong = growth.wrong(network, self._everything())
            is_sharp = self._is_sharp(network)
            if is_sharp and not wrong.any():
                return self._whole(network)
            if n_wrong > self.how.hopeless * len(fresh.X) or n_stale == self.how.max_wide_stale:
                break
            if wrong.any():
                self.tell(f"{wrong.sum()} of {len(wrong):,} answers are wrong: growing there")
                growth.around(self._asked, network, self._everything(), self.rng)
                network = self._mended(network) if is_sharp else network
                if is_sharp and not growth.wrong(network, self._everything()).any():
                    continue
                network = growth.grown(network, self._everything(), self.is_drawn, self.rng)
            some = self._evenly(network)
            if not is_sharp:
                network = self.how.missing.joined(network, some, self.rng)
            network = self.how.walks.refined(network, some, is_first=not is_sharp)
        wrong = (self._off(self.network) > growth.least)[self.is_drawn]
        self.is_nearly_right = bool(wrong.mean() <= self.how.nearly)
        said = f"the layers that were fitted are wrong at {wrong.mean():.2%} of inputs"
        # Wrong answers that were seen count, though a certificate's checks may miss them.
        worst = float(np.abs(self.Y - self.network(self.X)).max())
        return replace(self._ended(said), worst_error=worst)

    def _mended(self, network: Network) -> Network:
        """A network with weights as wrong answers tell them, too, if fewer are wrong then.

        Where no neuron is missing a weight is wrong that few of the answers have told.
        """
        everything, growth = self._everything(), self.how.growth
        limit, wrong = growth.limit(network, everything), growth.wrong(network, everything)
        found = self.how.walks.fitted(network, self._evenly(network, wrong))
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

    def _fresh(self, n_before: int) -> Samples:
        """Answers that were asked since, before the network had seen any."""
        X, Y = self.X[n_before:], self.Y[n_before:]
        return Samples(X, Y, self._sigma(X))

    def _look(self, network: Network) -> None:
        """Look at many more fresh answers, and keep those at which a network is wrong."""
        growth = self.how.growth
        n = int(self.how.looks * network.n_parameters)
        X = self.rng.standard_normal((n, self.oracle.dim_in))
        X = X.astype(np.float32).astype(np.float64)
        seen = Samples(X, self.oracle(X), self._sigma(X))
        off = np.abs(seen.residual(network)).max(axis=1)
        is_wrong = off > growth.limit(network, self._everything())
        log.info("%d of %d wrong", is_wrong.sum(), len(X))
        self.X, self.Y = np.vstack([self.X, X[is_wrong]]), np.vstack([self.Y, seen.Y[is_wrong]])
        self.is_drawn = np.append(self.is_drawn, np.zeros(int(is_wrong.sum()), dtype=bool))

    def _evenly(self, network: Network, wrong: BoolArray | None = None) -> Samples:
        """Answers to fit to, of which each upper neuron is on at as many, about; and wrong ones."""
        n = int(self.how.wide_equations * network.n_parameters / network.dim_out)
        everything = self._everything()
        if n >= len(self.X):
            return everything
        on = network.preactivations(self.X)[1] > 0
        share = (on / np.maximum(on.sum(axis=0), n / on.shape[1])).sum(axis=1) + 1.0 / len(on)
        rows = self.rng.choice(len(on), n, replace=False, p=share / share.sum())
        if wrong is not None:
            rows = np.union1d(rows, np.flatnonzero(wrong))
        return Samples(self.X[rows], self.Y[rows], everything.sigma[rows])

    @property
    def _spreads(self) -> tuple[float, ...]:
        return self.how.wide_spreads if self.is_wide else super()._spreads

    def _fitted(self, network: Network, samples: Samples, *, is_first: bool = False) -> Network:
        if not self.is_wide:
            return super()._fitted(network, samples, is_first=is_first)
        return self.how.walks.fitted(network, samples)

    def _asked(self, X: FloatArray) -> Samples:
        """Ask where a network is wrong, and keep it for fits."""
        n_before = len(self.X)
        self._ask(X, near=True)
        return self._fresh(n_before)

    def _whole(self, network: Network) -> Candidate:
        """Fit all layers to all answers, none of which is far off, and take out what is idle."""
        network = self._pruned(self._fitted(network, self._everything()))
        self.network = network = self._plain(network)
        off = self._off(network).max()
        log.info("%s: cost %.3g, off %.3g at most", network, self._cost(network), off)
        return Candidate(self.network, Why.EXPLAINED, warnings=(self._resolution(),))
