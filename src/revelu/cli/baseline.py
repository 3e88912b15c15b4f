"""``revelu audit --baseline --fail-on``: what an audit is compared with, and what fails it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from revelu.errors import FormatError

FAILURES = ("weights", "function", "span", "worse")

_NEEDED = {"defence": str, "recovered": str, "cut": bool}


def read_baseline(path: Path) -> list[dict[str, Any]]:
    """Read the rows of an audit that was printed as JSON.

    Raises
    ------
    FormatError
        If it is none.
    """
    from revelu.tasks.audit.rows import ORDER

    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        for row in rows:
            known = all(isinstance(row[name], kind) for name, kind in _NEEDED.items())
            if not known or row["recovered"] not in ORDER:
                raise ValueError("a row is none")
            if not isinstance(row["queries"], int | None):
                raise TypeError("queries are no number")
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        words = " ".join(f"{error}".split())
        raise FormatError(f"{path}: not what `revelu audit --json` prints: {words}") from None
    return list(rows)


def failed(account: Mapping[str, Any], name: str) -> bool | None:
    """Whether an audit fails as ``--fail-on`` says; None where it was cut too short to tell."""
    from revelu.tasks.audit.changes import exceeds

    if name != "worse":
        return exceeds(account["rows"], name)
    ways = {change["direction"] for change in account["changes"] or ()}
    return True if "worse" in ways else None if "unknown" in ways or account["missing"] else False
