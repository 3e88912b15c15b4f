"""Rows above a first layer, as far as single critical points show them.

At a critical point of an upper neuron its gradient is ``sum_i v_i w_i`` over the first-layer
neurons that are on: those entries of its row.  Points that agree where they share entries are of
one neuron.
"""

from dataclasses import dataclass

import numpy as np

from revelu.recover.rows import Rows
from revelu.types import FloatArray


@dataclass(frozen=True)
class RoughStarts:
    """How rows of lines become starts of the rows above a first layer.

    Attributes
    ----------
    worst : float
        A row of a larger error says nothing of an upper neuron,
    worst_rest : float
        nor one that the rows below leave more of.
    same : float
        Share by which entries of one neuron's row may differ.
    """

    worst: float = 0.03
    worst_rest: float = 0.1
    same: float = 0.05

    def find(
        self, first: Rows, others: Rows, whole: Rows | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return weights, shape (r, m), and biases, shape (r,), above ``m`` neurons.

        Parameters
        ----------
        first : Rows
            Each as its neuron turns on.
        others : Rows
            Of norm 1, as lines show them.
        whole : Rows, optional
            Rows above the first layer that are known in full, by what that puts out.
        """
        W, b = first.W, first.b
        rows = [] if whole is None else list(np.column_stack([whole.W, whole.b]))
        for w, x, error in zip(others.W, others.X, others.errors, strict=True):
            on = W @ x + b > 0
            if error > self.worst or not on.any():
                continue
            v, full = np.linalg.lstsq(W[on].T, w, rcond=None)[0], np.zeros(len(b) + 1)
            if np.linalg.norm(W[on].T @ v - w) > self.worst_rest:
                continue
            full[:-1][on] = v
            # The critical point itself gives the constant.
            full[-1] = -v @ (W[on] @ x + b[on])
            self._merge(rows, full)
        found = np.array(rows).reshape(-1, len(b) + 1)
        return found[:, :-1], found[:, -1]

    def _merge(self, rows: list[FloatArray], new: FloatArray) -> None:
        """Add a row, or its entries to the row that agrees where both have any."""
        for known in rows:
            common = (known != 0) & (new != 0)
            least = 0.5 * min((known != 0).sum(), (new != 0).sum())
            if common.sum() <= max(3, least):
                continue
            x, y = known[common], new[common]
            scale = (x @ y) / (y @ y)
            if np.linalg.norm(x - scale * y) < self.same * np.linalg.norm(x):
                missing = (known == 0) & (new != 0)
                known[missing] = scale * new[missing]
                return
        rows.append(new)
