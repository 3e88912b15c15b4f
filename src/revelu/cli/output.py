"""What a command prints: one JSON object, or a summary for people."""

import dataclasses
import json
import math
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from revelu._version import __version__
from revelu.report import sections
from revelu.report.verdicts import verdict
from revelu.status import Status

if TYPE_CHECKING:
    from revelu.recovery import Result

SCHEMA = 1

STYLES = {"good": "bold green", "warn": "bold yellow", "bad": "bold red"}

Rows = Sequence[tuple[str, str]]
"""Label and text of each line."""


def account_of(
    target: str, result: "Result", own: Mapping[str, Any], seconds: float, seed: int
) -> dict[str, Any]:
    """Return the JSON-able account of a result.

    Parameters
    ----------
    own : mapping
        What was found, besides what every account has.
    seconds : float
        Wall-clock time.
    """
    found: dict[str, Any] = {"schema": SCHEMA, "target": target}
    found["status"] = "finished" if result.status is None else result.status.value
    recovers = hasattr(result, "certificate")
    if recovers:
        found |= {"certified": result.status is Status.RECOVERED, "method": result.method}
    found |= {
        **own,
        "queries": result.ledger.n_queries,
        "rounds": result.ledger.n_rounds,
        "by_phase": dict(result.ledger.by_phase),
        "seconds": seconds,
        "seed": seed,
        "versions": versions(),
    }
    if recovers:
        certificate = getattr(result, "certificate", None)
        found["certificate"] = None if certificate is None else dataclasses.asdict(certificate)
    return found | {"evidence": list(result.evidence), "warnings": [], "outputs": []}


def print_json(value: Mapping[str, Any]) -> None:
    """Print one strictly valid JSON object on standard output; NaN and infinity as null."""
    sys.stdout.write(json.dumps(_plain(value), allow_nan=False, ensure_ascii=True) + "\n")
    sys.stdout.flush()


def print_account(
    command: str,
    account: Mapping[str, Any],
    *parts: sections.Table | Rows | None,
    verdict_only: bool = False,
) -> None:
    """Print an account for people: the verdict first, then what it rests on and what it cost.

    Parameters
    ----------
    account : mapping
    *parts : Table, rows or None
        What was found.
    verdict_only : bool
        Leave out all but the first line.
    """
    console = Console(highlight=False, soft_wrap=verdict_only)
    said = verdict(command, account)
    subject = account["target"] if "target" in account else ", ".join(account["files"])
    console.print(Text.assemble(f"{subject}: ", (said.words, STYLES[said.tone])))
    if verdict_only:
        return
    rows: list[tuple[str, str]] = []
    for part in parts:
        if isinstance(part, sections.Table):
            if rows:
                console.print(grid(rows))
            console.print(_drawn(part))
            rows = []
        else:
            rows += part or ()
    console.print(grid([*rows, *_ending(account)]))


def _drawn(table: sections.Table, prose: int = 40) -> Table:
    """Draw a table; a column of texts longer than ``prose`` is wrapped."""
    drawn = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading, *cells in zip(table.columns, *table.rows, strict=True):
        is_short = all(len(cell.text) <= prose for cell in cells)
        drawn.add_column(
            heading,
            justify="right" if cells[0].number else "left",
            no_wrap=is_short,
            overflow="fold",
        )
    for row in table.rows:
        drawn.add_row(*(Text(f"{c.text}{c.mark}", STYLES.get(c.tone, "")) for c in row))
    return drawn


def grid(rows: Rows) -> Table:
    """Return a table of labels and texts, which may hold brackets."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in rows:
        table.add_row(label, Text(text))
    return table


def _ending(account: Mapping[str, Any]) -> Rows:
    """What an account cost, what is to be said of it, and what was written."""
    rows = []
    if "queries" in account and "samples" not in account:
        rate = _rate(account)
        rows.append(("queries", f"{account['queries']:,} in {account['rounds']:,} rounds{rate}"))
        by_phase = ", ".join(f"{name} {n:,}" for name, n in account["by_phase"].items() if n)
        rows += [("by phase", by_phase)] if by_phase else []
    rows += [("time", f"{account['seconds']:.1f} s")] if "seconds" in account else []
    rows += [("note", text) for text in account.get("notes", ())]
    rows += [("evidence", text) for text in account.get("evidence", ())]
    rows += [("warning", text) for text in account.get("warnings", ())]
    mark = "" if account.get("certified", True) else " (not certified)"
    return rows + [("written", f"{path}{mark}") for path in account.get("outputs", ())]


def _rate(account: Mapping[str, Any]) -> str:
    """Queries per parameter, as every table counts them."""
    n = sum(account["by_phase"].get(phase, 0) for phase in ("recover", "repair", "polish"))
    if not n or not account.get("certified") or not account.get("parameters"):
        return ""
    return f", {n / account['parameters']:.2f} per parameter"


def versions() -> dict[str, str]:
    """Versions of what decides the digits."""
    parts = {name: metadata.version(name) for name in ("numpy", "scipy", "onnxruntime")}
    return {"revelu": __version__, "python": platform.python_version(), **parts}


def machine() -> dict[str, str | int | None]:
    """Return what of the machine decides the seconds."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
    }


def _plain(value: Any) -> Any:
    """Replace what JSON has no word for."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
