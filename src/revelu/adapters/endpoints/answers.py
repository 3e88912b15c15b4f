"""Answers in JSON: where the rows are, and what numbers they hold."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from revelu.adapters.credentials import shown
from revelu.adapters.endpoints.places import hint, places_of_numbers
from revelu.adapters.error_pages import page_title
from revelu.adapters.json_text import read_document
from revelu.errors import InputError, ReveluError
from revelu.extras import import_extra
from revelu.types import FloatArray

# A number as text; what is written so and is not finite is for the oracle to refuse.
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE | re.ASCII
)

# What is no answer, where it is all that there is.
_ERRORS = {"detail", "error", "errors", "message"}


class AnswerError(ReveluError):
    """An answer that is not understood; the message says what did arrive.

    Parameters
    ----------
    passing : bool
        Whether it looks like a fault on the way, and not like another kind of answer.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class Answers:
    """What is taken of an answer.

    Parameters
    ----------
    path : str or None
        JSONPath of the rows; None takes the whole answer, or the only member of an object.
    classes : sequence of str
        Names of classes, each of which is answered by its place.  Without them a name is answered
        by a number that depends on it alone: processes, and runs that are resumed, agree.
    one_by_one : bool
        One row is asked for at a time: whatever is there is its answer.

    Raises
    ------
    InputError
        If the path is none.
    MissingExtraError
        If python-jsonpath is not installed.
    """

    def __init__(
        self, path: str | None, classes: Sequence[str] = (), *, one_by_one: bool = False
    ) -> None:
        self.path, self.one_by_one = path, one_by_one
        self.places = {name: float(i) for i, name in enumerate(classes)}
        self._query = None if path is None else _compiled(path)
        # Whether answers are names; what comes after the first one must be alike.
        self._are_names: bool | None = None
        self._member: str | None = None
        # The names in a row that is an object, or has objects.
        self._names: object = None

    @property
    def are_names(self) -> bool:
        """Whether what was answered are class names, which the numbers stand for."""
        return bool(self.places or self._are_names)

    def read(self, content: bytes, n: int) -> FloatArray:
        """Return the answer to n rows, shape (n, k).

        Raises
        ------
        AnswerError
            If it is not understood.
        """
        document = _document(content)
        try:
            rows = self._rows(document, n)
            fast = _as_numbers(rows)
            Y = self._slowly(rows) if fast is None or self.places else fast
            are_names = fast is None and self._has_names(rows)
        except RecursionError:
            raise AnswerError("answers what is nested too deeply") from None
        if self._are_names not in {None, are_names}:
            kinds = ("class names", "numbers") if are_names else ("numbers", "class names")
            raise AnswerError(
                f"answers {kinds[0]} after {kinds[1]}: {_short(rows[0])}; give classes"
            )
        self._are_names = are_names
        return Y

    def _rows(self, document: Any, n: int) -> list[Any]:
        """What was answered to each row."""
        matches = self._matches(document)
        if self.one_by_one:
            return [matches]
        if len(matches) == 1 and isinstance(matches[0], list):
            (found,) = matches
            # Where one row is asked for, a list of numbers is its answer, not that of many.
            if n > 1 or len(found) == 1 or any(isinstance(part, list | dict) for part in found):
                matches = found
        if len(matches) != n:
            where = "" if self.path is None else f" at {self.path}"
            raise AnswerError(f"answers {len(matches)} rows{where} to {n}: {_short(document)}")
        return matches

    def _matches(self, document: Any) -> list[Any]:
        if self._query is None:
            if isinstance(document, dict):
                if len(document) != 1:
                    first = next(iter(document), "prediction")
                    path = next(iter(places_of_numbers(document)), f"$.{first}")
                    raise AnswerError(
                        f"answers several things, {_short(document)}: name the one to take, "
                        f"such as answer '{shown(path)}'"
                    )
                ((name, document),) = document.items()
                if name.lower() in _ERRORS:
                    raise AnswerError(f"answers an error: {_short(document)}")
                if self._member not in {None, name}:
                    raise AnswerError(f"answers {shown(name)} after {shown(self._member)}")
                self._member = name
            return [document]
        try:
            matches = list(self._query.findall(document))
        except Exception as error:  # noqa: BLE001 - a library's, on whatever arrives
            raise AnswerError(f"cannot be searched for {self.path}: {shown(error)}") from None
        if not matches:
            said = f"; {hint(self.path or '', document)}".removesuffix("; ")
            raise AnswerError(f"has nothing at {self.path}; it answers {_short(document)}{said}")
        return matches

    def _slowly(self, rows: list[Any]) -> FloatArray:
        """Rows that are texts, objects or truth values; or what is wrong with them."""
        read = [list(_leaves(row, i)) for i, row in enumerate(rows)]
        widths = list(dict.fromkeys(map(len, read)))
        if len(widths) != 1 or not widths[0]:
            raise AnswerError(f"answers rows of {widths} numbers: {_short(rows)}")
        for row in rows:
            names = _names_of(row)
            if self._names not in {None, names}:
                raise AnswerError(f"answers other names from row to row: {_short(rows)}")
            self._names = names
        texts = {type(leaf) is str and not _is_number(leaf) for row in read for leaf in row}
        if True in texts and (len(texts) > 1 or widths != [1]) and not self.places:
            raise AnswerError(f"answers numbers and text together: {_short(rows)}")
        return np.array([[self._number(leaf) for leaf in row] for row in read])

    def _number(self, leaf: Any) -> float:
        if self.places:
            if f"{leaf}" not in self.places:
                known = ", ".join(self.places)
                raise AnswerError(f"answers {_short(leaf)}, which is none of the classes {known}")
            return self.places[f"{leaf}"]
        if isinstance(leaf, str) and not _is_number(leaf):
            # 48 bits: exact in float64, and any two of 1,000 names differ but once in 5e8.
            return float(int.from_bytes(hashlib.sha256(leaf.encode()).digest()[:6]))
        try:
            return float(leaf)
        except OverflowError:
            raise AnswerError(f"answers {_short(leaf)}, which is too large") from None

    def _has_names(self, rows: list[Any]) -> bool:
        leaf = next(_leaves(rows[0], 0))
        return not self.places and isinstance(leaf, str) and not _is_number(leaf)


def _compiled(path: str) -> Any:
    jsonpath = import_extra("jsonpath", "answers of endpoints need python-jsonpath", "http")
    try:
        return jsonpath.compile(path)
    except Exception as error:  # noqa: BLE001 - whatever the library has for what is none
        reason = next(iter(f"{error}".splitlines()), "")
        raise InputError(f"answer {shown(path)!r} is no JSONPath: {shown(reason)}") from None


def _document(content: bytes) -> Any:
    try:
        return read_document(content)
    except (ValueError, RecursionError):
        if title := page_title(content):
            raise AnswerError(f"answers HTML, not JSON: {shown(title)}") from None
        text = shown(content.decode(errors="replace")) or "nothing"
        raise AnswerError(f"answers what is no JSON: {text}", passing=True) from None


def _as_numbers(rows: list[Any]) -> FloatArray | None:
    """Rows of plain numbers, which most are; None for others."""
    try:
        Y = np.array(rows)
    except (ValueError, OverflowError):
        return None
    if Y.dtype.kind not in "fiu" or not Y.size:
        return None
    return Y.reshape(len(rows), -1).astype(np.float64)


def _leaves(value: Any, row: int) -> Any:
    """Yield the numbers and texts of a row; those of an object in the order of its names."""
    if value is None:
        raise AnswerError(f"answers null in row {row}, where a number belongs")
    if isinstance(value, list):
        for part in value:
            yield from _leaves(part, row)
    elif isinstance(value, dict):
        for name in sorted(value, key=_order):
            yield from _leaves(value[name], row)
    else:
        yield value


def _names_of(value: Any) -> tuple[Any, ...]:
    """Return the names of an object, and of those in it, in the order of its numbers."""
    if isinstance(value, list):
        return tuple(_names_of(part) for part in value)
    if isinstance(value, dict):
        return tuple((name, _names_of(value[name])) for name in sorted(value, key=_order))
    return ()


def _order(name: str) -> tuple[float, str]:
    """Numbers in their order, names after them in theirs."""
    return (float(name) if _is_number(name) else np.inf, name)


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text.strip()) is not None


def _short(value: Any) -> str:
    try:
        return shown(json.dumps(value)[:2000])
    except RecursionError:
        return "what is nested too deeply"
