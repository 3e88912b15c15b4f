"""The main job's table: exactness, queries, error and rounds on two-layer networks.

    python benchmarks/two_layer.py            print the table (about half an hour)
    python benchmarks/two_layer.py --quick    a tenth of it
    python benchmarks/two_layer.py --write    and keep it on its page

Networks are He-initialised with biases of standard deviation 0.5, or trained on
scikit-learn's digits; the target's seed and the extractor's are different streams.
Exact: the largest |error| over 4,000 points of N(0, I) is under 1e-7.
"""

import argparse
import json
import platform
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from page import keep

import revelu

HERE = Path(__file__).parent
FIRST_SEED = 6_000_000
EXACT = 1e-7

# A neuron is identifiable if |a| |w| is more than this share of the strongest product:
# what is fainter changes no answer by a hundredth of the certificate's tolerance.
FAINT = 1e-9


@dataclass(frozen=True)
class Row:
    """A line of the table: a shape, how many networks, and the bars to reach."""

    name: str
    widths: tuple[int, ...]
    n_networks: int
    exact: float
    queries: float
    error: float
    rounds: int | None
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
    Row("digits 64-32-10", (64, 32, 10), 10, 1.0, 0.25, 1e-9, None, trained=True),
)


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    seed: int
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


def one(row: Row, seed: int) -> Run:
    """Extract one network and hold it against its truth."""
    target = target_of(row, seed)
    cpu = time.process_time()
    recovery = revelu.extract(target, seed=seed)
    cpu = time.process_time() - cpu
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
        seed=seed,
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


def summary(row: Row, runs: list[Run]) -> dict[str, object]:
    """The figures of one line."""
    errors = np.array([run.error for run in runs])
    good = errors < EXACT
    silent = sum(not ok and run.status == "recovered" for ok, run in zip(good, runs, strict=True))
    figures: dict[str, object] = {
        "network": row.name,
        "networks": len(runs),
        "exact": float(good.mean()),
        "queries": float(np.median([run.queries for run in runs])),
        "error": float(np.median(errors)),
        "largest error": float(errors.max()),
        "parameter error": float(np.median([run.parameter_error for run in runs])),
        "rounds": float(np.median([run.rounds for run in runs])),
        "most rounds": max(run.rounds for run in runs),
        "repaired": sum(run.repaired for run in runs),
        "plain": sum(run.plain for run in runs),
        "wrong and silent": silent,
        "cpu": float(np.median([run.cpu for run in runs])),
        "reached": bool(
            good.mean() >= row.exact
            and np.median([run.queries for run in runs]) <= row.queries
            and np.median(errors) <= row.error
            and (row.rounds is None or np.median([run.rounds for run in runs]) <= row.rounds)
        ),
    }
    if row.trained:
        on_digits = [run.digits_error for run in runs]
        figures["digits error"] = float(np.median(on_digits))
        figures["largest digits error"] = float(max(on_digits))
        figures["missing neurons"] = sum(run.missing for run in runs)
    return figures


def table(figures: list[dict[str, object]]) -> str:
    """Render the lines as Markdown."""
    bars = {row.name: row for row in ROWS}
    heads = (
        "| network | networks | exact (bar) | queries (bar) | error, median (bar) | largest error "
        "| parameter error, median | rounds, median / most (bar) | repaired | plain shape "
        "| wrong and silent | CPU s, median |"
    )
    lines = [heads, "|" + "---|" * 12]
    for f in figures:
        bar = bars[str(f["network"])]
        rounds = "" if bar.rounds is None else f" (≤ {bar.rounds})"
        unit = "/ mP" if bar.widths[2] == 1 else "/ parameter"
        lines.append(
            f"| {f['network']} | {f['networks']} | {f['exact']:.2%} (≥ {bar.exact:.1%}) "
            f"| {f['queries']:.3f} {unit} (≤ {bar.queries}) | {f['error']:.1e} (≤ {bar.error:.0e}) "
            f"| {f['largest error']:.1e} | {f['parameter error']:.1e} "
            f"| {f['rounds']:.0f} / {f['most rounds']}{rounds} | {f['repaired']} | {f['plain']} "
            f"| {f['wrong and silent']} | {f['cpu']:.2f} |"
        )
    trained = [f for f in figures if "digits error" in f]
    lines += [
        f"\n{f['network']}: largest error on the 1,797 digits themselves, median "
        f"{f['digits error']:.1e}, of the worst network {f['largest digits error']:.1e}; "
        f"identifiable neurons (|a||w| over {FAINT:.0e} of the largest) missing or spurious over "
        f"all networks: {f['missing neurons']}."
        for f in trained
    ]
    return "\n".join(lines)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the networks")
    parser.add_argument("--row", action="append", help="only this network; may be given again")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="keep it on its page")
    options = parser.parse_args()
    process = whole_process()
    figures = []
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for row in ROWS:
            if options.row and row.name not in options.row:
                continue
            n = max(row.n_networks // 10, 2) if options.quick else row.n_networks
            seeds = range(options.first_seed, options.first_seed + n)
            runs = list(pool.map(partial(one, row), seeds))
            figures.append(summary(row, runs))
            print(json.dumps(figures[-1]), flush=True)
            for run in runs:
                if run.error >= EXACT:
                    print("  not exact:", asdict(run), flush=True)
    versions = (
        f"revelu {revelu.__version__}, NumPy {np.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, seeds from {options.first_seed}."
    )
    text = f"{table(figures)}\n\n{process}\n\n{versions}"
    print(f"\n{text}")
    if options.write:
        keep("two_layer", text)


if __name__ == "__main__":
    main()
