"""What points of N(0, I) find unexplained: bumps (CKM21, Example 1.2) and missing neurons."""

from dataclasses import dataclass

import numpy as np

from revelu.probe.residual import Residual
from revelu.recover.close.candidate import Growing
from revelu.recover.close.clusters import CLOSE
from revelu.recover.shallow.lines import add_line
from revelu.types import FloatArray

# Points asked for what is unexplained: so many a neuron at first; after a bump, until one
# like the smallest would have been met so many times; in all no more than so many times
# k (d + 2).
_POINTS_A_NEURON = 32
_EXPECTED_HITS = 8.0
_MOST_SEARCH = 90
_BATCH = 2_000

# A residual that vanishes further from a wrong point than this is no bump.  Nor is one
# looked at where another hyperplane is so few of its lengths away.
_WIDEST_BUMP = 0.3
_CLEAR = 4.0

# Wrong points that could not be explained, before it is given up.
_MOST_FAILURES = 12


@dataclass
class BumpSearch:
    """A search for what the network leaves unexplained.

    Attributes
    ----------
    growing : Growing
    n_searched : int
        Gaussian points asked.
    rarest : float
        The least probability with which a point meets one of the bumps found.
    failures : int
        Wrong points that were not explained.
    """

    growing: Growing
    n_searched: int = 0
    rarest: float = np.inf
    failures: int = 0

    def run(self) -> None:
        """Ask points of N(0, I) until nothing as rare as what was found can be left."""
        while self.failures < _MOST_FAILURES:
            d, m = self.growing.oracle.dim_in, max(len(self.growing.network.biases[0]), 1)
            wanted = _POINTS_A_NEURON * m
            if np.isfinite(self.rarest):
                wanted = max(wanted, int(_EXPECTED_HITS / self.rarest))
            wanted = min(wanted, _MOST_SEARCH * m * (d + 2))
            n = min(wanted - self.n_searched, _BATCH)
            if n <= 0:
                return
            X = self.growing.rng.standard_normal((n, d))
            Y = self.growing.oracle(X)
            self.n_searched += n
            self.growing.note_errors(X, Y)
            self.explain(X[self.growing.is_wrong(X, Y)])

    def explain(self, X: FloatArray) -> None:
        """Explain wrong points one after another."""
        left = X
        while len(left) and self.failures < _MOST_FAILURES:
            x, left = left[0], left[1:]
            if not self.growing.is_wrong(x[None], self.growing.oracle(x[None])).any():
                continue
            if not self._explain_one(x):
                self.failures += 1

    def _explain_one(self, x: FloatArray) -> bool:
        """Add the bump at a point, or the neurons on a line through it."""
        residual = Residual(self.growing.oracle, self.growing.network)
        r = residual(x[None])[0]
        u = r / np.linalg.norm(r)
        gradient = self._gradient(residual, x, u, float(np.linalg.norm(r)))
        steepness = float(np.linalg.norm(gradient))
        if steepness > 0:
            n, reach = gradient / steepness, float(np.linalg.norm(r)) / steepness
            while reach < _WIDEST_BUMP:
                if self._vanishes_beyond(residual, x, n, 3.0 * reach):
                    return self._add_bump(x, n, 3.0 * reach)
                reach *= 3.0
        before = self.growing.network
        self.growing.network, _ = add_line(
            self.growing.oracle, self.growing.network, self.growing.noise, self.growing.rng, x
        )
        if self.growing.is_wrong(x[None], self.growing.oracle(x[None])).any():
            self.growing.network = before
            return False
        return True

    def _add_bump(self, x: FloatArray, n: FloatArray, half_length: float) -> bool:
        """Resolve what bends around a wrong point, known neurons there included."""
        W, b = self.growing.network.weights[0], self.growing.network.biases[0]
        norms = np.linalg.norm(W, axis=1)
        cosines, apart = W @ n / norms, np.abs(W @ x + b) / norms
        near = (np.abs(cosines) > 1.0 - CLOSE) & (apart < half_length)
        others = apart[~near] / np.sqrt(np.maximum(1.0 - cosines[~near] ** 2, CLOSE))
        room = float(others.min(initial=1.0))
        if room < _CLEAR * half_length:
            return True  # another hyperplane crosses here: the bump will be met elsewhere
        rows = np.flatnonzero(near)
        done = self.growing.replace(rows, x, n, half_length, room, rows)
        if done:
            # A fresh point meets it with about this probability.
            density = float(np.exp(-((x @ n) ** 2) / 2) / np.sqrt(2.0 * np.pi))
            self.rarest = min(self.rarest, max(density * half_length / 2, 1e-12))
        return done

    def _gradient(
        self, residual: Residual, x: FloatArray, u: FloatArray, size: float
    ) -> FloatArray:
        """The gradient of ``u (F - f)`` at a wrong point, by steps that stay in its piece."""
        W, A = self.growing.network.weights
        steepest = float((np.linalg.norm(W, axis=1) * np.linalg.norm(A, axis=0)).max(initial=0.0))
        steepest = steepest or float(np.linalg.norm(self.growing.noise.scale))
        h = 1e-3 * min(size / steepest, 1.0)
        Q = np.linalg.qr(self.growing.rng.standard_normal((len(x), len(x))))[0]
        answers = residual(np.vstack([x, x + h * Q]))
        if not np.isfinite(answers).all():
            return np.zeros(len(x))
        Y = answers @ u
        return np.asarray((Y[1:] - Y[0]) / h @ Q)

    def _vanishes_beyond(
        self, residual: Residual, x: FloatArray, n: FloatArray, distance: float
    ) -> bool:
        X = x + np.outer(distance * np.array([-1.0, -0.8, 0.8, 1.0]), n)
        return bool((np.abs(residual(X)) <= self.growing.limit(X)).all())
