"""Parts of an account as a terminal shows them: lines, tables, and labels with their texts."""

import io
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TypeAlias

from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from revelu.report.sections import Table

STYLES = {"good": "bold green", "warn": "bold yellow", "bad": "bold red"}

Rows: TypeAlias = Sequence[tuple[str, str]]
"""Label and text of each line."""

Part: TypeAlias = Text | Table | Rows | None

# Columns of what goes into a pipe, where nothing is to be wrapped.
ENDLESS = sys.maxsize


def plain_text(parts: Iterable[Part], width: int = ENDLESS) -> str:
    """Return parts one below another, without colours, and no line that ends in blanks."""
    text = io.StringIO()
    console = Console(highlight=False, width=width, file=text, no_color=True)
    for part in drawn(parts, width):
        console.print(part, soft_wrap=width == ENDLESS)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def grid(rows: Rows) -> Grid:
    """Return a table of labels and texts, which may hold brackets."""
    drawn = Grid.grid(padding=(0, 2))
    drawn.add_column(style="dim", no_wrap=True)
    drawn.add_column(overflow="fold")
    for label, text in rows:
        drawn.add_row(label, Text(text))
    return drawn


def drawn(parts: Iterable[Part], width: int) -> list[RenderableType]:
    """Draw parts for lines so wide; rows that follow each other share their column."""
    found: list[RenderableType] = []
    rows: list[tuple[str, str]] = []
    for part in [*parts, Text()]:
        if not isinstance(part, Text | Table):
            rows += part or ()
            continue
        found += [grid(rows)] if rows else []
        rows = []
        found += [part] if isinstance(part, Text) else _lines(part, width)
    return found[:-1]


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
