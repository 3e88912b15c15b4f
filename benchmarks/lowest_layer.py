"""The lowest layer under a high threshold, and halfspaces: angles, by samples and queries.

    python benchmarks/lowest_layer.py                                 print the tables
    python benchmarks/lowest_layer.py --table lowest-layer-samples    one, of those below
    python benchmarks/lowest_layer.py --write                         and keep them on their page

Errors are the worst angle over a network's directions, in
radians.  P has linear, pair and triple terms.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from runner import Line, Named, Table, by_row, main

import revelu
from revelu.numerics.high_threshold import coefficient
from revelu.numerics.matching import match_rows
from revelu.oracle import Oracle
from revelu.recover.rare.rare_directions import estimate_directions
from revelu.recover.rare.rare_samples import RareSamples, draw_rare, rare_samples

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
class Run:
    """One network: what was reached."""

    directions: float
    refined: float
    threshold: float
    status: str
    said: float
    queries: int
    seconds: float


def from_samples(d: int, k: int, kappa: float, t: float, n: int, activation: str, seed: int) -> Run:
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
    return Run(
        worst(start.directions, net.directions) if start else np.pi / 2,
        worst(W, net.directions),
        off(found.thresholds, W, net.thresholds, net.directions),
        found.status.value,
        float(found.errors.max(initial=0.0)),
        0,
        seconds,
    )


def from_queries(d: int, k: int, kind: str, seed: int) -> Run:
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
    return Run(
        np.nan,
        worst(rows, W),
        off(found.thresholds, rows, t, W),
        found.status.value,
        float(found.errors.max(initial=0.0)),
        found.ledger.by_phase["recover"],
        time.process_time() - began,
    )


def sigmoid(n: int, seed: int) -> Run:
    net = threshold_network((10, 5), threshold=3.0, activation="sigmoid", seed=seed)
    began = time.process_time()
    found = revelu.recover_lowest_layer(
        net, dim_in=10, activation="sigmoid", n_neurons=5, seed=seed, budget=n
    )
    start = found.details["start"].directions
    return Run(
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
    """A line of a table: its name, and how a network of a seed is run."""

    name: str
    run: Callable[[int], Run]
    networks: int = 20


def of_samples(name: str, *shape: float) -> Row:
    """A line of samples: inputs, units, condition, threshold, samples, and units' activation."""
    return Row(name, partial(from_samples, *shape))


SAMPLES = (
    *(
        of_samples(
            f"ReLU, 5 in 10, κ = {k:g}, t = {t:g}, 4e5 samples", 10, 5, k, t, 400_000, "relu"
        )
        for k in (1.0, 2.0)
        for t in (1.5, 2.0)
    ),
    of_samples("ReLU, 8 in 20, κ = 2, t = 2, 4e5 samples", 20, 8, 2.0, 2.0, 400_000, "relu"),
    of_samples("union of 5 in 10, t = 2, 2e5 labels", 10, 5, 1.0, 2.0, 200_000, "sign"),
    of_samples("union of 5 in 10, t = 2, 2e6 labels", 10, 5, 1.0, 2.0, 2_000_000, "sign"),
)

QUERIES = (
    Row("union of 5 in 10, label queries", partial(from_queries, 10, 5, "or")),
    Row("intersection of 10 in 30, label queries", partial(from_queries, 30, 10, "and")),
    Row("ReLU, 5 in 10, κ = 2, t = 2, oracle", partial(from_queries, 10, 5, "relu")),
    Row("ReLU, 8 in 20, κ = 2, t = 2, oracle", partial(from_queries, 20, 8, "relu")),
    Row("sigmoid, 5 in 10, t = 3, 1e6 queries", partial(sigmoid, 1_000_000)),
)


def one(row: Row, seed: int, _limit: float | None) -> Run:
    """Recover one network."""
    return row.run(seed)


def line(row: Row, runs: list[Run]) -> Line:
    """One line of what was reached."""

    def both(name: str) -> str:
        values = [getattr(run, name) for run in runs]
        return "-" if np.isnan(values).any() else f"{np.median(values):.2g} ({max(values):.2g})"

    thresholds = [run.threshold for run in runs]
    return {
        "target": row.name,
        "networks": f"{len(runs)}",
        "directions, median (worst)": both("directions"),
        "refined, median (worst)": both("refined"),
        "threshold, worst": "-" if np.isnan(thresholds[0]) else f"{max(thresholds):.2g}",
        "certified": f"{sum(run.status == 'recovered' for run in runs)}",
        "error said, median": f"{np.median([run.said for run in runs]):.1g}",
        "queries, median": f"{np.median([run.queries for run in runs]):,.0f}",
        "CPU s": f"{np.median([run.seconds for run in runs]):.2g}",
    }


THRESHOLDS = (1.0, 1.5, 2.0, 2.5)


@dataclass(frozen=True)
class Ways:
    """A line of ways to start: an activation, and a threshold."""

    activation: str
    t: float
    networks: int = 20

    @property
    def name(self) -> str:
        """Both."""
        return f"ways, {self.activation}, t = {self.t:g}"


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


def by_ways(row: Ways, seed: int, _limit: float | None) -> list[float]:
    """Worst angles of the ways to start, 5 directions of 10 inputs, κ = 1, 4e5 samples."""
    net = threshold_network((10, 5), threshold=row.t, activation=row.activation, seed=seed)
    X, y = samples_of(net, 400_000, seed)
    samples = rare_samples(X, y, float(net(np.zeros((1, 10)))[0]))
    return [up_to_sign(W, net.directions) for W in ways(samples, row.activation, 5, row.t, seed)]


def ways_line(row: Ways, angles: list[list[float]]) -> Line:
    """Medians of the ways, and the worst."""
    names = ("joint diagonalisation", "G(z), one by one", "G(W), at once")
    middle, largest = np.median(angles, axis=0), np.max(angles, axis=0)
    said = [f"{m:.3f} ({w:.2f})" for m, w in zip(middle, largest, strict=True)]
    return {
        "activation": row.activation,
        "t": f"{row.t:g}",
        "networks": f"{len(angles)}",
        **dict(zip(names, said, strict=True)),
    }


def up_to_sign(W: np.ndarray, truth: np.ndarray) -> float:
    rows, signs = match_rows(W, truth, up_to_sign=True)
    return worst(signs[:, None] * W[rows], truth) if (rows >= 0).all() else np.pi / 2.0


def draw(plot: Path, found: Mapping[Ways, list[list[float]]]) -> None:
    """Draw the error against the threshold."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra bench

    figure = Figure(figsize=(5.0, 3.2), layout="constrained")
    axes = figure.subplots()
    for activation in dict.fromkeys(row.activation for row in found):
        rows = [np.median(a, axis=0) for row, a in found.items() if row.activation == activation]
        for name, column in zip(("joint", "G(z)"), np.array(rows).T[:2], strict=True):
            style = "-" if name == "joint" else "--"
            axes.semilogy(THRESHOLDS, column, style, marker="o", label=f"{activation}, {name}")
    axes.set(xlabel="threshold t", ylabel="worst angle, median (rad)")
    axes.legend(fontsize=8)
    figure.savefig(plot, dpi=110)


def by_width(_row: Named, seed: int, _limit: float | None) -> list[float]:
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


def width_line(_row: Named, found: list[list[float]]) -> Line:
    """Compare plain queries with those of a widened Gaussian."""
    plain, wide = np.median(found, axis=0)
    return {
        "queries": "1e6",
        "networks": f"{len(found)}",
        "plain, median": f"{plain:.3f}",
        "widened by 1.25, median": f"{wide:.3f}",
        "share of the error": f"{np.median([b / a for a, b in found]):.2f}",
    }


WAYS = [Ways(activation, t) for activation in ("relu", "sign") for t in THRESHOLDS]
RARE = [Named("importance sampling", 20)]
TABLES = (
    Table("lowest-layer-queries", __doc__, QUERIES, one, by_row(line), FIRST_SEED, outcome=Run),
    Table("lowest-layer-samples", __doc__, SAMPLES, one, by_row(line), FIRST_SEED, outcome=Run),
    Table(
        "lowest-layer-directions",
        __doc__,
        WAYS,
        by_ways,
        by_row(ways_line),
        FIRST_SEED,
        named_by=2,
        plot=draw,
    ),
    Table("lowest-layer-rare", __doc__, RARE, by_width, by_row(width_line), FIRST_SEED),
)

if __name__ == "__main__":
    main(*TABLES)
