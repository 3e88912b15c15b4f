"""Polish: the last digits, and what they cost.

    python benchmarks/polish.py            print the table (some ten minutes)
    python benchmarks/polish.py --quick    a tenth of it
    python benchmarks/polish.py --write    and keep it on its page

Error: the largest over 4,000 points of N(0, I).  mP = m (d + 2) is the unit of queries,
for one output.  Parameters are compared after alignment.
"""

import argparse
import platform
import time
from dataclasses import dataclass

import numpy as np
from page import keep

import revelu

FIRST_SEED = 14_000_000

HEAD = (
    "| network | networks | error before, median | error, median (bar) | largest error "
    "| within the bar | parameter error, median | queries / mP, median (bar) "
    "| CPU s, median (bar) | certified over the bar | reached |"
)
NUMPY = f"NumPy {np.__version__}, one BLAS thread"


@dataclass(frozen=True)
class Row:
    """A shape, how many networks, and the bars: errors, queries a mP, seconds."""

    widths: tuple[int, ...]
    n_networks: int
    error: float
    queries: float
    seconds: float | None = None


ROWS = (
    Row((10, 16, 1), 100, 2.0**-40, 2.2),
    Row((10, 16, 1), 100, 1e-14, 2.7),
    Row((20, 40, 1), 40, 2.0**-40, 2.2),
    Row((20, 40, 1), 40, 1e-14, 2.7),
    Row((784, 32, 1), 5, 2.0**-40, 2.4, 60.0),
)


@dataclass(frozen=True)
class Run:
    """One network's outcome; errors before and after."""

    certified: bool
    before: float
    error: float
    parameter_error: float
    queries: float
    cpu: float


def one(widths: tuple[int, ...], seed: int) -> Run:
    """Extract one network with a polish, and without."""
    target = revelu.zoo.random_network(list(widths), seed=seed)
    X = np.random.default_rng([seed, 1]).standard_normal((4000, widths[0]))
    plain = revelu.extract(target, seed=seed).network
    cpu = time.process_time()
    recovery = revelu.extract(target, seed=seed, polish=True)
    cpu = time.process_time() - cpu
    network = recovery.network
    run = Run(
        certified=recovery.status is revelu.Status.RECOVERED,
        before=np.inf if plain is None else float(np.abs(plain(X) - target(X)).max()),
        error=np.inf if network is None else float(np.abs(network(X) - target(X)).max()),
        parameter_error=np.inf
        if network is None
        else float(revelu.align(network, target).max_parameter_error),
        queries=recovery.ledger.n_recovery / (widths[1] * (widths[0] + 2)),
        cpu=cpu,
    )
    print(f"{'-'.join(map(str, widths))} {seed}: {run}", flush=True)
    return run


def line(row: Row, runs: list[Run]) -> str:
    """One line of the table."""
    errors = np.array([run.error for run in runs])
    queries = float(np.median([run.queries for run in runs]))
    cpu = float(np.median([run.cpu for run in runs]))
    reached = np.median(errors) <= row.error and queries <= row.queries
    reached &= row.seconds is None or cpu <= row.seconds
    silent = sum(run.certified and run.error > row.error for run in runs)
    bar = "" if row.seconds is None else f" (≤ {row.seconds:.0f})"
    return (
        f"| {'-'.join(map(str, row.widths))} | {len(runs)} "
        f"| {np.median([run.before for run in runs]):.1e} "
        f"| {np.median(errors):.1e} (≤ {row.error:.1e}) | {errors.max():.1e} "
        f"| {(errors <= row.error).mean():.0%} "
        f"| {np.median([run.parameter_error for run in runs]):.1e} "
        f"| {queries:.2f} (≤ {row.queries}) | {cpu:.1f}{bar} | {silent} "
        f"| {'yes' if reached else 'no'} |"
    )


def main() -> None:
    """Print, and perhaps keep, the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the networks")
    parser.add_argument("--write", action="store_true", help="keep the table on its page")
    options = parser.parse_args()
    runs: dict[tuple[int, ...], list[Run]] = {}
    for row in ROWS:
        n = max(row.n_networks // 10, 1) if options.quick else row.n_networks
        if row.widths not in runs:
            start = FIRST_SEED + 1000 * len(runs)
            runs[row.widths] = [one(row.widths, start + i) for i in range(n)]
    text = "\n".join(
        [
            HEAD,
            "|" + "---|" * 11,
            *(line(row, runs[row.widths]) for row in ROWS),
            "",
            f"Seeds from {FIRST_SEED:,}; Python {platform.python_version()}, {NUMPY}.",
        ]
    )
    print(text)
    if options.write:
        keep("polish", text)


if __name__ == "__main__":
    main()
