"""Neurons that a network lacks, from the few answers at which it is wrong.

A neuron that is missing, and rarely on, leaves nothing but where it is on: there ``a (w x + b)``,
an affine function of rank 1, which as many answers tell as it has unknowns.  Far out several may
be on, and rows that are right to the digits of answers in the middle are not there:

1. On the way from the middle to a wrong answer, and beyond, the first place is found where one is
   wrong: a fit to single answers makes up for them.
2. Answers around it tell the neuron that has turned on.
3. A fit of all makes it exact, to what is explained and these answers alone; then to all, those
   that are far off counting little, for others may be missing.
4. What is left of all answers then shows neurons that add less than errors where most inputs are.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from revelu.errors import SaturatedError
from revelu.network import Network, add_networks
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.interruption import WorkEndedError
from revelu.recover.fit.search import complete, is_explained, refine
from revelu.recover.refine.network_fit import Samples
from revelu.types import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WhereWrong:
    """How neurons are found that few inputs turn on."""

    n_wrong: int = 6
    n_on_way: int = 36
    beyond: float = 1.5
    """``n_on_way`` places are asked on the way to ``n_wrong`` of the wrong answers, and up to
    ``beyond`` times as far, until none is wrong on one."""
    around: float = 0.3
    n_around: int = 5
    """Where a neuron turns on, ``n_around`` more than two for each of its weights are asked,
    ``around`` apart, about, relative to the places on the way."""
    n_each: int = 8
    """So many neurons are found on each way, at most."""
    far: float = 2.0
    """Answers count as far out beyond ``far`` times the radius of most inputs: few are asked there,
    which a fit to them explains as well."""

    def far_out(self, X: FloatArray) -> FloatArray:
        """Those of the inputs that lie far out."""
        return np.asarray(X[(X**2).mean(axis=1) > self.far**2])

    def completed(
        self,
        network: Network,
        samples: Samples,
        wrong: FloatArray,
        ask: Callable[[FloatArray], Samples],
        limit: float,
        rng: np.random.Generator,
    ) -> tuple[Network, Samples]:
        """Join neurons that are on at inputs where a network is wrong.

        Parameters
        ----------
        network : Network
            Of one hidden layer.
        samples : Samples
            What it was fitted to.
        wrong : ndarray, shape (n, d)
            Inputs at which it is wrong.
        ask : callable, (n, d) -> Samples
        limit : float
            The reduced cost that noise alone may leave.

        Returns
        -------
        network, samples
            The best network, and these with what was asked: those found so far, where the
            work allowed ends.
        """
        search = _WrongSearch(self, network, samples, ask, limit, rng)
        try:
            search.run(wrong)
            if not search.is_explained:
                search.network = complete(rng, search.network, search.samples, limit)
        except WorkEndedError:
            log.info("the search for neurons on the way to wrong answers took as long as it may")
        return search.network, search.samples


@dataclass
class _WrongSearch:
    """The search, with the best network so far and all that was asked."""

    how: WhereWrong
    network: Network
    samples: Samples
    ask: Callable[[FloatArray], Samples]
    limit: float
    rng: np.random.Generator

    def run(self, wrong: FloatArray) -> None:
        """Follow the way to each of some wrong answers, until one shows none."""
        for x in self.rng.permutation(wrong)[: self.how.n_wrong]:
            try:
                if self.ends_along(x):
                    break
            except SaturatedError:
                log.debug("answers end on this way: another may show more")

    def ends_along(self, x: FloatArray) -> bool:
        """Join what is missing on the way to an input; whether nothing was."""
        how = self.how
        way = self.asked(how.beyond * np.arange(1, how.n_on_way + 1)[:, None] / how.n_on_way * x)
        if self.is_explained and not self.are_wrong(self.network, way).any():
            return True
        self.fit_to_most()
        for _ in range(how.n_each):
            if not self.joins_first(way):
                break
            self.fit_to_most()
        return False

    @property
    def is_explained(self) -> bool:
        """Whether the network explains what was asked."""
        return is_explained_far_out(self.network, self.samples, self.limit)

    def asked(self, X: FloatArray) -> Samples:
        """Ask, and keep it for fits."""
        more = self.ask(X)
        self.samples = self.samples.joined(more)
        return more

    def joins_first(self, way: Samples) -> bool:
        """Join the first neuron that turns on and is missing; whether fewer answers are wrong."""
        network, d = self.network, way.X.shape[1]
        is_wrong = self.are_wrong(network, way)
        if not is_wrong.any():
            return False
        # It is on up to the next place, if not farther.
        first = int(is_wrong.argmax())
        x = way.X[first : first + 2].mean(axis=0)
        apart = self.how.around * np.linalg.norm(way.X[-1]) / (len(way.X) * np.sqrt(d))
        told = self.samples.take(~self.are_wrong(network, self.samples))
        n = 2 * d + self.how.n_around
        near = self.asked(x + apart * self.rng.standard_normal((n, d)))
        is_on = self.are_wrong(network, near)
        if is_on.sum() <= d + 1:
            return False
        neuron = neuron_where_on(near.X[is_on], near.Y[is_on] - network(near.X[is_on]))
        if not self._is_better(refine(add_networks(network, neuron), told.joined(near)).network):
            return False
        # Answers as far apart as they are from the middle tell its row there, too.
        self.asked(x + np.linalg.norm(x) / np.sqrt(d) * self.rng.standard_normal((n, d)))
        return True

    def fit_to_most(self) -> None:
        """Fit to what most answers agree on."""
        self.network = fitted_to_most(self.network, self.samples, self.limit)

    def _is_better(self, network: Network) -> bool:
        """Take a network where it is wrong at fewer answers."""
        n_before, n = (self.are_wrong(one, self.samples).sum() for one in (self.network, network))
        log.info("%s: %d answers wrong, %d before", network, n, n_before)
        self.network = network if n < n_before else self.network
        return bool(n < n_before)

    def are_wrong(self, network: Network, samples: Samples) -> BoolArray:
        """Which answers a network does not explain."""
        return are_wrong(network, samples, self.limit)


def are_wrong(network: Network, samples: Samples, limit: float) -> BoolArray:
    """Which answers a network does not explain, ``limit`` errors being left by noise, (n,)."""
    return np.asarray(np.abs(samples.residual(network)).max(axis=1) > SIGMAS * limit)


def fitted_to_most(network: Network, samples: Samples, limit: float) -> Network:
    """Fit to what most answers agree on, as long as fewer are wrong then."""
    n_wrong, n_before = int(are_wrong(network, samples, limit).sum()), len(samples.X) + 1
    while n_wrong < n_before:
        best, n_before = network, n_wrong
        off = np.abs(samples.residual(network)).max(axis=1, keepdims=True)
        network = refine(network, samples.forgiving(off, SIGMAS * limit)).network
        n_wrong = int(are_wrong(network, samples, limit).sum())
        log.info("%s: %d answers wrong, %d before", network, n_wrong, n_before)
    return best


def is_explained_far_out(network: Network, samples: Samples, limit: float) -> bool:
    """Whether what is left of answers is noise, by its own size or by that of all of them.

    Few answers that are far out err by more than all others together.
    """
    by_own = samples.reduced_cost(network) <= limit
    return bool(by_own) or is_explained(network, samples, limit)


def neuron_where_on(X: FloatArray, left: FloatArray) -> Network:
    """Find the neuron that makes what is left of answers where it is on.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Inputs at which it is on, more than d.
    left : ndarray, shape (n, k)
        What a network leaves of the answers there.

    Returns
    -------
    Network
        Of this neuron alone.
    """
    a = np.linalg.svd(left, full_matrices=False)[2][0]
    sums = left @ a
    a, sums = (a, sums) if sums.sum() > 0 else (-a, -sums)
    *w, b = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), sums, rcond=1e-6)[0]
    return Network([np.array([w]), a[:, None]], [np.array([b]), np.zeros(len(a))])
