"""Rules behind labels of samples: halfspaces found, invented, and whether stated bounds hold.

    python benchmarks/rules.py                             print the table
    python benchmarks/rules.py --write                     and keep it on its page
    python benchmarks/rules.py --row "5%" --networks 20    rows whose name has this

1 to 5 halfspaces of 3 to 8 inputs, normals at least 0.5 rad apart, thresholds of 1.5 to 2.5, 50,000
samples of N(0, I).
"""

from dataclasses import dataclass

import numpy as np
from runner import Line, Table, by_row, main, timed

import revelu
from revelu.numerics.matching import match_rows

N = 50_000
APART = 0.5
"""Radians between normals, at least: halfspaces a constant angle apart are what GP18 is about."""

Rule = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Row:
    """A row: the angle that every halfspace is to be found to, what is drawn, wrong labels."""

    name: str
    bar: float
    networks: int
    kind: str
    rate: float = 0.0


ROWS = (
    Row("1 to 5, no wrong label", 0.05, 200, "drawn"),
    Row("1 to 5, 0.1% wrong", 0.05, 20, "drawn", 0.001),
    Row("1 to 5, 1% wrong", 0.05, 20, "drawn", 0.01),
    Row("1 to 5, 5% wrong", 0.1, 20, "drawn", 0.05),
    Row("3, one opposite another", 0.05, 10, "opposite"),
    Row("3, one opposite another, 5% wrong", 0.1, 10, "opposite", 0.05),
    Row("3, one at a threshold of 4.5", 0.05, 10, "beyond"),
    Row("something else", 0.0, 10, "others"),
    Row("something else, 1% wrong", 0.0, 10, "others", 0.01),
)


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


def measure(row: Row, seed: int) -> Run:
    """Recover a rule from labels of which some share is wrong."""
    rng = np.random.default_rng([0x72756C65, seed])
    W, t = DRAWS[row.kind](rng)
    X = rng.standard_normal((N, W.shape[1]))
    y = (X @ W.T - t >= 0).any(axis=1) ^ (rng.random(N) < row.rate)
    found, seconds = timed(revelu.recover_halfspaces, X=X, y=y, seed=seed)
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


def of_others(row: Row, seed: int) -> Run:
    """Labels of something else: whatever is certified is wrong."""
    rng = np.random.default_rng([0x72756C65, seed])
    X = rng.standard_normal((N, 4))
    y = (rng.random(N) < others(X, seed % len(OTHERS))) ^ (rng.random(N) < row.rate)
    found, seconds = timed(revelu.recover_halfspaces, X=X, y=y, seed=seed)
    return Run(0, len(found.normals), 0, 0.0, 0, 0, 0.0, found.status.value, seconds)


DRAWS = {"drawn": drawn, "opposite": opposite, "beyond": beyond}


def one(row: Row, seed: int, _limit: float | None) -> Run:
    """Recover one rule, or what is none."""
    return of_others(row, seed) if row.kind == "others" else measure(row, seed)


def line(row: Row, runs: list[Run]) -> Line:
    """Render a row; of what is no rule of halfspaces there is nothing to find."""
    certified = [run for run in runs if run.status == "recovered"]
    matched = sum(run.n_found - run.n_invented for run in runs)
    held = [sum(run.held for run in runs), sum(run.thresholds_held for run in runs)]
    shares = [f"{h} of {matched} ({h / max(matched, 1):.1%})" for h in held]
    found = {
        "all found to": f"{row.bar:g} rad",
        "in": f"{sum(run.worst <= row.bar for run in runs)}",
        "invented": f"{sum(run.n_invented for run in runs)}",
        "95% bounds of angles hold": shares[0],
        "of thresholds": shares[1],
        "bound said, median": f"{np.median([run.said for run in runs]):.2g}",
    }
    wrong = sum(run.n_invented > 0 for run in certified) if row.bar else len(certified)
    return {
        "labels": row.name,
        "runs": f"{len(runs)}",
        **(found if row.bar else dict.fromkeys(found, "-")),
        "certified": f"{len(certified)}",
        "certified and wrong": f"{wrong}",
        "CPU s": f"{np.median([run.seconds for run in runs]):.2g}",
    }


TABLE = Table("rules", __doc__, ROWS, one, by_row(line), first_seed=64_000_000, outcome=Run)

if __name__ == "__main__":
    main(TABLE)
