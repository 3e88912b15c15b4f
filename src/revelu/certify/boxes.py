"""Fresh inputs for a certificate of a function in a box."""

import numpy as np

from revelu.network import Network
from revelu.types import FloatArray

# Pairs of points among which a neuron's hyperplane is crossed, if it passes through the box.
_N_PAIRS = 64

# How far off a hyperplane its sides are seen, relative to the distance of the two points.
_SIDE = 1e-2


def uniform_inputs(
    rng: np.random.Generator, n: int, d: int, box: tuple[float, float]
) -> FloatArray:
    """Uniform points of a box, shape (n, d)."""
    return np.asarray(rng.uniform(*box, (n, d)))


def corner_inputs(rng: np.random.Generator, n: int, d: int, box: tuple[float, float]) -> FloatArray:
    """Corners of a box, and points of its faces: of all it holds the farthest apart."""
    X = uniform_inputs(rng, n, d, box)
    share = rng.random((n, 1))  # of the coordinates that stay inside
    outer = rng.random((n, d)) >= share
    return np.where(outer, rng.choice(np.array(box), (n, d)), X)


def crossing_inputs(
    rng: np.random.Generator, network: Network, box: tuple[float, float]
) -> FloatArray:
    """Both sides of every first-layer hyperplane that passes between two points of a few.

    Returns
    -------
    ndarray, shape (2 n, d)
    """
    W, b = network.weights[0], network.biases[0]
    d = network.dim_in
    corners = corner_inputs(rng, 2 * _N_PAIRS, d, box)
    Z = corners @ W.T + b
    Z0, Z1 = Z[:_N_PAIRS], Z[_N_PAIRS:]
    rows = []
    for j in range(len(W)):
        crossed = np.flatnonzero(Z0[:, j] * Z1[:, j] < 0)
        if not len(crossed):
            continue
        i = rng.choice(crossed)
        start, end = corners[i], corners[_N_PAIRS + i]
        t = Z0[i, j] / (Z0[i, j] - Z1[i, j])
        side = min(_SIDE, t / 2, (1.0 - t) / 2)
        rows += [start + (t + s) * (end - start) for s in (side, -side)]
    return np.asarray(np.clip(np.array(rows).reshape(-1, d), *box))
