"""Carlini, Jagielski and Mironov, CRYPTO 2020, Table 1: their networks, recovered by revelu.

    python benchmarks/carlini20.py           print the table
    python benchmarks/carlini20.py --quick   one network a row
    python benchmarks/carlini20.py --write   keep it

The rows of one and of two hidden layers, each with ours above theirs.  Their program is on no
package index and is not run: their lines are printed figures.  Our networks are drawn by
`revelu.zoo.random_network`, theirs by their own rule; widths and depth are given to them and
not to us.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from runner import Line, Table, main, shape

import revelu
from revelu.oracle import Oracle

N_POINTS = 4_000
QUICK_INPUTS = 100


@dataclass(frozen=True)
class Row:
    """A network of the table, and what is printed of it.

    Queries and errors are powers of two; ``checked`` names those that the abstract states,
    which has been read; the others are quoted second-hand.
    """

    widths: tuple[int, ...]
    queries: float
    parameter_error: float
    error: float | None = None
    checked: bool = False
    is_polished: bool = False
    networks: int = 10

    @property
    def network(self) -> str:
        """Its widths."""
        return shape(self.widths)

    @property
    def name(self) -> str:
        """Its widths, and whether ours are polished."""
        return f"{self.network}{', polished' * self.is_polished}"

    @property
    def n_parameters(self) -> int:
        """Weights and biases."""
        return sum((m + 1) * k for m, k in pairwise(self.widths))


ROWS = (
    Row((784, 32, 1), 19.2, -30.2),
    Row((784, 128, 1), 21.5, -29.4, -25.0, checked=True),
    Row((10, 10, 10, 1), 16.0, -36.0),
    Row((10, 20, 20, 1), 17.1, -37.0),
    Row((80, 40, 20, 1), 18.5, -39.7, -40.4, checked=True),
)
# A polish of 784-32-1 takes half a minute, one of 784-128-1 far more.
POLISHED = tuple(
    replace(ROWS[i], is_polished=True, networks=n) for i, n in ((0, 3), (2, 10), (4, 10))
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


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one network and hold it against its truth."""
    widths = row.widths
    truth = revelu.zoo.random_network(list(widths), seed=seed)
    cpu = time.process_time()
    oracle = Oracle(truth, widths[0], max_seconds=limit, clock=time.process_time)
    recovery = revelu.extract(oracle, seed=seed, polish=row.is_polished)
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


def power(value: float) -> str:
    """Write a figure as a power of two, as the paper does."""
    return f"2^{np.log2(value):.1f}" if 0 < value < np.inf else "-"


def ours(row: Row, runs: list[Run]) -> Line:
    """A line of ours."""
    certified = [run for run in runs if run.status == "recovered"]

    def median(field: str) -> float:
        return float(np.median([getattr(run, field) for run in certified or runs]))

    return {
        "network": row.network,
        "parameters": f"{row.n_parameters:,}",
        "by": "revelu, polished" if row.is_polished else "revelu",
        "networks": f"{len(runs)}",
        "certified": f"{len(certified)}",
        "queries, median": power(median("queries")),
        "with the certificate": power(median("asked")),
        "largest parameter error, median": power(median("parameter_error")),
        "largest error of the function, median": power(median("error")),
        "CPU s, median": f"{median('cpu'):.1f}",
    }


def theirs(row: Row) -> Line:
    """The printed line."""
    mark = " †" if row.checked else ""
    return {
        "network": row.network,
        "parameters": f"{row.n_parameters:,}",
        "by": "printed",
        "networks": "-",
        "certified": "-",
        "queries, median": f"2^{row.queries:.1f}{mark}",
        "with the certificate": "-",
        "largest parameter error, median": f"2^{row.parameter_error:.1f}",
        "largest error of the function, median": "-"
        if row.error is None
        else f"2^{row.error:.1f}{mark}",
        "CPU s, median": "-",
    }


def lines(found: Mapping[Row, list[Run]]) -> Iterator[Line]:
    """Ours, above theirs."""
    for printed in ROWS:
        mine = [row for row in found if row.widths == printed.widths]
        yield from (ours(row, found[row]) for row in mine)
        if mine:
            yield theirs(printed)


NOTE = (
    "*printed*: the paper's own figures, not run here; those with † are in its abstract, the "
    "others are quoted second-hand from its table.  Medians are of the certified networks, "
    "or of all where none is.  Seconds are of CPU."
)
TABLE = Table(
    "carlini20",
    __doc__,
    (*ROWS, *POLISHED),
    one,
    lines,
    first_seed=33_000_000,
    outcome=Run,
    limit=120.0,
    named_by=3,
    quick=lambda row: not row.is_polished or row.widths[0] <= QUICK_INPUTS,
    note=lambda _: NOTE,
)

if __name__ == "__main__":
    main(TABLE)
