"""Networks behind heads, told nothing: is the link found, and what comes back.

    python benchmarks/links.py --results runs.jsonl            print the tables
    python benchmarks/links.py --results runs.jsonl --write    and keep them
    python benchmarks/links.py --table links-pipelines ...     those of scikit-learn alone

Ten heads on networks of one and two hidden layers, in float64 and in float32; classifiers in
scikit-learn pipelines whose probabilities are rounded to a few decimals.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from precision import computing_in
from runner import Line, Table, main, shape
from scipy.special import expit

import revelu
from revelu.numerics.links import Link
from revelu.types import FloatArray

HEADS = ("logit", "logit*100", "log", "log1p", "atanh", "softmax", "softmax*100", "log-softmax")
FALLING = "1 - sigmoid"
MANY = "logit of three outputs"
WIDTHS = ((10, 16), (10, 12, 8))
N_POINTS = 20_000

DATA = ("iris", "wine", "breast_cancer", "digits")
NEURONS = (10, 20, 50)
DECIMALS = (4, 5, 6, 8)
RIGHT = 2.0  # units of the last place


@dataclass(frozen=True)
class Cell:
    """Networks of one shape, behind one head, in one precision."""

    head: str
    widths: tuple[int, ...]
    precision: str
    networks: int = 2

    @property
    def name(self) -> str:
        """All three."""
        return f"{self.head}, {self.widths}, {self.precision}"


@dataclass(frozen=True)
class Run:
    """One target's outcome."""

    status: str
    link: str
    queries: int
    error: float
    seconds: float


def one(cell: Cell, seed: int, limit: float | None) -> Run:
    """Extract the network behind a head, and hold it against the truth, up to what is not told."""
    head, widths = cell.head, cell.widths
    link = Link.named("logit" if head in {FALLING, MANY} else head)
    has_several = link.contrast or head == MANY
    network = revelu.zoo.random_network([*widths, 3 if has_several else 1], seed=seed)
    began = time.process_time()
    recovery = revelu.extract(
        target_of(network, head, link, np.dtype(cell.precision)),
        dim_in=widths[0],
        seed=seed,
        max_seconds=limit,
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
    return Run(recovery.status.value, str(recovery.link), n, error, seconds)


def target_of(
    network: revelu.Network, head: str, link: Link, dtype: np.dtype
) -> Callable[[FloatArray], FloatArray]:
    """The head on the network, both computed in that precision."""
    computed = computing_in(network, dtype)

    def answer(X: FloatArray) -> FloatArray:
        H = computed(X)
        with np.errstate(over="ignore"):
            return (1 - expit(H) if head == FALLING else link.answers(H)).astype(dtype)

    return answer


def lines(found: Mapping[Cell, list[Run]]) -> Iterator[Line]:
    """A line a head: what came back of each network and precision."""
    for head in dict.fromkeys(cell.head for cell in found):
        line = {"head": head}
        for cell, runs in found.items():
            if cell.head == head:
                right = [run for run in runs if run.status == "recovered"]
                worst = max((run.error for run in right), default=np.nan)
                line[f"{shape(cell.widths)}, {cell.precision}"] = (
                    f"{len(right)} of {len(runs)}, {worst:.0e}, "
                    f"{np.median([run.queries for run in runs]):,.0f}"
                )
        yield line


@dataclass(frozen=True)
class Served:
    """Pipelines of one data set and width, whose probabilities have so many decimals."""

    data: str
    neurons: int
    decimals: int
    networks: int = 2

    @property
    def name(self) -> str:
        """All three."""
        return f"pipeline, {self.data}, {self.neurons}, {self.decimals}"


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

    status: str
    queries: int
    off: float
    differ: float
    seconds: float


def one_pipeline(cell: Served, seed: int, limit: float | None) -> Pipeline:
    """Extract a pipeline from its rounded probabilities, told what its data are like."""
    from sklearn import datasets  # noqa: PLC0415 - no part of the other table
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    warnings.filterwarnings("ignore", module="sklearn")
    X, y = getattr(datasets, f"load_{cell.data}")(return_X_y=True)
    classifier = MLPClassifier((cell.neurons,), max_iter=500, random_state=seed)
    fitted = make_pipeline(StandardScaler(), classifier).fit(X, y)
    domain = revelu.Domain.like(X)

    def answer(rows: FloatArray) -> FloatArray:
        return np.asarray(np.round(fitted.predict_proba(rows), cell.decimals))

    began = time.process_time()
    recovery = revelu.extract(
        answer, dim_in=X.shape[1], domain=domain, seed=seed, max_seconds=limit
    )
    seconds, off = time.process_time() - began, np.full(N_POINTS, np.inf)
    if recovery.network is not None:
        rng, wide = np.random.default_rng([seed, 1]), domain.of(X.shape[1])
        rows = wide.to_target(rng.standard_normal((N_POINTS, len(wide.spread))))
        found = recovery.link.answers(recovery.network(rows))
        off = np.abs(found - answer(rows)).max(axis=1) * 10.0**cell.decimals
    n, differ = recovery.ledger.n_queries, float((off > RIGHT).mean())
    return Pipeline(recovery.status.value, n, float(off.max()), differ, seconds)


def pipeline_lines(found: Mapping[Served, list[Pipeline]]) -> Iterator[Line]:
    """A line for each data set and number of neurons, a column for each number of decimals."""
    for name in dict.fromkeys(f"{cell.data}, {cell.neurons}" for cell in found):
        cells = {c: r for c, r in found.items() if f"{c.data}, {c.neurons}" == name}
        said = {f"{c.decimals} decimals": _of_pipelines(runs) for c, runs in cells.items()}
        yield {"data, neurons": name, **said}


def pipeline_note(found: Mapping[Served, list[Pipeline]]) -> str:
    """All of them together."""
    everything = [run for runs in found.values() for run in runs]
    right = [run for run in everything if run.off <= RIGHT]
    certified = [run for run in everything if run.status == "recovered"]
    wrong = [run for run in certified if run.off > RIGHT]
    n_quick = sum(run.seconds <= 20.0 for run in everything)
    return (
        f"Of {len(everything)} pipelines {len(right)} come back right to two units, and "
        f"{len(certified) - len(wrong)} of these are certified; {len(wrong)} that are not right "
        f"are. {n_quick} take 20 seconds of processor time at most."
    )


def _of_pipelines(runs: list[Pipeline]) -> str:
    """How many are right, how many of these are certified, and the largest difference of those."""
    right = [run for run in runs if run.off <= RIGHT]
    n_certified = sum(run.status == "recovered" for run in right)
    seconds = float(np.median([run.seconds for run in runs]))
    return f"{len(right)} of {len(runs)}, {n_certified} certified, {seconds:.0f} s"


CELLS = [
    Cell(head, widths, precision)
    for head in (*HEADS, MANY, FALLING)
    for widths in WIDTHS
    for precision in ("float64", "float32")
]
SERVED = [Served(data, k, n) for data in DATA for k in NEURONS for n in DECIMALS]
TABLE = Table(
    "links", __doc__, CELLS, one, lines, first_seed=7_600_000, outcome=Run, limit=40.0, named_by=0
)
PIPELINES = Table(
    "links-pipelines",
    __doc__,
    SERVED,
    one_pipeline,
    pipeline_lines,
    first_seed=7_621_000,
    outcome=Pipeline,
    limit=120.0,
    named_by=0,
    note=pipeline_note,
)

if __name__ == "__main__":
    main(TABLE, PIPELINES)
