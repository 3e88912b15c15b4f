"""Where a classifier decides that is saturated near N(0, I): its domain, from its labels' borders.

Far out the borders between classes are those of a cone, but for biases: the pieces of all of them
meet at one place, where no class is far ahead.  On a border two classes are as probable, so the
ratio of the two has its digits there, and its gradient is at right angles to the border.
"""

from dataclasses import dataclass, replace

import numpy as np

from revelu.errors import LimitReachedError, TargetError
from revelu.oracle import Domain, Oracle
from revelu.recover.method import Tell
from revelu.types import FloatArray


@dataclass(frozen=True)
class DecisionSearch:
    """How it is looked for.

    Attributes
    ----------
    n_lines : int
        Long lines from the origin.
    decades : (int, int)
        Least and largest power of ten that they reach to, and that an input may have to move by.
    reach : float
        How far out, in units of what moves the ratio of two classes, the borders are looked at.
    n_borders : int
        Pieces of borders, at most; and no more than ``spare`` an input.
    spare : float
        See there.
    halvings : int
        Until a border is found to within the digits of a place on it.
    near : float
        Log-ratio of two classes that counts as on the border.
    varies : float
        Standard deviation of that log-ratio on the domain.
    faint : float
        An input that moves the ratios by less than this share of the largest is taken for one that
        does not matter.
    """

    n_lines: int = 6
    decades: tuple[int, int] = (-6, 8)
    reach: float = 1e4
    n_borders: int = 24
    spare: float = 1.5
    halvings: int = 60
    near: float = 2.0
    varies: float = 3.0
    faint: float = 1e-3

    def find(self, oracle: Oracle, rng: np.random.Generator, tell: Tell) -> Domain | None:
        """Look for the domain of a saturated classifier; None where no border is found."""
        tell("looking for the place where the target decides")
        try:
            with oracle.phase("noise"), oracle.as_answered():
                return self._found(oracle, rng)
        except (LimitReachedError, TargetError):
            return None

    def _found(self, oracle: Oracle, rng: np.random.Generator) -> Domain | None:
        d = oracle.dim_in
        low, high = self.decades
        r = 10.0 ** np.arange(low, high + 0.5, 0.5)
        V = rng.standard_normal((self.n_lines, 1, d))
        found = self._borders(oracle, np.concatenate([-r[::-1], [0.0], r])[:, None] * V, 1)
        if found is None:
            return None
        X, pairs = found
        sizes = self._first_gradient(oracle, X[0], pairs[0])
        if sizes is None:
            return None
        spread, center = 1.0 / sizes, X[0]
        n = int(min(self.n_borders, np.ceil(self.spare * d)))
        for reach in (self.reach, 10.0):
            Z = rng.standard_normal((n, 1, d))
            ends = center + reach * spread * Z * np.linspace(-1.0, 1.0, 5)[:, None]
            found = self._borders(oracle, ends, n)
            if found is None:
                return None
            X, pairs = found
            G, values = self._gradients(oracle, X, pairs, spread)
            seen = np.isfinite(G).all(axis=1) & np.isfinite(values) & (G != 0).any(axis=1)
            if not seen.any():
                return None
            G, values, X = G[seen], values[seen], X[seen]
            # Each border, g' (x - x_p) + value = 0, met by the place nearest to the last one.
            offsets = np.einsum("pd,pd->p", G, (X - center) / spread) - values
            center = center + spread * np.linalg.lstsq(G, offsets, rcond=1e-6)[0]
            spread = spread / _as_others(np.sqrt((G**2).mean(axis=0)), self.faint)
        return _named(Domain.gaussian(center, spread * self.varies / np.sqrt(d)))

    def _borders(
        self, oracle: Oracle, lines: FloatArray, most: int
    ) -> tuple[FloatArray, np.ndarray] | None:
        """Places on borders, (n, d), and their two classes, (n, 2), of points (lines, points, d).

        Each line gives the border that is nearest to its middle, and is halved until it is there.
        """
        n_lines, n_points, d = lines.shape
        P = oracle(lines.reshape(-1, d)).reshape(n_lines, n_points, -1)
        labels = P.argmax(axis=2)
        ends: list[tuple[FloatArray, FloatArray, int, int]] = []
        for line, label in zip(lines, labels, strict=True):
            at = np.flatnonzero(np.diff(label))
            if len(at):
                i = int(at[np.abs(at + 0.5 - (n_points - 1) / 2).argmin()])
                ends.append((line[i], line[i + 1], int(label[i]), int(label[i + 1])))
        ends = ends[:most]
        if not ends:
            return None
        A, B = np.array([e[0] for e in ends]), np.array([e[1] for e in ends])
        a, b = np.array([e[2] for e in ends]), np.array([e[3] for e in ends])
        done, found = np.zeros(len(ends), dtype=bool), (A + B) / 2.0
        for _ in range(self.halvings):
            todo = np.flatnonzero(~done)
            if not len(todo):
                break
            M = (A[todo] + B[todo]) / 2.0
            P = oracle(M)
            label, rows = P.argmax(axis=1), np.arange(len(todo))
            # A third class in between has a border with the first.
            left = label == a[todo]
            A[todo[left]], B[todo[~left]] = M[left], M[~left]
            b[todo[~left]] = label[~left]
            found[todo] = M
            l_ab = _log_ratio(P[rows, a[todo]], P[rows, b[todo]])
            done[todo] = np.abs(l_ab) <= self.near
        return (found[done], np.column_stack([a, b])[done]) if done.any() else None

    def _first_gradient(self, oracle: Oracle, x: FloatArray, pair: np.ndarray) -> FloatArray | None:
        """Sizes of the derivatives of a log-ratio, (d,), by steps of all sizes."""
        d, (low, high) = len(x), self.decades
        h = 10.0 ** np.arange(low, high + 1)
        X = x + h[:, None, None] * np.eye(d)
        P = oracle(np.vstack([x[None], X.reshape(-1, d)]))
        values = _log_ratio(P[:, pair[0]], P[:, pair[1]])
        change = np.abs(values[1:] - values[0]).reshape(len(h), d)
        # The largest step that moves the ratio by no more than it is sure to have digits for.
        fits = np.isfinite(change) & (change <= self.near)
        last = fits.cumprod(axis=0).sum(axis=0) - 1
        if (last < 0).any():
            return None
        sizes = np.take_along_axis(change, last[None], axis=0)[0] / h[last]
        return _as_others(sizes, 0.0) if (sizes > 0).any() else None

    def _gradients(
        self, oracle: Oracle, X: FloatArray, pairs: np.ndarray, spread: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Gradients of the log-ratios in units of the spread, (n, d), and their values, (n,)."""
        n, d = X.shape
        h = 0.25
        moves = np.vstack([np.zeros(d), h * np.diag(spread)])
        P = oracle((X[:, None] + moves).reshape(-1, d)).reshape(n, d + 1, -1)
        rows = np.arange(n)[:, None], np.arange(d + 1)
        values = _log_ratio(P[*rows, pairs[:, :1]], P[*rows, pairs[:, 1:]])
        return (values[:, 1:] - values[:, :1]) / h, values[:, 0]


def _as_others(sizes: FloatArray, faint: float) -> FloatArray:
    """Sizes of derivatives; those of inputs that do not matter are as those of the others are."""
    matters = sizes > faint * sizes.max()
    typical = float(np.exp(np.log(sizes[matters]).mean()))
    return np.asarray(np.where(matters, sizes, typical))


def _log_ratio(p: FloatArray, q: FloatArray) -> FloatArray:
    """``log(p / q)``, NaN where one has underflowed."""
    alive = (p > 0) & (q > 0)
    ratio = np.log(np.where(alive, p, 1.0)) - np.log(np.where(alive, q, 1.0))
    return np.asarray(np.where(alive, ratio, np.nan))


def _named(domain: Domain) -> Domain:
    """Say what was found in one line."""
    ends = (domain.center.min(), domain.center.max(), domain.spread.min(), domain.spread.max())
    m0, m1, s0, s1 = (f"{end:.3g}" for end in ends)
    note = (
        "no domain was given, and near N(0, I) the target is saturated: it was asked where it was "
        f"found to decide, around means from {m0} to {m1}, with standard deviations from {s0} to "
        f"{s1}"
    )
    return replace(
        domain, words="around the place where the target was found to decide", notes=(note,)
    )
