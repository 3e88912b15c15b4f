"""Where tables are kept: between their marks in README.md."""

from pathlib import Path

PAGE = Path(__file__).parent / "README.md"


def keep(mark: str, text: str) -> None:
    """Replace what stands between ``<!-- mark -->`` and ``<!-- /mark -->``."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, rest = PAGE.read_text(encoding="utf-8").split(start)
    PAGE.write_text(f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")


def keep_rows(mark: str, text: str) -> None:
    """Replace the rows of a kept table that begin with the same cell; others stay."""
    new = {line.split("|")[1]: line for line in text.splitlines()}
    start, end = f"<!-- {mark} -->\n", f"\n<!-- /{mark} -->"
    kept = PAGE.read_text(encoding="utf-8").split(start)[1].split(end)[0]
    keep(mark, "\n".join(new.get(line.split("|")[1], line) for line in kept.splitlines()))
