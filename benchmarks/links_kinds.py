"""Models behind heads as people have them, clips, and heads that are none of those that are known.

    python benchmarks/links_kinds.py --results runs.jsonl            print the tables
    python benchmarks/links_kinds.py --results runs.jsonl --write    and keep them

Fitted models of six data sets (scikit-learn, torch), a sigmoid in float32 behind JSON of few
decimals, networks whose answers or inputs are clipped, and functions with heads that are no link.
"""

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from precision import computing_in
from runner import Line, Table, by_row, main
from scipy.special import erf, expit
from sklearn import datasets
from sklearn.compose import TransformedTargetRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import revelu
from revelu.types import FloatArray

FIRST_SEED = 7_800_000
MAX_SECONDS = 60.0
ODD_SECONDS, ODD_QUERIES, ODD_CHECKS = 4.0, 4_000, 500
N_POINTS = 20_000
OFF = 1e-3  # of the range of the answers
SETS = ("breast_cancer", "wine", "iris", "digits", "diabetes", "drawn")
CAPS = {"0.2%": (0.0, 0.998), "5%": (0.0, 0.95), "floor 30%": (0.3, 1.0), "both 10%": (0.1, 0.9)}
ENDS = (1.0, 2.0, 3.0)

Target = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Run:
    """One target's outcome.

    ``wrong`` is what is certified and is off at more inputs than its certificate leaves open.
    """

    status: str
    queries: int
    error: float
    seconds: float
    right: bool
    wrong: bool = False


def samples(name: str, seed: int) -> tuple[FloatArray, FloatArray]:
    """Inputs of a data set, and one of two classes each."""
    if name == "drawn":
        return datasets.make_classification(600, 12, n_informative=6, random_state=seed)
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    two = {"digits": y % 2, "diabetes": y > np.median(y), "breast_cancer": y}
    return X, np.asarray(two.get(name, y == 1), dtype=np.int64)


def classifier(name: str, k: int, seed: int) -> Run:
    """A pipeline of two classes, of which one is asked for."""
    X, y = samples(name, seed)
    mlp = MLPClassifier((k,), max_iter=300, random_state=seed)
    model = make_pipeline(StandardScaler(), mlp).fit(X, y)
    domain = revelu.Domain.like(X)
    return extracted(lambda Z: model.predict_proba(Z)[:, 1], X, seed, 1e-6, domain=domain)


def regressor(k: int, seed: int) -> Run:
    """A regressor of logarithms, of values of 1e5 and more."""
    X, y = datasets.load_diabetes(return_X_y=True)
    mlp = MLPRegressor(hidden_layer_sizes=(k,), max_iter=500, random_state=seed)
    inner = make_pipeline(StandardScaler(), mlp)
    model = TransformedTargetRegressor(inner, func=np.log1p, inverse_func=np.expm1)
    model.fit(X, 1e5 * y)
    return extracted(model.predict, X, seed, 1e-6, domain=revelu.Domain.like(X))


def module(name: str, k: int, seed: int) -> Run:
    """A module of torch, trained by binary cross-entropy, in float32."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    X, y = samples(name, seed)
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    inputs = torch.tensor(X, dtype=torch.float32)
    wanted = torch.tensor(y, dtype=torch.float32)[:, None]
    net = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], k), torch.nn.ReLU(), torch.nn.Linear(k, 1)
    )
    adam = torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(100):
        adam.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(net(inputs), wanted).backward()
        adam.step()

    def target(Z: FloatArray) -> FloatArray:
        with torch.no_grad():
            return torch.sigmoid(net(torch.tensor(Z, dtype=torch.float32))).numpy()

    return extracted(target, X, seed, 1e-5)


def behind_json(places: int, seed: int) -> Target:
    """A sigmoid in float32 of one output, as a server writes it: so many decimals."""
    network = revelu.zoo.random_network([8, 12, 1], seed=seed)
    computed = computing_in(network)

    def target(X: FloatArray) -> FloatArray:
        H = computed(X)
        return np.array(json.loads(json.dumps([[round(float(p), places)] for p in expit(H)[:, 0]])))

    return target


def served(places: int, seed: int) -> Run:
    """Extract that sigmoid: right to two units of its last decimal."""
    return extracted(behind_json(places, seed), None, seed, 2.0 * 10.0**-places, dim_in=8)


def audited(places: int, seed: int) -> Run:
    """Audit that sigmoid in a minute: it gives its weights away."""
    began = time.perf_counter()
    target = behind_json(places, seed)
    found = revelu.audit(target, dim_in=8, seed=seed, max_seconds=MAX_SECONDS)
    first = found.rows[0].recovered
    seconds = time.perf_counter() - began
    return Run(first, found.ledger.n_queries, np.nan, seconds, first == "weights")


def capped(kind: str, seed: int) -> Run:
    """A network whose answers are clipped at quantiles of them."""
    network = revelu.zoo.random_network([10, 16, 1], seed=seed)
    Y = network(np.random.default_rng([seed, 2]).standard_normal((200_000, 10)))
    low, high = CAPS[kind]
    ends = (
        np.quantile(Y, low) if low > 0.0 else -np.inf,
        np.quantile(Y, high) if high < 1.0 else np.inf,
    )
    return extracted(lambda X: np.clip(network(X), *ends), None, seed, 1e-8, dim_in=10)


def clipped(end: float, seed: int) -> Run:
    """A network whose inputs are clipped."""
    network = revelu.zoo.random_network([10, 16, 1], seed=seed)
    return extracted(lambda X: network(np.clip(X, -end, end)), None, seed, 1e-8, dim_in=10)


def extracted(
    target: Target,
    X: FloatArray | None,
    seed: int,
    within: float,
    *,
    dim_in: int | None = None,
    seconds: float = MAX_SECONDS,
    **options: Any,
) -> Run:
    """Extract a target, told nothing, and hold what comes back against its own answers.

    Parameters
    ----------
    X : ndarray, optional
        Where it is used; N(0, I) without.
    within : float
        Largest error of an answer of what is right, relative to how far answers vary.
    """
    began = time.process_time()
    d = X.shape[1] if X is not None else dim_in
    found = revelu.extract(target, dim_in=d, seed=seed, max_seconds=seconds, **options)
    used = time.process_time() - began
    if X is None:
        X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, d))
    error, share_off = np.inf, 1.0
    if found.network is not None:
        Y = np.asarray(target(X), dtype=np.float64).reshape(len(X), -1)
        with np.errstate(over="ignore"):
            off = np.abs(found.link.answers(found.network(X)) - Y).max(axis=1) / np.ptp(Y)
        error, share_off = float(off.max()), float((off > OFF).mean())
    is_certified = found.status is revelu.Status.RECOVERED
    is_wrong = is_certified and share_off > found.certificate.share_wrong
    n = found.ledger.n_queries
    return Run(found.status.value, n, error, used, is_certified and error <= within, is_wrong)


ODD: dict[str, Callable[[FloatArray], FloatArray]] = {
    "softplus": lambda z: np.logaddexp(0.0, z),
    "GELU": lambda z: 0.5 * z * (1.0 + erf(z / np.sqrt(2.0))),
    "erf": erf,
    "probit": lambda z: 0.5 * (1.0 + erf(z / np.sqrt(2.0))),
    "cloglog": lambda z: -np.expm1(-np.exp(np.minimum(z, 30.0))),
    "squared": np.square,
    "square root": lambda z: np.sqrt(np.abs(z)),
    "sin": np.sin,
    "swish": lambda z: z * expit(z),
    "arctan": np.arctan,
    "cosh": lambda z: np.cosh(np.clip(z, -30.0, 30.0)),
    "sigmoid, squared": lambda z: expit(z) ** 2,
    "mixture of sigmoids": lambda z: 0.7 * expit(z) + 0.3 * expit(3.0 * z - 1.0),
    "sigmoid at two temperatures": lambda z: np.where(z > 0.0, expit(z), expit(3.0 * z)),
    "sigmoid of a tree": lambda z: expit(np.floor(2.0 * z)),
    "leaky sigmoid": lambda z: expit(z) + 0.01 * z,
    "abs": np.abs,
    "clipped": lambda z: np.clip(z, -0.5, 1.0),
    "clipped sigmoid": lambda z: np.clip(expit(z), 0.1, 0.9),
    "hard sigmoid": lambda z: np.clip(0.2 * z + 0.5, 0.0, 1.0),
}
"""Heads that are none of the links; of the last four there are networks of ReLUs."""


def odd(head: str, precision: str, seed: int) -> Run:
    """Extract a network behind such a head by few queries."""
    network, dtype = revelu.zoo.random_network([5, 6, 1], seed=seed), np.dtype(precision)
    limits = {"seconds": ODD_SECONDS, "budget": ODD_QUERIES, "checks": ODD_CHECKS}
    return extracted(
        lambda X: ODD[head](network(X)).astype(dtype), None, seed, 1e-5, dim_in=5, **limits
    )


@dataclass(frozen=True)
class Row:
    """Targets of one kind; what differs between them goes round with the seed.

    Attributes
    ----------
    measure : callable, (*of, seed) -> Run
    each : tuple of tuples
        What it is called with, the first at the first seed, and so on, round and round.
    """

    name: str
    measure: Callable[..., Run]
    each: tuple[tuple[Any, ...], ...]
    networks: int = 6


KINDS = tuple((head, dtype) for head in ODD for dtype in ("float64", "float32"))
ROWS = (
    *(
        Row(f"MLPClassifier, {k} neurons, one probability", classifier, tuple((s, k) for s in SETS))
        for k in (10, 30)
    ),
    Row("TransformedTargetRegressor, 5, 10 and 20 neurons", regressor, ((5,), (10,), (20,))),
    Row("torch, binary cross-entropy, float32", module, tuple((s, 16) for s in SETS)),
    *(
        Row(f"sigmoid in float32 behind JSON of {places} decimals{words}", measure, ((places,),), n)
        for places in (4, 6)
        for words, measure, n in (("", served, 6), (", audit", audited, 2))
    ),
    *(Row(f"answers clipped, {kind}", capped, ((kind,),)) for kind in CAPS),
    *(Row(f"inputs clipped to [-{end:g}, {end:g}]", clipped, ((end,),)) for end in ENDS),
    Row("odd heads", odd, KINDS, 500),
)


def one(row: Row, seed: int, _limit: float | None) -> Run:
    """Measure one target."""
    of = row.each[(seed - FIRST_SEED) % len(row.each)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return row.measure(*of, seed)


def line(row: Row, runs: list[Run]) -> Line:
    """How many are right, how many certified and wrong, queries and seconds."""
    right = f"{sum(run.right for run in runs)} of {len(runs)}"
    return {
        "target": row.name,
        "right": "-" if row.name == "odd heads" else right,
        "certified, wrong": f"{sum(run.wrong for run in runs)}",
        "queries": f"{np.median([run.queries for run in runs]):,.0f}",
        "longest": f"{max(run.seconds for run in runs):.0f} s",
    }


TABLE = Table("links_kinds", __doc__, ROWS, one, by_row(line), first_seed=FIRST_SEED, outcome=Run)

if __name__ == "__main__":
    main(TABLE)
