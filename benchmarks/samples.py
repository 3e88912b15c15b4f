"""Networks from Gaussian samples alone: exactness, samples, error bars, seconds.

    python benchmarks/samples.py                  print the tables
    python benchmarks/samples.py --row "(10, 5)"  only rows whose name begins so
    python benchmarks/samples.py --networks 3     so many networks a row
    python benchmarks/samples.py --write          and keep them on their page

Random unit rows, |a| in [0.5, 1.5] with random signs, b in [-1, 1]; p = m (d + 1).  The
number of neurons is not given.  Exact: every weight, bias and output weight is within 1e-9
of the truth, signs included.
"""

import argparse
import platform
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from page import keep

import revelu
from revelu.network import l2_distance, l2_norm
from revelu.numerics.hermite import network_coefficient
from revelu.numerics.matching import match_rows
from revelu.numerics.quadratic import fit_quadratic
from revelu.probe.moments import estimate_moments
from revelu.recover.fit.covariance import standard_errors
from revelu.recover.fit.tensors import UnitNeurons, estimate_again, estimate_units, recover_units
from revelu.recover.refine.network_fit import Samples

FIRST_SEED = 17_000_000
EXACT = 1e-9
NETWORKS = 20

# Two standard normal deviations hold 90% between them.
NINETY = 1.6448536269514722


@dataclass(frozen=True)
class Truth:
    """A drawn network."""

    W: np.ndarray
    b: np.ndarray
    a: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Evaluate, (n, d) -> (n,)."""
        return np.maximum(X @ self.W.T + self.b, 0.0) @ self.a


def draw(d: int, m: int, seed: int) -> Truth:
    rng = np.random.default_rng([seed, 0])
    W = rng.standard_normal((m, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    a = rng.uniform(0.5, 1.5, m) * rng.choice([-1.0, 1.0], m)
    return Truth(W, rng.uniform(-1.0, 1.0, m), a)


def errors_of(
    W: np.ndarray, b: np.ndarray, a: np.ndarray, truth: Truth, *, signs: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of all parameters, by neuron of the truth, and the partners; inf if one lacks."""
    if len(W) != len(truth.W):
        return np.full((len(truth.W), truth.W.shape[1] + 2), np.inf), np.arange(len(truth.W))
    rows, turned = match_rows(
        np.column_stack([W, b]), np.column_stack([truth.W, truth.b]), up_to_sign=not signs
    )
    off = [turned[:, None] * W[rows] - truth.W, turned * b[rows] - truth.b, a[rows] - truth.a]
    return np.column_stack(off), rows


def learnt(recovery: revelu.Recovery, truth: Truth) -> tuple[np.ndarray, np.ndarray]:
    (W, A), (b, _) = recovery.network.weights, recovery.network.biases
    return errors_of(W, b, A[0], truth)


def exact_row(name: str, d: int, m: int, n: int, seeds: range, bar: str) -> str:
    """Recover from n samples without noise."""
    worst, seconds, cpu, silent = [], [], [], 0
    for seed in seeds:
        truth = draw(d, m, seed)
        X = np.random.default_rng([seed, 1]).standard_normal((n, d))
        y = truth(X)
        wall, start = time.perf_counter(), time.process_time()
        recovery = revelu.learn(X, y, seed=seed)
        seconds.append(time.perf_counter() - wall)
        cpu.append(time.process_time() - start)
        worst.append(float(np.abs(learnt(recovery, truth)[0]).max()))
        silent += worst[-1] > EXACT and recovery.status is revelu.Status.RECOVERED
        print(
            f"  {name} {seed}: {recovery.status.value}, {worst[-1]:.2g}, {cpu[-1]:.1f} s",
            flush=True,
        )
    good = np.array(worst) <= EXACT
    return (
        f"| {name} | {n:,} | {len(seeds)} | {good.mean():.0%} ({bar}) "
        f"| {np.median(worst):.1e} | {silent} | {np.median(seconds):.1f}, {np.median(cpu):.1f} |"
    )


def moment_row(name: str, d: int, m: int, order: int, seeds: range) -> str:
    """Recover from exact moments; biases 0, 1 and -1 among them."""
    worst, cpu = [], []
    for seed in seeds:
        truth = draw(d, m, seed)
        truth.b[:3] = 0.0, 1.0, -1.0
        T = network_coefficient(2, truth.a, truth.W, truth.b)
        values, U = np.linalg.eigh(T)
        B = U[:, np.argsort(-np.abs(values))[:m]].T if m < d else np.eye(d)
        tensors = {
            k: network_coefficient(k, truth.a, truth.W @ B.T, truth.b)
            for k in range(1, 2 * order + 3)
        }
        start = time.process_time()
        units = recover_units(tensors, m, order, np.random.default_rng(seed))[0]
        cpu.append(time.process_time() - start)
        off, _ = errors_of(units.W @ B, units.b, units.a, truth, signs=order == 1)
        worst.append(float(np.abs(off).max()))
    return (
        f"| {name} | {len(seeds)} | {np.median(worst):.1e} | {max(worst):.1e} (≤ 1e-12) "
        f"| {np.median(cpu):.2f} (≤ 1) |"
    )


def tensor_row(n: int, seeds: range, bar: float) -> str:
    """The tensor step alone, no fit to samples."""
    d, m = 10, 5
    worst, cpu = [], []
    for seed in seeds:
        truth = draw(d, m, seed)
        X = np.random.default_rng([seed, 1]).standard_normal((n, d))
        y = truth(X)
        start = time.process_time()
        quadratic = fit_quadratic(X, y)
        values, U = np.linalg.eigh(quadratic.M)
        B = U[:, np.argsort(-np.abs(values))[:m]].T
        moments = estimate_moments([(X, y)], quadratic, B)
        units = estimate_units(moments, m, np.random.default_rng(seed)) or UnitNeurons(
            np.zeros(0), np.zeros((0, m)), np.zeros(0)
        )
        if len(units.a):
            units, B = estimate_again(units, B, X, y)
        cpu.append(time.process_time() - start)
        worst.append(float(np.abs(errors_of(units.W @ B, units.b, units.a, truth)[0]).max()))
    return (
        f"| (10, 5), tensor step alone | {n:,} | {len(seeds)} | {np.median(worst):.3f} "
        f"| {max(worst):.3f} (≤ {bar}) | {np.median(cpu):.1f} |"
    )


def noise_row(d: int, m: int, sigma: float, seeds: range) -> str:
    """Label noise: errors against the Cramer-Rao bound at the truth."""
    n = 50 * m * (d + 1)
    squares, bounds, covered, total, missing, cpu = 0.0, 0.0, 0, 0, 0, []
    for seed in seeds:
        truth = draw(d, m, seed)
        rng = np.random.default_rng([seed, 1])
        X = rng.standard_normal((n, d))
        y = truth(X) + sigma * rng.standard_normal(n)
        start = time.process_time()
        recovery = revelu.learn(X, y, seed=seed)
        cpu.append(time.process_time() - start)
        off, rows = learnt(recovery, truth)
        plain = recovery.network.skip is None
        if not np.isfinite(off).all() or not plain:
            missing += 1
            continue
        true = revelu.Network([truth.W, truth.a[None]], [truth.b, np.zeros(1)])
        bound = standard_errors(true, Samples(X, y[:, None], np.array([sigma])))
        own = recovery.details["standard_errors"]
        bars = np.column_stack([own.W[rows], own.b[rows], own.A[0][rows]])
        squares += float((off**2).sum())
        bounds += float((bound.W**2).sum() + (bound.b**2).sum() + (bound.A**2).sum())
        covered += int((np.abs(off) <= NINETY * bars).sum())
        total += off.size
    ratio = np.sqrt(squares / bounds) if bounds else np.inf
    share = covered / total if total else 0.0
    return (
        f"| ({d}, {m}), σ = {sigma} | {n:,} | {len(seeds)} | {ratio:.2f} (≤ 1.2) "
        f"| {share:.0%} (85-95%) | {missing} | {np.median(cpu):.1f} |"
    )


def far_row(seeds: range) -> str:
    """Two of eight units whose kinks hardly any sample shows."""
    d, m, n = 10, 8, 100_000
    left, units, cpu = [], [], []
    for seed in seeds:
        truth = draw(d, m, seed)
        truth.b[:2] = 4.0, -4.0
        rng = np.random.default_rng([seed, 1])
        X = rng.standard_normal((n, d))
        start = time.process_time()
        recovery = revelu.learn(X, truth(X), seed=seed)
        cpu.append(time.process_time() - start)
        # Computed: what is wrong is so rare that samples would hardly meet it.
        true = revelu.Network([truth.W, truth.a[None]], [truth.b, [0.0]])
        left.append(float(l2_distance(recovery.network, true) / l2_norm(true)))
        units.append(recovery.network.architecture[1] + 2 * (recovery.network.skip is not None))
    return (
        f"| (10, 8), two of b = ±4 | {n:,} | {len(seeds)} | {np.median(left):.1e} "
        f"| {max(left):.1e} (≤ 2e-3) | {max(units)} (≤ 10) | {np.median(cpu):.1f} |"
    )


def tables(first: int, networks: int | None, row: str | None) -> str:
    """All tables, or those with a wanted row, as Markdown."""
    seeds = range(first, first + min(networks or NETWORKS, NETWORKS))

    def wanted(name: str) -> bool:
        return row is None or name.startswith(row)

    parts = [
        moment_table(seeds, wanted),
        exact_table(seeds, wanted),
        tensor_table(seeds, wanted),
        noise_table(seeds, wanted),
        far_table(seeds, wanted),
    ]
    return "\n\n".join(part for part in parts if part)


def moment_table(seeds: range, wanted: Callable[[str], bool]) -> str:
    rows = (
        ("moments (10, 5)", 10, 5, 1),
        ("moments (10, 10)", 10, 10, 1),
        ("moments (20, 20)", 20, 20, 1),
        ("moments (8, 20), order 2", 8, 20, 2),
    )
    return table(
        "exact moments | networks | error, median | largest (bar) | CPU s (bar)",
        [moment_row(*row, seeds) for row in rows if wanted(row[0])],
    )


def exact_table(seeds: range, wanted: Callable[[str], bool]) -> str:
    rows = (
        (10, 5, 275, "5p", "100%"),
        (10, 5, 165, "3p", "≥ 90%"),
        (20, 10, 1050, "5p", "≥ 95%"),
        (20, 10, 630, "3p", "≥ 80%"),
        (50, 10, 5100, "10p", "≥ 95%"),
        (8, 20, 3600, "20p", "≥ 95%"),
        (50, 20, 100_000, "1e5", "≥ 95%"),
        (100, 20, 100_000, "1e5", "≥ 95%"),
    )
    lines = []
    for d, m, n, label, bar in rows:
        name = f"({d}, {m}), {label}"
        if wanted(name):
            lines.append(exact_row(name, d, m, n, seeds, bar))
    return table(
        "(d, m) | samples | networks | exact (bar) | error, median | wrong and silent "
        "| seconds, CPU seconds, median",
        lines,
    )


def tensor_table(seeds: range, wanted: Callable[[str], bool]) -> str:
    steps = ((100_000, 0.1), (1_000_000, 0.02))
    return table(
        "start | samples | networks | error, median | largest (bar) | CPU s",
        [tensor_row(n, seeds, bar) for n, bar in steps if wanted("tensor")],
    )


def noise_table(seeds: range, wanted: Callable[[str], bool]) -> str:
    return table(
        "label noise | samples | networks | RMS / Cramér-Rao (bar) | 90% intervals cover (bar) "
        "| neurons or signs wrong | CPU s",
        [
            noise_row(d, m, sigma, seeds)
            for d, m in ((10, 5), (20, 10))
            for sigma in (0.01, 0.1)
            if wanted("noise")
        ],
    )


def far_table(seeds: range, wanted: Callable[[str], bool]) -> str:
    return table(
        "far units | samples | networks | relative L2, median | largest (bar) | units (bar) "
        "| CPU s",
        [far_row(seeds)] if wanted("far") else [],
    )


def table(heads: str, lines: list[str]) -> str:
    """Markdown, or nothing where there are no lines."""
    if not lines:
        return ""
    return "\n".join([f"| {heads} |", "|" + "---|" * (heads.count("|") + 1), *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--row", help="only rows whose name begins so: (10, 5), moments, noise ...")
    parser.add_argument("--networks", type=int, help=f"a row, at most {NETWORKS}")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--write", action="store_true", help="keep it on its page")
    options = parser.parse_args()
    text = tables(options.first_seed, options.networks, options.row)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    text += (
        f"\n\nThe whole run took {peak:.0f} MiB at its peak.  revelu {revelu.__version__}, NumPy "
        f"{np.__version__}, Python {platform.python_version()}, {platform.machine()}, seeds from "
        f"{options.first_seed}."
    )
    print(f"\n{text}")
    if options.write:
        keep("samples", text)


if __name__ == "__main__":
    main()
