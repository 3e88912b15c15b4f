"""``revelu obfuscate``: inputs beyond recognition that a target answers as before."""

import io
import math
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
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
from revelu.cli.output import print_json
from revelu.cli.progress import ProgressLine
from revelu.cli.reporting import Reporting
from revelu.cli.span import document
from revelu.errors import FormatError, InputError
from revelu.types import FloatArray

if TYPE_CHECKING:
    from revelu.tasks.obfuscate import Answers, Obfuscation

# Columns of the picture.
_MOST_COLUMNS = 10


def obfuscate(
    target: Target,
    inputs: Annotated[
        Path,
        typer.Option(metavar="X.npy", help="Inputs, one a row.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="Y.npy", help="Where to write them.", show_default=False
        ),
    ],
    norm: Annotated[
        float, typer.Option(metavar="R", help="Length of the noise, in each input's own norm.")
    ] = 10.0,
    box: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LO HI", help="Keep every number of the results inside.", show_default=False
        ),
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option(
            metavar="GRID.png",
            help="Draw square images before and after (needs matplotlib).",
            show_default=False,
        ),
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(
            "--span",
            metavar="FILE.npz",
            help="A span that `revelu span` wrote.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", metavar="", help="Find the span from class labels alone.")
    ] = False,
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
    """Change inputs inside the null space of TARGET's first layer, and ask it again.

    Exit codes:
      0  finished, and every label is as before
      1  finished, but a label changed, or the span was found in part
      2  usage or bad input; a first layer that leaves no null space
      3  budget or time exhausted
      4  target unreachable, or it answered nonsense
    130  interrupted
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
        from revelu.formats.inputs import read_inputs
        from revelu.oracle import checked_inputs
        from revelu.tasks.obfuscate import obfuscate_target

        asking.check_outputs([output, png])
        reporting = Reporting("obfuscate", report, target, inputs, known, journal, output, png)
        _check_outputs(output, png)
        started = time.monotonic()
        with line, redirect_stdout(sys.stderr), asking.opened() as oracle:
            X = checked_inputs(read_inputs(inputs), oracle.dim_in, box)
            done = obfuscate_target(
                oracle, X, span=known, norm=norm, box=box, labels=labels, seed=seed, progress=line
            )
        seconds = time.monotonic() - started
        account = document(target, done.recovery, seconds, seed) | _figures(done)
        if done.answers is not None:
            _write(output, done.outputs)
            account["outputs"] = [str(output)]
        if png is not None and done.answers is not None:
            _draw(png, X, done.outputs, done.answers)
            account["outputs"].append(str(png))
        account = reporting.of_span(account, done.recovery.span)
        if as_json:
            print_json(account)
        else:
            _print(account, verdict_only=quiet)
    code = of_status(done.recovery.status)
    changed = done.answers is not None and not done.answers.same.all()
    raise typer.Exit(ExitCode.NOT_CERTIFIED if changed and not code else code)


def _check_outputs(output: Path, png: Path | None) -> None:
    """Refuse what cannot be written before anything is asked."""
    if output.suffix.lower() != ".npy":
        raise FormatError(f"{output}: inputs are written as .npy")
    if not output.parent.is_dir():
        raise FormatError(f"{output}: the folder {output.parent} does not exist")
    if png is not None:
        from revelu.formats.pictures import check_picture

        check_picture(png)


def _write(path: Path, Y: FloatArray) -> None:
    from revelu.formats.arrays import replace_file

    buffer = io.BytesIO()
    np.save(buffer, Y)
    replace_file(path, buffer.getvalue())


def _figures(done: "Obfuscation") -> dict[str, Any]:
    answers = done.answers
    if answers is None:
        return {"changed_labels": None, "largest_change": None, "largest_correlation": None}
    return {
        "inputs_changed": len(done.outputs),
        "changed_labels": int((~answers.same).sum()),
        "largest_change": answers.largest_change,
        "largest_correlation": float(np.abs(answers.correlations).max(initial=0.0)),
    }


def _draw(path: Path, X: FloatArray, Y: FloatArray, answers: "Answers") -> None:
    """Originals above, changed ones below, each with its label and confidence."""
    from revelu.formats.pictures import draw_grid

    side = math.isqrt(X.shape[1])
    if side * side != X.shape[1]:
        raise InputError(f"a picture needs square images; inputs have {X.shape[1]} numbers")
    m = min(len(X), _MOST_COLUMNS)
    titles = [
        [_title(label, confidence) for label, confidence in zip(row[:m], sure[:m], strict=True)]
        for row, sure in zip(answers.labels, answers.confidences, strict=True)
    ]
    draw_grid(path, [X[:m], Y[:m]], titles, (side, side))


def _title(label: float, confidence: float) -> str:
    return f"{label:g}" if math.isnan(confidence) else f"{label:g}: {confidence:.1%}"


def _print(report: dict[str, Any], *, verdict_only: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if report["changed_labels"] is None:
        console.print(f"{report['target']}: nothing changed ({report['status'].replace('_', ' ')})")
    else:
        same = report["inputs_changed"] - report["changed_labels"]
        console.print(
            f"{report['target']}: {same:,} of {report['inputs_changed']:,} labels as before"
        )
    if verdict_only:
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("span", f"{report['rank']} of {report['inputs']} directions")
    if report["changed_labels"] is not None:
        table.add_row("largest change", f"{report['largest_change']:.2g} of an answer")
        table.add_row("correlation", f"{report['largest_correlation']:.2f} at most")
    table.add_row("queries", f"{report['queries']:,}")
    table.add_row("time", f"{report['seconds']:.1f} s")
    for label in ("evidence", "warnings"):
        for text in report[label]:
            table.add_row(label.removesuffix("s"), Text(text))
    for path in report["outputs"]:
        table.add_row("written", path)
    console.print(table)
