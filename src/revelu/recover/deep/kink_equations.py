"""Homogeneous equations for the row of a neuron, from its kinks.

Below a kink at ``x`` the known layers are ``h(x + e) = h + M e``.  If it is that of the neuron
``w h + b``, then its normal ``n`` is along ``M^T w``, and ``w h + b = 0``: linear homogeneous
equations for ``(w, b)``, as many as M has rank.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from revelu.types import BoolArray, FloatArray, IntArray

# A kink agrees with a row whose normal is so near its own, in radians, and whose hyperplane
# passes so near it, relative to the input.
AGREES = 1e-5

# A row has nothing to say about a kink at which this share of it, squared, is on.
_SILENT = 1e-6

# The share of the largest eigenvalue below which a second row would fit as well.
UNSURE = 1e-9


@dataclass(frozen=True)
class Equations:
    """What kinks say of the rows that make them.

    Attributes
    ----------
    E : ndarray, shape (n, d + 1, k + 1)
        ``E (w, b) = 0``.
    A : ndarray, shape (n, d, k)
        ``M^T``.
    ranks : ndarray, shape (n,)
        How many of the equations are independent.
    X : ndarray, shape (n, d)
        The kinks.
    """

    E: FloatArray
    A: FloatArray
    ranks: IntArray
    X: FloatArray

    @classmethod
    def of(cls, X: FloatArray, normals: FloatArray, M: FloatArray, h: FloatArray) -> "Equations":
        """Write down the equations of kinks.

        Parameters
        ----------
        X : ndarray, shape (n, d)
        normals : ndarray, shape (n, d)
            Unit rows.
        M : ndarray, shape (n, k, d)
        h : ndarray, shape (n, k)
        """
        n, k, d = M.shape
        A = np.swapaxes(M, 1, 2)
        size = 1.0 / np.sqrt(1.0 + (X**2).mean(axis=1))[:, None]
        E = np.zeros((n, d + 1, k + 1))
        E[:, :d, :k] = A - normals[:, :, None] * (normals[:, None, :] @ A)
        E[:, d, :k], E[:, d, k] = h * size, size[:, 0]
        ranks = np.linalg.matrix_rank(M, tol=None) if n else np.empty(0, dtype=np.intp)
        return cls(E, A, np.asarray(ranks, dtype=np.intp), X)

    def take(self, rows: IntArray) -> "Equations":
        """Return those of some kinks."""
        return Equations(self.E[rows], self.A[rows], self.ranks[rows], self.X[rows])

    def misfits(self, V: FloatArray) -> FloatArray:
        """How far rows are from agreeing with kinks, shape (m, n).

        Parameters
        ----------
        V : ndarray, shape (m, k + 1)
        """
        W = V[:, :-1]
        off = self._squares(self.E, V)
        own = self._squares(self.A, W)
        silent = own <= _SILENT * self._sizes * (W**2).sum(axis=1)[:, None]
        return np.where(silent, np.inf, np.sqrt(off / np.where(silent, 1.0, own)))

    def misfit_each(self, V: FloatArray) -> FloatArray:
        """How far each kink is from agreeing with a row of its own, shape (n,)."""
        off = (np.einsum("nek,nk->ne", self.E, V) ** 2).sum(axis=1)
        own = (np.einsum("ndk,nk->nd", self.A, V[:, :-1]) ** 2).sum(axis=1)
        silent = own <= _SILENT * self._sizes * (V[:, :-1] ** 2).sum(axis=1)
        return np.where(silent, np.inf, np.sqrt(off / np.where(silent, 1.0, own)))

    def agreeing(self, v: FloatArray, chosen: BoolArray) -> IntArray:
        """Which of some kinks agree with a row."""
        rows = np.flatnonzero(chosen)
        some = self if chosen.all() else self.take(rows)
        return np.asarray(rows[some.misfits(v[None])[0] < AGREES])

    @cached_property
    def _sizes(self) -> FloatArray:
        return np.asarray((self.A**2).sum(axis=(1, 2)))

    @staticmethod
    def _squares(B: FloatArray, V: FloatArray) -> FloatArray:
        """``|B_i v_c|^2``, shape (m, n)."""
        return np.asarray(((B @ V.T) ** 2).sum(axis=1).T)

    def solve(self, union: BoolArray) -> FloatArray | None:
        """Return the row of norm 1 that fits all best, 0 outside ``union`` (k,); None if two do."""
        entries = np.append(union, True)
        E = self.E[:, :, entries]
        v = np.zeros(len(entries))
        _, sizes, Vt = np.linalg.svd(E.reshape(-1, E.shape[2]), full_matrices=False)
        if len(sizes) > 1 and sizes[-2] ** 2 <= UNSURE * sizes[0] ** 2:
            return None
        v[entries] = Vt[-1]
        return v
