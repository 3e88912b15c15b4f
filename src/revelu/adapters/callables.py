"""Callables as targets that take rows in a shape of their own."""

from collections.abc import Callable
from math import prod
from typing import Any

from revelu.oracle import agreed_dim_in
from revelu.types import FloatArray


class ShapedCallable:
    """A callable of images, say, as a target ``(n, d) -> (n,)`` or ``(n, k)``.

    Parameters
    ----------
    ask : callable
        ``(n, *row) -> (n,)`` or ``(n, k)``.
    row : tuple of int
        Shape of one row.

    Raises
    ------
    InputError
        If the callable itself, or the user, says another number of inputs.
    """

    def __init__(
        self, ask: Callable[[FloatArray], Any], row: tuple[int, ...], dim_in: int | None = None
    ) -> None:
        said = f"input_shape {'x'.join(map(str, row))}"
        for other in (getattr(ask, "dim_in", None), dim_in):
            agreed_dim_in(said, prod(row), other)
        self._ask, self.row, self.dim_in = ask, row, prod(row)

    def __call__(self, X: FloatArray) -> Any:
        """Ask it for the rows of ``X``."""
        return self._ask(X.reshape(len(X), *self.row))
