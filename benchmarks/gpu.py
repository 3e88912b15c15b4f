"""Modules that a GPU computes: what comes back from each precision, and whether it is true.

    python benchmarks/gpu.py --processes 12 --write             the table (a GPU, five minutes)
    python benchmarks/gpu.py --device cpu --networks 1          where there is none

Random networks, one trained on digits, and one of filters, as torch modules in float64, float32,
TF32 (Ampere and later; PyTorch's default for convolutions), autocast and half precision.  Each is
held against its own weights, in float64, and against what the module itself answers.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from many_targets import wrong_share
from runner import Line, Table, by_row, main

import revelu
from revelu.types import FloatArray

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


@dataclass(frozen=True)
class Row:
    """A network, what it computes in, and where."""

    network: str
    precision: str
    device: str
    networks: int = 3

    @property
    def name(self) -> str:
        """The network, and what it computes in."""
        return f"{self.network}, {self.precision}"


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


def answers_of(module: Any, dim_in: int) -> Callable[[FloatArray], FloatArray]:
    """Answers of a module as float64, asked as a target is."""
    oracle = revelu.open_oracle(module, dim_in=dim_in, input_shape=f"{dim_in}")
    return lambda X: np.asarray(oracle(X), dtype=np.float64)


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one network from what a device computes."""
    import torch  # noqa: PLC0415

    exact = module_of(row.network, seed)
    dim_in = 144 if row.network.startswith("filters") else exact[0].in_features
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, dim_in))
    with torch.no_grad():
        truth = exact(torch.tensor(X)).numpy()
    n_parameters = sum(p.numel() for p in exact.parameters())
    module = in_precision(exact, row.precision).to(row.device)
    ask = answers_of(module, dim_in)
    Y, alone = ask(X), np.vstack([ask(x[None]) for x in X[:N_ALONE]])
    deviation = float(np.sqrt(truth.var(axis=0).mean()))
    oracle = revelu.open_oracle(module, dim_in=dim_in, input_shape=f"{dim_in}", max_seconds=limit)
    start = time.perf_counter()
    recovery = revelu.extract(oracle, seed=seed)
    found, certificate = recovery.network, recovery.certificate
    error = np.inf if found is None else _rms(found(X) - truth) / deviation
    is_recovered = recovery.status is revelu.Status.RECOVERED
    return Run(
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


def line(row: Row, runs: list[Run]) -> Line:
    """A network in a precision."""
    right = [run for run in runs if run.status == "recovered"]
    errors = [run.error for run in right]
    others = Counter(run.status for run in runs if run.status != "recovered")
    ends = "; " * bool(others) + ", ".join(f"{n} {s}" for s, n in sorted(others.items()))
    return {
        "network": row.network,
        "computes in": row.precision,
        "recovered": f"{len(right)} of {len(runs)}{ends}",
        "error of the answers": f"{np.median([run.own for run in runs]):.1e}",
        "error recovered, median, largest": f"{np.median(errors):.1e}, {max(errors):.1e}"
        if errors
        else "-",
        "certified to, median": f"{np.median([run.tolerance for run in right]):.1e}"
        if right
        else "-",
        "asked alone differs by": f"{max(run.alone for run in runs):.1e}",
        "wrong and silent": f"{sum(run.silent for run in runs)}",
        "queries / parameter": f"{np.median([run.queries for run in runs]):.2f}",
        "seconds": f"{np.median([run.seconds for run in runs]):.0f}",
    }


def rows(given: argparse.Namespace) -> list[Row]:
    """Every network in every precision."""
    return [Row(n, precision, given.device) for n in NETWORKS for precision in PRECISIONS]


def note(found: Mapping[Row, list[Run]]) -> str:
    """What computed it."""
    import torch  # noqa: PLC0415 - after the environment is set

    device = next(iter(found)).device
    where = torch.cuda.get_device_name() if device == "cuda" else device
    return f"torch {torch.__version__} on {where}."


TABLE = Table(
    "gpu",
    __doc__,
    rows,
    one,
    by_row(line),
    first_seed=64_400_000,
    outcome=Run,
    limit=60.0,
    named_by=2,
    note=note,
    options=lambda parser: parser.add_argument("--device", default="cuda"),
)

if __name__ == "__main__":
    main(TABLE)
