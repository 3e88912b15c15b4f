"""Lowest layers of special shape: Theorems 8, 9 and 10, 20 inputs and 5 units.

    python benchmarks/special_layers.py                    print the table
    python benchmarks/special_layers.py --write            and keep it on its page

P has linear, pair and triple terms.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from lowest_layer import FIRST_SEED, up_to_sign
from runner import Line, Table, by_row, main

import revelu


@dataclass(frozen=True)
class Row:
    """A line: how many samples, of five units of which kind."""

    name: str
    samples: int
    rho: float = 0.0
    t: float = 0.0
    most: float = 0.05
    networks: int = 20


ROWS = (
    Row("Theorem 8: ρ = 0.5, t = 2, 3e4 samples", 30_000, 0.5, 2.0, 0.5),
    Row("Theorem 9: ρ = 1, t = 0, 2e5 samples", 200_000, 1.0, 0.0, 0.01),
    Row("Theorem 10: absolute values, 1e6 samples", 1_000_000),
)


def products(u: np.ndarray, most: float, rng: np.random.Generator) -> np.ndarray:
    """Linear terms, and products of two and three units with positive coefficients."""
    k = u.shape[1]
    y = u @ rng.uniform(0.7, 1.3, k)
    for size in (2, 3):
        for members in combinations(range(k), size):
            y = y + rng.uniform(0.0, most) * np.prod(u[:, members], axis=1)
    return np.asarray(y)


def one(row: Row, seed: int, _limit: float | None) -> tuple[float, float]:
    """Recover one lowest layer."""
    return exponential(row, seed) if row.rho else even(row, seed)


def exponential(row: Row, seed: int) -> tuple[float, float]:
    """Whether five blocks of 20 coordinates come back; whether others were certified."""
    rng = np.random.default_rng([3, seed])
    blocks = [sorted(b) for b in np.array_split(rng.permutation(20), 5)]
    X = rng.standard_normal((row.samples, 20))
    u = np.column_stack([np.exp(row.rho * (X[:, b].sum(axis=1) - row.t)) for b in blocks])
    y = products(u, row.most, rng)
    found = revelu.recover_lowest_layer(X=X, y=y, activation="exp", seed=seed)
    exact = found.details.get("blocks") == sorted([int(i) for i in b] for b in blocks)
    return float(exact), float(found.status == "recovered" and not exact)


def even(row: Row, seed: int) -> tuple[float, float]:
    """Worst angle of five orthonormal rows of 20 inputs under |a|, and the error said."""
    rng = np.random.default_rng([4, seed])
    W = np.linalg.qr(rng.standard_normal((20, 5)))[0].T
    X = rng.standard_normal((row.samples, 20))
    y = products(np.abs(X @ W.T), row.most, rng)
    found = revelu.recover_lowest_layer(X=X, y=y, activation="even", n_neurons=5, seed=seed)
    return up_to_sign(found.directions, W), float(found.errors.max(initial=0.0))


def line(row: Row, runs: list[tuple[float, float]]) -> Line:
    """Render a row: networks with exact blocks, or angles and networks without directions."""
    first, second = np.array(runs).T
    if row.rho:
        reached, said = f"{int(first.sum())} with exact blocks", f"{int(second.sum())}"
    else:
        given = first < np.pi / 2
        reached = (
            f"{int(given.sum())} with worst angle {np.median(first[given]):.3f} "
            f"({first[given].max():.3f}) rad; none given in {int((~given).sum())}"
        )
        said = f"{np.median(second[given]):.3f} rad"
    return {
        "target": row.name,
        "networks": f"{len(runs)}",
        "reached": reached,
        "wrong and certified, or error said": said,
    }


TABLE = Table("lowest-layer-structured", __doc__, ROWS, one, by_row(line), first_seed=FIRST_SEED)

if __name__ == "__main__":
    main(TABLE)
