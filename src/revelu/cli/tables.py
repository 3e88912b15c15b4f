"""Tables and lines on standard output: as wide as a terminal, whole in a pipe, or as CSV."""

import csv
import io
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TypeAlias

from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from revelu.report.sections import Cell, Table

STYLES = {"good": "bold green", "warn": "bold yellow", "bad": "bold red"}

Rows: TypeAlias = Sequence[tuple[str, str]]
"""Label and text of each line."""

Part: TypeAlias = Text | Table | Rows | None

# Columns of what goes into a pipe, where nothing is to be wrapped.
_ENDLESS = sys.maxsize


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of texts."""
    return Table(caption, columns, [[Cell(text) for text in row] for row in rows])


def show(*parts: Part) -> None:
    """Print lines, tables, and labels with their texts, one below another.

    Into a pipe nothing is cut or wrapped, unless COLUMNS says how long a line may be, and no
    line ends in blanks.
    """
    console = Console(highlight=False)
    if console.is_terminal:
        for part in _drawn(parts, console.width):
            console.print(part)
        return
    width = console.width if "COLUMNS" in os.environ else _ENDLESS
    text = io.StringIO()
    plain = Console(highlight=False, width=width, file=text)
    for part in _drawn(parts, width):
        plain.print(part, soft_wrap=width == _ENDLESS)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines()))


def show_csv(*parts: Part) -> None:
    """Print tables as CSV, an empty line between two; without one, a line for each label."""
    tables = [part for part in parts if isinstance(part, Table)]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for i, found in enumerate(tables):
        if i:
            writer.writerow([])
        # What stands in small print below a cell has a column of its own.
        noted = [any(row[j].note for row in found.rows) for j in range(len(found.columns))]
        headings = zip(found.columns, noted, strict=True)
        writer.writerow(
            [h for heading, n in headings for h in (heading, f"{heading}: note")[: 1 + n]]
        )
        for row in found.rows:
            cells = zip(row, noted, strict=True)
            writer.writerow([t for cell, n in cells for t in (cell.text, cell.note)[: 1 + n]])
    if not tables:
        writer.writerow(["field", "value"])
        writer.writerows(row for part in parts if isinstance(part, list) for row in part)


def grid(rows: Rows) -> Grid:
    """Return a table of labels and texts, which may hold brackets."""
    drawn = Grid.grid(padding=(0, 2))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for label, text in rows:
        drawn.add_row(label, Text(text))
    return drawn


def _drawn(parts: Iterable[Part], width: int) -> list[RenderableType]:
    """Draw parts; rows that follow each other share their column."""
    drawn: list[RenderableType] = []
    rows: list[tuple[str, str]] = []
    for part in [*parts, Text()]:
        if not isinstance(part, Text | Table):
            rows += part or ()
            continue
        drawn += [grid(rows)] if rows else []
        rows = []
        drawn += [part] if isinstance(part, Text) else _lines(part, width)
    return drawn[:-1]


def _lines(found: Table, width: int, gap: int = 2) -> list[RenderableType]:
    """Draw a table; in a terminal too narrow for its words, a block a row."""
    texts = [[*found.columns], *([f"{c.text}{c.mark}" for c in row] for row in found.rows)]
    widths = _widths(texts, width - gap * (len(found.columns) - 1))
    if widths is None:
        blocks = [list(zip(found.columns, row, strict=True)) for row in texts[1:]]
        return [grid([*block, ("", "")]) for block in blocks]
    styles = [["dim"] * len(found.columns)]
    styles += [[STYLES.get(cell.tone, "") for cell in row] for row in found.rows]
    right = [cell.number for cell in found.rows[0]] if found.rows else [False] * len(widths)
    drawn: list[RenderableType] = []
    for row, tones in zip(texts, styles, strict=True):
        cells = [_wrapped(text, w) for text, w in zip(row, widths, strict=True)]
        for line in zip_longest(*cells, fillvalue=""):
            fields = zip(line, tones, widths, right, strict=True)
            padded = [(text.rjust(w) if r else text.ljust(w), tone) for text, tone, w, r in fields]
            drawn.append(Text(" " * gap).join(Text(*field) for field in padded))
    return drawn


def _widths(texts: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Share the room; None if there is too little for the longest words.

    A column gives way whose cells stay lowest then, the widest of those.
    """
    columns = list(zip(*texts, strict=True))
    lines = [[line for text in column for line in text.split("\n")] for column in columns]
    widths = [max(map(len, column)) for column in lines]
    least = [max((len(w) for line in column for w in line.split()), default=0) for column in lines]
    if sum(least) > room:
        return None

    def height(i: int) -> int:
        return max(len(_wrapped(text, widths[i] - 1)) for text in columns[i])

    while sum(widths) > room:
        able = [i for i, width in enumerate(widths) if width > least[i]]
        widths[min(able, key=lambda i: (height(i), -widths[i]))] -= 1
    return widths


def _wrapped(text: str, width: int) -> list[str]:
    lines = [textwrap.wrap(line, width, break_long_words=False) for line in text.split("\n")]
    return [part for line in lines for part in line or [""]]
