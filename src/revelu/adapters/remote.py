"""Callables that ask elsewhere."""

from collections.abc import Callable
from typing import Any

import numpy as np

from revelu.adapters.pace import RequestPace


class RemoteTarget:
    """A callable that is asked as a served model is: at a pace, and no more than it must be.

    Parameters
    ----------
    ask : callable, (n, d) -> (n,) or (n, k)
    rate : str, optional
        Most calls, such as ``"50/s"``.
    attempts : int
        Times that it is called where an answer is not finite.
    """

    def __init__(
        self, ask: Callable[..., Any], rate: str | None = None, *, attempts: int = 3
    ) -> None:
        self._ask, self._pace, self._attempts = ask, RequestPace(rate), attempts

    @property
    def column_names(self) -> list[str]:
        """What its columns are called, where it knows."""
        return list(getattr(self._ask, "column_names", ()))

    def __call__(self, X: Any) -> Any:
        """Ask it for the rows of ``X``."""
        for _ in range(self._attempts):
            self._pace.wait()
            # It may write into what it is given.
            Y = self._ask(X.copy())
            found = np.asarray(Y) if isinstance(Y, np.ndarray) else np.zeros(1)
            if found.dtype.kind != "f" or np.isfinite(found).all():
                break
        return Y
