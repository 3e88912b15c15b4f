"""Shapes of documents: JSON in strings, columns, and scores that are sorted by size."""

import json
from typing import Any


def opened(value: Any, n: int, *, is_within: bool = False) -> Any:
    """Return a document with what is in its strings, and with scores by label.

    A list of labels and scores is sorted by score: the first number is that of another class from
    row to row.  By label it is an object, as are scores beside a list of their labels.

    Parameters
    ----------
    value : object
        As JSON is read.
    n : int
        Rows that were asked for: ``n`` labels are one a row, but within a row.
    is_within : bool
        Whether it is within a list that is as long as there are rows.
    """
    if isinstance(value, str):
        inner = json_in(value)
        return value if inner is None else opened(inner, n, is_within=is_within)
    if isinstance(value, list):
        if not value or isinstance(value[0], int | float):
            return value
        if (scores := by_label(value)) is not None and (is_within or len(value) != n):
            return scores
        is_within = is_within or len(value) == n
        return [opened(part, n, is_within=is_within) for part in value]
    if isinstance(value, dict):
        found = {name: opened(part, n, is_within=is_within) for name, part in value.items()}
        return _beside_labels(found, 0 if is_within else n)
    return value


def json_in(text: str) -> Any:
    """The list or object that a string holds; None where it holds none."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def has_numbers(value: Any) -> bool:
    """Whether a value has a number that may be an answer: a fraction, or one in a list."""
    if isinstance(value, dict):
        return any(map(has_numbers, value.values()))
    if isinstance(value, list):
        return any(type(part) in {int, float} or has_numbers(part) for part in value)
    return isinstance(value, float)


def by_label(items: list[Any]) -> dict[str, float] | None:
    """Scores by label of a list of objects with a text and a number each; None of others."""
    found: dict[str, float] = {}
    for item in items:
        if not isinstance(item, dict) or item.keys() != items[0].keys():
            return None
        texts = [part for part in item.values() if isinstance(part, str)]
        numbers = [part for part in item.values() if type(part) in {int, float}]
        if len(texts) != 1 or len(numbers) != 1:
            return None
        found[texts[0]] = numbers[0]
    return found if len(found) == len(items) > 1 else None


def _beside_labels(members: dict[str, Any], n: int) -> dict[str, Any]:
    """Members of which scores are by label, where one list is of labels and another of scores."""
    lists = {name: part for name, part in members.items() if isinstance(part, list) and part}
    labels = [part for part in lists.values() if {type(text) for text in part} == {str}]
    scores = [name for name, part in lists.items() if {type(x) for x in part} <= {int, float}]
    if len(labels) != 1 or len(scores) != 1:
        return members
    (texts,), (name,) = labels, scores
    if not len(texts) == len(set(texts)) == len(lists[name]) > 1 or len(texts) == n:
        return members
    return members | {name: dict(zip(texts, lists[name], strict=True))}


def rows_of_columns(value: Any, n: int) -> list[Any] | None:
    """Rows of an object of columns, each as long as there are rows; None of others.

    Parameters
    ----------
    value : object
        ``{"low": [...], "top": [...]}``, or ``{"low": {"0": ...}}`` as tables are written.
    """
    if not isinstance(value, dict) or not value:
        return None
    if _is_numbered(value, n):
        parts = [value[f"{i}"] for i in range(n)]
        return None if any(isinstance(part, dict | list) for part in parts) else parts
    if len(value) == 1:
        return None  # a single member is that of rows, and none of their objects
    columns = {}
    for name, part in value.items():
        column = [part[f"{i}"] for i in range(n)] if _is_numbered(part, n) else part
        if not isinstance(column, list) or len(column) != n:
            return None
        if not all(_is_cell(cell) for cell in column):
            return None
        columns[name] = column
    return [{name: column[i] for name, column in columns.items()} for i in range(n)]


def _is_cell(value: Any) -> bool:
    """Whether a value is one that a column of numbers has; names are another thing."""
    if isinstance(value, str):
        return any(char.isdecimal() for char in value)
    return value is None or isinstance(value, int | float)


def _is_numbered(value: Any, n: int) -> bool:
    return isinstance(value, dict) and value.keys() == {f"{i}" for i in range(n)}
