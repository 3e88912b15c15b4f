"""Standard errors of a two-layer network's parameters, as its samples determine them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.network.derivative import NetworkDerivative, ParameterArrays
from revelu.recover.refine.network_fit import Samples
from revelu.types import FloatArray

# Eigenvalues of the information below this share of the largest are directions that no
# answer depends on: the scale of each neuron.
_RANK_RTOL = 1e-13

# Rows that the derivative is written out for at a time.
_ROWS = 2048


@dataclass(frozen=True)
class StandardErrors:
    """One for each parameter, rows of ``W`` being of norm 1."""

    W: FloatArray
    """Shape (m, d)."""
    b: FloatArray
    """Shape (m,)."""
    A: FloatArray
    """Shape (k, m)."""
    c: FloatArray
    """Shape (k,)."""
    V: FloatArray | None
    """Shape (k, d), or None."""


def with_unit_rows(network: Network) -> Network:
    """The same function, rows of ``W`` of norm 1."""
    (W, A), (b, c) = network.weights, network.biases
    norms = np.linalg.norm(W, axis=1)
    norms = np.where(norms > 0, norms, 1.0)
    return Network([W / norms[:, None], A * norms], [b / norms, c], network.skip)


def standard_errors(
    network: Network, samples: Samples, scores: FloatArray | None = None
) -> StandardErrors:
    """Estimate how far parameters may be off: the Cramer-Rao bound at the fit.

    Parameters
    ----------
    network : Network
        Rows of norm 1.
    samples : Samples
        Their ``sigma`` is the noise of an answer.
    scores : ndarray, shape (n,), optional
        What the fit made of each residual, over ``sigma`` and over the mean derivative of that:
        then errors are those that these show themselves (Huber 1967, White 1980), whatever
        the law.  Answers that the fit bends to are given back what it took (MacKinnon and White
        1985).

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
    middle = np.eye(root.shape[1]) if scores is None else _shown(network, samples, root, scores)
    root = _normalising(network) @ root
    spread = root @ middle
    errors = network.like(np.sqrt((spread * root).sum(axis=1)))
    (W, A), (b, c), (V, _) = errors.weights, errors.biases, errors.skip or (None, None)
    return StandardErrors(W, b, A, c, V)


def _information(network: Network, samples: Samples) -> FloatArray:
    total = np.zeros((network.n_parameters, network.n_parameters))
    for _, J in _derivatives(network, samples):
        total += J.T @ J
    return total


def _shown(network: Network, samples: Samples, root: FloatArray, scores: FloatArray) -> FloatArray:
    """The covariance of the scores in coordinates in which the information is I."""
    total = np.zeros((root.shape[1], root.shape[1]))
    for rows, J in _derivatives(network, samples):
        moved = J @ root
        leverage = np.minimum(np.einsum("ni,ni->n", moved, moved), 0.5)
        moved *= (scores[rows] / (1.0 - leverage))[:, None]
        total += moved.T @ moved
    return total


def _derivatives(network: Network, samples: Samples) -> Iterator[tuple[slice, FloatArray]]:
    """The derivative of the answers over their errors, some rows at a time."""
    at = ParameterArrays.of(network)
    for start in range(0, len(samples.X), _ROWS):
        rows = slice(start, start + _ROWS)
        sigma = samples.sigma if samples.sigma.ndim == 1 else samples.sigma[rows]
        yield rows, NetworkDerivative(at, samples.X[rows], 1.0 / sigma).matrix()


def _normalising(network: Network) -> FloatArray:
    """The derivative of scaling rows to norm 1, at rows of norm 1; square."""
    (W, A), b = network.weights, network.biases[0]
    P, (m, d), k = np.eye(network.n_parameters), W.shape, len(A)
    for i, w in enumerate(W):
        row = slice(i * d, (i + 1) * d)
        P[row, row] -= np.outer(w, w)
        P[m * d + i : m * (d + k) : m, row] += np.outer(A[:, i], w)
        P[m * (d + k) + i, row] -= b[i] * w
    return P
