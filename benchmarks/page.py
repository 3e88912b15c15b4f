"""Where tables are kept: between their marks in README.md."""

from pathlib import Path

PAGE = Path(__file__).parent / "README.md"


def keep(mark: str, text: str) -> None:
    """Replace what stands between ``<!-- mark -->`` and ``<!-- /mark -->``."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, rest = PAGE.read_text(encoding="utf-8").split(start)
    PAGE.write_text(f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
