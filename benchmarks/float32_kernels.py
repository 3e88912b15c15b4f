"""Networks that compute in float32, by the order in which their sums are taken.

    python benchmarks/float32_kernels.py --results runs.jsonl            print the table
    python benchmarks/float32_kernels.py --results runs.jsonl --write    and keep it
    python benchmarks/float32_kernels.py --numpy Haswell --numpy SkylakeX    what OpenBLAS takes

Libraries take other kernels where a product of matrices is large, and the errors of answers depend
on the size of their batch.  InFloat32 of revelu.oracle does the same on every machine.  With
--numpy, NumPy multiplies, and OpenBLAS takes the kernels of that processor, if this one has them.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from precision import computing_in
from runner import Line, Table, main, shape

import revelu
from revelu.oracle import InFloat32
from revelu.types import FloatArray

N_POINTS = 20_000
WIDTHS = ((200, 8, 4), (250, 6, 10), (120, 20, 3), (300, 10, 1))
# Kernels that do not look at the batch, and those that do, by the first large one.
ONE_KERNEL = ("sequential", "pairwise")
KERNELS = (*ONE_KERNEL, "by_batch 64", "by_batch 200", "by_batch 500")
# A certificate of a network that errs by more is wrong: errors of answers are some 3e-7.
WRONG = 1e-5


@dataclass(frozen=True)
class Row:
    """A network, and the kernel that multiplies."""

    widths: tuple[int, ...]
    kernel: str
    networks: int = 10

    @property
    def name(self) -> str:
        """The widths, and the kernel."""
        return f"{shape(self.widths)}, {self.kernel}"

    @property
    def environment(self) -> dict[str, str]:
        """What OpenBLAS reads as a process begins."""
        is_numpy = self.kernel.startswith("numpy")
        return {"OPENBLAS_CORETYPE": self.kernel.split()[1]} if is_numpy else {}


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    status: str
    queries: int
    error: float
    neurons: int


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one network, and hold it against its truth in float64."""
    widths = row.widths
    network = revelu.zoo.random_network(list(widths), seed=seed)
    truth = InFloat32.truth(network)
    target = target_of(network, row.kernel)
    recovery = revelu.extract(target, dim_in=widths[0], seed=seed, max_seconds=limit)
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, widths[0]))
    Y, found, error, neurons = truth(X), recovery.network, np.inf, 0
    if found is not None:
        error = float(np.sqrt(((found(X) - Y) ** 2).mean() / Y.var(axis=0).mean()))
        neurons = found.architecture[1]
    return Run(recovery.status.value, recovery.ledger.n_queries, error, neurons)


def target_of(network: revelu.Network, kernel: str) -> Callable[[FloatArray], FloatArray]:
    """The network in float32, its sums as the kernel takes them."""
    if kernel.startswith("numpy"):
        return computing_in(network)
    name, *rows = kernel.split()
    return InFloat32(name, *map(int, rows))(network)


def lines(found: Mapping[Row, list[Run]]) -> Iterator[Line]:
    """A line a network and kernel."""
    for row, runs in found.items():
        errors, queries = [run.error for run in runs], [run.queries for run in runs]
        certified = [run for run in runs if run.status == "recovered"]
        wrong = sum(run.error > WRONG or run.neurons != row.widths[1] for run in certified)
        base = sum(run.queries for run in found.get(Row(row.widths, ONE_KERNEL[0]), []))
        yield {
            "network": shape(row.widths),
            "kernel": row.kernel,
            "networks": f"{len(runs)}",
            "certified": f"{len(certified)}",
            "wrong and silent": f"{wrong}",
            "NRMSE, median, largest": f"{np.median(errors):.1e}, {max(errors):.1e}",
            "queries, median": f"{np.median(queries):,.0f}",
            "all queries, by those of sequential sums": f"{sum(queries) / base:.2f}"
            if base
            else "-",
        }


def rows(options: argparse.Namespace) -> list[Row]:
    """Every network under every kernel."""
    kernels = (*KERNELS, *(f"numpy {processor}" for processor in options.numpy))
    return [Row(widths, kernel) for widths in WIDTHS for kernel in kernels]


def options(parser: argparse.ArgumentParser) -> None:
    """Which of OpenBLAS's kernels are asked, too."""
    parser.add_argument("--numpy", action="append", default=[], help="a processor of OpenBLAS's")


TABLE = Table(
    "float32_kernels",
    __doc__,
    rows,
    one,
    lines,
    first_seed=7_300_000,
    outcome=Run,
    named_by=2,
    environment=lambda row: row.environment,
    options=options,
)

if __name__ == "__main__":
    main(TABLE)
