"""Tables as people have them: what errs in them, what they hold, and how large they are.

    python benchmarks/tables.py                          print the tables
    python benchmarks/tables.py --row "8-4-1"            rows whose name has this
    python benchmarks/tables.py --write                  and keep them on their page

Random unit rows, |a| in [0.5, 1.5] with random signs, b in [-1, 1]; inputs of N(0, I); the number
of neurons is not given.  A neuron is there if its row has a cosine of 0.99 to a true one that no
other neuron has.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from runner import Line, Named, Table, main
from runner import shape as shape_of
from samples import draw
from sklearn import datasets

import revelu
from revelu.numerics.matching import match_rows

FIRST_SEED = 64_000_000
SAMPLES = 4000
NINETY = 1.6448536269514722
SHAPES = ((8, 4, 1), (10, 6, 2), (20, 5, 1))

# Deviations of errors, as shares of the answers' own.
PLAIN, SMALL, SHARE, OUTLIERS = 0.05, 0.01, 0.02, 0.05


def cut(X: np.ndarray, y: np.ndarray, _: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Inputs as whole numbers of hundredths, as ``int`` makes them."""
    return (X * 100.0).astype(np.int64), y


def blurred(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Inputs with Gaussian errors of a hundredth."""
    return X + 0.01 * rng.standard_normal(X.shape), y


def in_proportion(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Errors in proportion to the answer."""
    return X, y * (1.0 + SHARE * rng.standard_normal(len(y)))


def cauchy(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Errors of Cauchy's law."""
    return X, y + SMALL * y.std() * rng.standard_cauchy(len(y))


def plain(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Gaussian errors, alike for all answers."""
    return X, y + PLAIN * y.std() * rng.standard_normal(len(y))


def on_a_grid(X: np.ndarray, y: np.ndarray, _: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Answers with one decimal."""
    return X, np.round(y, 1)


def with_outliers(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Small Gaussian errors, and 5% of the answers wrong by five of their deviations."""
    wrong = rng.random(len(y)) < OUTLIERS
    return X, y + y.std() * np.where(wrong, 5.0, SMALL) * rng.standard_normal(len(y))


LAWS: dict[str, Callable[..., tuple[np.ndarray, ...]]] = {
    "x in hundredths, cut": cut,
    "x with errors of 1/100": blurred,
    "2% of the answer": in_proportion,
    "Cauchy": cauchy,
    "plain, 5%": plain,
    "answers of one decimal": on_a_grid,
    "5% outliers": with_outliers,
}


@dataclass(frozen=True)
class Erring:
    """A line of the first table: a shape, and what errs."""

    shape: tuple[int, int, int]
    law: str
    networks: int = 10

    @property
    def name(self) -> str:
        """Both."""
        return f"{shape_of(self.shape)}, {self.law}"


def learned(row: Erring, seed: int) -> dict[str, Any]:
    """What comes back of a network's outputs, each learned for itself."""
    (d, m, k), law = row.shape, row.law
    found: dict[str, Any] = {"invented": 0, "all": True, "certified": True, "hit": 0, "of": 0}
    start = time.process_time()
    for j in range(k):
        truth = draw(d, m, seed + 1000 * j)
        rng = np.random.default_rng([seed, 1])
        X = rng.standard_normal((SAMPLES, d))
        X, y = LAWS[law](X, truth(X), rng)
        recovery = revelu.learn(X, y, seed=seed)
        certified = recovery.status is revelu.Status.RECOVERED
        W, A = recovery.network.weights
        rows, _ = match_rows(W, truth.W) if len(W) == m else (np.arange(0), None)
        norms = np.linalg.norm(W, axis=1)
        there = np.abs((W @ truth.W.T).max(axis=1) / norms) > 0.99 if len(W) else np.ones(0)
        n_invented = int(len(W) - len(set(np.argmax(W @ truth.W.T, axis=1)[there > 0])))
        found["invented"] += n_invented if certified else 0
        found["all"] &= len(W) == m and n_invented == 0 and recovery.network.skip is None
        found["certified"] &= certified
        if found["all"] and len(rows):
            unit = 100.0 if law.endswith("cut") else 1.0
            bars = recovery.details["standard_errors"]
            # Of rows alone: they do not depend on the unit of the inputs.
            off = W[rows] / norms[rows, None] - truth.W
            found["hit"] += int((np.abs(off) <= NINETY * bars.W[rows]).sum())
            found["of"] += off.size
            off_a = A[0][rows] * unit - truth.a
            found["hit"] += int((np.abs(off_a) <= NINETY * bars.A[0][rows]).sum())
            found["of"] += off_a.size
    found["seconds"] = time.process_time() - start
    return found


def law_line(row: Erring, runs: list[dict[str, Any]]) -> Line:
    """A line for each shape and law."""
    n, of = len(runs), sum(run["of"] for run in runs)
    cover = f"{sum(run['hit'] for run in runs) / of:.0%}" if of else "-"
    invented = sum(run["invented"] > 0 for run in runs)
    return {
        "what errs": row.name,
        "networks": f"{n}",
        "certified with a neuron that is not there (bar)": f"{invented} (0)",
        "all neurons back (bar)": f"{sum(run['all'] for run in runs)} (≥ {int(np.ceil(0.9 * n))})",
        "certified": f"{sum(run['certified'] for run in runs)}",
        "90% intervals cover (bar)": f"{cover} (85-95%)",
        "CPU s, median": f"{np.median([run['seconds'] for run in runs]):.1f}",
    }


def as_units(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Columns in units of their own: grams, years, thousands."""
    d = X.shape[1]
    return X * 10.0 ** rng.integers(-3, 5, d) + 10.0 ** rng.integers(0, 4, d)


def housing(rng: np.random.Generator, n: int = 20_640) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """A table like California's housing: skewed columns, prices cut off at 5."""
    income = np.exp(0.45 * rng.standard_normal(n) + 1.2)
    age = rng.integers(1, 53, n)
    rooms, people = np.exp(0.3 * rng.standard_normal((2, n)) + [[1.6], [1.0]])
    north, west = 32.5 + 9.5 * rng.random(n), -124.0 + 10.0 * rng.random(n)
    value = 0.4 * income + 0.01 * age - 0.1 * np.abs(north - 34.0) + 0.3 * np.log(rooms / people)
    value = np.round(np.clip(value * np.exp(0.2 * rng.standard_normal(n)), 0.15, 5.0), 3)
    X = np.column_stack([income, age, rooms, people, north, west])
    return X, value, ["income", "age", "rooms", "people", "latitude", "longitude"]


def wine(rng: np.random.Generator, n: int = 4898) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """A table like that of white wines: measurements with few digits, a grade from 3 to 9."""
    Z = rng.standard_normal((n, 11))
    X = np.round(np.exp(0.3 * Z) * [6.9, 0.28, 0.33, 6.4, 0.05, 35, 138, 1, 3.2, 0.5, 10.5], 2)
    grade = np.clip(np.round(5.9 + 0.5 * Z[:, 10] - 0.3 * Z[:, 1] + 0.6 * Z[:, 4]), 3, 9)
    return X, grade, [f"x{i}" for i in range(11)]


# Tables as people have them, of which the command is asked.
TOLD = (
    *("diabetes, units", "housing", "wine, grades", "breast cancer, labels", "digits, labels"),
    *("a network, units", "a network, whole numbers", "a tree", "an affine law, p and q"),
    *("diabetes, a missing cell", "breast cancer, words"),
)


def real_tables(folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """Tables by name: the file, and the options that a user would try first."""
    rng = np.random.default_rng(FIRST_SEED)
    tables: dict[str, tuple[np.ndarray, np.ndarray, list[str]]] = {}
    data = datasets.load_diabetes(scaled=False)
    tables["diabetes, units"] = data.data, data.target, list(data.feature_names)
    tables["housing"] = housing(rng)
    tables["wine, grades"] = wine(rng)
    data = datasets.load_breast_cancer()
    names = [f"{name}".replace(" ", "_") for name in data.feature_names]
    tables["breast cancer, labels"] = data.data, data.target, names
    data = datasets.load_digits()
    tables["digits, labels"] = data.data, data.target, [f"p{i}" for i in range(64)]
    truth, X = draw(8, 4, FIRST_SEED), rng.standard_normal((4000, 8))
    names = [f"x{i}" for i in range(8)]
    tables["a network, units"] = as_units(X, rng), truth(X), names
    tables["a network, whole numbers"] = np.trunc(X * 100.0), truth(X), names
    tables["a tree"] = X, np.round(X[:, 0] > 0.2) + 2.0 * (X[:, 1] > 0) + 4.0 * (X[:, 2] > 1), names
    tables["an affine law, p and q"] = (
        np.column_stack([X, np.abs(truth(X))]),
        X @ np.arange(8.0) + np.abs(truth(X)),
        [*names, "q"],
    )
    found = {}
    for name, (inputs, answers, columns) in tables.items():
        path = folder / f"{name.replace(' ', '_').replace(',', '')}.csv"
        rows = np.column_stack([inputs, answers])
        np.savetxt(
            path, rows, fmt="%.17g", delimiter=",", header=",".join([*columns, "y"]), comments=""
        )
        found[name] = path, []
    text = found["diabetes, units"][0].read_text().splitlines()
    text[7] = "," + text[7].split(",", 1)[1]
    path = folder / "missing.csv"
    path.write_text("\n".join(text) + "\n")
    found["diabetes, a missing cell"] = path, []
    path = folder / "words.csv"
    lines = found["breast cancer, labels"][0].read_text().splitlines()
    words = {"0": "malignant", "1": "benign"}
    body = [f"{line.rsplit(',', 1)[0]},{words[line.rsplit(',', 1)[1]]}" for line in lines[1:]]
    path.write_text("\n".join([lines[0], *body]) + "\n")
    found["breast cancer, words"] = path, []
    return found


def asked_table(row: Named) -> dict[str, Any]:
    """What the command says of a table."""
    with tempfile.TemporaryDirectory() as folder:
        return asked(*real_tables(Path(folder))[row.name])


def asked(path: Path, options: list[str]) -> dict[str, Any]:
    """Run ``revelu learn`` on a file."""
    command = [sys.executable, "-m", "revelu", "learn", f"{path}", *options]
    started = time.perf_counter()
    done = subprocess.run(  # noqa: S603 - this program
        command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "2000"}
    )
    seconds = time.perf_counter() - started
    said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    parts = ("network", "time", "samples", "noise", "error bars")
    words = " // ".join(" ".join(line.split()) for line in said if not line.startswith(parts))
    words = words.replace(f"{path.parent}/", "")
    return {"code": done.returncode, "seconds": seconds, "words": words}


LARGE = """
import resource, sys, time
import revelu
from revelu.tasks.learn.learn import learn
start = time.perf_counter()
found = learn(sys.argv[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
shape = "-".join(map(str, found.network.architecture))
print(found.status.value, shape, time.perf_counter() - start, peak)
"""


@dataclass(frozen=True)
class Large:
    """A line of the third table: a million rows of eight inputs."""

    suffix: str
    networks: int = 1
    n: int = 1_000_000

    @property
    def name(self) -> str:
        """Its size, and the kind of file."""
        return f"{self.n:,} x 8, {self.suffix}"


def large(row: Large, seed: int) -> dict[str, Any]:
    """Write the file, learn from it in a process of its own, and say what that took."""
    suffix, n = row.suffix, row.n
    truth, X = draw(8, 4, seed), np.random.default_rng([seed, 1]).standard_normal((n, 8))
    rows = np.column_stack([X, truth(X)])
    names = [*(f"x{i}" for i in range(8)), "y"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{suffix}"
        if suffix == "csv":
            np.savetxt(path, rows, fmt="%.17g", delimiter=",", header=",".join(names), comments="")
        else:
            parquet.write_table(pa.table(dict(zip(names, rows.T, strict=True))), path)
        del X, rows
        command = [sys.executable, "-c", LARGE, f"{path}"]
        done = subprocess.run(  # noqa: S603 - this program
            command, capture_output=True, text=True, check=True
        )
    status, shape, seconds, gigabytes = done.stdout.split()
    return {
        "status": status,
        "shape": shape,
        "seconds": float(seconds),
        "gigabytes": float(gigabytes),
    }


def one(row: Erring | Named | Large, seed: int, _limit: float | None) -> dict[str, Any]:
    """Measure what a line is made of."""
    if isinstance(row, Erring):
        return learned(row, seed)
    return large(row, seed) if isinstance(row, Large) else asked_table(row)


def lines(found: Mapping[Erring | Named | Large, list[dict[str, Any]]]) -> Iterator[Line]:
    """Three tables, one below the other."""
    for row, runs in found.items():
        if isinstance(row, Erring):
            yield law_line(row, runs)
        elif isinstance(row, Large):
            yield {
                "table": row.name,
                "found": f"{runs[0]['status']}, {runs[0]['shape']}",
                "seconds (bar)": f"{runs[0]['seconds']:.1f} (≤ 15)",
                "GB (bar)": f"{runs[0]['gigabytes']:.2f} (≤ 1.2)",
            }
        else:
            yield {
                "table": row.name,
                "exit code": f"{runs[0]['code']}",
                "seconds (bar)": f"{runs[0]['seconds']:.0f} (≤ 60)",
                "what is said": runs[0]["words"].replace("|", "\\|"),
            }


ROWS = (
    *(Erring(shape, law) for shape in SHAPES for law in LAWS),
    *(Named(name, 1) for name in TOLD),
    *(Large(suffix) for suffix in ("csv", "parquet")),
)
TABLE = Table("tables", __doc__, ROWS, one, lines, first_seed=FIRST_SEED)

if __name__ == "__main__":
    main(TABLE)
