"""Answers in JSON: where the rows are, and what numbers they hold."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from revelu.adapters.credentials import shown
from revelu.adapters.endpoints.cells import CellError, Cells, is_plain, is_word
from revelu.adapters.endpoints.documents import document_of
from revelu.adapters.endpoints.places import hint, places_of_numbers
from revelu.adapters.endpoints.shapes import has_numbers, opened, rows_of_columns
from revelu.adapters.error_pages import page_title
from revelu.errors import InputError, ReveluError
from revelu.extras import import_extra
from revelu.types import FloatArray

# What is said of a job that goes on.
_UNFINISHED = {"accepted", "in_progress", "pending", "processing", "queued", "running", "submitted"}
ASKED_FOR_LATER = "say in a profile where it is asked for (poll) and when it is done (done)"

# A text as an item or a member of an answer; other members are not to be looked at for any.
_MAY_HAVE_TEXTS = re.compile(rb'[:\[,]\s*"')

# What is no answer, where it is all that there is.
_ERRORS = {"detail", "error", "errors", "message"}


class AnswerError(ReveluError):
    """An answer that is not understood; the message says what did arrive.

    Parameters
    ----------
    passing : bool
        Whether it looks like a fault on the way, and not like another kind of answer.
    row : int, optional
        The row that is not answered.
    path : str, optional
        Where numbers are.
    """

    def __init__(
        self,
        message: str,
        *,
        passing: bool = False,
        row: int | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__(message)
        self.passing, self.row, self.path = passing, row, path


class Answers:
    """What is taken of an answer.

    Parameters
    ----------
    path : str or None
        JSONPath of the rows; None takes the whole answer, or the only member of an object.
        Strings that hold JSON are entered, and scores beside labels are members by label.
    classes : sequence of str
        Names of classes: no other is answered.
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
        self.path, self.one_by_one, self.classes = path, one_by_one, tuple(classes)
        self._query = None if path is None else compiled(path)
        self._cells = Cells()
        self._member: str | None = None
        # The names in a row that is an object, or has objects.
        self._names: object = None

    def read(self, content: bytes, n: int, kind: str = "") -> "FloatArray | np.ndarray[Any, Any]":
        """Return the answer to n rows, shape (n, k).

        Texts come back as they are until :meth:`numbers` has seen the first ones.

        Parameters
        ----------
        kind : str
            The Content-Type.

        Raises
        ------
        AnswerError
            If it is not understood.
        """
        document = _document(content, kind, n)
        self._cells.origin = next((one for one in ("csv", "plain") if one in kind.lower()), "")
        try:
            rows = self._rows(document, n, has_texts=_MAY_HAVE_TEXTS.search(content) is not None)
            Y = None if self.classes else _as_numbers(rows)
            if Y is not None and not self._cells.are_texts:
                self._cells.take_numbers(Y.shape[1])
                return Y
            cells = self._cells_of(rows)
        except RecursionError:
            raise AnswerError("answers what is nested too deeply") from None
        return cells if self._cells.are_names is None else self.numbers(cells)

    def numbers(self, Y: "np.ndarray[Any, Any]") -> "FloatArray | np.ndarray[Any, Any]":
        """Return numbers of answers ``Y (n, k)`` that have texts, or names of classes as texts.

        Raises
        ------
        AnswerError
            If they are neither.
        """
        if Y.dtype != object:
            return Y
        if self.classes:
            return self._checked_classes(Y)
        try:
            return self._cells.numbers(Y.tolist())
        except CellError as error:
            raise AnswerError(f"{error}") from None
        except OverflowError:
            raise AnswerError(f"answers {_short(Y[0].tolist())}, which is too large") from None

    def _checked_classes(self, Y: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
        if Y.shape[1] != 1:
            raise AnswerError(f"answers {_short(Y[0].tolist())}, where the name of a class belongs")
        names = np.array([[f"{cell}" for cell in row] for row in Y])
        known = ", ".join(self.classes)
        for cell in Y[~np.isin(names, self.classes)]:
            raise AnswerError(f"answers {_short(cell)}, which is none of the classes {known}")
        return names

    def _rows(self, document: Any, n: int, *, has_texts: bool) -> list[Any]:
        """What was answered to each row."""
        matches = self._matches(document, n, has_texts=has_texts)
        if len(matches) == 1 and (rows := rows_of_columns(matches[0], n)) is not None:
            matches = rows
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

    def _matches(self, document: Any, n: int, *, has_texts: bool) -> list[Any]:
        within = opened(document, n) if has_texts else document
        if self._query is None:
            return [self._only(document, within, n)]
        try:
            matches = list(self._query.findall(within))
        except Exception as error:  # noqa: BLE001 - a library's, on whatever arrives
            raise AnswerError(f"cannot be searched for {self.path}: {shown(error)}") from None
        if not matches:
            said = f"; {hint(self.path or '', within)}".removesuffix("; ")
            if within != document and not _lacks(self._query, document):
                said = "; scores that are sorted by size are taken by label: end the path before"
            place = next(iter(places_of_numbers(within)), None)
            shown_here = f"has nothing at {self.path}; it answers {_short(document)}{said}"
            raise AnswerError(shown_here, path=place)
        return matches

    def _only(self, document: Any, within: Any, n: int) -> Any:
        """What there is to take without a path.

        Parameters
        ----------
        document, within
            As it came, and with what is in its strings.
        """
        if not isinstance(within, dict) or rows_of_columns(within, n) is not None:
            return within
        if isinstance(document, list):
            return within  # scores by label
        document = document if isinstance(document, dict) else within
        texts = [name for name, part in document.items() if part != within[name]]
        sent = [name for name in texts if isinstance(document[name], str)]
        around = {name: part for name, part in within.items() if name not in sent}
        if around and len(sent) == 1 and not has_numbers(around):
            # An envelope: what is sent is in a string, and the rest is about it.
            status = next((v for k, v in document.items() if k.lower() == "statuscode"), 200)
            if isinstance(status, int) and status >= 400:
                raise AnswerError(f"answers an error: {_short(document)}", passing=True)
            inner = within[sent[0]]
            return self._only(inner, inner, n)
        if not within:
            raise AnswerError("answers nothing: {}")
        if len(within) != 1:
            if _UNFINISHED & {str(part).lower() for part in within.values()}:
                raise AnswerError(
                    f"answers a job that is not finished, {_short(document)}: {ASKED_FOR_LATER}"
                )
            first = next(iter(within), "prediction")
            path = next(iter(places_of_numbers(within)), f"$.{first}")
            raise AnswerError(
                f"answers several things, {_short(document)}: name the one to take, "
                f"such as answer '{shown(path)}'",
                path=path,
            )
        ((name, found),) = within.items()
        if name.lower() in _ERRORS:
            raise AnswerError(f"answers an error: {_short(found)}")
        if self._member not in {None, name}:
            raise AnswerError(f"answers {shown(name)} after {shown(self._member)}")
        self._member = name
        return found

    def _cells_of(self, rows: list[Any]) -> "np.ndarray[Any, Any]":
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
        words = [cell for cell in read[0] if isinstance(cell, str) and is_word(cell)]
        if words and widths != [1]:
            raise AnswerError(f"answers numbers and text together: {_short(rows[0])}; name one")
        cells = np.empty((len(read), widths[0]), dtype=object)
        for i, row in enumerate(read):
            cells[i] = row
        return cells


def compiled(path: str, what: str = "answer") -> Any:
    """Return a JSONPath as a query.

    Raises
    ------
    InputError
        If it is none; the message calls it ``what``.
    MissingExtraError
        If python-jsonpath is not installed.
    """
    jsonpath = import_extra("jsonpath", "answers of endpoints need python-jsonpath", "http")
    try:
        return jsonpath.compile(path)
    except Exception as error:  # noqa: BLE001 - whatever the library has for what is none
        reason = next(iter(f"{error}".splitlines()), "")
        raise InputError(f"{what} {shown(path)!r} is no JSONPath: {shown(reason)}") from None


def _lacks(query: Any, document: Any) -> bool:
    try:
        return not query.findall(document)
    except Exception:  # noqa: BLE001 - a library's, on whatever arrives
        return True


def _document(content: bytes, kind: str, n: int) -> Any:
    try:
        return document_of(content, kind, n)
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
        raise AnswerError(f"answers null in row {row}, where a number belongs", row=row)
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
    return (float(name) if is_plain(name) else np.inf, name)


def _short(value: Any) -> str:
    try:
        return shown(json.dumps(value)[:2000])
    except RecursionError:
        return "what is nested too deeply"
