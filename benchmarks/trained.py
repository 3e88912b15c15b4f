"""Networks that scikit-learn has trained: what is found, queries, error and time.

    python benchmarks/trained.py                            print the table (hours)
    python benchmarks/trained.py --row diabetes --networks 1   lines whose name has this
    python benchmarks/trained.py --results runs.jsonl --networks 0 --write   keep earlier runs

MLPRegressor and MLPClassifier (its logits before the softmax) by Adam, at most 300 passes, on
standardised inputs and values of six data sets that scikit-learn has or draws; on values as they
are, "raw", which leave most neurons of the upper layers always on; and on sums of sines of few
Gaussian inputs.  Everything follows from the seed.  Besides the fresh points of
N(0, I), each is judged at the inputs that it was trained on.
"""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from extraction import Run, cells, lines_and_all, one, recorded
from runner import Line, Table, main, shape

from revelu import Network
from revelu.types import FloatArray

PASSES = 300
N_SAMPLES = 2_000
N_SINES = 4_000
NOISE = 0.1

CLASSES = ("wine", "breast_cancer", "digits")
DATA = ("diabetes", "friedman1", "friedman2", *CLASSES)
HIDDEN = ((24, 12), (32, 16), (64, 32), (100, 50), (32, 16, 8), (16, 16, 16))
RAW = ("raw diabetes", "raw friedman1")
FEW_INPUTS = ((4, 64, 64, 2), (3, 32, 32, 3), (8, 64, 64, 4))


@dataclass(frozen=True)
class Row:
    """A data set, or "sines", and the widths of what is trained on it."""

    kind: str
    widths: tuple[int, ...]
    networks: int = 1

    @property
    def name(self) -> str:
        """The data, and the widths: of all layers, or of the hidden ones."""
        return f"{self.kind} {shape(self.widths)}"

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return self.widths[1:-1] if self.kind == "sines" else self.widths

    def samples(self, seed: int) -> tuple[FloatArray, FloatArray]:
        """What it is trained on."""
        if self.kind == "sines":
            return sines(self.widths[0], self.widths[-1], seed)
        return standardised(self.kind, seed)

    def truth(self, seed: int) -> Network:
        """Train it."""
        return trained(*self.samples(seed), self.hidden, seed)

    def data(self, seed: int) -> FloatArray:
        """Return the inputs that it was trained on."""
        return self.samples(seed)[0]


ROWS = (
    *(Row(kind, hidden) for hidden in HIDDEN for kind in DATA),
    *(Row(kind, hidden, networks=3) for hidden in HIDDEN[:2] for kind in RAW),
    *(Row("sines", widths, networks=3) for widths in FEW_INPUTS),
)


def standardised(name: str, seed: int) -> tuple[FloatArray, FloatArray]:
    """Read or draw a data set: inputs of mean 0 and deviation 1, and values likewise, or classes.

    Values of what is "raw" are as they are.
    """
    from sklearn import datasets  # noqa: PLC0415 - no part of the process that extracts

    is_raw, name = name.startswith("raw "), name.removeprefix("raw ")
    if name.startswith("friedman"):
        draw = getattr(datasets, f"make_{name}")
        X, y = draw(n_samples=N_SAMPLES, noise=NOISE, random_state=seed)
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    spread = X.std(axis=0)
    # A pixel that is never inked has no spread.
    X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return X, y if is_raw or name in CLASSES else (y - y.mean()) / y.std()


def sines(d: int, k: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Draw inputs from N(0, I), and ``k`` functions sin(a x + s) + cos(b x) / 2 of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_SINES, d))
    A, B = rng.standard_normal((2, d, k))
    return X, np.sin(X @ A + rng.uniform(0.0, 2.0 * np.pi, k)) + 0.5 * np.cos(X @ B)


def trained(
    X: FloatArray, y: FloatArray, hidden: tuple[int, ...], seed: int, **options: float
) -> Network:
    """Train a network, on classes where ``y`` are whole numbers; with options of scikit-learn's."""
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415
    from sklearn.neural_network import MLPClassifier, MLPRegressor  # noqa: PLC0415

    kind: Any = MLPClassifier if np.issubdtype(y.dtype, np.integer) else MLPRegressor
    model = kind(hidden_layer_sizes=hidden, max_iter=PASSES, random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return Network([W.T for W in model.coefs_], model.intercepts_)


def line(name: str, runs: list[Run]) -> Line:
    """One line of the table: the data beside the fresh inputs."""
    data = [run.data_right or 0.0 for run in runs]
    labels = [run.labels for run in runs if run.labels is not None]
    return cells(name, runs) | {
        "data right, median, fewest": f"{np.median(data):.2%}, {min(data):.2%}",
        "data's labels equal, fewest": f"{min(labels):.1%}" if labels else "-",
    }


TABLE = Table(
    "trained",
    __doc__,
    ROWS,
    one,
    partial(lines_and_all, line),
    first_seed=32_000_000,
    outcome=recorded,
    limit=600.0,
)

if __name__ == "__main__":
    main(TABLE)
