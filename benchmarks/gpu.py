"""Modules that a GPU computes: what comes back from each precision, and whether it is true.

    python benchmarks/gpu.py --write                            the table (a GPU, five minutes)
    python benchmarks/gpu.py --device cpu --networks 1          where there is none

Random networks, one trained on digits, and one of filters, as torch modules in float64, float32,
TF32 (Ampere and later; PyTorch's default for convolutions), autocast and half precision.  Each is
held against its own weights, in float64, and against what the module itself answers.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from many_targets import wrong_share
from page import keep

import revelu
from revelu.types import FloatArray

FIRST_SEED = 64_400_000
N_POINTS = 20_000
# Rows that are asked alone, too.
N_ALONE = 200
NETWORKS = ("10-16-1", "digits 64-32-10", "10-10-10-1", "filters 12x12")
PRECISIONS = (
    "float64",
    "float32",
    "TF32",
    "autocast float16",
    "autocast bfloat16",
    "float16",
    "bfloat16",
)
# The columns of the table.
COLUMNS = (
    "network",
    "computes in",
    "recovered",
    "error of the answers",
    "error recovered, median, largest",
    "certified to, median",
    "asked alone differs by",
    "wrong and silent",
    "queries / parameter",
    "seconds",
)


@dataclass(frozen=True)
class Run:
    """How one network in one precision came back.

    Attributes
    ----------
    own, error : float
        Root mean square error of the module's answers, and of the recovered network's, in standard
        deviations of the outputs, at 20,000 points of N(0, I).
    alone : float
        Largest difference of an answer to a row asked alone, likewise.
    silent : bool
        Whether it is called recovered and differs from the module at more inputs than certified.
    """

    network: str
    precision: str
    seed: int
    status: str
    own: float
    error: float
    tolerance: float
    alone: float
    silent: bool
    queries: float
    seconds: float


def module_of(network: str, seed: int) -> Any:
    """The module in float64."""
    import torch  # noqa: PLC0415 - after the environment is set
    from torch import nn  # noqa: PLC0415

    torch.manual_seed(seed)
    if network.startswith("filters"):
        layers = [nn.Unflatten(1, (1, 12, 12)), nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten()]
        return nn.Sequential(*layers, nn.Linear(400, 3)).double()
    widths = [int(width) for width in network.rsplit(maxsplit=1)[-1].split("-")]
    if network.startswith("digits"):
        sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
        from train_digits import train_digits  # noqa: PLC0415 - needs scikit-learn

        truth = train_digits(seed, tuple(widths[1:-1]))
    else:
        truth = revelu.zoo.random_network(widths, seed=seed)
    found: list[Any] = []
    for (d, k), W, b in zip(pairwise(widths), truth.weights, truth.biases, strict=True):
        linear = nn.Linear(d, k).double()
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(W))
            linear.bias.copy_(torch.tensor(b))
        found += [linear, nn.ReLU()]
    return nn.Sequential(*found[:-1])


def in_precision(module: Any, precision: str) -> Any:
    """The module as it computes in a precision, and in TF32 all modules of this process."""
    import torch  # noqa: PLC0415

    class Autocast(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, inner: Any, dtype: Any) -> None:
            super().__init__()
            self.inner, self.dtype = inner, dtype

        def forward(self, x: Any) -> Any:
            with torch.autocast(x.device.type, self.dtype):
                return self.inner(x)

    for backend in (torch.backends.cuda.matmul, torch.backends.cudnn):
        backend.allow_tf32 = precision == "TF32"
    kind = "float32" if precision == "TF32" else precision.rsplit(maxsplit=1)[-1]
    dtype = getattr(torch, kind)
    return Autocast(module.float(), dtype) if "autocast" in precision else module.to(dtype)


def answers_of(module: Any, dim_in: int, row: str | None) -> Callable[[FloatArray], FloatArray]:
    """Answers of a module as float64, asked as a target is."""
    oracle = revelu.open_oracle(module, dim_in=dim_in, input_shape=row)
    return lambda X: np.asarray(oracle(X), dtype=np.float64)


def one(network: str, precision: str, seed: int, device: str, limit: float) -> Run:
    """Extract one network from what a device computes."""
    import torch  # noqa: PLC0415

    exact = module_of(network, seed)
    dim_in = 144 if network.startswith("filters") else exact[0].in_features
    row = f"{dim_in}"
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, dim_in))
    with torch.no_grad():
        truth = exact(torch.tensor(X)).numpy()
    n_parameters = sum(p.numel() for p in exact.parameters())
    module = in_precision(exact, precision).to(device)
    ask = answers_of(module, dim_in, row)
    Y, alone = ask(X), np.vstack([ask(x[None]) for x in X[:N_ALONE]])
    deviation = float(np.sqrt(truth.var(axis=0).mean()))
    oracle = revelu.open_oracle(module, dim_in=dim_in, input_shape=row, max_seconds=limit)
    start = time.perf_counter()
    recovery = revelu.extract(oracle, seed=seed)
    found, certificate = recovery.network, recovery.certificate
    error = np.inf if found is None else _rms(found(X) - truth) / deviation
    is_recovered = recovery.status is revelu.Status.RECOVERED
    return Run(
        network=network,
        precision=precision,
        seed=seed,
        status=recovery.status.value,
        own=_rms(Y - truth) / deviation,
        error=error,
        tolerance=np.nan if certificate is None else certificate.tolerance / deviation,
        alone=float(np.abs(alone - Y[:N_ALONE]).max()) / deviation,
        silent=is_recovered and wrong_share(recovery, X, Y) > 0.0,
        queries=recovery.ledger.n_recovery / n_parameters,
        seconds=time.perf_counter() - start,
    )


def _rms(errors: FloatArray) -> float:
    return float(np.sqrt((errors**2).mean()))


def table(runs: list[Run], device: str) -> str:
    """The table, a line a network and precision."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for network in NETWORKS:
        for precision in PRECISIONS:
            some = [r for r in runs if (r.network, r.precision) == (network, precision)]
            if not some:
                continue
            right = [r for r in some if r.status == "recovered"]
            errors = [r.error for r in right]
            lines.append(
                f"| {network} | {precision} | {len(right)} of {len(some)}{_others(some)} | "
                f"{np.median([r.own for r in some]):.1e} | "
                + (f"{np.median(errors):.1e}, {max(errors):.1e}" if errors else "-")
                + " | "
                + (f"{np.median([r.tolerance for r in right]):.1e}" if right else "-")
                + f" | {max(r.alone for r in some):.1e} | {sum(r.silent for r in some)} | "
                f"{np.median([r.queries for r in some]):.2f} | "
                f"{np.median([r.seconds for r in some]):.0f} |"
            )
    seeds = f"seeds from {min(r.seed for r in runs)}"
    return "\n".join(
        [*lines, "", f"{device}; NumPy {np.__version__}, one BLAS thread a network; {seeds}."]
    )


def _others(runs: list[Run]) -> str:
    others = sorted({r.status for r in runs} - {"recovered"})
    counts = [f"{sum(r.status == s for r in runs)} {s}" for s in others]
    return f"; {', '.join(counts)}" if counts else ""


def main() -> None:
    about = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    about.add_argument("--device", default="cuda")
    about.add_argument("--networks", type=int, default=3, help="how many a line")
    about.add_argument("--first-seed", type=int, default=FIRST_SEED)
    about.add_argument("--limit", type=float, default=60.0, help="seconds a network may take")
    about.add_argument("--processes", type=int, default=12)
    about.add_argument("--row", action="append", help="only networks whose name has this")
    about.add_argument("--write", action="store_true", help="keep it on its page")
    given = about.parse_args()
    names = [n for n in NETWORKS if not given.row or any(part in n for part in given.row)]
    jobs = [
        (name, precision, given.first_seed + i, given.device, given.limit)
        for i in range(given.networks)
        for name in names
        for precision in PRECISIONS
    ]
    # Before NumPy is imported in them.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        runs = []
        for run in pool.starmap(one, jobs, chunksize=1):
            runs.append(run)
            print(asdict(run), flush=True)
    text = table(runs, _device(given.device))
    print(f"\n{text}")
    if given.write:
        keep("gpu", text)


def _device(name: str) -> str:
    import torch  # noqa: PLC0415

    where = torch.cuda.get_device_name() if name == "cuda" else name
    return f"torch {torch.__version__} on {where}"


if __name__ == "__main__":
    main()
