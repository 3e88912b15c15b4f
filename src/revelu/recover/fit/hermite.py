"""One hidden layer from Gaussian samples alone: no queries, pairs ``(x, f(x))``.

After Awasthi, Tang and Vijayaraghavan, Efficient algorithms for learning depth-2 neural
networks with general ReLU activations, NeurIPS 2021 (ATV21).  Their tensors are a start;
what makes the network exact is a fit to the samples.

1. The span of the rows, from the second Hermite coefficient (fewer neurons than inputs).
2. Inside it, neurons from coefficients up to order 4 (Algorithms 4 and 6).
3. Neurons added one by one where the samples show that some are missing.
4. In all coordinates, least squares over all parameters, to the last digit or the noise.
5. Signs: all patterns that leave no affine rest (equation (5) of Theorem 3.4).
"""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import Damping, Stop
from revelu.numerics.quadratic import fit_quadratic
from revelu.oracle import Ledger
from revelu.probe.moments import estimate_moments, estimate_second_moment
from revelu.probe.streams import Chunk
from revelu.recover.fit.covariance import StandardErrors, standard_errors, with_unit_rows
from revelu.recover.fit.growth import (
    EXACT,
    Explanation,
    explain_by_growth,
    grow_while_worth,
    in_units_of_spread,
    price,
    widest,
)
from revelu.recover.fit.limits import least_order, what_cannot_be_known
from revelu.recover.fit.pruning import drop_idle
from revelu.recover.fit.sign_patterns import Patterns, resolve_patterns
from revelu.recover.fit.spectrum import MANY_INPUTS, chance_eigenvalue, rank_by_gap
from revelu.recover.fit.tensors import estimate_again, estimate_units
from revelu.recover.fit.wide_fit import grow
from revelu.recover.refine.network_fit import Samples, degrees_of_freedom, fit
from revelu.recovery import Recovery, Status
from revelu.types import FloatArray

log = logging.getLogger(__name__)

# Below this many inputs growth needs no span.
_SPAN_FROM = 12

# Neurons outside a span without a gap are added after it.
_MOST_ADDED = 4
_WIDEST_SPAN = 0.7

# Tensors beat growth in time up to this rank, from this many samples a parameter.
_TENSOR_RANK = 12
_TENSOR_SAMPLES = 50.0

# Samples a parameter for a search, and for the fit in all coordinates; at least so many.
_SEARCH_EQUATIONS = 12.0
_LIFT_EQUATIONS = 8.0
_LEAST_SEARCHED = 1500

# Kept apart to tell an explanation from an interpolation, and what counts as agreement.
_CHECKED = 0.02
_LEAST_CHECKED = 8
_AGREES = 1e-6
_MOST_OUTSIDE = 0.01

_TRIES = 6
_REFINE_STEPS = 60
_REFINE_RTOL = 1e-2
_IDLE = 1e-7

# The last digit of a network of so many parameters takes minutes: so many of the largest
# answer's roundings are enough there.
_LARGE = 1500
_ROUNDING = 32.0

# Error bars take an eigenvalue problem in all parameters.
_MOST_PARAMETERS = 3000
_MOST_ROWS = 40_000

# Samples in memory are handed to workers in chunks of so many.
_CHUNK = 32_768

Tell = Callable[[str], None]


@dataclass(frozen=True)
class GaussianSamples:
    """Samples to learn from.

    Attributes
    ----------
    X : ndarray, shape (n, d)
        Those that are fitted.
    y : ndarray, shape (n,)
    chunks : iterable of Chunk, optional
        All of them, for moments; iterated more than once.
    is_gaussian : bool
        Whether moments mean anything: ``x ~ N(0, I)``.
    """

    X: FloatArray
    y: FloatArray
    chunks: Iterable[Chunk] | None = None
    is_gaussian: bool = True


def recover_from_samples(
    samples: GaussianSamples,
    n_neurons: int | None,
    order: str,
    seed: int | np.random.SeedSequence,
    tell: Tell = log.debug,
    max_searches: int | None = None,
    executor: Executor | None = None,
) -> Recovery:
    """Recover ``f(x) = a relu(W x + b) + c`` from samples.

    Parameters
    ----------
    samples : GaussianSamples
    n_neurons : int, optional
        If known; else found.
    order : {"auto", "1", "2"}
        Whether rows are linearly independent (1) or only their squares (2).
    seed : int or SeedSequence
    tell : callable
        Called with what is being done.
    max_searches : int, optional
        On the same samples.
    executor : concurrent.futures.Executor, optional
        Where moments are summed.

    Returns
    -------
    Recovery
        ``UNVERIFIED``: samples that had no part in it decide.  ``details`` has ``exact``,
        ``settled``, ``noise``, ``standard_errors``, ``sign_patterns``, ``order`` and
        ``independence``.
    """
    return _Learner(
        samples, n_neurons, order, np.random.default_rng(seed), tell, max_searches, executor
    ).run()


@dataclass
class _Learner:
    samples: GaussianSamples
    n_neurons: int | None
    order: str
    rng: np.random.Generator
    tell: Tell
    max_searches: int | None
    executor: Executor | None = None
    evidence: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def run(self) -> Recovery:
        n = len(self.samples.X)
        n_checked = min(max(int(_CHECKED * n), _LEAST_CHECKED), n // 4)
        self.all = in_units_of_spread(self.samples.X, self.samples.y)
        self.fitted, self.checked = self._rows(0, n - n_checked), self._rows(n - n_checked, n)
        self.tell("estimating the span of the rows")
        self.quadratic = fit_quadratic(self.fitted.X, self.fitted.Y[:, 0])
        basis = self._find_span()
        start, basis = self._tensor_start(basis)
        found = self._search_in_span(basis, start) if basis is not None else None
        if found is None:
            found = self._search(start)
        network, used = self._refine(found)
        # What stopped short of the last digits may have come to them.
        found = replace(found, cost=min(found.cost, used.cost(network)))
        patterns = self._resolve(network, used, exact=found.is_exact)
        return self._finished(patterns, used, found)

    def _find_span(self) -> FloatArray | None:
        """Step 1: eigenvectors of the second coefficient above a clear gap; (r, d)."""
        d = self.fitted.X.shape[1]
        if not (self.samples.is_gaussian and d > 1):
            return None
        T, n = estimate_second_moment(self._chunks(), self.quadratic, self.executor)
        if self.samples.chunks is None and self.quadratic.M.any():
            # The fit has used up a degree of freedom a coefficient.
            n = max(n - (d + 1) * (d + 2) // 2, n // 4)
        values, U = np.linalg.eigh(T)
        by_size = np.argsort(-np.abs(values))
        sizes = np.abs(values[by_size])
        self.details["eigenvalues"] = sizes.tolist()
        rest = self.fitted.Y[:, 0] - self.quadratic(self.fitted.X)
        chance = chance_eigenvalue(float(rest.std()), d, n)
        rank = rank_by_gap(sizes, chance, self.n_neurons) if self.order != "2" else 0
        if not 0 < rank <= _WIDEST_SPAN * d:
            return None
        log.info("the second coefficient has rank %d of %d", rank, d)
        return np.asarray(U[:, by_size[:rank]].T)

    def _chunks(self) -> Iterable[Chunk]:
        """All samples."""
        if self.samples.chunks is not None:
            return self.samples.chunks
        X, y = self.fitted.X, self.fitted.Y[:, 0]
        return [(X[i : i + _CHUNK], y[i : i + _CHUNK]) for i in range(0, len(X), _CHUNK)]

    def _tensor_start(self, basis: FloatArray | None) -> tuple[Network | None, FloatArray | None]:
        """Step 2: neurons from moments, in coordinates of the span, and a better span."""
        n, d = self.fitted.X.shape
        rank = len(basis) if basis is not None else min(self.n_neurons or d, d)
        enough = n >= _TENSOR_SAMPLES * rank * (d + 1)
        known = basis is not None or self.n_neurons == rank == d
        wanted = self.order == "1" or (enough and known)
        if not (self.samples.is_gaussian and wanted and rank <= _TENSOR_RANK):
            return None, basis
        self.tell("estimating Hermite coefficients")
        moments = estimate_moments(self._chunks(), self.quadratic, basis, executor=self.executor)
        self.details["moment_errors"] = [float(e.max()) for e in moments.errors]
        units = estimate_units(moments, rank, self.rng)
        if units is None:
            return None, basis
        whole = np.eye(d) if basis is None else basis
        units, span = estimate_again(units, whole, self.fitted.X, self.fitted.Y[:, 0])
        self.details["tensor_estimate"] = {"a": units.a, "W": units.W @ span, "b": units.b}
        W = units.W if basis is not None else units.W @ span
        affine = (np.zeros((1, W.shape[1])), np.zeros(1))
        start = Network([W, units.a[None]], [units.b, np.zeros(1)], affine)
        return start, None if basis is None else span

    def _search_in_span(self, basis: FloatArray, start: Network | None) -> Explanation | None:
        """Step 3 inside the span, then in all coordinates; None where that fails.

        What lies outside the estimated span is noise with a structure, which more neurons
        would fit: there are few beside one a dimension.
        """
        r, d = basis.shape
        if d < _SPAN_FROM and start is None:
            return None
        n = self._n_searched(r)
        X, y = self.fitted.X[:n], self.fitted.Y[:n, 0]
        v, Z = self.quadratic.v, X @ basis.T
        outside = v - basis.T @ (basis @ v)
        inside = Samples(Z, (y - X @ outside)[:, None], self.all.sigma)
        ends: list[Explanation] = []
        for _ in range(_TRIES):
            self.tell(f"fitting neurons inside {r} of {d} dimensions")
            network = grow_while_worth(self.rng, inside, start, r + max(r // 4, 4)).network
            start = None
            lifted = _lifted(network, basis, outside)
            used = self._enough_for(lifted)
            self.tell(f"refining {degrees_of_freedom(lifted):,} parameters")
            end = fit(lifted, used, Stop(_REFINE_STEPS, goal=EXACT))
            for _ in range(_MOST_ADDED if d >= MANY_INPUTS else 0):
                if end.cost <= EXACT:
                    break
                more = grow(self.rng, used, end.network.architecture[1] + 1, EXACT, end.network)
                if price(more.network, used) >= price(end.network, used):
                    break
                end = more
            ends.append(Explanation(end.network, end.cost, settled=end.cost <= EXACT))
            if end.cost <= EXACT and self._agrees(end.network):
                return ends[-1]
            alike = [e for e in ends[:-1] if e.cost <= 1.02 * end.cost]
            if alike and len(used.X) >= _LIFT_EQUATIONS * degrees_of_freedom(end.network) / 2:
                best = min(ends, key=lambda e: price(e.network, used))
                more = grow(self.rng, used, best.network.architecture[1] + 1, EXACT, best.network)
                if price(more.network, used) > price(best.network, used):
                    return replace(best, settled=True)
                break
        log.info("the span is not that of all rows")
        return None

    def _search(self, start: Network | None) -> Explanation:
        """Step 3 in all coordinates, on more and more samples."""
        n, found = self._n_searched(self.fitted.X.shape[1]), None
        if start is not None and start.dim_in != self.fitted.X.shape[1]:
            start = None
        tries, most_tries = 0, min(_TRIES, self.max_searches or _TRIES)
        while True:
            rows = Samples(self.fitted.X[:n], self.fitted.Y[:n], self.all.sigma)
            self.tell(f"fitting up to {widest(n, rows.X.shape[1])} neurons to {n:,} samples")
            most = 1 if found is not None and found.settled and tries == 0 else self.max_searches
            new = explain_by_growth(self.rng, rows, start, most)
            found = replace(new, settled=new.settled or (most == 1))
            start = found.network
            if found.is_exact:
                if self._agrees(found.network):
                    return found
                tries, start = tries + 1, None
                found = replace(found, cost=self.checked.cost(found.network), settled=False)
            if n == len(self.fitted.X) and (tries == 0 or tries >= most_tries):
                return found
            n = min(4 * n, len(self.fitted.X))

    def _refine(self, found: Explanation) -> tuple[Network, Samples]:
        """Step 4: to the last digit, or on all samples to the noise."""
        used = self._enough_for(found.network) if found.is_exact else self.all
        network = found.network
        if found.is_exact:
            network = drop_idle(network, used, _IDLE)
        self.tell(f"refining {degrees_of_freedom(network):,} parameters")
        return self._polished(network, used, exact=found.is_exact), used

    def _polished(self, network: Network, used: Samples, *, exact: bool) -> Network:
        rounding = np.finfo(np.float64).eps * float(np.abs(used.Y / used.sigma).max())
        is_large = degrees_of_freedom(network) > _LARGE
        goal = _ROUNDING * rounding if exact and is_large else 0.0
        stop = Stop(_REFINE_STEPS, rtol=_REFINE_RTOL, goal=goal)
        return fit(network, used, stop, damping=Damping(1e-9)).network

    def _resolve(self, network: Network, used: Samples, *, exact: bool) -> Patterns:
        """Step 5: signs that leave no affine rest, and the fit without one."""
        self.tell("resolving signs")
        network = with_unit_rows(network)
        noise = used.reduced_cost(network)
        errors = None if exact else self._errors(network, used, noise)
        patterns = resolve_patterns(network, errors)
        best: Network | None = None
        for candidate in patterns.networks:
            end = self._polished(candidate, used, exact=exact)
            fits = used.cost(end) <= EXACT if exact else price(end, used) <= price(network, used)
            if fits and (best is None or used.cost(end) < used.cost(best)):
                best = end
            if exact and best is not None:
                break
        return replace(patterns, network=with_unit_rows(best or network), plain=best is not None)

    def _finished(self, patterns: Patterns, used: Samples, found: Explanation) -> Recovery:
        network = patterns.network
        spread = float(self.all.sigma[0])
        noise = used.reduced_cost(network)
        floor = np.finfo(np.float64).eps * float(np.abs(self.all.Y).max()) / spread
        errors = self._errors(network, used, max(noise, floor))
        self.details |= {
            "exact": found.is_exact,
            "settled": found.settled,
            "noise": noise * spread,
            "standard_errors": errors,
            "sign_patterns": patterns.signs,
            "n_neurons": network.architecture[1],
        }
        off = 0.0 if errors is None else float(errors.W.max(initial=0.0))
        self.details["order"], self.details["independence"] = least_order(network.weights[0], off)
        if self.order == "1" and self.details["order"] != 1:
            self.warnings.append(
                "order 1 was given, and the rows of weights are not linearly independent"
            )
        self.evidence += what_cannot_be_known(patterns, errors)
        width = network.architecture[1]
        if self.n_neurons is not None and width != self.n_neurons:
            self.warnings.append(
                f"the samples show {width} neurons, not the {self.n_neurons} given"
            )
        return Recovery(
            Status.UNVERIFIED,
            network,
            ledger=Ledger(0, 0, {}),
            evidence=tuple(self.evidence),
            method="hermite",
            warnings=tuple(self.warnings),
            details=self.details,
        )

    def _errors(self, network: Network, used: Samples, noise: float) -> StandardErrors | None:
        if network.n_parameters > _MOST_PARAMETERS:
            return None
        n = min(len(used.X), _MOST_ROWS)
        # Fewer rows know less, by the square root of their share.
        sigma = self.all.sigma * noise * np.sqrt(n / len(used.X))
        return standard_errors(network, Samples(used.X[:n], used.Y[:n], sigma))

    def _rows(self, start: int, stop: int) -> Samples:
        return Samples(self.all.X[start:stop], self.all.Y[start:stop], self.all.sigma)

    def _n_searched(self, d: int) -> int:
        wanted = int(_SEARCH_EQUATIONS * (d + 2) * (self.n_neurons or d))
        return min(max(wanted, _LEAST_SEARCHED), len(self.fitted.X))

    def _enough_for(self, network: Network) -> Samples:
        n = max(int(_LIFT_EQUATIONS * degrees_of_freedom(network)), _LEAST_SEARCHED)
        return self._rows(0, min(n, len(self.fitted.X)))

    def _agrees(self, network: Network) -> bool:
        """Whether samples not fitted agree, but for units that fire on next to none."""
        outside = np.abs(self.checked.residual(network)) > _AGREES
        return bool(outside.mean() <= _MOST_OUTSIDE)


def _lifted(network: Network, basis: FloatArray, outside: FloatArray) -> Network:
    (W, A), (V, constant) = network.weights, network.affine
    return Network([W @ basis, A], network.biases, (V @ basis + outside, constant))
