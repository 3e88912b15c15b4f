"""Hermite polynomials, and a two-layer network's coefficients in them.

Probabilists' polynomials, unnormalised: ``He_0 = 1``, ``He_1 = z``,
``He_{k+1} = z He_k - k He_{k-1}``; under N(0, 1), ``E[He_j He_k] = k!`` where j = k, else 0.

For ``|w| = 1`` and ``x ~ N(0, I)``, integration by parts gives
``E[relu(w x + b) He_k(x)] = g_k(b) w^(k)`` (ATV21, Lemma 3.5) by one rule:

    g_0(b) = E[relu(z + b)] = b Phi(b) + phi(b),    g_k = the k-th derivative of g_0

so ``g_1 = Phi``, ``g_2 = phi`` and ``g_k = (-1)^k He_{k-2} phi`` from there on.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import eval_hermitenorm, ndtr

from revelu.types import FloatArray


def density(b: FloatArray) -> FloatArray:
    """Evaluate ``phi``, the density of N(0, 1)."""
    return np.asarray(np.exp(-0.5 * np.square(b)) / np.sqrt(2.0 * np.pi), dtype=np.float64)


def relu_coefficient(k: int, b: FloatArray) -> FloatArray:
    """Evaluate ``g_k(b) = E[relu(z + b) He_k(z)]``, z ~ N(0, 1), in the shape of ``b``."""
    b = np.asarray(b, dtype=np.float64)
    if k == 0:
        return np.asarray(b * ndtr(b) + density(b))
    if k == 1:
        return np.asarray(ndtr(b))
    return np.asarray((-1.0) ** k * eval_hermitenorm(k - 2, b) * density(b))


def power(w: FloatArray, k: int) -> FloatArray:
    """Return the tensor power ``w^(k)``, shape (d,) * k."""
    tensor = np.ones(())
    for _ in range(k):
        tensor = np.multiply.outer(tensor, w)
    return tensor


def network_coefficient(k: int, a: FloatArray, W: FloatArray, b: FloatArray) -> FloatArray:
    """``sum_i a_i g_k(b_i) w_i^(k)``: the k-th coefficient of ``a relu(W x + b)``, (d,) * k.

    Parameters
    ----------
    a : ndarray, shape (m,)
    W : ndarray, shape (m, d)
        Rows of norm 1.
    b : ndarray, shape (m,)
    """
    weights = a * relu_coefficient(k, b)
    d = W.shape[1]
    if k == 0:
        return np.asarray(weights.sum())
    # The last axis by a matrix product: powers of all rows, flattened.
    rows = np.ones((len(a), 1))
    for _ in range(k - 1):
        rows = (rows[:, :, None] * W[:, None, :]).reshape(len(a), -1)
    return np.asarray((rows.T @ (weights[:, None] * W)).reshape((d,) * k))


def risk(T: Sequence[FloatArray], F: Sequence[FloatArray]) -> float:
    """``sum_k |T_k - F_k|^2 / k!``: squared L2 distance by coefficients (Proposition 3.6).

    Parameters
    ----------
    T, F : sequence of ndarray
        Coefficients 0, 1, ... of two functions, as many of each; what lies above them
        is left out.
    """
    pairs = enumerate(zip(T, F, strict=True))
    return float(sum(np.sum((t - f) ** 2) / math.factorial(k) for k, (t, f) in pairs))


def recover_scalars(coefficients: dict[int, FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Find scale and bias of each neuron from its coefficients along ``w^(k)``.

    Parameters
    ----------
    coefficients : dict of int to ndarray, shape (m,)
        ``zeta_k = a g_k(b)`` for orders 2 and 3, or for four orders l, ..., l + 3, l >= 2.
        Where a row's sign is wrong, odd orders are negated.

    Returns
    -------
    a, b : ndarray, shape (m,)
        ``b`` with the sign of its row.

    Notes
    -----
    ATV21, Lemma 4.5 and Algorithm 2, the index corrected by 2.  With
    ``zeta_k = (-1)^k a He_{k-2}(b) phi(b)`` the recurrence of He reads
    ``zeta_{q+1} = -b zeta_q - (q - 2) zeta_{q-1}``; q is whichever of the middle two orders
    has the larger coefficient, since He_k and He_{k+1} have no common root.
    """
    lowest = min(coefficients)
    if len(coefficients) == 2:
        b = -coefficients[3] / coefficients[2]
        return coefficients[2] / density(b), b
    inner = [_scalars_by(q, coefficients) for q in (lowest + 1, lowest + 2)]
    sizes = np.abs([coefficients[lowest + 1], coefficients[lowest + 2]])
    first = sizes[0] >= sizes[1]
    return np.where(first, inner[0][0], inner[1][0]), np.where(first, inner[0][1], inner[1][1])


def _scalars_by(q: int, zeta: dict[int, FloatArray]) -> tuple[FloatArray, FloatArray]:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        b = -(zeta[q + 1] + (q - 2) * zeta[q - 1]) / zeta[q]
        return zeta[q] / relu_coefficient(q, b), b
