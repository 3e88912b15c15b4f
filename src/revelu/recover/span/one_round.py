"""The span of a first layer from gradients that were all decided in advance (JWZ20, Algorithm 1).

One round: r = k log k Gaussian points, every coordinate of every gradient, and one query
more a point that tells whether a kink was crossed.  The step has to be chosen before
anything is known of a point.  Errata: the loop runs from 1 to r, and Lemma 3.2's points are
drawn from N(0, I_n).
"""

from dataclasses import dataclass

import numpy as np

from revelu.errors import LimitReachedError
from revelu.network.span import Span
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.gradient import Differences, Stencil, both_sides, unit_rows
from revelu.recover.method import Tell, Why
from revelu.recover.span.candidate import SpanCandidate
from revelu.recover.span.span_of_rows import NO_GAP, span_of, with_errors
from revelu.types import FloatArray


def n_gradients(n_neurons: int) -> int:
    """Return Algorithm 1's r, k log k (natural logarithm, k at least 2), with gamma = 1.

    Examples
    --------
    >>> n_gradients(80)
    351
    """
    k = max(n_neurons, 2)
    return int(np.ceil(k * np.log(k)))


@dataclass(frozen=True)
class OneRound:
    """JWZ20, Algorithm 1, Lemma 3.2 and Theorem 3.4, of a ReLU network at least k/2 directions."""

    n_neurons: int
    """The k of the algorithm: it fixes how many gradients are asked for."""
    smooth: bool = False
    """Whether the target curves everywhere: differences are then central, with the cube root of the
    noise floor, which balances, for a step."""
    step: float = 1e3
    """Else the step in units of the floor's root: one in a thousand differences crosses a kink."""

    def find(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, tell: Tell
    ) -> SpanCandidate:
        """Recover the row span of the first layer in one round of queries."""
        nu = float(noise.nu.max())
        h = float(np.cbrt(nu)) if self.smooth else min(self.step * np.sqrt(nu), 1.0)
        target = Differences(oracle, noise)
        rows: list[FloatArray] = []
        n_points = n_gradients(self.n_neurons)
        tell(f"{n_points} gradients")
        try:
            with oracle.round():
                found = [self._gradient(target, rng, h) for _ in range(n_points)]
        except LimitReachedError as error:
            return SpanCandidate(Span(np.empty((0, oracle.dim_in))), Why.LIMIT, (str(error),))
        rows = [gradient for gradient in found if gradient is not None]
        gradients = np.vstack([np.empty((0, oracle.dim_in)), *rows])
        span, clear = span_of(gradients / (target.error_at(np.ones(1)) * 2.0**0.5 / h))
        span = with_errors(span, gradients)
        return SpanCandidate(
            span,
            Why.EXPLAINED if clear else Why.UNRESOLVED,
            () if clear else (NO_GAP,),
            expected_angle=float(np.linalg.norm(span.errors)),
            figures={"gradients": len(gradients), "dropped": n_points - len(rows)},
        )

    def _gradient(
        self, target: Differences, rng: np.random.Generator, h: float
    ) -> FloatArray | None:
        """One gradient of each output, shape (k, n); None where a kink is near."""
        n = target.oracle.dim_in
        x = rng.standard_normal(n)
        v = unit_rows(rng, 1, n)[0]
        if self.smooth:
            slopes = np.subtract(*both_sides(target.answers, x, h * np.eye(n))) / (2.0 * h)
            return slopes.T if np.isfinite(slopes).all() else None
        found = Stencil(x, np.eye(n), np.full(n, h), aside=2.0 * h * v).measure(target.answers)
        # Two answers, and twice the error of a unit combination of differences.
        atol = SIGMAS * target.error_at(x) * np.sqrt(2.0 + 8.0)
        return found.values.T if found.is_finite and (found.apart <= atol).all() else None
