"""Where in an answer numbers are: what is proposed where a path is missing or leads nowhere."""

import difflib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from revelu.adapters.credentials import shown

_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NAME_IN_PATH = re.compile(r"[^\W\d]\w*")


class Place(NamedTuple):
    """Numbers in an answer, all of one kind.

    Attributes
    ----------
    path : str
        JSONPath.
    is_listed : bool
        Whether they are in a list, as the answers to many rows are.
    n_fractions : int
        Of the first row: numbers that are written as no whole ones.  Labels and counts have none.
    n : int
        Numbers of the first row.
    """

    path: str
    is_listed: bool
    n_fractions: int
    n: int


def places_of_numbers(document: Any, *, deepest: int = 8, most: int = 6) -> list[str]:
    """Paths to the numbers in an answer, first those that are most likely meant.

    Parameters
    ----------
    document : object
        As JSON is read.
    deepest, most : int
        Levels that are looked at, and paths that are returned, at most.
    """
    found = sorted(_places(document, "$", deepest), key=lambda place: place[1:], reverse=True)
    return list(dict.fromkeys(place.path for place in found))[:most]


def hint(path: str, document: Any) -> str:
    """Say why nothing may be at a path, and where numbers are; an empty text where none are."""
    parts = []
    if not path.startswith("$"):
        parts.append("a path begins with $")
    known = _names(document, 8)
    for name in _NAME_IN_PATH.findall(path):
        near = [] if name in known else difflib.get_close_matches(name, known, 1)
        parts += [f"did you mean {shown(text)} for {name}?" for text in near]
    if places := places_of_numbers(document):
        parts.append(f"numbers are at {', '.join(places)}")
    return "; ".join(parts)


def _places(value: Any, path: str, left: int) -> Iterator[Place]:
    """Yield the places of numbers in a value; lists are told by their first item."""
    if left == 0:
        return
    # Of the members of an answer one is meant: the others are times and counts.
    is_whole = isinstance(value, dict) and path == "$"
    if not is_whole and (numbers := _block(value)) is not None:
        n_fractions = sum(isinstance(number, float) for number in numbers)
        yield Place(path, "[*]" in path or isinstance(value, list), n_fractions, len(numbers))
    elif isinstance(value, list) and value:
        inner = list(_places(value[0], f"{path}[*]", left - 1))
        # Rows that are numbers through and through are taken as they are, where they lie.
        whole = [place._replace(path=path) for place in inner if place.path == f"{path}[*]"]
        yield from whole or inner
    elif isinstance(value, dict):
        for name, part in list(value.items())[:64]:
            yield from _places(part, path + _member(name), left - 1)


def _block(value: Any) -> list[int | float] | None:
    """Numbers of a number, a list or an object of numbers of one kind; None of others."""
    if isinstance(value, dict):
        kinds = {type(part) for part in value.values()}
        return list(value.values()) if kinds in ({int}, {float}) else None
    parts = value if isinstance(value, list) else [value]
    return parts if parts and {type(part) for part in parts} <= {int, float} else None


def _member(name: str) -> str:
    return f".{name}" if _PLAIN_NAME.fullmatch(name) else f"['{shown(name)}']"


def _names(value: Any, left: int) -> list[str]:
    """Names of members, at any level."""
    if left == 0:
        return []
    if isinstance(value, list):
        return _names(value[0], left - 1) if value else []
    if not isinstance(value, dict):
        return []
    members = list(value.items())[:64]
    return [*value][:64] + [name for _, part in members for name in _names(part, left - 1)]
