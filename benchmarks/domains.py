"""Models in the units of their data: what comes back where they are asked, or find it themselves.

    python benchmarks/domains.py                        print the table (an hour)
    python benchmarks/domains.py --row wine             lines whose name has this
    python benchmarks/domains.py --mnist WHEEL          with MNIST, of scripts/train_mnist.py
    python benchmarks/domains.py --networks 0 --write   keep earlier runs on their page

Everything follows from the seed.  Each is judged on 4,000 fresh inputs of the domain, or of the
Gaussian that it was made for, and on the data that it was trained on.
"""

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from extraction import median_and_most
from runner import Line, Table, by_row, main, with_wheel

import revelu
from revelu import Domain, Network, zoo
from revelu.network import to_log_ratios
from revelu.types import FloatArray

N_POINTS = 4_000
EXACT = 1e-8
COLUMNS = (1e-3, 1.0, 1e4)

CLASSES = ("breast_cancer", "wine", "digits")
VALUES = ("diabetes", "linnerud", "friedman1")
SCALERS = ("StandardScaler", "MinMaxScaler")
FAR = ((10, 16, 1), (6, 12, 3))

Logits = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Problem:
    """A target, what it is in truth, and where it is asked and judged.

    Attributes
    ----------
    target : object
    logits : callable, (n, d) -> (n, k)
        Its numbers, or log-ratios to the last class, to more digits than answers show.
    judged : Domain
    data : ndarray, shape (n, d), or None
    n_parameters, width : int
        Of the network in it; width of the first hidden layer, 0 of an affine one.
    given : dict
        What :func:`revelu.extract` is told.
    """

    target: Any
    logits: Logits
    judged: Domain
    data: FloatArray | None
    n_parameters: int
    width: int
    given: dict[str, Any]
    is_classifier: bool = False


@dataclass(frozen=True)
class Row:
    """A line: how it is told where to ask, and what it asks."""

    kind: str
    model: str
    data: str
    width: int = 0
    networks: int = 2
    wheel: Path | None = None

    @property
    def name(self) -> str:
        """What the line says first."""
        return " ".join(w for w in (self.kind, self.data, self.model, str(self.width or "")) if w)


@dataclass(frozen=True)
class Run:
    """One target's outcome; error of the fresh inputs over their deviation, root mean square."""

    seed: int
    status: str
    n_parameters: int = 0
    width: int = -1
    true_width: int = -1
    error: float = np.inf
    labels: float | None = None
    queries: float = np.nan
    seconds: float = np.nan
    domain: str = ""

    @property
    def certified(self) -> bool:
        """Whether it is called recovered."""
        return self.status == "recovered"

    @property
    def cost(self) -> float:
        """Queries a parameter."""
        return self.queries / self.n_parameters


ROWS = (
    *(
        Row(kind, scaler, data, width)
        for kind in ("like", "scaler's own", "N(0, I)")
        for data, scaler, width in product(CLASSES, SCALERS, (16, 100))
        if kind != "N(0, I)" or scaler == "StandardScaler"
    ),
    *(
        Row(kind, "StandardScaler", data, width)
        for kind in ("like", "N(0, I)")
        for data, width in product(VALUES, (16, 100))
    ),
    *(Row("like", "LogisticRegression", data, networks=1) for data in CLASSES),
    *(Row("like", "Ridge", data, networks=1) for data in VALUES),
    *(Row("found", "-".join(map(str, widths)), "no hint", networks=10) for widths in FAR),
    Row("box", "float32", "digits", 32, networks=10),
    Row("like", "float32", "digits", 32),
    Row("box", "32-16", "mnist", 32, networks=10),
)


def loaded(name: str, seed: int) -> tuple[FloatArray, FloatArray]:
    """Read a data set as it is; columns of values in other units, one after another."""
    from sklearn import datasets  # noqa: PLC0415 - no part of the process that extracts

    if name == "friedman1":
        X, y = datasets.make_friedman1(n_samples=1000, noise=0.1, random_state=seed)
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    X = np.asarray(X, dtype=np.float64)
    if name in VALUES:
        X = X * np.resize(COLUMNS, X.shape[1])
    return X, np.asarray(y)


def fitted(row: Row, X: FloatArray, y: FloatArray, seed: int) -> Any:
    """Train a pipeline, or an affine model in raw units."""
    from sklearn import linear_model, neural_network, pipeline, preprocessing  # noqa: PLC0415

    is_class = row.data in CLASSES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not row.width:
            return getattr(linear_model, row.model)().fit(X, y)
        kind = neural_network.MLPClassifier if is_class else neural_network.MLPRegressor
        model = kind(hidden_layer_sizes=(row.width,), max_iter=300, random_state=seed)
        scaler = getattr(preprocessing, row.model)()
        return pipeline.make_pipeline(scaler, model).fit(X, y)


def trained(row: Row, seed: int) -> Problem:
    """A model of scikit-learn, asked in raw units; at N(0, I) without its scaler."""
    X, y = loaded(row.data, seed)
    model = fitted(row, X, y, seed)
    is_class = row.data in CLASSES
    last = model[-1] if row.width else model
    if row.width:
        network = Network([W.T for W in last.coefs_], last.intercepts_)
        scale = model[0].transform

        def raw(Z: FloatArray) -> FloatArray:
            return network(scale(Z))

        n_parameters = network.n_parameters
    else:
        n_parameters = last.coef_.size + np.size(last.intercept_)
        raw = last.decision_function if is_class else last.predict
    logits = partial(log_ratios_of, raw, is_class=is_class)
    domain = Domain.like(X)
    given: dict[str, Any] = {"domain": domain, "inputs": X}
    target, data = model, X
    if row.kind == "scaler's own":
        given = {}
    if row.kind == "N(0, I)":
        target, domain, given = last, Domain.gaussian(np.zeros(X.shape[1])), {}
        data = model[0].transform(X)
        logits = partial(log_ratios_of, network, is_class=is_class)
    return Problem(target, logits, domain, data, n_parameters, row.width, given, is_class)


def log_ratios_of(raw: Logits, Z: FloatArray, *, is_class: bool) -> FloatArray:
    """Logits less the last one's; of two classes the one logit is that of the second."""
    Y = np.asarray(raw(Z))
    Y = Y[:, None] if Y.ndim == 1 else Y
    if not is_class:
        return Y
    return -Y if Y.shape[1] == 1 else Y[:, :-1] - Y[:, -1:]


def far_away(row: Row, seed: int) -> Problem:
    """A random network in units and at a place of its own."""
    widths = [int(width) for width in row.model.split("-")]
    rng, network = np.random.default_rng(seed), zoo.random_network(widths, seed)
    center = 1000.0 * rng.standard_normal(widths[0])
    spread = 10.0 ** rng.uniform(-3.0, 3.0, widths[0])

    def ask(X: FloatArray) -> FloatArray:
        return network((X - center) / spread)

    judged, given = Domain.gaussian(center, spread), {"dim_in": widths[0]}
    return Problem(ask, ask, judged, None, network.n_parameters, widths[1], given)


def in_float32(row: Row, seed: int) -> Problem:
    """Logits of a classifier of digits between 0 and 1, computed in float32."""
    X, y = loaded(row.data, seed)
    X = X / 16.0
    last = fitted(replace(row, model="StandardScaler"), X, y, seed)
    scaler, model = last[0], last[1]
    scale = np.where(scaler.scale_ > 0, scaler.scale_, 1.0)
    W = model.coefs_[0].T / scale
    weights = [W.astype(np.float32), model.coefs_[1].T.astype(np.float32)]
    biases = [model.intercepts_[0] - W @ scaler.mean_, model.intercepts_[1]]
    b, c = (v.astype(np.float32) for v in biases)
    truth = Network([v.astype(float) for v in weights], [b.astype(float), c.astype(float)])

    def ask(Z: FloatArray) -> FloatArray:
        hidden = np.maximum(Z.astype(np.float32) @ weights[0].T + b, np.float32(0))
        return hidden @ weights[1].T + c

    domain = Domain.box(np.zeros(64), 1.0) if row.kind == "box" else Domain.like(X)
    given = {"domain": domain, "inputs": X, "dim_in": 64}
    target = partial(inside, ask) if row.kind == "box" else ask
    return Problem(target, truth, domain, X, truth.n_parameters, row.width, given)


def inside(ask: Logits, Z: FloatArray) -> FloatArray:
    """Answer within [0, 1]^d alone."""
    if (Z < 0.0).any() or (Z > 1.0).any():
        raise ValueError("a query leaves the box")
    return ask(Z)


def on_mnist(row: Row, seed: int, wheel: Path) -> Problem:
    """Logits of a classifier of MNIST with two hidden layers, pixels between 0 and 1."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
    import train_mnist  # type: ignore[import-not-found]  # noqa: PLC0415

    truth = train_mnist.train_mnist(seed, (32, 16), wheel=wheel)
    X = train_mnist.read_mnist(wheel)[0]
    domain = Domain.box(np.zeros(784), 1.0)
    given = {"domain": domain, "inputs": X, "dim_in": 784}
    return Problem(partial(inside, truth), truth, domain, X, truth.n_parameters, row.width, given)


def problem(row: Row, seed: int) -> Problem:
    """Make the target of a line."""
    if row.wheel is not None:
        return on_mnist(row, seed, row.wheel)
    if row.kind == "found":
        return far_away(row, seed)
    return in_float32(row, seed) if row.model == "float32" else trained(row, seed)


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one target, and hold it against its truth."""
    posed = problem(row, seed)
    start = time.process_time()
    recovery = revelu.extract(
        posed.target, seed=seed, max_seconds=limit, elsewhere=not posed.given, **posed.given
    )
    run = Run(
        seed,
        recovery.status.value,
        posed.n_parameters,
        true_width=posed.width,
        queries=recovery.ledger.n_queries,
        seconds=time.process_time() - start,
        domain=recovery.domain,
    )
    network = recovery.network
    if network is None:
        return run
    copy = to_log_ratios(network) if posed.is_classifier else network
    where = posed.judged.of(network.dim_in)
    rng = np.random.default_rng([seed, 1])
    Z = rng.standard_normal((N_POINTS, where.dim_in))
    if where.is_uniform:
        Z = rng.uniform(-1.0, 1.0, Z.shape)
    X = where.to_target(Z)
    Y = posed.logits(X)
    off = float(np.sqrt(((copy(X) - Y) ** 2).mean()))
    deviation = float(np.sqrt(Y.var(axis=0).mean()))
    run = replace(run, error=off / deviation, width=network.architecture[1:-1][0])
    if posed.data is None or not (posed.is_classifier or network.dim_out == 10):
        return run
    return replace(run, labels=same_labels(posed, copy))


def same_labels(posed: Problem, copy: Logits) -> float:
    """Share of the data in the same class."""
    labels = [f(posed.data) for f in (posed.logits, copy)]
    if posed.is_classifier:
        labels = [np.column_stack([Y, np.zeros(len(Y))]) for Y in labels]
    true, found = (Y.argmax(axis=1) for Y in labels)
    return float((true == found).mean())


def line(row: Row, runs: list[Run]) -> Line:
    """One line of the table."""
    labels = [run.labels for run in runs if run.labels is not None]
    ends = Counter(run.status for run in runs)
    exact = [run for run in runs if run.error <= EXACT]
    return {
        "where asked": row.kind,
        "data": row.data,
        "model": f"{row.model} {row.width or ''}".strip(),
        "targets": f"{len(runs)}",
        "certified": f"{sum(run.certified for run in runs)}",
        "exact": f"{len(exact)}",
        "width right": f"{sum(run.width == run.true_width for run in runs)}",
        "data's labels equal, fewest": f"{min(labels):.2%}" if labels else "-",
        "error, median, most": median_and_most([run.error for run in runs], ".0e"),
        "queries, median": median_and_most([run.queries for run in runs]).split(", ")[0],
        "queries / parameter, median, most": median_and_most([run.cost for run in runs], ",.1f"),
        "CPU seconds, median, most": median_and_most([run.seconds for run in runs], ",.1f"),
        "how it ended": ", ".join(f"{n} {status}" for status, n in ends.most_common()),
    }


TABLE = Table(
    "domains",
    __doc__,
    with_wheel(ROWS, lambda row: row.data == "mnist"),
    one,
    by_row(line),
    first_seed=62_000_000,
    outcome=Run,
    limit=120.0,
)

if __name__ == "__main__":
    main(TABLE)
