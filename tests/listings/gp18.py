"""Goel and Panigrahy (2018), their listings as printed, errata applied; small and plain.

EstimateTanAlpha is used in Algorithm 1 but not listed; it follows Lemma 3's proof.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm


def estimate_tan_alpha(fires, z, n, rng, levels=30):
    """Angle of z with the direction whose halfspace fires near it, by two bisections.

    Print takes t_1 and t_2 from [0, t / cos(alpha)] (Lemma 6), which fails at level 0.6: they
    are sought in [0, 6].
    """
    found = []
    for share in (0.4, 0.6):
        lo, hi = 0.0, 6.0
        for _ in range(levels):
            s = (lo + hi) / 2
            X = rng.standard_normal((n, len(z)))
            X += (s - X @ z)[:, None] * z
            lo, hi = (s, hi) if fires(X).mean() < share else (lo, s)
        found.append((lo + hi) / 2)
    return (found[1] - found[0]) / (norm.ppf(0.6) - norm.ppf(0.4))


def refine_estimate(tan_alpha, z, epsilon, rng, most=100_000, c=0.004):
    """Algorithm 1.  Print accepts at alpha' <= 0.01 alpha / d, which never happens."""
    d = len(z)
    alpha = np.arctan(tan_alpha(z))
    for _ in range(most):
        if alpha <= epsilon:
            break
        step = rng.standard_normal(d)
        step -= (step @ z) * z
        moved = z + 0.1 * np.sin(alpha / d) * step
        moved /= np.linalg.norm(moved)
        after = np.arctan(tan_alpha(moved))
        if after <= (1 - c / d) * alpha:
            z, alpha = moved, after
    return z


def construct_correlation_graph(X, f, cutoff):
    """Algorithm 3; the diagonal, which is large for every coordinate, is skipped."""
    n = X.shape[1]
    graph = set()
    for i in range(n):
        for j in range(i + 1, n):
            if np.mean(f * X[:, i] * X[:, j]) >= cutoff:
                graph.add((i, j))
    return graph


def expected_correlations(linear, pairs, rho, t, d):
    """E[f x_i x_j] inside the blocks of unit r, and between those of r and s (Theorem 8).

    mu = exp(-rho t + rho^2 d / 2), d coordinates a block; print has half of the exponent.
    """
    mu = np.exp(-rho * t + rho**2 * d / 2)
    inside = rho**2 * (linear * mu + pairs.sum(axis=1) * mu**2)
    return inside, rho**2 * pairs * mu**2


def tilted(blocks, weights):
    """log g of Theorem 9 and its gradient, for linear terms: g = sum_i c_i prod e^(1/2 + z_p)."""

    def log_g(z):
        terms = np.array(
            [c * np.exp(len(b) / 2 + z[b].sum()) for b, c in zip(blocks, weights, strict=True)]
        )
        gradient = np.zeros(len(z))
        for b, term in zip(blocks, terms, strict=True):
            gradient[b] = term / terms.sum()
        return np.log(terms.sum()), gradient

    return log_g


def tilted_of_samples(X, f):
    """log g from samples: ``E[f(x) exp(z x - |z|^2 / 2)] = E[f(x + z)]`` is g(z)."""

    def log_g(z):
        values = f * np.exp(X @ z - z @ z / 2)
        return np.log(values.mean()), values @ X / values.sum() - z

    return log_g


def maximise_on_simplex(log_g, start, total, gamma, steps=2000, rate=0.1):
    """Maximise log g - gamma |z|^2 on {z >= 0, sum z = total}: print's objective has no bound."""
    z = start
    for _ in range(steps):
        z = z + rate * (log_g(z)[1] - 2 * gamma * z)
        ordered = np.sort(z)[::-1]
        shifts = (np.cumsum(ordered) - total) / np.arange(1, len(z) + 1)
        z = np.maximum(z - shifts[np.flatnonzero(ordered > shifts)[-1]], 0.0)
    return z


@dataclass(frozen=True)
class Jump:
    """A mean change across a hyperplane and its standard error."""

    value: float
    error: float


def estimate_jump(oracle, z, s, activation, epsilon, n, rng):
    """Theorem 7: the mean change of a function, or of its slope, across ``z x = s``.

    The correlation of f with ``delta'(z x - s)`` is infinite where ``z x = s`` is a sign unit's
    border and finite otherwise; with ``delta''`` where it is a ReLU's kink (C.1).  Over a step
    epsilon the mean of ``f(x + e z) - f(x - e z)``, or of the second difference over e, stays as
    epsilon falls if z is a direction, and falls with it if not (Lemmas 8 and 19).  Points of a
    pair share all other coordinates, which leaves little to chance.
    """
    X = rng.standard_normal((n, len(z)))
    X += (s - X @ z)[:, None] * z
    steps = (1.0, -1.0) if activation == "sign" else (1.0, -1.0, 0.0)
    Y = oracle(np.vstack([X + step * epsilon * z for step in steps]))[:, 0].reshape(len(steps), n)
    change = Y[0] - Y[1] if activation == "sign" else (Y[0] + Y[1] - 2.0 * Y[2]) / epsilon
    return Jump(float(change.mean()), float(change.std() / np.sqrt(n)))


def jump_of_samples(X, y, z, s, epsilon):
    """Estimate the jump of values across ``z x = s`` from samples, by slabs of width epsilon."""
    beyond = X @ z - s
    above, below = y[(beyond >= 0) & (beyond < epsilon)], y[(beyond < 0) & (beyond >= -epsilon)]
    if min(len(above), len(below)) < 2:
        return Jump(0.0, np.inf)
    error = np.sqrt(above.var() / len(above) + below.var() / len(below))
    return Jump(float(above.mean() - below.mean()), float(error))


def is_direction(oracle, z, s, activation, epsilon, n, rng):
    """Theorem 7's test: a direction keeps its jump over a step ten times shorter."""
    wide = estimate_jump(oracle, z, s, activation, epsilon, n, rng)
    narrow = estimate_jump(oracle, z, s, activation, epsilon / 10.0, n, rng)
    clear = abs(narrow.value) > 5.0 * narrow.error
    return bool(clear and abs(narrow.value) > 0.5 * abs(wide.value))


@dataclass(frozen=True)
class Terms:
    """Coefficients of a polynomial's constant, linear (k,) and pair terms (k, k)."""

    constant: float
    linear: np.ndarray
    pairs: np.ndarray


def estimate_terms(X, y, layer, activation):
    """Regress answers on a recovered layer's outputs and their pair products (Assumption 1).

    Samples at which three units or more fire are left out: higher products stay out of the
    way of the coefficients.
    """
    z = X @ layer.directions.T - layer.thresholds
    U = np.maximum(z, 0.0) if activation == "relu" else (z >= 0.0).astype(float)
    few = np.count_nonzero(U, axis=1) <= 2
    U, y = U[few], y[few]
    i, j = np.triu_indices(U.shape[1], 1)
    A = np.column_stack([np.ones(len(U)), U, U[:, i] * U[:, j]])
    c, _, rank, _ = np.linalg.lstsq(A, y, rcond=None)
    if rank < A.shape[1]:
        raise ValueError("too few samples have two units firing to tell every coefficient")
    constant, linear, products = np.split(c, [1, 1 + U.shape[1]])
    pairs = np.zeros((len(linear), len(linear)))
    pairs[i, j] = pairs[j, i] = products
    return Terms(float(constant[0]), linear, pairs)
