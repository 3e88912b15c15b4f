"""``revelu diagnose``: which assumptions of the theorems hold, measured."""

import sys
import time
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from revelu.cli.asking import Asking
from revelu.cli.diagnosis import Examination, document, print_diagnosis
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
from revelu.errors import FormatError, InputError
from revelu.tasks.diagnose.diagnosis import Diagnosis


def diagnose(
    target: Target,
    perturb: Annotated[
        float | None,
        typer.Option(
            metavar="A",
            help="Add a uniform number of [-A, A] to each weight of a local file.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write the perturbed network, as extract does; may be given again.",
            show_default=False,
        ),
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
    """Measure how regular TARGET is: which assumptions of the theorems hold.

    Exit codes:
      0  finished
      1  finished without figures: the target does not allow them
      2  usage or bad input
      3  budget or time exhausted
      4  target unreachable, or it answered nonsense
    130  interrupted
    """
    outputs = list(dict.fromkeys(output or []))
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
        from revelu.tasks.diagnose.diagnose import diagnose as examine

        reporting = Reporting("diagnose", report, target, journal, *outputs)
        asking.check_outputs(outputs)
        _check_outputs(outputs, target, perturb)
        started = time.monotonic()
        # What a target prints must not mix with the JSON object.
        with line, redirect_stdout(sys.stderr), asking.opened() as oracle:
            found = examine(
                oracle,
                perturb=perturb,
                seed=seed,
                progress=line,
            )
            figures = reporting.pictures(oracle, found.network, seed)
            found = replace(found, ledger=oracle.ledger())
        seconds = time.monotonic() - started
        written, unwritten = _write(found, outputs)
        run = Examination(target, found, seconds, seed, written, [*found.warnings, *unwritten])
        account = reporting.finished(document(run), figures)
        if as_json:
            print_json(account)
        else:
            run = replace(run, outputs=account["outputs"])
            print_diagnosis(run, verdict_only=quiet)
    finished = ExitCode.CERTIFIED if found.status is None else of_status(found.status)
    raise typer.Exit(ExitCode.USAGE if unwritten else finished)


def _check_outputs(paths: list[Path], target: str, perturb: float | None) -> None:
    """Refuse what cannot be written before anything is asked."""
    from revelu import formats

    if paths and perturb is None:
        raise InputError("there is nothing to write without --perturb")
    for path in paths:
        if path.resolve() == Path(target).resolve():
            raise InputError(f"{path}: is the target itself; write to another file")
        formats.check_writable(path)


def _write(found: Diagnosis, paths: list[Path]) -> tuple[list[str], list[str]]:
    """Write the perturbed network; one file that fails spares the others."""
    from revelu import formats

    written: list[str] = []
    unwritten: list[str] = []
    if found.perturbed is None:
        return written, unwritten
    network = found.perturbed.network
    for path in paths:
        # A classifier keeps its softmax where the format can hold it.
        softmax = found.probabilities and path.suffix.lower() == ".onnx"
        try:
            formats.save_arrays(
                path,
                list(network.weights),
                list(network.biases),
                network.skip,
                np.dtype(np.float64),
                softmax=softmax,
            )
            written.append(str(path))
        except FormatError as error:
            unwritten.append(f"{error}")
    return written, unwritten
