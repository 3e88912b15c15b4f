"""Rows of lines held to their errors, while all weights are fitted.

Where neurons are missing, a free fit of the others bends all of them to what is missing, and
nothing of either is left to find.  A row from a line comes with its error, though: with the rows
held to within their errors (a Gaussian prior, of all that lines say of them), what answers leave is
what is missing.

A missing neuron fires on some of the answers only.  Each answer is weighted by what is left of it
(the weights of errors of a Cauchy distribution): the others then determine the rows, and these are
left with what is missing.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.network import Network
from revelu.network.derivative import Layout, NetworkDerivative, ParameterArrays
from revelu.numerics.gauss_newton import (
    Coordinates,
    Damping,
    Derivative,
    Stop,
    minimise,
    summed_normal_equations,
)
from revelu.numerics.reweighting import Cauchy
from revelu.recover.fit.sightings import Sightings
from revelu.recover.refine.network_fit import Samples
from revelu.recover.rows import Rows
from revelu.types import FloatArray


@dataclass(frozen=True)
class FromRows:
    """How rows from lines are held that are a network's neurons."""

    n_affine: int = 10
    """Times that the affine rest is weighted anew."""
    max_steps: int = 12
    """Of the fit of all weights."""
    gain: float = 0.05
    """A step is idle after which the median of what is left is not less by this share."""
    settled: float = 1.0
    patience: int = 3
    """One is the last where the median is at most this many errors, else ``patience`` in a row
    are."""
    damping: Damping = field(default_factory=lambda: Damping(1e-8))

    def start(self, rows: Rows, found: Network | None, samples: Samples) -> Network:
        """Return rows with an affine rest.

        A least-squares fit of their columns would lay what is missing on rows that are on where
        it is.

        Parameters
        ----------
        found : Network, optional
            Of the first of these rows, which are taken from it.
        """
        norms = np.linalg.norm(rows.W, axis=1)
        W, b, A = rows.W / norms[:, None], rows.b / norms, rows.A * norms[:, None]
        if found is not None:
            n = min(found.architecture[1], len(rows))
            norms = np.linalg.norm(found.weights[0][:n], axis=1)
            W[:n], b[:n] = found.weights[0][:n] / norms[:, None], found.biases[0][:n] / norms
            A[:n] = found.weights[1].T[:n] * norms[:, None]
        X, sigma = samples.X, np.broadcast_to(samples.sigma, samples.Y.shape)
        features = np.column_stack([X, np.ones(len(X))])
        wanted, weights = samples.Y - np.maximum(X @ W.T + b, 0.0) @ A, np.ones((len(X), 1))
        for _ in range(self.n_affine):
            C = np.linalg.lstsq(features * weights, wanted * weights, rcond=None)[0]
            left = np.sqrt((((wanted - features @ C) / sigma) ** 2).mean(axis=1))
            weights = Cauchy(1.0)(left)[:, None]
        return Network([W, A.T], [b, C[-1]], (C[:-1].T, np.zeros(samples.Y.shape[1])))

    def held(self, network: Network, known: Sightings, samples: Samples) -> Network:
        """Fit all weights, the first neurons being held to rows; answers may lack some neurons."""
        best, least, idle = network, np.inf, 0
        for _ in range(self.max_steps):
            left = np.sqrt((samples.residual(network) ** 2).mean(axis=1))
            median = float(np.median(left))
            idle = 0 if median < (1.0 - self.gain) * least else idle + 1
            if median < least:
                best, least = network, median
            if idle >= (1 if least <= self.settled else self.patience):
                break
            errors = np.hypot(max(median, 1.0), left)[:, None] * samples.sigma
            problem = _Held(network, known, Samples(samples.X, samples.Y, errors))
            start, solver = network.to_vector(), summed_normal_equations
            network = network.like(minimise(problem, start, solver, self.damping, Stop(1))[0])
        return best


class _Held:
    """The parameters of a network as what least squares moves, the first rows being held."""

    def __init__(self, network: Network, known: Sightings, samples: Samples) -> None:
        rows, self.layout, self.samples = known.rows, Layout(network), samples
        (m, d), norms = rows.W.shape, np.linalg.norm(rows.W, axis=1)
        weights, biases = self.layout.places[0], self.layout.places[self.layout.n_layers]
        self.centre = np.column_stack([rows.W, rows.b]) / norms[:, None]
        places = weights.start + np.arange(m * d).reshape(m, d)
        self.places = np.column_stack([places, biases.start + np.arange(m)])
        prior = known.factors() * norms[:, None, None]
        # A row that answers have moved by more than its error is a sum of two neurons', and is let
        # go: the weights of errors of a Cauchy distribution.
        moved = np.einsum("jab,jb->ja", prior, self.centre - network.to_vector()[self.places])
        self.prior = prior / np.sqrt(1.0 + (moved**2).mean(axis=1))[:, None, None]

    def residual(self, p: FloatArray) -> FloatArray:
        """Return what is left of answers and of rows, over their errors."""
        answers = (
            self.samples.Y - ParameterArrays(self.layout, p)(self.samples.X)
        ) / self.samples.sigma
        rows = np.einsum("jab,jb->ja", self.prior, self.centre - p[self.places])
        return np.concatenate([answers.ravel(), rows.ravel()])

    def derivative(self, p: FloatArray) -> Derivative:
        """Return the derivative of the answers, over their errors."""
        at = ParameterArrays(self.layout, p)
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
