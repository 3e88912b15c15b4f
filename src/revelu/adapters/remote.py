"""Callables that ask elsewhere."""

from collections.abc import Callable
from typing import Any

from revelu.adapters.pace import Pace


class RemoteTarget:
    """A callable that is asked as a served model is: at a pace, and no more than it must be.

    Parameters
    ----------
    ask : callable, (n, d) -> (n,) or (n, k)
    rate : str, optional
        Most calls, such as ``"50/s"``.
    """

    def __init__(self, ask: Callable[..., Any], rate: str | None = None) -> None:
        self._ask, self._pace = ask, Pace(rate)

    @property
    def column_names(self) -> list[str]:
        """What its columns are called, where it knows."""
        return list(getattr(self._ask, "column_names", ()))

    def __call__(self, X: Any) -> Any:
        """Ask it for the rows of ``X``."""
        self._pace.wait()
        return self._ask(X)
