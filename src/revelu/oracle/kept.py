"""Answers that are kept while a target is asked, for what is computed of all of them in the end."""

from dataclasses import dataclass, field

import numpy as np

from revelu.types import FloatArray


@dataclass
class KeptAnswers:
    """Queries and their answers, every one of them as long as there is room.

    Attributes
    ----------
    most_numbers : int
        That are kept, 64 MiB: where there are more, every other row is let go, old and new alike.
    """

    most_numbers: int = 2**23
    _rows: list[tuple[FloatArray, FloatArray]] = field(default_factory=list, init=False)
    _n_numbers: int = field(default=0, init=False)
    _every: int = field(default=1, init=False)

    def add(self, X: FloatArray, Y: FloatArray) -> None:
        """Keep a round's queries (n, d) and answers (n, k), as the target gave them."""
        part = (X[:: self._every].copy(), Y[:: self._every].copy())
        self._rows.append(part)
        self._n_numbers += part[0].size + part[1].size
        while self._n_numbers > self.most_numbers and self._every < 2**20:
            self._every *= 2
            self._rows = [(X[::2].copy(), Y[::2].copy()) for X, Y in self._rows]
            self._n_numbers = sum(X.size + Y.size for X, Y in self._rows)

    def clear(self) -> None:
        """Forget all of them: queries are coordinates of another domain from now on."""
        self._rows, self._n_numbers, self._every = [], 0, 1

    def all(self) -> tuple[FloatArray, FloatArray] | None:
        """Return queries (n, d) and answers (n, k), in their order; None where there are none."""
        # A target that answers otherwise than at first is judged by what it answers now.
        k = self._rows[-1][1].shape[1] if self._rows else 0
        rows = [(X, Y) for X, Y in self._rows if Y.shape[1] == k and len(X)]
        if not rows:
            return None
        return np.concatenate([X for X, _ in rows]), np.concatenate([Y for _, Y in rows])
