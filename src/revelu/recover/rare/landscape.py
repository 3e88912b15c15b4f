"""Objectives whose minima are the directions of a layer (GP18, Section 2.1 and B.4).

With ``T_k = E[f(x) He_k(x)]``, the whole symmetric tensor, correlations with the weighted
polynomials are contractions: ``E[f H_2(z x)] = T_2[z, z] / sqrt(2)`` and ``E[f H_4(z x)] =
T_4[z, z, z, z] / sqrt(24)``; so the objectives over samples need the samples once.

Where this differs from print.  The cross term of psi is ``-4 (v x)(w x)(v w)`` for unnormalised
``H_2``: then psi is ``He_4(x)[v, v, w, w]``, and correlates with ``sum_i c_i u_4 (w_i v)^2 (w_i
w)^2`` alone.  Scale comes from T_2; only directions are taken from the minima, whose rows are
those of ``(T W*)^-1``, transposed.
"""

from dataclasses import dataclass
from math import factorial

import numpy as np
from scipy.optimize import minimize

from revelu.numerics.hermite import hermite
from revelu.types import FloatArray

_SQRT2, _SQRT24 = np.sqrt(2.0), np.sqrt(24.0)

# Starts of one search for a direction; the least objective wins.
_N_STARTS = 6

# Weight of what keeps minima apart from those found before, and of the scale, beside the
# landscape's own terms (lambda = Theta(|u_4| / u_2^2), Claim 2).
_LAMBDA = 4.0

# gamma of the simultaneous objective (Theorem 11).
_GAMMA = 0.01

_OPTIONS = {"maxiter": 500, "gtol": 1e-10}


@dataclass(frozen=True)
class Landscape:
    """The objectives of one function.

    Parameters
    ----------
    T2 : ndarray, shape (d, d)
    T4 : ndarray, shape (d, d, d, d)
        Unnormalised Hermite coefficients of the function, symmetric.
    u2, u4 : float
        Normalised coefficients of the activation; ``u4`` for its sign.
    weight : float
        Lambda.
    """

    T2: FloatArray
    T4: FloatArray
    u2: float
    u4: float
    weight: float

    def one(self, z: FloatArray) -> tuple[float, FloatArray]:
        """G(z) and its gradient.

        ``G(z) = -sgn(u4) E[f H_4(z x)] + lambda (E[f H_2(z x)] - u2)^2``.

        Parameters
        ----------
        z : ndarray, shape (d,)
        """
        second, fourth = self.T2 @ z, np.einsum("ijkl,j,k,l", self.T4, z, z, z)
        off = z @ second / _SQRT2 - self.u2
        sign = np.sign(self.u4)
        value = -sign * (z @ fourth) / _SQRT24 + self.weight * off**2
        gradient = -4.0 * sign * fourth / _SQRT24 + 4.0 * self.weight * off * second / _SQRT2
        return float(value), gradient

    def all(self, W: FloatArray, gamma: float = _GAMMA) -> tuple[float, FloatArray]:
        """G(W), the simultaneous objective, and its gradient, shape (d, d).

        ``sum_{j != k} sgn(u4) E[f psi(w_j, w_k)] - gamma sgn(u4) sum_j E[f H_4(w_j x)] +
        lambda sum_j (E[f H_2(w_j x)] - u2)^2``.

        Parameters
        ----------
        W : ndarray, shape (m, d)
        gamma : float
        """
        sign = np.sign(self.u4)
        squares = np.einsum("ijkl,ak,al->aij", self.T4, W, W, optimize=True)
        # By rows: T_4[w_j, w_j, w_k, .] summed over k != j, and T_4[w_j, w_j, w_j, .].
        own = np.einsum("aij,aj->ai", squares, W)
        others = np.einsum("ij,aj->ai", squares.sum(axis=0), W) - own
        fourth, cross = np.sum(own * W), np.sum(others * W)
        second = W @ self.T2
        off = np.sum(second * W, axis=1) / _SQRT2 - self.u2
        value = sign * (cross - gamma * fourth / _SQRT24) + self.weight * np.sum(off**2)
        gradient = (
            4.0 * sign * (others - gamma * own / _SQRT24)
            + 4.0 * self.weight * off[:, None] * second / _SQRT2
        )
        return float(value), gradient

    def hessian(self, z: FloatArray) -> FloatArray:
        """Hessian of G(z), shape (d, d)."""
        second = self.T2 @ z
        off = z @ second / _SQRT2 - self.u2
        fourth = np.einsum("ijkl,k,l->ij", self.T4, z, z)
        bowl = 4.0 * np.outer(second, second) + 2.0 * _SQRT2 * off * self.T2
        return np.asarray(-12.0 * np.sign(self.u4) * fourth / _SQRT24 + self.weight * bowl)

    def attained(self, z: FloatArray) -> tuple[float, float]:
        """The least (epsilon, tau) for which z is an (epsilon, tau)-local minimum.

        Definition 1, its sign corrected: ``|grad G| <= epsilon``, and no eigenvalue of the
        Hessian below ``-tau``.
        """
        least = float(np.linalg.eigvalsh(self.hessian(z))[0])
        return float(np.linalg.norm(self.one(z)[1])), max(-least, 0.0)

    def is_minimum(self, z: FloatArray, epsilon: float, tau: float) -> bool:
        """Whether z is an (epsilon, tau)-local minimum."""
        steepness, bend = self.attained(z)
        return steepness <= epsilon and bend <= tau


def correlation(
    X: FloatArray, y: FloatArray, z: FloatArray, order: int
) -> tuple[float, FloatArray]:
    """``E[f h_l(z x)]`` over samples for ``|z| = 1``, and its gradient along the sphere.

    Where rows are orthonormal its maxima for even l >= 4 are the rows (GP18, B.1), l being
    whichever order the activation has a large coefficient of.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    z : ndarray, shape (d,)
        Of norm 1.
    order : int
        l, positive.
    """
    scores, norm = X @ z, np.sqrt(float(factorial(order)))
    value = float(np.mean(y * hermite(order, scores))) / norm
    gradient = order * (y * hermite(order - 1, scores)) @ X / (len(y) * norm)
    return value, np.asarray(gradient - (gradient @ z) * z)


def balanced(T2: FloatArray, T4: FloatArray, u2: float, u4: float) -> Landscape:
    """A landscape with ``lambda = Theta(|u4| / u2^2)`` (Claim 2)."""
    return Landscape(T2, T4, u2, u4, _LAMBDA * abs(u4) / u2**2)


def directions_one_by_one(G: Landscape, n: int, rng: np.random.Generator) -> FloatArray:
    """Minimise G(z) n times, each time kept apart from the minima before.

    Parameters
    ----------
    G : Landscape
        Over d = n coordinates.
    n : int
    rng : numpy.random.Generator
        Of the starts.

    Returns
    -------
    ndarray, shape (n, n)
        Rows of norm 1, signs arbitrary.

    Notes
    -----
    Exact minima are orthogonal with respect to T_2; what they lack in that is the penalty.
    """
    found: list[FloatArray] = []
    for _ in range(n):
        taken = np.array([z @ G.T2 for z in found]).reshape(-1, n)

        def penalised(z: FloatArray, taken: FloatArray = taken) -> tuple[float, FloatArray]:
            value, gradient = G.one(z)
            overlap = taken @ z
            return value + G.weight * float(overlap @ overlap), (
                gradient + 2.0 * G.weight * taken.T @ overlap
            )

        starts = rng.standard_normal((_N_STARTS, n)) * _size(G)
        tries = [minimize(penalised, z, jac=True, method="BFGS", options=_OPTIONS) for z in starts]
        best = min(tries, key=lambda fit: float(fit.fun)).x
        found.append(minimize(G.one, best, jac=True, method="BFGS", options=_OPTIONS).x)
    return _rows(np.array(found))


def directions_at_once(G: Landscape, n: int, rng: np.random.Generator) -> FloatArray:
    """Minimise G(W); arguments and result as in :func:`directions_one_by_one`."""

    def flat(w: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = G.all(w.reshape(n, n))
        return value, gradient.ravel()

    starts = rng.standard_normal((_N_STARTS, n * n)) * _size(G)
    tries = [minimize(flat, w, jac=True, method="BFGS", options=_OPTIONS) for w in starts]
    return _rows(min(tries, key=lambda fit: float(fit.fun)).x.reshape(n, n))


def _size(G: Landscape) -> float:
    """Length at which a typical direction has ``E[f H_2(z x)] = u2``."""
    return float(np.sqrt(abs(G.u2) * _SQRT2 / max(abs(np.trace(G.T2)), np.finfo(float).tiny)))


def _rows(Z: FloatArray) -> FloatArray:
    """Rows of norm 1 of ``Z^-T``: minima are columns of ``(T W*)^-1`` (Claim 1)."""
    W = np.linalg.pinv(Z).T
    return np.asarray(W / np.linalg.norm(W, axis=1, keepdims=True))
