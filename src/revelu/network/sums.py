"""Networks made of networks: sums, and affine maps as networks of width 0."""

import numpy as np

from revelu.network.network import Network
from revelu.types import FloatArray


def affine_network(V: FloatArray, c: FloatArray) -> Network:
    """The map ``V x + c`` as a two-layer network without neurons."""
    k, d = V.shape
    return Network([np.zeros((0, d)), np.zeros((k, 0))], [np.zeros(0), np.zeros(k)], skip=(V, c))


def add_networks(first: Network, second: Network) -> Network:
    """The sum of two two-layer networks, neurons side by side; with a skip if one has one."""
    (W1, A1), (W2, A2) = first.weights, second.weights
    (b1, c1), (b2, c2) = first.biases, second.biases
    (V1, e1), (V2, e2) = first.affine, second.affine
    return Network(
        [np.vstack([W1, W2]), np.hstack([A1, A2])],
        [np.concatenate([b1, b2]), c1 + c2],
        skip=(V1 + V2, e1 + e2) if first.skip or second.skip else None,
    )
