"""Few coordinates of many inputs."""

from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.types import FloatArray


@dataclass(frozen=True)
class Subspace:
    """Few coordinates ``z`` of inputs, ``x = scale * basis' z``."""

    basis: FloatArray
    """Shape (r, d).  Of orthonormal rows."""
    scale: float = 1.0

    @classmethod
    def of_rows(cls, W: FloatArray) -> "Subspace":
        """Coordinates of the span of rows ``W (m, d)``; all inputs where they are no fewer."""
        m, d = W.shape
        return cls(np.linalg.qr(W.T)[0].T if m < d else np.eye(d))

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

    def inside(self, network: Network) -> Network:
        """Return the network of coordinates that a network of all inputs is on the subspace."""
        (W, *above), skip = network.weights, network.skip
        if skip is not None and network.n_hidden < 2:
            skip = (self.scale * skip[0] @ self.basis.T, skip[1])
        return Network([self.scale * W @ self.basis.T, *above], network.biases, skip)

    def in_all_coordinates(self, network: Network) -> Network:
        """Return the network of all inputs that what is outside the subspace does not move."""
        B = self.basis / self.scale
        (W, *above), skip = network.weights, network.skip
        if skip is not None and network.n_hidden < 2:
            skip = (skip[0] @ B, skip[1])
        return Network([W @ B, *above], network.biases, skip)
