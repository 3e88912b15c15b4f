"""The worst cases: clusters, bumps, duplicates, k over d, and networks trained to resist.

    python benchmarks/worst_case.py                       print the table (hours)
    python benchmarks/worst_case.py --row "bumps 1e-3"    rows whose name has this
    python benchmarks/worst_case.py --write               and keep it on its page
    python benchmarks/worst_case.py --networks 0 --plot worst_case.svg    error against queries

L2 errors are relative to the function's own norm under N(0, I) and computed in closed form:
no sample meets a strip of width 1e-6.  Beside each row are a student of the same width,
trained by Adam on as many queries, and 2,000 random ReLU features by ridge regression, of every
tenth seed.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from runner import Line, Table, by_row, main, timed

import revelu
from revelu.network import l2_distance, l2_norm

HERE = Path(__file__).parent
FIRST_SEED = 10_100_000
# Of so many networks one has rivals.
WITH_RIVALS = 10
N_FEATURES = 2_000
METHOD = "near_duplicates"

Draw = Callable[..., revelu.Network]


@dataclass(frozen=True)
class Row:
    """A line of the table: how to draw a network, and the bars to reach."""

    name: str
    draw: Draw
    error: float
    width: int
    queries: float
    exact_width: bool = False
    networks: int = 20


def generic(d: int, k: int) -> Draw:
    return partial(revelu.zoo.random_network, (d, k, 1))


def clusters(angle: float) -> Draw:
    return partial(revelu.zoo.with_clusters, (10, 50, 1), 10, angle)


def bumps(width: float) -> Draw:
    """Eight neurons and eight bumps of three."""
    return partial(revelu.zoo.with_bumps, (10, 32, 1), 8, width)


def duplicates(seed: int) -> revelu.Network:
    """Fifty neurons: twenty distinct, twenty on their hyperplanes, ten dead."""
    network = revelu.zoo.random_network([10, 50, 1], seed=seed)
    rng = np.random.default_rng([seed, 1])
    (W, A), (b, c) = ([np.array(a) for a in p] for p in (network.weights, network.biases))
    factors = rng.uniform(0.5, 2.0, 20) * rng.choice([-1.0, 1.0], 20)
    W[20:40], b[20:40] = factors[:, None] * W[:20], factors * b[:20]
    A[:, 40:45], W[45:] = 0.0, 0.0
    return revelu.Network([W, A], [b, c])


def defended(seed: int) -> revelu.Network:
    sys.path.insert(0, str(HERE.parent / "scripts"))
    from train_defended import train_defended  # noqa: PLC0415 - needs scikit-learn

    return train_defended(seed)


ROWS = (
    Row("generic 10-10", generic(10, 10), 1e-8, 10, 9, exact_width=True),
    Row("generic 10-50", generic(10, 50), 1e-8, 50, 9, exact_width=True),
    Row("generic 10-200", generic(10, 200), 1e-8, 200, 9, exact_width=True),
    Row("generic 100-100", generic(100, 100), 1e-8, 100, 2, exact_width=True),
    Row("generic 784-32", generic(784, 32), 1e-8, 32, 1.2, exact_width=True),
    Row("clusters 1e-2", clusters(1e-2), 1e-8, 50, 40),
    Row("clusters 1e-4", clusters(1e-4), 1e-8, 50, 40),
    Row("clusters 1e-6", clusters(1e-6), 1e-10, 50, 40),
    Row("bumps 1e-2", bumps(1e-2), 1e-8, 34, 100),
    Row("bumps 1e-3", bumps(1e-3), 1e-8, 34, 100),
    Row("bumps 1e-4", bumps(1e-4), 1e-6, 34, 100),
    Row("20 distinct of 50", duplicates, 1e-10, 20, 20),
    Row("defended 64-32-10", defended, 1e-7, 34, 10),
)


def relative(network: revelu.Network | None, target: revelu.Network) -> float:
    """L2 distance over the target's norm, in closed form."""
    return np.inf if network is None else l2_distance(network, target) / l2_norm(target)


def one(row: Row, seed: int, limit: float | None) -> dict[str, Any]:
    """Extract one network, hold it against the truth, and at times its rivals."""
    target = row.draw(seed=seed)
    recovery, cpu = timed(revelu.extract, target, method=METHOD, seed=seed, max_seconds=limit)
    d, k, _ = target.architecture
    queries = recovery.ledger.n_recovery
    run = {
        "status": recovery.status.value,
        "error": relative(recovery.network, target),
        "width": recovery.network.architecture[1] if recovery.network else 0,
        "queries": queries / (k * (d + 2)),
        "cpu": cpu,
    }
    return run | (rivals(target, queries, seed) if seed % WITH_RIVALS == 0 else {})


def rivals(target: revelu.Network, n: int, seed: int) -> dict[str, float]:
    """Errors of a student and of random features, on as many queries as a run took."""
    return {
        "student": relative(student(target, n, target.architecture[1], seed), target),
        "features": sampled(features(target, n, seed), target, seed),
    }


def sampled(f: Callable[[np.ndarray], np.ndarray], target: revelu.Network, seed: int) -> float:
    """Relative L2 error over fresh points: errors of 1e-2 need no closed form."""
    X = np.random.default_rng([seed, 3]).standard_normal((20_000, target.dim_in))
    Y = target(X)
    return float(np.sqrt(((f(X) - Y) ** 2).sum() / (Y**2).sum()))


def student(
    target: revelu.Network, n: int, k: int, seed: int, steps: int = 6_000, rate: float = 1e-2
) -> revelu.Network:
    """A network of the same width, by Adam on ``n`` Gaussian queries; the rate decays to 0."""
    rng = np.random.default_rng([seed, 2])
    X = rng.standard_normal((n, target.dim_in))
    Y = target(X)
    d, outputs = target.dim_in, target.dim_out
    P = [
        rng.normal(scale=np.sqrt(2 / d), size=(k, d)),
        rng.normal(scale=0.1, size=k),
        rng.normal(scale=np.sqrt(1 / k), size=(outputs, k)),
        Y.mean(axis=0),
    ]
    m = [np.zeros_like(p) for p in P]
    v = [np.zeros_like(p) for p in P]
    for step in range(1, steps + 1):
        rows = rng.integers(0, n, min(n, 256))
        Z = X[rows] @ P[0].T + P[1]
        H = np.maximum(Z, 0.0)
        off = (H @ P[2].T + P[3] - Y[rows]) / len(rows)
        back = (off @ P[2]) * (Z > 0)
        gradients = [back.T @ X[rows], back.sum(axis=0), off.T @ H, off.sum(axis=0)]
        now = rate * (1 - step / (steps + 1))
        for i, g in enumerate(gradients):
            m[i] += 0.1 * (g - m[i])
            v[i] += 0.001 * (g**2 - v[i])
            P[i] = P[i] - now * (m[i] / (1 - 0.9**step)) / (
                np.sqrt(v[i] / (1 - 0.999**step)) + 1e-9
            )
    return revelu.Network([P[0], P[2]], [P[1], P[3]])


def features(
    target: revelu.Network, n: int, seed: int, ridge: float = 1e-6
) -> Callable[[np.ndarray], np.ndarray]:
    """Random ReLU features by ridge regression on ``n`` Gaussian queries."""
    rng = np.random.default_rng([seed, 4])
    W = rng.normal(scale=np.sqrt(2 / target.dim_in), size=(N_FEATURES, target.dim_in))
    b = rng.normal(scale=0.5, size=N_FEATURES)
    X = rng.standard_normal((n, target.dim_in))

    def lifted(X: np.ndarray) -> np.ndarray:
        return np.column_stack(
            [np.maximum(X @ W.T + b, 0.0) / np.sqrt(N_FEATURES), X, np.ones(len(X))]
        )

    Z, Y = lifted(X), target(X)
    if len(Z) < Z.shape[1]:
        dual = np.linalg.solve(Z @ Z.T + ridge * n * np.eye(n), Y)
        weights = Z.T @ dual
    else:
        weights = np.linalg.solve(Z.T @ Z + ridge * n * np.eye(Z.shape[1]), Z.T @ Y)
    return lambda X: lifted(X) @ weights


def line(row: Row, runs: list[dict[str, Any]]) -> Line:
    """One line of the table."""
    errors, widths, queries, cpu = (
        np.array([run[name] for run in runs]) for name in ("error", "width", "queries", "cpu")
    )
    judged = [run for run in runs if "student" in run]
    return {
        "network": row.name,
        "networks": f"{len(runs)}",
        "L2 error, median / largest (bar)": f"{np.median(errors):.1e} / {errors.max():.1e} "
        f"(≤ {row.error:.0e})",
        "within the bar": f"{(errors <= row.error).mean():.0%}",
        "width, median / most (bar)": f"{np.median(widths):.0f} / {widths.max()} "
        f"({'exact' if row.exact_width else f'≤ {row.width}'})",
        "queries / k(d+2), median / most (bar)": f"{np.median(queries):.2f} / {queries.max():.2f} "
        f"(≤ {row.queries})",
        "certified": f"{sum(run['status'] == 'recovered' for run in runs)}",
        **{
            name: f"{np.median([run[name] for run in judged]):.1e}" if judged else "-"
            for name in ("student", "features")
        },
        "CPU s, median": f"{np.median(cpu):.1f}",
    }


def plot(path: Path, _: Mapping[Row, list[dict[str, Any]]], seed: int = FIRST_SEED) -> None:
    """Error against queries on one network with clusters: this, a student, random features."""
    import matplotlib as mpl  # noqa: PLC0415 - optional

    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "revelu", "svg.fonttype": "none"})
    import matplotlib.pyplot as plt  # noqa: PLC0415

    target = clusters(1e-4)(seed=seed)
    curves: dict[str, list[tuple[int, float]]] = {"Adam": [], "2,000 random features": []}
    for n in (250, 500, 1_000, 2_000, 4_000, 8_000, 16_000):
        curves["Adam"].append((n, relative(student(target, n, 50, seed), target)))
        curves["2,000 random features"].append(
            (n, sampled(features(target, n, seed), target, seed))
        )
        print(n, curves["Adam"][-1][1], curves["2,000 random features"][-1][1], flush=True)
    curves["revelu, whatever the budget left"] = cut_short(target, seed)
    figure, axes = plt.subplots(figsize=(6, 4))
    for (name, points), marker in zip(curves.items(), "os*", strict=True):
        axes.loglog(*zip(*points, strict=True), f"{marker}-", label=name)
    axes.set(xlabel="queries", ylabel="relative L2 error")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def cut_short(target: revelu.Network, seed: int) -> list[tuple[int, float]]:
    """Queries and error of what budgets of all sizes leave, certified or not."""
    whole = revelu.extract(target, method=METHOD, seed=seed).ledger.n_recovery
    points = []
    for share in np.linspace(0.05, 1.0, 20):
        budget = int(share * whole) + 64  # those of the noise floor
        found = revelu.extract(target, method=METHOD, seed=seed, budget=budget)
        spent = found.ledger.n_recovery
        if found.network is not None and spent not in dict(points):
            points.append((spent, relative(found.network, target)))
            print(*points[-1], flush=True)
    return points


TABLE = Table(
    "worst_case",
    __doc__,
    ROWS,
    one,
    by_row(line),
    first_seed=FIRST_SEED,
    note=lambda _: f"Method {METHOD}.",
    plot=plot,
)

if __name__ == "__main__":
    main(TABLE)
