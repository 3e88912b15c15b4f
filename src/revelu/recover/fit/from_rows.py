"""Rows of lines held to their errors, while all weights are fitted.

Where neurons are missing, a free fit of the others bends all of them to what is missing, and
nothing of either is left to find.  A row from a line comes with its error, though: with the rows
held to within their errors (a Gaussian prior), what answers leave is what is missing.  The prior
of a row ``(w, b)`` that bends at ``x`` holds ``w`` to its error, and ``w' x + b`` more closely:
where a kink is shows more exactly than which way it faces.
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
    summed_normal_equations,
)
from revelu.recover.refine.derivative import Arrays, Layout, NetworkDerivative
from revelu.recover.refine.network_fit import Fit, Samples
from revelu.recover.rows import Rows
from revelu.types import FloatArray


@dataclass(frozen=True)
class FromRows:
    """How rows from lines are held that are a network's neurons.

    Attributes
    ----------
    tight : float
        The place of a kink is known by so much better than its row.
    stop : Stop
    damping : Damping
    """

    tight: float = 0.1
    stop: Stop = field(default_factory=lambda: Stop(6, rtol=5e-3, patience=1))
    damping: Damping = field(default_factory=lambda: Damping(1e-8))

    def held(self, network: Network, rows: Rows, samples: Samples) -> Fit:
        """Fit all weights, the first neurons being held to rows.

        What is missing counts as noise: answers err by what the start leaves.
        """
        error = max(samples.cost(network), 1.0)
        problem = _Held(network, rows, Samples(samples.X, samples.Y, error * samples.sigma), self)
        start = network.to_vector()
        solver = summed_normal_equations
        found = network.like(minimise(problem, start, solver, self.damping, self.stop)[0])
        return Fit(found, samples.cost(found))


class _Held:
    """The parameters of a network as what least squares moves, the first rows being held."""

    def __init__(self, network: Network, rows: Rows, samples: Samples, how: FromRows) -> None:
        self.layout, self.samples = Layout(network), samples
        (m, d), norms = rows.W.shape, np.linalg.norm(rows.W, axis=1)
        weights, biases = self.layout.places[0], self.layout.places[self.layout.n_layers]
        self.centre = np.column_stack([rows.W, rows.b]) / norms[:, None]
        places = weights.start + np.arange(m * d).reshape(m, d)
        self.places = np.column_stack([places, biases.start + np.arange(m)])
        # Of each row, equations for (w, b): shape (m, d + 1, d + 1).
        # Of one input there is no direction to err in.
        precision = np.sqrt(d) / np.maximum(rows.errors, np.finfo(np.float64).eps)
        reach = how.tight * np.sqrt(1.0 + (rows.X**2).sum(axis=1))
        prior = np.zeros((m, d + 1, d + 1))
        prior[:, range(d), range(d)] = precision[:, None]
        at = np.column_stack([rows.X, np.ones(m)])
        prior[:, d] = at * (precision / reach)[:, None]
        # A row that answers have moved by more than its error is a sum of two neurons', and is let
        # go: the weights of errors of a Cauchy distribution.
        moved = np.einsum("jab,jb->ja", prior, self.centre - network.to_vector()[self.places])
        self.prior = prior / np.sqrt(1.0 + (moved**2).mean(axis=1))[:, None, None]

    def residual(self, p: FloatArray) -> FloatArray:
        """Return what is left of answers and of rows, over their errors."""
        answers = (self.samples.Y - Arrays(self.layout, p)(self.samples.X)) / self.samples.sigma
        rows = np.einsum("jab,jb->ja", self.prior, self.centre - p[self.places])
        return np.concatenate([answers.ravel(), rows.ravel()])

    def derivative(self, p: FloatArray) -> Derivative:
        """Return the derivative of the answers, over their errors."""
        at = Arrays(self.layout, p)
        answers = NetworkDerivative(at, self.samples.X, 1.0 / self.samples.sigma)
        return _HeldDerivative(answers, self.prior, self.places)


@dataclass(frozen=True, eq=False)
class _HeldDerivative:
    """Derivatives of answers, and beneath them those of rows."""

    answers: NetworkDerivative
    prior: FloatArray
    places: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """Answers and equations of rows, and parameters."""
        n, p = self.answers.shape
        return n + self.places.size, p

    def along(self, change: FloatArray) -> FloatArray:
        """Return ``J change``."""
        rows = np.einsum("jab,jb->ja", self.prior, change[self.places])
        return np.concatenate([self.answers.along(change), rows.ravel()])

    def gradient(self, u: FloatArray) -> FloatArray:
        """Return ``J' u``."""
        n = self.answers.shape[0]
        gradient = self.answers.gradient(u[:n])
        rows = u[n:].reshape(self.places.shape)
        gradient[self.places] += np.einsum("jab,ja->jb", self.prior, rows)
        return gradient

    def matrix(self) -> FloatArray:
        """Return ``J`` written out."""
        rows = np.zeros((self.places.size, self.shape[1]))
        m, e = self.places.shape
        for j in range(m):
            rows[j * e : (j + 1) * e, self.places[j]] = self.prior[j]
        return np.vstack([self.answers.matrix(), rows])

    def normal(self) -> FloatArray:
        """Return the upper triangle of ``J'J``."""
        normal = self.answers.normal()
        for places, prior in zip(self.places, self.prior, strict=True):
            normal[np.ix_(places, places)] += prior.T @ prior
        return normal

    def coordinates(self, *, white: bool) -> Coordinates:
        """Those of the answers."""
        return self.answers.coordinates(white=white)

    def in_single(self) -> "_HeldDerivative":
        """Return it as it is."""
        return self
