"""Networks from samples beside what else is tried: students trained by Adam, CP by tensorly.

    python benchmarks/sample_rivals.py                print the tables
    python benchmarks/sample_rivals.py --quick        one network a row
    python benchmarks/sample_rivals.py --networks 3   so many networks a row
    python benchmarks/sample_rivals.py --size 3       only so many samples a parameter
    python benchmarks/sample_rivals.py --write        and keep them, and the plot, on their page

Networks of samples.py with 10 inputs and 5 neurons, p = 55.  Students begin at random and see
the same samples as the learner; Adam takes all of them at every step.
"""

import argparse
import platform
import resource
import time

import numpy as np
import tensorly
from page import PAGES, keep
from samples import EXACT, FIRST_SEED, Truth, draw, errors_of, learnt, table
from tensorly.decomposition import parafac

import revelu
from revelu.numerics.matching import match_rows
from revelu.numerics.quadratic import fit_quadratic
from revelu.probe.moments import estimate_moments
from revelu.recover.fit.tensors import estimate_units

D, M = 10, 5
P = M * (D + 1)
SIZES = (2, 3, 5, 10, 50)
NETWORKS = 10
WIDE = 4

# Adam's steps, its first rate, which falls to nothing along a cosine, and its averages.
STEPS = 5_000
RATE = 0.02
BETAS = 0.9, 0.999

PLOT = PAGES / "samples.png"


def adam(X: np.ndarray, y: np.ndarray, width: int, seed: int) -> tuple[np.ndarray, ...]:
    """Train ``a relu(W x + b) + c`` (Kingma and Ba 2015); return W, b, a and c."""
    rng = np.random.default_rng([seed, 5])
    n, d = X.shape
    parts = [
        rng.standard_normal((width, d)) / np.sqrt(d),
        np.zeros(width),
        rng.standard_normal(width) / np.sqrt(width),
        np.zeros(1),
    ]
    first, second = [np.zeros_like(p) for p in parts], [np.zeros_like(p) for p in parts]
    for step in range(1, STEPS + 1):
        W, b, a, c = parts
        Z = X @ W.T + b
        H = np.maximum(Z, 0.0)
        r = (H @ a + c - y) / n
        G = (r[:, None] * a) * (Z > 0)
        rate = RATE * 0.5 * (1.0 + np.cos(np.pi * step / STEPS))
        for i, g in enumerate((G.T @ X, G.sum(axis=0), H.T @ r, r.sum(keepdims=True))):
            first[i] = BETAS[0] * first[i] + (1 - BETAS[0]) * g
            second[i] = BETAS[1] * second[i] + (1 - BETAS[1]) * g**2
            mean, square = first[i] / (1 - BETAS[0] ** step), second[i] / (1 - BETAS[1] ** step)
            parts[i] = parts[i] - rate * mean / (np.sqrt(square) + 1e-12)
    return tuple(parts)


def relative(predicted: np.ndarray, truth: Truth, Z: np.ndarray) -> float:
    return float(np.linalg.norm(predicted - truth(Z)) / np.linalg.norm(truth(Z)))


def one(n: int, seed: int) -> dict[str, tuple[float, float, float]]:
    """Of each way: largest parameter error (infinite for other widths), relative L2, CPU s."""
    truth = draw(D, M, seed)
    X = np.random.default_rng([seed, 1]).standard_normal((n, D))
    Z = np.random.default_rng([seed, 6]).standard_normal((5000, D))
    y = truth(X)
    start = time.process_time()
    recovery = revelu.learn(X, y, seed=seed)
    seconds = time.process_time() - start
    off = float(np.abs(learnt(recovery, truth)[0]).max())
    found = {"revelu": (off, relative(recovery.network(Z)[:, 0], truth, Z), seconds)}
    for name, width in (("Adam", M), ("Adam, wide", WIDE * M)):
        start = time.process_time()
        W, b, a, c = adam(X, y, width, seed)
        seconds = time.process_time() - start
        norms = np.linalg.norm(W, axis=1)
        off, _ = errors_of(W / norms[:, None], b / norms, a * norms, truth)
        left = relative(np.maximum(Z @ W.T + b, 0.0) @ a + c, truth, Z)
        found[name] = float(np.abs(off).max()), left, seconds
    return found


def rows(networks: int, sizes: tuple[int, ...]) -> tuple[list[str], dict[str, list[float]]]:
    """Lines of the table; the fraction exact at each size."""
    lines, exact = [], {}
    for size in sizes:
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + networks):
            found.append(one(round(size * P), seed))
            told = ", ".join(f"{name} {values[1]:.1e}" for name, values in found[-1].items())
            print(f"  {size}p {seed}: {told}", flush=True)
        for name in found[0]:
            off, left, seconds = np.array([f[name] for f in found]).T
            # A wide student has no parameters to compare: its function then.
            good = (left if "wide" in name else off) <= EXACT
            exact.setdefault(name, []).append(float(good.mean()))
            lines.append(
                f"| {name} | {size:g}p = {round(size * P)} | {networks} | {good.mean():.0%} "
                f"| {np.median(left):.1e} | {max(left):.1e} | {np.median(seconds):.1f} |"
            )
    return lines, exact


def tensor_row(n: int, networks: int) -> list[str]:
    """Directions of the third coefficient alone: tensorly's CP, and the tensor step."""
    errors: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + networks):
        truth = draw(D, M, seed)
        X = np.random.default_rng([seed, 1]).standard_normal((n, D))
        y = truth(X)
        quadratic = fit_quadratic(X, y)
        start = time.process_time()
        T = estimate_moments([(X, y)], quadratic, order=3).tensor(3)
        _, factors = parafac(tensorly.tensor(T), rank=M, n_iter_max=500, random_state=seed % 1000)
        W = np.asarray(factors[0]).T
        keep_time(errors, cpu, "tensorly CP, order 3", W, truth, start)
        start = time.process_time()
        values, U = np.linalg.eigh(quadratic.M)
        B = U[:, np.argsort(-np.abs(values))[:M]].T
        moments = estimate_moments([(X, y)], quadratic, B)
        units = estimate_units(moments, M, np.random.default_rng(seed))
        W = np.zeros((M, D)) if units is None else units.W @ B
        keep_time(errors, cpu, "the tensor step", W, truth, start)
    return [
        f"| {name} | {n:,} | {networks} | {np.median(errors[name]):.3f} | {max(errors[name]):.2f} "
        f"| {np.median(cpu[name]):.1f} |"
        for name in errors
    ]


def keep_time(
    errors: dict[str, list[float]],
    cpu: dict[str, list[float]],
    name: str,
    W: np.ndarray,
    truth: Truth,
    start: float,
) -> None:
    """Note the largest error of a direction, up to sign, and the CPU time since a start."""
    cpu.setdefault(name, []).append(time.process_time() - start)
    W = W / np.maximum(np.linalg.norm(W, axis=1, keepdims=True), 1e-300)
    partners, signs = match_rows(W, truth.W, up_to_sign=True)
    off = np.linalg.norm(signs[:, None] * W[partners] - truth.W, axis=1)
    errors.setdefault(name, []).append(float(off.max()))


def plot(exact: dict[str, list[float]]) -> None:
    """Draw the fraction exact against samples."""
    import matplotlib as mpl  # noqa: PLC0415 - not needed without --write

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(5, 3), dpi=80)
    for (name, fractions), mark in zip(exact.items(), "os^", strict=True):
        axes.plot(SIZES, fractions, mark + "-", label=name)
    axes.set(
        xscale="log", xlabel="samples a parameter", ylabel="fraction exact", ylim=(-0.05, 1.05)
    )
    axes.set_xticks(SIZES, [f"{size:g}" for size in SIZES], minor=False)
    axes.minorticks_off()
    axes.legend()
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", type=int, default=NETWORKS, help="a row")
    parser.add_argument("--quick", action="store_true", help="one network a row")
    parser.add_argument("--size", type=int, choices=SIZES, help="samples a parameter; else all")
    parser.add_argument("--write", action="store_true", help="keep it on its page")
    options = parser.parse_args()
    networks = 1 if options.quick else options.networks
    lines, exact = rows(networks, (options.size,) if options.size else SIZES)
    heads = "(10, 5) | samples | networks | exact | relative L2, median | largest | CPU s, median"
    parts = [table(heads, lines)]
    if not options.size:
        lines = [line for n in (10_000, 100_000) for line in tensor_row(n, networks)]
        heads = "directions | samples | networks | largest error, median | largest | CPU s, median"
        parts.append(table(heads, lines))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    parts.append(
        f"The whole run took {peak:.0f} MiB at its peak.  revelu {revelu.__version__}, tensorly "
        f"{tensorly.__version__}, NumPy {np.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, seeds from {FIRST_SEED}."
    )
    text = "\n\n".join(parts)
    print(f"\n{text}")
    if options.write and not options.size:
        plot(exact)
        keep("sample_rivals", f"{text}\n\n![Fraction exact against samples](samples.png)")


if __name__ == "__main__":
    main()
