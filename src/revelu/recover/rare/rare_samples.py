"""Rare events: moments of functions that are constant but for a small part of the inputs.

Only the rows at which the function leaves its constant count.  With an oracle they are drawn
from a wider Gaussian, with exact weights; stored samples that were kept in proportion to their
values come as they are (GP18, B.6).
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.oracle import Oracle
from revelu.probe.moments import Moments, hermite_sums
from revelu.types import BoolArray, FloatArray

CLEAR = 4.0
"""Standard errors at which a difference of moments is clear: chance makes it in 6 of 100,000."""


@dataclass(frozen=True)
class Constant:
    """What a function answers where no unit fires."""

    value: FloatArray
    """Shape (k,)."""
    tolerance: float
    """What rounding makes of it, as seen among the answers; 0 where it is always the same."""
    share: float
    """Of the answers that are it."""

    def is_answer(self, Y: FloatArray) -> BoolArray:
        """Whether answers (n, k) are the constant, shape (n,)."""
        return np.asarray((np.abs(Y - self.value) <= self.tolerance).all(axis=1))

    def widened(self, Y: FloatArray) -> "Constant":
        """Take more answers that are the constant, (n, k), into account."""
        worst = SIGMAS * float(np.abs(Y - self.value).max(initial=0.0))
        return Constant(self.value, max(self.tolerance, worst), self.share)


def find_constant(Y: FloatArray, *, rtol: float = 1e-5, typical: float = 0.9) -> Constant:
    """Find the answer given most often: the median, where units fire rarely.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
    rtol : float
        Answers that differ by no more, relative to the largest, may be one number in float32,
        whose unit roundoff is 6e-8, after some hundred operations.
    typical : float
        The share of those answers, nearest first, that are certainly the constant; the others
        may belong to units that hardly fire.
    """
    value = np.median(Y, axis=0)
    scale = max(float(np.abs(Y).max()), np.finfo(np.float64).tiny)
    near = np.abs(Y - value).max(axis=1)
    if np.mean(near <= rtol * scale) <= 0.5:
        rows, counts = np.unique(Y, axis=0, return_counts=True)
        value = rows[counts.argmax()]
        near = np.abs(Y - value).max(axis=1)
    cluster = near[near <= rtol * scale]
    tolerance = SIGMAS * float(np.quantile(cluster, typical))
    return Constant(value, tolerance, float(np.mean(near <= tolerance)))


def no_constant(share: float) -> str:
    """Say that no constant was seen, but for an answer of this share."""
    return (
        f"no answer is given to more than {share:.1%} of the inputs, so that units do not fire "
        "rarely: the threshold is too low for the method, answers have noise, or the activation "
        "is smooth (activation='sigmoid')"
    )


@dataclass(frozen=True)
class RareSamples:
    """Rows at which a function leaves its constant, weighted as under N(0, I)."""

    X: FloatArray
    """Shape (m, d)."""
    values: FloatArray
    """Shape (m,).  Of the function less its constant, times the weight of the row."""
    n: int
    """Rows drawn, including those that are not kept."""
    effective: float
    """How many plain samples the rows drawn are worth: ``(sum w)^2 / sum w^2``."""

    @classmethod
    def plain(cls, X: FloatArray, values: FloatArray) -> "RareSamples":
        """Take all rows as they are, each of weight 1."""
        return cls(X, values, len(X), float(len(X)))

    def moments(self, basis: FloatArray, order: int) -> Moments:
        """Estimate Hermite coefficients in orthonormal rows, ``basis (m, d)``."""
        sums = hermite_sums(self.X @ basis.T, self.values, order)
        return Moments.of_sums(len(basis), self.n, sums, order)

    def second_moment(self) -> FloatArray:
        """Estimate ``E[f(x) (x x' - I)]``, shape (d, d)."""
        X, v = self.X, self.values
        return np.asarray((X.T @ (v[:, None] * X) - v.sum() * np.eye(X.shape[1])) / self.n)


def rare_samples(X: FloatArray, y: FloatArray, constant: float) -> RareSamples:
    """Keep the rows of plain samples at which ``y`` differs from the constant."""
    kept = y != constant
    return RareSamples(X[kept], y[kept] - constant, len(X), float(len(X)))


def draw_rare(
    oracle: Oracle,
    n: int,
    constant: float,
    rng: np.random.Generator,
    *,
    width: float = 1.0,
) -> RareSamples:
    """Ask at points of a widened Gaussian, with exact weights.

    Parameters
    ----------
    oracle : Oracle
        One output.
    n : int
        Queries.
    constant : float
        Subtracted from answers.
    width : float
        Standard deviation; 1 is plain.

    Notes
    -----
    The density of N(0, I) over that of N(0, s^2 I) is ``s^d exp(-|x|^2 (1 - 1 / s^2) / 2)``.
    """
    X = width * rng.standard_normal((n, oracle.dim_in))
    squares = np.sum(X**2, axis=1)
    weights = width**oracle.dim_in * np.exp(-0.5 * squares * (1.0 - width**-2.0))
    values = (oracle(X)[:, 0] - constant) * weights
    kept = values != 0.0
    effective = weights.sum() ** 2 / np.sum(weights**2)
    return RareSamples(X[kept], values[kept], n, float(effective))


def fewest_samples(d: int, n_units: int = 1) -> int:
    """Return how many samples have to fire before ``n_units`` units of ``d`` inputs are sought.

    Four for each parameter: one would leave the estimate arbitrary, and its error falls with
    the square root of the number.
    """
    return 4 * n_units * (d + 1)


def too_few(n_rare: int, needed: int, n: int) -> str:
    """Say how many more samples would hold the ``needed``, of which ``n_rare`` are among ``n``."""
    if not n_rare:
        share, advice = "none", "draw where it is not constant, or ask an oracle"
    else:
        more = max(int(n * (needed / n_rare - 1.0)), n)
        share, advice = f"{n_rare:,}", f"about {more:,} more samples would hold them"
    return f"of {n:,} samples {share} leave the constant, and some {needed:,} are needed: {advice}"
