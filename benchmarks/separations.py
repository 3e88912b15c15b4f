"""How far apart critical points of Gaussian lines are, on the whole zoo (CKM21, Lemmas 4.3, 4.4).

    python benchmarks/separations.py             print the table (a minute)
    python benchmarks/separations.py --write     and keep it on its page

No target is asked: the lines cross networks whose weights are known.
"""

import argparse
import platform
import sys
from pathlib import Path

import numpy as np
from page import keep

import revelu
from revelu import zoo
from revelu.recover.close.closeness import closeness

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from listings.ckm21_lines import (
    are_far,
    critical_points,
    reach,
    separation,
)

FIRST_SEED = 13_000_000
NETWORKS, LINES = 20, 200
WIDTHS = (10, 24, 1)
CLOSE, DELTA = 1e-3, 0.05

_HEADS = (
    "| network | largest abs(t), median / 95% | Lemma 4.3 | lines within "
    "| smallest gap, all | not close: median / 5% | Lemma 4.4 | lines within |"
)


def measure(kind: str, first_seed: int) -> dict[str, float]:
    """Largest critical points and smallest gaps of lines through networks of one kind."""
    farthest, reaches, nearest, nearest_far = [], [], [], []
    k = 0
    for seed in range(first_seed, first_seed + NETWORKS):
        network = zoo.KINDS[kind](WIDTHS, seed=seed)
        W, b = network.weights[0], network.biases[0]
        alive = np.linalg.norm(W, axis=1) > 0
        W, b = W[alive], b[alive]
        if len(W) < 2:
            continue
        k = max(k, len(W))
        far = are_far(*closeness(W, b), CLOSE, DELTA)
        bound = reach(W, b, DELTA)
        rng = np.random.default_rng([seed, 1])
        for _ in range(LINES):
            v = rng.standard_normal(W.shape[1])
            t = critical_points(W, b, rng.standard_normal(len(v)), v / np.linalg.norm(v))
            gaps = np.abs(t[:, None] - t) + np.where(np.eye(len(t)) > 0, np.inf, 0.0)
            farthest.append(np.abs(t).max())
            reaches.append(bound)
            nearest.append(gaps.min())
            nearest_far.append(gaps[far].min(initial=np.inf))
    if not farthest:
        return {}
    bound = separation(k, WIDTHS[0], CLOSE, DELTA)
    return {
        "largest": float(np.median(farthest)),
        "largest 95%": float(np.quantile(farthest, 0.95)),
        "reach": float(np.median(reaches)),
        "reached": float(np.mean(np.array(farthest) <= np.array(reaches))),
        "gap": float(np.median(nearest)),
        "far gap": float(np.median(nearest_far)),
        "far gap 5%": float(np.quantile(nearest_far, 0.05)),
        "separation": bound,
        "separated": float(np.mean(np.array(nearest_far) >= bound)),
    }


def line(kind: str, f: dict[str, float]) -> str:
    """One line of the table."""
    return (
        f"| {kind} | {f['largest']:.1e} / {f['largest 95%']:.1e} | {f['reach']:.1e} "
        f"| {f['reached']:.1%} | {f['gap']:.1e} | {f['far gap']:.1e} / {f['far gap 5%']:.1e} "
        f"| {f['separation']:.1e} | {f['separated']:.1%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--write", action="store_true", help="keep it on its page")
    options = parser.parse_args()
    lines = [_HEADS, "|" + "---|" * 8]
    for kind in zoo.KINDS:
        if figures := measure(kind, options.first_seed):
            lines.append(line(kind, figures))
            print(lines[-1], flush=True)
    widths = "-".join(map(str, WIDTHS))
    text = "\n".join(lines) + (
        f"\n\nrevelu {revelu.__version__}, NumPy {np.__version__}, Python "
        f"{platform.python_version()}; {NETWORKS} networks {widths} a line, seeds from "
        f"{options.first_seed}, {LINES} lines each; Δ = {CLOSE:g}, δ = {DELTA:g}, constants 1."
    )
    if options.write:
        keep("separations", text)


if __name__ == "__main__":
    main()
