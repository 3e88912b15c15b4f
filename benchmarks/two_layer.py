"""The main job's table: exactness, queries, error and rounds on two-layer networks.

    python benchmarks/two_layer.py            print the table (about half an hour)
    python benchmarks/two_layer.py --quick    one network a row
    python benchmarks/two_layer.py --write    and keep it on its page

Networks are He-initialised with biases of standard deviation 0.5, or trained on
scikit-learn's digits; the target's seed and the extractor's are different streams.
Exact: the largest |error| over 4,000 points of N(0, I) is under 1e-7.
"""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from runner import Line, Table, bar, by_row, main, timed

import revelu

HERE = Path(__file__).parent
EXACT = 1e-7

# A neuron is identifiable if |a| |w| is more than this share of the strongest product:
# what is fainter changes no answer by a hundredth of the certificate's tolerance.
FAINT = 1e-9


@dataclass(frozen=True)
class Row:
    """A line of the table: a shape, how many networks, and the bars to reach."""

    name: str
    widths: tuple[int, ...]
    networks: int
    exact: float
    queries: float
    error: float
    rounds: float
    trained: bool = False

    @property
    def unit(self) -> int:
        """The unit of queries: mP = m (d + 2) for one output, else the parameters."""
        d, m, k = self.widths
        return m * (d + 2) if k == 1 else m * (d + 1) + k * (m + 1)


ROWS = (
    Row("10-16-1", (10, 16, 1), 1000, 0.999, 1.30, 1e-10, 20),
    Row("20-40-1", (20, 40, 1), 1000, 0.999, 1.15, 1e-10, 25),
    Row("784-32-1", (784, 32, 1), 20, 1.0, 1.05, 1e-9, 30),
    Row("784-128-1", (784, 128, 1), 20, 1.0, 1.03, 2e-9, 40),
    Row("64-32-10", (64, 32, 10), 200, 1.0, 0.22, 1e-9, 40),
    Row("784-128-10", (784, 128, 10), 20, 1.0, 0.15, 2e-9, 40),
    Row("digits 64-32-10", (64, 32, 10), 10, 1.0, 0.25, 1e-9, np.inf, trained=True),
)


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    status: str
    error: float
    digits_error: float
    parameter_error: float
    missing: int
    queries: float
    rounds: int
    repaired: bool
    plain: bool
    cpu: float


def target_of(row: Row, seed: int) -> revelu.Network:
    """Draw or train the target; a trained one's split and start follow the seed."""
    if not row.trained:
        return revelu.zoo.random_network(list(row.widths), seed=seed)
    sys.path.insert(0, str(HERE.parent / "scripts"))
    from train_digits import train_digits  # noqa: PLC0415 - needs scikit-learn

    return train_digits(seed)


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one network and hold it against its truth."""
    target = target_of(row, seed)
    recovery, cpu = timed(revelu.extract, target, seed=seed, max_seconds=limit)
    X = np.random.default_rng([seed, 1]).standard_normal((4000, row.widths[0]))
    network = recovery.network
    error = digits_error = parameter_error = np.inf
    missing = row.widths[1]
    if network is not None:
        error = float(np.abs(network(X) - target(X)).max())
        alignment = revelu.align(network, target)
        parameter_error = float(alignment.max_parameter_error)
        missing = sum(_strength(target, network, name) > FAINT for name in alignment.unmatched)
        if row.trained:
            from sklearn.datasets import load_digits  # noqa: PLC0415

            pixels = load_digits().data / 16.0
            digits_error = float(np.abs(network(pixels) - target(pixels)).max())
    ledger = recovery.ledger
    return Run(
        status=recovery.status.value,
        error=error,
        digits_error=digits_error,
        parameter_error=parameter_error,
        missing=missing,
        queries=ledger.n_recovery / row.unit,
        rounds=ledger.n_rounds,
        repaired=ledger.by_phase["repair"] > 0,
        plain=network is not None and network.skip is None,
        cpu=cpu,
    )


def _strength(target: revelu.Network, network: revelu.Network, name: str) -> float:
    """``|a| |w|`` of an unmatched neuron, relative to the target's strongest one."""
    side, _, where = name.partition(": weights[0]")
    W, A = (target if side == "truth" else network).weights
    products = np.linalg.norm(W, axis=1) * np.linalg.norm(A, axis=0)
    largest = (np.linalg.norm(target.weights[0], axis=1)).max() * np.linalg.norm(
        target.weights[1], axis=0
    ).max()
    return float(products[int(where.strip("[]"))] / largest)


def line(row: Row, runs: list[Run]) -> Line:
    """One line of the table."""
    errors = np.array([run.error for run in runs])
    queries, error, rounds, cpu, parameter_error = (
        float(np.median([getattr(run, name) for run in runs]))
        for name in ("queries", "error", "rounds", "cpu", "parameter_error")
    )
    good = errors < EXACT
    silent = sum(not ok and run.status == "recovered" for ok, run in zip(good, runs, strict=True))
    unit = "/ mP" if row.widths[2] == 1 else "/ parameter"
    return {
        "network": row.name,
        "networks": f"{len(runs)}",
        "exact (bar)": f"{good.mean():.2%}{bar(row.exact, '.1%', '≥')}",
        "queries (bar)": f"{queries:.3f} {unit}{bar(row.queries)}",
        "error, median (bar)": f"{error:.1e}{bar(row.error, '.0e')}",
        "largest error": f"{errors.max():.1e}",
        "parameter error, median": f"{parameter_error:.1e}",
        "rounds, median / most (bar)": f"{rounds:.0f} / {max(run.rounds for run in runs)}"
        f"{bar(row.rounds)}",
        "repaired": f"{sum(run.repaired for run in runs)}",
        "plain shape": f"{sum(run.plain for run in runs)}",
        "wrong and silent": f"{silent}",
        "CPU s, median": f"{cpu:.2f}",
    }


def note(found: Mapping[Row, list[Run]]) -> str:
    """What is said of networks that were trained, and of a process as a whole."""
    said = [
        f"{row.name}: largest error on the 1,797 digits themselves, median "
        f"{np.median([run.digits_error for run in runs]):.1e}, of the worst network "
        f"{max(run.digits_error for run in runs):.1e}; identifiable neurons (|a||w| over "
        f"{FAINT:.0e} of the largest) missing or spurious over all networks: "
        f"{sum(run.missing for run in runs)}."
        for row, runs in found.items()
        if row.trained
    ]
    return "\n\n".join([*said, whole_process()])


def whole_process() -> str:
    """CPU seconds and peak memory of one 784-128-1 extraction, the whole process counted."""
    code = (
        "import revelu; n = revelu.zoo.random_network([784, 128, 1], seed=6000000); "
        "print(revelu.extract(n, seed=6000000).status.value)"
    )
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return "whole-process figures need a POSIX system"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        f"784-128-1 as a whole process (import, target and 3,000 checks included): "
        f"{done.stdout.strip()}, {usage.ru_utime + usage.ru_stime:.1f} s of CPU, "
        f"{usage.ru_maxrss / 1024:.0f} MiB at its peak."
    )


TABLE = Table(
    "two_layer", __doc__, ROWS, one, by_row(line), first_seed=6_000_000, outcome=Run, note=note
)

if __name__ == "__main__":
    main(TABLE)
