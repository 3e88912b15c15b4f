"""Networks behind heads, told nothing: is the link found, and what comes back.

    python benchmarks/links.py --results runs.jsonl            print the tables
    python benchmarks/links.py --results runs.jsonl --write    and keep them
    python benchmarks/links.py --table pipelines ...           of scikit-learn, behind JSON

Ten heads on networks of one and two hidden layers, in float64 and in float32; classifiers in
scikit-learn pipelines whose probabilities are rounded to a few decimals.
"""

import argparse
import platform
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from page import keep, record, records
from scipy.special import expit

import revelu
from revelu.numerics.links import Link
from revelu.types import FloatArray

FIRST_SEED = 7_600_000
HEADS = ("logit", "logit*100", "log", "log1p", "atanh", "softmax", "softmax*100", "log-softmax")
FALLING = "1 - sigmoid"
MANY = "logit of three outputs"
WIDTHS = ((10, 16), (10, 12, 8))
MAX_SECONDS = 40.0
N_POINTS = 20_000

DATA = ("iris", "wine", "breast_cancer", "digits")
NEURONS = (10, 20, 50)
DECIMALS = (4, 5, 6, 8)
FIRST_PIPELINE = 7_621_000
PIPELINE_SECONDS = 120.0
RIGHT = 2.0  # units of the last place


@dataclass(frozen=True)
class Run:
    """One target's outcome."""

    seed: int
    status: str
    link: str
    queries: int
    error: float
    seconds: float


def one(widths: tuple[int, ...], head: str, precision: str, seed: int) -> Run:
    """Extract the network behind a head, and hold it against the truth, up to what is not told."""
    link = Link.named("logit" if head in {FALLING, MANY} else head)
    has_several = link.contrast or head == MANY
    network = revelu.zoo.random_network([*widths, 3 if has_several else 1], seed=seed)
    began = time.process_time()
    recovery = revelu.extract(
        target_of(network, head, link, np.dtype(precision)),
        dim_in=widths[0],
        seed=seed,
        max_seconds=MAX_SECONDS,
    )
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, widths[0]))
    Z, error = (-1.0 if head == FALLING else 1.0) * network(X), np.inf
    if recovery.network is not None and str(recovery.link) == str(link):
        Y = recovery.network(X)
        if link.contrast:
            Z, Y = Z - Z[:, -1:], Y - Y[:, -1:]
        error = float(np.abs(Y - Z).max() / Z.std())
    seconds = time.process_time() - began
    n = recovery.ledger.n_queries
    return Run(seed, recovery.status.value, str(recovery.link), n, error, seconds)


def target_of(
    network: revelu.Network, head: str, link: Link, dtype: np.dtype
) -> Callable[[FloatArray], FloatArray]:
    """The head on the network, both computed in that precision."""
    layers = [
        (W.T.astype(dtype), b.astype(dtype))
        for W, b in zip(network.weights, network.biases, strict=True)
    ]

    def answer(X: FloatArray) -> FloatArray:
        H = X.astype(dtype)
        for i, (W, b) in enumerate(layers):
            H = (np.maximum(H, 0) if i else H) @ W + b
        with np.errstate(over="ignore"):
            return (1 - expit(H) if head == FALLING else link.answers(H)).astype(dtype)

    return answer


def heads_table(options: argparse.Namespace) -> str:
    """A line a head: what came back of each network and precision."""
    columns = [(widths, precision) for widths in WIDTHS for precision in ("float64", "float32")]
    text = [
        "| head | " + " | ".join(f"{'-'.join(map(str, w))}, {p}" for w, p in columns) + " |",
        "|" + "---|" * (len(columns) + 1),
    ]
    for head in (*HEADS, MANY, FALLING):
        cells = []
        for widths, precision in columns:
            key = f"{head}, {widths}, {precision}"
            calls = [
                (key, seed, partial(one, widths, head, precision, seed))
                for seed in range(options.first_seed, options.first_seed + options.networks)
            ]
            runs = [Run(**found) for found in measured(calls, options)]
            right = [run for run in runs if run.status == "recovered"]
            worst = max((run.error for run in right), default=np.nan)
            cells.append(
                f"{len(right)} of {len(runs)}, {worst:.0e}, "
                f"{np.median([run.queries for run in runs]):,.0f}"
            )
        text.append(f"| {head} | " + " | ".join(cells) + " |")
    return "\n".join(text)


@dataclass(frozen=True)
class Pipeline:
    """One pipeline's outcome.

    Attributes
    ----------
    off : float
        The largest difference on 20,000 inputs of the domain, in units of the last place.
    differ : float
        The share of these that differ by more than two, which a certificate bounds.
    seconds : float
        Of processor time.
    """

    seed: int
    status: str
    queries: int
    off: float
    differ: float
    seconds: float


def one_pipeline(data: str, neurons: int, decimals: int, seed: int) -> Pipeline:
    """Extract a pipeline from its rounded probabilities, told what its data are like."""
    from sklearn import datasets  # noqa: PLC0415 - no part of the other table
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    warnings.filterwarnings("ignore", module="sklearn")
    X, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    classifier = MLPClassifier((neurons,), max_iter=500, random_state=seed)
    fitted = make_pipeline(StandardScaler(), classifier).fit(X, y)
    domain = revelu.Domain.like(X)

    def answer(rows: FloatArray) -> FloatArray:
        return np.asarray(np.round(fitted.predict_proba(rows), decimals))

    began = time.process_time()
    recovery = revelu.extract(
        answer, dim_in=X.shape[1], domain=domain, seed=seed, max_seconds=PIPELINE_SECONDS
    )
    seconds, off = time.process_time() - began, np.full(N_POINTS, np.inf)
    if recovery.network is not None:
        rng, wide = np.random.default_rng([seed, 1]), domain.of(X.shape[1])
        rows = wide.to_target(rng.standard_normal((N_POINTS, len(wide.spread))))
        found = recovery.link.answers(recovery.network(rows))
        off = np.abs(found - answer(rows)).max(axis=1) * 10.0**decimals
    n, differ = recovery.ledger.n_queries, float((off > RIGHT).mean())
    return Pipeline(seed, recovery.status.value, n, float(off.max()), differ, seconds)


def pipelines_table(options: argparse.Namespace) -> str:
    """A line for each data set and number of neurons, a column for each number of decimals."""
    text = [
        "| data, neurons | " + " | ".join(f"{n} decimals" for n in DECIMALS) + " |",
        "|" + "---|" * (len(DECIMALS) + 1),
    ]
    everything = []
    for data in options.data:
        for neurons in options.neurons:
            cells = []
            for decimals in DECIMALS:
                key = f"pipeline, {data}, {neurons}, {decimals}"
                calls = [
                    (key, seed, partial(one_pipeline, data, neurons, decimals, seed))
                    for seed in range(FIRST_PIPELINE, FIRST_PIPELINE + options.networks)
                ]
                runs = [Pipeline(**found) for found in measured(calls, options)]
                everything += runs
                cells.append(_of_pipelines(runs))
            text.append(f"| {data}, {neurons} | " + " | ".join(cells) + " |")
    right = [run for run in everything if run.off <= RIGHT]
    certified = [run for run in everything if run.status == "recovered"]
    wrong = [run for run in certified if run.off > RIGHT]
    n_quick = sum(run.seconds <= 20.0 for run in everything)
    said = (
        f"Of {len(everything)} pipelines {len(right)} come back right to two units, and "
        f"{len(certified) - len(wrong)} of these are certified; {len(wrong)} that are not right "
        f"are. {n_quick} take 20 seconds of processor time at most."
    )
    return "\n".join([*text, "", said])


def _of_pipelines(runs: list[Pipeline]) -> str:
    """How many are right, how many of these are certified, and the largest difference of those."""
    right = [run for run in runs if run.off <= RIGHT]
    n_certified = sum(run.status == "recovered" for run in right)
    seconds = float(np.median([run.seconds for run in runs]))
    return f"{len(right)} of {len(runs)}, {n_certified} certified, {seconds:.0f} s"


def measured(
    calls: list[tuple[str, int, Callable[[], Run | Pipeline]]], options: argparse.Namespace
) -> list[dict[str, object]]:
    """What is recorded of calls, and of those that are not; each is recorded as it ends."""
    known = {(e["row"], e["seed"]): e["found"] for e in records(options.results)}
    missing = [call for call in calls if call[:2] not in known]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        futures = [(row, seed, pool.submit(call)) for row, seed, call in missing]
        for row, seed, future in futures:
            found = known[row, seed] = asdict(future.result())
            print(f"  {row}: {found}", flush=True)
            record(options.results, {"row": row, "seed": seed, "found": found})
    return [known[call[:2]] for call in calls]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--table", choices=("heads", "pipelines"), default="heads")
    parser.add_argument("--networks", type=int, default=2, help="of each cell")
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA, help="of pipelines")
    parser.add_argument("--neurons", nargs="+", type=int, default=NEURONS, help="of pipelines")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--processes", type=int, default=2, help="targets at a time")
    parser.add_argument("--results", type=Path, help="file that targets are recorded in")
    parser.add_argument("--write", action="store_true", help="keep them on their page")
    options = parser.parse_args()
    is_heads = options.table == "heads"
    versions = (
        f"revelu {revelu.__version__}, NumPy {np.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, seeds from {options.first_seed if is_heads else FIRST_PIPELINE}."
    )
    table = heads_table(options) if is_heads else pipelines_table(options)
    text = f"{table}\n\n{versions}"
    print(f"\n{text}")
    if options.write and is_heads:
        keep("links", text)
    elif options.write:
        keep("links-pipelines", text)


if __name__ == "__main__":
    main()
