"""What a command prints: one JSON object, or a summary for people."""

import json
import os
import platform
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from revelu._version import __version__
from revelu.cli.tables import show, show_csv
from revelu.report.summary import ending
from revelu.report.terminal import STYLES, Part
from revelu.report.verdicts import verdict
from revelu.shown import SCHEMA, plain

if TYPE_CHECKING:
    from revelu.recovery import Result


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
    return {
        "schema": SCHEMA,
        "target": target,
        **result.to_dict(),
        **own,
        "seconds": seconds,
        "seed": seed,
        "versions": versions(),
        "warnings": [],
        "outputs": [],
    }


def print_json(value: Mapping[str, Any]) -> None:
    """Print one strictly valid JSON object on standard output; NaN and infinity as null."""
    sys.stdout.write(json.dumps(plain(value), allow_nan=False, ensure_ascii=True) + "\n")
    sys.stdout.flush()


def print_account(
    command: str,
    account: Mapping[str, Any],
    *parts: Part,
    verdict_only: bool = False,
) -> None:
    """Print an account for people: the verdict first, then what it rests on and what it cost.

    Parameters
    ----------
    account : mapping
    *parts : Text, Table, rows or None
        What was found.
    verdict_only : bool
        Leave out all but the first line.
    """
    said = verdict(command, account)
    # What was read is held against a target that it names besides.
    subject = account.get("file") or account.get("target") or ", ".join(account["files"])
    first = Text.assemble(f"{subject}: ", (said.words, STYLES[said.tone]))
    show(*((first,) if verdict_only else (first, *parts, ending(account))))


def print_csv(command: str, account: Mapping[str, Any], *parts: Part) -> None:
    """Print the tables of an account as CSV; without one, a line a figure, the verdict first."""
    words = verdict(command, account).words
    show_csv([("verdict", words)], *parts, ending(account))


def versions() -> dict[str, str]:
    """Versions of what decides the digits."""
    from importlib import metadata

    parts = {name: metadata.version(name) for name in ("numpy", "scipy", "onnxruntime")}
    return {"revelu": __version__, "python": platform.python_version(), **parts}


def machine() -> dict[str, str | int | None]:
    """Return what of the machine decides the seconds."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
    }
