"""Few coordinates of many inputs."""

from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.types import FloatArray


@dataclass(frozen=True)
class Subspace:
    """Few coordinates ``z`` of inputs, ``x = scale * basis' z``.

    Attributes
    ----------
    basis : ndarray, shape (r, d)
        Of orthonormal rows.
    scale : float
    """

    basis: FloatArray
    scale: float = 1.0

    @property
    def dim(self) -> int:
        """How many coordinates there are."""
        return len(self.basis)

    def points(self, Z: FloatArray) -> FloatArray:
        """Return the inputs, shape (n, d), of coordinates of shape (n, r)."""
        return np.asarray(self.scale * Z @ self.basis)

    def coordinates(self, X: FloatArray) -> FloatArray:
        """Return the coordinates, shape (n, r), of inputs of shape (n, d)."""
        return np.asarray(X @ self.basis.T / self.scale)

    def in_all_coordinates(self, network: Network) -> Network:
        """Return the network of all inputs that what is outside the subspace does not move."""
        B = self.basis / self.scale
        (W, *above), skip = network.weights, network.skip
        skip = None if skip is None else (skip[0] @ B, skip[1])
        return Network([W @ B, *above], network.biases, skip)
