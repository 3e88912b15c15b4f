"""The lowest layer under a high threshold, and halfspaces: angles, by samples and queries.

    python benchmarks/lowest_layer.py --table queries      print a table
    python benchmarks/lowest_layer.py --table samples --networks 20 --write
                                                           and keep it in benchmarks/README.md

Tables: queries, samples, directions (ways to start, by threshold; --plot FILE.png draws it),
rare (importance sampling), structured (Section 4).  Errors are the worst angle over a
network's directions, in radians.  P has linear, pair and triple terms.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from page import keep, keep_rows

import revelu
from revelu.network.zoo.thresholds import ThresholdNetwork, halfspaces, threshold_network
from revelu.numerics.high_threshold import coefficient
from revelu.numerics.landscape import balanced, directions_at_once, directions_one_by_one
from revelu.numerics.matching import match_rows
from revelu.oracle import Oracle
from revelu.probe.rare import RareSamples, draw_rare, rare_moments, rare_samples, second_moment
from revelu.recover.rare_directions import estimate_directions

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


def table(row: Row, n_networks: int) -> str:
    """Run a row and return its table."""
    found = []
    for i in range(n_networks):
        found.append(row.run(FIRST_SEED + i))
        print(row.name, i, found[-1], flush=True)
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
    rng = np.random.default_rng(seed)
    start = estimate_directions(samples, activation, k, rng)
    yield start.directions if start is not None else np.empty((0, samples.X.shape[1]))
    values, U = np.linalg.eigh(second_moment(samples))
    basis = U[:, np.argsort(-np.abs(values))[:k]].T
    moments = rare_moments(samples, basis, 4)
    u2, u4 = (float(coefficient(activation, j, np.array(t))) for j in (2, 4))
    G = balanced(moments.tensor(2), moments.tensor(4), u2, u4)
    yield directions_one_by_one(G, k, rng) @ basis
    yield directions_at_once(G, k, rng) @ basis


def directions(n_networks: int, plot: str | None) -> str:
    """Compare ways to start, 5 directions of 10 inputs, κ = 1, 4e5 samples."""
    lines = [
        "| activation | t | networks | joint diagonalisation | G(z), one by one | G(W), at once |",
        "|---|---|---|---|---|---|",
    ]
    medians: dict[str, list[list[float]]] = {}
    for activation in ("relu", "sign"):
        for t in THRESHOLDS:
            angles = []
            for i in range(n_networks):
                seed = FIRST_SEED + i
                net = threshold_network((10, 5), threshold=t, activation=activation, seed=seed)
                X, y = samples_of(net, 400_000, seed)
                constant = float(net(np.zeros((1, 10)))[0])
                samples = rare_samples(X, y, constant)
                angles.append(
                    [up_to_sign(W, net.directions) for W in ways(samples, activation, 5, t, seed)]
                )
                print(activation, t, i, np.round(angles[-1], 3), flush=True)
            middle = np.median(angles, axis=0)
            medians.setdefault(activation, []).append(middle.tolist())
            cells = " | ".join(
                f"{m:.3f} ({w:.2f})" for m, w in zip(middle, np.max(angles, axis=0), strict=True)
            )
            lines.append(f"| {activation} | {t:g} | {n_networks} | {cells} |")
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


def rare(n_networks: int) -> str:
    """Directions at t = 2.5 from 1e6 queries, plain and from a widened Gaussian."""
    found = []
    for i in range(n_networks):
        seed = FIRST_SEED + i
        net = threshold_network((10, 5), threshold=2.5, seed=seed)
        constant = float(net(np.zeros((1, 10)))[0])
        angles = []
        for width in (1.0, 1.25):
            rng = np.random.default_rng([2, seed])
            samples = draw_rare(Oracle(net, 10), 1_000_000, constant, rng, width=width)
            start = estimate_directions(samples, "relu", 5, rng)
            angles.append(worst(start.directions, net.directions) if start else np.pi / 2)
        print("rare", i, np.round(angles, 4), f"{samples.effective:,.0f}", flush=True)
        found.append(angles)
    plain, wide = np.median(found, axis=0)
    share = np.median([b / a for a, b in found])
    return (
        "| queries | networks | plain, median | widened by 1.25, median | share of the error |\n"
        "|---|---|---|---|---|\n"
        f"| 1e6 | {n_networks} | {plain:.3f} | {wide:.3f} | {share:.2f} |"
    )


def products(u: np.ndarray, most: float, rng: np.random.Generator) -> np.ndarray:
    """Linear terms, and products of two and three units with positive coefficients."""
    k = u.shape[1]
    y = u @ rng.uniform(0.7, 1.3, k)
    for size in (2, 3):
        for members in combinations(range(k), size):
            y = y + rng.uniform(0.0, most) * np.prod(u[:, members], axis=1)
    return np.asarray(y)


def exponential(n: int, rho: float, t: float, most: float, seed: int) -> tuple[float, float]:
    """Whether five blocks of 20 coordinates come back; whether others were certified."""
    rng = np.random.default_rng([3, seed])
    blocks = [sorted(b) for b in np.array_split(rng.permutation(20), 5)]
    X = rng.standard_normal((n, 20))
    u = np.column_stack([np.exp(rho * (X[:, b].sum(axis=1) - t)) for b in blocks])
    found = revelu.recover_lowest_layer(X=X, y=products(u, most, rng), activation="exp", seed=seed)
    exact = found.details.get("blocks") == sorted([int(i) for i in b] for b in blocks)
    return float(exact), float(found.status == "recovered" and not exact)


def even(n: int, seed: int) -> tuple[float, float]:
    """Worst angle of five orthonormal rows of 20 inputs under |a|, and the error said."""
    rng = np.random.default_rng([4, seed])
    W = np.linalg.qr(rng.standard_normal((20, 5)))[0].T
    X = rng.standard_normal((n, 20))
    y = products(np.abs(X @ W.T), 0.05, rng)
    found = revelu.recover_lowest_layer(X=X, y=y, activation="even", n_neurons=5, seed=seed)
    return up_to_sign(found.directions, W), float(found.errors.max(initial=0.0))


STRUCTURED = (
    ("Theorem 8: ρ = 0.5, t = 2, 3e4 samples", lambda s: exponential(30_000, 0.5, 2.0, 0.5, s)),
    ("Theorem 9: ρ = 1, t = 0, 2e5 samples", lambda s: exponential(200_000, 1.0, 0.0, 0.01, s)),
    ("Theorem 10: absolute values, 1e6 samples", lambda s: even(1_000_000, s)),
)


def structured(n_networks: int, only: str) -> str:
    """Measure the special layers, 20 inputs and 5 units."""
    lines = [
        "| target | networks | reached | wrong and certified, or error said |",
        "|---|---|---|---|",
    ]
    for name, run in STRUCTURED:
        if only not in name:
            continue
        found = []
        for i in range(n_networks):
            found.append(run(FIRST_SEED + i))
            print(name, i, found[-1], flush=True)
        first, second = np.array(found).T
        reached = (
            f"worst angle {np.median(first):.3f} ({first.max():.3f}) rad"
            if "10" in name
            else f"{int(first.sum())} with exact blocks"
        )
        said = f"{np.median(second):.3f} rad" if "10" in name else f"{int(second.sum())}"
        lines.append(f"| {name} | {len(found)} | {reached} | {said} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--table",
        choices=("queries", "samples", "directions", "rare", "structured"),
        default="queries",
    )
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--only", default="", help="rows of the tables that hold this")
    parser.add_argument("--plot")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    n = arguments.networks
    if arguments.table in ROWS:
        for row in ROWS[arguments.table]:
            if arguments.only in row.name:
                text = table(row, n)
                print(text)
                if arguments.write:
                    keep_rows(f"lowest-layer-{arguments.table}", text)
        return
    text = {
        "directions": lambda: directions(n, arguments.plot),
        "rare": lambda: rare(n),
        "structured": lambda: structured(n, arguments.only),
    }[arguments.table]()
    print(text)
    if arguments.write:
        kept = keep_rows if arguments.only else keep
        kept(f"lowest-layer-{arguments.table}", text)


if __name__ == "__main__":
    main()
