"""What makes sense as an argument."""

import operator
from typing import Any

import numpy as np

from revelu.errors import InputError


def whole_number(name: str, value: Any, least: int) -> int:
    """Return ``value`` as an int.

    Raises
    ------
    InputError
        If it is no whole number, or less than ``least``; the message says ``name``.
    """
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least:
        raise InputError(f"{name} must be a whole number, {least} or more, got {value!r}")
    return int(value)


def agreed_dim_in(name: str, declared: int | None, given: int | None) -> int:
    """Return the number of inputs that a target declares, or that the user gives.

    Raises
    ------
    InputError
        If neither says it, or they differ.
    """
    if declared is None and given is None:
        raise InputError(f"{name} does not say how many inputs it has: give dim_in")
    if declared is not None and given not in {None, declared}:
        raise InputError(f"{name} has {declared} inputs, not {given}")
    size = given if declared is None else declared
    try:
        return operator.index(size)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{name}: dim_in must be a whole number, got {size!r}") from None


def is_interval(box: Any) -> bool:
    """Whether ``box`` is a pair of finite numbers, the smaller first."""
    try:
        lo, hi = (float(edge) for edge in box)
    except (TypeError, ValueError):
        return False
    return bool(np.isfinite([lo, hi]).all() and lo < hi)


def is_positive(value: Any) -> bool:
    """Whether ``value`` is a finite number above 0."""
    return isinstance(value, int | float | np.number) and bool(0 < value < np.inf)
