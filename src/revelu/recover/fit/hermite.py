"""One hidden layer from Gaussian samples alone: no queries, pairs ``(x, f(x))``.

After Awasthi, Tang and Vijayaraghavan, Efficient algorithms for learning depth-2 neural
networks with general ReLU activations, NeurIPS 2021 (ATV21).  Their tensors are a start;
what makes the network exact is a fit to the samples.

1. The span of the rows, from the second Hermite coefficient (fewer neurons than inputs).
2. Inside it, neurons from coefficients up to order 4 (Algorithms 4 and 6).
3. Neurons added one by one where the samples show that some are missing.
4. In all coordinates, least squares over all parameters, to the last digit or the noise; of
   noise the law is found, answers weigh by it, and neurons that it explains are left out.
5. Signs: all patterns that leave no affine rest (equation (5) of Theorem 3.4).
"""

import logging
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.network import Network
from revelu.numerics.error_law import EXACT
from revelu.numerics.gauss_newton import Damping, Stop
from revelu.numerics.interruption import WorkEndedError, at_most
from revelu.numerics.quadratic import Quadratic, fit_quadratic
from revelu.probe.moments import estimate_moments, estimate_second_moment
from revelu.probe.streams import Chunk
from revelu.recover.fit.covariance import StandardErrors, standard_errors, with_unit_rows
from revelu.recover.fit.learned import Learned
from revelu.recover.fit.limits import least_order, what_cannot_be_known
from revelu.recover.fit.noise_search import NoiseSearch
from revelu.recover.fit.price import Price
from revelu.recover.fit.pruning import drop_idle
from revelu.recover.fit.sign_patterns import Patterns, resolve_patterns
from revelu.recover.fit.sizes import Sizes
from revelu.recover.fit.smallest import Explanation, Keep, Smallest, forget
from revelu.recover.fit.spectrum import chance_eigenvalue, rank_by_gap
from revelu.recover.fit.tensors import UnitNeurons, estimate_again, estimate_units
from revelu.recover.fit.weighing import Weighed, weighed
from revelu.recover.method import Tell, Why
from revelu.recover.refine.network_fit import NetworkFit, Samples, degrees_of_freedom, fit
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GaussianSamples:
    """Samples to learn from."""

    X: FloatArray
    """Shape (n, d).  Those that are fitted."""
    y: FloatArray
    """Shape (n,)."""
    chunks: Iterable[Chunk] | None = None
    """All of them, for moments; iterated more than once."""
    is_gaussian: bool = True
    """Whether moments mean anything: ``x ~ N(0, I)``."""


@dataclass(frozen=True)
class Hermite:
    """``f(x) = a relu(W x + b) + c`` from samples."""

    n_neurons: int | None = None
    """If known; else found."""
    order: str = "auto"
    """Whether rows are linearly independent (1) or only their squares (2)."""
    max_searches: int | None = None
    """On the same samples; else as many as the work allows."""
    exact: float = 1e-9
    """A residual of this share of the variation is rounding, or soon will be."""
    span_from: int = 12
    """With fewer inputs growth needs no span."""
    many_inputs: int = 30
    """From ``many_inputs`` on a fit in all coordinates takes long: there a span will do whose
    eigenvalues have no gap after them, and up to ``max_added`` neurons outside it are added."""
    max_added: int = 4
    widest_span: float = 0.7
    """Share of the dimensions beyond which a span saves nothing."""
    tensor_rank: int = 12
    """Tensors beat growth in time up to this rank,"""
    tensor_equations: float = 50.0
    """and from ``tensor_equations`` samples a parameter on."""
    fewest_equations: float = 1.3
    """Samples a parameter that a search may go down to,"""
    search_equations: float = 12.0
    """that it begins with,"""
    lift_equations: float = 8.0
    """and that a fit in all coordinates takes; of these two at least ``fewest_searched`` in all."""
    fewest_searched: int = 1500
    max_neurons: int = 96
    min_searches: int = 4
    """Searches on the same samples, whatever the work,"""
    search_work: float = 4e11
    """and multiplications that more of them may take, up to ten times as many as"""
    search_limit: int = 60
    """the limit."""
    checked: float = 0.02
    """Share of the samples that is kept apart to tell an explanation from an interpolation, and"""
    fewest_checked: int = 8
    """how many at least."""
    agrees: float = 1e-6
    """An error of this share of the variation is none,"""
    max_outside: float = 0.01
    """and this share of those kept apart may have a larger one: of a neuron that next to none of
    the samples show."""
    max_tries: int = 6
    """Explanations that they may contradict."""
    idle: float = 1e-7
    """Neurons are left out that the others replace to this share of the variation."""
    large: int = 1500
    """The last digit of a network of more parameters takes minutes; there ``ulps`` roundings of the
    largest answer are enough."""
    ulps: float = 32.0
    error_parameters: int = 3000
    error_rows: int = 40_000
    """Error bars take an eigenvalue problem in all parameters: of more there are none, and the
    derivative at no more than ``error_rows`` samples is used, as in searches among noise."""
    trial_work: float = 2e10
    """Multiplications of a search that only compares ways to read samples."""
    much_less: float = 0.7
    """Inputs that were cut, or rounded, and are taken for the other err by twice as much."""
    chunk: int = 32_768
    """Samples in memory that are handed to a worker together."""

    @property
    def price(self) -> Price:
        """What networks cost."""
        return Price(self.exact)

    def widest(self, n: int, d: int) -> int:
        """The most neurons that ``n`` samples in ``d`` variables can determine."""
        return min(Sizes(d, 1).widest(n, self.fewest_equations), self.max_neurons)

    def recover(
        self,
        samples: GaussianSamples,
        rng: np.random.Generator,
        tell: Tell = log.debug,
        executor: Executor | None = None,
        keep: Keep = forget,
    ) -> Learned:
        """Find the network behind samples.

        Parameters
        ----------
        tell : callable
            Called with what is being done.
        keep : callable, (network) -> None
            Called with each network that is the best of all so far.
        executor : concurrent.futures.Executor, optional
            Where moments are summed.
        """
        return _Learner(self, samples, rng, tell, executor, keep).run()

    def fitted(self, samples: GaussianSamples) -> Samples:
        """The samples as fits take them."""
        return _Learner(self, samples, np.random.default_rng(0), log.debug, None, forget).all

    def explains_more(
        self, learned: Learned, samples: GaussianSamples, others: GaussianSamples
    ) -> bool:
        """Whether a network of some samples fits others of the same answers better.

        Parameters
        ----------
        learned : Learned
            Of ``samples``, not exact.
        """
        n, y = self.error_rows, samples.y[: self.error_rows]
        scales = learned.scales(samples.X[:n])[:, None]
        if learned.network.architecture[1] == 0:
            return False
        costs = [
            fit(learned.network, Samples(X[:n], y[:, None], scales), Stop(40)).cost
            for X in (samples.X, others.X)
        ]
        return costs[1] < self.much_less * costs[0]

    def left_by_one_search(self, samples: GaussianSamples, rng: np.random.Generator) -> float:
        """Return the share of the variation that a single search leaves of some samples."""
        learner = _Learner(self, samples, rng, log.debug, None, forget)
        rows = learner.take_rows(0, learner.n_searched(samples.X.shape[1]))
        with at_most(self.trial_work):
            try:
                width = self.widest(*rows.X.shape)
                return Smallest(self.price, width, 1).search(rng, rows).cost
            except WorkEndedError:
                return np.inf


@dataclass
class _Learner:
    method: Hermite
    samples: GaussianSamples
    rng: np.random.Generator
    tell: Tell
    executor: Executor | None
    keep: Keep
    eigenvalues: FloatArray | None = field(default=None, init=False)
    moment_errors: tuple[float, ...] = field(default=(), init=False)
    tensor_estimate: UnitNeurons | None = field(default=None, init=False)
    weighed: Weighed | None = field(default=None, init=False)
    notes: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        X, y = self.samples.X, self.samples.y
        # Costs are shares of what varies.
        sigma = np.array([max(float(y.std()), np.finfo(np.float64).tiny)])
        self.all = Samples(X, y[:, None], sigma)
        n = len(X)
        n_checked = min(max(int(self.method.checked * n), self.method.fewest_checked), n // 4)
        self.fitted, self.checked = (
            self.take_rows(0, n - n_checked),
            self.take_rows(n - n_checked, n),
        )
        self.price = self.method.price

    def run(self) -> Learned:
        self.tell("estimating the span of the rows")
        quadratic = fit_quadratic(self.fitted.X, self.fitted.Y[:, 0])
        basis = self._find_span(quadratic)
        start, basis = self._tensor_start(basis, quadratic)
        found = None if basis is None else self._search_in_span(basis, start, quadratic.v)
        if found is None:
            found = self._search(start)
        self.keep(found.network)
        network, used = self._refine(found)
        self.keep(network)
        # What stopped short of the last digits may have come to them.
        is_exact = found.is_exact or self.price.is_explained(network, used)
        settled = found.settled or is_exact
        if not is_exact:
            network, used, settled = self._among_noise(network, settled=settled)
            self.keep(network)
        patterns = self._resolve(network, used, exact=is_exact)
        return self._learned(patterns, used, exact=is_exact, settled=settled)

    def _find_span(self, quadratic: Quadratic) -> FloatArray | None:
        """Step 1: eigenvectors of the second coefficient above a clear gap; (r, d)."""
        d = self.fitted.X.shape[1]
        if not (self.samples.is_gaussian and d > 1):
            return None
        T, n = estimate_second_moment(self._chunks(), quadratic, self.executor)
        if self.samples.chunks is None and quadratic.M.any():
            # The fit has used up a degree of freedom a coefficient.
            n = max(n - (d + 1) * (d + 2) // 2, n // 4)
        values, U = np.linalg.eigh(T)
        by_size = np.argsort(-np.abs(values))
        sizes = self.eigenvalues = np.abs(values[by_size])
        rest = self.fitted.Y[:, 0] - quadratic(self.fitted.X)
        chance = chance_eigenvalue(float(rest.std()), d, n)
        needs_gap = d < self.method.many_inputs
        known = self.method.n_neurons
        rank = rank_by_gap(sizes, chance, known, needs_gap=needs_gap)
        if self.method.order == "2" or not 0 < rank <= self.method.widest_span * d:
            return None
        log.info("the second coefficient has rank %d of %d", rank, d)
        return np.asarray(U[:, by_size[:rank]].T)

    def _chunks(self) -> Iterable[Chunk]:
        """All samples."""
        if self.samples.chunks is not None:
            return self.samples.chunks
        X, y, n = self.fitted.X, self.fitted.Y[:, 0], self.method.chunk
        return [(X[i : i + n], y[i : i + n]) for i in range(0, len(X), n)]

    def _tensor_start(
        self, basis: FloatArray | None, quadratic: Quadratic
    ) -> tuple[Network | None, FloatArray | None]:
        """Step 2: neurons from moments, in coordinates of the span, and a better span."""
        method, (n, d) = self.method, self.fitted.X.shape
        rank = len(basis) if basis is not None else min(method.n_neurons or d, d)
        enough = n >= method.tensor_equations * rank * (d + 1)
        known = basis is not None or method.n_neurons == rank == d
        wanted = method.order == "1" or (enough and known)
        if not (self.samples.is_gaussian and wanted and rank <= method.tensor_rank):
            return None, basis
        self.tell("estimating Hermite coefficients")
        moments = estimate_moments(self._chunks(), quadratic, basis, executor=self.executor)
        self.moment_errors = tuple(float(e.max()) for e in moments.errors)
        units = estimate_units(moments, rank, self.rng)
        if units is None:
            return None, basis
        whole = np.eye(d) if basis is None else basis
        units, span = estimate_again(units, whole, self.fitted.X, self.fitted.Y[:, 0])
        self.tensor_estimate = replace(units, W=units.W @ span)
        W = units.W if basis is not None else units.W @ span
        affine = (np.zeros((1, W.shape[1])), np.zeros(1))
        start = Network([W, units.a[None]], [units.b, np.zeros(1)], affine)
        return start, None if basis is None else span

    def _search_in_span(
        self, basis: FloatArray, start: Network | None, slope: FloatArray
    ) -> Explanation | None:
        """Step 3 inside the span, then in all coordinates; None where that fails.

        What lies outside the estimated span is noise with a structure, which more neurons
        would fit: there are few beside one a dimension.
        """
        method, (r, d) = self.method, basis.shape
        if d < method.span_from and start is None:
            return None
        n = self.n_searched(r)
        X, y = self.fitted.X[:n], self.fitted.Y[:n, 0]
        outside = slope - basis.T @ (basis @ slope)
        inside = Samples(X @ basis.T, (y - X @ outside)[:, None], self.all.sigma)
        search = Smallest(self.price, min(method.widest(n, r), r + max(r // 4, 4)), 1)
        ends: list[NetworkFit] = []
        for _ in range(method.max_tries):
            self.tell(f"fitting neurons inside {r} of {d} dimensions")
            lifted = _lifted(search.search(self.rng, inside, start).network, basis, outside)
            start, used = None, self._enough_for(lifted)
            self.tell(f"refining {degrees_of_freedom(lifted):,} parameters")
            end = fit(lifted, used, Stop(60, goal=method.exact))
            if d >= method.many_inputs:
                end = self._grown(end, used, method.max_added)
            if end.cost <= method.exact and self._agrees(end.network):
                return Explanation(end.network, is_exact=True, settled=True)
            alike = any(e.cost <= 1.02 * end.cost for e in ends)
            ends.append(end)
            self.keep(min(ends, key=lambda e: e.cost).network)
            enough = method.lift_equations * degrees_of_freedom(end.network) / 2
            if alike and len(used.X) >= enough:
                best = min(ends, key=lambda e: self.price(e.network, used))
                if self._grown(best, used, 1) is best:
                    return Explanation(best.network, is_exact=False, settled=True)
                break
        log.info("the span is not that of all rows")
        return None

    def _grown(self, found: NetworkFit, used: Samples, most: int) -> NetworkFit:
        """Add neurons, up to a number, as long as they explain more."""
        width = found.network.architecture[1] + most
        search = Smallest(self.price, width, 1)
        return search.grow(self.rng, used, found, patience=1, each=None)

    def _search(self, start: Network | None) -> Explanation:
        """Step 3 in all coordinates, on more and more samples."""
        method, (n_all, d) = self.method, self.fitted.X.shape
        n, found, tries = self.n_searched(d), None, 0
        max_tries = min(method.max_tries, method.max_searches or method.max_tries)
        if start is not None and start.dim_in != d:
            start = None
        while True:
            rows, width = self.take_rows(0, n), method.widest(n, d)
            self.tell(f"fitting up to {width} neurons to {n:,} samples")
            once = found is not None and found.settled and tries == 0
            n_searches = 1 if once else method.max_searches or self._n_searches(n, width)
            found = Smallest(self.price, width, n_searches).explain(
                self.rng, rows, start, self.keep
            )
            found = replace(found, settled=found.settled or once)
            start = found.network
            if found.is_exact:
                if self._agrees(found.network):
                    return found
                tries, start = tries + 1, None
                found = replace(found, is_exact=False, settled=False)
            if n == n_all and (tries == 0 or tries >= max_tries):
                return found
            n = min(4 * n, n_all)

    def _n_searches(self, n: int, width: int) -> int:
        """As many searches as the work allows."""
        # A step on j neurons takes n (j (d + 2))^2 multiplications, and j^2 adds up to m^3 / 3
        # over the widths; some 25 steps each.
        method, d = self.method, self.fitted.X.shape[1]
        work = max(25 * n * (d + 2.0) ** 2 * width**3 / 3.0, 1.0)
        return int(np.clip(method.search_work / work, method.min_searches, method.search_limit))

    def _refine(self, found: Explanation) -> tuple[Network, Samples]:
        """Step 4: to the last digit, or on all samples to the noise."""
        network, used = found.network, self.all
        if found.is_exact:
            used = self._enough_for(network)
            network = drop_idle(network, used, self.method.idle)
        self.tell(f"refining {degrees_of_freedom(network):,} parameters")
        return self._polished(network, used, exact=found.is_exact), used

    def _among_noise(self, network: Network, *, settled: bool) -> tuple[Network, Samples, bool]:
        """Step 4 where noise is left: its law, answers weighed by it, neurons beyond chance."""
        method = self.method
        n = max(self.n_searched(self.all.X.shape[1]), method.fewest_searched)
        most = method.max_searches or method.max_tries
        search = NoiseSearch(self.all, self.price, method.widest, n, most, method.error_rows)
        self.weighed, settled = search.run(self.rng, network, self.tell, settled=settled)
        if (n_less := network.architecture[1] - self.weighed.network.architecture[1]) > 0:
            self.notes.append(
                f"{n_less} neuron{'s' * (n_less > 1)} that explained no more than errors do "
                f"{'were' if n_less > 1 else 'was'} left out"
            )
        return self.weighed.network, self.weighed.samples, settled

    def _polished(self, network: Network, used: Samples, *, exact: bool) -> Network:
        rounding = np.finfo(np.float64).eps * float(np.abs(used.Y / used.sigma).max())
        is_large = degrees_of_freedom(network) > self.method.large
        goal = self.method.ulps * rounding if exact and is_large else 0.0
        return fit(network, used, Stop(60, rtol=1e-2, goal=goal), damping=Damping(1e-9)).network

    def _resolve(self, network: Network, used: Samples, *, exact: bool) -> Patterns:
        """Step 5: signs that leave no affine rest, and the fit without one."""
        self.tell("resolving signs")
        network = with_unit_rows(network)
        errors = None if exact else self._errors(network, used, used.reduced_cost(network))
        patterns = resolve_patterns(network, errors)
        best: Network | None = None
        for candidate in patterns.networks:
            end = self._polished(candidate, used, exact=exact)
            explained = self.price.is_explained(end, used)
            fits = explained if exact else self.price(end, used) <= self.price(network, used)
            if fits and (best is None or used.cost(end) < used.cost(best)):
                best = end
            if exact and best is not None:
                break
        return replace(patterns, network=with_unit_rows(best or network), plain=best is not None)

    def _learned(self, patterns: Patterns, used: Samples, *, exact: bool, settled: bool) -> Learned:
        network, known = patterns.network, self.method.n_neurons
        spread, width = float(self.all.sigma[0]), network.architecture[1]
        noise = used.reduced_cost(network)
        ratios = None
        if self.weighed is not None:
            ratios = self.weighed.ratios
            self.weighed = weighed(network, self.all)
            noise = self.weighed.noise / spread
        floor = np.finfo(np.float64).eps * float(np.abs(self.all.Y).max()) / spread
        errors = self._errors(network, used, max(noise, floor))
        off = 0.0 if errors is None else float(errors.W.max(initial=0.0))
        order, independence = least_order(network.weights[0], off)
        warnings = []
        if self.method.order == "1" and order != 1:
            told = "order 1 was given, and the rows of weights are not linearly independent"
            warnings.append(told)
        if known is not None and width != known:
            warnings.append(f"the samples show {width} neurons, not the {known} given")
        return Learned(
            network,
            Why.EXPLAINED if settled else Why.UNRESOLVED,
            exact,
            noise * spread,
            errors,
            tuple(patterns.signs),
            order,
            independence,
            notes=(*self.notes, *what_cannot_be_known(patterns, errors)),
            warnings=tuple(warnings),
            eigenvalues=self.eigenvalues,
            moment_errors=self.moment_errors,
            tensor_estimate=self.tensor_estimate,
            law=EXACT if self.weighed is None else self.weighed.law,
            ratios=ratios,
        )

    def _errors(self, network: Network, used: Samples, noise: float) -> StandardErrors | None:
        if network.n_parameters > self.method.error_parameters:
            return None
        n = min(len(used.X), self.method.error_rows)
        # Fewer rows know less, by the square root of their share.
        more = np.sqrt(n / len(used.X))
        if self.weighed is not None and self.weighed.scores is not None:
            found = weighed(network, self.all)
            if found.scores is not None:
                some = Samples(used.X[:n], used.Y[:n], found.scales[:n, None])
                return standard_errors(network, some, more * found.scores[:n])
        sigma = self.all.sigma * noise * more
        return standard_errors(network, Samples(used.X[:n], used.Y[:n], sigma))

    def take_rows(self, start: int, stop: int) -> Samples:
        """Some of the samples."""
        return Samples(self.all.X[start:stop], self.all.Y[start:stop], self.all.sigma)

    def n_searched(self, d: int) -> int:
        """How many samples a search in ``d`` variables begins with."""
        wanted = int(self.method.search_equations * (d + 2) * (self.method.n_neurons or d))
        return min(max(wanted, self.method.fewest_searched), len(self.fitted.X))

    def _enough_for(self, network: Network) -> Samples:
        wanted = int(self.method.lift_equations * degrees_of_freedom(network))
        n = max(wanted, self.method.fewest_searched)
        return self.take_rows(0, min(n, len(self.fitted.X)))

    def _agrees(self, network: Network) -> bool:
        """Whether samples not fitted agree, but for units that fire on next to none."""
        outside = np.abs(self.checked.residual(network)) > self.method.agrees
        return bool(outside.mean() <= self.method.max_outside)


def _lifted(network: Network, basis: FloatArray, outside: FloatArray) -> Network:
    (W, A), (V, constant) = network.weights, network.affine
    return Network([W @ basis, A], network.biases, (V @ basis + outside, constant))
