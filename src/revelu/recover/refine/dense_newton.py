"""Gauss-Newton steps with the whole Jacobian, for networks that are small enough.

Weights that only few answers show are as good as free beside the others: iterations on the normal
equations hardly move them, while an orthogonal factorisation solves for them, too, and leaves
alone what no answer shows.
"""

import numpy as np
from scipy.linalg import lstsq

from revelu.recover.refine.gauss_newton import Layers, take_steps
from revelu.types import FloatArray

_STEPS = 2
_ANY_GAIN = 1.0

# Directions fainter than this share of the strongest are left alone.
_RANK = 1e-9


def polish_densely(layers: Layers, X: FloatArray, Y: FloatArray) -> Layers:
    """Take Gauss-Newton steps while they lower the error.

    Parameters
    ----------
    layers : Layers
        Right but for small errors; without a skip.
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)
        ``n k`` should exceed the number of weights several times.

    Returns
    -------
    Layers
        With the least root-mean-square error on ``X`` of all steps.
    """
    return take_steps(layers, X, Y, _step, _STEPS, _ANY_GAIN)


def _step(layers: Layers, X: FloatArray, residual: FloatArray) -> FloatArray:
    J = _jacobian(layers, X)
    sizes = np.sqrt((J**2).sum(axis=0))
    sizes = np.where(sizes > 0, sizes, 1.0)
    step = lstsq(
        J / sizes, residual.ravel(), cond=_RANK, lapack_driver="gelsy", check_finite=False
    )[0]
    return np.asarray(step / sizes)


def _jacobian(layers: Layers, X: FloatArray) -> FloatArray:
    """Derivatives of all answers by all weights, then all biases, shape (n k, size)."""
    hs = layers.activations(X)
    n, k, depth = len(X), len(layers.biases[-1]), len(layers.weights)
    parts: list[FloatArray] = [np.empty(0)] * (2 * depth)
    # Of the answers by the sums of one layer.
    back = np.broadcast_to(np.eye(k), (n, k, k))
    for i in range(depth - 1, -1, -1):
        parts[i] = (back[:, :, :, None] * hs[i][:, None, None, :]).reshape(n * k, -1)
        parts[depth + i] = back.reshape(n * k, -1)
        if i:
            back = (back @ layers.weights[i]) * (hs[i] > 0)[:, None, :]
    return np.hstack(parts)
