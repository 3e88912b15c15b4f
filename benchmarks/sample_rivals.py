"""Networks from samples beside what else is tried: students trained by Adam, CP by tensorly.

    python benchmarks/sample_rivals.py                print the tables
    python benchmarks/sample_rivals.py --row 50p      only so many samples a parameter
    python benchmarks/sample_rivals.py --write --plot benchmarks/pages/samples.png
                                                      and keep them, and the plot

Networks of samples.py with 10 inputs and 5 neurons, p = 55.  Students begin at random and see
the same samples as the learner; Adam takes all of them at every step.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorly
from runner import Line, Table, main, timed
from samples import EXACT, FIRST_SEED, Truth, draw, errors_of, learnt
from tensorly.decomposition import parafac

import revelu
from revelu.numerics.matching import match_rows
from revelu.numerics.quadratic import fit_quadratic
from revelu.probe.moments import estimate_moments
from revelu.recover.fit.tensors import estimate_units

D, M = 10, 5
P = M * (D + 1)
SIZES = (2, 3, 5, 10, 50)
WIDE = 4

# Adam's steps, its first rate, which falls to nothing along a cosine, and its averages.
STEPS = 5_000
RATE = 0.02
BETAS = 0.9, 0.999


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


Found = dict[str, tuple[float, float, float]]


@dataclass(frozen=True)
class Size:
    """Lines of the first table: so many samples a parameter."""

    size: int
    networks: int = 10

    @property
    def name(self) -> str:
        """How many."""
        return f"{self.size}p = {round(self.size * P)}"


@dataclass(frozen=True)
class Directions:
    """Lines of the second table: directions of the third coefficient alone, of so many samples."""

    n: int
    networks: int = 10

    @property
    def name(self) -> str:
        """How many."""
        return f"directions, {self.n:,}"


def one(row: Size | Directions, seed: int, _limit: float | None) -> Found:
    """Measure all ways on one network."""
    return by_size(round(row.size * P), seed) if isinstance(row, Size) else directions(row.n, seed)


def by_size(n: int, seed: int) -> Found:
    """Of each way: largest parameter error (infinite for other widths), relative L2, CPU s."""
    truth = draw(D, M, seed)
    X = np.random.default_rng([seed, 1]).standard_normal((n, D))
    Z = np.random.default_rng([seed, 6]).standard_normal((5000, D))
    y = truth(X)
    recovery, seconds = timed(revelu.learn, X, y, seed=seed)
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


def directions(n: int, seed: int) -> Found:
    """Of tensorly's CP and of the tensor step: the largest error of a direction, CPU s."""
    truth = draw(D, M, seed)
    X = np.random.default_rng([seed, 1]).standard_normal((n, D))
    y = truth(X)
    quadratic = fit_quadratic(X, y)
    start = time.process_time()
    T = estimate_moments([(X, y)], quadratic, order=3).tensor(3)
    _, factors = parafac(tensorly.tensor(T), rank=M, n_iter_max=500, random_state=seed % 1000)
    W = np.asarray(factors[0]).T
    found = {"tensorly CP, order 3": (direction_error(W, truth), 0.0, time.process_time() - start)}
    start = time.process_time()
    values, U = np.linalg.eigh(quadratic.M)
    B = U[:, np.argsort(-np.abs(values))[:M]].T
    moments = estimate_moments([(X, y)], quadratic, B)
    units = estimate_units(moments, M, np.random.default_rng(seed))
    W = np.zeros((M, D)) if units is None else units.W @ B
    found["the tensor step"] = direction_error(W, truth), 0.0, time.process_time() - start
    return found


def direction_error(W: np.ndarray, truth: Truth) -> float:
    """The largest error of a direction, up to sign."""
    W = W / np.maximum(np.linalg.norm(W, axis=1, keepdims=True), 1e-300)
    partners, signs = match_rows(W, truth.W, up_to_sign=True)
    off = np.linalg.norm(signs[:, None] * W[partners] - truth.W, axis=1)
    return float(off.max())


def share_exact(way: str, runs: list[Found]) -> float:
    """The share exact; a wide student has no parameters to compare: its function then."""
    return float(np.mean([run[way][int("wide" in way)] <= EXACT for run in runs]))


def lines(found: Mapping[Size | Directions, list[Found]]) -> Iterator[Line]:
    """A line for each size and way, then those of directions."""
    for row, runs in found.items():
        for way in runs[0]:
            off, left, seconds = np.array([run[way] for run in runs]).T
            if isinstance(row, Size):
                yield {
                    "(10, 5)": way,
                    "samples": row.name,
                    "networks": f"{len(runs)}",
                    "exact": f"{share_exact(way, runs):.0%}",
                    "relative L2, median": f"{np.median(left):.1e}",
                    "largest": f"{max(left):.1e}",
                    "CPU s, median": f"{np.median(seconds):.1f}",
                }
            else:
                yield {
                    "directions": way,
                    "samples": f"{row.n:,}",
                    "networks": f"{len(runs)}",
                    "largest error, median": f"{np.median(off):.3f}",
                    "largest": f"{max(off):.2f}",
                    "CPU s, median": f"{np.median(seconds):.1f}",
                }


def plot(path: Path, found: Mapping[Size | Directions, list[Found]]) -> None:
    """Draw the fraction exact against samples."""
    import matplotlib as mpl  # noqa: PLC0415 - not needed without --plot

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    runs = {row.size: some for row, some in found.items() if isinstance(row, Size)}
    figure, axes = plt.subplots(figsize=(5, 3), dpi=80)
    for way, mark in zip(("revelu", "Adam", "Adam, wide"), "os^", strict=True):
        exact = [share_exact(way, some) for some in runs.values()]
        axes.plot(list(runs), exact, mark + "-", label=way)
    axes.set(
        xscale="log", xlabel="samples a parameter", ylabel="fraction exact", ylim=(-0.05, 1.05)
    )
    axes.set_xticks(SIZES, [f"{size:g}" for size in SIZES], minor=False)
    axes.minorticks_off()
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})


TABLE = Table(
    "sample_rivals",
    __doc__,
    (*map(Size, SIZES), *map(Directions, (10_000, 100_000))),
    one,
    lines,
    first_seed=FIRST_SEED,
    named_by=2,
    note=lambda _: (
        f"tensorly {tensorly.__version__}.\n\n![Fraction exact against samples](samples.png)"
    ),
    plot=plot,
)

if __name__ == "__main__":
    main(TABLE)
