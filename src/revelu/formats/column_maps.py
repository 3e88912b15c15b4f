"""What is done to the columns of a table before a network reads them, each by itself.

Scaling, filling, clipping, choosing and encoding numbers are functions of one column that are
linear between knots: ``out_j = t_j + s_j x_i + sum_h w_h relu(x_i - k_h)``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from revelu.errors import InputError
from revelu.types import FloatArray, IntArray

__all__ = ["ColumnMap"]


@dataclass(frozen=True, eq=False)
class ColumnMap:
    """Functions of single columns, side by side.

    Attributes
    ----------
    d : int
        ColumnMap that there are.
    picks : ndarray of int, shape (m,)
        Which one each output reads.
    s, t : ndarray, shape (m,)
        Slope and offset left of all knots.
    hinges : tuple of (int, float, float)
        The output, the knot, and how much steeper the output is behind it.
    """

    d: int
    picks: IntArray
    s: FloatArray
    t: FloatArray
    hinges: tuple[tuple[int, float, float], ...] = ()

    @classmethod
    def same(cls, d: int) -> "ColumnMap":
        """Return columns as they are."""
        return cls.scaled(np.ones(d), np.zeros(d))

    @classmethod
    def scaled(cls, s: FloatArray, t: FloatArray) -> "ColumnMap":
        """Return ``s x + t`` of all columns."""
        return cls(len(s), np.arange(len(s)), s, t)

    @classmethod
    def chosen(cls, d: int, picks: Sequence[int], n_zeros: int = 0) -> "ColumnMap":
        """Return some columns, in their order, and then others that are 0."""
        m = len(picks)
        s = np.concatenate([np.ones(m), np.zeros(n_zeros)])
        places = np.concatenate([np.asarray(picks, dtype=np.intp), np.zeros(n_zeros, np.intp)])
        return cls(d, places, s, np.zeros(m + n_zeros))

    @classmethod
    def through(cls, d: int, tables: Sequence[tuple[int, FloatArray, FloatArray]]) -> "ColumnMap":
        """Return functions by their values at knots, linear between them and flat beyond.

        Parameters
        ----------
        tables : sequence of (int, ndarray, ndarray)
            Of each output the column that it reads, its knots in increasing order, and the values.
        """
        hinges: list[tuple[int, float, float]] = []
        for j, (_, knots, values) in enumerate(tables):
            slopes = np.concatenate([[0.0], np.diff(values) / np.diff(knots), [0.0]])
            steeper = np.diff(slopes)
            hinges += [
                (j, float(k), float(w)) for k, w in zip(knots, steeper, strict=True) if w != 0.0
            ]
        picks = np.array([i for i, _, _ in tables], dtype=np.intp)
        first = np.array([values[0] for _, _, values in tables])
        return cls(d, picks, np.zeros(len(tables)), first, tuple(hinges))

    @classmethod
    def beside(cls, d: int, blocks: Sequence["ColumnMap"]) -> "ColumnMap":
        """Return the outputs of several, one after another."""
        hinges: list[tuple[int, float, float]] = []
        offset = 0
        for block in blocks:
            hinges += [(offset + j, k, w) for j, k, w in block.hinges]
            offset += len(block.picks)
        empty = cls(d, np.empty(0, np.intp), np.empty(0), np.empty(0))
        each = [empty, *blocks]
        picks, s, t = (np.concatenate([getattr(b, a) for b in each]) for a in ("picks", "s", "t"))
        return cls(d, picks, s, t, tuple(hinges))

    @property
    def m(self) -> int:
        """Outputs that there are."""
        return len(self.picks)

    @property
    def is_scaling(self) -> bool:
        """Whether each column is multiplied and moved, and nothing more."""
        return not self.hinges and np.array_equal(self.picks, np.arange(self.d))

    def then(self, after: "ColumnMap") -> "ColumnMap":
        """Return ``after`` of what this gives.

        Raises
        ------
        InputError
            If both have knots, or ``after`` reads another number of columns.
        """
        if after.d != self.m:
            raise InputError(f"{after.d} columns are read of {self.m}")
        if after.hinges and self.hinges:
            raise InputError("two steps, one after the other, that are no scaling of columns")
        s, t = after.s * self.s[after.picks], after.t + after.s * self.t[after.picks]
        hinges = []
        if self.hinges:
            by_output: dict[int, list[tuple[float, float]]] = {}
            for j, k, w in self.hinges:
                by_output.setdefault(j, []).append((k, w))
            hinges = [
                (j, k, w * float(after.s[j]))
                for j, i in enumerate(after.picks.tolist())
                for k, w in by_output.get(i, ())
            ]
        for j, k, w in after.hinges:
            i = after.picks[j]
            a, b = float(self.s[i]), float(self.t[i])
            if a > 0:
                hinges.append((j, (k - b) / a, w * a))
            elif a < 0:  # w relu(a x + b - k) = w |a| relu(x - x0) + w a (x - x0)
                hinges.append((j, (k - b) / a, -w * a))
                s[j] += w * a
                t[j] += w * (b - k)
            else:
                t[j] += w * max(b - k, 0.0)
        return ColumnMap(self.d, self.picks[after.picks], s, t, tuple(hinges))

    def matrix(self) -> FloatArray:
        """Return the slopes left of all knots as a matrix, (m, d)."""
        M = np.zeros((self.m, self.d))
        M[np.arange(self.m), self.picks] = self.s
        return M
