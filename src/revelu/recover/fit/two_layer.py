"""Two-layer networks as points of a parameter space, with their derivatives.

    f(x) = A relu(W x + b) + V x + c

A :class:`revelu.network.Network` is what is given to users; this is what least squares
moves: one flat vector, the derivative of the answers along a change of it, and the
adjoint of that map, none of them ever a matrix.
"""

from dataclasses import dataclass

import numpy as np

from revelu.recover.fit.whitening import Whitening
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class TwoLayer:
    """The arrays of a two-layer network with an optional affine rest.

    Attributes
    ----------
    W : ndarray, shape (m, d)
    b : ndarray, shape (m,)
    A : ndarray, shape (k, m)
    c : ndarray, shape (k,)
    V : ndarray, shape (k, d), or None
    """

    W: FloatArray
    b: FloatArray
    A: FloatArray
    c: FloatArray
    V: FloatArray | None = None

    @property
    def width(self) -> int:
        """Number of neurons."""
        return len(self.b)

    @property
    def n_parameters(self) -> int:
        """Degrees of freedom: a neuron's scale is not one."""
        return sum(p.size for p in self._parts()) - self.width

    def __call__(self, X: FloatArray) -> FloatArray:
        """Evaluate, (n, d) -> (n, k)."""
        Y = np.maximum(X @ self.W.T + self.b, 0.0) @ self.A.T + self.c
        return np.asarray(Y if self.V is None else Y + X @ self.V.T)

    def _parts(self) -> list[FloatArray]:
        parts = [self.W, self.b, self.A, self.c]
        return parts if self.V is None else [*parts, self.V]

    def to_vector(self) -> FloatArray:
        """All parameters in one row."""
        return np.concatenate([p.ravel() for p in self._parts()])

    def like(self, vector: FloatArray) -> "TwoLayer":
        """The network of the same shape with these parameters."""
        shapes = [p.shape for p in self._parts()]
        stops = np.cumsum([0, *(p.size for p in self._parts())])
        return TwoLayer(
            *(
                vector[start:stop].reshape(shape)
                for start, stop, shape in zip(stops, stops[1:], shapes, strict=False)
            )
        )

    def take(self, kept: IntArray | BoolArray) -> "TwoLayer":
        """The network with some of the neurons only."""
        return TwoLayer(self.W[kept], self.b[kept], self.A[:, kept], self.c, self.V)

    def beside(self, other: "TwoLayer") -> "TwoLayer":
        """The sum of two networks, neurons side by side; the affine rest is added too."""
        V = other.V if self.V is None else self.V if other.V is None else self.V + other.V
        return TwoLayer(
            np.vstack([self.W, other.W]),
            np.concatenate([self.b, other.b]),
            np.hstack([self.A, other.A]),
            self.c + other.c,
            V,
        )

    def balanced(self) -> "TwoLayer":
        """The same function, every neuron with ``|(w, b)| = |a|``.

        Of all the scales ``a relu(z) = (a / s) relu(s z)`` this conditions best.
        """
        inner = np.sqrt((self.W**2).sum(axis=1) + self.b**2)
        outer = np.linalg.norm(self.A, axis=0)
        tiny = np.finfo(np.float64).tiny
        s = np.sqrt(np.maximum(outer, tiny) / np.maximum(inner, tiny))
        s = np.where((inner > 0) & (outer > 0), s, 1.0)
        return TwoLayer(self.W * s[:, None], self.b * s, self.A / s, self.c, self.V)


@dataclass(frozen=True)
class Samples:
    """Inputs, answers, and how far an answer may be off.

    Attributes
    ----------
    X : ndarray, shape (n, d)
    Y : ndarray, shape (n, k)
    sigma : ndarray, shape (k,) or (n, k)
        Standard error of an answer.
    """

    X: FloatArray
    Y: FloatArray
    sigma: FloatArray

    @property
    def n_equations(self) -> int:
        """Answers, each output counted."""
        return self.Y.size

    def residual(self, network: TwoLayer) -> FloatArray:
        """Return ``(Y - f(X)) / sigma``, shape (n, k)."""
        return np.asarray((self.Y - network(self.X)) / self.sigma)

    def cost(self, network: TwoLayer) -> float:
        """Root mean square of the residual: 1 where only noise is left."""
        return float(np.sqrt(np.mean(self.residual(network) ** 2)))

    def reduced_cost(self, network: TwoLayer) -> float:
        """The same, with the degrees of freedom that the fit has used up given back."""
        left = self.n_equations - network.n_parameters
        return self.cost(network) * float(np.sqrt(self.n_equations / left)) if left > 0 else np.inf

    def spread(self) -> float:
        """Root mean square of the answers about their mean, in units of ``sigma``."""
        return float(np.sqrt(np.mean(((self.Y - self.Y.mean(axis=0)) / self.sigma) ** 2)))

    def evenly(self) -> "Samples":
        """The same with one error an output, the root mean square of all answers'."""
        sigma = np.broadcast_to(self.sigma, self.Y.shape)
        return Samples(self.X, self.Y, np.sqrt(np.mean(sigma**2, axis=0)))

    def joined(self, other: "Samples") -> "Samples":
        """Both."""
        if self.sigma.ndim == 1 and np.array_equal(self.sigma, other.sigma):
            sigma = self.sigma
        else:
            sigmas = (np.broadcast_to(s.sigma, s.Y.shape) for s in (self, other))
            sigma = np.vstack(list(sigmas))
        return Samples(np.vstack([self.X, other.X]), np.vstack([self.Y, other.Y]), sigma)


class Derivative:
    """The derivative of the residual's model part at one network, as a linear map.

    Parameters
    ----------
    network : TwoLayer
    samples : Samples
    dtype : numpy dtype
        Of the products: a step is corrected by the next one, its residual is not.

    Notes
    -----
    Changes are in units of ``scales``, in which columns have a norm of about 1;
    :meth:`whitening` gives coordinates that undo the neurons' correlations, too.
    """

    def __init__(
        self, network: TwoLayer, samples: Samples, dtype: type[np.floating] = np.float64
    ) -> None:
        self.network, self.dtype = network, dtype
        Z = samples.X @ network.W.T + network.b
        H = np.maximum(Z, 0.0)
        self.X = samples.X.astype(dtype, copy=False)
        self.S = (Z > 0).astype(dtype)
        self.H = H.astype(dtype, copy=False)
        self.A = network.A.astype(dtype, copy=False)
        self.weight = np.asarray(1.0 / samples.sigma, dtype=dtype)
        self.shape = (samples.n_equations, network.to_vector().size)
        self.scales = self._column_scales(samples)

    def whitening(self, samples: Samples) -> Whitening:
        """Coordinates in which LSMR converges in fewer iterations."""
        weight = _weights(samples)
        return Whitening(
            self.network.A * weight[:, None],
            self.S,
            self.H,
            weight,
            np.sqrt(np.mean(samples.X**2, axis=0)),
            has_skip=self.network.V is not None,
        )

    def _column_scales(self, samples: Samples) -> FloatArray:
        """Units for the parameters in which the map's columns have a norm of about 1."""
        network, n = self.network, len(samples.X)
        weight = _weights(samples)
        active = np.sqrt(self.S.mean(axis=0, dtype=np.float64))
        hidden = np.sqrt(np.mean(self.H.astype(np.float64) ** 2, axis=0))
        inputs = np.sqrt(np.einsum("ni,ni->i", samples.X, samples.X) / n)
        neuron = active * np.linalg.norm(network.A * weight[:, None], axis=0)
        norms = [
            neuron[:, None] * inputs,
            neuron,
            weight[:, None] * hidden,
            weight,
        ]
        if network.V is not None:
            norms.append(weight[:, None] * inputs)
        flat = np.concatenate([norm.ravel() for norm in norms]) * np.sqrt(n)
        # A parameter that no answer depends on stays where it is.
        return np.where(
            flat > np.finfo(np.float32).eps * flat.max(), 1.0 / np.maximum(flat, 1e-300), 0.0
        )

    def forward(self, v: FloatArray) -> FloatArray:
        """Change of the answers over ``sigma`` for a change ``v`` in units of ``scales``."""
        return self.along(v * self.scales)

    def along(self, change: FloatArray) -> FloatArray:
        """Change of the answers over ``sigma`` for a flat change of the parameters."""
        step = self.network.like(change.astype(self.dtype, copy=False))
        out = ((self.X @ step.W.T + step.b) * self.S) @ self.A.T
        out += self.H @ step.A.T
        out += step.c
        if step.V is not None:
            out += self.X @ step.V.T
        return np.asarray(out * self.weight, dtype=np.float64).ravel()

    def adjoint(self, u: FloatArray) -> FloatArray:
        """The map :meth:`forward`, transposed."""
        return self.gradient(u) * self.scales

    def gradient(self, u: FloatArray) -> FloatArray:
        """The map :meth:`along`, transposed."""
        U = u.reshape(len(self.X), -1).astype(self.dtype, copy=False) * self.weight
        G = (U @ self.A) * self.S
        parts = [G.T @ self.X, G.sum(axis=0), U.T @ self.H, U.sum(axis=0)]
        if self.network.V is not None:
            parts.append(U.T @ self.X)
        return np.concatenate([p.ravel() for p in parts]).astype(np.float64, copy=False)

    def matrix(self) -> FloatArray:
        """The map written out, for small networks; shape ``self.shape``."""
        network, n = self.network, len(self.X)
        m, d, k = network.width, self.X.shape[1], len(network.c)
        J = np.zeros((n, k, self.shape[1]))
        first, stop = m * d, m * (d + 1)
        J[:, :, :first] = np.einsum("oj,nj,ni->noji", network.A, self.S, self.X).reshape(n, k, -1)
        J[:, :, first:stop] = network.A[None] * self.S[:, None]
        for o in range(k):
            J[:, o, stop + o * m : stop + (o + 1) * m] = self.H
            J[:, o, stop + k * m + o] = 1.0
            if network.V is not None:
                at = stop + k * (m + 1) + o * d
                J[:, o, at : at + d] = self.X
        J *= np.broadcast_to(self.weight, (n, k))[:, :, None]
        return np.asarray(J.reshape(n * k, -1) * self.scales)


def _weights(samples: Samples) -> FloatArray:
    """One over the error of each output's answers, root mean square, shape (k,)."""
    weights = np.broadcast_to(1.0 / samples.sigma, samples.Y.shape)
    return np.asarray(np.sqrt(np.mean(weights**2, axis=0)))
