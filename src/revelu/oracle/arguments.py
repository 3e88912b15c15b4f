"""What makes sense as an argument."""

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from revelu.errors import InputError
from revelu.types import FloatArray


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


def checked_inputs(X: ArrayLike, n: int, box: tuple[float, float] | None) -> FloatArray:
    """Return inputs as an array (m, n), or name what is wrong with them.

    Raises
    ------
    InputError
    """
    try:
        given = np.asarray(X)
        rows = given.astype(np.float64) if given.dtype.kind in "biufO" else None
    except (TypeError, ValueError) as error:
        raise InputError(f"inputs are no numeric array: {error}") from None
    if rows is None:
        raise InputError(f"inputs are no numeric array: of type {given.dtype}")
    if rows.ndim != 2 or rows.shape[1] != n:
        raise InputError(f"inputs have shape {rows.shape}; expected (m, {n})")
    if not np.isfinite(rows).all():
        raise InputError("an input holds a number that is not finite")
    if box is not None:
        lo, hi = box
        if not lo < hi:
            raise InputError(f"box needs lo < hi, got {box!r}")
        outside = np.flatnonzero(((rows < lo) | (rows > hi)).any(axis=1))
        if len(outside):
            raise InputError(f"input {outside[0]} leaves the box [{lo:g}, {hi:g}]")
    return rows
