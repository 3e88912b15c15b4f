"""Templates: a request in JSON with places for rows.

{"instances": $rows}                all rows of a batch, a list of lists
{"instances": $objects(age, score)} all rows of a batch, a list of objects with these members
{"rows": $objects(age=40, score)}   of which one stays what is said
{"features": $row}                  one row a request, a list
{"age": $row[0], "income": $row[1]} its numbers one by one
{"features": "$row"}                a text: the numbers with commas between them
"""

import json
import re
from copy import copy
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np

from revelu.adapters.json_text import write_numbers
from revelu.errors import InputError
from revelu.types import BoolArray, FloatArray

# A place for rows; in a string it has no quotes around it.
_PLACE = re.compile(r"\$(?P<name>\w+)(?:\[(?P<column>\d{1,6})\])?")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_OBJECTS = re.compile(r'\$objects\(((?:[^()"]|"(?:[^"\\]|\\.)*")*)\)')
_FIELD = re.compile(
    r'\s*("(?:[^"\\]|\\.)*"|[^",=]+?)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^",]+?)\s*)?(?:,|$)'
)

_EXAMPLE = """'{"features": $rows}', or $row for one row a request"""


@dataclass(frozen=True)
class RowsPlace:
    """A place for rows in a template.

    Attributes
    ----------
    whole : bool
        ``$rows``: all rows of a batch.
    column : int or None
        ``$row[I]``: the number of one column alone.
    is_text : bool
        Inside a string.
    fields : tuple of (str, str or None)
        ``$objects(A, B=1)``: members in JSON, and what those hold that stay what is said.
    """

    whole: bool
    column: int | None = None
    is_text: bool = False
    fields: tuple[tuple[str, str | None], ...] = ()

    @property
    def n_fields(self) -> int:
        """Members that are columns."""
        return sum(value is None for _, value in self.fields)

    def filled(self, X: FloatArray, whole: frozenset[int] = frozenset()) -> str:
        """Return what stands here for rows (n, d): their numbers read back are the same.

        Parameters
        ----------
        whole : frozenset of int
            Columns in which whole numbers have no fraction.
        """
        rows = _written(X, whole) if whole else X.tolist() if self.fields else X
        if self.fields:
            return f"[{','.join(self._object(row) for row in rows)}]"
        if self.whole:
            return write_numbers(rows)
        (row,) = rows
        if self.column is not None:
            return repr(row[self.column] if whole else float(row[self.column]))
        numbers = write_numbers(row)
        return numbers[1:-1] if self.is_text else numbers

    def _object(self, row: list[int | float]) -> str:
        numbers = iter(row)
        members = [f"{k}:{next(numbers)!r}" if v is None else f"{k}:{v}" for k, v in self.fields]
        return f"{{{','.join(members)}}}"


class Template:
    """A request in JSON with places for rows.

    Parameters
    ----------
    text : str
    method : {"POST", "GET"}
        A GET has the members of its object as parameters of the address.

    Raises
    ------
    InputError
        If it has no place for rows, or is no JSON with numbers in those places.

    Attributes
    ----------
    one_by_one : bool
        Whether it asks for one row.
    n_least : int
        Fewest numbers of a row.
    n_columns : int or None
        Numbers of a row, where each has a place.
    names : tuple of str
        Of the numbers of a row, where they have some.
    """

    def __init__(self, text: str, method: str = "POST") -> None:
        self.text, self.method = text, method
        self._whole: frozenset[int] = frozenset()
        self._parts = list(_parts(text))
        self.places = [part for part in self._parts if isinstance(part, RowsPlace)]
        if not self.places:
            raise InputError(f"the request has no place for rows: write {_EXAMPLE}")
        if len({place.whole for place in self.places}) > 1:
            raise InputError("the request has both $rows and $row: write one of them")
        self.one_by_one = not self.places[0].whole
        columns = {place.column for place in self.places}
        named = {column for column in columns if column is not None}
        sizes = {place.n_fields for place in self.places if place.fields}
        if len(sizes) > 1 or 0 in sizes:
            raise InputError("$objects needs names of columns, everywhere as many")
        fields = next((place.fields for place in self.places if place.fields), ())
        self.names = tuple(str(json.loads(name)) for name, value in fields if value is None)
        self.n_least = next(iter(sizes), 1 + max(named, default=0))
        self.n_columns = self.n_least if sizes or None not in columns else None
        try:
            example = json.loads(self._text(np.zeros((1, self.n_least))))
        except ValueError as error:
            raise InputError(f"the request is no JSON once rows are in it: {error}") from None
        if method == "GET" and not isinstance(example, dict):
            raise InputError("a GET takes a JSON object: its members are the parameters")
        if self.n_columns is not None and not sizes and len(named) < self.n_columns:
            left_out = next(i for i in range(self.n_columns) if i not in named)
            raise InputError(f"the request leaves out $row[{left_out}]")

    def with_whole(self, columns: BoolArray) -> "Template":
        """Return the template with whole numbers in some columns (d,) written without a fraction.

        A server may take ``3`` for a whole number, and ``3.0`` for none.
        """
        other = copy(self)
        other._whole = frozenset(np.flatnonzero(columns).tolist())  # noqa: SLF001 - its own class
        return other

    def filled(self, X: FloatArray) -> tuple[str, bytes]:
        """Return the query of the address and the body that ask for the rows of ``X (n, d)``."""
        text = self._text(X)
        if self.method != "GET":
            return "", text.encode()
        members = json.loads(text).items()
        return urlencode([(k, v if isinstance(v, str) else _compact(v)) for k, v in members]), b""

    def _text(self, X: FloatArray) -> str:
        parts = self._parts
        return "".join(p.filled(X, self._whole) if isinstance(p, RowsPlace) else p for p in parts)


def _written(X: FloatArray, whole: frozenset[int]) -> list[list[int | float]]:
    """Rows with whole numbers in some columns."""
    return [
        [int(x) if j in whole and x.is_integer() else x for j, x in enumerate(row)]
        for row in X.tolist()
    ]


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _parts(text: str) -> list[str | RowsPlace]:
    """Cut a template into what stays and the places for rows."""
    parts: list[str | RowsPlace] = []
    end = 0
    for found in re.finditer(f"{_OBJECTS.pattern}|{_STRING.pattern}", text):
        parts += _places(text[end : found.start()], is_text=False)
        is_text = found[1] is None
        parts += _places(found[0], is_text=True) if is_text else [_objects(found[1])]
        end = found.end()
    return [*parts, *_places(text[end:], is_text=False)]


def _objects(text: str) -> RowsPlace:
    """A place for rows as objects, by what is in its parentheses."""
    fields: list[tuple[str, str | None]] = []
    end = 0
    while end < len(text) and (found := _FIELD.match(text, end)):
        name = found[1] if found[1].startswith('"') else json.dumps(found[1])
        fields.append((name, found[2]))
        end = found.end()
    if not fields or end < len(text) or len({name for name, _ in fields}) < len(fields):
        raise InputError(f"$objects({text}) is no list of names: write $objects(age, income)")
    return RowsPlace(whole=True, fields=tuple(fields))


def _places(text: str, *, is_text: bool) -> list[str | RowsPlace]:
    parts: list[str | RowsPlace] = []
    end = 0
    for found in _PLACE.finditer(text):
        name, column = found["name"], found["column"]
        if name not in {"row", "rows"}:
            if is_text:
                continue
            raise InputError(
                f"the request has a place ${name}: there are $rows, $objects(A), $row and $row[I]"
            )
        whole = name == "rows"
        if whole and (is_text or column):
            wrong = "in quotes" if is_text else "with a column"
            raise InputError(f"the request has $rows {wrong}: write {_EXAMPLE}")
        parts += [text[end : found.start()]]
        parts += [RowsPlace(whole, None if column is None else int(column), is_text)]
        end = found.end()
    return [*parts, text[end:]]
