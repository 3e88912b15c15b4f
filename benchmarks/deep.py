"""Three hidden layers and more: what is found, queries, error and time.

    python benchmarks/deep.py              print a line for every network, then the table
    python benchmarks/deep.py --quick      one network of each shape, in a minute or two
    python benchmarks/deep.py --write      and keep it
    python benchmarks/deep.py --results runs.jsonl --networks 0 --write   those of earlier runs

Networks are He-initialised with biases of standard deviation 0.5, or trained on scikit-learn's
digits in float64 (scripts/train_digits.py); widths and depth are not given, and the method is
auto.  Exact: relative L2 error at most 1e-10, and the largest error at most 1e-8 of the outputs'
deviation, on 20,000 points of N(0, I).
"""

import argparse
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from page import keep, record, records
from scipy.spatial.distance import cdist

import revelu
from revelu import Network
from revelu.types import FloatArray

Layer = tuple[FloatArray, FloatArray]

FIRST_SEED = 7_700_000
HALVED = 32
N_POINTS = 20_000
SAME_ROW = 1e-6
EXACT_L2, EXACT_LARGEST = 1e-10, 1e-8


@dataclass(frozen=True)
class Row:
    """A line of the table: a shape and the bars to reach."""

    widths: tuple[int, ...]
    exact: float | None = None
    architecture: float | None = None
    queries: int | None = None
    seconds: int | None = None
    published: str = "-"
    trained: bool = False

    @property
    def name(self) -> str:
        """The widths, input first."""
        n_layers = len(self.widths) - 2
        if len(set(self.widths[1:-1])) == 1 < n_layers - 4:
            shape = f"{self.widths[0]}-{n_layers} x {self.widths[1]}-{self.widths[-1]}"
        else:
            shape = "-".join(map(str, self.widths))
        return f"{shape}, trained on digits" if self.trained else shape

    def truth(self, seed: int) -> Network:
        """One network of the line."""
        if not self.trained:
            return revelu.zoo.random_network(list(self.widths), seed=seed)
        from train_digits import train_digits  # noqa: PLC0415 - needs scikit-learn

        return train_digits(seed, self.widths[1:-1], halved=self.widths[0] == HALVED)

    def digits(self) -> FloatArray | None:
        """All digits, shape (1797, d), where it is trained on them."""
        if not self.trained:
            return None
        from train_digits import digits  # noqa: PLC0415 - needs scikit-learn

        return digits(halved=self.widths[0] == HALVED)[0]


ROWS = (
    Row((40, 20, 10, 10, 1), 0.95, 0.9, 160, 60, "2^17.8, 198 a parameter"),
    Row((10, 20, 20, 1), 0.95, 0.9, 200, 90, "2^17.1, 212 a parameter"),
    Row((10, 10, 10, 10, 1), 0.9, 0.8, 500, 90),
    Row((30, 20, 10, 8, 6, 1), 0.8, 0.7, 300, 120),
    Row((10, 10, 10, 10, 10), 0.95, 0.9, 100, 60),
    Row((64, 32, 16, 16, 10), 0.8, seconds=300, trained=True),
    Row((32, *[16] * 8, 10), trained=True),
)


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    seed: int
    status: str
    architecture: tuple[int, ...]
    layers: int
    layers_right: int
    queries: float
    right: float
    relative: float
    largest: float
    silent: bool
    labels: float | None
    seconds: float

    @property
    def exact(self) -> bool:
        """Whether both errors are within their limits."""
        return self.relative <= EXACT_L2 and self.largest <= EXACT_LARGEST


def n_right(truth: Network, layers: Sequence[Layer], X: FloatArray) -> int:
    """How many layers, the lowest first, have all neurons of the truth that fire, and no other.

    Units found are the truth's ``units``, ``scales`` times as large.
    """
    units, scales = np.arange(truth.dim_in), np.ones(truth.dim_in)
    H = X
    for n, (W, b) in enumerate(layers):
        if n == len(truth.weights) - 1:
            return n
        H = np.maximum(H @ truth.weights[n].T + truth.biases[n], 0.0)
        true = np.column_stack([truth.weights[n][:, units] / scales, truth.biases[n]])
        sizes = np.linalg.norm(true, axis=1)
        apart = cdist(_unit(np.column_stack([W, b])), true / sizes[:, None])
        units = apart.argmin(axis=1)
        if (apart.min(axis=1) > SAME_ROW).any() or not set(units) >= set(
            np.flatnonzero(H.any(axis=0))
        ):
            return n
        scales = np.linalg.norm(np.column_stack([W, b]), axis=1) / sizes[units]
    return len(layers)


def _unit(rows: FloatArray) -> FloatArray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


def shown_widths(truth: Network, X: FloatArray) -> list[int]:
    """How many neurons of every hidden layer answers to these inputs tell of.

    A neuron that is on at none of them is none for all that they say, and of those that are on at
    all of them a layer shows one, the last hidden layer as many as there are outputs.
    """
    H, shown = X, []
    n_layers = len(truth.weights) - 1
    for i, (W, b) in enumerate(zip(truth.weights[:-1], truth.biases[:-1], strict=True)):
        on = H @ W.T + b > 0
        most = truth.dim_out if i == n_layers - 1 else 1
        steady, ever = int(on.all(axis=0).sum()), int(on.any(axis=0).sum())
        shown.append(ever - steady + min(steady, most))
        H = np.maximum(H @ W.T + b, 0.0)
    return shown


def is_as_shown(row: Row, run: Run) -> bool:
    """Whether every hidden layer has no fewer neurons than show, and no more than the truth."""
    found = run.architecture[1:-1]
    least, most = shown_widths(*_held_against(row, run.seed)), row.widths[1:-1]
    return len(found) == len(most) and all(
        a <= n <= b for a, n, b in zip(least, found, most, strict=True)
    )


def same_labels(truth: Network, network: Network, X: FloatArray) -> float:
    """The share of inputs with the same largest output."""
    return float((truth(X).argmax(axis=1) == network(X).argmax(axis=1)).mean())


def one(row: Row, seed: int) -> Run:
    """Extract one network and hold it against its truth."""
    truth = row.truth(seed)
    start = time.process_time()
    recovery = revelu.extract(truth, seed=seed)
    seconds = time.process_time() - start
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, row.widths[0]))
    Y, network = truth(X), recovery.network
    deviation = float(Y.std())
    images = row.digits()
    right, relative, largest, silent = 0.0, np.inf, np.inf, False
    layers = recovery.details.get("layers", [])
    if network is not None:
        errors = np.abs(network(X) - Y).max(axis=1)
        right = float((errors <= EXACT_LARGEST * deviation).mean())
        relative = float(np.linalg.norm(network(X) - Y) / np.linalg.norm(Y))
        largest = float(errors.max()) / deviation
        if recovery.status is revelu.Status.RECOVERED and recovery.certificate is not None:
            seen = recovery.certificate
            allowed = -np.log(0.05) / seen.n_checks
            silent = bool((errors > seen.tolerance).mean() > 2 * allowed)
    return Run(
        seed,
        recovery.status.value,
        () if network is None else network.architecture,
        len(layers),
        n_right(truth, layers, X),
        recovery.ledger.n_recovery / truth.n_parameters,
        right,
        relative,
        largest,
        silent,
        None if images is None or network is None else same_labels(truth, network, images),
        seconds,
    )


def _held_against(row: Row, seed: int) -> tuple[Network, FloatArray]:
    """A network and the points that it is held against."""
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, row.widths[0]))
    return row.truth(seed), X


def line(row: Row, runs: list[Run]) -> str:
    """Render a line of the table."""
    exact = [run for run in runs if run.exact]
    same = sum(run.architecture == row.widths for run in exact)
    share = f"{same} of {len(exact)}" if exact else "-"
    shown = sum(is_as_shown(row, run) for run in exact)
    labels = [run.labels for run in runs if run.labels is not None]
    return (
        f"| {row.name} | {len(runs)} | {len(exact)}{bar('≥', row.exact, '.0%')} "
        f"| {share}{bar('≥', row.architecture, '.0%')} "
        f"| {f'{shown} of {len(exact)}' if exact else '-'} "
        f"| {sum(run.status == 'recovered' for run in runs)} | {sum(run.silent for run in runs)} "
        f"| {np.median([run.layers_right for run in runs]):g} of {len(row.widths) - 2} "
        f"| {sum(run.layers - run.layers_right for run in runs)} "
        f"| {np.median([run.right for run in runs]):.2%}, {min(run.right for run in runs):.2%} "
        f"| {f'{np.median(labels):.1%}' if labels else '-'} "
        f"| {np.median([run.queries for run in runs]):.0f}{bar('≤', row.queries)} "
        f"| {row.published} "
        f"| {np.median([run.seconds for run in runs]):.0f}{bar('≤', row.seconds)} |"
    )


def bar(sign: str, limit: float | None, spec: str = "") -> str:
    """A bar to reach, in brackets, where there is one."""
    return "" if limit is None else f" ({sign} {limit:{spec}})"


def measure(rows: list[Row], seeds: range, results: Path | None) -> dict[Row, list[Run]]:
    """Extract what has not been extracted yet, and add it to the results: all runs of rows."""
    runs: dict[Row, list[Run]] = {row: [] for row in rows}
    for name, values in records(results):
        run = Run(**values | {"architecture": tuple(values["architecture"])})
        for row in rows:
            if row.name == name:
                runs[row].append(run)
    for seed in seeds:
        for row in rows:
            if all(run.seed != seed for run in runs[row]):
                run = one(row, seed)
                print(row.name, "exact" if run.exact else "", run, flush=True)
                record(results, [row.name, asdict(run)])
                runs[row].append(run)
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
    parser.add_argument("--row", action="append", type=int, help="only this line, from 0")
    parser.add_argument("--networks", type=int, default=20, help="how many a line")
    parser.add_argument("--quick", action="store_true", help="one network a line, none trained")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--results", type=Path, default=Path("deep.jsonl"), help="where runs are")
    parser.add_argument("--write", action="store_true", help="keep it on its page")
    options = parser.parse_args()
    rows = [row for i, row in enumerate(ROWS) if not options.row or i in options.row]
    n, results = options.networks, options.results
    if options.quick:
        n, results, rows = 1, None, [row for row in rows if not row.trained]
    runs = measure(rows, range(options.first_seed, options.first_seed + n), results)
    heads = (
        "| network | networks | exact (bar) | architecture right, of the exact (bar) "
        "| right as far as neurons show | certified "
        "| wrong and silent | layers known exact, median "
        "| layers said exact, wrong | inputs right, median, fewest | digits' labels equal, median "
        "| queries / parameter, median (bar) "
        "| published, queries | CPU seconds, median (bar) |"
    )
    versions = (
        f"revelu {revelu.__version__}, NumPy {np.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, seeds from {options.first_seed}."
    )
    lines = [line(row, found) for row, found in runs.items() if found]
    text = "\n".join([heads, "|" + "---|" * 14, *lines, "", versions])
    print(f"\n{text}")
    if options.write:
        keep("deep", text)


if __name__ == "__main__":
    main()
