"""What a fit asks of its target: samples with their errors, and what lines take."""

from dataclasses import dataclass, field, replace

import numpy as np

from revelu.errors import SaturatedError
from revelu.numerics.confidence import SIGMAS
from revelu.probe.answered import Answered
from revelu.probe.region import Region
from revelu.recover.fit.fit import Fit
from revelu.recover.fit.sizes import Sizes
from revelu.recover.method import Search
from revelu.recover.refine.network_fit import Samples
from revelu.recover.refine.served_fit import Served
from revelu.recover.subspace import Subspace
from revelu.types import FloatArray


@dataclass
class FitQuestions(Search):
    """A fit's questions, in coordinates of a subspace where one is searched."""

    method: Fit
    served: Served | None = field(default=None, init=False)
    """What was answered behind a head, as it was."""
    subspace: Subspace | None = field(default=None, init=False)
    """The few coordinates of many inputs that are searched."""

    @property
    def _region(self) -> Region:
        """Where the target is asked, in all coordinates."""
        region = self.method.from_lines.region
        return replace(region, ask=self.oracle) if isinstance(region, Answered) else region

    @property
    def _where(self) -> str:
        return self.oracle.where

    def _sizes(self) -> Sizes:
        d = self.oracle.dim_in if self.subspace is None else self.subspace.dim
        # Log-ratios of few digits take more equations in the end than neuron by neuron spares.
        slow = 0.0 if self.noise.link.has_head else Sizes.slow
        sizes = Sizes(d, self.oracle.dim_out, slow=slow)
        if not self._is_served:
            return sizes
        # Many answers say little; a search among them is lost with too few neurons, and with enough
        # one will do.
        how = self.method
        return replace(sizes, at_once=how.equations_behind_head, long_searches=1, more_at_once=1.4)

    def _ask(self, n: int) -> Samples:
        """Gaussian queries that are answered, in the coordinates of the subspace."""
        samples = self._ask_at(self._region.points(self.rng, n, self._sizes().d))
        if not self.noise.differs_by_answer or len(samples.X) == n:
            return samples
        # Of probabilities with few digits many say nothing.
        more = int(np.ceil(n * (n - len(samples.X)) / len(samples.X)))
        return samples.joined(self._ask_at(self._region.points(self.rng, more, self._sizes().d)))

    def _ask_at(self, Z: FloatArray, least: float | None = None) -> Samples:
        """Ask at inputs, or at coordinates of the subspace, of which that share is answered."""
        if self.subspace is None:
            return self._answered(Z, least)
        samples = self._answered(self.subspace.points(Z), least)
        return replace(samples, X=self.subspace.coordinates(samples.X))

    def _ask_far_out(self, Z: FloatArray) -> Samples:
        """The same at any size, with errors that grow as terms do, and what unseen neurons add."""
        samples = self._ask_at(Z)
        X = samples.X if self.subspace is None else self.subspace.points(samples.X)
        growth = np.maximum(self.noise.growth(X)[:, None] / np.sqrt(2.0), 1.0)
        sigma = np.maximum(samples.sigma * growth, self.noise.sigma_at(X, samples.Y))
        return replace(samples, sigma=sigma)

    def _answers(self, Z: FloatArray) -> FloatArray:
        """The answers alone, as lines take them; NaN where the target is saturated, or nearly so.

        On a line all answers have one error, and are held to ``SIGMAS`` of them; behind a head
        some err by a million times others.  A rounded number errs by its standard error times the
        root of 3 at most, the difference of two by the root of 6: more digits than that are not
        wanted.
        """
        Y = self.oracle(Z if self.subspace is None else self.subspace.points(Z))
        seen = np.isfinite(Y).all(axis=1, keepdims=True)
        if self._is_served:
            most = SIGMAS / np.sqrt(6.0)
            error = self.noise.sigma(np.where(seen, Y, 0.0))
            seen &= (error <= most * self.noise.errors).all(axis=1, keepdims=True)
        return np.where(seen, Y, np.nan)

    def _answered(self, X: FloatArray, least: float | None = None) -> Samples:
        """Ask what a float32 target is asked exactly."""
        X = self.oracle.in_float32(X)
        Y = self._behind_head(X) if self._is_served else self.oracle(X)
        answered = np.isfinite(Y).all(axis=1)
        if least is None:
            is_noisy = self.noise.drawn_anew is not None
            least = self.method.min_told if is_noisy else self.method.min_answered
        if answered.sum() < least * len(X):
            raise SaturatedError(
                f"the target is saturated at {1 - answered.mean():.0%} of the inputs {self._where}"
            )
        X, Y = X[answered], Y[answered]
        errors_of = self.noise.sigma if self._is_served else None
        return Samples(X, Y, _positive(self.noise.sigma(Y), Y), errors_of)

    @property
    def _is_served(self) -> bool:
        """Whether answers behind a head are rounded: in the end they are fitted as served."""
        return self.noise.differs_by_answer and self.noise.drawn_anew is None

    def _behind_head(self, X: FloatArray) -> FloatArray:
        """What is behind the head, infinite where the target is saturated; answers are kept."""
        link = self.oracle.link
        with self.oracle.as_answered():
            P = self.oracle(X)
        told = np.isfinite(P).all(axis=1)
        more = Served(X[told], P[told], self._served_errors(P[told]), link, self._served_errors)
        self.served = more if self.served is None else self.served.joined(more)
        return link.inverse(P)

    def _served_errors(self, P: FloatArray) -> FloatArray:
        """Standard errors of answers as they are served."""
        return _positive(self.noise.numbers.error(P), P)


def _positive(sigma: FloatArray, Y: FloatArray) -> FloatArray:
    """An error of 0 is one of rounding: an output that never varies."""
    size = np.abs(Y).max(axis=0, initial=0.0)
    floor = np.finfo(np.float64).eps * np.maximum(size, np.finfo(np.float32).tiny)
    return np.asarray(np.maximum(sigma, floor))
