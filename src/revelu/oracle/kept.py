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
        That are kept, 64 MiB: where there are more, every other row is let go, old and new alike,
        be they of one round or each of its own.
    """

    most_numbers: int = 2**23
    _rows: list[tuple[FloatArray, FloatArray, bool]] = field(default_factory=list, init=False)
    _n_numbers: int = field(default=0, init=False)
    _every: int = field(default=1, init=False)
    _n_asked: int = field(default=0, init=False)
    _n_outputs: int = field(default=0, init=False)

    def add(self, X: FloatArray, Y: FloatArray, *, is_check: bool = False) -> None:
        """Keep a round's queries (n, d) and answers (n, k), as the target gave them.

        Parameters
        ----------
        is_check : bool
            Whether they are a certificate's.
        """
        self._n_outputs = Y.shape[1]
        which = slice(-self._n_asked % self._every, None, self._every)
        self._n_asked += len(X)
        self._keep(X[which], Y[which], is_check)
        while self._n_numbers > self.most_numbers and self._every < 2**40:
            self._every *= 2
            rows, n = self._rows, 0
            self._rows, self._n_numbers = [], 0
            for inputs, answers, check in rows:
                self._keep(inputs[n % 2 :: 2], answers[n % 2 :: 2], check)
                n += len(inputs)

    def _keep(self, X: FloatArray, Y: FloatArray, is_check: bool) -> None:
        if len(X):
            self._rows.append((X.copy(), Y.copy(), is_check))
            self._n_numbers += X.size + Y.size

    def clear(self) -> None:
        """Forget all of them: queries are coordinates of another domain from now on."""
        self._rows, self._n_numbers, self._every, self._n_asked = [], 0, 1, 0

    def all(self) -> tuple[FloatArray, FloatArray, BoolArray] | None:
        """Return queries (n, d), answers (n, k), in their order, and which are a certificate's.

        None where there are none.
        """
        # A target that answers otherwise than at first is judged by what it answers now.
        rows = [row for row in self._rows if row[1].shape[1] == self._n_outputs]
        if not rows:
            return None
        X, Y = (np.concatenate([row[i] for row in rows]) for i in (0, 1))
        return X, Y, np.repeat([row[2] for row in rows], [len(row[0]) for row in rows])
