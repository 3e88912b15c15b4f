"""Targets that answer only inside limits: where these are, by what they say or by bisection."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from revelu.errors import ReveluError, TargetError, UnansweredError
from revelu.types import FloatArray

_NUMBER = r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_AT_MOST = re.compile(
    rf"(?:<=?|\u2264|at most|(?<!no )(?<!not )less than(?: or equal to)?|up to|"
    rf"max(?:imum)?(?: \w+)?[:=]?|exceeds?|no (?:more|larger|greater) than|"
    rf"not be (?:greater|larger|more) than)\s*{_NUMBER}",
    re.IGNORECASE,
)
_AT_LEAST = re.compile(
    rf"(?:>=?|\u2265|at least|(?<!no )(?<!not be )greater than(?: or equal to)?|"
    rf"min(?:imum)?(?: \w+)?[:=]?|no (?:less|smaller) than)\s*{_NUMBER}",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    rf"(?:between\s*{_NUMBER}\s*and|range\s*(?:of|is|:)?\s*[\[(]?\s*{_NUMBER}\s*(?:,|to|-|\.\.)|"
    rf"\[\s*{_NUMBER}\s*,)\s*{_NUMBER}",
    re.IGNORECASE,
)

# Limits of other things than numbers.
_OF_SHAPES = re.compile(
    rf"{_NUMBER}\s*(items?|elements?|rows?|columns?|features?|characters?|dimensions?)\b|"
    r"\b(length|shape)\b",
    re.IGNORECASE,
)

Answers = Callable[[FloatArray], bool]


@dataclass(frozen=True)
class Limit:
    """Where a target ends to answer.

    Attributes
    ----------
    column : int or None
        Of the input that the limit is of; None where several are together, or it is not known.
    at : float
        The last number that is answered, as far as was seen.
    is_upper : bool
        Whether what is larger is not answered.
    """

    column: int | None
    at: float
    is_upper: bool


def limits_said(text: str) -> list[Limit]:
    """Limits that a refusal names: "must be <= 10", "between 0 and 1"."""
    if _OF_SHAPES.search(text):
        return []
    if (found := _BETWEEN.search(text)) is not None:
        lo, hi = (float(number) for number in found.groups() if number is not None)
        return [Limit(None, lo, is_upper=False), Limit(None, hi, is_upper=True)]
    patterns = ((_AT_LEAST, False), (_AT_MOST, True))
    said = [(pattern.search(text), is_upper) for pattern, is_upper in patterns]
    return [Limit(None, float(one[1]), is_upper) for one, is_upper in said if one is not None]


def find_limit(
    answers: Answers, inside: FloatArray, outside: FloatArray, *, precise: float = 1e-3
) -> Limit:
    """Find the limit between two rows by bisection: first whose column it is, then where.

    Parameters
    ----------
    answers : callable, (d,) -> bool
        Whether a row is answered, as ``inside`` is and ``outside`` is not.
    precise : float
        How near the two sides come, relative to where they are, before a round number between
        them is tried.
    """
    columns = np.flatnonzero(inside != outside)
    # With the first n columns of the row outside it is answered for 0, and not for all of them.
    low, high = 0, len(columns)
    while high - low > 1:
        n = (low + high) // 2
        mixed = inside.copy()
        mixed[columns[:n]] = outside[columns[:n]]
        low, high = (n, high) if answers(mixed) else (low, n)
    column = int(columns[high - 1])

    def moved(value: float) -> FloatArray:
        x = inside.copy()
        x[column] = value
        return x

    if answers(moved(float(outside[column]))):
        return _together(answers, inside, outside, precise)
    known, refused = float(inside[column]), float(outside[column])
    while abs(refused - known) > precise * max(abs(known), abs(refused) * precise):
        middle = (known + refused) / 2.0
        known, refused = (middle, refused) if answers(moved(middle)) else (known, middle)
    limit = _roundest(known, refused)
    at = limit if limit == known or answers(moved(limit)) else known
    return Limit(column, at, is_upper=refused > known)


def _together(answers: Answers, inside: FloatArray, outside: FloatArray, precise: float) -> Limit:
    """The limit of several columns together: how large all of them may be."""
    known, refused = 0.0, 1.0
    while refused - known > precise:
        middle = (known + refused) / 2.0
        x = inside + middle * (outside - inside)
        known, refused = (middle, refused) if answers(x) else (known, middle)
    x = inside + known * (outside - inside)
    # As far out as that row, if all columns were alike.
    return Limit(None, float(f"{np.sqrt((x**2).mean()):.2g}"), is_upper=True)


def _roundest(known: float, refused: float) -> float:
    """The shortest decimal from ``known`` up to, or down to, ``refused``."""
    low, high = sorted((known, refused))
    for digits in range(1, 18):
        for value in (float(f"{known:.{digits}g}"), float(f"{refused:.{digits}g}")):
            if low <= value <= high:
                return value
    return known


def boxes(limits: list[Limit]) -> Iterator[tuple[float, float]]:
    """Boxes that may be inside, first those that are likeliest."""
    lower = [limit.at for limit in limits if not limit.is_upper]
    upper = [limit.at for limit in limits if limit.is_upper]
    if lower and upper:
        pairs = [(max(lower), min(upper))]
    elif upper:
        hi = min(upper)
        pairs = [(-hi, hi), (0.0, hi), (2.0 * hi, hi), (hi - 1.0, hi)]
    else:
        lo = max(lower, default=0.0)
        sizes = (1000.0, 100.0, 10.0, 1.0)
        pairs = [(lo, -lo), *((lo, size) for size in sizes), (lo, 10.0 * lo), (lo, 2.0 * lo)]
    for lo, hi in dict.fromkeys(pairs):
        if lo < hi:
            yield lo, hi


def is_answered(answers: Answers, box: tuple[float, float], d: int) -> bool:
    """Whether the corners of a box are answered: both ends of all columns, and of every other."""
    lo, hi = box
    every = np.where(np.arange(d) % 2 == 0, lo, hi)
    rows: FloatArray = np.array([np.full(d, lo), np.full(d, hi), every, lo + hi - every])
    return all(answers(row) for row in rows)


_IF = "if it answers only inside limits, say so: --box LO HI, or --like DATA"


class _EnoughError(Exception):
    """So many rows were asked that no more are."""


def with_advice(
    error: UnansweredError,
    ask: Answers,
    inside: FloatArray | None,
    affords: int | None,
    most: int = 80,
) -> TargetError:
    """Say with an error inside which limits a target answers, and the option that stays there.

    Parameters
    ----------
    error : UnansweredError
        With what was asked, and what the target says.
    ask : callable, (d,) -> bool
        Whether a row is answered.
    inside : ndarray, shape (d,), or None
        A row that was answered.
    affords : int or None
        Rows that may be asked; None for any number.
    most : int
        So many are: bisection takes some 12 for the column, 20 for the limit, 4 a box.
    """
    most = most if affords is None else min(most, affords)
    if not most or error.asked is None:
        return TargetError(f"{error}; {_IF}")
    box: tuple[float, float] | None = None
    try:
        said, box = _advice(error, ask, inside, most)
    except ReveluError:  # which is not about this row
        said = ""
    advised = TargetError(f"{error}; {said}" if said else f"{error}")
    advised.options = () if box is None else ("--box", f"{box[0]:g}", f"{box[1]:g}")
    return advised


def _advice(
    error: UnansweredError,
    ask: Answers,
    inside: FloatArray | None,
    most: int,
    n_tried: int = 4,
) -> tuple[str, tuple[float, float] | None]:
    """The advice, and a box; nothing, where the rows are answered after all, or none is.

    Parameters
    ----------
    n_tried : int
        Rows that are tried for one that is answered, and for one that is not.
    """
    X, n_asked = np.asarray(error.asked), 0

    def answers(x: FloatArray) -> bool:
        nonlocal n_asked
        if n_asked >= most:
            raise _EnoughError
        n_asked += 1
        return ask(x)

    limits = limits_said(f"{error}")
    words = "it answers only inside limits"
    try:
        if not limits:
            far = _extreme_first(X, error.row, n_tried)
            outside = next((x for x in far if not answers(x)), None)
            if outside is None:
                return "", None
            near = _extreme_first(X, None, len(X))[:-n_tried:-1]
            centre: FloatArray = np.zeros((1, X.shape[1]))
            known = [*near, *centre] if inside is None else [inside]
            found = next((x for x in known if answers(x)), None)
            if found is None:  # it answers nothing any more, or never did
                return (_IF if inside is None else ""), None
            inside = found
            limits = [find_limit(answers, inside, outside)]
        for limit in limits:
            if limit.column is not None:
                side = "at most" if limit.is_upper else "at least"
                words += f", input {limit.column} {side} {limit.at:g}"
        box = next((box for box in boxes(limits) if is_answered(answers, box, X.shape[1])), None)
    except _EnoughError:
        box = None
    chosen = "--box LO HI, or --like DATA" if box is None else f"--box {box[0]:g} {box[1]:g}"
    return f"{words}: ask it there, {chosen}", box


def _extreme_first(X: FloatArray, given: int | None, most: int) -> FloatArray:
    """The rows of ``X (n, d)`` that are the likeliest outside: the one named, those far out."""
    order = np.argsort(-np.abs(X).max(axis=1), kind="stable").tolist()
    places = dict.fromkeys([*([] if given is None else [given]), *order])
    return X[[place for place in places if 0 <= place < len(X)][:most]]
