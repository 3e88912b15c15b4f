"""Recovery of a two-layer network from answers of few digits, by least squares.

    f(x) = A relu(W x + b) + V x + c

Steps that divide differences of answers by small distances lose the digits that float32
or rounded answers do not have.  Here no answer is divided by anything: queries of
N(0, I), decided in advance of their answers, and the network that explains them.

1. Where the inputs are many, find the few directions that matter (JWZ20's row span):
   inside their span the function is again a two-layer network, a smaller one.
2. Ask Gaussian queries, more of them until a network with neurons to spare explains them.
3. Take out the neurons that are not needed, the affine rest being free.
4. Turn neurons round so that the affine rest vanishes.
5. In all coordinates, refit everything to fresh Gaussian queries, and weigh each answer
   by its own error.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network import Network
from revelu.numerics.levenberg_marquardt import Fit, fit, is_dense
from revelu.numerics.pruning import prune
from revelu.numerics.two_layer import Samples, TwoLayer
from revelu.numerics.wide_fit import searches
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.gradients import gradient_span
from revelu.recover.signs import resolve_signs
from revelu.recovery import Recovery, Status
from revelu.types import FloatArray

log = logging.getLogger(__name__)

# Below this many inputs the span is not worth its queries, and above this noise it is
# not to be had.
_SPAN_FROM = 32
_SPAN_NOISE = 1e-5

# Of the samples' degrees of freedom a search uses at most a share of 1 / this, growing
# neuron by neuron or all at once.
_GROWN_EQUATIONS = 1.6
_WIDE_EQUATIONS = 2.6

# Growing neuron by neuron is worth its time up to this many multiplications a fit.
_SLOW_WORK = 2e11

# The first stage could explain this many neurons; every stage asks for more queries.
_FIRST_WIDTH = 4
_GROWTH = 1.12
_FAST_GROWTH = 1.3
_SPAN_MARGIN = 1.25

# Searches on the same samples: short ones are repeated more often.
_GROWN_SEARCHES = 6
_WIDE_SEARCHES = 2

# Where the search ends: a network of more neurons than this, or more work a step.
_MOST_NEURONS = 256
_MOST_WORK = 4e9

# A search that left this share of the variation may have found all but a few neurons.
_PROMISING = 0.02
_NEARLY = 3e-3

# Noise alone leaves no more than this reduced cost: the floor itself is an estimate.
EXPLAINED = 1.5

# Equations a parameter for the last fit.
_FINAL_EQUATIONS = 2.1
_FINAL_EQUATIONS_ONE_OUTPUT = 1.25
_FINAL_STEPS = 40
_FINAL_ITERATIONS = 80

# The affine rest that noise leaves is this share of the neurons' affine maps at most; a
# refit without it decides.
_REST_RTOL = 0.05

Tell = Callable[[str], None]


@dataclass
class _State:
    """What is known so far."""

    samples: Samples
    network: TwoLayer
    explained: bool = False


def recover_by_least_squares(
    oracle: Oracle,
    noise: NoiseFloor,
    seed: int | np.random.SeedSequence,
    tell: Tell = log.debug,
) -> Recovery:
    """Recover ``f(x) = A relu(W x + b) + V x + c`` from answers of few digits.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
        What counts as explained comes from it.
    seed : int or SeedSequence
    tell : callable
        Called with what is being done.

    Returns
    -------
    Recovery
        ``UNVERIFIED`` with the network, explained or not; ``BUDGET_EXHAUSTED`` with what
        was found.

    Notes
    -----
    Source: the wide student and its pruning follow ATV21's consolidation in spirit; the
    span is JWZ20, Theorem 3.4.
    """
    return _LeastSquares(oracle, noise, np.random.default_rng(seed), tell).run()


class _LeastSquares:
    def __init__(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, tell: Tell
    ) -> None:
        self.oracle, self.noise, self.rng, self.tell = oracle, noise, rng, tell
        self.best: TwoLayer | None = None
        self.basis: FloatArray | None = None
        self.evidence: list[str] = []

    def run(self) -> Recovery:
        status = Status.UNVERIFIED
        try:
            self._find_span()
            state = self._search()
            if state.explained:
                state = self._finish(state)
            self.best = state.network
            if not state.explained:
                self.evidence.append(
                    f"no network of one hidden layer and up to {self._most(state.samples)} "
                    f"neurons explains {len(state.samples.X):,} answers to within their digits"
                )
        except LimitReachedError as error:
            status = Status.BUDGET_EXHAUSTED
            self.evidence.append(str(error))
        network = None if self.best is None else self._as_network(self.best)
        return Recovery(
            status,
            network,
            self.oracle.ledger(),
            evidence=tuple(self.evidence),
            method="least_squares",
        )

    def _find_span(self) -> None:
        """Step 1: the directions that matter, where that saves queries."""
        d = self.oracle.dim_in
        if d < _SPAN_FROM or self.noise.nu.max() > _SPAN_NOISE:
            return
        self.tell("measuring the span of the gradients")
        span = gradient_span(self.oracle, self.noise, self.rng, max_rank=d // 2)
        if span is not None:
            self.basis = span.basis
            log.info("the gradients span %d of %d directions", len(span.basis), d)

    def _dim(self) -> int:
        return self.oracle.dim_in if self.basis is None else len(self.basis)

    def _search(self) -> _State:
        """Steps 2 and 3: more samples until a network explains them."""
        samples = self._ask(self._first_size())
        start: TwoLayer | None = None
        while True:
            state = self._explain(samples, start)
            self.best = state.network
            if state.explained or self._most(samples) >= _MOST_NEURONS:
                return state
            nearly = samples.cost(state.network) < _NEARLY * samples.spread()
            start = state.network if nearly and state.network.width else None
            factor = _GROWTH if self._grows(samples) else _FAST_GROWTH
            if self._work(samples) > _MOST_WORK:
                return state
            samples = samples.joined(self._ask(int(np.ceil((factor - 1.0) * len(samples.X)))))

    def _explain(self, samples: Samples, start: TwoLayer | None) -> _State:
        """Search and prune on one set of samples."""
        width = self._most(samples)
        self.tell(f"fitting up to {width} neurons to {len(samples.X):,} answers")
        tries = _GROWN_SEARCHES if self._grows(samples) else _WIDE_SEARCHES
        best: TwoLayer | None = None
        found = searches(self.rng, samples, width, 1.0, start, grows=self._grows(samples))
        for candidate in islice(found, tries):
            network = candidate.network
            if candidate.cost < max(_PROMISING * samples.spread(), EXPLAINED):
                network = prune(network, samples, EXPLAINED).network
            reduced = samples.reduced_cost(network)
            log.debug(
                "%d samples, width %d: cost %.3g, %d neurons: %.3g",
                len(samples.X), width, candidate.cost, network.width, reduced,
            )
            if best is None or samples.cost(network) < samples.cost(best):
                best = network
            if reduced <= EXPLAINED:
                return _State(samples, network, explained=True)
        if best is None:  # pragma: no cover - there is at least one search
            raise AssertionError
        return _State(samples, best)

    def _finish(self, state: _State) -> _State:
        """Steps 4 and 5."""
        plain, notes = self._without_rest(state)
        if self.basis is not None:
            samples, network = self._ask_everywhere(plain)
            self.tell(f"refining {network.n_parameters:,} parameters")
            self.best = network
            network = self._refine(network, samples).network
            reduced = samples.reduced_cost(network)
            log.debug("all %d coordinates: %.3g", self.oracle.dim_in, reduced)
            self.basis = None
            state = _State(samples, network, explained=reduced <= EXPLAINED)
            if not state.explained:
                return self._repaired(state)
        else:
            network = self._refine(plain, state.samples).network
            state = replace(state, network=network)
        if notes:
            self.evidence += notes
        return state

    def _repaired(self, state: _State) -> _State:
        """Look for what the span had missed, in all coordinates."""
        self.tell("looking for neurons outside the span")
        state = self._explain(state.samples, state.network)
        if state.explained:
            plain, notes = self._without_rest(state)
            self.evidence += notes
            state = replace(state, network=self._refine(plain, state.samples).network)
        return state

    def _refine(self, network: TwoLayer, samples: Samples) -> Fit:
        sigma = np.sqrt(np.mean(np.broadcast_to(samples.sigma, samples.Y.shape) ** 2, axis=0))
        even = replace(samples, sigma=sigma)
        found = fit(
            network,
            even,
            max_steps=_FINAL_STEPS,
            rtol=0.02,
            damping=1e-9,
            iterations=_FINAL_ITERATIONS,
        )
        if samples.sigma.ndim == 1:
            return found
        # Each answer by its own error, now that the activation patterns are right.
        return fit(found.network, samples, max_steps=_FINAL_STEPS, rtol=1e-3, damping=1e-6)

    def _without_rest(self, state: _State) -> tuple[TwoLayer, list[str]]:
        """Turn neurons round until no affine rest is left, if the samples agree."""
        network, notes = resolve_signs(self._as_network(state.network, lift=False), _REST_RTOL)
        if notes:
            return state.network, notes
        (W, A), (b, c) = network.weights, network.biases
        samples = state.samples
        plain = fit(
            TwoLayer(W.copy(), b.copy(), A.copy(), c.copy()),
            samples,
            max_steps=_FINAL_STEPS,
            rtol=0.02,
            damping=1e-6,
        ).network
        # What fits no worse without the affine rest has none.
        allowed = max(EXPLAINED, 1.2 * samples.reduced_cost(state.network))
        if samples.reduced_cost(plain) <= allowed:
            return plain, []
        return state.network, ["the affine skip is kept: without it the answers do not fit"]

    def _ask(self, n: int) -> Samples:
        """Gaussian queries inside the span, in its coordinates."""
        Z = self.rng.standard_normal((n, self._dim()))
        X = Z if self.basis is None else Z @ self.basis
        X = _as_float32(X)
        samples = self._answered(X)
        return samples if self.basis is None else replace(samples, X=samples.X @ self.basis.T)

    def _ask_everywhere(self, network: TwoLayer) -> tuple[Samples, TwoLayer]:
        """Gaussian queries in all coordinates, and the network in them."""
        assert self.basis is not None
        basis = self.basis
        V = None if network.V is None else network.V @ basis
        network = TwoLayer(network.W @ basis, network.b, network.A, network.c, V)
        k = len(network.c)
        wanted = _FINAL_EQUATIONS if k > 1 else _FINAL_EQUATIONS_ONE_OUTPUT
        n = int(np.ceil(wanted * network.n_parameters / k))
        X = _as_float32(self.rng.standard_normal((n, self.oracle.dim_in)))
        return self._answered(X), network

    def _answered(self, X: FloatArray) -> Samples:
        Y = self.oracle(X)
        answered = np.isfinite(Y).all(axis=1)
        X, Y = X[answered], Y[answered]
        return Samples(X, Y, _positive(self.noise.sigma(Y), Y))

    def _first_size(self) -> int:
        d = self._dim()
        k = self.oracle.dim_out
        width = _FIRST_WIDTH if self.basis is None else int(_SPAN_MARGIN * d) + 2
        share = _WIDE_EQUATIONS if self.basis is not None else _GROWN_EQUATIONS
        return max(int(np.ceil(1.1 * share * width * (d + 1 + k) / k)), 2 * (d + 1))

    def _most(self, samples: Samples) -> int:
        """The widest network that the samples determine."""
        (n, d), k = samples.X.shape, samples.Y.shape[1]
        share = _GROWN_EQUATIONS if self._grows(samples) else _WIDE_EQUATIONS
        return max(int((n * k / share - k * (d + 1)) / (d + 1 + k)), 1)

    def _grows(self, samples: Samples) -> bool:
        (n, d), k = samples.X.shape, samples.Y.shape[1]
        width = max(int(n * k / _GROWN_EQUATIONS / (d + 1 + k)), 1)
        n_parameters = width * (d + 1 + k)
        return is_dense(samples, width) and n * k * n_parameters**2 * width < _SLOW_WORK

    def _work(self, samples: Samples) -> float:
        return float(samples.X.size) * self._most(samples)

    def _as_network(self, network: TwoLayer, *, lift: bool = True) -> Network:
        basis = self.basis if lift else None
        W = network.W if basis is None else network.W @ basis
        skip = None
        if network.V is not None:
            V = network.V if basis is None else network.V @ basis
            skip = (V, np.zeros(len(network.c)))
        return Network([W, network.A], [network.b, network.c], skip=skip)


def _as_float32(X: FloatArray) -> FloatArray:
    """Queries that a float32 target is asked exactly."""
    return X.astype(np.float32).astype(np.float64)


def _positive(sigma: FloatArray, Y: FloatArray) -> FloatArray:
    """An error of 0 is one of rounding: an output that never varies."""
    floor = np.finfo(np.float64).eps * np.maximum(np.abs(Y).max(axis=0), np.finfo(np.float32).tiny)
    return np.maximum(sigma, floor)
