"""Lowest layers of special shape: Theorems 8, 9 and 10, 20 inputs and 5 units.

    python benchmarks/special_layers.py                    print the table
    python benchmarks/special_layers.py --write            and keep it on its page

With --results FILE every network is recorded there, and a run goes on where it stopped.
"""

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
from lowest_layer import FIRST_SEED, up_to_sign
from page import keep_rows, once

import revelu


def products(u: np.ndarray, most: float, rng: np.random.Generator) -> np.ndarray:
    """Linear terms, and products of two and three units with positive coefficients."""
    k = u.shape[1]
    y = u @ rng.uniform(0.7, 1.3, k)
    for size in (2, 3):
        for members in combinations(range(k), size):
            y = y + rng.uniform(0.0, most) * np.prod(u[:, members], axis=1)
    return np.asarray(y)


def exponential(n: int, rho: float, t: float, most: float, seed: int) -> tuple[float, float]:
    """Whether five blocks of 20 coordinates come back; whether others were certified."""
    rng = np.random.default_rng([3, seed])
    blocks = [sorted(b) for b in np.array_split(rng.permutation(20), 5)]
    X = rng.standard_normal((n, 20))
    u = np.column_stack([np.exp(rho * (X[:, b].sum(axis=1) - t)) for b in blocks])
    found = revelu.recover_lowest_layer(X=X, y=products(u, most, rng), activation="exp", seed=seed)
    exact = found.details.get("blocks") == sorted([int(i) for i in b] for b in blocks)
    return float(exact), float(found.status == "recovered" and not exact)


def even(n: int, seed: int) -> tuple[float, float]:
    """Worst angle of five orthonormal rows of 20 inputs under |a|, and the error said."""
    rng = np.random.default_rng([4, seed])
    W = np.linalg.qr(rng.standard_normal((20, 5)))[0].T
    X = rng.standard_normal((n, 20))
    y = products(np.abs(X @ W.T), 0.05, rng)
    found = revelu.recover_lowest_layer(X=X, y=y, activation="even", n_neurons=5, seed=seed)
    return up_to_sign(found.directions, W), float(found.errors.max(initial=0.0))


ROWS = (
    ("Theorem 8: ρ = 0.5, t = 2, 3e4 samples", lambda s: exponential(30_000, 0.5, 2.0, 0.5, s)),
    ("Theorem 9: ρ = 1, t = 0, 2e5 samples", lambda s: exponential(200_000, 1.0, 0.0, 0.01, s)),
    ("Theorem 10: absolute values, 1e6 samples", lambda s: even(1_000_000, s)),
)

HEAD = "| target | networks | reached | wrong and certified, or error said |\n|---|---|---|---|"


def line(name: str, found: list[tuple[float, float]]) -> str:
    """Render a row: networks with exact blocks, or angles and networks without directions."""
    first, second = np.array(found).T
    if "10" not in name:
        reached, said = f"{int(first.sum())} with exact blocks", f"{int(second.sum())}"
    else:
        given = first < np.pi / 2
        reached = (
            f"{int(given.sum())} with worst angle {np.median(first[given]):.3f} "
            f"({first[given].max():.3f}) rad; none given in {int((~given).sum())}"
        )
        said = f"{np.median(second[given]):.3f} rad"
    return f"| {name} | {len(found)} | {reached} | {said} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--only", default="", help="rows that hold this")
    parser.add_argument("--results", type=Path, help="file that networks are recorded in")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = [HEAD]
    for name, run in ROWS:
        if options.only in name:
            seeds = range(options.first_seed, options.first_seed + options.networks)
            lines.append(line(name, [once(options.results, name, seed, run) for seed in seeds]))
            print(lines[-1], flush=True)
    if options.write:
        keep_rows("lowest-layer-structured", "\n".join(lines))


if __name__ == "__main__":
    main()
