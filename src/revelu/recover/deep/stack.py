"""Lower layers of a network: what they make of inputs, and where they bend.

On the region around an input the first ``l`` layers are one affine map, ``h(x + e) = h(x) + M e``
with ``M = D_l W_l ... D_1 W_1``, where the diagonal ``D_i`` has a 1 for every neuron that is on.
"""

from collections.abc import Sequence

import numpy as np

from revelu.types import BoolArray, FloatArray

# An input lies on a known neuron's hyperplane if it is so near, relative to its own size.
_ON = 1e-6

_HALVINGS = 60


class Stack:
    """Hidden layers, from the input up.

    Parameters
    ----------
    dim_in : int
    weights : sequence of ndarray, shape (k_i, d_i)
    biases : sequence of ndarray, shape (k_i,)
    """

    def __init__(
        self,
        dim_in: int,
        weights: Sequence[FloatArray] = (),
        biases: Sequence[FloatArray] = (),
    ) -> None:
        self.dim_in = dim_in
        self.weights, self.biases = tuple(weights), tuple(biases)

    @property
    def dim_out(self) -> int:
        """Neurons of the highest layer, or inputs where there is none."""
        return len(self.biases[-1]) if self.biases else self.dim_in

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, n_layers: slice) -> "Stack":
        return Stack(self.dim_in, self.weights[n_layers], self.biases[n_layers])

    def with_layer(self, W: FloatArray, b: FloatArray) -> "Stack":
        """Put a layer on top."""
        return Stack(self.dim_in, (*self.weights, W), (*self.biases, b))

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return what the highest layer gives, shape (n, dim_out)."""
        for W, b in zip(self.weights, self.biases, strict=True):
            X = np.maximum(X @ W.T + b, 0.0)
        return X

    def states(self, X: FloatArray) -> list[BoolArray]:
        """Which neurons are on, a list of (n, k_i), layer by layer."""
        states = []
        for W, b in zip(self.weights, self.biases, strict=True):
            X = np.maximum(X @ W.T + b, 0.0)
            states.append(X > 0)
        return states

    def maps(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the local linear maps, shape (n, dim_out, dim_in), and the outputs."""
        n, d = X.shape
        M, h = np.broadcast_to(np.eye(d), (n, d, d)), X
        for i, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            z = h @ W.T + b
            M = (W @ M if i else np.broadcast_to(W, (n, *W.shape))) * (z > 0)[:, :, None]
            h = np.maximum(z, 0.0)
        return M, h

    def distances(self, X: FloatArray) -> FloatArray:
        """How far inputs are from the nearest hyperplane, shape (n,), as regions continue.

        Relative to the size of the input; infinite where no neuron's sum changes.
        """
        n = len(X)
        nearest = np.full(n, np.inf)
        size = np.sqrt(1.0 + (X**2).mean(axis=1))
        for i, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            M, h = self[:i].maps(X)
            slopes = np.linalg.norm(W @ M, axis=2)
            with np.errstate(divide="ignore", invalid="ignore"):
                apart = np.abs(h @ W.T + b) / slopes
            apart = np.where(slopes > 0, apart, np.inf).min(axis=1, initial=np.inf)
            nearest = np.minimum(nearest, apart / size)
        return nearest

    def explains(self, X: FloatArray) -> BoolArray:
        """Tell which kinks are those of a known neuron, shape (n,)."""
        return np.asarray(self.distances(X) <= _ON)

    def breaks(self, x0: FloatArray, v: FloatArray, lo: float, hi: float) -> FloatArray:
        """Return where on ``x0 + t v``, ``lo < t < hi``, known neurons change, in order."""
        ts = np.array([lo, hi])
        for i, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            Z = self[:i].outputs(x0 + ts[:, None] * v) @ W.T + b
            before, after = Z[:-1], Z[1:]
            p, j = np.nonzero(before * after < 0)
            share = before[p, j] / (before[p, j] - after[p, j])
            ts = np.unique(np.concatenate([ts, ts[p] + share * (ts[p + 1] - ts[p])]))
        return ts[1:-1]

    def crossings(
        self, w: FloatArray, b: float, on: FloatArray, off: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Find where a neuron on top of the stack changes its state between inputs.

        Parameters
        ----------
        w : ndarray, shape (dim_out,)
        b : float
        on, off : ndarray, shape (n, dim_in)
            Inputs at which its sum is positive, and negative.

        Returns
        -------
        X : ndarray, shape (m, dim_in)
        normals : ndarray, shape (m, dim_in)
            Unit rows; points at which the sum has no gradient are left out.
        """
        lo, hi = np.zeros((len(on), 1)), np.ones((len(on), 1))
        for _ in range(_HALVINGS):
            middle = (lo + hi) / 2
            below = (self.outputs(off + middle * (on - off)) @ w + b < 0)[:, None]
            lo, hi = np.where(below, middle, lo), np.where(below, hi, middle)
        X = off + (lo + hi) / 2 * (on - off)
        slopes = w @ self.maps(X)[0]
        sizes = np.linalg.norm(slopes, axis=1)
        kept = sizes > 0
        return X[kept], slopes[kept] / sizes[kept, None]
