"""How the sum of an unknown neuron is written in what is known below it.

Above layers whose signs are known, with ``h(x)`` what they give, and rows ``u = W h + b`` on top of
them whose signs may not be known yet, the sum of a neuron of the next layer is

    z(x) = v . relu(s * u(x)) + l . h(x) + c

for any choice of signs ``s``: where one is wrong, ``relu(u) = relu(-u) + u`` moves a multiple of
``u`` into ``l`` and ``c``.  It is linear in what is unknown, ``(v, l, c)``, and affine between the
walls, which are the places where a known neuron changes its state.
"""

from dataclasses import dataclass

import numpy as np

from revelu.numerics.records import Records
from revelu.recover.deep.stack import Stack
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ActivationRegions(Records):
    """Inputs, each with the states of the known neurons that hold around it.

    A state is kept and not read off the input: on a wall rounding would decide.
    """

    X: FloatArray
    """Shape (n, d)."""
    on: tuple[BoolArray, ...]
    """Shape (n, k_i).  Layer by layer, the rows without signs last: whether the sum counts as
    positive."""

    def moved(self, X: FloatArray) -> "ActivationRegions":
        """Return other inputs with the same states."""
        return ActivationRegions(X, self.on)


@dataclass(frozen=True, eq=False)
class KnownLayers:
    """The known layers below a neuron."""

    stack: Stack
    """Layers of known signs."""
    W: FloatArray
    b: FloatArray
    """Shape (m, stack.dim_out) and (m,).  Rows on top of them whose signs are not known; there
    may be none."""

    @classmethod
    def of(cls, stack: Stack) -> "KnownLayers":
        """Return the frame of a stack all of whose signs are known."""
        return cls(stack, np.empty((0, stack.dim_out)), np.empty(0))

    @property
    def size(self) -> int:
        """Unknowns of a neuron: ``m + stack.dim_out + 1``."""
        return len(self.b) + self.stack.dim_out + 1

    @property
    def weights(self) -> tuple[FloatArray, ...]:
        """Weights layer by layer."""
        return (*self.stack.weights, self.W)

    @property
    def biases(self) -> tuple[FloatArray, ...]:
        """Biases layer by layer."""
        return (*self.stack.biases, self.b)

    def region(self, X: FloatArray) -> ActivationRegions:
        """Return inputs with the states that are read off them."""
        on, h = [], X
        for W, b in zip(self.weights, self.biases, strict=True):
            z = h @ W.T + b
            on.append(z > 0)
            h = np.maximum(z, 0.0)
        return ActivationRegions(X, tuple(on))

    def sums(self, at: ActivationRegions, moves: FloatArray | None = None) -> list[FloatArray]:
        """Sums of all known neurons, layer by layer; along ``moves (n, d)`` their slopes."""
        h, found = at.X if moves is None else moves, []
        for W, b, on in zip(self.weights, self.biases, at.on, strict=True):
            z = h @ W.T
            if moves is None:
                z += b
            found.append(z)
            h = z * on
        return found

    def features(
        self, at: ActivationRegions, s: FloatArray, moves: FloatArray | None = None
    ) -> FloatArray:
        """What a neuron's sum is linear in, shape (n, size); along ``moves`` the slopes of that.

        Parameters
        ----------
        s : ndarray, shape (m,)
            Signs of the rows on top, 1 or -1.
        """
        sums = self.sums(at, moves)
        h = (at.X if moves is None else moves) if len(sums) == 1 else sums[-2] * at.on[-2]
        last = np.full((len(at), 1), 1.0 if moves is None else 0.0)
        return np.hstack([np.where(at.on[-1] == (s > 0), sums[-1] * s, 0.0), h, last])

    def gradients(self, at: ActivationRegions, s: FloatArray, theta: FloatArray) -> FloatArray:
        """Gradients of sums ``theta (size,)`` or ``(n, size)``, shape (n, d)."""
        m = len(self.b)
        theta = np.broadcast_to(theta, (len(at), self.size))
        G = theta[:, m:-1] + (theta[:, :m] * s * (at.on[-1] == (s > 0))) @ self.W
        return self._back(G, at, len(self.stack))

    def jacobian(self, at: ActivationRegions, s: FloatArray) -> FloatArray:
        """The derivative of the features at one input, shape (size, d)."""
        d = at.X.shape[1]
        many = ActivationRegions(
            np.repeat(at.X, d, axis=0), tuple(np.repeat(on, d, axis=0) for on in at.on)
        )
        return self.features(many, s, np.eye(d)).T

    def normals(self, at: ActivationRegions, layers: IntArray, neurons: IntArray) -> FloatArray:
        """Gradients of known sums, one an input, shape (n, d)."""
        found = np.empty(at.X.shape)
        for i in np.unique(layers):
            rows = np.flatnonzero(layers == i)
            found[rows] = self._back(self.weights[i][neurons[rows]], at.take(rows), int(i))
        return found

    def _back(self, G: FloatArray, at: ActivationRegions, layer: int) -> FloatArray:
        """Gradients in what a layer takes in, back to the inputs."""
        for i in reversed(range(layer)):
            G = (G * at.on[i]) @ self.weights[i]
        return G

    def next_wall(
        self, at: ActivationRegions, moves: FloatArray
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """Where rays ``at.X + t moves`` meet their next wall: t, the layer and the neuron.

        t is infinite where there is none.
        """
        t, layers, neurons = (np.full(len(at), x) for x in (np.inf, -1, -1))
        sums, slopes = self.sums(at), self.sums(at, moves)
        for i, (z, dz, on) in enumerate(zip(sums, slopes, at.on, strict=True)):
            if not z.shape[1]:
                continue
            nears = np.where(on, dz < 0, dz > 0)
            with np.errstate(divide="ignore", invalid="ignore"):
                ts = np.where(nears, np.maximum(-z / dz, 0.0), np.inf)
            j = ts.argmin(axis=1)
            first = ts[np.arange(len(at)), j]
            nearer = first < t
            t[nearer], layers[nearer], neurons[nearer] = first[nearer], i, j[nearer]
        return t, layers, neurons

    @staticmethod
    def crossed(at: ActivationRegions, layers: IntArray, neurons: IntArray) -> ActivationRegions:
        """The same inputs with one neuron's state each turned over."""
        on = tuple(part.copy() for part in at.on)
        for i in np.unique(layers):
            rows = np.flatnonzero(layers == i)
            on[i][rows, neurons[rows]] ^= True
        return ActivationRegions(at.X, on)
