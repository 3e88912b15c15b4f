"""The worst cases: clusters, bumps, duplicates, k over d, and networks trained to resist.

    python benchmarks/worst_case.py                       print the table (hours)
    python benchmarks/worst_case.py --networks 5          with fewer networks a row
    python benchmarks/worst_case.py --row "bumps 1e-3"    one row; may be given again
    python benchmarks/worst_case.py --write               and keep it on its page
    python benchmarks/worst_case.py --plot worst_case.svg error against queries, and no table

L2 errors are relative to the function's own norm under N(0, I) and computed in closed form:
no sample meets a strip of width 1e-6.  Beside each row are a student of the same width,
trained by Adam on as many queries, and 2,000 random ReLU features by ridge regression.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from page import keep

import revelu
from revelu.network import l2_distance, l2_norm

HERE = Path(__file__).parent
FIRST_SEED = 10_100_000
N_NETWORKS = 20
N_FEATURES = 2_000

Draw = Callable[[int], revelu.Network]


@dataclass(frozen=True)
class Row:
    """A line of the table: how to draw a network, and the bars to reach."""

    name: str
    draw: Draw
    error: float
    width: int
    queries: float
    exact_width: bool = False


def generic(d: int, k: int) -> Draw:
    return lambda seed: revelu.zoo.random_network([d, k, 1], seed=seed)


def clusters(angle: float) -> Draw:
    return lambda seed: revelu.zoo.with_clusters([10, 50, 1], 10, angle, seed=seed)


def bumps(width: float) -> Draw:
    """Eight neurons and eight bumps of three."""
    return lambda seed: revelu.zoo.with_bumps([10, 32, 1], 8, width, seed=seed)


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


def one(row: Row, seed: int, method: str) -> dict[str, object]:
    """Extract one network and hold it against the truth."""
    target = row.draw(seed)
    cpu = time.process_time()
    recovery = revelu.extract(target, method=method, seed=seed)
    cpu = time.process_time() - cpu
    d, k, _ = target.architecture
    queries = recovery.ledger.n_recovery
    return {
        "seed": seed,
        "status": recovery.status.value,
        "method": recovery.method,
        "error": relative(recovery.network, target),
        "width": recovery.network.architecture[1] if recovery.network else 0,
        "asked": queries,
        "queries": queries / (k * (d + 2)),
        "l2_bound": recovery.certificate.l2_bound if recovery.certificate else None,
        "cpu": cpu,
    }


def rivals(row: Row, run: dict[str, object]) -> dict[str, object]:
    """Errors of a student and of random features, on as many queries as a run took."""
    seed, n = int(str(run["seed"])), int(str(run["asked"]))
    target = row.draw(seed)
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


def summary(row: Row, runs: list[dict[str, object]]) -> dict[str, object]:
    """The figures of one line."""

    def column(name: str) -> np.ndarray:
        return np.array([float(str(run[name])) for run in runs])

    errors, widths = column("error"), column("width")
    exact = float((widths == row.width).mean())
    narrow = exact >= 0.95 if row.exact_width else bool((widths <= row.width).all())
    figures: dict[str, object] = {
        "network": row.name,
        "networks": len(runs),
        "error": float(np.median(errors)),
        "largest error": float(errors.max()),
        "within": float((errors <= row.error).mean()),
        "width": float(np.median(widths)),
        "widest": int(widths.max()),
        "exact width": exact,
        "queries": float(np.median(column("queries"))),
        "most queries": float(column("queries").max()),
        "certified": sum(run["status"] == "recovered" for run in runs),
        "cpu": float(np.median(column("cpu"))),
        "reached": bool((errors <= row.error).all() and narrow)
        and bool(np.median(column("queries")) <= row.queries),
    }
    judged = [run for run in runs if "student" in run]
    for name in ("student", "features"):
        if judged:
            figures[name] = float(np.median([float(str(run[name])) for run in judged]))
    return figures


_HEADS = (
    "| network | networks | L2 error, median / largest (bar) | within the bar "
    "| width, median / most (bar) | queries / k(d+2), median / most (bar) | certified "
    "| student | features | CPU s, median |"
)


def table(figures: list[dict[str, object]]) -> str:
    """Render the lines as Markdown."""
    bars = {row.name: row for row in ROWS}
    lines = [
        _HEADS,
        "|" + "---|" * 10,
    ]
    for f in figures:
        bar = bars[str(f["network"])]
        width = "exact" if bar.exact_width else f"≤ {bar.width}"
        rivals = [f"{f[name]:.1e}" if name in f else "-" for name in ("student", "features")]
        lines.append(
            f"| {f['network']} | {f['networks']} | {f['error']:.1e} / {f['largest error']:.1e} "
            f"(≤ {bar.error:.0e}) | {f['within']:.0%} | {f['width']:.0f} / {f['widest']} ({width}) "
            f"| {f['queries']:.2f} / {f['most queries']:.2f} (≤ {bar.queries}) | {f['certified']} "
            f"| {rivals[0]} | {rivals[1]} | {f['cpu']:.1f} |"
        )
    return "\n".join(lines)


def plot(path: Path, seed: int) -> None:
    """Error against queries on one network with clusters: this, a student, random features."""
    import matplotlib as mpl  # noqa: PLC0415 - optional

    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "revelu", "svg.fonttype": "none"})
    import matplotlib.pyplot as plt  # noqa: PLC0415

    target = clusters(1e-4)(seed)
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
    whole = revelu.extract(target, method="near_duplicates", seed=seed).ledger.n_recovery
    points = []
    for share in np.linspace(0.05, 1.0, 20):
        budget = int(share * whole) + 64  # those of the noise floor
        found = revelu.extract(target, method="near_duplicates", seed=seed, budget=budget)
        spent = found.ledger.n_recovery
        if found.network is not None and spent not in dict(points):
            points.append((spent, relative(found.network, target)))
            print(*points[-1], flush=True)
    return points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", type=int, default=N_NETWORKS, help="networks a row")
    parser.add_argument("--rivals", type=int, default=2, help="of which so many have rivals")
    parser.add_argument("--row", action="append", help="only this row; may be given again")
    parser.add_argument("--method", default="near_duplicates")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--write", action="store_true", help="keep it on its page")
    parser.add_argument("--plot", type=Path, help="where to draw error against queries")
    options = parser.parse_args()
    if options.plot:
        plot(options.plot, options.first_seed)
        return
    rows = [row for row in ROWS if not options.row or row.name in options.row]
    runs: dict[str, list[dict[str, object]]] = {row.name: [] for row in rows}

    def keep_figures() -> str:
        done = [row for row in rows if runs[row.name]]
        judged = min(sum("student" in run for run in runs[row.name]) for row in done)
        text = (
            f"{table([summary(row, runs[row.name]) for row in done])}\n\n"
            f"revelu {revelu.__version__}, method {options.method}, NumPy {np.__version__}, Python "
            f"{platform.python_version()}, {platform.machine()}, seeds from "
            f"{options.first_seed}; rivals of {judged} networks a row at least."
        )
        if options.write:
            keep("worst_case", text)
        return text

    for row in rows:
        for seed in range(options.first_seed, options.first_seed + options.networks):
            runs[row.name].append(one(row, seed, options.method))
            print(json.dumps({"network": row.name, **runs[row.name][-1]}), flush=True)
        keep_figures()
    for i in range(min(options.rivals, options.networks)):
        for row in rows:
            runs[row.name][i].update(rivals(row, runs[row.name][i]))
            print(json.dumps({"network": row.name, **runs[row.name][i]}), flush=True)
        keep_figures()
    print(f"\n{keep_figures()}")


if __name__ == "__main__":
    main()
