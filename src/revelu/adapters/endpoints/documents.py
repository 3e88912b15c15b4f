"""Bodies of answers as documents: JSON, lines of JSON, CSV and plain text."""

import csv
import io
import re
from typing import Any

from revelu.adapters.endpoints.cells import is_plain
from revelu.adapters.json_text import read_document

# A line of CSV of numbers without a point.
_WITHOUT_POINT = re.compile(
    r"[+-]?\d+(e[+-]?\d+)?(,[+-]?\d+(e[+-]?\d+)?)+", re.IGNORECASE | re.ASCII
)
_TABLES = re.compile(r"csv|tab-separated", re.IGNORECASE)
_LINES = re.compile(r"ndjson|jsonl|json-?lines|json-seq", re.IGNORECASE)


def document_of(content: bytes, kind: str, n: int) -> Any:
    """Return what a body holds; its Content-Type decides, where that says more than JSON.

    Lines of JSON are a list of what each holds.  Of CSV numbers are numbers and empty cells None;
    a header makes objects of its lines, and a single column, or a single line, is a list of cells.
    Where no number has a point, a comma may come before decimals: cells stay the texts they are.

    Parameters
    ----------
    content : bytes
    kind : str
        The Content-Type; empty where none was sent.
    n : int
        Rows that were asked for: a table with a line more has a header.

    Raises
    ------
    ValueError, RecursionError
        If it is no such body.
    """
    text = content.decode("utf-8-sig", errors="replace").strip()
    if _LINES.search(kind):
        return [read_document(line.encode()) for line in _lines(text)]
    if _TABLES.search(kind) and text[:1] not in {"", "{", "[", "<"}:
        return _table(text, n)
    try:
        return read_document(content)
    except ValueError:
        lines = _lines(text)
        # Lines of JSON are sent as JSON, too, and as text.
        if len(lines) > 1 and (len(lines) == n or lines[0][:1] in {"{", "["}):
            try:
                return [read_document(line.encode()) for line in lines]
            except ValueError:
                pass
        if "text/plain" not in kind.lower() or len(lines) != n:
            raise
        return lines[0] if n == 1 else lines


def _lines(text: str) -> list[str]:
    # Records of application/json-seq begin with a control character.
    return [line.strip("\x1e \t\r") for line in text.split("\n") if line.strip("\x1e \t\r")]


def _table(text: str, n: int) -> Any:
    first = text.partition("\n")[0]
    delimiter = next((sign for sign in ";\t" if sign in first), ",")
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    lines = text.split()
    # Numbers are no names of columns, nor are the names of classes those of as many rows.
    has_header = len(rows) == n + 1 and not any(map(is_plain, rows[0]))
    header, rows = (rows[0], rows[1:]) if has_header else ([], rows)
    may_be_decimals = not header and delimiter == "," and all(map(_WITHOUT_POINT.fullmatch, lines))
    cells = rows if may_be_decimals else [[_cell(text) for text in row] for row in rows]
    if header and any(len(row) != len(header) for row in rows):
        raise ValueError("a line of CSV is not as long as its header")
    if len(header) > 1:
        return [dict(zip(header, row, strict=True)) for row in cells]
    if len(cells) == 1:
        return cells[0]
    return [row[0] if len(row) == 1 else row for row in cells]


def _cell(text: str) -> Any:
    text = text.strip()
    return float(text) if is_plain(text) else text or None
