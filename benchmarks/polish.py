"""Polish: the last digits, and what they cost.

    python benchmarks/polish.py            print the table (some ten minutes)
    python benchmarks/polish.py --quick    one network a row
    python benchmarks/polish.py --write    and keep it on its page

Error: the largest over 4,000 points of N(0, I).  mP = m (d + 2) is the unit of queries,
for one output.  Parameters are compared after alignment.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from runner import Line, Table, bar, main, shape, timed

import revelu


@dataclass(frozen=True)
class Bars:
    """What the medians are to reach: an error, queries a mP."""

    error: float
    queries: float


@dataclass(frozen=True)
class Row:
    """A shape, how many networks, and the bars, a line each; seconds for all."""

    widths: tuple[int, ...]
    networks: int
    bars: tuple[Bars, ...]
    seconds: float | None = None

    @property
    def name(self) -> str:
        """Its widths."""
        return shape(self.widths)


BARS = Bars(2.0**-40, 2.2), Bars(1e-14, 2.7)
ROWS = (
    Row((10, 16, 1), 100, BARS),
    Row((20, 40, 1), 40, BARS),
    Row((784, 32, 1), 5, (Bars(2.0**-40, 2.4),), 60.0),
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


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one network with a polish, and without."""
    target = revelu.zoo.random_network(list(row.widths), seed=seed)
    X = np.random.default_rng([seed, 1]).standard_normal((4000, row.widths[0]))
    plain = revelu.extract(target, seed=seed, max_seconds=limit).network
    recovery, cpu = timed(revelu.extract, target, seed=seed, polish=True, max_seconds=limit)
    network = recovery.network
    return Run(
        certified=recovery.status is revelu.Status.RECOVERED,
        before=np.inf if plain is None else float(np.abs(plain(X) - target(X)).max()),
        error=np.inf if network is None else float(np.abs(network(X) - target(X)).max()),
        parameter_error=np.inf
        if network is None
        else float(revelu.align(network, target).max_parameter_error),
        queries=recovery.ledger.n_recovery / (row.widths[1] * (row.widths[0] + 2)),
        cpu=cpu,
    )


def line(row: Row, bars: Bars, runs: list[Run]) -> Line:
    """One line of the table."""
    errors = np.array([run.error for run in runs])
    queries = float(np.median([run.queries for run in runs]))
    cpu = float(np.median([run.cpu for run in runs]))
    reached = np.median(errors) <= bars.error and queries <= bars.queries
    reached &= row.seconds is None or cpu <= row.seconds
    return {
        "network": row.name,
        "networks": f"{len(runs)}",
        "error before, median": f"{np.median([run.before for run in runs]):.1e}",
        "error, median (bar)": f"{np.median(errors):.1e} (≤ {bars.error:.1e})",
        "largest error": f"{errors.max():.1e}",
        "within the bar": f"{(errors <= bars.error).mean():.0%}",
        "parameter error, median": f"{np.median([run.parameter_error for run in runs]):.1e}",
        "queries / mP, median (bar)": f"{queries:.2f} (≤ {bars.queries})",
        "CPU s, median (bar)": f"{cpu:.1f}{bar(row.seconds, '.0f')}",
        "certified over the bar": f"{sum(r.certified and r.error > bars.error for r in runs)}",
        "reached": "yes" if reached else "no",
    }


def lines(found: Mapping[Row, list[Run]]) -> Iterator[Line]:
    """A line for each bar of a row."""
    return (line(row, bars, runs) for row, runs in found.items() for bars in row.bars)


TABLE = Table("polish", __doc__, ROWS, one, lines, first_seed=14_000_000, outcome=Run, apart=1000)

if __name__ == "__main__":
    main(TABLE)
