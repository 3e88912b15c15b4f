"""The law of what a fit leaves: alike, growing with the slope or the answer, with heavy tails.

An answer errs by its own noise; by an error of its input, which the slope of the function there
magnifies; and by a share of itself.  The three are independent, and their variances add up::

    v(x) = constant^2 + slope^2 |grad f(x)|^2 + share^2 f(x)^2

What is left over ``sqrt(v)`` is Gaussian; or has Student's law, whose tails are heavy at few
degrees of freedom (Lange, Little and Taylor 1989); or is Gaussian but for a share of outliers,
whose scale is another (Tukey 1960).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, gammaln, ndtr, stdtr, stdtrit

from revelu.types import FloatArray


@dataclass(frozen=True)
class ErrorLaw:
    """How far answers err.

    Attributes
    ----------
    constant : float
        In the unit of the answers,
    slope : float
        of each input, in its unit,
    share : float
        and of the answer.
    tail : float
        Degrees of freedom of Student's law; infinite where errors are Gaussian.
    outliers : float
        Share of the answers that err by another scale,
    far : float
        ``far`` times as large.
    """

    constant: float
    slope: float = 0.0
    share: float = 0.0
    tail: float = np.inf
    outliers: float = 0.0
    far: float = 1.0

    @property
    def is_even(self) -> bool:
        """Whether errors are Gaussian, and alike for all answers."""
        return not (self.slope or self.share or self.is_heavy)

    @property
    def is_heavy(self) -> bool:
        """Whether more errors are far out than Gaussian ones."""
        return bool(self.tail < np.inf or self.outliers)

    def scales(self, slopes: FloatArray, answers: FloatArray) -> FloatArray:
        """Return the scale of each answer's error, shape (n,).

        Parameters
        ----------
        slopes : ndarray, shape (n,)
            ``|grad f|`` there.
        answers : ndarray, shape (n,)
        """
        v = self.constant**2 + (self.slope * slopes) ** 2 + (self.share * answers) ** 2
        return np.asarray(np.sqrt(v))

    def weights(self, z: FloatArray) -> FloatArray:
        """Return how much answers weigh that err by ``z`` scales: outliers hardly do."""
        if self.outliers:
            chance = _chance_of_outlier(z**2, self.outliers, self.far)
            return np.asarray(1.0 - chance * (1.0 - self.far**-2))
        if self.tail < np.inf:
            return np.asarray((self.tail + 1.0) / (self.tail + z**2))
        return np.ones_like(z)

    def score_slopes(self, z: FloatArray) -> FloatArray:
        """Return the derivative of ``z weights(z)``."""
        if self.outliers:
            chance = _chance_of_outlier(z**2, self.outliers, self.far)
            less = 1.0 - self.far**-2
            return np.asarray(1.0 - less * chance * (1.0 + z**2 * (1.0 - chance) * less))
        if self.tail < np.inf:
            return np.asarray((self.tail + 1.0) * (self.tail - z**2) / (self.tail + z**2) ** 2)
        return np.ones_like(z)

    def log_likelihood(self, z: FloatArray) -> FloatArray:
        """Return that of errors of ``z`` scales, but for a constant."""
        if self.outliers:
            core, far = -0.5 * z**2, -0.5 * (z / self.far) ** 2
            odds = np.log(self.outliers) - np.log1p(-self.outliers) - np.log(self.far)
            return np.asarray(np.logaddexp(core, far + odds))
        if self.tail < np.inf:
            return np.asarray(-0.5 * (self.tail + 1.0) * np.log1p(z**2 / self.tail))
        return np.asarray(-0.5 * z**2)

    def quantile(self, share: float) -> float:
        """Return how many scales all but ``share`` of the errors stay within."""
        if self.outliers:
            return float(brentq(lambda z: self.beyond(z) - share, 0.0, 40.0 * self.far))
        return float(-stdtrit(min(self.tail, 1e9), 0.5 * share))

    def beyond(self, n_scales: float) -> float:
        """Return the share of the errors that are larger than a number of scales."""
        if self.outliers:
            core, far = ndtr(-n_scales), ndtr(-n_scales / self.far)
            return float(2.0 * ((1.0 - self.outliers) * core + self.outliers * far))
        return float(2.0 * stdtr(min(self.tail, 1e9), -n_scales))

    def in_unit(self, unit: float) -> "ErrorLaw":
        """Return the same of answers ``unit`` times as large."""
        return replace(self, constant=unit * self.constant)

    def words(self, typical: float) -> str:
        """Say what the law is, of errors that are typically so large."""
        ways = []
        if self.slope:
            ways.append(
                f"grow with the slope, as errors in x of {self.slope:.2g} of its deviation do"
            )
        if self.share:
            ways.append(f"grow with the answer, {100.0 * self.share:.2g}% of it")
        if self.outliers:
            share, size = 100.0 * self.outliers, self.far * typical
            ways.append(f"are outliers in {share:.2g}% of the answers, of {size:.2g}")
        if self.tail < np.inf:
            far = 100.0 * self.beyond(4.0)
            ways.append(f"have heavy tails, {far:.2g}% of them beyond {4.0 * typical:.2g}")
        return " and ".join(ways) or "are alike for all answers"


EXACT = ErrorLaw(0.0)
"""Of answers that do not err."""


def estimate_law(
    residual: FloatArray,
    slopes: FloatArray,
    answers: FloatArray,
    *,
    tails: tuple[float, ...] = (np.inf, 16.0, 8.0, 4.0, 2.0, 1.0),
    rows: int = 10_000,
) -> ErrorLaw:
    """Find the law of residuals: of all, the best by Schwarz's criterion.

    Parameters
    ----------
    residual, slopes, answers : ndarray, shape (n,)
    tails : tuple of float
        Degrees of freedom that are tried: Gaussian, then ever heavier tails down to Cauchy's.
    rows : int
        That a law of five numbers is estimated from: to 1%.
    """
    step = -(-len(residual) // rows)
    r, q = residual[::step], np.column_stack([slopes, answers])[::step] ** 2
    typical = float(np.median(np.abs(r))) or float(np.abs(r).max()) or np.finfo(np.float64).tiny
    r = r / typical
    # Features of mean 1: each part of the variance in the same unit.
    means = np.where(q.mean(axis=0) > 0, q.mean(axis=0), 1.0)
    Q = np.column_stack([np.ones(len(r)), q / means])
    roots = np.concatenate([[1.0], np.sqrt(means)]) / typical
    best, least = ErrorLaw(typical), np.inf
    for parts in ((0,), (0, 1), (0, 2)):
        for tail in (*tails, None):
            theta, law, cost = _fitted(r, Q[:, parts], tail)
            price = 2.0 * cost + (len(parts) + _n_numbers(law)) * np.log(len(r))
            if price < least:
                found = np.zeros(3)
                found[list(parts)] = np.sqrt(theta)
                constant, slope, share = (float(part) for part in found / roots)
                best = replace(law, constant=constant, slope=slope, share=share)
                least = price
    return best


def _n_numbers(law: ErrorLaw) -> int:
    """How many numbers say what is left over its scale."""
    return 2 if law.outliers else int(law.is_heavy)


def _fitted(
    r: FloatArray,
    Q: FloatArray,
    tail: float | None,
    *,
    least: float = 0.1,
    outliers: tuple[float, float] = (0.02, 10.0),
) -> tuple[FloatArray, ErrorLaw, float]:
    """The parts of the variance at which residuals are likeliest, and their -log likelihood.

    Parameters
    ----------
    r : ndarray, shape (n,)
    Q : ndarray, shape (n, p)
        What each part of the variance is in proportion to.
    tail : float or None
        None where some are outliers.
    least : float
        An error of less than this share of the typical one would have an answer weigh like a
        hundred others, and with it the error of the fit that says how precise it is.
    outliers : (float, float)
        Where the search for outliers begins: a share of them, and how many scales they have.
    """
    k = Q.shape[1]

    def cost(p: FloatArray) -> tuple[float, FloatArray]:
        theta = np.exp(p[:k])
        v = Q @ theta
        q = r**2 / v
        if tail is not None:
            value, by_q = _cost_of_tail(q, tail)
            more: tuple[float, ...] = ()
        else:
            value, by_q, more = _cost_with_outliers(q, *np.exp(p[k:]))
        value += 0.5 * float(np.mean(np.log(v)))
        by_v = (0.5 - by_q * q) / v
        return value, np.concatenate([(by_v @ Q) * theta / len(r), more])

    start = np.log(np.full(k, 1.0 / k))
    bounds = [(2.0 * np.log(least), 40.0)] + [(-40.0, 40.0)] * (k - 1)
    if tail is None:
        start = np.concatenate([start, np.log(outliers)])
        bounds += [(np.log(1e-4), np.log(0.4)), (np.log(3.0), np.log(1e4))]
    found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds)
    law = ErrorLaw(1.0, tail=np.inf if tail is None else tail)
    if tail is None:
        law = replace(law, outliers=float(np.exp(found.x[k])), far=float(np.exp(found.x[k + 1])))
    return np.exp(found.x[:k]), law, float(found.fun) * len(r)


def _cost_of_tail(q: FloatArray, tail: float) -> tuple[float, FloatArray]:
    """Mean -log likelihood of squares over their variance, and its derivative by each."""
    if tail == np.inf:
        return 0.5 * float(np.mean(q)) + 0.5 * np.log(2.0 * np.pi), np.full_like(q, 0.5)
    half = 0.5 * (tail + 1.0)
    constant = float(gammaln(half) - gammaln(0.5 * tail)) - 0.5 * np.log(np.pi * tail)
    return half * float(np.mean(np.log1p(q / tail))) - constant, half / (tail + q)


def _cost_with_outliers(
    q: FloatArray, outliers: float, far: float
) -> tuple[float, FloatArray, tuple[float, float]]:
    """The same where some are outliers; and its derivatives by the logarithms of both numbers."""
    core = np.log1p(-outliers) - 0.5 * q
    other = np.log(outliers / far) - 0.5 * q / far**2
    value = 0.5 * np.log(2.0 * np.pi) - float(np.mean(np.logaddexp(core, other)))
    chance = _chance_of_outlier(q, outliers, far)
    by_q = 0.5 * ((1.0 - chance) + chance / far**2)
    by_share = float(np.mean(outliers / (1.0 - outliers) * (1.0 - chance) - chance))
    return value, by_q, (by_share, float(np.mean(chance * (1.0 - q / far**2))))


def _chance_of_outlier(q: FloatArray, outliers: float, far: float) -> FloatArray:
    """The probability that errors of such squares are those of outliers."""
    odds = np.log(outliers / far) - np.log1p(-outliers) + 0.5 * q * (1.0 - far**-2)
    return np.asarray(expit(odds))
