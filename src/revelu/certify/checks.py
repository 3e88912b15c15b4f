"""Fresh inputs for a certificate: where networks that differ would show it."""

from collections.abc import Sequence

import numpy as np

from revelu.network import Network
from revelu.types import FloatArray


def heavy_tailed_inputs(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """Gaussian directions at Cauchy radii, shape (n, d)."""
    radius = np.abs(rng.standard_cauchy((n, 1)))
    return np.asarray(radius * rng.standard_normal((n, d)))


def hyperplane_inputs(
    rng: np.random.Generator,
    network: Network,
    radii: Sequence[float] = (1.0, 30.0),
    side: float = 1e-2,
) -> FloatArray:
    """Both sides of every first-layer hyperplane, near and far along it, shape (4 k, d).

    Parameters
    ----------
    radii : sequence of float
        Of the spots on each hyperplane: by how much N(0, I) is stretched there.
    side : float
        How far off it its sides are seen, relative to the spot's own distance from the origin:
        near enough to belong to the neuron, far enough to show its slope.
    """
    W, b = network.hyperplanes()
    norms = np.linalg.norm(W, axis=1)
    W, b, norms = W[norms > 0], b[norms > 0], norms[norms > 0]
    normals, offsets = W / norms[:, None], b / norms
    rows = []
    for radius in radii:
        X = radius * rng.standard_normal(W.shape)
        X -= normals * ((X * normals).sum(axis=1) + offsets)[:, None]
        step = side * np.linalg.norm(X, axis=1)[:, None] / np.sqrt(W.shape[1])
        rows += [X + step * normals, X - step * normals]
    return np.concatenate(rows)


def corner_inputs(rng: np.random.Generator, n: int, d: int, box: tuple[float, float]) -> FloatArray:
    """Corners of a box, and points of its faces: of all it holds the farthest apart."""
    X = rng.uniform(*box, (n, d))
    share = rng.random((n, 1))  # of the coordinates that stay inside
    outer = rng.random((n, d)) >= share
    return np.where(outer, rng.choice(np.array(box), (n, d)), X)


def crossing_inputs(
    rng: np.random.Generator,
    network: Network,
    box: tuple[float, float],
    *,
    n_pairs: int = 64,
    side: float = 1e-2,
) -> FloatArray:
    """Both sides of first-layer hyperplanes that pass between two points of a few, (2 n, d).

    Parameters
    ----------
    box : (lo, hi)
    n_pairs : int
        Pairs of points, one of which a hyperplane through the box parts.
    side : float
        How far off it its sides are seen, relative to the distance of the two points.
    """
    W, b = network.weights[0], network.biases[0]
    d = network.dim_in
    corners = corner_inputs(rng, 2 * n_pairs, d, box)
    Z = corners @ W.T + b
    Z0, Z1 = Z[:n_pairs], Z[n_pairs:]
    rows = []
    for j in range(len(W)):
        crossed = np.flatnonzero(Z0[:, j] * Z1[:, j] < 0)
        if not len(crossed):
            continue
        i = rng.choice(crossed)
        start, end = corners[i], corners[n_pairs + i]
        t = Z0[i, j] / (Z0[i, j] - Z1[i, j])
        off = min(side, t / 2, (1.0 - t) / 2)
        rows += [start + (t + s) * (end - start) for s in (off, -off)]
    return np.asarray(np.clip(np.array(rows).reshape(-1, d), *box))
