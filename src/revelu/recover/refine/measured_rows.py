"""Hidden rows that were measured on their surfaces, beside what answers tell of them.

A surface tells a row to within a covariance, where its weights have length 1.  Few answers tell
some directions of it, which fits move to make up for whatever is wrong elsewhere: measured rows
hold them by a normal prior, whatever scale and side a network has given a neuron meanwhile.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import block_diag, csr_array

from revelu.network import Network
from revelu.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """What surfaces tell of the hidden rows of a network."""

    rows: tuple[FloatArray, ...]
    """Shape (m, q + 1).  Weights, of length 1, and bias; layer by layer, from the input up."""
    roots: tuple[FloatArray, ...]
    """Shape (m, q + 1, r).  ``roots[k][i] roots[k][i].T`` is the covariance of row i of layer k."""
    least: float = 1e-8
    """Nothing is known better: rows below are known to this."""
    apart: float = 0.03
    """Of a neuron that differs by more than this, where it is measured better,"""
    most: float = 3.0
    """by more than ``most`` such errors, the row is not."""
    usual: float | None = None
    """Rows count as beside answers that are off by this many errors; the median if None."""

    def equations(self, network: Network, left: FloatArray) -> csr_array:
        """A matrix that maps a network's parameters to 0, to within errors of 1.

        Parameters
        ----------
        left : ndarray
            What a network leaves of answers, in their errors.
        """
        weight = self.usual or max(float(np.median(np.abs(left).max(axis=1))), 1.0)
        n, starts = len(network.weights), np.cumsum([0, *(a.size for a in network.arrays)])
        blocks, columns = [np.empty((0, 1))], [np.zeros(1, dtype=np.intp)]
        at, scales = np.arange(network.dim_in), np.ones(network.dim_in)
        for k, (rows, roots) in enumerate(zip(self.rows, self.roots, strict=True)):
            W, b = network.weights[k], network.biases[k]
            is_read = at >= 0
            # Rows as they would be above measured ones.
            here = np.column_stack([np.where(is_read, W[:, at] * scales, 0.0), b])
            owners, lengths = np.full(len(rows), -1), np.ones(len(rows))
            for i, (row, root) in enumerate(zip(rows, roots, strict=True)):
                owners[i], length = self._owner(here, row, root)
                if owners[i] < 0:
                    continue
                K = weight / length * self._information(row, root, self.least)
                blocks.append(np.column_stack([(K[:, :-1] * scales)[:, is_read], K[:, -1]]))
                weights = starts[k] + owners[i] * W.shape[1] + at[is_read]
                columns.append(np.append(weights, starts[n + k] + owners[i]))
                lengths[i] = abs(length)
            at, scales = owners, lengths
        return _placed(blocks, columns, int(starts[-1]))

    def _owner(self, here: FloatArray, row: FloatArray, root: FloatArray) -> tuple[int, float]:
        """The neuron among ``here`` that has a row, -1 where none has, and its scale."""
        lengths = here[:, :-1] @ row[:-1]
        off = here / np.where(lengths == 0.0, np.inf, lengths)[:, None] - row
        sizes = np.linalg.norm(self._information(row, root, self.apart) @ off.T, axis=0)
        sizes[lengths == 0.0] = np.inf
        best = int(sizes.argmin()) if len(sizes) else -1
        return (best, float(lengths[best])) if len(sizes) and sizes[best] < self.most else (-1, 1.0)

    def _information(self, row: FloatArray, root: FloatArray, least: float) -> FloatArray:
        """A root of the information about a row; its length is no property of a surface."""
        U, S, _ = np.linalg.svd(root)
        K = (U / np.maximum(np.pad(S, (0, len(U) - len(S))), least)).T
        K[:, :-1] -= np.outer(K @ row, row[:-1])
        return np.asarray(K)


def _placed(blocks: list[FloatArray], columns: list[IntArray], p: int) -> csr_array:
    """Blocks below each other, each in its columns of ``p``."""
    whole = csr_array(block_diag(blocks))
    whole.indices = np.concatenate(columns)[whole.indices]
    return csr_array((whole.data, whole.indices, whole.indptr), shape=(whole.shape[0], p))
