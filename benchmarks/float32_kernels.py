"""Networks that compute in float32, by the order in which their sums are taken.

    python benchmarks/float32_kernels.py --results runs.jsonl            print the table
    python benchmarks/float32_kernels.py --results runs.jsonl --write    and keep it
    python benchmarks/float32_kernels.py --numpy Haswell --numpy SkylakeX    what OpenBLAS takes

Libraries take other kernels where a product of matrices is large, and the errors of answers depend
on the size of their batch.  InFloat32 of revelu.oracle does the same on every machine.  With
--numpy, NumPy multiplies, and OpenBLAS takes the kernels of that processor, if this one has them.
"""

import argparse
import json
import os
import platform
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from page import keep, record, records

import revelu
from revelu.oracle import InFloat32
from revelu.types import FloatArray

FIRST_SEED = 7_300_000
N_NETWORKS = 10
N_POINTS = 20_000
WIDTHS = ((200, 8, 4), (250, 6, 10), (120, 20, 3), (300, 10, 1))
# Kernels that do not look at the batch, and those that do, by the first large one.
ONE_KERNEL = ("sequential", "pairwise")
KERNELS = (*ONE_KERNEL, "by_batch 64", "by_batch 200", "by_batch 500")
# A certificate of a network that errs by more is wrong: errors of answers are some 3e-7.
WRONG = 1e-5


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    seed: int
    status: str
    queries: int
    error: float
    neurons: int


def one(widths: tuple[int, ...], kernel: str, seed: int) -> Run:
    """Extract one network, and hold it against its truth in float64."""
    network = revelu.zoo.random_network(list(widths), seed=seed)
    truth = InFloat32.truth(network)
    recovery = revelu.extract(target_of(network, kernel), dim_in=widths[0], seed=seed)
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, widths[0]))
    Y, found, error, neurons = truth(X), recovery.network, np.inf, 0
    if found is not None:
        error = float(np.sqrt(((found(X) - Y) ** 2).mean() / Y.var(axis=0).mean()))
        neurons = found.architecture[1]
    return Run(seed, recovery.status.value, recovery.ledger.n_queries, error, neurons)


def target_of(network: revelu.Network, kernel: str) -> Callable[[FloatArray], FloatArray]:
    """The network in float32, its sums as the kernel takes them."""
    if not kernel.startswith("numpy"):
        name, *rows = kernel.split()
        return InFloat32(name, *map(int, rows))(network)
    layers = [
        (W.astype(np.float32), b.astype(np.float32))
        for W, b in zip(network.weights, network.biases, strict=True)
    ]

    def answer(X: FloatArray) -> FloatArray:
        H = X.astype(np.float32)
        for i, (W, b) in enumerate(layers):
            H = (np.maximum(H, np.float32(0.0)) if i else H) @ W.T + b
        return H

    return answer


def measured(widths: tuple[int, ...], kernel: str, options: argparse.Namespace) -> list[Run]:
    """All recorded runs, and those of the seeds that are not among them."""
    key = f"{'-'.join(map(str, widths))}, {kernel}"
    runs = [Run(**e["found"]) for e in records(options.results) if e["row"] == key]
    seeds = range(options.first_seed, options.first_seed + options.networks)
    missing = [seed for seed in seeds if seed not in {run.seed for run in runs}]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    # Read by OpenBLAS as a process begins.
    if kernel.startswith("numpy"):
        os.environ["OPENBLAS_CORETYPE"] = kernel.split()[1]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        for run in pool.map(partial(one, widths, kernel), missing):
            runs.append(run)
            print(f"  {key}: {run}", flush=True)
            record(options.results, {"row": key, "seed": run.seed, "found": asdict(run)})
    return runs


def table(found: dict[tuple[tuple[int, ...], str], list[Run]]) -> str:
    """Render the runs as Markdown, a line a network and kernel."""
    heads = (
        "| network | kernel | networks | certified | wrong and silent | NRMSE, median, largest "
        "| queries, median | all queries, by those of sequential sums |"
    )
    text = [heads, "|" + "---|" * 8]
    for (widths, kernel), runs in found.items():
        errors, queries = [run.error for run in runs], [run.queries for run in runs]
        certified = [run for run in runs if run.status == "recovered"]
        wrong = sum(run.error > WRONG or run.neurons != widths[1] for run in certified)
        base = sum(run.queries for run in found.get((widths, ONE_KERNEL[0]), []))
        ratio = f"{sum(queries) / base:.2f}" if base else "-"
        text.append(
            f"| {'-'.join(map(str, widths))} | {kernel} | {len(runs)} | {len(certified)} | {wrong} "
            f"| {np.median(errors):.1e}, {max(errors):.1e} | {np.median(queries):,.0f} | {ratio} |"
        )
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", type=int, default=N_NETWORKS, help="how many a line")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--processes", type=int, default=2, help="networks at a time")
    parser.add_argument("--numpy", action="append", default=[], help="a processor of OpenBLAS's")
    parser.add_argument("--results", type=Path, help="file that networks are recorded in")
    parser.add_argument("--write", action="store_true", help="keep it on its page")
    options = parser.parse_args()
    kernels = (*KERNELS, *(f"numpy {processor}" for processor in options.numpy))
    found = {(w, kernel): measured(w, kernel, options) for w in WIDTHS for kernel in kernels}
    by_batch = [run for (_, kernel), runs in found.items() if "by_batch" in kernel for run in runs]
    print(json.dumps({"certified": sum(r.status == "recovered" for r in by_batch)}), flush=True)
    versions = (
        f"revelu {revelu.__version__}, NumPy {np.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, seeds from {options.first_seed}."
    )
    text = f"{table(found)}\n\n{versions}"
    print(f"\n{text}")
    if options.write:
        keep("float32_kernels", text)


if __name__ == "__main__":
    main()
