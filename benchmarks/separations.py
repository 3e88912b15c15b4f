"""How far apart critical points of Gaussian lines are, on the whole zoo (CKM21, Lemmas 4.3, 4.4).

    python benchmarks/separations.py             print the table (a minute)
    python benchmarks/separations.py --write     and keep it on its page

No target is asked: the lines cross networks whose weights are known.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from runner import Line, Named, Table, by_row, main, shape

from revelu import zoo
from revelu.recover.close.closeness import closeness

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from listings.ckm21_lines import are_far, critical_points, reach, separation

LINES = 200
WIDTHS = (10, 24, 1)
CLOSE, DELTA = 1e-3, 0.05


@dataclass(frozen=True)
class Run:
    """The lines through one network: largest critical points, smallest gaps, of far neurons too."""

    k: int
    farthest: list[float]
    bound: float
    nearest: list[float]
    nearest_far: list[float]


def one(row: Named, seed: int, _limit: float | None) -> Run:
    """Compute the largest critical points and smallest gaps of lines through one network."""
    network = zoo.KINDS[row.name](WIDTHS, seed=seed)
    W, b = network.weights[0], network.biases[0]
    alive = np.linalg.norm(W, axis=1) > 0
    W, b = W[alive], b[alive]
    if len(W) < 2:
        return Run(len(W), [], np.inf, [], [])
    far = are_far(*closeness(W, b), CLOSE, DELTA)
    rng = np.random.default_rng([seed, 1])
    farthest, nearest, nearest_far = [], [], []
    for _ in range(LINES):
        v = rng.standard_normal(W.shape[1])
        t = critical_points(W, b, rng.standard_normal(len(v)), v / np.linalg.norm(v))
        gaps = np.abs(t[:, None] - t) + np.where(np.eye(len(t)) > 0, np.inf, 0.0)
        farthest.append(float(np.abs(t).max()))
        nearest.append(float(gaps.min()))
        nearest_far.append(float(gaps[far].min(initial=np.inf)))
    return Run(len(W), farthest, float(reach(W, b, DELTA)), nearest, nearest_far)


def line(row: Named, runs: list[Run]) -> Line:
    """One line of the table."""
    runs = [run for run in runs if run.farthest]
    farthest, nearest, nearest_far = (
        np.concatenate([getattr(run, name) for run in runs])
        for name in ("farthest", "nearest", "nearest_far")
    )
    reaches = np.repeat([run.bound for run in runs], LINES)
    bound = separation(max(run.k for run in runs), WIDTHS[0], CLOSE, DELTA)
    return {
        "network": row.name,
        "largest abs(t), median / 95%": f"{np.median(farthest):.1e} / "
        f"{np.quantile(farthest, 0.95):.1e}",
        "Lemma 4.3": f"{np.median(reaches):.1e}",
        "lines within it": f"{np.mean(farthest <= reaches):.1%}",
        "smallest gap, all": f"{np.median(nearest):.1e}",
        "not close: median / 5%": f"{np.median(nearest_far):.1e} / "
        f"{np.quantile(nearest_far, 0.05):.1e}",
        "Lemma 4.4": f"{bound:.1e}",
        "lines within": f"{np.mean(nearest_far >= bound):.1%}",
    }


TABLE = Table(
    "separations",
    __doc__,
    [Named(kind, 20) for kind in zoo.KINDS if kind not in {"affine", "constant"}],
    one,
    by_row(line),
    first_seed=13_000_000,
    outcome=Run,
    note=lambda _: (
        f"Networks {shape(WIDTHS)}, {LINES} lines each; Δ = {CLOSE:g}, δ = {DELTA:g}, constants 1."
    ),
)

if __name__ == "__main__":
    main(TABLE)
