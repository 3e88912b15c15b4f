"""Neurons that rows of lines lack, found together while the rows are held.

Where neurons are missing, a free fit of the others bends all of them to what is missing, and
nothing of either is left to find.  Rows that several lines have met are exact enough to be held:
what answers leave of them is what is missing, and neurons from random starts are fitted to it.

What the held neurons' output weights and an affine map can explain is taken out of the answers,
and of the spare neurons' (variable projection, Golub and Pereyra 1973): with an orthonormal basis
``Q`` of the held features, over the answers' errors, the residual is ``(1 - Q Q') (y - g(x))``.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from revelu.network import Network
from revelu.network.derivative import Layout, ParameterArrays
from revelu.numerics.gauss_newton import (
    Coordinates,
    Damping,
    Derivative,
    Stop,
    minimise,
    summed_normal_equations,
)
from revelu.recover.fit.growth import random_start
from revelu.recover.refine.network_fit import Samples
from revelu.types import FloatArray, IntArray


@dataclass(frozen=True)
class LackingNeurons:
    """How neurons are found that held ones lack."""

    n_starts: int = 2
    """Random starts, of which the best counts."""
    equations: float = 3.0
    """Answers that are looked at, times the unknowns."""
    damping: Damping = field(default_factory=lambda: Damping(1.0))
    """Heavy at first, for at a random start the activation patterns are all wrong."""
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
        # Of each output the held features' weights, and its share of the spare neurons'; an input
        # tells of those that are on there, half of them, whatever the number of outputs.
        each = min(k, max(width / 2.0, 1.0))
        n_unknown = known.architecture[1] + d + 1 + width * (d + 1 + k) / each
        n = min(len(samples.X), int(np.ceil(self.equations * n_unknown)))
        sigma = np.broadcast_to(samples.sigma, samples.Y.shape)[:n]
        some = replace(samples, X=samples.X[:n], Y=samples.Y[:n], sigma=sigma).beside(known)
        rest = replace(some, Y=some.Y - known(some.X))
        best, least = None, np.inf
        for _ in range(self.n_starts):
            start = random_start(rng, rest, width)
            problem = _Projected(known, some, start)
            vector, solver = start.to_vector(), summed_normal_equations
            found, cost = minimise(problem, vector, solver, self.damping, self.stop)
            if best is None or cost < least:
                best, least = start.like(found), cost
        return best if best is not None else random_start(rng, rest, 0)


class _Projected:
    """The parameters of spare neurons as what least squares moves."""

    def __init__(self, known: Network, samples: Samples, start: Network) -> None:
        # One error an input: a basis an output would cost as much again each.
        sigma = np.sqrt((samples.sigma**2).mean(axis=1, keepdims=True))
        self.X, self.inverse, self.layout = samples.X, 1.0 / sigma, Layout(start)
        hidden = ParameterArrays.of(known).activations(self.X)[1]
        features = np.column_stack([hidden, self.X, np.ones(len(self.X))])
        self.Q = np.linalg.qr(features * self.inverse)[0]
        self.wanted = self.left(samples.Y * self.inverse)

    def left(self, Y: FloatArray) -> FloatArray:
        """Take out what held features explain of columns, shape (n, m)."""
        return np.asarray(Y - self.Q @ (self.Q.T @ Y))

    def residual(self, p: FloatArray) -> FloatArray:
        """Return what is left of the answers, flat."""
        Y = ParameterArrays(self.layout, p)(self.X) * self.inverse
        return np.asarray((self.wanted - self.left(Y)).ravel())

    def derivative(self, p: FloatArray) -> Derivative:
        """Return the derivative of what the spare neurons answer, projected."""
        at = ParameterArrays(self.layout, p)
        hidden = at.activations(self.X)[1]
        inputs = np.column_stack([self.X, np.ones(len(self.X))]) * self.inverse
        rows = (hidden > 0.0)[:, :, None] * inputs[:, None]
        return _ProjectedDerivative(
            self.layout,
            self.left(rows.reshape(len(rows), -1)),
            self.left(hidden * self.inverse),
            at.weights[1],
        )


@dataclass(frozen=True, eq=False)
class _ProjectedDerivative:
    """The derivative of spare neurons' answers, of which all outputs share the large arrays.

    Output ``q`` changes by ``A_qi M_i`` for a row and its bias, and by ``h_i`` for its own weight
    ``A_qi``: what neuron ``i`` makes of inputs and of the constant, and its value, each projected.
    So the normal equations of ``k`` outputs take no more than ``M'M`` times ``A'A``; an output's
    constant is a held feature, and has none.
    """

    layout: Layout
    M: FloatArray
    """Shape (n, w (d + 1))."""
    h: FloatArray
    """Shape (n, w)."""
    A: FloatArray
    """Shape (k, w)."""

    @property
    def shape(self) -> tuple[int, int]:
        """Answers, and parameters."""
        return len(self.h) * len(self.A), self.layout.places[-1].stop

    def _places(self) -> tuple[IntArray, IntArray]:
        """Where parameters are: of rows and biases, (w, d + 1), and of weights, (k, w)."""
        weights, outputs, biases = (
            np.arange(place.start, place.stop).reshape(shape)
            for place, shape in zip(self.layout.places[:3], self.layout.shapes[:3], strict=True)
        )
        return np.column_stack([weights, biases]), outputs

    def along(self, change: FloatArray) -> FloatArray:
        """Return ``J change``."""
        rows, outputs = self._places()
        w, e = rows.shape
        moved = np.einsum("nie,ie->ni", self.M.reshape(-1, w, e), change[rows])
        return np.asarray((moved @ self.A.T + self.h @ change[outputs].T).ravel())

    def gradient(self, u: FloatArray) -> FloatArray:
        """Return ``J' u``."""
        rows, outputs = self._places()
        w, e = rows.shape
        gradient, U = np.zeros(self.shape[1]), u.reshape(len(self.h), -1)
        gradient[rows] = np.einsum("nie,ni->ie", self.M.reshape(-1, w, e), U @ self.A)
        gradient[outputs] = U.T @ self.h
        return gradient

    def matrix(self) -> FloatArray:
        """Return ``J`` written out, a column a parameter."""
        return np.column_stack([self.along(unit) for unit in np.eye(self.shape[1])])

    def normal(self) -> FloatArray:
        """Return ``J'J``."""
        rows, outputs = self._places()
        (w, e), normal = rows.shape, np.zeros((self.shape[1], self.shape[1]))
        gram = (self.M.T @ self.M).reshape(w, e, w, e) * (self.A.T @ self.A)[:, None, :, None]
        normal[np.ix_(rows.ravel(), rows.ravel())] = gram.reshape(w * e, w * e)
        cross, own = (self.M.T @ self.h).reshape(w, e, w), self.h.T @ self.h
        for a, at in zip(self.A, outputs, strict=True):
            both = (a[:, None, None] * cross).reshape(w * e, w)
            normal[np.ix_(rows.ravel(), at)], normal[np.ix_(at, rows.ravel())] = both, both.T
            normal[np.ix_(at, at)] = own
        return normal

    def coordinates(self, *, white: bool) -> Coordinates:
        """Not asked for by normal equations."""
        raise NotImplementedError(white)

    def in_single(self) -> "_ProjectedDerivative":
        """Return it as it is."""
        return self
