"""Answers on a grid: what comes back of a network, and to how many of the grid's steps.

    python benchmarks/grids.py            print the table
    python benchmarks/grids.py --seconds 60 --results FILE   a slice; again for more
    python benchmarks/grids.py --write    and keep it on its page

The truth is a random network of one hidden layer in float64, whose width is not given.
"""

import argparse
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from page import keep, record, records

import revelu

FIRST_SEED = 8_650_000
N_POINTS = 20_000

HEAD = (
    "| network | step | networks | certified | with their neurons "
    "| error, in steps, median, largest | tolerance over the errors, largest (bar) "
    "| queries / parameter, median | CPU s, median |"
)


@dataclass(frozen=True)
class Row:
    """A line: the answers are multiples of ``step``, of a network ``factor`` times as large.

    Where ``cap`` is finite they are clipped to ``[-cap, cap - step]``, as fixed point saturates.
    """

    widths: tuple[int, ...]
    bits: int
    factor: float = 1.0
    cap: float = np.inf
    n_networks: int = 3

    @property
    def step(self) -> float:
        """The distance of neighbouring answers."""
        return 2.0**-self.bits

    @property
    def name(self) -> str:
        """What the network is called."""
        saturates = f", in [-{self.cap:g}, {self.cap:g})" if np.isfinite(self.cap) else ""
        return f"{'-'.join(map(str, self.widths))}{saturates}"


ROWS = (
    *(Row((20, 10, 1), bits) for bits in (39, 31, 23, 15, 7, 3)),
    *(Row((40, 20, 1), bits) for bits in (39, 31, 23, 15, 7, 3)),
    Row((20, 10, 1), 10, factor=12.0, cap=32.0),
)


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    status: str
    neurons: int
    error: float
    tolerance: float
    queries: float
    cpu: float


def one(row: Row, seed: int, limit: float) -> Run:
    """Extract one network and hold it against its truth."""
    truth = revelu.zoo.random_network(list(row.widths), seed=seed)
    (W, A), (b, c) = truth.weights, truth.biases
    truth = revelu.Network([W, row.factor * A], [b, row.factor * c])

    def answer(X: np.ndarray) -> np.ndarray:
        rounded = np.rint(truth(X) / row.step) * row.step
        return np.clip(rounded, -row.cap, row.cap - row.step)

    cpu = time.process_time()
    recovery = revelu.extract(answer, dim_in=row.widths[0], seed=seed, max_seconds=limit)
    cpu = time.process_time() - cpu
    network, certificate = recovery.network, recovery.certificate
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, row.widths[0]))
    error = ratio = np.inf
    if network is not None:
        exact = np.clip(truth(X), -row.cap, row.cap - row.step)
        error = float(np.sqrt(((network(X) - exact) ** 2).mean())) / row.step
        left = float(np.sqrt(((network(X) - answer(X)) ** 2).mean()))
        ratio = np.inf if certificate is None else certificate.tolerance / left
    run = Run(
        status=recovery.status.value,
        neurons=0 if network is None else network.architecture[1],
        error=error,
        tolerance=ratio,
        queries=recovery.ledger.n_recovery / truth.n_parameters,
        cpu=cpu,
    )
    print(f"{row.name} 2^-{row.bits} {seed}: {run} {recovery.evidence}", flush=True)
    return run


def line(row: Row, runs: list[Run]) -> str:
    """One line of the table."""
    right = [run for run in runs if run.status == "recovered"]
    errors = [run.error for run in right] or [np.inf]
    n_exact = sum(run.neurons == row.widths[1] for run in right)
    loosest = max((run.tolerance for run in right), default=np.inf)
    queries, cpu = (float(np.median([getattr(run, x) for run in runs])) for x in ("queries", "cpu"))
    return (
        f"| {row.name} | 2^-{row.bits} | {len(runs)} | {len(right)} | {n_exact} "
        f"| {np.median(errors):.2f}, {max(errors):.2f} | {loosest:.1f} (≤ 10) "
        f"| {queries:.1f} | {cpu:.1f} |"
    )


def main() -> None:
    """Print, and perhaps keep, the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=np.inf, help="CPU seconds of a slice")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a network may take")
    parser.add_argument("--row", action="append", type=int, help="only this line, from 0")
    parser.add_argument("--results", type=Path, help="where the runs are, and are added")
    parser.add_argument("--write", action="store_true", help="keep the table on its page")
    options = parser.parse_args()
    runs = {(row, seed): Run(**run) for row, seed, run in records(options.results)}
    lines = [HEAD, "|" + "---|" * 9]
    for i, row in enumerate(ROWS):
        seeds = range(FIRST_SEED + 100 * i, FIRST_SEED + 100 * i + row.n_networks)
        for seed in seeds:
            wanted = options.row is None or i in options.row
            if wanted and (i, seed) not in runs and time.process_time() < options.seconds:
                runs[i, seed] = one(row, seed, options.limit)
                record(options.results, [i, seed, asdict(runs[i, seed])])
        if done := [runs[i, seed] for seed in seeds if (i, seed) in runs]:
            lines.append(line(row, done))
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, one BLAS thread"
    text = "\n".join([*lines, "", f"Seeds from {FIRST_SEED:,}; {versions}."])
    print(text)
    if options.write:
        keep("grids", text)


if __name__ == "__main__":
    main()
