"""The answers that a network is held against: where it is right, and where it is wrong."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network
from revelu.numerics.float64 import HALF_DIGITS
from revelu.oracle import NoiseFloor, Oracle
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Judging:
    """When a network counts as wrong at an input."""

    wrong: float = 1e-5
    """An error, relative to the size of the answers, that is none of a right network's;"""
    right: float = HALF_DIGITS
    """and one that says nothing: no less than half of the digits are right."""
    unusual: float = 100.0
    """Between those a point is wrong if its error is ``unusual`` times the median of all."""
    spreads: tuple[float, ...] = (1.0, 1.0, 1.5, 2.0, 3.0)
    """Standard deviations that inputs are drawn at."""
    n_draws: int = 20
    n_drawn: int = 5000
    """Draws of ``n_drawn`` inputs, not asked, among which those are chosen that show most of what
    few inputs show;"""
    n_each: int = 4
    """inputs chosen for each such thing."""
    n_around: int = 300
    """Inputs asked around wrong ones;"""
    zoom: float = 0.4
    """how far from those, relative to their size."""
    bound: float = np.inf
    """The largest coordinate of an input that may be asked."""


@dataclass
class JudgedAnswers:
    """Inputs ``X (n, d)`` that were asked, and the answers ``Y (n, k)``.

    Of those that ``is_plain (n,)`` marks nothing was known: they are of N(0, I).
    """

    oracle: Oracle
    noise: NoiseFloor
    rng: np.random.Generator
    judging: Judging
    X: FloatArray = field(init=False)
    Y: FloatArray = field(init=False)
    is_plain: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self.is_plain = np.empty(0, dtype=bool)
        self.X = np.empty((0, self.oracle.dim_in))
        self.Y = np.empty((0, len(self.noise.scale)))

    def __len__(self) -> int:
        return len(self.X)

    @property
    def sigma(self) -> float:
        """Standard error of an answer, in units of the outputs."""
        return self.noise.relative

    def add(self, X: FloatArray, is_plain: BoolArray | None = None) -> None:
        """Ask inputs and keep those that are answered by numbers: a target may be saturated."""
        is_plain = np.zeros(len(X), dtype=bool) if is_plain is None else is_plain
        Y = self.oracle(X)
        alive = np.isfinite(Y).all(axis=1)
        self.X, self.Y = np.vstack([self.X, X[alive]]), np.vstack([self.Y, Y[alive]])
        self.is_plain = np.append(self.is_plain, is_plain[alive])

    def look(self, n: int) -> None:
        """Ask fresh inputs, near and far."""
        self.add(*self._drawn(n))

    def drawn(self, n: int) -> FloatArray:
        """Draw inputs, near and far, shape (n, d)."""
        return self._drawn(n)[0]

    def _drawn(self, n: int) -> tuple[FloatArray, BoolArray]:
        spreads = self.rng.choice(self.judging.spreads, n)
        X = spreads[:, None] * self.rng.standard_normal((n, self.oracle.dim_in))
        return self._within(X), spreads == 1.0

    def _within(self, X: FloatArray) -> FloatArray:
        return np.asarray(np.clip(X, -self.judging.bound, self.judging.bound))

    def chosen(self, scores: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Draw many inputs, and keep those with the highest positive scores.

        Parameters
        ----------
        scores : callable, (n, d) -> (n, p)
            What an input shows of each of p things.

        Returns
        -------
        ndarray, shape (m, d)
            For each of them ``n_each`` inputs, or all that score.
        """
        judging, best = self.judging, np.empty((0, self.oracle.dim_in))
        for _ in range(judging.n_draws):
            X = np.vstack([best, self.drawn(judging.n_drawn)])
            found = scores(X)
            n = min(judging.n_each, len(X))
            rows = np.argpartition(-found, n - 1, axis=0)[:n]
            best = X[np.unique(rows[np.take_along_axis(found, rows, axis=0) > 0])]
        return best

    def extremes(self, network: Network) -> FloatArray:
        """Inputs at which the sums of hidden neurons are largest and smallest."""

        def scores(X: FloatArray) -> FloatArray:
            sums = np.hstack(network.preactivations(X)[: network.n_hidden])
            sums -= sums.mean(axis=0)
            return np.hstack([sums, -sums])

        return self.chosen(scores)

    def around(self, X: FloatArray) -> FloatArray:
        """Draw inputs around some, shape (n_around, d)."""
        X = X[self.rng.integers(len(X), size=self.judging.n_around)]
        size = np.linalg.norm(X, axis=1)[:, None] / np.sqrt(X.shape[1])
        return self._within(X + self.judging.zoom * size * self.rng.standard_normal(X.shape))

    def errors(
        self, network: Network, points: tuple[FloatArray, FloatArray] | None = None
    ) -> FloatArray:
        """How far off a network is, at these or other points, relative to the size of answers."""
        X, Y = points or (self.X, self.Y)
        scale = self.noise.unit * self.noise.growth(X)[:, None]
        return np.asarray((np.abs(network(X) - Y) / scale).max(axis=1, initial=0.0))

    def wrong(self, network: Network) -> BoolArray:
        """At which points a network is wrong, shape (n,).

        A network that is right but for small errors errs alike everywhere.
        """
        errors = self.errors(network)
        return errors > self._limit(errors)

    def _limit(self, errors: FloatArray) -> float:
        """What counts as wrong of a network that errs like this."""
        judging = self.judging
        usual = judging.unusual * max(self.sigma, float(np.median(errors)))
        return min(max(usual, judging.right), judging.wrong)

    def is_wrong_plainly(self, network: Network) -> bool:
        """Whether a network is wrong at inputs of N(0, I)."""
        return bool((self.wrong(network) & self.is_plain).any())

    def share_wrong(self, network: Network) -> float:
        """The share of the inputs of N(0, I) at which a network is wrong."""
        return float(self.wrong(network)[self.is_plain].mean()) if self.is_plain.any() else 0.0

    def best(self, networks: Sequence[Network]) -> Network:
        """The first of the networks that are wrong at the fewest points, by what the best errs."""
        errors = [self.errors(network) for network in networks]
        limit = min(self._limit(e) for e in errors)
        n_wrong = [int((e > limit).sum()) for e in errors]
        return networks[int(np.argmin(n_wrong))]

    def mends(self, new: Network, old: Network) -> bool:
        """Whether a network is wrong at no more points than another, by what either errs.

        Neurons come before digits, which a fit gives back.
        """
        errors = [self.errors(network) for network in (new, old)]
        limit = max(self._limit(e) for e in errors)
        return bool((errors[0] > limit).sum() <= (errors[1] > limit).sum())
