"""The lowest layer under a high threshold, and halfspaces: angles, by samples and queries.

    python benchmarks/lowest_layer.py --table queries      print a table
    python benchmarks/lowest_layer.py --table samples --networks 20 --write
                                                           and keep it on its page

Tables: queries, samples, directions (ways to start, by threshold; --plot FILE.png draws it),
rare (importance sampling).  Errors are the worst angle over a network's directions, in
radians.  P has linear, pair and triple terms.  With --results FILE every network is recorded
there, and a run goes on where it stopped.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from page import keep, keep_rows, once

import revelu
from revelu.numerics.high_threshold import coefficient
from revelu.numerics.matching import match_rows
from revelu.oracle import Oracle
from revelu.recover.rare.rare_directions import estimate_directions
from revelu.recover.rare.rare_samples import (
    RareSamples,
    draw_rare,
    rare_samples,
)

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from threshold_networks import ThresholdNetwork, halfspaces, threshold_network

FIRST_SEED = 13_200_000


def worst(W: np.ndarray, truth: np.ndarray) -> float:
    """Largest angle between matched rows; a right angle where one is missing."""
    rows, _ = match_rows(W, truth)
    if (rows < 0).any():
        return np.pi / 2.0
    # Chords keep digits that cosines of small angles lose.
    return float(2.0 * np.arcsin(np.linalg.norm(W[rows] - truth, axis=1).max() / 2.0))


def off(t: np.ndarray, W: np.ndarray, net_t: np.ndarray, truth: np.ndarray) -> float:
    rows, _ = match_rows(W, truth)
    return float(np.abs(t[rows] - net_t).max()) if (rows >= 0).all() else np.inf


def samples_of(net: ThresholdNetwork, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng([1, seed]).standard_normal((n, net.directions.shape[1]))
    return X, net(X)


@dataclass(frozen=True)
class Line:
    """One network: what was reached."""

    directions: float
    refined: float
    threshold: float
    status: str
    said: float
    queries: int
    seconds: float


def from_samples(
    d: int, k: int, kappa: float, t: float, n: int, activation: str, seed: int
) -> Line:
    net = threshold_network((d, k), threshold=t, kappa=kappa, activation=activation, seed=seed)
    X, y = samples_of(net, n, seed)
    began = time.process_time()
    if activation == "sign":
        y = (net.units(X) > 0).any(axis=1).astype(float)
        found = revelu.recover_halfspaces(X=X, y=y, n_halfspaces=k, seed=seed)
        W = found.normals
    else:
        found = revelu.recover_lowest_layer(X=X, y=y, n_neurons=k, seed=seed)
        W = found.directions
    seconds = time.process_time() - began
    start = found.details.get("start")
    if start is None:
        samples = rare_samples(X, y, float(np.median(y)))
        start = estimate_directions(samples, activation, k, np.random.default_rng(seed))
    return Line(
        worst(start.directions, net.directions) if start else np.pi / 2,
        worst(W, net.directions),
        off(found.thresholds, W, net.thresholds, net.directions),
        found.status.value,
        float(found.errors.max(initial=0.0)),
        0,
        seconds,
    )


def from_queries(d: int, k: int, kind: str, seed: int) -> Line:
    began = time.process_time()
    if kind == "relu":
        net = threshold_network((d, k), kappa=2.0, seed=seed)
        W, t = net.directions, net.thresholds
        found = revelu.recover_lowest_layer(net, dim_in=d, seed=seed)
        rows = found.directions
    else:
        W, t = halfspaces((d, k), seed=seed)
        side = 1.0 if kind == "or" else -1.0
        W, t = side * W, side * t

        def target(X: np.ndarray) -> np.ndarray:
            inside = X @ W.T - t >= 0
            return inside.any(axis=1) if kind == "or" else inside.all(axis=1)

        found = revelu.recover_halfspaces(target, dim_in=d, combine=kind, seed=seed)
        rows = found.normals
    return Line(
        np.nan,
        worst(rows, W),
        off(found.thresholds, rows, t, W),
        found.status.value,
        float(found.errors.max(initial=0.0)),
        found.ledger.by_phase["recover"],
        time.process_time() - began,
    )


def sigmoid(n: int, seed: int) -> Line:
    net = threshold_network((10, 5), threshold=3.0, activation="sigmoid", seed=seed)
    began = time.process_time()
    found = revelu.recover_lowest_layer(
        net, dim_in=10, activation="sigmoid", n_neurons=5, seed=seed, budget=n
    )
    start = found.details["start"].directions
    return Line(
        worst(start, net.directions),
        worst(found.directions, net.directions),
        off(found.thresholds, found.directions, net.thresholds, net.directions),
        found.status.value,
        float(found.errors.max(initial=0.0)),
        found.ledger.n_queries,
        time.process_time() - began,
    )


@dataclass(frozen=True)
class Row:
    """A line of a table: its name, and how a network is run."""

    name: str
    run: Callable[[int], Line]


SAMPLES = (
    *(
        Row(
            f"ReLU, 5 in 10, κ = {kappa:g}, t = {t:g}, 4e5 samples",
            lambda seed, kappa=kappa, t=t: from_samples(10, 5, kappa, t, 400_000, "relu", seed),
        )
        for kappa in (1.0, 2.0)
        for t in (1.5, 2.0)
    ),
    Row(
        "ReLU, 8 in 20, κ = 2, t = 2, 4e5 samples",
        lambda seed: from_samples(20, 8, 2.0, 2.0, 400_000, "relu", seed),
    ),
    Row(
        "union of 5 in 10, t = 2, 2e5 labels",
        lambda seed: from_samples(10, 5, 1.0, 2.0, 200_000, "sign", seed),
    ),
    Row(
        "union of 5 in 10, t = 2, 2e6 labels",
        lambda seed: from_samples(10, 5, 1.0, 2.0, 2_000_000, "sign", seed),
    ),
)

QUERIES = (
    Row("union of 5 in 10, label queries", lambda seed: from_queries(10, 5, "or", seed)),
    Row("intersection of 10 in 30, label queries", lambda seed: from_queries(30, 10, "and", seed)),
    Row("ReLU, 5 in 10, κ = 2, t = 2, oracle", lambda seed: from_queries(10, 5, "relu", seed)),
    Row("ReLU, 8 in 20, κ = 2, t = 2, oracle", lambda seed: from_queries(20, 8, "relu", seed)),
    Row("sigmoid, 5 in 10, t = 3, 1e6 queries", lambda seed: sigmoid(1_000_000, seed)),
)

ROWS = {"samples": SAMPLES, "queries": QUERIES}

_HEADER = (
    "| target | networks | directions, median (worst) | refined, median (worst) "
    "| threshold, worst | certified | error said, median | queries, median | CPU s |"
)


def table(row: Row, seeds: range, results: Path | None) -> str:
    """Run a row and return its table."""
    runs = [once(results, row.name, seed, lambda seed: asdict(row.run(seed))) for seed in seeds]
    found = [Line(**run) for run in runs]
    return f"{_HEADER}\n|---|---|---|---|---|---|---|---|---|\n{summary(row.name, found)}"


def summary(name: str, found: list[Line]) -> str:
    def both(values: list[float]) -> str:
        return "-" if np.isnan(values).any() else f"{np.median(values):.2g} ({max(values):.2g})"

    queries = np.median([f.queries for f in found])
    return (
        f"| {name} | {len(found)} | {both([f.directions for f in found])} "
        f"| {both([f.refined for f in found])} | "
        + ("-" if np.isnan(found[0].threshold) else f"{max(f.threshold for f in found):.2g}")
        + f" | {sum(f.status == 'recovered' for f in found)} "
        f"| {np.median([f.said for f in found]):.1g} | {queries:,.0f} "
        f"| {np.median([f.seconds for f in found]):.2g} |"
    )


THRESHOLDS = (1.0, 1.5, 2.0, 2.5)


def ways(
    samples: RareSamples, activation: str, k: int, t: float, seed: int
) -> Iterator[np.ndarray]:
    """Directions by joint diagonalisation, one by one, and all at once."""
    from listings.landscape import (  # noqa: PLC0415 - from the tests
        balanced,
        directions_at_once,
        directions_one_by_one,
    )

    rng = np.random.default_rng(seed)
    start = estimate_directions(samples, activation, k, rng)
    yield start.directions if start is not None else np.empty((0, samples.X.shape[1]))
    values, U = np.linalg.eigh(samples.second_moment())
    basis = U[:, np.argsort(-np.abs(values))[:k]].T
    moments = samples.moments(basis, 4)
    u2, u4 = (float(coefficient(activation, j, np.array(t))) for j in (2, 4))
    G = balanced(moments.tensor(2), moments.tensor(4), u2, u4)
    yield directions_one_by_one(G, k, rng) @ basis
    yield directions_at_once(G, k, rng) @ basis


def by_ways(activation: str, t: float, seed: int) -> list[float]:
    """Worst angles of the ways to start, 5 directions of 10 inputs, κ = 1, 4e5 samples."""
    net = threshold_network((10, 5), threshold=t, activation=activation, seed=seed)
    X, y = samples_of(net, 400_000, seed)
    samples = rare_samples(X, y, float(net(np.zeros((1, 10)))[0]))
    return [up_to_sign(W, net.directions) for W in ways(samples, activation, 5, t, seed)]


def directions(seeds: range, results: Path | None, plot: str | None) -> str:
    """Compare ways to start."""
    lines = [
        "| activation | t | networks | joint diagonalisation | G(z), one by one | G(W), at once |",
        "|---|---|---|---|---|---|",
    ]
    medians: dict[str, list[list[float]]] = {}
    for activation in ("relu", "sign"):
        for t in THRESHOLDS:
            name = f"ways, {activation}, t = {t:g}"
            angles = [once(results, name, seed, partial(by_ways, activation, t)) for seed in seeds]
            middle = np.median(angles, axis=0)
            medians.setdefault(activation, []).append(middle.tolist())
            cells = " | ".join(
                f"{m:.3f} ({w:.2f})" for m, w in zip(middle, np.max(angles, axis=0), strict=True)
            )
            lines.append(f"| {activation} | {t:g} | {len(seeds)} | {cells} |")
    if plot is not None:
        draw(medians, plot)
    return "\n".join(lines)


def up_to_sign(W: np.ndarray, truth: np.ndarray) -> float:
    rows, signs = match_rows(W, truth, up_to_sign=True)
    return worst(signs[:, None] * W[rows], truth) if (rows >= 0).all() else np.pi / 2.0


def draw(medians: dict[str, list[list[float]]], plot: str) -> None:
    """Draw the error against the threshold."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra bench

    figure = Figure(figsize=(5.0, 3.2), layout="constrained")
    axes = figure.subplots()
    for activation, rows in medians.items():
        for name, column in zip(("joint", "G(z)"), np.array(rows).T[:2], strict=True):
            style = "-" if name == "joint" else "--"
            axes.semilogy(THRESHOLDS, column, style, marker="o", label=f"{activation}, {name}")
    axes.set(xlabel="threshold t", ylabel="worst angle, median (rad)")
    axes.legend(fontsize=8)
    figure.savefig(plot, dpi=110)


def by_width(seed: int) -> list[float]:
    """Worst angles at t = 2.5 from 1e6 queries, plain and from a widened Gaussian."""
    net = threshold_network((10, 5), threshold=2.5, seed=seed)
    constant = float(net(np.zeros((1, 10)))[0])
    angles = []
    for width in (1.0, 1.25):
        rng = np.random.default_rng([2, seed])
        samples = draw_rare(Oracle(net, 10), 1_000_000, constant, rng, width=width)
        start = estimate_directions(samples, "relu", 5, rng)
        angles.append(worst(start.directions, net.directions) if start else np.pi / 2)
    return angles


def rare(seeds: range, results: Path | None) -> str:
    """Compare plain queries with those of a widened Gaussian."""
    found = [once(results, "importance sampling", seed, by_width) for seed in seeds]
    plain, wide = np.median(found, axis=0)
    share = np.median([b / a for a, b in found])
    return (
        "| queries | networks | plain, median | widened by 1.25, median | share of the error |\n"
        "|---|---|---|---|---|\n"
        f"| 1e6 | {len(found)} | {plain:.3f} | {wide:.3f} | {share:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", choices=(*ROWS, "directions", "rare"), default="queries")
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--only", default="", help="rows of queries or samples that hold this")
    parser.add_argument("--results", type=Path, help="file that networks are recorded in")
    parser.add_argument("--plot")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.networks)
    mark = f"lowest-layer-{options.table}"
    for row in ROWS.get(options.table, ()):
        if options.only in row.name:
            text = table(row, seeds, options.results)
            print(text)
            if options.write:
                keep_rows(mark, text)
    if options.table in ROWS:
        return
    if options.table == "directions":
        text = directions(seeds, options.results, options.plot)
    else:
        text = rare(seeds, options.results)
    print(text)
    if options.write:
        keep(mark, text)


if __name__ == "__main__":
    main()
