"""Answers that are kept while a target is asked, for what is computed of all of them in the end."""

from dataclasses import dataclass, field

import numpy as np

from revelu.types import BoolArray, FloatArray


@dataclass
class KeptAnswers:
    """Queries and their answers, every one of them as long as there is room.

    Attributes
    ----------
    most_numbers : int
        That are kept, 64 MiB: where there are more, every other row is let go, old and new alike.
    """

    most_numbers: int = 2**23
    _rows: list[tuple[FloatArray, FloatArray, bool]] = field(default_factory=list, init=False)
    _n_numbers: int = field(default=0, init=False)
    _every: int = field(default=1, init=False)

    def add(self, X: FloatArray, Y: FloatArray, *, is_check: bool = False) -> None:
        """Keep a round's queries (n, d) and answers (n, k), as the target gave them.

        Parameters
        ----------
        is_check : bool
            Whether they are a certificate's.
        """
        self._rows.append((X[:: self._every].copy(), Y[:: self._every].copy(), is_check))
        self._n_numbers += sum(part.size for part in self._rows[-1][:2])
        while self._n_numbers > self.most_numbers and self._every < 2**20:
            self._every *= 2
            self._rows = [(X[::2].copy(), Y[::2].copy(), check) for X, Y, check in self._rows]
            self._n_numbers = sum(X.size + Y.size for X, Y, _ in self._rows)

    def clear(self) -> None:
        """Forget all of them: queries are coordinates of another domain from now on."""
        self._rows, self._n_numbers, self._every = [], 0, 1

    def all(self) -> tuple[FloatArray, FloatArray, BoolArray] | None:
        """Return queries (n, d), answers (n, k), in their order, and which are a certificate's.

        None where there are none.
        """
        # A target that answers otherwise than at first is judged by what it answers now.
        k = self._rows[-1][1].shape[1] if self._rows else 0
        rows = [row for row in self._rows if row[1].shape[1] == k and len(row[0])]
        if not rows:
            return None
        X, Y = (np.concatenate([row[i] for row in rows]) for i in (0, 1))
        return X, Y, np.repeat([row[2] for row in rows], [len(row[0]) for row in rows])
