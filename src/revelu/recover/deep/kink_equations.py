"""Homogeneous equations for the row of a neuron, from its critical points.

Below a critical point ``x`` the known layers are ``h(x + e) = h + M e``.  If it is that of the
neuron ``w h + b``, then its normal ``n`` is along ``M^T w``, and ``w h + b = 0``: linear
homogeneous equations for ``(w, b)``, as many as M has rank.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from revelu.types import BoolArray, FloatArray, IntArray

PRECISION = 1e-5
"""What measured gradients, and normals of hyperplanes, are good for, relative to their size.

A critical point agrees with a row whose normal is this near its own, in radians, and whose
hyperplane passes this near it, relative to the input.
"""


@dataclass(frozen=True)
class Equations:
    """What critical points say of the rows that make them.

    Attributes
    ----------
    E : ndarray, shape (n, d + 1, k + 1)
        ``E (w, b) = 0``.
    A : ndarray, shape (n, d, k)
        ``M^T``.
    on : ndarray of bool, shape (n, k)
        Inputs of the layer that are on.
    ranks : ndarray, shape (n,)
        How many of the equations are independent.
    X : ndarray, shape (n, d)
        The critical points.
    """

    E: FloatArray
    A: FloatArray
    on: BoolArray
    ranks: IntArray
    X: FloatArray

    @classmethod
    def of(cls, X: FloatArray, normals: FloatArray, M: FloatArray, h: FloatArray) -> "Equations":
        """Write down the equations of critical points.

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
        return cls(E, A, np.asarray(M.any(axis=2)), np.asarray(ranks, dtype=np.intp), X)

    def take(self, rows: IntArray) -> "Equations":
        """Return those of some critical points."""
        return Equations(self.E[rows], self.A[rows], self.on[rows], self.ranks[rows], self.X[rows])

    def misfits(self, V: FloatArray) -> FloatArray:
        """How far rows are from agreeing with critical points, shape (m, n).

        Infinite where hardly any of a row is on: it has nothing to say there.

        Parameters
        ----------
        V : ndarray, shape (m, k + 1)
        """
        off, own = (((B @ U.T) ** 2).sum(axis=1).T for B, U in ((self.E, V), (self.A, V[:, :-1])))
        return self._relative(off, own, (V[:, :-1] ** 2).sum(axis=1)[:, None])

    def misfit_each(self, V: FloatArray) -> FloatArray:
        """How far each critical point is from agreeing with a row of its own, shape (n,)."""
        off = (np.einsum("nek,nk->ne", self.E, V) ** 2).sum(axis=1)
        own = (np.einsum("ndk,nk->nd", self.A, V[:, :-1]) ** 2).sum(axis=1)
        return self._relative(off, own, (V[:, :-1] ** 2).sum(axis=1))

    def _relative(
        self, off: FloatArray, own: FloatArray, size: FloatArray, silent: float = 1e-6
    ) -> FloatArray:
        """The root of ``off / own``, infinite where ``own`` is under a share of what it may be."""
        is_silent = own <= silent * self._sizes * size
        return np.where(is_silent, np.inf, np.sqrt(off / np.where(is_silent, 1.0, own)))

    @cached_property
    def _sizes(self) -> FloatArray:
        return np.asarray((self.A**2).sum(axis=(1, 2)))

    def agreeing(self, v: FloatArray, chosen: BoolArray) -> IntArray:
        """Which of some critical points agree with a row."""
        rows = np.flatnonzero(chosen)
        some = self if chosen.all() else self.take(rows)
        return np.asarray(rows[some.misfits(v[None])[0] < PRECISION])

    def solve(self, union: BoolArray, unsure: float = 1e-9) -> FloatArray | None:
        """Return the row of norm 1 that fits all best, 0 outside ``union``.

        Parameters
        ----------
        union : ndarray of bool, shape (k,)
        unsure : float
            A second row fits as well if its singular value, squared, is at most this share of the
            largest one; then there is None.
        """
        entries = np.append(union, True)
        E = self.E[:, :, entries]
        v = np.zeros(len(entries))
        _, sizes, Vt = np.linalg.svd(E.reshape(-1, E.shape[2]), full_matrices=False)
        if len(sizes) > 1 and sizes[-2] ** 2 <= unsure * sizes[0] ** 2:
            return None
        v[entries] = Vt[-1]
        return v
