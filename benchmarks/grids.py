"""Answers on a grid: what comes back of a network, and to how many of the grid's steps.

    python benchmarks/grids.py            print the table
    python benchmarks/grids.py --write    and keep it on its page

The truth is a random network of one hidden layer in float64, whose width is not given.
"""

from dataclasses import dataclass

import numpy as np
from runner import Line, Table, by_row, main, shape, timed

import revelu

N_POINTS = 20_000


@dataclass(frozen=True)
class Row:
    """A line: the answers are multiples of ``step``, of a network ``factor`` times as large.

    Where ``cap`` is finite they are clipped to ``[-cap, cap - step]``, as fixed point saturates.
    """

    widths: tuple[int, ...]
    bits: int
    factor: float = 1.0
    cap: float = np.inf
    networks: int = 3

    @property
    def step(self) -> float:
        """The distance of neighbouring answers."""
        return 2.0**-self.bits

    @property
    def name(self) -> str:
        """The network, and the step."""
        return f"{self.network} 2^-{self.bits}"

    @property
    def network(self) -> str:
        """What the network is called."""
        saturates = f", in [-{self.cap:g}, {self.cap:g})" if np.isfinite(self.cap) else ""
        return f"{shape(self.widths)}{saturates}"


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


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one network and hold it against its truth."""
    truth = revelu.zoo.random_network(list(row.widths), seed=seed)
    (W, A), (b, c) = truth.weights, truth.biases
    truth = revelu.Network([W, row.factor * A], [b, row.factor * c])

    def answer(X: np.ndarray) -> np.ndarray:
        rounded = np.rint(truth(X) / row.step) * row.step
        return np.clip(rounded, -row.cap, row.cap - row.step)

    recovery, cpu = timed(
        revelu.extract, answer, dim_in=row.widths[0], seed=seed, max_seconds=limit
    )
    network, certificate = recovery.network, recovery.certificate
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, row.widths[0]))
    error = ratio = np.inf
    if network is not None:
        exact = np.clip(truth(X), -row.cap, row.cap - row.step)
        error = float(np.sqrt(((network(X) - exact) ** 2).mean())) / row.step
        left = float(np.sqrt(((network(X) - answer(X)) ** 2).mean()))
        ratio = np.inf if certificate is None else certificate.tolerance / left
    return Run(
        status=recovery.status.value,
        neurons=0 if network is None else network.architecture[1],
        error=error,
        tolerance=ratio,
        queries=recovery.ledger.n_recovery / truth.n_parameters,
        cpu=cpu,
    )


def line(row: Row, runs: list[Run]) -> Line:
    """One line of the table."""
    right = [run for run in runs if run.status == "recovered"]
    errors = [run.error for run in right] or [np.inf]
    loosest = max((run.tolerance for run in right), default=np.inf)
    return {
        "network": row.network,
        "step": f"2^-{row.bits}",
        "networks": f"{len(runs)}",
        "certified": f"{len(right)}",
        "with their neurons": f"{sum(run.neurons == row.widths[1] for run in right)}",
        "error, in steps, median, largest": f"{np.median(errors):.2f}, {max(errors):.2f}",
        "tolerance over the errors, largest (bar)": f"{loosest:.1f} (≤ 10)",
        "queries / parameter, median": f"{np.median([run.queries for run in runs]):.1f}",
        "CPU s, median": f"{np.median([run.cpu for run in runs]):.1f}",
    }


TABLE = Table(
    "grids",
    __doc__,
    ROWS,
    one,
    by_row(line),
    first_seed=8_650_000,
    outcome=Run,
    limit=300.0,
    apart=100,
    named_by=2,
)

if __name__ == "__main__":
    main(TABLE)
