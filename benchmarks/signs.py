"""Wide networks in their plain shape: signs that k d equations determine.

    python benchmarks/signs.py            print the table (some two minutes)
    python benchmarks/signs.py --seconds 60 --results FILE   a slice; again for more
    python benchmarks/signs.py --write    and keep it on its page

Plain: no affine skip is left, so that every neuron's sign was found.  A sign is wrong where
the neuron is turned round against the truth.
"""

import argparse
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from page import keep, record, records

import revelu

FIRST_SEED = 17_000_000

HEAD = (
    "| network | networks | plain shape (bar) | with a wrong sign | certified "
    "| parameter error, median, largest | CPU s, median, largest | kept skip, and why |"
)
NUMPY = f"NumPy {np.__version__}, one BLAS thread"


@dataclass(frozen=True)
class Row:
    """A shape, how many networks, and the share that is to come back plain."""

    widths: tuple[int, ...]
    n_networks: int
    share: float | None = None


ROWS = (
    Row((10, 16, 1), 200, 0.99),
    Row((20, 40, 1), 100, 0.95),
    Row((10, 30, 1), 100),
    Row((10, 45, 1), 10),
    Row((10, 53, 1), 5),
    Row((10, 70, 1), 5),
    Row((5, 60, 5), 10),
    Row((3, 30, 1), 10),
    Row((1, 12, 1), 10),
    Row((1, 24, 1), 10),
)


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    certified: bool
    plain: bool
    wrong: bool
    parameter_error: float
    cpu: float
    note: str


def one(widths: tuple[int, ...], seed: int) -> Run:
    """Extract one network and look at its signs."""
    target = revelu.zoo.random_network(list(widths), seed=seed)
    cpu = time.process_time()
    recovery = revelu.extract(target, seed=seed)
    cpu = time.process_time() - cpu
    network = recovery.network
    plain = network is not None and network.skip is None
    alignment = None if network is None else revelu.align(network, target)
    notes = [line for line in recovery.evidence if "skip" in line]
    run = Run(
        certified=recovery.status is revelu.Status.RECOVERED,
        plain=plain,
        wrong=plain and alignment is not None and bool((alignment.signs < 0).any()),
        parameter_error=np.inf if alignment is None else float(alignment.max_parameter_error),
        cpu=cpu,
        note=notes[0].split(":")[1].split(";")[0].strip() if notes else "",
    )
    print(f"{'-'.join(map(str, widths))} {seed}: {run}", flush=True)
    return run


def line(row: Row, runs: list[Run]) -> str:
    """One line of the table."""
    share = float(np.mean([run.plain for run in runs]))
    bar = "" if row.share is None else f" (≥ {row.share:.0%})"
    errors = [run.parameter_error for run in runs]
    cpu = [run.cpu for run in runs]
    notes = {run.note for run in runs if not run.plain}
    return (
        f"| {'-'.join(map(str, row.widths))} | {len(runs)} | {share:.1%}{bar} "
        f"| {sum(run.wrong for run in runs)} | {sum(run.certified for run in runs)} "
        f"| {np.median(errors):.1e}, {max(errors):.1e} "
        f"| {np.median(cpu):.1f}, {max(cpu):.1f} | {'; '.join(sorted(notes)) or '-'} |"
    )


def main() -> None:
    """Print, and perhaps keep, the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two networks a row")
    parser.add_argument("--seconds", type=float, default=np.inf, help="CPU seconds of a slice")
    parser.add_argument("--results", type=Path, help="where the runs are, and are added")
    parser.add_argument("--write", action="store_true", help="keep the table on its page")
    options = parser.parse_args()
    runs = {seed: Run(**run) for seed, run in records(options.results)}
    lines = [HEAD, "|" + "---|" * 8]
    for i, row in enumerate(ROWS):
        n = 2 if options.quick else row.n_networks
        seeds = range(FIRST_SEED + 1000 * i, FIRST_SEED + 1000 * i + n)
        for seed in seeds:
            if seed not in runs and time.process_time() < options.seconds:
                runs[seed] = one(row.widths, seed)
                record(options.results, [seed, asdict(runs[seed])])
        if done := [runs[seed] for seed in seeds if seed in runs]:
            lines.append(line(row, done))
    text = "\n".join(
        [*lines, "", f"Seeds from {FIRST_SEED:,}; Python {platform.python_version()}, {NUMPY}."]
    )
    print(text)
    if options.write:
        keep("signs", text)


if __name__ == "__main__":
    main()
