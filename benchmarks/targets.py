"""What people have, opened: each way in from an empty folder, by one command.

    python benchmarks/targets.py                 print the table (some five minutes)
    python benchmarks/targets.py --way onnx      lines whose name has this
    python benchmarks/targets.py --write         and keep the table on its page

Ways need packages of those who make such files (skl2onnx, skops, pandas, onnxscript,
mlflow-skinny); a way whose packages are not there is listed as not tried.  A target is
recovered if the command certifies it and the file that it writes gives the answers of what was
saved on 1,000 fresh inputs; or it is named as what it is, in one line with exit code 2.
Everything follows from the seed.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from page import keep
from targets_made import WAYS
from targets_way import Made, Way

import revelu
from revelu.types import FloatArray

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
    parser.add_argument("--write", action="store_true", help="keep the table on its page")
    options = parser.parse_args()
    rows = []
    for way in WAYS:
        if options.way in way.name:
            found = tried(way)
            rows.append((way, found))
            print(way.name, found, flush=True)
    text = table(rows)
    print(f"\n{text}")
    if options.write:
        keep("targets", text)
    if not all(found.is_right for _, found in rows):
        raise SystemExit(1)


def tried(way: Way) -> Found:
    """Try a way in from an empty folder."""
    if missing := [name for name in way.needs if importlib.util.find_spec(name) is None]:
        return Found("not tried", f"needs {', '.join(missing)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with warnings.catch_warnings(), inside(folder):
            warnings.simplefilter("ignore")
            made = way.make(np.random.default_rng(way.seed))
        return judged(folder, made)


class inside:  # noqa: N801 - reads as the phrase that it is
    """Work in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.before = folder, Path.cwd()

    def __enter__(self) -> None:
        os.chdir(self.folder)

    def __exit__(self, *_: object) -> None:
        os.chdir(self.before)


def judged(folder: Path, made: Made) -> Found:
    """Run the command, and hold what it wrote to what was saved."""
    arguments = made.command.split()
    if made.truth is not None:
        arguments += ["-o", "found.npz", "--json"]
    started = time.monotonic()
    done = subprocess.run(  # noqa: S603 - this program
        [sys.executable, "-m", "revelu", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    seconds, command = time.monotonic() - started, f"revelu {made.command}"
    if made.truth is None:
        line = done.stderr.strip()
        is_named = done.returncode == 2 and "\n" not in line and made.words in line
        return Found("named" if is_named else f"{done.returncode}: {line}", command)
    if done.returncode != 0:
        return Found(f"{done.returncode}: {done.stderr.strip()[-200:]}", command)
    account = json.loads(done.stdout)
    tolerance = account["certificate"]["tolerance"]
    error = largest_error(folder / "found.npz", made.truth, made.inputs)
    # A classifier's certificate is of its log-ratios, and so is the error here.
    outcome = "recovered" if error <= max(10.0 * tolerance, made.rounding) else "wrong"
    return Found(outcome, command, error, tolerance, account["queries"], seconds)


def largest_error(path: Path, truth: Callable[[FloatArray], Any], X: FloatArray) -> float:
    """The largest error of a file; of log-ratios where it is a classifier's."""
    network = revelu.load(path)
    return float(np.abs(network(X) - np.asarray(truth(X)).reshape(len(X), -1)).max())


def table(rows: list[tuple[Way, Found]]) -> str:
    """The rows in Markdown."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
    for way, found in rows:
        cells = [way.name, f"`{found.command}`", found.outcome]
        if np.isfinite(found.error):
            cells += [f"{found.error:.0e}", f"{found.tolerance:.0e}", f"{found.queries:,}"]
            cells.append(f"{found.seconds:.1f}")
        else:
            cells += [""] * 4
        lines.append(f"| {' | '.join(cells)} |")
    tried_rows = [found for _, found in rows if found.outcome != "not tried"]
    right = sum(found.is_right for found in tried_rows)
    return "\n".join([*lines, "", f"{right} of {len(tried_rows)} recovered or named."])


if __name__ == "__main__":
    main()
