"""Columns by name: those of a table, in the order in which a target reads its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revelu.errors import InputError
from revelu.types import FloatArray


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Rows of a table whose columns have names, as those of a data frame do.

    Attributes
    ----------
    columns : list of str
    rows : ndarray, shape (n, d)
    file : str
        That they are from, which messages name.
    """

    columns: list[str]
    rows: FloatArray
    file: str = ""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the rows."""
        return np.array(self.rows, dtype=dtype, copy=copy)


def names_of(data: Any) -> list[str]:
    """Return what the columns of a table are called; nothing of an array."""
    found = getattr(data, "columns", None)
    return [] if found is None else [str(name) for name in found]


def order_of(given: Sequence[str], wanted: Sequence[str], what: str) -> list[int] | None:
    """Tell where a target's columns are in a table; None where names do not say.

    Parameters
    ----------
    given, wanted : sequence of str
        Names of the table's columns, and of the target's, in their orders.
    what : str
        Begins the message.

    Raises
    ------
    InputError
        If the table has some of the target's columns and not all, or one twice.
    """
    if not given or not wanted or list(given) == list(wanted):
        return None
    common = set(given) & set(wanted)
    if not common:
        return None
    if common != set(wanted) or any(list(given).count(name) > 1 for name in common):
        read, there = (", ".join(list(names)[:12]) for names in (wanted, given))
        raise InputError(f"{what}: the target reads the columns {read}; there are {there}")
    return [list(given).index(name) for name in wanted]


def in_order_of(data: Any, wanted: Sequence[str], what: str) -> Any:
    """Return rows with the columns that a target reads, in its order; others as they are.

    Errors are those of :func:`order_of`.
    """
    order = order_of(names_of(data), wanted, what)
    return data if order is None else np.asarray(data, dtype=object)[:, order]
