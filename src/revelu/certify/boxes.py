"""Fresh inputs for a certificate of a function in a box."""

import numpy as np

from revelu.network import Network
from revelu.types import FloatArray


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
