"""Targets with a first layer under a high threshold, and a polynomial above it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import expit

from revelu.types import FloatArray

ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "relu": lambda a: np.maximum(a, 0.0),
    "sign": lambda a: np.asarray(a >= 0, dtype=np.float64),  # GP18's sgn is 0 or 1
    "sigmoid": lambda a: np.asarray(expit(a)),
}

Exponents = tuple[int, ...]


@dataclass(frozen=True)
class Polynomial:
    """``P(X) = sum_r c_r prod_j X_j^{r_j}`` of a layer's outputs.

    Parameters
    ----------
    terms : mapping of tuple of int to float
        Exponents, one for each variable, to coefficients.

    Examples
    --------
    >>> P = Polynomial({(0, 0): 1.0, (1, 0): 2.0, (1, 1): -3.0})
    >>> P(np.array([[1.0, 2.0]])).tolist()
    [-3.0]
    """

    terms: Mapping[Exponents, float]

    def __call__(self, X: FloatArray) -> FloatArray:
        """Evaluate, (n, k) -> (n,)."""
        total = np.zeros(len(X))
        for exponents, c in self.terms.items():
            total += c * np.prod([X[:, j] ** r for j, r in enumerate(exponents) if r], axis=0)
        return total

    def linear(self) -> FloatArray:
        """Coefficients of the linear terms, shape (k,)."""
        k = len(next(iter(self.terms)))
        return np.array([self.terms.get(_of((i,), k), 0.0) for i in range(k)])


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
