"""Polish the weights of a nearly exact ReLU network of any depth by fresh answers.

Near the truth every neuron is on where it should be, and the answers are smooth in the
weights: a Gauss-Newton step, solved matrix-free by LSMR, squares the error down to what
the answers' own noise leaves.  The positive scales of hidden neurons are free; of all
solutions LSMR takes the shortest step, which leaves them be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from revelu.types import BoolArray, FloatArray

_MAX_STEPS = 4
_MAX_ITERATIONS = 80

# A step is solved until its residual is this small; the next one does the rest.
_TOLERANCE = 1e-9

# Steps go on while they halve the error at least.
_GAIN = 0.5


@dataclass(frozen=True)
class Layers:
    """Weights and biases, and an affine skip from the last hidden layer's input.

    Attributes
    ----------
    weights : list of ndarray, shape (k_i, d_i)
    biases : list of ndarray, shape (k_i,)
    V : ndarray, shape (k, d), or None
        The skip; its constant belongs to the last bias.
    """

    weights: list[FloatArray]
    biases: list[FloatArray]
    V: FloatArray | None

    def arrays(self) -> list[FloatArray]:
        """All arrays, in a fixed order."""
        return [*self.weights, *self.biases, *([] if self.V is None else [self.V])]

    def moved(self, step: FloatArray) -> "Layers":
        """Add a flat step."""
        parts = _cut(step, self.arrays())
        moved = [a + p for a, p in zip(self.arrays(), parts, strict=True)]
        n = len(self.weights)
        return Layers(moved[:n], moved[n : 2 * n], None if self.V is None else moved[2 * n])

    def activations(self, X: FloatArray) -> list[FloatArray]:
        """The input and every hidden layer's output."""
        hs = [X]
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hs.append(np.maximum(hs[-1] @ W.T + b, 0.0))
        return hs

    def output(self, hs: Sequence[FloatArray]) -> FloatArray:
        """The answers, from the activations."""
        Y = hs[-1] @ self.weights[-1].T + self.biases[-1]
        if self.V is not None:
            Y = Y + hs[-2] @ self.V.T
        return np.asarray(Y)


Step: TypeAlias = Callable[[Layers, FloatArray, FloatArray], FloatArray]


def polish(layers: Layers, X: FloatArray, Y: FloatArray) -> Layers:
    """Take Gauss-Newton steps until they gain no more.

    Parameters
    ----------
    layers : Layers
        Right but for small errors.
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)
        ``n k`` should exceed the number of weights, or the steps fit noise.

    Returns
    -------
    Layers
        With the least root-mean-square error on ``X`` of all steps.
    """
    return take_steps(layers, X, Y, _step, _MAX_STEPS, _GAIN)


def take_steps(
    layers: Layers, X: FloatArray, Y: FloatArray, step: Step, max_steps: int, gain: float
) -> Layers:
    """Take steps while they lower the error, and end after one that left more than ``gain`` of it.

    Parameters
    ----------
    layers : Layers
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)
    step : callable
        The flat step from layers, inputs and residual.
    max_steps : int
    gain : float

    Returns
    -------
    Layers
        With the least root-mean-square error on ``X`` of all steps.
    """
    best = layers
    residual = Y - layers.output(layers.activations(X))
    for _ in range(max_steps):
        new = best.moved(step(best, X, residual))
        new_residual = Y - new.output(new.activations(X))
        error, new_error = (float((r**2).sum()) ** 0.5 for r in (residual, new_residual))
        if not new_error < error:
            return best
        best, residual = new, new_residual
        if new_error > gain * error:
            return best
    return best


def _step(layers: Layers, X: FloatArray, residual: FloatArray) -> FloatArray:
    hs = layers.activations(X)
    on = [h > 0 for h in hs[1:]]
    arrays = layers.arrays()
    n = len(layers.weights)
    size = sum(a.size for a in arrays)

    def forward(step: FloatArray) -> FloatArray:
        parts = _cut(step, arrays)
        dh = np.zeros_like(X)
        before = dh
        for i in range(n - 1):
            before = dh
            dz = hs[i] @ parts[i].T + dh @ layers.weights[i].T + parts[n + i]
            dh = dz * on[i]
        dy = hs[-1] @ parts[n - 1].T + dh @ layers.weights[-1].T + parts[2 * n - 1]
        if layers.V is not None:
            dy = dy + hs[-2] @ parts[2 * n].T + before @ layers.V.T
        return np.asarray(dy.ravel())

    def adjoint(flat: FloatArray) -> FloatArray:
        g = flat.reshape(residual.shape)
        weights: list[FloatArray] = [g.T @ hs[-1]]
        biases: list[FloatArray] = [g.sum(axis=0)]
        skip = [] if layers.V is None else [g.T @ hs[-2]]
        back = g @ layers.weights[-1]
        for i in range(n - 2, -1, -1):
            dz = back * on[i]
            weights.insert(0, dz.T @ hs[i])
            biases.insert(0, dz.sum(axis=0))
            back = dz @ layers.weights[i]
            if i == n - 2 and layers.V is not None:
                back = back + g @ layers.V
        return np.concatenate([a.ravel() for a in (*weights, *biases, *skip)])

    operator = LinearOperator(
        (residual.size, size), matvec=forward, rmatvec=adjoint, dtype=np.float64
    )
    sizes = _column_sizes(layers, hs, on)
    scaled = LinearOperator(
        operator.shape,
        matvec=lambda step: forward(step / sizes),
        rmatvec=lambda flat: adjoint(flat) / sizes,
        dtype=np.float64,
    )
    scale = float(np.sqrt((residual**2).mean())) or 1.0
    solution = lsmr(
        scaled,
        residual.ravel() / scale,
        atol=_TOLERANCE,
        btol=_TOLERANCE,
        conlim=0.0,
        maxiter=_MAX_ITERATIONS,
    )[0]
    return np.asarray(solution / sizes * scale)


def _column_sizes(layers: Layers, hs: Sequence[FloatArray], on: Sequence[BoolArray]) -> FloatArray:
    """The norm of every column of the Jacobian, which LSMR is preconditioned by."""
    n, k = len(layers.weights), len(layers.biases[-1])
    weights = [np.zeros_like(W) for W in layers.weights]
    biases = [np.zeros_like(b) for b in layers.biases]
    weights[-1] += (hs[-1] ** 2).sum(axis=0)
    biases[-1] += len(hs[0])
    skip = [] if layers.V is None else [np.tile((hs[-2] ** 2).sum(axis=0), (k, 1))]
    for j in range(k):
        back = np.broadcast_to(layers.weights[-1][j], hs[-1].shape)
        for i in range(n - 2, -1, -1):
            dz = back * on[i]
            weights[i] += (dz**2).T @ hs[i] ** 2
            biases[i] += (dz**2).sum(axis=0)
            back = dz @ layers.weights[i]
            if i == n - 2 and layers.V is not None:
                back = back + layers.V[j]
    flat = np.sqrt(np.concatenate([a.ravel() for a in (*weights, *biases, *skip)]))
    return np.where(flat > 0, flat, 1.0)


def _cut(flat: FloatArray, like: Sequence[FloatArray]) -> list[FloatArray]:
    ends = np.cumsum([a.size for a in like])[:-1]
    return [p.reshape(a.shape) for p, a in zip(np.split(flat, ends), like, strict=True)]
