"""Where tables are kept: between their marks in README.md, and as JSON in results/."""

import json
import re
from pathlib import Path
from typing import Any

from revelu.cli.output import machine, versions

PAGE = Path(__file__).parent / "README.md"
RESULTS = Path(__file__).parent / "results"
SCHEMA = 1


def keep(mark: str, text: str) -> None:
    """Replace what stands between ``<!-- mark -->`` and ``<!-- /mark -->``."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, rest = PAGE.read_text(encoding="utf-8").split(start)
    PAGE.write_text(f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
    RESULTS.mkdir(exist_ok=True)
    record(RESULTS / f"{mark}.json", mark, text)


def record(path: Path, mark: str, text: str) -> None:
    """Write the tables of ``text`` as JSON, with what measured them."""
    content = {
        "schema": SCHEMA,
        "table": mark,
        "machine": machine(),
        "versions": versions(),
        "tables": tables(text),
        "notes": notes(text),
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def present(mark: str, text: str, *, write: bool, results: Path | None) -> None:
    """Print a table; keep it if it is to be kept, and record it where a caller wants it."""
    print(f"\n{text}")
    if write:
        keep(mark, text)
    if results is not None:
        record(results, mark, text)


def tables(text: str) -> list[dict[str, Any]]:
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


def notes(text: str) -> str:
    """Return what a text says beside its tables."""
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
