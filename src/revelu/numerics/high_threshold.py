"""Activations under a threshold, and their coefficients in *normalised* Hermite polynomials.

``u_t(a) = u(a - t)`` with ``h_k = He_k / sqrt(k!)``: ``u_hat_k = E[u_t(g) h_k(g)]``, g ~ N(0, 1)
(GP18, Section 1.3).  A high threshold makes all of them small, and products of several
activations smaller still (Lemma 1): that is why the linear part of what is above stands out.
"""

import math

import numpy as np
from scipy.special import eval_hermitenorm, expit, ndtr

from revelu.numerics.hermite import density, relu_coefficient
from revelu.types import FloatArray


def coefficient(activation: str, k: int, t: FloatArray) -> FloatArray:
    """Evaluate ``E[u(g - t) h_k(g)]``.

    Parameters
    ----------
    activation : {"relu", "sign", "sigmoid"}
    k : int
        Not negative.
    t : ndarray
        Thresholds.

    Returns
    -------
    ndarray, the shape of ``t``

    Notes
    -----
    Closed forms for ReLU and sign, by parts: ``E[1[g > t] He_k] = He_{k-1}(t) phi(t)``.  GP18,
    Lemmas 10 to 12, bound them; Gauss-Hermite quadrature for the sigmoid.

    Examples
    --------
    >>> round(float(coefficient("sign", 2, np.array(1.0))), 6)  # He_1(1) phi(1) / sqrt(2)
    0.171099
    """
    t = np.asarray(t, dtype=np.float64)
    norm = math.sqrt(math.factorial(k))
    if activation == "relu":
        return np.asarray(relu_coefficient(k, -t) / norm)
    if activation == "sign":
        if k == 0:
            return np.asarray(ndtr(-t))
        return np.asarray(eval_hermitenorm(k - 1, t) * density(t) / norm)
    # The sigmoid's poles are pi away from the real line: 160 nodes leave an error of 1e-15.
    nodes, weights = np.polynomial.hermite_e.hermegauss(160)
    weights = weights * eval_hermitenorm(k, nodes) / (math.sqrt(2.0 * math.pi) * norm)
    return np.asarray(expit(nodes - t[..., None]) @ weights)


def threshold_of(activation: str, ratio: FloatArray) -> FloatArray:
    """Invert ``E[u_t He_3] / E[u_t He_2]``, which grows with t.

    The ratio is ``t`` for ReLU, and ``(t^2 - 1) / t`` for sign and t > 0; for the sigmoid it is
    read from a table, and NaN outside of it: for large t all its coefficients decay alike.
    """
    if activation == "relu":
        return np.asarray(ratio, dtype=np.float64)
    if activation == "sign":
        return np.asarray((ratio + np.sqrt(np.square(ratio) + 4.0)) / 2.0)
    grid = np.linspace(0.25, 8.0, 200)
    table = np.sqrt(3.0) * coefficient("sigmoid", 3, grid) / coefficient("sigmoid", 2, grid)
    return np.asarray(np.interp(ratio, table, grid, left=np.nan, right=np.nan))
