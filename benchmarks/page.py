"""Where tables are kept, on their pages and as JSON in results/, and runs until they are one.

A page of pages/ has the prose by hand and, between ``<!-- mark -->`` and ``<!-- /mark -->``, what
was measured: ``--write`` replaces that part alone.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from revelu.cli.output import machine, versions

PAGES = Path(__file__).parent / "pages"
RESULTS = Path(__file__).parent / "results"
SCHEMA = 1


def page_of(mark: str) -> Path:
    """Find the page that a table is kept on.

    Raises
    ------
    LookupError
        If no page has the mark, or several have it.
    """
    found = [path for path in PAGES.glob("*.md") if f"<!-- {mark} -->" in _read(path)]
    if len(found) != 1:
        raise LookupError(f"{len(found)} pages of {PAGES} have <!-- {mark} -->")
    return found[0]


def kept(mark: str) -> str:
    """Return what is kept under a mark."""
    return _read(page_of(mark)).split(f"<!-- {mark} -->\n")[1].split(f"\n<!-- /{mark} -->")[0]


def keep(mark: str, text: str) -> None:
    """Replace what is kept under a mark, on its page and in results/."""
    page, old = page_of(mark), kept(mark)
    start, end = f"<!-- {mark} -->\n", f"\n<!-- /{mark} -->"
    page.write_text(
        _read(page).replace(f"{start}{old}{end}", f"{start}{text}{end}"), encoding="utf-8"
    )
    RESULTS.mkdir(exist_ok=True)
    write_tables(RESULTS / f"{mark}.json", mark, text)


def keep_rows(mark: str, text: str) -> None:
    """Replace the rows of a kept table that begin with the same cell; others stay."""
    new = {_first_cell(line): line for line in text.splitlines()}
    lines = (new.get(_first_cell(line), line) for line in kept(mark).splitlines())
    keep(mark, "\n".join(lines))


def _first_cell(line: str) -> str:
    """The first cell of a table's row; of other lines nothing."""
    return line.partition("|")[2].partition("|")[0]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def write_tables(path: Path, mark: str, text: str) -> None:
    """Write the tables of ``text`` as JSON, with what measured them."""
    content = {
        "schema": SCHEMA,
        "table": mark,
        "machine": machine(),
        "versions": versions(),
        "tables": tables_of(text),
        "notes": notes_of(text),
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def present(mark: str, text: str, *, write: bool, tables: Path | None) -> None:
    """Print a table; keep it if it is to be kept, and write it as JSON where that is wanted."""
    print(f"\n{text}")
    if write:
        keep(mark, text)
    if tables is not None:
        write_tables(tables, mark, text)


def tables_of(text: str) -> list[dict[str, Any]]:
    """Read the Markdown tables of a text: the columns' names, and the cells of each row."""
    found: list[dict[str, Any]] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
        if not inside:
            found.append({"columns": cells, "rows": []})
        elif not set("".join(cells)) <= set("-: "):
            found[-1]["rows"].append(cells)
        inside = True
    return found


def notes_of(text: str) -> str:
    """Return what a text says beside its tables and pictures."""
    lines = [line for line in text.splitlines() if not line.startswith(("|", "!["))]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def records(results: Path | None) -> list[Any]:
    """What earlier runs have left in a file, one JSON value a line."""
    if results is None or not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def record(results: Path | None, value: Any) -> None:
    """Add a value to that file, so that a run can stop and go on."""
    if results is not None:
        with results.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(value) + "\n")


def once(results: Path | None, row: str, seed: int, run: Callable[[int], Any]) -> Any:
    """What an earlier run of this row and seed has left; else run it, print and record it."""
    for entry in records(results):
        if (entry["row"], entry["seed"]) == (row, seed):
            return entry["found"]
    found = run(seed)
    print(row, seed, found, flush=True)
    record(results, {"row": row, "seed": seed, "found": found})
    return found
