"""Neurons that rows of lines lack, found together while the rows are held.

Where neurons are missing, a free fit of the others bends all of them to what is missing, and
nothing of either is left to find.  Rows that several lines have met are exact enough to be held:
what answers leave of them is what is missing, and neurons from random starts are fitted to it.

What the held neurons' output weights and an affine map can explain is taken out of the answers,
and of the spare neurons' (variable projection, Golub and Pereyra 1973): with an orthonormal basis
``Q`` of the held features, over the answers' errors, the residual is ``(1 - Q Q') (y - g(x))``.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network
from revelu.numerics.gauss_newton import (
    Coordinates,
    Damping,
    Derivative,
    Stop,
    minimise,
    normal_equations,
)
from revelu.recover.fit.growth import random_start
from revelu.recover.refine.derivative import Arrays, Layout, NetworkDerivative
from revelu.recover.refine.network_fit import Samples
from revelu.types import FloatArray


@dataclass(frozen=True)
class Missing:
    """How neurons are found that held ones lack.

    Attributes
    ----------
    n_starts : int
        Random starts, of which the best counts.
    equations : float
        Answers that are looked at, times the unknowns.
    damping : Damping
        Heavy at first, for at a random start the activation patterns are all wrong.
    stop : Stop
    """

    n_starts: int = 2
    equations: float = 3.0
    damping: Damping = field(default_factory=lambda: Damping(1.0))
    stop: Stop = field(default_factory=lambda: Stop(40, rtol=3e-3, patience=3))

    def find(
        self, known: Network, samples: Samples, width: int, rng: np.random.Generator
    ) -> Network:
        """Find neurons that explain what those of a network leave.

        Parameters
        ----------
        known : Network
            Of one hidden layer, whose neurons are held.
        width : int
            How many to look for.

        Returns
        -------
        Network
            Of the found ones alone.
        """
        d, k = samples.X.shape[1], samples.Y.shape[1]
        # Of each output the held features' weights, and its share of the spare neurons'.
        n_unknown = known.architecture[1] + d + 1 + width * (d + 1 + k) / k
        n = min(len(samples.X), int(np.ceil(self.equations * n_unknown)))
        sigma = np.broadcast_to(samples.sigma, samples.Y.shape)[:n]
        some = Samples(samples.X[:n], samples.Y[:n], sigma)
        rest = Samples(some.X, some.Y - known(some.X), sigma)
        best, least = None, np.inf
        for _ in range(self.n_starts):
            start = random_start(rng, rest, width)
            problem = _Projected(known, some, start)
            found, cost = minimise(
                problem, start.to_vector(), normal_equations, self.damping, self.stop
            )[:2]
            if best is None or cost < least:
                best, least = start.like(found), cost
        return best if best is not None else random_start(rng, rest, 0)


class _Projected:
    """The parameters of spare neurons as what least squares moves."""

    def __init__(self, known: Network, samples: Samples, start: Network) -> None:
        # One error an input: a basis an output would cost as much again each.
        sigma = np.sqrt((samples.sigma**2).mean(axis=1, keepdims=True))
        self.X, self.inverse, self.layout = samples.X, 1.0 / sigma, Layout(start)
        hidden = Arrays.of(known).activations(self.X)[1]
        features = np.column_stack([hidden, self.X, np.ones(len(self.X))])
        self.Q = np.linalg.qr(features * self.inverse)[0]
        self.wanted = self.left(samples.Y * self.inverse)

    def left(self, Y: FloatArray) -> FloatArray:
        """Take out what held features explain of columns, shape (n, m)."""
        return np.asarray(Y - self.Q @ (self.Q.T @ Y))

    def residual(self, p: FloatArray) -> FloatArray:
        """Return what is left of the answers, flat."""
        Y = Arrays(self.layout, p)(self.X) * self.inverse
        return np.asarray((self.wanted - self.left(Y)).ravel())

    def derivative(self, p: FloatArray) -> Derivative:
        """Return the derivative of what the spare neurons answer, projected."""
        k = self.wanted.shape[1]
        inverse = np.broadcast_to(self.inverse, (len(self.X), k))
        J = NetworkDerivative(Arrays(self.layout, p), self.X, inverse).matrix()
        n, m = len(self.X), J.shape[1]
        return _Written(self.left(J.reshape(n, k * m)).reshape(n * k, m))


@dataclass(frozen=True, eq=False)
class _Written:
    """A derivative that is written out."""

    J: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Answers, and parameters."""
        n, p = self.J.shape
        return n, p

    def along(self, change: FloatArray) -> FloatArray:
        """Return ``J change``."""
        return np.asarray(self.J @ change)

    def gradient(self, u: FloatArray) -> FloatArray:
        """Return ``J' u``."""
        return np.asarray(self.J.T @ u)

    def matrix(self) -> FloatArray:
        """Return ``J``."""
        return self.J

    def normal(self) -> FloatArray:
        """Return ``J'J``."""
        return np.asarray(self.J.T @ self.J)

    def coordinates(self, *, white: bool) -> Coordinates:
        """Not asked for by normal equations."""
        raise NotImplementedError(white)

    def in_single(self) -> "_Written":
        """Return it as it is."""
        return self
