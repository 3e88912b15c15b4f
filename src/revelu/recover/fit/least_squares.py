"""Recovery of a two-layer network from answers of few digits, by least squares.

    f(x) = A relu(W x + b) + V x + c

Steps that divide differences of answers by small distances lose the digits that float32
or rounded answers do not have.  Here no answer is divided by anything: queries of
N(0, I), decided in advance of their answers, and the network that explains them.

1. Where the inputs are many, ask in a few coordinates first: there the function is again
   a two-layer network, a smaller one.  With several outputs these are the directions that
   matter (JWZ20's row span), which few gradients show; with one, those of a random slice.
2. Ask Gaussian queries, more of them until a network with neurons to spare explains them.
3. Take out the neurons that are not needed, the affine rest being free.
4. Turn neurons round so that the affine rest vanishes.
5. In all coordinates, to which slopes carry a network of a slice over, refit everything
   to fresh Gaussian queries, of rounded answers to those foretold to round least, and
   weigh each answer by its own error.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network
from revelu.numerics.interruption import interruptible
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.gradient_span import gradient_span
from revelu.probe.kinks import find_kinks
from revelu.probe.line import random_line
from revelu.recover.fit.search import (
    SEVERAL_OUTPUTS,
    Shape,
    explain,
    is_explained,
    is_near,
    refine,
    shape_of,
    sharpen,
)
from revelu.recover.fit.slices import Subspace, carry_over, random_slice
from revelu.recover.fit.two_layer import Samples, TwoLayer
from revelu.recover.signs import resolve_signs
from revelu.recovery import Recovery, Status
from revelu.types import FloatArray

log = logging.getLogger(__name__)

# Below this many inputs fewer coordinates are not worth their queries.  Above this noise
# neither slopes nor the kinks of a line are to be had.
_MANY_INPUTS = 128
_FINE = 4e-5

# The coordinates of a slice.
_SLICE_INPUTS = 32

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

# Samples of so many equations a parameter that a network explains are no accident: it
# is right but for neurons that fire on few of them.
_NO_INTERPOLATION = 2.0

# The noise of a line's answers is what differences of answers suggest, times what they
# hide and what rounding the queries adds.
_LINE_NOISE = 3.0
_LINE_MARGIN = 1.1

# Where the search ends: a network of more neurons than this and four times the inputs,
# or more work a step.
_MOST_NEURONS = 128
_MOST_WORK = 4e9

# And where it is stuck: twice the neurons leave more than this share of what fewer left of
# the answers' variation.  On the way to random networks it was 0.85 at most.
_STUCK = 0.95

# Equations a parameter for the last fit: of a network known in a span only; beside those of
# slopes, where there are hardly more equations than queries; and of coarser answers, whose
# errors the fit is to average.
_FINAL_EQUATIONS = 2.1
_FINAL_EQUATIONS_FEW_OUTPUTS = 1.25
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
    """``best`` is the best network so far, in coordinates of ``subspace`` if there is one."""

    def __init__(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, tell: Tell
    ) -> None:
        self.oracle, self.noise, self.rng, self.tell = oracle, noise, rng, tell
        self.best: TwoLayer | None = None
        self.subspace: Subspace | None = None
        self.n_kinks: int | None = None
        self.is_stuck = False
        self.limit = _GRID_LIMIT if noise.grid is not None else _LIMIT
        self.evidence: list[str] = []

    def run(self) -> Recovery:
        status = Status.UNVERIFIED
        try:
            with interruptible(self.oracle.check_time):
                self._choose_coordinates()
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
            None if self.best is None else self._network(),
            ledger=self.oracle.ledger(),
            evidence=tuple(self.evidence),
            warnings=() if self.best is None else (self._resolution(),),
            method="least_squares",
            details={"refuted": self.is_stuck},
        )

    def _choose_coordinates(self) -> None:
        """Step 1: few coordinates, where that saves queries."""
        d = self.oracle.dim_in
        if d < _MANY_INPUTS or self.noise.coarseness > _FINE:
            return
        if self.oracle.dim_out < SEVERAL_OUTPUTS:
            self.subspace = random_slice(self.rng, d, _SLICE_INPUTS)
            return
        self.tell("measuring the span of the gradients")
        span = gradient_span(self.oracle, self.noise, self.rng, max_rank=d // 2)
        if span is not None:
            self.subspace = Subspace(span.basis)
            log.info("the gradients span %d of %d directions", len(span.basis), d)

    def _search(self) -> Samples:
        """Steps 2 and 3: more samples until a network explains them."""
        shape = self._shape()
        if self.subspace is None:
            n = max(shape.n_samples(max(_FIRST_WIDTH, shape.d // 4)), 2 * (shape.d + 1))
        else:
            n = shape.n_samples(int(_SPAN_MARGIN * shape.d) + 2)
        samples = self._ask(n)
        start: TwoLayer | None = None
        left: list[tuple[int, float]] = []
        while True:
            self._explain(samples, start)
            even = samples.evenly()
            spread = max(even.spread(), np.finfo(np.float64).tiny)  # 0 of a constant
            left.append((shape.width(n), even.cost(self._best()) / spread))
            invented = is_explained(self._best(), samples, self.limit)
            if invented:
                samples = samples.joined(self._ask(shape.n_held_out(n)))
                if is_explained(self._best(), samples, self.limit):
                    return samples
                log.debug("fresh answers disagree: a neuron fires on few of the samples")
            if self._is_hopeless(left, samples):
                return samples
            # What interpolates is near, too, but no place to start from.
            determined = samples.n_equations >= _NO_INTERPOLATION * self._best().n_parameters
            near = (determined or not invented) and is_near(self._best(), samples)
            start = self._best() if near else None
            more = shape.more(len(samples.X))
            if not shape.is_short(n) and self.n_kinks is None:
                self._look_along_a_line()
                more = max(more, shape.n_samples(int(_LINE_MARGIN * (self.n_kinks or 0))))
            samples = samples.joined(self._ask(more - len(samples.X)))
            n = more

    def _is_hopeless(self, left: list[tuple[int, float]], samples: Samples) -> bool:
        """Whether the search ends, after these widths and what each left; and why."""
        width = left[-1][0]
        fewer = min((share for w, share in left if 2 * w <= width), default=np.inf)
        self.is_stuck = min(share for w, share in left if 2 * w > width) > _STUCK * fewer
        is_wide = width >= max(_MOST_NEURONS, 4 * self._shape().d)
        if not (self.is_stuck or is_wide or samples.X.size * width > _MOST_WORK):
            return False
        self.evidence.append(
            f"no network of one hidden layer and up to {width} neurons was found that explains "
            f"{len(samples.X):,} answers to within their digits"
            + (", and twice the neurons explain no more" if self.is_stuck else "")
        )
        return True

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
        if self.subspace is None:
            samples = self._enough(samples)
            self.best = self._refined(samples)
        else:
            samples = self._in_all_coordinates(self.subspace)
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

    def _in_all_coordinates(self, subspace: Subspace) -> Samples:
        """Refit in all coordinates, to fresh queries."""
        d, k = self.oracle.dim_in, self.oracle.dim_out
        if k < SEVERAL_OUTPUTS:
            self.tell("measuring the rows of the neurons")
            network, slopes = carry_over(self._answered, self.rng, self._best(), subspace)
            equations = _FINAL_EQUATIONS_FEW_OUTPUTS
        else:
            network, slopes = subspace.in_all_coordinates(self._best()), None
            equations = _FINAL_EQUATIONS
        n = int(np.ceil(equations * network.n_parameters / k))
        samples = self._answered(self.rng.standard_normal((n, d)))
        samples = samples if slopes is None else slopes.joined(samples)
        self.tell(f"refining {network.n_parameters:,} parameters")
        self.best, self.subspace = network, None
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
        X = self.rng.standard_normal((_CANDIDATES * n, self.oracle.dim_in))
        order = np.argsort(self.noise.sigma(self._best()(X))[:, 0], kind="stable")
        return self._answered(X[order[:n]])

    def _drop_rest(self, samples: Samples) -> list[str]:
        """Turn neurons round until no affine rest is left, if the samples agree."""
        best, even = self._best(), samples.evenly()
        network, notes = resolve_signs(_as_network(best), _REST_RTOL, _SIGN_ROUNDING, 1.0)
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

    def _network(self) -> Network:
        best = self._best()
        return _as_network(
            best if self.subspace is None else self.subspace.in_all_coordinates(best)
        )

    def _shape(self) -> Shape:
        d = self.oracle.dim_in if self.subspace is None else self.subspace.dim
        return Shape(d, self.oracle.dim_out)

    def _ask(self, n: int) -> Samples:
        """Gaussian queries, in the coordinates of the subspace."""
        X = self.rng.standard_normal((n, self._shape().d))
        if self.subspace is None:
            return self._answered(X)
        samples = self._answered(self.subspace.points(X))
        return replace(samples, X=self.subspace.coordinates(samples.X))

    def _answered(self, X: FloatArray) -> Samples:
        """Ask what a float32 target is asked exactly."""
        X = X.astype(np.float32).astype(np.float64)
        Y = self.oracle(X)
        answered = np.isfinite(Y).all(axis=1)
        if answered.sum() < _LEAST_ANSWERED * len(X):
            raise SaturatedError(
                f"the target is saturated at {1 - answered.mean():.0%} of the inputs of N(0, I)"
            )
        X, Y = X[answered], Y[answered]
        return Samples(X, Y, _positive(self.noise.sigma(Y), Y))


def _as_network(network: TwoLayer) -> Network:
    skip = None if network.V is None else (network.V, np.zeros(len(network.c)))
    return Network([network.W, network.A], [network.b, network.c], skip=skip)


def _positive(sigma: FloatArray, Y: FloatArray) -> FloatArray:
    """An error of 0 is one of rounding: an output that never varies."""
    size = np.abs(Y).max(axis=0, initial=0.0)
    floor = np.finfo(np.float64).eps * np.maximum(size, np.finfo(np.float32).tiny)
    return np.asarray(np.maximum(sigma, floor))
