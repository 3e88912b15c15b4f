"""A first layer of which signs may be open, and what sums above it are linear in.

Whatever the signs are, ``relu(-z) = relu(z) - z``: beside neurons as they come, inputs are what
sums are linear in.
"""

from dataclasses import dataclass

import numpy as np

from revelu.network import Network
from revelu.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Below:
    """What sums above a first layer are linear in: its neurons, inputs while signs are open, and 1.

    Attributes
    ----------
    W, b : ndarray, shape (m, d) and (m,)
        The first layer, as its neurons turn on, or as it happens.
    """

    W: FloatArray
    b: FloatArray
    is_signed: bool = True
    """Whether they are known to turn on there: else inputs are among the features."""
    reach: float = 100.0
    """Inputs farther out than this are not asked: neurons that are on up to there pass them on."""

    @property
    def size(self) -> int:
        """How many features there are."""
        return len(self.b) + 1 + (0 if self.is_signed else int(self.W.shape[1]))

    def on(self, X: FloatArray) -> BoolArray:
        """Which neurons' sums are positive, shape (n, m)."""
        return np.asarray(X @ self.W.T + self.b > 0)

    def states(self, X: FloatArray, rows: FloatArray) -> BoolArray:
        """Which neurons are on, those of the first layer and rows above it, shape (n, m + r)."""
        return np.hstack([self.on(X), self.features(X) @ rows.T > 0])

    def features(self, X: FloatArray) -> FloatArray:
        """What sums are linear in, shape (n, size)."""
        neurons, one = np.maximum(X @ self.W.T + self.b, 0.0), np.ones(len(X))
        return np.column_stack([neurons, one] if self.is_signed else [neurons, X, one])

    def slopes(self, X: FloatArray, M: FloatArray) -> FloatArray:
        """How features change along directions ``M (n, d)``, shape (n, size)."""
        neurons, none = (M @ self.W.T) * self.on(X), np.zeros(len(X))
        return np.column_stack([neurons, none] if self.is_signed else [neurons, M, none])

    def gradients(self, X: FloatArray, theta: FloatArray) -> FloatArray:
        """Gradients of a sum, shape (n, d)."""
        m = len(self.b)
        of_neurons = (self.on(X) * theta[:m]) @ self.W
        return of_neurons if self.is_signed else np.asarray(of_neurons + theta[m:-1])

    def network(self, rows: FloatArray, C: FloatArray) -> Network:
        """The network of rows (r, size), and outputs C (r + size, k) of these and of features."""
        r, (m, d) = len(rows), self.W.shape
        W, b, rest, more = self.W, self.b, C[r:-1], np.zeros(r)
        last = C[-1]
        if not self.is_signed:
            W, b = np.vstack([W, np.eye(d)]), np.append(b, np.full(d, self.reach))
            more, last = (
                -self.reach * rows[:, m:-1].sum(axis=1),
                last - self.reach * rest[m:].sum(0),
            )
        weights, biases = [W, rows[:, :-1], C[:r].T], [b, rows[:, -1] + more, last]
        return Network(weights, biases, skip=(rest.T, np.zeros(C.shape[1])))
