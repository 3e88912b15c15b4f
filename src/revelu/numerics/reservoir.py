"""A uniform sample of rows that come in pieces: those of the least random keys.

Which rows stay depends on their keys alone, not on the order in which pieces come.
"""

import numpy as np

from revelu.types import FloatArray


class Reservoir:
    """Rows of the least keys, at most ``capacity`` of them.

    Parameters
    ----------
    capacity : int
    n_columns : int

    Attributes
    ----------
    bar : float
        No row of a larger key can stay.
    """

    def __init__(self, capacity: int, n_columns: int) -> None:
        # Pages that no row reaches are never touched.
        self._rows = np.empty((capacity, n_columns))
        self._keys = np.empty(capacity)
        self._n = 0
        self.bar = np.inf

    def add(self, keys: FloatArray, rows: FloatArray) -> None:
        """Offer rows ``(n, n_columns)`` with keys ``(n,)``; those that go make room in place."""
        capacity = len(self._keys)
        n_free = min(capacity - self._n, len(keys))
        self._keys[self._n : self._n + n_free] = keys[:n_free]
        self._rows[self._n : self._n + n_free] = rows[:n_free]
        self._n += n_free
        if n_free < len(keys):
            keys, rows = keys[n_free:], rows[n_free:]
            stay = np.argpartition(np.concatenate([self._keys, keys]), capacity - 1)[:capacity]
            come = stay[stay >= capacity] - capacity
            go = np.setdiff1d(np.arange(capacity), stay, assume_unique=True)
            self._keys[go], self._rows[go] = keys[come], rows[come]
        if self._n == capacity:
            self.bar = float(self._keys.max())

    def in_order(self) -> FloatArray:
        """Return the rows in the order of their keys, which is random; shape (n, n_columns)."""
        return self._rows[np.argsort(self._keys[: self._n], kind="stable")]
