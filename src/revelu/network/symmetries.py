"""The rewritings of a network that leave its function as it is."""

import numpy as np

from revelu.network.network import Network
from revelu.types import BoolArray, FloatArray, IntArray


class Layers:
    """A network taken apart, to be rewritten in place without changing its function.

    The skip's constant is kept in the last bias and its matrix ``V`` is always
    there, zero where the network has none; without a hidden layer ``V`` is kept
    in the only weight matrix.

    Parameters
    ----------
    network : Network
    """

    def __init__(self, network: Network) -> None:
        network = network.folded()
        self.weights = [W.copy() for W in network.weights]
        self.biases = [b.copy() for b in network.biases]
        self.n_hidden = network.n_hidden
        self.V = network.affine[0].copy()

    def to_network(self) -> Network:
        """Put the network together again; a vanishing ``V`` is left out."""
        skip = (self.V, np.zeros(len(self.V))) if self.V.any() else None
        return Network(self.weights, self.biases, skip)

    def is_last(self, i: int) -> bool:
        """Whether hidden layer ``i`` is the last one."""
        return i == self.n_hidden - 1

    def readers(self, i: int) -> FloatArray:
        """Return all that reads hidden layer ``i``, stacked, shape (rows, k_i)."""
        tail = [self.V] if i == self.n_hidden - 2 else []
        return np.vstack([self.weights[i + 1], *tail])

    def hyperplanes(self, i: int) -> FloatArray:
        """Return the rows ``(w, b)`` of hidden layer ``i``, shape (k_i, d_i + 1)."""
        return np.column_stack([self.weights[i], self.biases[i]])

    def scale(self, i: int, factors: FloatArray) -> None:
        """Multiply the neurons of layer ``i`` by positive ``factors``, shape (k_i,)."""
        # relu(s z) = s relu(z) for s > 0.
        self.weights[i] *= factors[:, None]
        self.biases[i] *= factors
        self._times_columns(i, np.diag(1.0 / factors))

    def take(self, i: int, order: IntArray) -> None:
        """Put the neurons of layer ``i`` into another order, a permutation."""
        self.weights[i], self.biases[i] = self.weights[i][order], self.biases[i][order]
        self._times_columns(i, np.eye(len(order))[:, order])

    def flip(self, signs: FloatArray) -> None:
        """Negate the neurons of the last hidden layer where ``signs`` is -1."""
        # relu(z) = relu(-z) + z: a relu(z) leaves a w in V and a b in the bias.
        i = self.n_hidden - 1
        A = self.weights[-1] * (signs < 0)
        self.V += A @ self.weights[i]
        self.biases[-1] += A @ self.biases[i]
        self.weights[i] *= signs[:, None]
        self.biases[i] *= signs

    def merge(self, i: int, leaders: IntArray, ratios: FloatArray) -> None:
        """Let neuron ``leaders[j]`` stand in for neuron ``j``, ``ratios[j]`` times as large."""
        # relu(r z) = r relu(z): the column of j is added, r-fold, to its leader's.
        M = np.zeros((len(leaders), len(leaders)))
        M[np.arange(len(leaders)), leaders] = ratios
        self._times_columns(i, M)

    def fold(self, i: int, constant: BoolArray) -> None:
        """Remove neurons of layer ``i``, taking each for the constant ``relu(b)``."""
        values = np.maximum(self.biases[i], 0.0) * constant
        self.biases[i + 1] += self.weights[i + 1] @ values
        if i == self.n_hidden - 2:
            self.biases[-1] += self.V @ values
        self.weights[i], self.biases[i] = self.weights[i][~constant], self.biases[i][~constant]
        self._times_columns(i, np.eye(len(constant))[:, ~constant])

    def _times_columns(self, i: int, M: FloatArray) -> None:
        """Multiply all that reads hidden layer ``i`` by ``M`` from the right."""
        self.weights[i + 1] = self.weights[i + 1] @ M
        if i == self.n_hidden - 2:
            self.V = self.V @ M


def unit_rows(rows: FloatArray) -> FloatArray:
    """Divide each row, (k, d), by its norm; a zero row stays zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)
