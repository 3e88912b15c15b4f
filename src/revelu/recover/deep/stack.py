"""Lower layers of a network: what they make of inputs, and where they bend.

On the region around an input the first ``l`` layers are one affine map, ``h(x + e) = h(x) + M e``
with ``M = D_l W_l ... D_1 W_1``, where the diagonal ``D_i`` has a 1 for every neuron that is on.
"""

from collections.abc import Sequence

import numpy as np

from revelu.network import Network
from revelu.numerics.float64 import HALF_DIGITS
from revelu.types import BoolArray, FloatArray


class Stack:
    """Hidden layers, from the input up.

    Parameters
    ----------
    weights : sequence of ndarray, shape (k_i, d_i)
    biases : sequence of ndarray, shape (k_i,)
    """

    def __init__(
        self, dim_in: int, weights: Sequence[FloatArray] = (), biases: Sequence[FloatArray] = ()
    ) -> None:
        self.dim_in = dim_in
        self.weights, self.biases = tuple(weights), tuple(biases)
        # A network without outputs: what counts is what its hidden layers give.
        none = np.empty((0, self.dim_out))
        self._network = Network([*self.weights, none], [*self.biases, np.empty(0)])

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

    def draw(self, n: int, spreads: Sequence[float], rng: np.random.Generator) -> FloatArray:
        """Draw inputs, near and far: each of N(0, s^2 I) with one of the spreads s."""
        X = rng.standard_normal((n, self.dim_in))
        return np.asarray(X * rng.choice(spreads, n)[:, None])

    def always_on(
        self,
        u: FloatArray,
        rng: np.random.Generator,
        *,
        n_inputs: int = 3000,
        spreads: Sequence[float] = (1.0, 3.0, 10.0),
        away: float = 2.0,
    ) -> FloatArray:
        """Give a row on top the sign and a bias with which it is always on, shape (dim_out + 1,).

        Parameters
        ----------
        u : ndarray, shape (dim_out,)
        rng : numpy.random.Generator
        n_inputs : int
            Inputs that it is on at.
        spreads : sequence of float
            Their standard deviations.
        away : float
            How far its sum stays from 0 there, relative to how near it would come without a bias.
        """
        sums = self.outputs(self.draw(n_inputs, spreads, rng)) @ u
        sign = 1.0 if sums.max() >= -sums.min() else -1.0
        least = -float((sign * sums).min())
        return np.append(sign * u, away * max(least, 0.0) + float(np.abs(sums).mean()))

    def outputs(self, X: FloatArray) -> FloatArray:
        """Return what the highest layer gives, shape (n, dim_out)."""
        return self._network.activations(X)[-1]

    def states(self, X: FloatArray) -> list[BoolArray]:
        """Which neurons are on, a list of (n, k_i), layer by layer."""
        return [h > 0 for h in self._network.activations(X)[1:]]

    def maps(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the local linear maps, shape (n, dim_out, dim_in), and the outputs."""
        if not self.weights:
            return np.broadcast_to(np.eye(self.dim_in), (len(X), self.dim_in, self.dim_in)), X
        *_, (J, z), _ = self._network.linear_maps(X)
        return J * (z > 0)[:, :, None], np.maximum(z, 0.0)

    def spans(self, X: FloatArray) -> list[FloatArray]:
        """What gradients of all above are combinations of: orthonormal rows for each input."""
        _, sizes, V = np.linalg.svd(self.maps(X)[0], full_matrices=False)
        faint = HALF_DIGITS
        return [v[s > faint * s[0]] for s, v in zip(sizes, V, strict=True)]

    def explains(self, X: FloatArray, rtol: float) -> BoolArray:
        """Tell which critical points are those of a known neuron, shape (n,).

        Parameters
        ----------
        X : ndarray, shape (n, dim_in)
        rtol : float
            A point lies on a hyperplane if it is this near, as its region continues, relative to
            its own size.
        """
        nearest = np.full(len(X), np.inf)
        for J, z in self._network.linear_maps(X):
            slopes = np.linalg.norm(J, axis=2)
            apart = np.abs(z) / np.where(slopes > 0, slopes, 1.0)
            apart = np.where(slopes > 0, apart, np.inf).min(axis=1, initial=np.inf)
            nearest = np.minimum(nearest, apart)
        return np.asarray(nearest <= rtol * np.sqrt(1.0 + (X**2).mean(axis=1)))

    def breaks(self, x0: FloatArray, v: FloatArray, lo: float, hi: float) -> FloatArray:
        """Return where on ``x0 + t v``, ``lo < t < hi``, known neurons change, in order."""
        return self._network.kinks_on_line(x0, v, (lo, hi))

    def breaks_between(self, starts: FloatArray, ends: FloatArray) -> list[FloatArray]:
        """Return where known neurons change on each segment, as shares of it, in order."""
        pairs = zip(starts, ends - starts, strict=True)
        return [self.breaks(x, v, 0.0, 1.0) for x, v in pairs]
