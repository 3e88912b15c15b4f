"""Columns that take whole numbers alone: found by what is refused, and held at one."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from revelu.errors import TargetError, WholeNumbersError
from revelu.oracle.domain import Domain
from revelu.oracle.oracle import Oracle
from revelu.types import BoolArray, FloatArray

R = TypeVar("R")

# Tells whether a row is accepted of which these columns are no whole numbers.
Accepts = Callable[[BoolArray], bool]


def in_whole_numbers(oracle: Oracle, ask: Callable[[], R]) -> R:
    """Return what the first questions tell; where columns take whole numbers alone, hold those.

    Then the oracle is moved to a domain that does, and what is asked begins again.

    Parameters
    ----------
    oracle : Oracle
    ask : callable, () -> result
        Asks; it reads from the oracle how many inputs there are.

    Raises
    ------
    WholeNumbersError
        If no row is accepted, or other numbers are refused, too.
    InputError
        If every column is such.
    """
    try:
        return ask()
    except WholeNumbersError as error:
        if not oracle.writes_whole:
            raise
        if not hold_whole(oracle, np.asarray(error.asked)[0]):
            raise WholeNumbersError(f"{error}{_none_between(oracle)}") from None
    return ask()


def _none_between(oracle: Oracle) -> str:
    """Say that no column can be held, where no whole number lies where the target is asked."""
    domain = _domain_of(oracle)
    low, high = domain.bounds or (-np.inf, np.inf)
    at = _whole_values(domain)
    if not ((at < low) | (at > high)).any():
        return ""
    return f"; no whole number lies between {np.min(low):g} and {np.max(high):g}: give others"


def hold_whole(oracle: Oracle, refused: FloatArray) -> bool:
    """Move an oracle to where columns that take whole numbers alone are held.

    Parameters
    ----------
    refused : ndarray, shape (d,)
        A row that was refused.

    Returns
    -------
    bool
        Whether that is possible: a row of whole numbers is accepted.

    Raises
    ------
    TargetError
        If rows are refused for another reason, too, and an option helps.
    """
    domain = _domain_of(oracle)
    at = _whole_values(domain)
    low, high = domain.bounds or (-np.inf, np.inf)
    if ((at < low) | (at > high)).any():  # no whole number lies between
        return False

    def accepts(free: BoolArray) -> bool:
        oracle.write_whole(~free)
        try:
            with oracle.phase("noise"), oracle.as_answered():
                oracle.at(np.where(free, refused, at)[None])
        except WholeNumbersError:
            return False
        return True

    n = len(refused)
    try:
        if not accepts(np.zeros(n, dtype=bool)):
            return False
        whole = find_whole(accepts, n)
    except TargetError as other:  # which is about something else
        if other.options:
            raise
        return False
    oracle.write_whole(whole)
    names = domain.names or getattr(oracle.target, "column_names", ())
    oracle.move_to(replace(domain, names=tuple(names)).holding(whole, at, _note(whole, at, names)))
    return True


def find_whole(accepts: Accepts, n: int) -> BoolArray:
    """Find the columns that take whole numbers alone, by halves of what is refused.

    Parameters
    ----------
    accepts : callable, (n,) of bool -> bool
        What refuses all columns at once.
    n : int
        Columns.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> find_whole(lambda free: not free[[2, 3]].any(), 5).tolist()
    [False, False, True, True, False]
    """
    whole = np.zeros(n, dtype=bool)
    groups = [np.arange(n)]
    while groups:
        group = groups.pop()
        if len(group) == 1:
            whole[group] = True
            continue
        left, right = np.array_split(group, 2)
        is_left = not accepts(np.isin(np.arange(n), left))
        if is_left:
            groups.append(left)
        # What is not on the left is on the right.
        if not is_left or not accepts(np.isin(np.arange(n), right)):
            groups.append(right)
    return whole


def _domain_of(oracle: Oracle) -> Domain:
    """Where an oracle is asked, as a domain."""
    if oracle.domain is not None:
        return oracle.domain
    found = Domain.gaussian() if oracle.box is None else Domain.box(*oracle.box)
    return replace(found, words=oracle.where).of(oracle.dim_target)


def _whole_values(domain: Domain) -> FloatArray:
    """A whole number for each column: the most frequent of the data, or the nearest the middle."""
    at = np.rint(domain.center)
    if domain.bounds is not None:
        low, high = domain.bounds
        at = np.clip(at, np.ceil(low), np.maximum(np.floor(high), np.ceil(low)))
    for j, column in enumerate(() if domain.rows is None else domain.rows.T):
        values, counts = np.unique(column[column == np.rint(column)], return_counts=True)
        if len(values):
            at[j] = values[counts.argmax()]
    return np.where(domain.is_held, domain.center, at)


def _note(whole: BoolArray, at: FloatArray, names: tuple[str, ...], most: int = 8) -> str:
    columns = np.flatnonzero(whole).tolist()
    called = [f"{names[j] if names else j} at {at[j]:g}" for j in columns[:most]]
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    if len(columns) == 1:
        return f"a column takes whole numbers alone, and is held: {called[0]}"
    return f"columns take whole numbers alone, and are held: {', '.join(called)}{more}"
