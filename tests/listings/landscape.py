"""The landscapes of Goel and Panigrahy (2018), whose minima are the directions (2.1 and B.4).

With ``T_k = E[f(x) He_k(x)]``, the whole symmetric tensor, correlations with the weighted
polynomials are contractions: ``E[f H_2(z x)] = T_2[z, z] / sqrt(2)`` and ``E[f H_4(z x)] =
T_4[z, z, z, z] / sqrt(24)``; so the objectives over samples need the samples once.

Where this differs from print.  The cross term of psi is ``-4 (v x)(w x)(v w)`` for unnormalised
``H_2``: then psi is ``He_4(x)[v, v, w, w]``, and correlates with ``sum_i c_i u_4 (w_i v)^2 (w_i
w)^2`` alone.  Scale comes from T_2; only directions are taken from the minima, whose rows are
those of ``(T W*)^-1``, transposed.
"""

from dataclasses import dataclass
from math import factorial, sqrt

import numpy as np
from numpy.polynomial.hermite_e import hermeval
from scipy.optimize import minimize
from scipy.stats import norm

N_STARTS = 6  # of one search for a direction; the least objective wins
LAMBDA = 4.0  # times |u4| / u2^2 (Claim 2)
GAMMA = 0.01  # of the simultaneous objective (Theorem 11)
OPTIONS = {"maxiter": 500, "gtol": 1e-10}


@dataclass(frozen=True)
class Landscape:
    """The objectives of one function: T2 (d, d), T4 (d, d, d, d), coefficients, lambda."""

    T2: np.ndarray
    T4: np.ndarray
    u2: float
    u4: float
    weight: float

    def one(self, z):
        """G(z) = -sgn(u4) E[f H_4(z x)] + lambda (E[f H_2(z x)] - u2)^2, and its gradient."""
        second, fourth = self.T2 @ z, np.einsum("ijkl,j,k,l", self.T4, z, z, z)
        off, sign = z @ second / sqrt(2) - self.u2, np.sign(self.u4)
        value = -sign * (z @ fourth) / sqrt(24) + self.weight * off**2
        gradient = -4 * sign * fourth / sqrt(24) + 4 * self.weight * off * second / sqrt(2)
        return float(value), gradient

    def all(self, W, gamma=GAMMA):
        """G(W), the simultaneous objective, and its gradient, shape (d, d).

        ``sum_{j != k} sgn(u4) E[f psi(w_j, w_k)] - gamma sgn(u4) sum_j E[f H_4(w_j x)] +
        lambda sum_j (E[f H_2(w_j x)] - u2)^2``.
        """
        sign = np.sign(self.u4)
        squares = np.einsum("ijkl,ak,al->aij", self.T4, W, W, optimize=True)
        # By rows: T_4[w_j, w_j, w_k, .] summed over k != j, and T_4[w_j, w_j, w_j, .].
        own = np.einsum("aij,aj->ai", squares, W)
        others = np.einsum("ij,aj->ai", squares.sum(axis=0), W) - own
        fourth, cross = np.sum(own * W), np.sum(others * W)
        second = W @ self.T2
        off = np.sum(second * W, axis=1) / sqrt(2) - self.u2
        value = sign * (cross - gamma * fourth / sqrt(24)) + self.weight * np.sum(off**2)
        gradient = 4 * sign * (others - gamma * own / sqrt(24)) + 4 * self.weight * off[
            :, None
        ] * second / sqrt(2)
        return float(value), gradient

    def hessian(self, z):
        """Hessian of G(z), shape (d, d)."""
        second = self.T2 @ z
        off = z @ second / sqrt(2) - self.u2
        fourth = np.einsum("ijkl,k,l->ij", self.T4, z, z)
        bowl = 4 * np.outer(second, second) + 2 * sqrt(2) * off * self.T2
        return -12 * np.sign(self.u4) * fourth / sqrt(24) + self.weight * bowl

    def attained(self, z):
        """The least (epsilon, tau) for which z is an (epsilon, tau)-local minimum.

        Definition 1, its sign corrected: ``|grad G| <= epsilon``, and no eigenvalue of the
        Hessian below ``-tau``.
        """
        least = float(np.linalg.eigvalsh(self.hessian(z))[0])
        return float(np.linalg.norm(self.one(z)[1])), max(-least, 0.0)


def balanced(T2, T4, u2, u4):
    """A landscape with ``lambda = Theta(|u4| / u2^2)`` (Claim 2)."""
    return Landscape(T2, T4, u2, u4, LAMBDA * abs(u4) / u2**2)


def hermite(k, z):
    """He_k(z)."""
    return hermeval(z, np.eye(k + 1)[k])


def coefficient(k, t):
    """``E[relu(g - t) h_k(g)]`` for k >= 2: by parts, twice."""
    return float(hermite(k - 2, t) * norm.pdf(t)) / sqrt(factorial(k))


def attained_by_directions(W, thresholds, moments):
    """Epsilon and tau of Definition 1 for estimated directions (k, k) of ReLUs, shape (k, 2).

    In units of the part that each minimum is made of; NaN where G has none along a direction.
    """
    second, fourth = moments.tensor(2), moments.tensor(4)
    found = np.full((len(W), 2), np.nan)
    for i, (z, t) in enumerate(zip(np.linalg.pinv(W).T, thresholds, strict=True)):
        u2, u4 = (coefficient(j, t) for j in (2, 4))
        # f in units of the direction's own coefficient, as lambda = Theta(|u_4| / u_2^2) asks.
        c = float(z @ second @ z) / (sqrt(2) * u2)
        if not c > 0:
            continue
        G = balanced(second / c, fourth / c, u2, u4)
        # Along s z: G = -A s^4 + lambda (u_2 s^2 - u_2)^2, least at s^2 = lambda u_2^2 /
        # (lambda u_2^2 - A).
        A = np.sign(u4) * float(np.einsum("ijkl,i,j,k,l", fourth, z, z, z, z)) / (sqrt(24) * c)
        if A <= 0 or G.weight * u2**2 <= A:
            continue
        squared = G.weight * u2**2 / (G.weight * u2**2 - A)
        found[i] = np.array(G.attained(sqrt(squared) * z)) / (A * squared**2)
    return found


def correlation(X, y, z, order):
    """``E[f h_l(z x)]`` over samples for ``|z| = 1``, and its gradient along the sphere.

    Where rows are orthonormal its maxima for even l >= 4 are the rows (B.1), l being whichever
    order the activation has a large coefficient of.
    """
    scores, length = X @ z, sqrt(factorial(order))
    value = float(np.mean(y * hermite(order, scores))) / length
    gradient = order * (y * hermite(order - 1, scores)) @ X / (len(y) * length)
    return value, gradient - (gradient @ z) * z


def directions_one_by_one(G, n, rng):
    """Minimise G(z) n times, each time kept apart from the minima before; rows of norm 1.

    Exact minima are orthogonal with respect to T_2; what they lack in that is the penalty.
    """
    found = []
    for _ in range(n):
        taken = np.array([z @ G.T2 for z in found]).reshape(-1, n)

        def penalised(z, taken=taken):
            value, gradient = G.one(z)
            overlap = taken @ z
            penalty = G.weight * float(overlap @ overlap)
            return value + penalty, gradient + 2 * G.weight * taken.T @ overlap

        starts = rng.standard_normal((N_STARTS, n)) * size(G)
        tries = [minimize(penalised, z, jac=True, method="BFGS", options=OPTIONS) for z in starts]
        best = min(tries, key=lambda fit: float(fit.fun)).x
        found.append(minimize(G.one, best, jac=True, method="BFGS", options=OPTIONS).x)
    return rows(np.array(found))


def directions_at_once(G, n, rng):
    """Minimise G(W); arguments and result as of directions_one_by_one."""

    def flat(w):
        value, gradient = G.all(w.reshape(n, n))
        return value, gradient.ravel()

    starts = rng.standard_normal((N_STARTS, n * n)) * size(G)
    tries = [minimize(flat, w, jac=True, method="BFGS", options=OPTIONS) for w in starts]
    return rows(min(tries, key=lambda fit: float(fit.fun)).x.reshape(n, n))


def size(G):
    """Length at which a typical direction has ``E[f H_2(z x)] = u2``."""
    return sqrt(abs(G.u2) * sqrt(2) / max(abs(np.trace(G.T2)), np.finfo(float).tiny))


def rows(Z):
    """Rows of norm 1 of ``Z^-T``: minima are columns of ``(T W*)^-1`` (Claim 1)."""
    W = np.linalg.pinv(Z).T
    return W / np.linalg.norm(W, axis=1, keepdims=True)
