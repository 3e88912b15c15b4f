"""Tables and lines on standard output: as wide as a terminal, whole in a pipe, or as CSV."""

import csv
import os
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console

from revelu.report.sections import Cell, Table
from revelu.report.terminal import ENDLESS, Part, drawn, plain_text


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
        for part in drawn(parts, console.width):
            console.print(part)
        return
    text = plain_text(parts, console.width if "COLUMNS" in os.environ else ENDLESS)
    sys.stdout.write(f"{text}\n" if text else "")


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
