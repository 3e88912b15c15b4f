"""``revelu extract``: recover the network behind a target, verify it, write it."""

import sys
import time
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from revelu.cli.advice import advice
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
from revelu.cli.output import Run, document, print_json, print_summary
from revelu.cli.progress import ProgressLine
from revelu.cli.reporting import Reporting
from revelu.cli.writing import write
from revelu.errors import InputError


def extract(
    target: Target,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write it, .onnx, .npz, .safetensors or .pt; may be given again.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="auto, or one of those that `revelu methods` lists."),
    ] = "auto",
    polish: Annotated[
        bool,
        typer.Option(
            "--polish", metavar="", help="Refine to the last digits, by a query a parameter more."
        ),
    ] = False,
    box: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LO HI", help="No coordinate of a query leaves it."),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            metavar="X.npy", help="Inputs that must agree, too, one a row.", show_default=False
        ),
    ] = None,
    checks: Annotated[int, typer.Option(help="Fresh queries of the certificate.")] = 3000,
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
    """Recover the network behind TARGET by queries, verify it, write it.

    Exit codes:
      0  recovered and certified
      1  finished, not certified
      2  usage or bad input
      3  budget or time exhausted
      4  target unreachable, or it answered nonsense
    130  interrupted
    After 1 and 3, what was found, if anything, is still written, and said to be
    uncertified.
    """
    outputs = list(dict.fromkeys(output or []))
    asking = Asking(
        target,
        dim_in=dim_in,
        budget=budget,
        box=box,
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
        from revelu import formats
        from revelu.formats.inputs import read_inputs
        from revelu.tasks.extract.extract import extract as recover

        reporting = Reporting("extract", report, target, journal, *outputs)
        asking.check_outputs(outputs)
        for path in outputs:
            if path.resolve() == Path(target).resolve():
                raise InputError(f"{path}: is the target itself; write to another file")
            formats.check_writable(path)
        rows = None if inputs is None else read_inputs(inputs)
        started = time.monotonic()
        # What a target prints must not mix with the JSON object.
        with line, redirect_stdout(sys.stderr), asking.opened() as oracle:
            recovery = recover(
                oracle,
                method=method,
                polish=polish,
                seed=seed,
                inputs=rows,
                checks=checks,
                progress=line,
            )
            figures = reporting.pictures(oracle, recovery.network, seed)
            if figures is not None:
                recovery = replace(recovery, ledger=oracle.ledger())
        seconds = time.monotonic() - started
        further = advice(
            recovery, method=method, budget=budget, checks=checks, journaled=journal is not None
        )
        recovery = replace(recovery, evidence=(*recovery.evidence, *further))
        written, unwritten = write(recovery, outputs)
        warnings = [*recovery.warnings, *unwritten]
        if outputs and recovery.network is None:
            warnings.append("nothing to write: no network was found")
        run = Run(target, recovery, seconds, seed, written, warnings)
        account = reporting.finished(document(run), figures)
        if as_json:
            print_json(account)
        else:
            print_summary(replace(run, outputs=account["outputs"]), verdict_only=quiet)
    raise typer.Exit(ExitCode.USAGE if unwritten else of_status(recovery.status))
