"""Rare events: moments of functions that are constant but for a small part of the inputs.

Only the rows where the function leaves its constant count; with an oracle they are drawn
from a wider Gaussian, with exact weights, and from stored samples biased towards large
values they come as they are (GP18, B.6).
"""

from dataclasses import dataclass
from math import comb

import numpy as np

from revelu.oracle import Oracle
from revelu.probe.moments import Moments, hermite_features
from revelu.types import BoolArray, FloatArray

# Features that are formed at a time, and rows at least and at most.
_FEATURES = 8_000_000
_FEWEST_ROWS, _MOST_ROWS = 16, 4096

# Answers this near to each other, relative to the largest, may differ by float32's rounding
# alone; what this share of them differs by, times so much, is rounding.
_ROUNDING = 1e-5
_MOST = 0.9
_SIGMAS = 8.0


@dataclass(frozen=True)
class Constant:
    """What a function answers where no unit fires.

    Attributes
    ----------
    value : ndarray, shape (k,)
    tolerance : float
        What rounding makes of it, as seen among the answers; 0 where it is always the same.
    share : float
        Of the answers that are it.
    """

    value: FloatArray
    tolerance: float
    share: float

    def is_answer(self, Y: FloatArray) -> BoolArray:
        """Whether answers (n, k) are the constant, shape (n,)."""
        return np.asarray((np.abs(Y - self.value) <= self.tolerance).all(axis=1))

    def widened(self, Y: FloatArray) -> "Constant":
        """Take more answers that are the constant, (n, k), into account."""
        worst = _SIGMAS * float(np.abs(Y - self.value).max(initial=0.0))
        return Constant(self.value, max(self.tolerance, worst), self.share)


def find_constant(Y: FloatArray) -> Constant:
    """Find the answer given most often: the median, where units fire rarely.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
    """
    value = np.median(Y, axis=0)
    scale = max(float(np.abs(Y).max()), np.finfo(np.float64).tiny)
    near = np.abs(Y - value).max(axis=1)
    if np.mean(near <= _ROUNDING * scale) <= 0.5:
        rows, counts = np.unique(Y, axis=0, return_counts=True)
        value = rows[counts.argmax()]
        near = np.abs(Y - value).max(axis=1)
    cluster = near[near <= _ROUNDING * scale]
    # A few answers beside the constant belong to units that hardly fire: no largest one.
    tolerance = _SIGMAS * float(np.quantile(cluster, _MOST))
    return Constant(value, tolerance, float(np.mean(near <= tolerance)))


@dataclass(frozen=True)
class RareSamples:
    """Rows where a function leaves its constant, weighted as under N(0, I).

    Attributes
    ----------
    X : ndarray, shape (m, d)
    values : ndarray, shape (m,)
        Of the function less its constant, times the weight of the row.
    n : int
        Rows drawn, those that are not kept included.
    effective : float
        How many plain samples the rows drawn are worth: ``(sum w)^2 / sum w^2``.
    """

    X: FloatArray
    values: FloatArray
    n: int
    effective: float


def rare_samples(X: FloatArray, y: FloatArray, constant: float) -> RareSamples:
    """Keep the rows of plain samples where ``y`` differs from the constant."""
    kept = y != constant
    return RareSamples(X[kept], y[kept] - constant, len(X), float(len(X)))


def draw_rare(
    oracle: Oracle,
    n: int,
    constant: float,
    rng: np.random.Generator,
    *,
    width: float = 1.0,
    basis: FloatArray | None = None,
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
    rng : numpy.random.Generator
    width : float
        Standard deviation; 1 is plain.
    basis : ndarray, shape (m, d), optional
        Orthonormal rows: the directions that are widened; all where left out.

    Notes
    -----
    With r directions widened by s, ``w = s^r exp(-|z|^2 (1 - 1 / s^2) / 2)``, z being the
    point in those directions.
    """
    B = np.eye(oracle.dim_in) if basis is None else basis
    X = rng.standard_normal((n, oracle.dim_in))
    X += (width - 1.0) * (X @ B.T) @ B
    squares = np.sum((X @ B.T) ** 2, axis=1)
    weights = width ** len(B) * np.exp(-0.5 * squares * (1.0 - width**-2.0))
    values = (oracle(X)[:, 0] - constant) * weights
    kept = values != 0.0
    effective = weights.sum() ** 2 / np.sum(weights**2)
    return RareSamples(X[kept], values[kept], n, float(effective))


def biased_samples(X: FloatArray) -> RareSamples:
    """Samples kept with probability proportional to ``f(x)``: moments of f up to a factor.

    GP18, B.6: ``E[h(x)]`` over such samples is ``E[f(x) h(x)] / E[f(x)]`` over N(0, I).
    """
    return RareSamples(X, np.ones(len(X)), len(X), float(len(X)))


def rare_moments(samples: RareSamples, basis: FloatArray, order: int) -> Moments:
    """Estimate Hermite coefficients, as :func:`revelu.probe.moments.estimate_moments` does.

    Parameters
    ----------
    samples : RareSamples
    basis : ndarray, shape (m, d)
        Orthonormal rows: the coordinates of the tensors.
    order : int
    """
    Z, n = samples.X @ basis.T, samples.n
    first: list[FloatArray] = []
    second: list[FloatArray] = []
    n_features = comb(len(basis) + order - 1, order)
    size = int(np.clip(_FEATURES // n_features, _FEWEST_ROWS, _MOST_ROWS))
    for start in range(0, max(len(Z), 1), size):
        rows, v = Z[start : start + size], samples.values[start : start + size]
        features = hermite_features(rows, order)
        sums, squares = [v @ F for F in features], [v**2 @ F**2 for F in features]
        first = sums if not start else [a + b for a, b in zip(first, sums, strict=True)]
        second = squares if not start else [a + b for a, b in zip(second, squares, strict=True)]
    values = tuple(s / n for s in first)
    errors = tuple(
        np.sqrt(np.maximum(q / n - v**2, 0.0) / n) for q, v in zip(second, values, strict=True)
    )
    return Moments(len(basis), n, values, errors)


def second_moment(samples: RareSamples) -> FloatArray:
    """Estimate ``E[f(x) (x x' - I)]``, shape (d, d)."""
    X, v = samples.X, samples.values
    return np.asarray((X.T @ (v[:, None] * X) - v.sum() * np.eye(X.shape[1])) / samples.n)
