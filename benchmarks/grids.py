"""Answers on a grid: what comes back of a network, and to how many of the grid's steps.

    python benchmarks/grids.py            print the table
    python benchmarks/grids.py --write    and keep it on its page

The truth is a random network of one hidden layer in float64, whose width is not given; or, in the
second table, a regressor that scikit-learn has trained, whose raw inputs it scales itself.
"""

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from runner import Line, Table, by_row, main, shape, timed

import revelu

N_POINTS = 20_000


@dataclass(frozen=True)
class Row:
    """A line: the answers are multiples of ``step``, of a network ``factor`` times as large.

    Where ``cap`` is finite they are clipped to ``[-cap, cap - step]``, as fixed point saturates.
    """

    widths: tuple[int, ...]
    bits: int
    factor: float = 1.0
    cap: float = np.inf
    networks: int = 3

    @property
    def step(self) -> float:
        """The distance of neighbouring answers."""
        return 2.0**-self.bits

    @property
    def name(self) -> str:
        """The network, and the step."""
        return f"{self.network} 2^-{self.bits}"

    @property
    def network(self) -> str:
        """What the network is called."""
        saturates = f", in [-{self.cap:g}, {self.cap:g})" if np.isfinite(self.cap) else ""
        return f"{shape(self.widths)}{saturates}"


ROWS = (
    *(Row((20, 10, 1), bits) for bits in (39, 31, 23, 15, 7, 3)),
    *(Row((40, 20, 1), bits) for bits in (39, 31, 23, 15, 7, 3)),
    Row((20, 10, 1), 10, factor=12.0, cap=32.0),
)


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    status: str
    neurons: int
    error: float
    tolerance: float
    queries: float
    cpu: float


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one network and hold it against its truth."""
    truth = revelu.zoo.random_network(list(row.widths), seed=seed)
    (W, A), (b, c) = truth.weights, truth.biases
    truth = revelu.Network([W, row.factor * A], [b, row.factor * c])

    def answer(X: np.ndarray) -> np.ndarray:
        rounded = np.rint(truth(X) / row.step) * row.step
        return np.clip(rounded, -row.cap, row.cap - row.step)

    recovery, cpu = timed(
        revelu.extract, answer, dim_in=row.widths[0], seed=seed, max_seconds=limit
    )
    network, certificate = recovery.network, recovery.certificate
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, row.widths[0]))
    error = ratio = np.inf
    if network is not None:
        exact = np.clip(truth(X), -row.cap, row.cap - row.step)
        error = float(np.sqrt(((network(X) - exact) ** 2).mean())) / row.step
        left = float(np.sqrt(((network(X) - answer(X)) ** 2).mean()))
        ratio = np.inf if certificate is None else certificate.tolerance / left
    return Run(
        status=recovery.status.value,
        neurons=0 if network is None else network.architecture[1],
        error=error,
        tolerance=ratio,
        queries=recovery.ledger.n_recovery / truth.n_parameters,
        cpu=cpu,
    )


def line(row: Row, runs: list[Run]) -> Line:
    """One line of the table."""
    right = [run for run in runs if run.status == "recovered"]
    errors = [run.error for run in right] or [np.inf]
    loosest = max((run.tolerance for run in right), default=np.inf)
    return {
        "network": row.network,
        "step": f"2^-{row.bits}",
        "networks": f"{len(runs)}",
        "certified": f"{len(right)}",
        "with their neurons": f"{sum(run.neurons == row.widths[1] for run in right)}",
        "error, in steps, median, largest": f"{np.median(errors):.2f}, {max(errors):.2f}",
        "tolerance over the errors, largest (bar)": f"{loosest:.1f} (≤ 10)",
        "queries / parameter, median": f"{np.median([run.queries for run in runs]):.1f}",
        "CPU s, median": f"{np.median([run.cpu for run in runs]):.1f}",
    }


TABLE = Table(
    "grids",
    __doc__,
    ROWS,
    one,
    by_row(line),
    first_seed=8_650_000,
    outcome=Run,
    limit=300.0,
    apart=100,
    named_by=2,
)


@dataclass(frozen=True)
class Regressor:
    """A line: regressors of one hidden layer, fitted to a table and answering 2 decimals."""

    data: str
    neurons: int
    networks: int = 3

    @property
    def name(self) -> str:
        """The data, and the neurons."""
        return f"{self.data}, {self.neurons} neurons"


REGRESSORS = tuple(
    Regressor(data, neurons) for data in ("diabetes", "wine", "houses") for neurons in (20, 50, 100)
)


def table(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and values in their own units; of wines the proline is told by the rest."""
    from sklearn import datasets  # noqa: PLC0415 - no part of the process that extracts

    if data == "diabetes":
        return datasets.load_diabetes(return_X_y=True, scaled=False)
    if data == "wine":
        X = datasets.load_wine().data
        return X[:, :-1], X[:, -1]
    # Districts as California's: incomes, ages, rooms, bedrooms, people, households, a place.
    rng, n = np.random.default_rng(7), 3_000
    income, age = rng.lognormal(1.2, 0.5, n), rng.integers(1, 52, n)
    rooms, bedrooms = rng.lognormal(1.6, 0.3, n), rng.lognormal(0.05, 0.1, n)
    people, each = rng.lognormal(7.0, 0.7, n), rng.lognormal(1.05, 0.3, n)
    north, east = rng.uniform(32.5, 42.0, n), rng.uniform(-124.0, -114.0, n)
    worth = 0.4 * income + 0.01 * age - 0.1 * np.abs(north - 36.0) - 0.1 * np.abs(east + 120.0)
    y = 1e5 * np.clip(worth + rng.normal(0.6, 0.4, n), 0.15, 5.0)
    return np.column_stack([income, age, rooms, bedrooms, people, each, north, east]), y


def fitted(row: Regressor, seed: int) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """Train one, and the inputs that it was trained on."""
    from sklearn.neural_network import MLPRegressor  # noqa: PLC0415 - as above
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    X, y = table(row.data)
    regressor = MLPRegressor(hidden_layer_sizes=(row.neurons,), max_iter=1000, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(StandardScaler(), regressor).fit(X, y).predict, X


def one_regressor(row: Regressor, seed: int, limit: float | None) -> Run:
    """Extract one, told of inputs like the data, and hold it against its unrounded answers."""
    predict, X = fitted(row, seed)
    domain = revelu.Domain.like(X)
    recovery, cpu = timed(
        revelu.extract,
        lambda X: np.round(predict(X), 2),
        dim_in=X.shape[1],
        domain=domain,
        seed=seed,
        max_seconds=limit,
    )
    network, certificate, step = recovery.network, recovery.certificate, 0.01
    Z = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, len(domain.spread)))
    X = domain.to_target(Z)
    error = ratio = np.inf
    if network is not None:
        error = float(np.sqrt(((network(X)[:, 0] - predict(X)) ** 2).mean())) / step
        ratio = np.inf if certificate is None else certificate.tolerance / step
    width = 0 if network is None else network.architecture[1]
    queries = recovery.ledger.n_recovery / ((X.shape[1] + 2) * row.neurons + 1)
    return Run(recovery.status.value, width, error, ratio, queries, cpu)


def regressor_line(row: Regressor, runs: list[Run]) -> Line:
    """One line of the second table."""
    right = [run for run in runs if run.status == "recovered"]
    errors = [run.error for run in right]
    ended = Counter(run.status for run in runs if run.status != "recovered")
    return {
        "table": row.data,
        "trained with": f"{row.neurons} neurons",
        "networks": f"{len(runs)}",
        "certified": f"{len(right)}",
        "wrong and certified": f"{sum(run.error > 2.0 * run.tolerance for run in right)}",
        "their neurons": ", ".join(f"{run.neurons}" for run in right) or "-",
        "error, in steps, largest": f"{max(errors):.2f}" if errors else "-",
        "tolerance, in steps, largest": f"{max(r.tolerance for r in right):.0f}" if right else "-",
        "the others": ", ".join(f"{n} {name}" for name, n in ended.items()) or "-",
        "queries / parameter, median": f"{np.median([run.queries for run in runs]):.1f}",
        "CPU s, median": f"{np.median([run.cpu for run in runs]):.0f}",
    }


FITTED = Table(
    "grids-fitted",
    __doc__,
    REGRESSORS,
    one_regressor,
    by_row(regressor_line),
    first_seed=8_950_000,
    outcome=Run,
    limit=300.0,
    apart=100,
    named_by=2,
)

if __name__ == "__main__":
    main(TABLE, FITTED)
