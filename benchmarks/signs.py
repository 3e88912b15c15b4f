"""Wide networks in their plain shape: signs that k d equations determine.

    python benchmarks/signs.py            print the table (some two minutes)
    python benchmarks/signs.py --write    and keep it on its page

Plain: no affine skip is left, so that every neuron's sign was found.  A sign is wrong where
the neuron is turned round against the truth.
"""

from dataclasses import dataclass

import numpy as np
from runner import Line, Table, bar, by_row, main, shape, timed

import revelu


@dataclass(frozen=True)
class Row:
    """A shape, how many networks, and the share that is to come back plain."""

    widths: tuple[int, ...]
    networks: int
    share: float | None = None

    @property
    def name(self) -> str:
        """Its widths."""
        return shape(self.widths)


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


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one network and look at its signs."""
    target = revelu.zoo.random_network(list(row.widths), seed=seed)
    recovery, cpu = timed(revelu.extract, target, seed=seed, max_seconds=limit)
    network = recovery.network
    plain = network is not None and network.skip is None
    alignment = None if network is None else revelu.align(network, target)
    notes = [line for line in recovery.evidence if "skip" in line]
    return Run(
        certified=recovery.status is revelu.Status.RECOVERED,
        plain=plain,
        wrong=plain and alignment is not None and bool((alignment.signs < 0).any()),
        parameter_error=np.inf if alignment is None else float(alignment.max_parameter_error),
        cpu=cpu,
        note=notes[0].split(":")[1].split(";")[0].strip() if notes else "",
    )


def line(row: Row, runs: list[Run]) -> Line:
    """One line of the table."""
    share = float(np.mean([run.plain for run in runs]))
    errors = [run.parameter_error for run in runs]
    cpu = [run.cpu for run in runs]
    notes = {run.note for run in runs if not run.plain}
    return {
        "network": row.name,
        "networks": f"{len(runs)}",
        "plain shape (bar)": f"{share:.1%}{bar(row.share, '.0%', '≥')}",
        "with a wrong sign": f"{sum(run.wrong for run in runs)}",
        "certified": f"{sum(run.certified for run in runs)}",
        "parameter error, median, largest": f"{np.median(errors):.1e}, {max(errors):.1e}",
        "CPU s, median, largest": f"{np.median(cpu):.1f}, {max(cpu):.1f}",
        "kept skip, and why": "; ".join(sorted(notes)) or "-",
    }


TABLE = Table(
    "signs", __doc__, ROWS, one, by_row(line), first_seed=17_000_000, outcome=Run, apart=1000
)

if __name__ == "__main__":
    main(TABLE)
