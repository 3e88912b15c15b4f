"""``revelu span``: the directions of its input that a target looks at."""

import dataclasses
import sys
import time
from contextlib import redirect_stdout
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
from revelu.cli.output import SCHEMA, print_json, versions
from revelu.cli.progress import ProgressLine
from revelu.cli.reporting import Reporting
from revelu.errors import FormatError, InputError
from revelu.recovery import SpanRecovery, Status


def span(
    target: Target,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.npz",
            help="Where to write the basis of the span.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", metavar="", help="Use class labels, or 0/1 answers, alone.")
    ] = False,
    method: Annotated[
        str, typer.Option(help="auto, or at_once: one round for --neurons.")
    ] = "auto",
    neurons: Annotated[
        int | None,
        typer.Option(help="Width of the first layer, for at_once.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="Draw the singular values (needs matplotlib).",
            show_default=False,
        ),
    ] = None,
    checks: Annotated[int, typer.Option(help="Fresh inputs moved in the null space.")] = 1000,
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
    """Recover the row span of the first layer of TARGET, of any depth and activation.

    Exit codes:
      0  finished: fresh moves inside the null space change no answer
      1  finished, with a part of it or nothing; the evidence says why
      2  usage or bad input
      3  budget or time exhausted
      4  target unreachable, or it answered nonsense
    130  interrupted
    After 1 and 3, what was found, if anything, is still written.
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
    line = ProgressLine(quiet=quiet or verbose > 0)
    with (
        logs(verbose),
        failures(as_json=as_json, n_queries=lambda: line.n_queries, dim_in=dim_in),
    ):
        from revelu.tasks.span import recover_span

        reporting = Reporting("span", report, target, journal, output, plot)
        asking.check_outputs([output, plot])
        check_span_output(output, target)
        if plot is not None:
            from revelu.formats.pictures import check_picture

            check_picture(plot)
        started = time.monotonic()
        # What a target prints must not mix with the JSON object.
        with line, redirect_stdout(sys.stderr), asking.opened() as oracle:
            found = recover_span(
                oracle,
                labels=labels,
                seed=seed,
                method=method,
                neurons=neurons,
                checks=checks,
                progress=line,
            )
        seconds = time.monotonic() - started
        written, unwritten = _write(found, output, plot)
        account = document(target, found, seconds, seed)
        account |= {"warnings": [*found.warnings, *unwritten], "outputs": written}
        account = reporting.of_span(account, found.span)
        if as_json:
            print_json(account)
        else:
            print_span(account, verdict_only=quiet)
    raise typer.Exit(ExitCode.USAGE if unwritten else of_status(found.status))


def check_span_output(output: Path | None, target: str) -> None:
    """Refuse what cannot be written before anything is asked."""
    if output is None:
        return
    from revelu import formats

    if output.suffix.lower() != ".npz":
        raise FormatError(f"{output}: a span is an .npz archive")
    if output.resolve() == Path(target).resolve():
        raise InputError(f"{output}: is the target itself; write to another file")
    formats.check_writable(output)


def _write(
    found: SpanRecovery, output: Path | None, plot: Path | None
) -> tuple[list[str], list[str]]:
    """Write the basis and the picture; one that fails spares the other."""
    written: list[str] = []
    unwritten: list[str] = []
    for path, write in ((output, found.span.save), (plot, found.span.plot)):
        if path is None:
            continue
        try:
            write(path)
            written.append(str(path))
        except FormatError as error:
            unwritten.append(f"{error}")
    return written, unwritten


def document(target: str, found: SpanRecovery, seconds: float, seed: int) -> dict[str, Any]:
    """Return the JSON-able account of a span."""
    certificate = found.certificate
    return {
        "schema": SCHEMA,
        "target": target,
        "status": found.status.value,
        "certified": found.status is Status.RECOVERED,
        "method": found.method,
        "rank": found.span.rank,
        "inputs": found.span.dim_in,
        "errors": found.span.errors.tolist(),
        "expected_angle": found.details.get("expected_angle"),
        "queries": found.ledger.n_queries,
        "rounds": found.ledger.n_rounds,
        "by_phase": dict(found.ledger.by_phase),
        "seconds": seconds,
        "seed": seed,
        "versions": versions(),
        "certificate": None if certificate is None else dataclasses.asdict(certificate),
        "evidence": list(found.evidence),
        "warnings": list(found.warnings),
        "outputs": [],
    }


def print_span(report: dict[str, Any], *, verdict_only: bool = False) -> None:
    """Print the account for people: the verdict first."""
    console = Console(highlight=False, soft_wrap=verdict_only)
    style = "bold green" if report["certified"] else "bold yellow"
    verdict = f"{report['rank']} of {report['inputs']} directions"
    ending = "" if report["certified"] else f" ({report['status'].replace('_', ' ')})"
    console.print(Text.assemble(f"{report['target']}: ", (verdict + ending, style)))
    if verdict_only:
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    if (certificate := report["certificate"]) is not None:
        table.add_row("certificate", Text(certificate["statement"]))
        table.add_row("largest change", f"{certificate['max_change']:.2g} of an answer")
    if report["rank"] and report["expected_angle"] is not None:
        table.add_row("angle", f"about {report['expected_angle']:.1g} rad off")
    table.add_row("queries", f"{report['queries']:,} in {report['rounds']:,} rounds")
    table.add_row("time", f"{report['seconds']:.1f} s")
    for label in ("evidence", "warnings", "outputs"):
        for text in report[label]:
            table.add_row(
                {"warnings": "warning", "outputs": "written"}.get(label, label), Text(text)
            )
    console.print(table)
