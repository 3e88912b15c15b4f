"""Standard errors of a two-layer network's parameters, as its samples determine them."""

from dataclasses import dataclass

import numpy as np

from revelu.recover.fit.two_layer import Derivative, Samples, TwoLayer
from revelu.types import FloatArray

# Eigenvalues of the information below this share of the largest are directions that no
# answer depends on: the scale of each neuron.
_RANK_RTOL = 1e-13

# The derivative is written out for so many rows at a time.
_ROWS = 2048


@dataclass(frozen=True)
class StandardErrors:
    """One for each parameter, rows of ``W`` being of norm 1.

    Attributes
    ----------
    W : ndarray, shape (m, d)
    b : ndarray, shape (m,)
    A : ndarray, shape (k, m)
    c : ndarray, shape (k,)
    V : ndarray, shape (k, d), or None
    """

    W: FloatArray
    b: FloatArray
    A: FloatArray
    c: FloatArray
    V: FloatArray | None


def with_unit_rows(network: TwoLayer) -> TwoLayer:
    """The same function, rows of ``W`` of norm 1."""
    norms = np.linalg.norm(network.W, axis=1)
    norms = np.where(norms > 0, norms, 1.0)
    return TwoLayer(
        network.W / norms[:, None], network.b / norms, network.A * norms, network.c, network.V
    )


def standard_errors(network: TwoLayer, samples: Samples) -> StandardErrors:
    """Estimate how far parameters may be off: the Cramer-Rao bound at the fit.

    Parameters
    ----------
    network : TwoLayer
        Rows of norm 1.
    samples : Samples
        Their ``sigma`` is the noise of an answer.

    Notes
    -----
    With J the derivative of the answers over sigma, any generalised inverse of ``J'J``
    serves: rows of norm 1 make the parameters functions of what answers depend on.  The
    derivative of that normalisation is ``dw - w <w, dw>``, ``db - b <w, dw>``,
    ``da + a <w, dw>``.
    """
    information = _information(network, samples)
    scale = np.sqrt(np.maximum(np.diag(information), np.finfo(np.float64).tiny))
    values, U = np.linalg.eigh(information / np.outer(scale, scale))
    kept = values > _RANK_RTOL * values.max(initial=0.0)
    root = (U[:, kept] / np.sqrt(values[kept])) / scale[:, None]
    root = _normalising(network) @ root
    errors = network.like(np.sqrt((root**2).sum(axis=1)))
    return StandardErrors(errors.W, errors.b, errors.A, errors.c, errors.V)


def _information(network: TwoLayer, samples: Samples) -> FloatArray:
    size = network.to_vector().size
    total = np.zeros((size, size))
    for start in range(0, len(samples.X), _ROWS):
        rows = slice(start, start + _ROWS)
        sigma = samples.sigma if samples.sigma.ndim == 1 else samples.sigma[rows]
        derivative = Derivative(network, Samples(samples.X[rows], samples.Y[rows], sigma))
        scales = np.where(derivative.scales > 0, derivative.scales, 1.0)
        J = derivative.matrix() / scales
        total += J.T @ J
    return total


def _normalising(network: TwoLayer) -> FloatArray:
    """The derivative of scaling rows to norm 1, at rows of norm 1; square."""
    m, d = network.W.shape
    size = network.to_vector().size
    P = np.eye(size)
    k = len(network.c)
    for i in range(m):
        row = slice(i * d, (i + 1) * d)
        w = network.W[i]
        P[row, row] -= np.outer(w, w)
        P[m * d + i, row] -= network.b[i] * w
        for o in range(k):
            P[m * (d + 1) + o * m + i, row] += network.A[o, i] * w
    return P
