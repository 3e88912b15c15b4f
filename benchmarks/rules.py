"""Rules behind labels of samples: halfspaces found, invented, and whether stated bounds hold.

    python benchmarks/rules.py                             print the table
    python benchmarks/rules.py --write                     and keep it on its page
    python benchmarks/rules.py --only "5%" --runs 20       one row of it

1 to 5 halfspaces of 3 to 8 inputs, normals at least 0.5 rad apart, thresholds of 1.5 to 2.5, 50,000
samples of N(0, I).  With --results FILE every run is recorded there, and a run goes on where it
stopped.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from page import add_rows, once

import revelu
from revelu.numerics.matching import match_rows

FIRST_SEED = 64_000_000
N = 50_000
APART = 0.5
"""Radians between normals, at least: halfspaces a constant angle apart are what GP18 is about."""

Rule = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Run:
    """One rule: what came back.

    Attributes
    ----------
    n_true, n_found, n_invented : int
    worst : float
        Angle of the worst halfspace, in radians; a right one where one is missing.
    held, thresholds_held : int
        Halfspaces whose angle, and whose threshold, the stated bound holds for.
    said : float
        The largest bound of an angle.
    status : str
    seconds : float
        Of CPU time.
    """

    n_true: int
    n_found: int
    n_invented: int
    worst: float
    held: int
    thresholds_held: int
    said: float
    status: str
    seconds: float


def drawn(rng: np.random.Generator) -> Rule:
    """Draw normals and thresholds."""
    d, k = int(rng.integers(3, 9)), int(rng.integers(1, 6))
    while True:
        W = rng.standard_normal((k, d))
        W /= np.linalg.norm(W, axis=1)[:, None]
        if (W @ W.T)[~np.eye(k, dtype=bool)].max(initial=-1.0) < np.cos(APART):
            return W, rng.uniform(1.5, 2.5, k)


def opposite(rng: np.random.Generator) -> Rule:
    """Draw three, of which one is the opposite of another."""
    W = np.linalg.qr(rng.standard_normal((6, 2)))[0].T
    return np.vstack([W, -W[:1]]), rng.uniform(1.5, 2.5, 3)


def beyond(rng: np.random.Generator) -> Rule:
    """Draw three, of which one holds 3 of a million inputs."""
    W, t = opposite(rng)
    return W, np.array([t[0], 4.5, t[2]])


def measure(draw: Callable[[np.random.Generator], Rule], rate: float, seed: int) -> Run:
    """Recover a rule from labels of which some share is wrong."""
    rng = np.random.default_rng([0x72756C65, seed])
    W, t = draw(rng)
    X = rng.standard_normal((N, W.shape[1]))
    y = (X @ W.T - t >= 0).any(axis=1) ^ (rng.random(N) < rate)
    began = time.process_time()
    found = revelu.recover_halfspaces(X=X, y=y, seed=seed)
    seconds = time.process_time() - began
    rows, _ = match_rows(found.normals, W)
    off = np.full(len(W), np.pi / 2.0)
    there = np.flatnonzero(rows >= 0)
    rows = rows[there]
    chords = np.linalg.norm(found.normals[rows] - W[there], axis=1)
    off[there] = 2.0 * np.arcsin(np.minimum(chords / 2.0, 1.0))
    near = off[there] < APART / 2.0
    gaps = np.abs(found.thresholds[rows] - t[there])
    return Run(
        len(W),
        len(found.normals),
        len(found.normals) - int(near.sum()),
        float(off.max()),
        int((off[there] <= found.bounds[rows])[near].sum()),
        int((gaps <= found.threshold_bounds[rows])[near].sum()),
        float(found.bounds.max(initial=0.0)),
        found.status.value,
        seconds,
    )


def others(X: np.ndarray, which: int) -> np.ndarray:
    """Label inputs by what is no union of halfspaces, the chance of a 1."""
    a, b = X[:, 0], X[:, 1]
    return np.asarray(
        [
            (a >= 1.5) ^ (b >= 1.5),
            (a >= 0.5) & (b >= 0.5),
            (a >= 1.5) & (a <= 3.0),
            (X[:, :4] ** 2).sum(axis=1) > 10.0,
            1.0 / (1.0 + np.exp(-6.0 * (a - 2.0))),
        ][which],
        dtype=np.float64,
    )


OTHERS = ("one of two", "a corner", "a band", "a ball", "a logistic curve")


def of_others(rate: float, seed: int) -> Run:
    """Labels of something else: whatever is certified is wrong."""
    rng = np.random.default_rng([0x72756C65, seed])
    X = rng.standard_normal((N, 4))
    y = (rng.random(N) < others(X, seed % len(OTHERS))) ^ (rng.random(N) < rate)
    began = time.process_time()
    found = revelu.recover_halfspaces(X=X, y=y, seed=seed)
    seconds = time.process_time() - began
    return Run(0, len(found.normals), 0, 0.0, 0, 0, 0.0, found.status.value, seconds)


@dataclass(frozen=True)
class Row:
    """A row: its name, the angle that every halfspace is to be found to, how a seed is run."""

    name: str
    bar: float
    n_runs: int
    run: Callable[[int], Run]


ROWS = (
    Row("1 to 5, no wrong label", 0.05, 200, lambda s: measure(drawn, 0.0, s)),
    Row("1 to 5, 0.1% wrong", 0.05, 20, lambda s: measure(drawn, 0.001, s)),
    Row("1 to 5, 1% wrong", 0.05, 20, lambda s: measure(drawn, 0.01, s)),
    Row("1 to 5, 5% wrong", 0.1, 20, lambda s: measure(drawn, 0.05, s)),
    Row("3, one opposite another", 0.05, 10, lambda s: measure(opposite, 0.0, s)),
    Row("3, one opposite another, 5% wrong", 0.1, 10, lambda s: measure(opposite, 0.05, s)),
    Row("3, one at a threshold of 4.5", 0.05, 10, lambda s: measure(beyond, 0.0, s)),
    Row("something else", 0.0, 10, lambda s: of_others(0.0, s)),
    Row("something else, 1% wrong", 0.0, 10, lambda s: of_others(0.01, s)),
)

HEAD = (
    "| labels | runs | all found to | in | invented | 95% bounds of angles hold | of thresholds "
    "| bound said, median | certified | certified and wrong | CPU s |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)


def line(row: Row, runs: list[Run]) -> str:
    """Render a row."""
    certified = [run for run in runs if run.status == "recovered"]
    cpu = f"{np.median([run.seconds for run in runs]):.2g}"
    if not row.bar:
        n = len(certified)
        return f"| {row.name} | {len(runs)} | - | - | - | - | - | - | {n} | {n} | {cpu} |"
    matched = sum(run.n_found - run.n_invented for run in runs)
    held = [sum(run.held for run in runs), sum(run.thresholds_held for run in runs)]
    shares = [f"{h} of {matched} ({h / max(matched, 1):.1%})" for h in held]
    wrong = sum(run.n_invented > 0 for run in certified)
    return (
        f"| {row.name} | {len(runs)} | {row.bar:g} rad | {sum(r.worst <= row.bar for r in runs)} "
        f"| {sum(run.n_invented for run in runs)} | {shares[0]} | {shares[1]} "
        f"| {np.median([run.said for run in runs]):.2g} | {len(certified)} | {wrong} | {cpu} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, help="of every row, in place of its own number")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--only", default="", help="rows that hold this")
    parser.add_argument("--results", type=Path, help="file that runs are recorded in")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = []
    for row in ROWS:
        if options.only not in row.name:
            continue
        first = options.first_seed
        seeds = range(first, first + (options.runs or row.n_runs))
        runs = [
            Run(**once(options.results, row.name, seed, lambda s, row=row: asdict(row.run(s))))
            for seed in seeds
        ]
        lines.append(line(row, runs))
        print(lines[-1], flush=True)
    text = "\n".join([HEAD, *lines])
    print(text)
    if options.write:
        add_rows("rules", text)


if __name__ == "__main__":
    main()
