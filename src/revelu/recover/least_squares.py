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
5. In all coordinates, refit everything to fresh Gaussian queries, of rounded answers to
   those foretold to round least, and weigh each answer by its own error.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network
from revelu.numerics.interruption import interruptible
from revelu.numerics.two_layer import Samples, TwoLayer
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.gradients import gradient_span
from revelu.probe.kinks import find_kinks
from revelu.probe.line import random_line
from revelu.recover.search import (
    Shape,
    explain,
    is_explained,
    is_near,
    refine,
    shape_of,
    sharpen,
)
from revelu.recover.signs import resolve_signs
from revelu.recovery import Recovery, Status
from revelu.types import FloatArray

log = logging.getLogger(__name__)

# Below this many inputs the span is not worth its queries.  Above this noise neither it
# nor the kinks of a line are to be had.
_SPAN_FROM = 128
_FINE = 4e-5

# The reduced cost that noise alone may leave: its floor is an estimate, but for the grid
# of rounded answers, whose error is known.
_LIMIT = 1.5
_GRID_LIMIT = 1.2

# Saturated answers say nothing; where more than this share is lost, so is the search.
_LEAST_ANSWERED = 0.25

# The first samples could determine this many neurons, or a quarter of the inputs; inside
# a span, this much more than its dimension.
_FIRST_WIDTH = 4
_SPAN_MARGIN = 1.25

# The noise of a line's answers is what differences of answers suggest, times what they
# hide and what rounding the queries adds.
_LINE_NOISE = 3.0
_LINE_MARGIN = 1.1

# Where the search ends: a network of more neurons than this and four times the inputs,
# or more work a step.
_MOST_NEURONS = 128
_MOST_WORK = 4e9

# Equations a parameter for the last fit: of a network known in a span only, where every
# equation of one output is a query, and of coarser answers, whose errors the fit is to
# average.
_FINAL_EQUATIONS = 2.1
_FINAL_EQUATIONS_ONE_OUTPUT = 1.25
_COARSE_NOISE = 4e-6
_COARSE_EQUATIONS = 3.4
_COARSE_EQUATIONS_MANY_OUTPUTS = 6.0

# Of so many places one is asked, that where the answer is foretold to round least.
_CANDIDATES = 32

# The affine rest that noise leaves is this share of the neurons' affine maps at most; a
# refit without it decides, and a cost that grows by no more than this.
_REST_RTOL = 0.05
_SIGN_ROUNDING = 0.3
_REST_COST = 1.2

Tell = Callable[[str], None]


class _NotPiecewiseAffineError(Exception):
    """A line without affine pieces."""


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
        ``UNVERIFIED`` with the network, whether it explains the samples or not;
        ``NOT_IN_CLASS`` where a line has no affine pieces; ``BUDGET_EXHAUSTED`` with what
        was found.

    Notes
    -----
    Source: inside the span of the gradients (JWZ20, Theorem 3.4) as in all coordinates, a
    fit with neurons to spare, consolidated (ATV21, Algorithm 5, by another route).
    """
    return _LeastSquares(oracle, noise, np.random.default_rng(seed), tell).run()


class _LeastSquares:
    """``best`` is the best network so far, in coordinates of ``basis`` where there is one."""

    def __init__(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, tell: Tell
    ) -> None:
        self.oracle, self.noise, self.rng, self.tell = oracle, noise, rng, tell
        self.best: TwoLayer | None = None
        self.basis: FloatArray | None = None
        self.n_kinks: int | None = None
        self.limit = _GRID_LIMIT if noise.grid is not None else _LIMIT
        self.evidence: list[str] = []

    def run(self) -> Recovery:
        status = Status.UNVERIFIED
        try:
            with interruptible(self.oracle.check_time):
                self._find_span()
                self._finish(self._search())
        except LimitReachedError as error:
            status = Status.BUDGET_EXHAUSTED
            self.evidence.append(str(error))
        except SaturatedError as error:
            self.evidence.append(str(error))
        except _NotPiecewiseAffineError as error:
            status, self.best = Status.NOT_IN_CLASS, None
            self.evidence.append(str(error))
        return Recovery(
            status,
            None if self.best is None else _as_network(self.best, self.basis),
            self.oracle.ledger(),
            evidence=tuple(self.evidence),
            warnings=() if self.best is None else (self._resolution(),),
            method="least_squares",
        )

    def _find_span(self) -> None:
        """Step 1: the directions that matter, where that saves queries."""
        d = self.oracle.dim_in
        if d < _SPAN_FROM or self.noise.coarseness > _FINE:
            return
        self.tell("measuring the span of the gradients")
        span = gradient_span(self.oracle, self.noise, self.rng, max_rank=d // 2)
        if span is not None:
            self.basis = span.basis
            log.info("the gradients span %d of %d directions", len(span.basis), d)

    def _search(self) -> Samples:
        """Steps 2 and 3: more samples until a network explains them."""
        shape = self._shape()
        if self.basis is None:
            n = max(shape.n_samples(max(_FIRST_WIDTH, shape.d // 4)), 2 * (shape.d + 1))
        else:
            n = shape.n_samples(int(_SPAN_MARGIN * shape.d) + 2)
        samples = self._ask(n)
        start: TwoLayer | None = None
        while True:
            width = shape.width(n)
            self._explain(samples, start)
            invented = is_explained(self._best(), samples, self.limit)
            if invented:
                samples = samples.joined(self._ask(shape.n_held_out(n)))
                if is_explained(self._best(), samples, self.limit):
                    return samples
                log.debug("fresh answers disagree: a neuron fires on few of the samples")
            if width >= max(_MOST_NEURONS, 4 * shape.d) or samples.X.size * width > _MOST_WORK:
                self.evidence.append(
                    f"no network of one hidden layer and up to {width} neurons was found that "
                    f"explains {len(samples.X):,} answers to within their digits"
                )
                return samples
            # What interpolates is near, too, but no place to start from.
            near = not invented and is_near(self._best(), samples)
            start = self._best() if near else None
            more = shape.more(len(samples.X))
            if not shape.is_short(n) and self.n_kinks is None:
                self._look_along_a_line()
                more = max(more, shape.n_samples(int(_LINE_MARGIN * (self.n_kinks or 0))))
            samples = samples.joined(self._ask(more - len(samples.X)))
            n = more

    def _explain(self, samples: Samples, start: TwoLayer | None) -> None:
        width = shape_of(samples).width(len(samples.X))
        self.tell(f"fitting up to {width} neurons to {len(samples.X):,} answers")
        self.best = explain(self.rng, samples, self.limit, start)

    def _look_along_a_line(self) -> None:
        """Count the kinks of a line, where answers have digits for that.

        It says how many neurons to look for, and tells smooth functions apart.
        """
        self.n_kinks = 0
        if self.noise.coarseness > _FINE or self.oracle.takes_log_ratios:
            return
        self.tell("counting kinks along a line")
        line = random_line(self.rng, self.oracle.dim_in)
        nu = _LINE_NOISE * float(self.noise.nu.max())
        scan = find_kinks(self.oracle, line, nu, self.noise.scale, self.rng)
        if not scan.complete:
            raise _NotPiecewiseAffineError(scan.message)
        self.n_kinks = len(scan.kinks)
        log.info("%d kinks along a line", self.n_kinks)

    def _finish(self, samples: Samples) -> None:
        """Steps 4 and 5, for a network that explains its samples."""
        if not is_explained(self._best(), samples, self.limit):
            return
        notes = self._drop_rest(samples)
        if self.basis is None:
            samples = self._enough(samples)
            self.best = self._refined(samples)
        else:
            samples = self._lift()
            if not is_explained(self._best(), samples, self.limit):
                self.tell("looking for what lies outside the span")
                self._explain(samples, self._best())
                notes = self._drop_rest(samples)
                self.best = refine(self._best(), samples).network
        self.evidence += notes

    def _refined(self, samples: Samples) -> TwoLayer:
        """The last fit, where errors differ step by step."""
        if samples.sigma.ndim == 1 or samples.Y.shape[1] > 1:
            return refine(self._best(), samples).network
        self.tell("weighing each answer by its error")
        return sharpen(self.rng, self._best(), samples)

    def _lift(self) -> Samples:
        """Refit in all coordinates, to fresh queries."""
        network = _in_all_coordinates(self._best(), self.basis)
        k = len(network.c)
        equations = _FINAL_EQUATIONS if k > 1 else _FINAL_EQUATIONS_ONE_OUTPUT
        n = int(np.ceil(equations * network.n_parameters / k))
        X = self.rng.standard_normal((n, self.oracle.dim_in))
        samples = self._answered(_as_float32(X))
        self.tell(f"refining {network.n_parameters:,} parameters")
        self.best, self.basis = network, None
        self.best = refine(network, samples).network
        log.debug("all coordinates: %.3g", samples.reduced_cost(self.best))
        return samples

    def _enough(self, samples: Samples) -> Samples:
        """Samples enough to average coarse errors."""
        network = self._best()
        k = len(network.c)
        equations = _COARSE_EQUATIONS if k == 1 else _COARSE_EQUATIONS_MANY_OUTPUTS
        wanted = int(np.ceil(equations * network.n_parameters / k))
        if self.noise.coarseness < _COARSE_NOISE or wanted <= len(samples.X):
            return samples
        return samples.joined(self._ask_where_precise(wanted - len(samples.X)))

    def _ask_where_precise(self, n: int) -> Samples:
        """Gaussian queries whose answers round least, as the network foretells them.

        A grid of significant digits is finer by ten where an answer is smaller by ten.
        """
        if self.noise.grid is None or self._shape().k > 1:
            return self._ask(n)
        X = _as_float32(self.rng.standard_normal((_CANDIDATES * n, self.oracle.dim_in)))
        order = np.argsort(self.noise.sigma(self._best()(X))[:, 0], kind="stable")
        return self._answered(X[order[:n]])

    def _drop_rest(self, samples: Samples) -> list[str]:
        """Turn neurons round until no affine rest is left, if the samples agree."""
        best, even = self._best(), samples.evenly()
        network, notes = resolve_signs(_as_network(best, None), _REST_RTOL, _SIGN_ROUNDING, 1.0)
        if notes or network.skip is not None:
            return notes
        (W, A), (b, c) = network.weights, network.biases
        plain = refine(TwoLayer(W.copy(), b.copy(), A.copy(), c.copy()), even).network
        if even.reduced_cost(plain) > max(self.limit, _REST_COST * even.reduced_cost(best)):
            return ["the affine skip is kept: without it the answers do not fit"]
        self.best = plain
        return []

    def _resolution(self) -> str:
        """What these answers cannot show."""
        sigma = float((self.noise.nu * self.noise.scale).max()) * np.sqrt(2.0)
        return (
            f"the answers are {self.noise.law}, with errors of about {sigma:.1g}: any neuron that "
            f"contributes less than {self.limit * sigma:.1g} (root mean square over N(0, I)) "
            "would be missing"
        )

    def _best(self) -> TwoLayer:
        if self.best is None:  # pragma: no cover - a search always leaves one
            raise AssertionError
        return self.best

    def _shape(self) -> Shape:
        d = self.oracle.dim_in if self.basis is None else len(self.basis)
        return Shape(d, self.oracle.dim_out)

    def _ask(self, n: int) -> Samples:
        """Gaussian queries inside the span, in its coordinates."""
        X = self.rng.standard_normal((n, self._shape().d))
        if self.basis is None:
            return self._answered(_as_float32(X))
        samples = self._answered(_as_float32(X @ self.basis))
        return replace(samples, X=samples.X @ self.basis.T)

    def _answered(self, X: FloatArray) -> Samples:
        Y = self.oracle(X)
        answered = np.isfinite(Y).all(axis=1)
        if answered.sum() < _LEAST_ANSWERED * len(X):
            raise SaturatedError(
                f"the target is saturated at {1 - answered.mean():.0%} of the inputs of N(0, I)"
            )
        X, Y = X[answered], Y[answered]
        return Samples(X, Y, _positive(self.noise.sigma(Y), Y))


def _in_all_coordinates(network: TwoLayer, basis: FloatArray | None) -> TwoLayer:
    if basis is None:
        return network
    V = None if network.V is None else network.V @ basis
    return TwoLayer(network.W @ basis, network.b, network.A, network.c, V)


def _as_network(network: TwoLayer, basis: FloatArray | None) -> Network:
    network = _in_all_coordinates(network, basis)
    skip = None if network.V is None else (network.V, np.zeros(len(network.c)))
    return Network([network.W, network.A], [network.b, network.c], skip=skip)


def _as_float32(X: FloatArray) -> FloatArray:
    """Queries that a float32 target is asked exactly."""
    return X.astype(np.float32).astype(np.float64)


def _positive(sigma: FloatArray, Y: FloatArray) -> FloatArray:
    """An error of 0 is one of rounding: an output that never varies."""
    size = np.abs(Y).max(axis=0, initial=0.0)
    floor = np.finfo(np.float64).eps * np.maximum(size, np.finfo(np.float32).tiny)
    return np.asarray(np.maximum(sigma, floor))
