"""Carlini, Jagielski and Mironov, CRYPTO 2020, Table 1: their networks, recovered by revelu.

    python benchmarks/carlini20.py           print the table
    python benchmarks/carlini20.py --quick   one network a line
    python benchmarks/carlini20.py --write   keep it
    python benchmarks/carlini20.py --results FILE   go on where an earlier run stopped

The rows of one and of two hidden layers, each with ours above theirs.  Their program is on no
package index and is not run: their lines are printed figures.  Our networks are drawn by
`revelu.zoo.random_network`, theirs by their own rule; widths and depth are given to them and
not to us.
"""

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from page import once, present

import revelu
from revelu.oracle import Oracle

FIRST_SEED = 33_000_000
N_POINTS = 4_000
# Of computing.
MAX_SECONDS = 120.0
QUICK_INPUTS = 100


@dataclass(frozen=True)
class Row:
    """A network of the table, and what is printed of it.

    Queries and errors are powers of two; ``checked`` names those that the abstract states,
    which has been read; the others are quoted second-hand.  Of ours, ``n_polished`` at most
    are recovered once more with ``polish``.
    """

    widths: tuple[int, ...]
    queries: float
    parameter_error: float
    error: float | None = None
    checked: bool = False
    n_polished: int = 0

    @property
    def name(self) -> str:
        """Its widths."""
        return "-".join(map(str, self.widths))

    @property
    def n_parameters(self) -> int:
        """Weights and biases."""
        return sum((m + 1) * k for m, k in pairwise(self.widths))


# A polish of 784-32-1 takes half a minute, one of 784-128-1 far more.
ROWS = (
    Row((784, 32, 1), 19.2, -30.2, n_polished=3),
    Row((784, 128, 1), 21.5, -29.4, -25.0, checked=True),
    Row((10, 10, 10, 1), 16.0, -36.0, n_polished=10),
    Row((10, 20, 20, 1), 17.1, -37.0),
    Row((80, 40, 20, 1), 18.5, -39.7, -40.4, checked=True, n_polished=10),
)


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    status: str
    queries: int
    asked: int
    parameter_error: float
    error: float
    cpu: float


def one(widths: tuple[int, ...], seed: int, *, polish: bool) -> Run:
    """Extract one network and hold it against its truth."""
    truth = revelu.zoo.random_network(list(widths), seed=seed)
    cpu = time.process_time()
    oracle = Oracle(truth, widths[0], max_seconds=MAX_SECONDS, clock=time.process_time)
    recovery = revelu.extract(oracle, seed=seed, polish=polish)
    cpu = time.process_time() - cpu
    parameter_error = error = np.inf
    if (network := recovery.network) is not None:
        X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, widths[0]))
        error = float(np.abs(network(X) - truth(X)).max())
        if network.architecture == truth.architecture:
            parameter_error = revelu.align(network, truth).max_parameter_error
    ledger = recovery.ledger
    return Run(
        status=recovery.status.value,
        queries=ledger.n_recovery,
        asked=ledger.n_queries,
        parameter_error=parameter_error,
        error=error,
        cpu=cpu,
    )


def runs_of(row: Row, seeds: range, results: Path | None, *, polish: bool) -> list[Run]:
    """One network a seed, measured now or by an earlier run."""
    name = f"{row.name}{', polished' * polish}"
    return [
        Run(**once(results, name, seed, lambda seed: asdict(one(row.widths, seed, polish=polish))))
        for seed in seeds
    ]


def power(value: float) -> str:
    """Write a figure as a power of two, as the paper does."""
    return f"2^{np.log2(value):.1f}" if 0 < value < np.inf else "-"


HEAD = (
    "| network | parameters | by | networks | certified | queries, median | with the certificate "
    "| largest parameter error, median | largest error of the function, median "
    "| CPU s, median |\n" + "|---" * 10 + "|"
)


def ours(row: Row, runs: list[Run], by: str) -> str:
    """Render a line of ours."""
    certified = [run for run in runs if run.status == "recovered"]
    counted = certified or runs

    def median(field: str) -> float:
        return float(np.median([getattr(run, field) for run in counted]))

    return (
        f"| {row.name} | {row.n_parameters:,} | {by} | {len(runs)} | {len(certified)} "
        f"| {power(median('queries'))} | {power(median('asked'))} "
        f"| {power(median('parameter_error'))} | {power(median('error'))} "
        f"| {median('cpu'):.1f} |"
    )


def theirs(row: Row) -> str:
    """Render the printed line."""
    mark = " †" if row.checked else ""
    error = "-" if row.error is None else f"2^{row.error:.1f}{mark}"
    return (
        f"| {row.name} | {row.n_parameters:,} | printed | - | - | 2^{row.queries:.1f}{mark} | - "
        f"| 2^{row.parameter_error:.1f} | {error} | - |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one network a line")
    parser.add_argument("--networks", type=int, default=10, help="how many a line")
    parser.add_argument("--row", action="append", help="only this network; may be given again")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--results", type=Path, help="where the runs are, and are added")
    parser.add_argument("--tables", type=Path, help="write the table here, as JSON")
    parser.add_argument("--write", action="store_true", help="keep it on its page and in results/")
    options = parser.parse_args()
    n = 1 if options.quick else options.networks
    text = [HEAD]
    for row in ROWS:
        if options.row and row.name not in options.row:
            continue
        seeds = range(options.first_seed, options.first_seed + n)
        rows = [ours(row, runs_of(row, seeds, options.results, polish=False), "revelu")]
        quick = options.quick and row.widths[0] > QUICK_INPUTS
        if polished := seeds[: 0 if quick else row.n_polished]:
            runs = runs_of(row, polished, options.results, polish=True)
            rows.append(ours(row, runs, "revelu, polished"))
        text += [*rows, theirs(row)]
        print("\n".join(rows), file=sys.stderr, flush=True)
    note = (
        "*printed*: the paper's own figures, not run here; those with † are in its abstract, the "
        "others are quoted second-hand from its table.  Medians are of the certified networks, "
        "or of all where none is.\n\n"
        f"revelu {revelu.__version__}, NumPy {np.__version__}, seeds from {options.first_seed}"
        f", {MAX_SECONDS:.0f} CPU s at most for each."
    )
    present(
        "carlini20", "\n".join(text) + f"\n\n{note}", write=options.write, tables=options.tables
    )


if __name__ == "__main__":
    main()
