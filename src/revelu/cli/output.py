"""What a command prints: one JSON object, or a summary for people."""

import dataclasses
import json
import math
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from revelu._version import __version__
from revelu.network import Network
from revelu.recovery import Recovery, Status
from revelu.report.verdicts import VERDICTS

SCHEMA = 1

STYLES = {"good": "bold green", "warn": "bold yellow", "bad": "bold red"}


@dataclass(frozen=True)
class Run:
    """A finished extraction and what surrounds it.

    Attributes
    ----------
    target : str
    recovery : Recovery
    seconds : float
        Wall-clock time of the extraction.
    seed : int
    outputs : sequence of str
        Files written.
    warnings : sequence of str
        The recovery's and the command's own.
    """

    target: str
    recovery: Recovery
    seconds: float
    seed: int
    outputs: Sequence[str]
    warnings: Sequence[str]


def document(run: Run) -> dict[str, Any]:
    """Return the JSON-able account of a run."""
    recovery = run.recovery
    network, certificate = recovery.network, recovery.certificate
    return {
        "schema": SCHEMA,
        "target": run.target,
        "status": recovery.status.value,
        "certified": recovery.status is Status.RECOVERED,
        "method": recovery.method,
        "architecture": None if network is None else list(network.architecture),
        "parameters": None if network is None else network.n_parameters,
        "softmax": bool(recovery.details.get("probabilities", False)),
        "queries": recovery.ledger.n_queries,
        "rounds": recovery.ledger.n_rounds,
        "by_phase": dict(recovery.ledger.by_phase),
        "seconds": run.seconds,
        "seed": run.seed,
        "versions": versions(),
        "certificate": None if certificate is None else dataclasses.asdict(certificate),
        "evidence": list(recovery.evidence),
        "warnings": list(run.warnings),
        "outputs": list(run.outputs),
    }


def failure_document(status: str, message: str) -> dict[str, Any]:
    """Return the JSON-able account of an error or an interrupt."""
    return {"schema": SCHEMA, "status": status, "error": message}


def print_json(value: Mapping[str, Any]) -> None:
    """Print one strictly valid JSON object on standard output; NaN and infinity as null."""
    sys.stdout.write(json.dumps(_plain(value), allow_nan=False, ensure_ascii=True) + "\n")
    sys.stdout.flush()


def print_summary(
    run: Run, *, verdict_only: bool = False, verdict: tuple[str, str] | None = None
) -> None:
    """Print a run for people: the verdict first, then what it rests on and what it cost.

    Parameters
    ----------
    run : Run
    verdict_only : bool
        Leave out all but the first line.
    verdict : (str, str), optional
        Words and tone of a command that has its own.
    """
    console = Console(highlight=False, soft_wrap=verdict_only)
    words, tone = verdict or VERDICTS[run.recovery.status]
    if (
        verdict is None
        and run.recovery.status is Status.UNVERIFIED
        and run.recovery.certificate is None
    ):
        words = "not recovered"
    console.print(Text.assemble(f"{run.target}: ", (words, STYLES[tone])))
    if verdict_only:
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in _rows(run):
        table.add_row(label, Text(text))
    console.print(table)


def _rows(run: Run) -> list[tuple[str, str]]:
    """Label and text of each line of the summary."""
    recovery, ledger = run.recovery, run.recovery.ledger
    rows = []
    if (network := recovery.network) is not None:
        rows.append(("network", describe(network, recovery.status)))
    if (certificate := recovery.certificate) is not None:
        rows.append(("certificate", certificate.statement))
    if certificate is not None and certificate.n_checks:
        on = "that fresh check" if certificate.n_checks == 1 else "those fresh checks"
        # Answers that lack digits err themselves.
        own = ", the target's own errors included" if recovery.method == "fit" else ""
        rows.append(("largest error", f"{certificate.max_abs_error:.2g} on {on}{own}"))
    rows.append(("queries", f"{ledger.n_queries:,} in {ledger.n_rounds:,} rounds{_rate(recovery)}"))
    by_phase = ", ".join(f"{name} {n:,}" for name, n in ledger.by_phase.items() if n)
    rows += [("by phase", by_phase)] if by_phase else []
    rows.append(("time", f"{run.seconds:.1f} s"))
    rows += [("evidence", text) for text in recovery.evidence]
    rows += [("warning", text) for text in run.warnings]
    mark = "" if recovery.status is Status.RECOVERED else " (not certified)"
    rows += [("written", f"{path}{mark}") for path in run.outputs]
    return rows


def describe(network: Network, status: Status) -> str:
    """Return widths, and whether there is a skip; in words where no neuron is hidden."""
    if any(network.architecture[1:-1]):
        skip = " with an affine skip" if network.skip is not None else ""
        shape = "-".join(map(str, network.architecture)) + skip
    elif status is Status.RECOVERED:
        shape = "affine (0 hidden neurons)"
    else:
        yet = " yet" if status is Status.BUDGET_EXHAUSTED else ""
        return f"nothing recovered{yet}: an affine map without a hidden neuron"
    return f"{shape}, {network.n_parameters:,} parameters"


def _rate(recovery: Recovery) -> str:
    """Queries per parameter, as every table counts them."""
    if recovery.network is None or recovery.status is not Status.RECOVERED:
        return ""
    return f", {recovery.ledger.n_recovery / recovery.network.n_parameters:.2f} per parameter"


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
