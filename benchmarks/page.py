"""Where tables are kept, between their marks in README.md, and runs, until they are one."""

import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "README.md"


def keep(mark: str, text: str) -> None:
    """Replace what stands between ``<!-- mark -->`` and ``<!-- /mark -->``."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, rest = PAGE.read_text(encoding="utf-8").split(start)
    PAGE.write_text(f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")


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
