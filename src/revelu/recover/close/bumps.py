"""What points of N(0, I) find unexplained: bumps (CKM21, Example 1.2) and missing neurons."""

from dataclasses import dataclass, field

import numpy as np

from revelu.probe.residual import Residual
from revelu.recover.close.candidate import Draft
from revelu.recover.shallow.lines import add_line
from revelu.types import FloatArray


@dataclass
class BumpSearch:
    """A search for what the network leaves unexplained."""

    draft: Draft
    points_a_neuron: int = 32
    """Points asked at first."""
    n_hits: float = 8.0
    """After a bump points are asked until one like the smallest would have been met so often."""
    max_points: int = 90
    """In all, for each of k (d + 2) parameters."""
    n_batch: int = 2_000
    widest: float = 0.3
    """A residual that vanishes only further from a wrong point than this is no bump."""
    max_failures: int = 12
    """Wrong points that could not be explained, before it is given up."""
    n_searched: int = field(default=0, init=False)
    """Gaussian points asked."""
    rarest: float = field(default=np.inf, init=False)
    """The least probability with which a point meets one of the bumps found."""
    failures: int = field(default=0, init=False)
    """Wrong points that were not explained."""

    def run(self) -> None:
        """Ask points of N(0, I) until nothing as rare as what was found can be left."""
        while self.failures < self.max_failures:
            d, m = self.draft.oracle.dim_in, max(len(self.draft.network.biases[0]), 1)
            wanted = self.points_a_neuron * m
            if np.isfinite(self.rarest):
                wanted = max(wanted, int(self.n_hits / self.rarest))
            wanted = min(wanted, self.max_points * m * (d + 2))
            n = min(wanted - self.n_searched, self.n_batch)
            if n <= 0:
                return
            X = self.draft.rng.standard_normal((n, d))
            Y = self.draft.oracle(X)
            self.n_searched += n
            self.draft.note_errors(X, Y)
            self.explain(X[self.draft.is_wrong(X, Y)])

    def explain(self, X: FloatArray) -> None:
        """Explain wrong points one after another."""
        left = X
        while len(left) and self.failures < self.max_failures:
            x, left = left[0], left[1:]
            if not self.draft.is_wrong(x[None], self.draft.oracle(x[None])).any():
                continue
            if not self._explain_one(x):
                self.failures += 1

    def _explain_one(self, x: FloatArray) -> bool:
        """Add the bump at a point, or the neurons on a line through it."""
        residual = Residual(self.draft.oracle, self.draft.network)
        r = residual(x[None])[0]
        u = r / np.linalg.norm(r)
        gradient = self._gradient(residual, x, u, float(np.linalg.norm(r)))
        steepness = float(np.linalg.norm(gradient))
        if steepness > 0:
            n, reach = gradient / steepness, float(np.linalg.norm(r)) / steepness
            while reach < self.widest:
                wider = 3.0 * reach
                if self._vanishes_beyond(residual, x, n, wider):
                    return self._add_bump(x, n, wider)
                reach = wider
        before = self.draft.network
        self.draft.network, _ = add_line(
            self.draft.oracle, self.draft.network, self.draft.noise, self.draft.rng, x
        )
        if self.draft.is_wrong(x[None], self.draft.oracle(x[None])).any():
            self.draft.network = before
            return False
        return True

    def _add_bump(self, x: FloatArray, n: FloatArray, half_length: float) -> bool:
        """Resolve what bends around a wrong point, known neurons there included."""
        W, b = self.draft.network.weights[0], self.draft.network.biases[0]
        norms = np.linalg.norm(W, axis=1)
        cosines, apart = W @ n / norms, np.abs(W @ x + b) / norms
        near = (np.abs(cosines) > 1.0 - self.draft.close) & (apart < half_length)
        others = apart[~near] / np.sqrt(np.maximum(1.0 - cosines[~near] ** 2, self.draft.close))
        room = float(others.min(initial=1.0))
        if room < self.draft.clear * half_length:
            return True  # another hyperplane crosses here: the bump will be met elsewhere
        rows = np.flatnonzero(near)
        done = self.draft.replace(rows, x, n, half_length, room, rows)
        if done:
            # A fresh point meets it with about this probability.
            density = float(np.exp(-((x @ n) ** 2) / 2) / np.sqrt(2.0 * np.pi))
            self.rarest = min(self.rarest, max(density * half_length / 2, 1e-12))
        return done

    def _gradient(
        self, residual: Residual, x: FloatArray, u: FloatArray, size: float
    ) -> FloatArray:
        """The gradient of ``u (F - f)`` at a wrong point, by steps that stay in its piece."""
        W, A = self.draft.network.weights
        steepest = float((np.linalg.norm(W, axis=1) * np.linalg.norm(A, axis=0)).max(initial=0.0))
        steepest = steepest or float(np.linalg.norm(self.draft.noise.scale))
        # Where all typical answers are 0, nothing says how steep the function is.
        h = 1e-3 * (min(size / steepest, 1.0) if steepest else 1.0)
        Q = np.linalg.qr(self.draft.rng.standard_normal((len(x), len(x))))[0]
        answers = residual(np.vstack([x, x + h * Q]))
        if not np.isfinite(answers).all():
            return np.zeros(len(x))
        Y = answers @ u
        return np.asarray((Y[1:] - Y[0]) / h @ Q)

    def _vanishes_beyond(
        self, residual: Residual, x: FloatArray, n: FloatArray, distance: float
    ) -> bool:
        X = x + np.outer(distance * np.array([-1.0, -0.8, 0.8, 1.0]), n)
        return bool((np.abs(residual(X)) <= self.draft.limit(X)).all())
