"""A target as one that answers labels alone, for searches and certificates of labels."""

import sys

import numpy as np

from revelu.oracle import Oracle
from revelu.oracle.labels import as_labels
from revelu.types import FloatArray

__all__ = ["Labelled"]


class Labelled(Oracle):
    """A target that answers labels, counted, kept and limited by the oracle of another one.

    Parameters
    ----------
    inner : Oracle
    with_ties : bool
        Whether, behind the label, it is answered which answers are as large as any, (m, k).
    """

    def __init__(self, inner: Oracle, *, with_ties: bool = False) -> None:
        super().__init__(
            self._ask, inner.dim_in, name=inner.name, budget=inner.budget, batch_rows=sys.maxsize
        )
        self._inner, self._with_ties = inner, with_ties

    def _ask(self, X: FloatArray) -> FloatArray:
        spread = self._inner.spread_out(self.rows_a_request)
        with self._inner.as_answered(), self._inner.phase(self.current_phase), spread:
            Y = self._inner(X)
        if not self._with_ties or Y.shape[1] == 1:
            return as_labels(Y)
        return np.column_stack([as_labels(Y), Y.max(axis=1, keepdims=True) == Y])

    @property
    def remaining(self) -> int | None:
        """Queries that the budget still allows."""
        return self._inner.remaining

    @property
    def own_inputs(self) -> tuple[FloatArray, FloatArray]:
        """The target's inputs as functions of a query."""
        return self._inner.own_inputs
