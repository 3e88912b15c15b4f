"""What people have, opened: each way in from an empty folder, by one command.

    python benchmarks/targets.py                          print the table (some ten minutes)
    python benchmarks/targets.py --way onnx               lines whose name has this; the others
                                                          stay on the page
    python benchmarks/targets.py --environments FOLDER    servers of others, too
    python benchmarks/targets.py --part figures           what a template costs, and an audit
    python benchmarks/targets.py --part faults            what comes of a server's faults
    python benchmarks/targets.py --part workers           what workers gain at a slow server
    python benchmarks/targets.py --part probe             what a probe says of services
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
from collections.abc import Callable
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
from page import keep, kept
from targets_way import HOST, Made, Way

import revelu
from revelu import Span
from revelu.types import FloatArray

WAYS = (*targets_made.WAYS, *targets_served.WAYS, *targets_shapes.WAYS)

PARTS = ("ways", "figures", "faults", "workers", "probe")
N_POINTS = 1_000
LIMIT = 120.0

# The columns of the table.
COLUMNS = ("way in", "command", "outcome", "largest error", "tolerance", "queries", "seconds")


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

    @property
    def is_right(self) -> bool:
        """Whether it did what it should, or was not tried."""
        return self.outcome in {"recovered", "named", "not tried"}


def main() -> None:
    """Try the ways, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--way", default="", help="only those whose name has this")
    parser.add_argument("--part", default="ways", choices=PARTS)
    parser.add_argument("--environments", type=Path, metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help="keep the table on its page")
    options = parser.parse_args()
    if options.part == "figures":
        text, is_right = figures.table()
    elif options.part == "faults":
        text, is_right = figures.faults()
    elif options.part == "workers":
        text, is_right = figures.workers()
    elif options.part == "probe":
        text, is_right = targets_probe.table()
    else:
        text, is_right = ways(options.way, options.environments)
    print(f"\n{text}")
    if options.write and options.part == "ways":
        keep("targets", beside_others(text, kept("targets")) if options.way else text)
    elif options.write:
        keep(f"targets-{options.part}", text)
    if not is_right:
        raise SystemExit(1)


def ways(words: str, environments: Path | None) -> tuple[str, bool]:
    """Return the table of the ways whose names have these words, and whether all is right."""
    rows = []
    for way in WAYS:
        if words in way.name:
            found = tried(way, environments)
            rows.append((way, found))
            print(way.name, found, flush=True)
    return table(rows), all(found.is_right for _, found in rows)


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


def table(rows: list[tuple[Way, Found]]) -> str:
    """The rows in Markdown."""
    lines = []
    for way, found in rows:
        cells = [way.name, f"`{found.command}`", found.outcome]
        if np.isfinite(found.error):
            cells += [f"{found.error:.0e}", f"{found.tolerance:.0e}", f"{found.queries:,}"]
            cells.append(f"{found.seconds:.1f}")
        else:
            cells += [""] * 4
        lines.append(f"| {' | '.join(cells)} |")
    return counted(lines)


def counted(lines: list[str]) -> str:
    """Rows under their head, and how many of them are right."""
    outcomes = [line.split(" | ")[2] for line in lines]
    tried_ones = [outcome for outcome in outcomes if outcome != "not tried"]
    right = sum(outcome in {"recovered", "named"} for outcome in tried_ones)
    head = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    return "\n".join([*head, *lines, "", f"{right} of {len(tried_ones)} recovered or named."])


def beside_others(text: str, before: str) -> str:
    """A table with these rows in it, in place of those of the same name, in the ways' order."""
    rows = {
        line.split(" | ")[0].removeprefix("| "): line
        for line in (*before.splitlines(), *text.splitlines())
    }
    return counted([rows[way.name] for way in WAYS if way.name in rows])


if __name__ == "__main__":
    main()
