"""Targets with a first layer under a high threshold, and a polynomial above it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from revelu.network.polynomial import Exponents, Polynomial
from revelu.numerics.high_threshold import ACTIVATIONS, coefficient
from revelu.types import FloatArray


@dataclass(frozen=True)
class ThresholdNetwork:
    """``P(u(w_1 x - t_1), ..., u(w_k x - t_k))`` (GP18, Section 1); it knows its truth.

    Attributes
    ----------
    directions : ndarray, shape (k, d)
        Rows of norm 1.
    thresholds : ndarray, shape (k,)
    polynomial : Polynomial
    activation : {"relu", "sign", "sigmoid"}
    """

    directions: FloatArray
    thresholds: FloatArray
    polynomial: Polynomial
    activation: str = "relu"

    def units(self, X: FloatArray) -> FloatArray:
        """Outputs of the layer, (n, d) -> (n, k)."""
        return ACTIVATIONS[self.activation](X @ self.directions.T - self.thresholds)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Evaluate, (n, d) -> (n,)."""
        return self.polynomial(self.units(np.atleast_2d(X)))

    def nonlinearity(self, X: FloatArray) -> tuple[float, float]:
        """``E|f - f_lin|`` over inputs, and its standard error (Lemma 2).

        With higher degrees in one variable ``f_lin`` is ``f_uni`` (B.7, Lemma 18).
        """
        U = self.units(X)
        rest = np.abs(self.polynomial(U) - self.polynomial.part(1)(U))
        return float(rest.mean()), float(rest.std() / np.sqrt(len(X)))

    def linear_coefficients(self) -> FloatArray:
        """Linear coefficients of ``P(mu (X + 1))`` over mu, mu = E[u] (Corollary 1)."""
        mu = float(coefficient(self.activation, 0, np.array(float(self.thresholds.mean()))))
        return self.polynomial.shifted(mu).linear() / mu


def independence_ratio(U: FloatArray) -> float:
    """Largest ``E[X_i X_j] / min(E[X_i], E[X_j])`` of a cut's outputs (GP18, Appendix E).

    Parameters
    ----------
    U : ndarray, shape (n, k)
        Outputs, not negative: of any layer, or of any cut through a network.

    Returns
    -------
    float
        Appendix E's mu for pairs; the smaller, the more linear is what is above the cut.
    """
    second = U.T @ U / len(U)
    means = U.mean(axis=0)
    least = np.maximum(np.minimum.outer(means, means), np.finfo(np.float64).tiny)
    ratios = second / least
    return float(ratios[~np.eye(len(means), dtype=np.bool_)].max(initial=0.0))


def random_directions(
    k: int,
    d: int,
    kappa: float,
    rng: np.random.Generator,
    *,
    atol: float = 1e-12,
    max_steps: int = 2000,
) -> FloatArray:
    """Draw k <= d rows of norm 1 with the condition number ``kappa``, shape (k, d).

    Alternates between rows of norm 1 and the wanted singular values, until the condition
    number is ``kappa`` within ``atol`` or ``max_steps`` are taken.
    """
    left = np.linalg.qr(rng.standard_normal((k, k)))[0]
    right = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    W = left @ (np.geomspace(kappa, 1.0, k)[:, None] * right)
    for _ in range(max_steps):
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        U, s, V = np.linalg.svd(W, full_matrices=False)
        if abs(s[0] / s[-1] - kappa) < atol:
            break
        # The same shape of spectrum, stretched to kappa.
        s = s[-1] * (s / s[-1]) ** (np.log(kappa) / max(np.log(s[0] / s[-1]), atol))
        W = U @ (s[:, None] * V)
    return np.asarray(W / np.linalg.norm(W, axis=1, keepdims=True))


def threshold_network(
    widths: Sequence[int],
    *,
    threshold: float = 2.0,
    kappa: float = 1.0,
    activation: str = "relu",
    interaction: float = 0.5,
    seed: int = 0,
) -> ThresholdNetwork:
    """Draw a target whose P has linear, pair and triple terms, the linear ones positive.

    Parameters
    ----------
    widths : sequence of int
        Inputs and units, as (10, 5); no more units than inputs.
    threshold : float
        Of every unit.
    kappa : float
        Condition number of the directions.
    activation : {"relu", "sign", "sigmoid"}
    interaction : float
        Largest coefficient of the terms of two and three variables.
    seed : int
    """
    d, k = widths[0], widths[1]
    rng = np.random.default_rng([0x6770, seed])
    W = random_directions(k, d, kappa, rng)
    terms: dict[Exponents, float] = {_of((), k): float(rng.uniform(-1.0, 1.0))}
    terms |= {_of((i,), k): float(rng.uniform(0.5, 1.5)) for i in range(k)}
    for size in (2, 3):
        for members in combinations(range(k), size):
            terms[_of(members, k)] = float(rng.uniform(0.0, interaction))
    return ThresholdNetwork(W, np.full(k, threshold), Polynomial(terms), activation)


def halfspaces(
    widths: Sequence[int], *, thresholds: tuple[float, float] = (1.5, 2.5), seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Draw normals, rows of norm 1, and thresholds of halfspaces far from the origin."""
    d, k = widths[0], widths[1]
    rng = np.random.default_rng([0x6873, seed])
    W = rng.standard_normal((k, d))
    return W / np.linalg.norm(W, axis=1, keepdims=True), rng.uniform(*thresholds, size=k)


def _of(members: tuple[int, ...], k: int) -> Exponents:
    return tuple(int(j in members) for j in range(k))
