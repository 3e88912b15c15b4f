"""Fresh inputs for a certificate: where networks that differ would show it."""

import numpy as np

from revelu.network import Network
from revelu.types import FloatArray

# Heavy tails: one for so many of the Gaussian checks.
_TAIL_SHARE = 10

# On every hyperplane a spot near the origin and one far out, each seen from both sides.
_SPOT_RADII = (1.0, 30.0)

# How far off a hyperplane its sides are seen, relative to the spot's own distance
# from the origin: near enough to belong to the neuron, far enough to show its slope.
_SIDE = 1e-2


def gaussian_inputs(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Points of N(0, I), shape (n, d)."""
    return rng.standard_normal((n, d))


def n_heavy_tailed(n_gaussian: int) -> int:
    """How many heavy-tailed points go with so many Gaussian ones: a tenth, rounded up."""
    return -(-n_gaussian // _TAIL_SHARE)


def heavy_tailed_inputs(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Gaussian directions at Cauchy radii, shape (n, d)."""
    radius = np.abs(rng.standard_cauchy((n, 1)))
    return np.asarray(radius * rng.standard_normal((n, d)))


def hyperplane_inputs(rng: np.random.Generator, network: Network) -> FloatArray:
    """Both sides of every first-layer hyperplane, near and far along it.

    Returns
    -------
    ndarray, shape (4 k, d)
    """
    W, b = network.weights[0], network.biases[0]
    norms = np.linalg.norm(W, axis=1)
    W, b, norms = W[norms > 0], b[norms > 0], norms[norms > 0]
    normals, offsets = W / norms[:, None], b / norms
    rows = []
    for radius in _SPOT_RADII:
        X = radius * rng.standard_normal(W.shape)
        X -= normals * ((X * normals).sum(axis=1) + offsets)[:, None]
        step = _SIDE * np.linalg.norm(X, axis=1)[:, None] / np.sqrt(W.shape[1])
        rows += [X + step * normals, X - step * normals]
    return np.concatenate(rows)
