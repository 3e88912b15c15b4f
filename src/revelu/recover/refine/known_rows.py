"""Hidden rows that were measured on their surfaces, beside what answers tell of them.

A surface tells a row to within a covariance, in units in which its weights have length 1.  Some
directions of it few answers tell: a fit to these alone moves them to make up for anything that is
wrong elsewhere.  Measured rows hold them: a normal prior, whatever scale and side a network has
given a neuron meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from revelu.network import Network
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows of one layer, of unit length, and how they err.

    Attributes
    ----------
    W : ndarray, shape (m, q)
    b : ndarray, shape (m,)
    roots : ndarray, shape (m, q + 1, r)
        ``roots[i] roots[i].T`` is the covariance of ``(W[i], b[i])``.
    """

    W: FloatArray
    b: FloatArray
    roots: FloatArray

    def __len__(self) -> int:
        return len(self.b)

    @classmethod
    def none(cls, q: int) -> "KnownRows":
        """Return no row."""
        return cls(np.empty((0, q)), np.empty(0), np.empty((0, q + 1, q + 1)))

    def take(self, which: IntArray | BoolArray) -> "KnownRows":
        """Some of them."""
        return KnownRows(self.W[which], self.b[which], self.roots[which])

    def turned(self, signs: FloatArray) -> "KnownRows":
        """The same, turned round where a sign is negative."""
        return KnownRows(self.W * signs[:, None], self.b * signs, self.roots)

    def joined(self, other: "KnownRows") -> "KnownRows":
        """Both."""
        r = max(self.roots.shape[2], other.roots.shape[2])
        roots = [
            np.pad(x.roots, ((0, 0), (0, 0), (0, r - x.roots.shape[2]))) for x in (self, other)
        ]
        W, b = np.vstack([self.W, other.W]), np.append(self.b, other.b)
        return KnownRows(W, b, np.concatenate(roots))

    @property
    def errors(self) -> FloatArray:
        """Standard error of each weight and bias, shape (m, q + 1)."""
        return np.asarray(np.linalg.norm(self.roots, axis=2))


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """What surfaces tell of the hidden rows of a network.

    Attributes
    ----------
    layers : tuple of KnownRows
        From the input up.
    wider : float
        Rows err by this many times what they claim: errors of rows below are not in it.
    least : float
        No direction is known better: rows below are known to this.
    apart : float
        A row that differs by more than this, where it is measured better, is another neuron's.
    """

    layers: tuple[KnownRows, ...]
    wider: float = 3.0
    least: float = 1e-8
    apart: float = 0.03

    def matched(self, network: Network) -> list[tuple[IntArray, FloatArray]]:
        """Of each measured row the neuron that has it, -1 where none has, and its scale."""
        found: list[tuple[IntArray, FloatArray]] = []
        for rows, W, b in zip(self.layers, network.weights, network.biases, strict=False):
            here = np.column_stack([self._read(W, found), b])
            at, scales = np.full(len(rows), -1), np.ones(len(rows))
            lengths = here[:, :-1] @ rows.W.T
            for i in range(len(rows)):
                c = np.where(lengths[:, i] == 0.0, np.inf, lengths[:, i])
                off = here / c[:, None] - np.append(rows.W[i], rows.b[i])
                size = np.linalg.norm(self._information(rows, i, self.apart) @ off.T, axis=0)
                best = int(size.argmin()) if len(size) else 0
                if len(size) and size[best] < 3.0:
                    at[i], scales[i] = best, lengths[best, i]
            found.append((at, scales))
        return found

    @staticmethod
    def _read(W: FloatArray, below: Sequence[tuple[IntArray, FloatArray]]) -> FloatArray:
        """Weights by what measured rows below put out."""
        if not below:
            return W
        at, scales = below[-1]
        return np.where(at >= 0, W[:, at] * np.abs(scales), 0.0)

    def _information(self, rows: KnownRows, i: int, least: float) -> FloatArray:
        """A root of the information about a row, what errs along it left out."""
        U, S, _ = np.linalg.svd(rows.roots[i])
        S = np.append(S, np.zeros(len(U) - len(S)))
        theta, along = np.append(rows.W[i], rows.b[i]), np.append(rows.W[i], 0.0)
        K = (U / np.maximum(self.wider * S, least)).T
        return K - np.outer(K @ theta, along)

    def equations(self, network: Network, weight: float) -> csr_array:
        """A matrix that a network's parameters are mapped to 0 by, to within ``1 / weight``."""
        matched, n = self.matched(network), len(network.weights)
        starts = np.cumsum([0, *(a.size for a in network.arrays)])
        blocks, columns = [], []
        for k, (rows, (at, scales)) in enumerate(zip(self.layers, matched, strict=True)):
            q = network.weights[k].shape[1]
            for i in np.flatnonzero(at >= 0):
                K = weight / scales[i] * self._information(rows, int(i), self.least)
                if k:
                    below, sizes = matched[k - 1]
                    K = np.column_stack([K[:, :-1] * np.abs(sizes), K[:, -1]])
                    kept = np.append(below >= 0, True)
                    K, reads = K[:, kept], below[below >= 0]
                else:
                    reads = np.arange(q)
                blocks.append(K)
                columns.append(np.append(starts[k] + at[i] * q + reads, starts[n + k] + at[i]))
        return _placed(blocks, columns, int(starts[-1]))


def _placed(blocks: list[FloatArray], columns: list[IntArray], p: int) -> csr_array:
    """Blocks of rows in columns of a sparse matrix."""
    if not blocks:
        return csr_array((0, p))
    data = np.concatenate([K.ravel() for K in blocks])
    indices = np.concatenate([np.tile(c, len(K)) for K, c in zip(blocks, columns, strict=True)])
    lengths = np.concatenate(
        [np.full(len(K), len(c)) for K, c in zip(blocks, columns, strict=True)]
    )
    return csr_array((data, indices, np.append(0, np.cumsum(lengths))), shape=(len(lengths), p))
