"""Requests no larger than a server takes."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from revelu.adapters.http_client import TooLargeError
from revelu.errors import ReveluError, TargetError, UnansweredError
from revelu.types import FloatArray


class Portions:
    """How many rows go into one request.

    A server does not say how much it takes: requests are halved from the first on that is too
    large.

    Parameters
    ----------
    fixed : int, optional
        Most rows, where the server says so.
    """

    def __init__(self, fixed: int | None = None) -> None:
        self._is_fixed, self._most = fixed is not None, fixed

    def ask(self, ask: Callable[[FloatArray], FloatArray], X: FloatArray) -> FloatArray:
        """Ask for the rows of ``X (n, d)``, in as many requests as it takes, shape (n, k).

        Raises
        ------
        TargetError
            If one of them is not answered, or with another number of outputs.
        """
        most = self._most or len(X)
        if len(X) > most:
            parts = [X[i : i + most] for i in range(0, len(X), most)]
            return joined(in_turn(partial(self.ask, ask), parts))
        try:
            return ask(X)
        except TooLargeError:
            if len(X) == 1 or self._is_fixed:
                raise
        self._most = (len(X) + 1) // 2
        return self.ask(ask, X)


def in_turn(
    ask: Callable[[FloatArray], FloatArray], parts: Sequence[FloatArray]
) -> list[FloatArray]:
    """Ask for parts ``(n, d)`` of a batch, and for none after one that fails.

    Raises
    ------
    ReveluError
        What the failing one raises; the rows after it count as not sent.
    """
    answers = []
    for i, part in enumerate(parts):
        try:
            answers.append(ask(part))
        except ReveluError as error:
            error.n_unsent += sum(len(later) for later in parts[i + 1 :])
            if isinstance(error, UnansweredError) and error.row is not None:
                error.row += sum(len(earlier) for earlier in parts[:i])
            raise
    return answers


def joined(parts: list[FloatArray]) -> FloatArray:
    """Return the answers (n, k) of several requests as those of one.

    Raises
    ------
    TargetError
        If they have different numbers of outputs.
    """
    sizes = list(dict.fromkeys(part.shape[1] for part in parts))
    if len(sizes) > 1:
        raise TargetError(f"the target answered {sizes[1]} outputs after {sizes[0]} before")
    return np.concatenate(parts)
