"""``revelu learn``: recover the network behind samples, verify it, write it."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from revelu.cli.exit_codes import ExitCode
from revelu.cli.failures import failures
from revelu.cli.learned import document, print_learned
from revelu.cli.logs import logs
from revelu.cli.options import AsJson, Quiet, Report, Seed, Verbose
from revelu.cli.output import Run, print_json
from revelu.cli.progress import ProgressLine
from revelu.cli.reporting import Reporting
from revelu.cli.writing import write
from revelu.errors import InputError
from revelu.recovery import Status


def learn(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="An .npz file with X and y, a Parquet file with a column y, or a folder of them.",
            show_default=False,
        ),
    ],
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
    neurons: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="K", help="Neurons, or halfspaces, if known.", show_default=False
        ),
    ] = None,
    order: Annotated[
        str, typer.Option(help="auto, 1 (no more neurons than inputs) or 2 (more).")
    ] = "auto",
    halfspaces: Annotated[
        str | None,
        typer.Option(
            metavar="or|and",
            help="y is 0 or 1: any, or all, of some halfspaces; find those (-o FILE.npz).",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Threads that read shards and sum moments.", show_default=False
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="A Dask cluster that does, in their place.", show_default=False
        ),
    ] = None,
    report: Report = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Recover the network behind samples (x, f(x)), without a query.

    Exit codes:
      0  recovered, and samples kept apart agree
      1  finished, not certified
      2  usage or bad input
    130  interrupted
    After 1, what was found is still written, and said to be uncertified.
    """
    if halfspaces is not None:
        from revelu.cli.halfspaces import learn_halfspaces

        learn_halfspaces(
            data,
            list(dict.fromkeys(output or [])),
            halfspaces,
            neurons,
            seed,
            report=report,
            as_json=as_json,
            verbose=verbose,
            quiet=quiet,
        )
    outputs = list(dict.fromkeys(output or []))
    line = ProgressLine(quiet=quiet or verbose > 0, counts=False)
    with logs(verbose), failures(as_json=as_json):
        from revelu import formats
        from revelu.adapters.executors import executor
        from revelu.tasks.learn.learn import learn as recover

        reporting = Reporting("learn", report, data, *outputs)
        for path in outputs:
            if path.resolve() == data.resolve():
                raise InputError(f"{path}: holds the samples; write to another file")
            formats.check_writable(path)
        started = time.monotonic()
        with line, executor(workers, dask) as pool:
            recovery = recover(
                data,
                n_neurons=neurons,
                order=order,
                seed=seed,
                executor=pool,
                progress=line,
            )
        seconds = time.monotonic() - started
        written, unwritten = write(recovery, outputs)
        run = Run(f"{data}", recovery, seconds, seed, written, [*recovery.warnings, *unwritten])
        account = reporting.of_network(document(run), recovery.network)
        if as_json:
            print_json(account)
        else:
            print_learned(replace(run, outputs=account["outputs"]), verdict_only=quiet)
    certified = recovery.status is Status.RECOVERED
    finished = ExitCode.CERTIFIED if certified else ExitCode.NOT_CERTIFIED
    raise typer.Exit(ExitCode.USAGE if unwritten else finished)
