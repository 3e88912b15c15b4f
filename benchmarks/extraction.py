"""Extractions, each in a process of its own with a wall limit, held against the truth.

Only the target's answers are given: neither depth nor widths are told.  What deep, strangers and
trained have in common: a run, how it is judged, and what a line says of runs.
"""

import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from processes import THREADS, alone
from runner import Line
from scipy.spatial.distance import cdist

import revelu
from revelu import Network
from revelu.types import BoolArray, FloatArray

Layer = tuple[FloatArray, FloatArray]

N_POINTS = 10_000
EXACT = 1e-9
RIGHT = 1e-6
SAME_ROW = 1e-6

# Beyond the limit a run may take a tenth more, and seconds to start and to be judged.
TO_START = 60.0


class Row(Protocol):
    """A line of a table."""

    @property
    def name(self) -> str:
        """What the line says first; runs are kept under it."""

    @property
    def networks(self) -> int:
        """How many networks it has."""

    def truth(self, seed: int) -> Network:
        """One network of the line."""

    def data(self, seed: int) -> FloatArray | None:
        """What it was trained on, shape (n, d), where it is judged there, too."""


@dataclass(frozen=True)
class Run:
    """One network's outcome.

    Attributes
    ----------
    seed : int
    status : str
        As the recovery says; ``stopped`` past the limit, ``died`` where the process did.
    architecture : tuple of int
        Of the network that came back, if one did.
    hidden : tuple of int
        Widths of the target's hidden layers.
    layers, layers_right : int
        The lowest layers said to be exact, and how many of them are the target's.
    nrmse, largest : float
        Root mean square and largest error, over the outputs' standard deviation.
    right, data_right : float
        Share of the fresh inputs, and of the data, where no error is over 1e-6 of the deviation.
    labels : float or None
        Share of the data with the same largest output.
    silent : bool
        Called recovered, though more is wrong than twice what the certificate allows.
    parameters, queries, rounds : int
        The target's parameters, and all queries and rounds of the ledger.
    seconds, megabytes : float
        CPU time, and the most memory that the process had.
    """

    seed: int
    status: str
    parameters: int
    hidden: tuple[int, ...]
    architecture: tuple[int, ...] = ()
    layers: int = 0
    layers_right: int = 0
    nrmse: float = np.inf
    largest: float = np.inf
    right: float = 0.0
    data_right: float | None = None
    labels: float | None = None
    silent: bool = False
    queries: float = np.nan
    rounds: float = np.nan
    seconds: float = np.nan
    megabytes: float = np.nan

    @property
    def exact(self) -> bool:
        """Whether it is the target's function."""
        return self.nrmse <= EXACT

    @property
    def cost(self) -> float:
        """Queries a parameter."""
        return self.queries / self.parameters


def extract(
    truth: Network,
    seed: int,
    limit: float | None,
    data: FloatArray | None,
    n_points: int = N_POINTS,
) -> Run:
    """Extract one network and hold it against its truth."""
    start = time.process_time()
    recovery = revelu.extract(truth, seed=seed, max_seconds=limit)
    seconds, megabytes = time.process_time() - start, peak_memory()
    X = np.random.default_rng([seed, 1]).standard_normal((n_points, truth.dim_in))
    first = () if recovery.first_layer is None else (recovery.first_layer,)
    layers = recovery.details.get("layers") or first
    run = Run(
        seed,
        recovery.status.value,
        truth.n_parameters,
        truth.architecture[1:-1],
        layers=len(layers),
        layers_right=n_right(truth, layers, X),
        queries=recovery.ledger.n_queries,
        rounds=recovery.ledger.n_rounds,
        seconds=seconds,
        megabytes=megabytes,
    )
    if recovery.network is None:
        return run
    return judged(run, recovery.network, truth, X, data, recovery.certificate)


def peak_memory() -> float:
    """The most memory that this process has had, in 1e6 bytes."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size * (1 if sys.platform == "darwin" else 1024) / 1e6


def judged(
    run: Run,
    network: Network,
    truth: Network,
    X: FloatArray,
    data: FloatArray | None,
    certificate: revelu.Certificate | None,
) -> Run:
    """Say how far off the network is that came back."""
    Y = truth(X)
    deviation = float(np.sqrt(Y.var(axis=0).mean()))
    off = np.abs(network(X) - Y)
    run = replace(
        run,
        architecture=network.architecture,
        nrmse=float(np.sqrt((off**2).mean())) / deviation,
        largest=float(off.max()) / deviation,
        right=_share(off.max(axis=1) <= RIGHT * deviation),
    )
    if run.status == revelu.Status.RECOVERED and certificate is not None:
        # A share p of errors passes n checks with probability (1 - p)^n.
        allowed = 1.0 - (1.0 - certificate.confidence) ** (1.0 / certificate.n_checks)
        wrong = _share(off.max(axis=1) > certificate.tolerance)
        run = replace(run, silent=wrong > 2.0 * allowed)
    if data is not None:
        F, G = network(data), truth(data)
        run = replace(
            run,
            data_right=_share(np.abs(F - G).max(axis=1) <= RIGHT * deviation),
            labels=_share(F.argmax(axis=1) == G.argmax(axis=1)) if truth.dim_out > 1 else None,
        )
    return run


def _share(which: BoolArray) -> float:
    return float(which.mean())


def n_right(truth: Network, layers: Sequence[Layer], X: FloatArray) -> int:
    """How many layers, the lowest first, have all neurons of the truth that fire, and no other.

    Rows are compared up to their order and positive scales: units found are the truth's
    ``units``, ``scales`` times as large.
    """
    units, scales = np.arange(truth.dim_in), np.ones(truth.dim_in)
    for n, ((W, b), H) in enumerate(zip(layers, truth.activations(X)[1:], strict=False)):
        true = np.column_stack([truth.weights[n][:, units] / scales, truth.biases[n]])
        sizes = np.linalg.norm(true, axis=1)
        found = np.column_stack([W, b])
        apart = cdist(_unit(found), _unit(true))
        if not len(found) or (apart.min(axis=1) > SAME_ROW).any():
            return n
        units = apart.argmin(axis=1)
        if len(set(units)) < len(units) or not set(units) >= set(np.flatnonzero(H.any(axis=0))):
            return n
        scales = np.linalg.norm(found, axis=1) / sizes[units]
    return min(len(layers), truth.n_hidden)


def _unit(rows: FloatArray) -> FloatArray:
    sizes = np.linalg.norm(rows, axis=1)[:, None]
    return np.asarray(rows / np.where(sizes > 0.0, sizes, 1.0))


def one(row: Row, seed: int, limit: float | None, n_points: int = N_POINTS) -> Run:
    """Extract one network of a line, in a process that does nothing else."""
    truth = row.truth(seed)
    patience = None if limit is None else 1.1 * limit + TO_START
    os.environ.update(dict.fromkeys(THREADS, "1"))
    run, failure = alone(extract, truth, seed, limit, row.data(seed), n_points, patience=patience)
    return run or Run(seed, failure, truth.n_parameters, truth.architecture[1:-1])


def recorded(hidden: Iterable[int], architecture: Iterable[int], **others: object) -> Run:
    """Make a run of what was recorded of it."""
    return Run(hidden=tuple(hidden), architecture=tuple(architecture), **others)


def lines_and_all(
    line: Callable[[str, list[Run]], Line], found: Mapping[Row, list[Run]]
) -> Iterator[Line]:
    """A line a row, and one of all."""
    for row, runs in found.items():
        yield line(row.name, runs)
    if found:
        yield line("all", [run for runs in found.values() for run in runs])


def cells(name: str, runs: list[Run]) -> Line:
    """Tell of a line's runs: what each column says."""
    exact = [run for run in runs if run.exact]
    same = sum(run.architecture[1:-1] == run.hidden for run in exact)
    right = [run.right for run in runs]
    ends = Counter(run.status for run in runs)
    return {
        "network": name,
        "parameters": _range(run.parameters for run in runs),
        "networks": f"{len(runs)}",
        "exact": f"{len(exact)}",
        "architecture right, of the exact": f"{same} of {len(exact)}" if exact else "-",
        "wrong and silent": f"{sum(run.silent for run in runs)}",
        "inputs right, median, fewest": f"{np.median(right):.2%}, {min(right):.2%}",
        "layers known exact, median": f"{np.median([run.layers_right for run in runs]):g} "
        f"of {_range(len(run.hidden) for run in runs)}",
        "layers said exact, wrong": f"{sum(run.layers - run.layers_right for run in runs)}",
        "queries / parameter, median, most": median_and_most([run.cost for run in runs], ",.1f"),
        "rounds, median, most": median_and_most([run.rounds for run in runs]),
        "CPU seconds, median, most": median_and_most([run.seconds for run in runs]),
        "MB, median, most": median_and_most([run.megabytes for run in runs]),
        "how it ended": ", ".join(f"{n} {status}" for status, n in ends.most_common()),
    }


def _range(numbers: Iterable[int]) -> str:
    known = sorted(set(numbers))
    return " to ".join(f"{n:,}" for n in dict.fromkeys((known[0], known[-1])))


def median_and_most(figures: Sequence[float], spec: str = ",.0f") -> str:
    """Of the runs that came back."""
    known = np.array([x for x in figures if np.isfinite(x)])
    return f"{np.median(known):{spec}}, {known.max():{spec}}" if len(known) else "-"
