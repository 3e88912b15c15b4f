"""``revelu audit``: what a target gives away under each defence."""

import sys
import time
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from revelu.cli.asking import Asking
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.failures import failures
from revelu.cli.logs import logs
from revelu.cli.options import (
    AsJson,
    Batch,
    Budget,
    Dask,
    DimIn,
    InputName,
    Journal,
    MaxSeconds,
    OutputName,
    Quiet,
    Rate,
    Report,
    Seed,
    Target,
    Trust,
    Verbose,
    Workers,
)
from revelu.cli.output import SCHEMA, STYLES, print_json, versions
from revelu.cli.progress import ProgressLine
from revelu.cli.reporting import Reporting
from revelu.report.verdicts import verdict
from revelu.tasks.audit.rows import Audit, document_rows

_STYLES = {"weights": "bold red", "function": "red", "span": "yellow", "nothing": "green"}


def audit(
    target: Target,
    inputs: Annotated[
        Path | None,
        typer.Option(
            metavar="X.npy",
            help="Inputs as users send them, one a row, to compare on.",
            show_default=False,
        ),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(metavar="P", help="Price of a thousand queries.", show_default=False),
    ] = None,
    report: Report = None,
    budget: Budget = None,
    max_seconds: MaxSeconds = None,
    seed: Seed = 0,
    dim_in: DimIn = None,
    trust: Trust = False,
    journal: Journal = None,
    workers: Workers = None,
    dask: Dask = None,
    batch: Batch = None,
    rate: Rate = None,
    input_name: InputName = None,
    output_name: OutputName = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Find out what TARGET gives away, as it is and under each defence.

    Without --max-seconds an audit ends after some eight minutes: the rows share the time,
    and say where they were cut.  Of a served model only the answers as they are are
    attacked; other rows are extrapolated.

    Exit codes:
      0  finished
      2  usage or bad input
      3  budget or time exhausted
      4  target unreachable, or it stopped answering or answered nonsense
    130  interrupted
    After 3 and 4 the rows that are done are printed.
    """
    asking = Asking(
        target,
        dim_in=dim_in,
        budget=budget,
        trust=trust,
        max_seconds=max_seconds,
        journal=journal,
        batch=batch,
        workers=workers,
        dask=dask,
        rate=rate,
        input_name=input_name,
        output_name=output_name,
    )
    line = ProgressLine(quiet=quiet or verbose > 0, bar=True)
    with (
        logs(verbose),
        failures(as_json=as_json, n_queries=lambda: line.n_queries, dim_in=dim_in),
    ):
        from revelu.formats.inputs import read_inputs
        from revelu.tasks.audit.audit import audit as examine

        reporting = Reporting("audit", report, target, inputs, journal)
        asking.check_outputs([report])
        X = None if inputs is None else read_inputs(inputs)
        started = time.monotonic()
        # What a target prints must not mix with the JSON object.
        with line, redirect_stdout(sys.stderr), asking.opened() as oracle:
            found = examine(oracle, inputs=X, price=price, seed=seed, progress=line)
            figures = reporting.pictures(oracle, found.copy, seed)
            found = replace(found, ledger=oracle.ledger())
        account = document(target, found, time.monotonic() - started, seed)
        account = reporting.finished(account, figures)
        if found.error:
            sys.stderr.write(f"revelu: {' '.join(found.error.split())}\n")
        if as_json:
            print_json(account)
        else:
            _print(account, found, verdict_only=quiet)
    raise typer.Exit(_exit_code(found))


def _exit_code(found: Audit) -> ExitCode:
    if found.error:
        return ExitCode.TARGET
    return ExitCode.CERTIFIED if found.status is None else of_status(found.status)


def document(target: str, found: Audit, seconds: float, seed: int) -> dict[str, Any]:
    """Return the JSON-able account of an audit."""
    status = "error" if found.error else found.status or "finished"
    return {
        "schema": SCHEMA,
        "target": target,
        "status": f"{status}",
        "error": found.error or None,
        "inputs": found.dim_in,
        "answers": found.dim_out,
        "served": found.served,
        "facts": found.facts,
        "rows": document_rows(found.rows),
        "missing": list(found.missing),
        "advice": list(found.advice),
        "queries": found.ledger.n_queries,
        "rounds": found.ledger.n_rounds,
        "by_phase": dict(found.ledger.by_phase),
        "seconds": seconds,
        "seed": seed,
        "versions": versions(),
        "warnings": list(found.warnings),
        "outputs": [],
    }


def _print(account: dict[str, Any], found: Audit, *, verdict_only: bool) -> None:
    console = Console(highlight=False, soft_wrap=verdict_only)
    said = verdict("audit", account)
    console.print(Text.assemble(f"{account['target']}: ", (said.words, STYLES[said.tone])))
    if verdict_only:
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in found.facts.items():
        table.add_row(label, Text(text))
    console.print(table)
    if found.rows:
        console.print(_table(found))
    rest = Table.grid(padding=(0, 2))
    rest.add_column(style="dim", no_wrap=True)
    rest.add_column(overflow="fold")
    for label, text in _lines(account):
        rest.add_row(label, Text(text))
    console.print(rest)


def _table(found: Audit) -> Table:
    """One row a defence."""
    on_inputs = any(row.label_agreement_on_inputs is not None for row in found.rows)
    priced = any(row.cost is not None for row in found.rows)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("answers", "recovered", "fidelity", "labels"):
        table.add_column(heading, no_wrap=True)
    for heading in ("fidelity, given", "labels, given") if on_inputs else ():
        table.add_column(heading, no_wrap=True)
    table.add_column("queries", justify="right", no_wrap=True)
    if priced:
        table.add_column("cost", justify="right", no_wrap=True)
    for row in found.rows:
        name = "as they are" if row.defence == "none" else row.defence
        marks = ("~" if row.extrapolated else "") + ("…" if row.cut else "")
        # Nothing found in a part of the time is no good news.
        style = _STYLES["span" if row.cut and row.recovered == "nothing" else row.recovered]
        cells: list[str | Text] = [name, Text(row.recovered + marks, style)]
        cells += [share(row.fidelity), share(row.label_agreement)]
        if on_inputs:
            cells += [share(row.fidelity_on_inputs), share(row.label_agreement_on_inputs)]
        cells.append("-" if row.queries is None else f"{row.queries:,}")
        if priced:
            cells.append("-" if row.cost is None else f"{row.cost:,.2f}")
        table.add_row(*cells)
    return table


def share(value: float | None) -> str:
    """A share in per cent; 100% is said of nothing less."""
    if value is None:
        return "-"
    if value < 0.0:
        return "< 0%"
    shown = f"{value:.2%}"
    return "> 99.99%" if shown == "100.00%" and value < 1.0 else shown


def _lines(account: dict[str, Any]) -> list[tuple[str, str]]:
    rows = account["rows"]
    lines = [("advice", text) for text in account["advice"]]
    if any(row["cut"] for row in rows):
        lines.append(("…", "the attack was cut by the time or the queries it had"))
    if any(row["extrapolated"] for row in rows):
        lines.append(("~", "extrapolated: not seen behind this defence"))
    lines += [("missing", ", ".join(account["missing"]))] if account["missing"] else []
    by_phase = ", ".join(f"{name} {n:,}" for name, n in account["by_phase"].items() if n)
    lines.append(("queries", f"{account['queries']:,} in {account['rounds']:,} rounds"))
    lines.append(("by phase", by_phase))
    lines.append(("time", f"{account['seconds']:.1f} s"))
    lines += [("warning", text) for text in account["warnings"]]
    return lines + [("written", path) for path in account["outputs"]]
