"""What stands above a recovered layer: its coefficients, and the rest as an oracle.

GP18, Appendix E: a cut in a network makes two smaller problems.  With the lower one solved,
inputs can be chosen for any outputs of the layer, and what is above is asked as if alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from revelu.errors import InputError
from revelu.numerics.high_threshold import ACTIVATIONS
from revelu.oracle import Oracle
from revelu.recovery import LayerRecovery
from revelu.types import FloatArray


@dataclass(frozen=True)
class Terms:
    """Coefficients of a polynomial's constant, linear and pair terms.

    Attributes
    ----------
    constant : float
    linear : ndarray, shape (k,)
    pairs : ndarray, shape (k, k)
        Symmetric, of ``X_i X_j``; 0 on the diagonal.
    errors : ndarray, shape (1 + k + k (k - 1) / 2,)
        Standard errors, in that order.
    """

    constant: float
    linear: FloatArray
    pairs: FloatArray
    errors: FloatArray


def estimate_terms(X: FloatArray, y: FloatArray, layer: LayerRecovery, activation: str) -> Terms:
    """Regress answers on a layer's outputs and their pair products.

    Samples at which three units or more fire are left out: higher products stay out of the
    way of the coefficients.

    Parameters
    ----------
    X : ndarray, shape (n, d)
    y : ndarray, shape (n,)
    layer : LayerRecovery
    activation : {"relu", "sign"}

    Raises
    ------
    InputError
        If too few samples have one or two units firing to tell every coefficient.
    """
    U = ACTIVATIONS[activation](X @ layer.directions.T - layer.thresholds)
    few = np.count_nonzero(U, axis=1) <= 2
    U, y = U[few], y[few]
    k = U.shape[1]
    pairs = list(combinations(range(k), 2))
    A = np.column_stack([np.ones(len(U)), U, *(U[:, i] * U[:, j] for i, j in pairs)])
    if np.linalg.matrix_rank(A) < A.shape[1]:
        raise InputError("too few samples have two units firing to tell every pair's coefficient")
    c = np.linalg.lstsq(A, y, rcond=None)[0]
    rest = A @ c - y
    noise = float(rest @ rest) / max(len(y) - A.shape[1], 1)
    errors = np.sqrt(noise * np.diag(np.linalg.inv(A.T @ A)))
    table = np.zeros((k, k))
    for (i, j), value in zip(pairs, c[1 + k :], strict=True):
        table[i, j] = table[j, i] = value
    return Terms(float(c[0]), c[1 : 1 + k], table, errors)


def upper_oracle(
    oracle: Oracle,
    layer: LayerRecovery,
    most: float,
    *,
    rtol: float = 1e-10,
    below: float = 1.0,
) -> Oracle:
    """Give what is above a ReLU layer as an oracle of the layer's outputs.

    Parameters
    ----------
    oracle : Oracle
        Of the whole.
    layer : LayerRecovery
        Its lowest layer, of ReLUs with independent directions.
    most : float
        Outputs are asked for in the box ``[0, most]``.
    rtol : float
        Singular value of the directions, relative to the largest, below which they are
        dependent: inputs would be so many times as large as outputs, and lose the digits.
    below : float
        How far below its threshold a ReLU is put that is to give 0.

    Returns
    -------
    Oracle
        Of k inputs, in a box, for :func:`revelu.extract` to continue on.  Its
        queries are counted by both oracles.

    Raises
    ------
    InputError
        If the directions are dependent: then not every output can be had.
    """
    W, t = layer.directions, layer.thresholds
    sizes = np.linalg.svd(W, compute_uv=False)
    if not len(W) or len(W) > W.shape[1] or sizes[-1] < rtol * sizes[0]:
        raise InputError("the layer's directions are dependent: its outputs cannot be chosen")
    inverse = np.linalg.pinv(W)

    def ask(H: FloatArray) -> FloatArray:
        z = np.where(H > 0, H, -below)
        return oracle((z + t) @ inverse.T)

    return Oracle(ask, len(W), name=f"above {oracle.name}", box=(0.0, most))


def composed(
    layer: LayerRecovery, upper: Callable[[FloatArray], FloatArray]
) -> Callable[[FloatArray], FloatArray]:
    """Put a network on top of a ReLU layer: the whole, (n, d) -> (n, k)."""

    def whole(X: FloatArray) -> FloatArray:
        return upper(np.maximum(X @ layer.directions.T - layer.thresholds, 0.0))

    return whole
