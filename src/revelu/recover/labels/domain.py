"""Where a search may ask: everywhere, or where all coordinates are positive."""

from dataclasses import dataclass

import numpy as np

from revelu.types import FloatArray


@dataclass(frozen=True)
class AllInputs:
    """All inputs."""

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
        """Inputs of N(0, I)."""
        return rng.standard_normal(shape)

    def nearest(self, X: FloatArray) -> FloatArray:
        """Points of it nearest to ``X (n, d)``."""
        return X

    def reach(self, X: FloatArray, U: FloatArray) -> FloatArray:
        """How far from ``X (n, d)`` along unit vectors ``U (n, d)`` it goes on, (n,)."""
        del U
        return np.full(len(X), np.inf)


@dataclass(frozen=True, eq=False)
class LayerOutputs(AllInputs):
    """Outputs of a ReLU layer: no coordinate is negative.

    What lies above a first layer is asked here.
    """

    V: FloatArray
    """Shape (m, d + 1).  The layer's affine maps."""
    margin: float = 1e-3
    """Nor smaller than this: where the layer is not known precisely, its zeros are not."""
    beside: float = 0.05
    """How far off its walls outputs are moved, that borders beside them can be followed."""

    def draw(self, rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
        """Outputs for inputs of N(0, I)."""
        return self.outputs(rng, rng.standard_normal((shape[0], self.V.shape[1] - 1)))

    def outputs(self, rng: np.random.Generator, X: FloatArray, share: float = 1.0) -> FloatArray:
        """What the layer puts out at inputs ``X (n, d)``, moved off walls, (n, m).

        ``share`` is of how far they are moved.
        """
        Z = np.maximum(X @ self.V[:, :-1].T + self.V[:, -1], 0.0)
        return self.nearest(Z + share * self.beside * np.abs(rng.standard_normal(Z.shape)))

    def nearest(self, X: FloatArray) -> FloatArray:
        """Points of it nearest to ``X (n, d)``."""
        return np.maximum(X, self.margin)

    def reach(self, X: FloatArray, U: FloatArray) -> FloatArray:
        """How far from ``X (n, d)`` along unit vectors ``U (n, d)`` it goes on, (n,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(U < 0.0, (self.margin - X) / U, np.inf)
        return np.asarray(t.min(axis=1, initial=np.inf))


EVERYWHERE = AllInputs()
