"""Least squares over all numbers of dense layers and leaky units, slopes included.

With ``z_i = W_i h_{i-1} + b_i`` and ``h_i = max(z_i, 0) + s_i min(z_i, 0)``, and ``B_i`` the
derivative of the answers by ``z_i``, the derivative by ``W_i`` is ``B_i h_{i-1}'``, by ``b_i`` it
is ``B_i``, and by ``s_i`` it is that by ``h_i`` times ``min(z_i, 0)``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from revelu.network.layered import LayeredNetwork
from revelu.network.layers import Dense, Layer, Prelu, Relu
from revelu.numerics.gauss_newton import UNDAMPED, Coordinates, Orthogonal, Stop, minimise
from revelu.recover.refine.network_fit import Samples
from revelu.types import FloatArray

__all__ = ["fit_layers"]

STOP = Stop(8, rtol=0.3, patience=1)
"""Near a solution a step squares the error: what gains less has met the answers' own."""


def fit_layers(start: LayeredNetwork, samples: Samples, stop: Stop = STOP) -> LayeredNetwork:
    """Fit a network of dense layers and units that is right but for small errors.

    Returns
    -------
    LayeredNetwork
        No worse than the start.
    """
    problem = _LayeredProblem(start.layers, samples)
    vector = np.concatenate([a.ravel() for a in start.arrays])
    vector, _ = minimise(problem, vector, Orthogonal(), UNDAMPED, stop)
    return LayeredNetwork(problem.layers(vector))


@dataclass(frozen=True)
class _LayeredProblem:
    """Answers less those of layers, over their errors, as a function of the layers' numbers."""

    like: Sequence[Layer]
    samples: Samples

    def layers(self, p: FloatArray) -> list[Layer]:
        """The layers of a row of numbers."""
        found: list[Layer] = []
        start = 0
        for layer in self.like:
            arrays = []
            for a in layer.arrays:
                arrays.append(p[start : start + a.size].reshape(a.shape))
                start += a.size
            match layer:
                case Dense():
                    found.append(Dense(*arrays))
                case Prelu():
                    found.append(Prelu(*arrays))
                case _:
                    found.append(layer)
        return found

    def residual(self, p: FloatArray) -> FloatArray:
        """Return what is wanted less the answers, flat."""
        H = self.samples.X
        for layer in self.layers(p):
            H = layer(H)
        return np.asarray((self.samples.Y - H) / self.samples.sigma).ravel()

    def derivative(self, p: FloatArray) -> "_Written":
        """Return the derivative of the answers."""
        layers, H = self.layers(p), [self.samples.X]
        for layer in layers:
            H.append(layer(H[-1]))
        (n, k), columns = self.samples.Y.shape, []
        B = np.broadcast_to(np.eye(k), (n, k, k)) / np.broadcast_to(
            self.samples.sigma, (n, k)
        ).reshape(n, k, 1)
        for layer, h in zip(reversed(layers), reversed(H[:-1]), strict=True):
            match layer:
                case Dense(W=W):
                    by_weights = B[:, :, :, None] * h[:, None, None, :]
                    columns += [B.reshape(n * k, -1), by_weights.reshape(n * k, -1)]
                    B = B @ W
                case Prelu(slopes=s):
                    columns.append((B * np.minimum(h, 0.0)[:, None, :]).reshape(n * k, -1))
                    B = B * np.where(h > 0.0, 1.0, s)[:, None, :]
                case Relu():
                    B = B * (h > 0.0)[:, None, :]
        return _Written(np.hstack(columns[::-1]))


@dataclass(frozen=True)
class _Written:
    """A derivative that is written out."""

    J: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Number of answers and number of parameters."""
        return self.J.shape[0], self.J.shape[1]

    def along(self, change: FloatArray) -> FloatArray:
        """Return ``J change``."""
        return np.asarray(self.J @ change)

    def gradient(self, u: FloatArray) -> FloatArray:
        """Return ``J' u``."""
        return np.asarray(self.J.T @ u)

    def matrix(self) -> FloatArray:
        """Return a copy of ``J``."""
        return self.J.copy()

    def normal(self) -> FloatArray:
        """Return ``J'J``."""
        return np.asarray(self.J.T @ self.J)

    def coordinates(self, *, white: bool) -> Coordinates:
        """Of no use to what writes it out."""
        raise NotImplementedError

    def in_single(self) -> "_Written":
        """Return itself."""
        return self
