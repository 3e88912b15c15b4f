"""``revelu learn --halfspaces``: rules behind labels, with the errors of each."""

import dataclasses
import time
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.failures import failures
from revelu.cli.logs import logs
from revelu.cli.output import SCHEMA, print_json, versions
from revelu.cli.progress import ProgressLine
from revelu.cli.reporting import Reporting
from revelu.errors import FormatError, InputError
from revelu.recovery import HalfspaceRecovery, Status

# Halfspaces shown to people; files and JSON have all.
_MOST_SHOWN = 12


def learn_halfspaces(
    data: Path,
    outputs: list[Path],
    combine: str,
    n_halfspaces: int | None,
    seed: int,
    *,
    report: Path | None,
    as_json: bool,
    verbose: int,
    quiet: bool,
) -> NoReturn:
    """Recover halfspaces from a file of labelled samples, write and print them, and exit."""
    line = ProgressLine(quiet=quiet or verbose > 0, counts=False)
    with logs(verbose), failures(as_json=as_json):
        from revelu.tasks.rules.halfspaces import recover_halfspaces

        reporting = Reporting("learn", report, data, *outputs)
        _check_outputs(outputs, data)
        started = time.monotonic()
        with line:
            found = recover_halfspaces(
                X=data,
                combine=combine,
                seed=seed,
                n_halfspaces=n_halfspaces,
                progress=line,
            )
        seconds = time.monotonic() - started
        written, unwritten = _write(found, outputs)
        account = document(f"{data}", found, seconds, seed)
        account |= {"warnings": unwritten, "outputs": written}
        account = reporting.finished(account)
        if as_json:
            print_json(account)
        else:
            print_halfspaces(account, verdict_only=quiet)
    raise typer.Exit(ExitCode.USAGE if unwritten else of_status(found.status))


def _check_outputs(outputs: list[Path], data: Path) -> None:
    from revelu import formats

    for path in outputs:
        if path.suffix.lower() != ".npz":
            raise FormatError(f"{path}: halfspaces are written to an .npz archive")
        if path.resolve() == data.resolve():
            raise InputError(f"{path}: holds the samples; write to another file")
        formats.check_writable(path)


def _write(found: HalfspaceRecovery, outputs: list[Path]) -> tuple[list[str], list[str]]:
    written: list[str] = []
    unwritten: list[str] = []
    for path in outputs:
        try:
            found.save(path)
            written.append(f"{path}")
        except FormatError as error:
            unwritten.append(f"{error}")
    return written, unwritten


def document(target: str, found: HalfspaceRecovery, seconds: float, seed: int) -> dict[str, Any]:
    """Return the JSON-able account of halfspaces."""
    certificate = found.certificate
    return {
        "schema": SCHEMA,
        "target": target,
        "status": found.status.value,
        "certified": found.status is Status.RECOVERED,
        "method": found.method,
        "combine": found.combine,
        "normals": found.normals.tolist(),
        "thresholds": found.thresholds.tolist(),
        "errors": found.errors.tolist(),
        "threshold_errors": found.threshold_errors.tolist(),
        "samples": found.details.get("n_samples"),
        "rare": found.details.get("n_rare"),
        "queries": found.ledger.n_queries,
        "seconds": seconds,
        "seed": seed,
        "versions": versions(),
        "certificate": None if certificate is None else dataclasses.asdict(certificate),
        "evidence": list(found.evidence),
        "warnings": [],
        "outputs": [],
    }


def print_halfspaces(report: dict[str, Any], *, verdict_only: bool = False) -> None:
    """Print the account for people: the verdict first, then every halfspace with its errors."""
    console = Console(highlight=False, soft_wrap=verdict_only)
    style = "bold green" if report["certified"] else "bold yellow"
    k = len(report["normals"])
    way = {"or": "any", "and": "all"}[report["combine"]]
    verdict = f"{way} of {k} halfspace{'s' * (k != 1)}"
    ending = "" if report["certified"] else f" ({report['status'].replace('_', ' ')})"
    console.print(Text.assemble(f"{report['target']}: ", (verdict + ending, style)))
    if verdict_only:
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    rows = zip(report["thresholds"], report["errors"], report["threshold_errors"], strict=True)
    for i, (t, angle, error) in enumerate(rows):
        if i == _MOST_SHOWN:
            table.add_row("", f"and {k - i} more")
            break
        table.add_row(
            f"halfspace {i}", f"threshold {t:.6g} ± {error:.1g}, normal ± {angle:.1g} rad"
        )
    if (certificate := report["certificate"]) is not None:
        table.add_row("certificate", Text(certificate["statement"]))
    table.add_row("samples", f"{report['samples']:,}, {report['rare']:,} on the rare side")
    table.add_row("time", f"{report['seconds']:.1f} s")
    for label in ("evidence", "warnings", "outputs"):
        for text in report[label]:
            shown = {"warnings": "warning", "outputs": "written"}.get(label, label)
            table.add_row(shown, Text(text))
    console.print(table)
