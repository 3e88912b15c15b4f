"""What people have, opened: each way in from an empty folder, by one command.

    python benchmarks/targets.py                          print the tables (some ten minutes)
    python benchmarks/targets.py --environments FOLDER    servers of others, too
    python benchmarks/targets.py --table targets-figures  what a template costs, and an audit
    python benchmarks/targets.py --table targets-faults   what comes of a server's faults
    python benchmarks/targets.py --table targets-workers  what workers gain at a slow server
    python benchmarks/targets.py --table targets-probe    what a probe says of services
    python benchmarks/targets.py --write                  and keep tables on their page

Ways need packages of those who make such files (skl2onnx, skops, pandas, onnxscript,
mlflow-skinny); a way whose packages are not there is listed as not tried.  Servers (MLflow,
FastAPI, KServe, BentoML) are installed once, each in an environment of its own in FOLDER, which
takes a minute each.  A target is recovered if the command certifies it and the file that it
writes gives the answers of what was saved on 1,000 fresh inputs; or it is named as what it is, in
one line with exit code 2 or 4.  Everything follows from the seed.
"""

import argparse
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import program_serving as programs
import targets_figures as figures
import targets_made
import targets_probe
import targets_served
import targets_shapes
from runner import Line, Named, Table, by_row, main
from targets_way import HOST, Made, Way

import revelu
from revelu import Span
from revelu.types import FloatArray

WAYS = (*targets_made.WAYS, *targets_served.WAYS, *targets_shapes.WAYS)

N_POINTS = 1_000
LIMIT = 120.0


@dataclass(frozen=True)
class Found:
    """How a way ended.

    Attributes
    ----------
    outcome : str
        "recovered", "named", "not tried", or what went wrong.
    error, tolerance : float
        Largest error on fresh inputs, and what the certificate allows.
    """

    outcome: str
    command: str = ""
    error: float = np.nan
    tolerance: float = np.nan
    queries: int = 0
    seconds: float = np.nan


def tried(way: Way, environments: Path | None = None) -> Found:
    """Try a way in from an empty folder."""
    if missing := [name for name in way.needs if importlib.util.find_spec(name) is None]:
        return Found("not tried", f"needs {', '.join(missing)}")
    python = Path(sys.executable)
    if way.program:
        if environments is None:
            return Found("not tried", f"needs an environment of {way.program}")
        python = programs.environment(way.program, environments.absolute())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with warnings.catch_warnings(), inside(folder):
            warnings.simplefilter("ignore")
            made = way.make(np.random.default_rng(way.seed))
        with nullcontext(HOST) if made.serve is None else made.serve(python) as host:
            return judged(folder, made, host)


class inside:  # noqa: N801 - reads as the phrase that it is
    """Work in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.before = folder, Path.cwd()

    def __enter__(self) -> None:
        os.chdir(self.folder)

    def __exit__(self, *_: object) -> None:
        os.chdir(self.before)


def judged(folder: Path, made: Made, host: str) -> Found:
    """Run the command, and hold what it wrote to what was saved."""
    command = f"revelu {made.command}"
    arguments = shlex.split(made.command.replace(HOST, host))
    if made.truth is not None:
        arguments += ["-o", "found.npz", "--json"]
    started = time.monotonic()
    done = subprocess.run(  # noqa: S603 - this program
        [sys.executable, "-m", "revelu", *arguments],
        cwd=folder,
        env={**os.environ, **made.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    seconds = time.monotonic() - started
    if secrets := [word for word in made.environment.values() if word in done.stdout + done.stderr]:
        return Found(f"told {len(secrets)} secrets", command)
    if made.truth is None:
        line, *asked = done.stderr.strip().splitlines()
        # A second line says what was asked until then.
        is_named = done.returncode in {2, 4} and len(asked) <= 1 and made.words in line
        return Found("named" if is_named else f"{done.returncode}: {done.stderr}", command)
    if done.returncode != 0:
        return Found(f"{done.returncode}: {done.stderr.strip()[-200:]}", command)
    account = json.loads(done.stdout)
    if made.rows is None:
        tolerance = account["certificate"]["tolerance"]
        error = largest_error(folder / "found.npz", made.truth, made.inputs)
    else:
        tolerance = account["expected_angle"]
        error = float(Span.load(folder / "found.npz").angles(made.rows).max())
    # A classifier's certificate is of its log-ratios, and so is the error here.
    outcome = "recovered" if error <= max(10.0 * tolerance, made.rounding) else "wrong"
    return Found(outcome, command, error, tolerance, account["queries"], seconds)


def largest_error(path: Path, truth: Callable[[FloatArray], Any], X: FloatArray) -> float:
    """The largest error of a file; of log-ratios where it is a classifier's."""
    network = revelu.load(path)
    return float(np.abs(network(X) - np.asarray(truth(X)).reshape(len(X), -1)).max())


@dataclass(frozen=True)
class Row:
    """A way in, by its name, and where environments of servers are."""

    name: str
    environments: Path | None = None
    networks: int = 1


def one(row: Row, _seed: int, _limit: float | None) -> Found:
    """Try the way of a name."""
    [way] = [way for way in WAYS if way.name == row.name]
    return tried(way, row.environments)


def line(row: Row, runs: list[Found]) -> Line:
    """How it ended."""
    [found] = runs
    has_error = np.isfinite(found.error)
    return {
        "way in": row.name,
        "command": f"`{found.command}`",
        "outcome": found.outcome,
        "largest error": f"{found.error:.0e}" if has_error else "",
        "tolerance": f"{found.tolerance:.0e}" if has_error else "",
        "queries": f"{found.queries:,}" if has_error else "",
        "seconds": f"{found.seconds:.1f}" if has_error else "",
    }


def note(found: Mapping[Row, list[Found]]) -> str:
    """How many of those that were tried are right."""
    outcomes = [run.outcome for runs in found.values() for run in runs]
    tried_ones = [outcome for outcome in outcomes if outcome != "not tried"]
    right = sum(outcome in {"recovered", "named"} for outcome in tried_ones)
    return f"{right} of {len(tried_ones)} recovered or named."


def options(parser: argparse.ArgumentParser) -> None:
    """Where servers of others are."""
    parser.add_argument("--environments", type=Path, metavar="FOLDER", help="or are installed")


SERVICES = (*targets_probe.SHAPES, *targets_probe.SERVICES)
TABLES = (
    Table(
        "targets",
        __doc__,
        lambda given: [Row(way.name, given.environments) for way in WAYS],
        one,
        by_row(line),
        first_seed=0,
        outcome=Found,
        note=note,
        options=options,
    ),
    Table(
        "targets-figures",
        __doc__,
        figures.FIGURES,
        figures.figure,
        figures.figure_lines,
        first_seed=figures.FIRST_SEED,
        named_by=2,
        note=lambda _: "The seconds are sums of three extractions each, in turns.",
    ),
    Table(
        "targets-faults",
        __doc__,
        [Named(words, 1) for words in figures.FAULTS],
        figures.fault_ends,
        by_row(figures.fault_line),
        first_seed=figures.FIRST_SEED,
        note=lambda _: (
            "Of 6-5-2 in float64, by a template, with six faults or two hundred; time-outs of 1 s."
        ),
    ),
    Table(
        "targets-workers",
        __doc__,
        [Named("workers", 1)],
        figures.workers,
        figures.worker_lines,
        first_seed=figures.FIRST_SEED,
        note=figures.worker_note,
    ),
    Table(
        "targets-probe",
        __doc__,
        [Named(service.name, 1) for service in SERVICES],
        targets_probe.one,
        by_row(targets_probe.line),
        first_seed=0,
        outcome=targets_probe.Found,
        note=targets_probe.note,
    ),
)

if __name__ == "__main__":
    main(*TABLES)
