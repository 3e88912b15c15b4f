"""``revelu verify``: the certificate of a network against a target."""

import sys
import time
from contextlib import redirect_stdout
from dataclasses import replace
from typing import Annotated

import typer

from revelu.cli.asking import Asking
from revelu.cli.exit_codes import of_status
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
from revelu.report.verdicts import VERIFIED


def verify(
    recovered: Annotated[
        str,
        typer.Argument(
            metavar="RECOVERED",
            help="The network to verify, a file that revelu reads.",
            show_default=False,
        ),
    ],
    target: Target,
    box: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LO HI", help="No coordinate of a query leaves it."),
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
    """Certify RECOVERED against TARGET by fresh queries.

    Exit codes:
      0  every check agrees
      1  they disagree
      2  usage or bad input
      3  budget or time exhausted
      4  target unreachable, or it answered nonsense
    130  interrupted
    """
    line = ProgressLine(quiet=quiet or verbose > 0)
    with (
        logs(verbose),
        failures(as_json=as_json, n_queries=lambda: line.n_queries, dim_in=dim_in),
    ):
        from revelu.adapters import named_network
        from revelu.tasks.verify import verify as certify

        network = named_network(recovered)
        reporting = Reporting("verify", report, target, recovered, journal)
        asking = Asking(
            target,
            dim_in=network.dim_in if dim_in is None else dim_in,
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
        started = time.monotonic()
        # What a target prints must not mix with the JSON object.
        with line, redirect_stdout(sys.stderr), asking.opened() as oracle:
            recovery = certify(network, oracle, seed=seed, checks=checks, progress=line)
            figures = reporting.pictures(oracle, network, seed)
            recovery = replace(recovery, ledger=oracle.ledger())
        run = Run(target, recovery, time.monotonic() - started, seed, [], recovery.warnings)
        account = reporting.finished({**document(run), "recovered": recovered}, figures)
        if as_json:
            print_json(account)
        else:
            run = replace(run, outputs=account["outputs"])
            print_summary(run, verdict_only=quiet, verdict=VERIFIED.get(recovery.status))
    raise typer.Exit(of_status(recovery.status))
