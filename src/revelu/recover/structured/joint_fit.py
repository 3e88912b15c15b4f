"""The dense layer above filters, and the filters' last digits, from the same answers.

With the features ``P(theta)`` of filters theta, pooled and with a column of ones, answers are
``Y = P(theta) A``.  For every theta the best ``A`` is a least-squares fit; what it leaves depends
on theta alone (variable projection; Golub and Pereyra 1973): with ``Q`` orthonormal and ``Q'P = 0``

    Q'(Y - P(theta + e) A) = Q'Y - (Q' dP A) e,

so that a few answers more than there are features determine the filters as well.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.linalg

from revelu.errors import SaturatedError
from revelu.network.layers import Convolution, Dense, Layer, Pooling, Prelu, Relu
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.reweighting import LeastDeviations
from revelu.types import BoolArray, FloatArray

__all__ = ["JointFit"]


@dataclass
class JointFit:
    """Filters and a dense layer, fitted to answers."""

    conv: Convolution
    slopes: FloatArray | None
    """Shape (filters,), or None.  Of leaky units, fitted as well; None of ReLUs."""
    pool: Pooling | None
    X: FloatArray
    """Shape (n, d)."""
    Y: FloatArray
    """Shape (n, k)."""
    weights: FloatArray
    """Shape (n,).  One over the standard error of an answer, but for a factor."""
    rng: np.random.Generator
    is_held: BoolArray | None = None
    """Shape (filters, entries + 1).  Numbers of filters, their biases last, that stay as they
    are."""
    most_spare: int = 400
    """Combinations of answers that filters are fitted to."""
    ridge: float = 1e-15
    """What keeps features apart that no answer does, relative to the largest;"""
    steeper: float = 30.0
    most_ridges: int = 6
    """``steeper`` times as much where rounding leaves no factor, as of filters that are the same,
    and how often."""
    most_refinements: int = 8
    """Of each solution of the normal equations, which have half of the digits,"""
    refined: float = 1e-13
    converged: float = 1e-9
    """until they change it by less, relative to it; and by how much at most in the end."""
    A: FloatArray = field(init=False)
    """Shape (features + 1, k).  The dense layer, its biases last."""
    _factor: tuple[FloatArray, bool] | None = field(default=None, init=False)
    _Q: FloatArray = field(init=False)
    _left: FloatArray = field(init=False)

    def run(self, rtol: float, n_steps: int = 6) -> float:
        """Fit, and return the root mean square of what is left in spare answers.

        Parameters
        ----------
        rtol : float
            What is left, relative to the answers, that is the answers' own error.
        """
        left = self._solve()
        for _ in range(n_steps):
            if left <= rtol or (self.is_held is not None and self.is_held.all()):
                break
            before = self.conv, self.slopes, self.A, left
            step = self._step()
            if step is None:
                break
            # Roots of means of these squares differ by this much by chance.
            chance = 1.0 / np.sqrt(self._left.size)
            for share in (1.0, 0.5, 0.5**2):
                self.conv, self.slopes = self._moved(before[0], before[1], share * step)
                left = self._solve()
                if left <= before[3] * (1.0 + chance):
                    break
            if left > before[3] * (1.0 + SIGMAS * chance):
                self.conv, self.slopes, self.A, left = before
            if left > before[3] * (1.0 - chance):
                break
        return left

    def settle(self) -> None:
        """Fit the dense layer to most answers, as long as that leaves less of most of them."""
        weights, before, median = self.weights, np.inf, float(np.finfo(float).max)
        # Medians differ by this much by chance.
        chance = 1.0 / float(np.sqrt(len(weights)))
        while median < before * (1.0 - chance):
            self._factor, before = None, median
            self._solve()
            left = np.linalg.norm(
                self._features() @ self.A - self.Y * self.weights[:, None], axis=1
            )
            left *= weights / self.weights
            self.weights, median = weights * LeastDeviations(0.0)(left), float(np.median(left))
        self.weights, self._factor = weights, None

    def shares(self) -> FloatArray:
        """Root mean square of what each filter adds, relative to the answers, (filters,)."""
        P, F = self._features()[:, :-1], len(self.conv.biases)
        A = self.A[:-1].reshape(F, -1, self.A.shape[1])
        added = P.reshape(len(P), F, -1).transpose(1, 0, 2) @ A  # (filters, n, k)
        size = np.sqrt(((self.Y * self.weights[:, None]) ** 2).mean())
        return np.asarray(np.sqrt((added**2).mean(axis=(1, 2))) / size)

    def only(self, is_kept: BoolArray) -> "JointFit":
        """The same fit of some of the filters, (filters,)."""
        conv, slopes = self.conv, self.slopes
        conv = conv.with_filters(conv.kernels[is_kept], conv.biases[is_kept])
        pool = self.pool
        pool = None if pool is None else replace(pool, shape=conv.shape_out)
        slopes = None if slopes is None else slopes[is_kept]
        is_held = None if self.is_held is None else self.is_held[is_kept]
        return replace(self, conv=conv, slopes=slopes, pool=pool, is_held=is_held)

    @property
    def units(self) -> Relu | Prelu:
        """What is made of the filters' sums."""
        n_places = len(self.conv.reads)
        return Relu() if self.slopes is None else Prelu(np.repeat(self.slopes, n_places))

    def _features(self) -> FloatArray:
        H = self.units(self.conv(self.X))
        H = H if self.pool is None else self.pool(H)
        return np.column_stack([H, np.ones(len(H))]) * self.weights[:, None]

    def _solve(self) -> float:
        """Fit the dense layer; return what is left in spare answers, relative to the answers."""
        P, Y = self._features(), self.Y * self.weights[:, None]
        n, m = P.shape
        R = self.rng.standard_normal((n, max(1, min(n - m, self.most_spare))))
        B, change = np.column_stack([Y, R]), np.inf
        # Filters that move by little leave the factors as good as they were.
        if self._factor is not None:
            found, change = self._solved(P, B)
        if change >= self.converged:
            self._factor = self._factored(P)
            found, _ = self._solved(P, B)
        self.A = found[:, : Y.shape[1]]
        R -= P @ found[:, Y.shape[1] :]
        self._Q = np.linalg.qr(R)[0]
        self._left = self._Q.T @ (Y - P @ self.A)
        return float(np.sqrt((self._left**2).mean()) / np.sqrt((Y**2).mean()))

    def _factored(self, P: FloatArray) -> tuple[FloatArray, bool]:
        """The Cholesky factor of ``P'P``.

        Raises
        ------
        SaturatedError
            If there is none, whatever is added to the diagonal: not all numbers are finite.
        """
        G = P.T @ P
        size = np.diag(G).copy()
        # What is never on has no column.
        G[np.diag_indices(len(G))] += (size == 0.0).astype(float)
        ridge = self.ridge
        for _ in range(self.most_ridges):
            A = G.copy()
            A[np.diag_indices(len(A))] += ridge * size.max()
            try:
                L, lower = scipy.linalg.cho_factor(
                    A, lower=True, overwrite_a=True, check_finite=False
                )
            except np.linalg.LinAlgError:
                ridge *= self.steeper
                continue
            return np.asarray(L), bool(lower)
        raise SaturatedError("the features of the filters found are no numbers to fit answers by")

    def _solved(self, P: FloatArray, B: FloatArray) -> tuple[FloatArray, float]:
        """Least squares for ``P x = B``, refined, and the last change relative to it."""
        x = scipy.linalg.cho_solve(self._factor, P.T @ B, check_finite=False)
        change = np.inf
        for _ in range(self.most_refinements):
            more = scipy.linalg.cho_solve(self._factor, P.T @ (B - P @ x), check_finite=False)
            x += more
            before, change = change, float(np.linalg.norm(more) / np.linalg.norm(x))
            if change < self.refined or change > 0.5 * before:
                break
        return np.asarray(x), change

    def _step(self) -> FloatArray | None:
        """How far filters are from where the spare answers say, (filters, entries + 1)."""
        J = self._derivatives()
        theta = np.column_stack([self.conv.kernels.reshape(J.shape[2], -1), self.conv.biases])
        # A filter that grows changes nothing: the layer above makes up for it.
        theta /= np.linalg.norm(theta, axis=1)[:, None]
        M = J.reshape(-1, *J.shape[2:])
        moved = M[..., : theta.shape[1]]
        if self.is_held is not None:
            moved[:, self.is_held] = 0.0
            theta[self.is_held.any(axis=1)] = 0.0
        moved -= np.einsum("nfe,fe,fg->nfg", moved, theta, theta)
        # Outputs are one below another.
        try:
            e = np.linalg.lstsq(M.reshape(len(M), -1), self._left.T.ravel(), rcond=1e-9)[0]
        except np.linalg.LinAlgError:  # LAPACK's divide and conquer may not converge
            return None
        return np.asarray(e.reshape(M.shape[1:])) if np.isfinite(e).all() else None

    @staticmethod
    def _moved(
        conv: Convolution, slopes: FloatArray | None, e: FloatArray
    ) -> tuple[Convolution, FloatArray | None]:
        """Filters, and slopes of leaky units, after a step."""
        if slopes is not None:
            slopes, e = slopes + e[:, -1], e[:, :-1]
        kernels = conv.kernels + e[:, :-1].reshape(conv.kernels.shape)
        return conv.with_filters(kernels, conv.biases + e[:, -1]), slopes

    def _derivatives(self, most_numbers: int = 2**22) -> FloatArray:
        """``Q' dY/dtheta``, (k, spare, filters, entries + 1), each filter's bias last.

        Of leaky units its slope comes after that.
        """
        conv, pool, slopes = self.conv, self.pool, self.slopes
        F, (n_places, entries) = len(conv.biases), conv.reads.shape
        k, spare = self.A.shape[1], self._Q.shape[1]
        found = np.zeros((k, spare, F, entries + 1 + (slopes is not None)))
        A = self.A[:-1].reshape(F, -1, k)
        moving = [f for f in range(F) if self.is_held is None or not self.is_held[f].all()]
        QW = self._Q * self.weights[:, None]
        n_rows = max(1, most_numbers // (n_places * max(entries, F)))
        for start in range(0, len(self.X), n_rows):
            rows = slice(start, start + n_rows)
            X = self.X[rows]
            patches = conv.patches(X)
            sums = conv(X).reshape(len(X), F, n_places)
            for f in moving:
                z, slope = sums[:, f], 0.0 if slopes is None else float(slopes[f])
                H = np.where(z > 0.0, z, slope * z)
                read = A[f][None] if pool is None else pool.read_by(A[f], H)  # (n, places, k)
                B = np.where(z > 0.0, 1.0, slope)[:, :, None] * read
                moved = np.matmul(B.transpose(0, 2, 1), patches)  # (n, k, entries)
                parts = [moved, B.sum(axis=1)[:, :, None]]
                if slopes is not None:
                    parts.append((np.minimum(z, 0.0)[:, :, None] * read).sum(axis=1)[:, :, None])
                moved = np.concatenate(parts, axis=2)
                found[:, :, f] += np.einsum("ns,nke->kse", QW[rows], moved, optimize=True)
        return found

    def layers(self) -> list[Layer]:
        """Return the layers; filters that see all of their image are a dense layer's rows."""
        pools: list[Layer] = [] if self.pool is None else [self.pool]
        conv = Dense(*self.conv.to_dense()) if self.conv.places == (1, 1) else self.conv
        dense = Dense(np.ascontiguousarray(self.A[:-1].T), self.A[-1].copy())
        return [conv, self.units, *pools, dense]
