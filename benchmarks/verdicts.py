"""Verdicts against the truth: small trained networks, services of two models, tables.

    python benchmarks/verdicts.py                          print all three (two hours)
    python benchmarks/verdicts.py --table verdicts-networks --networks 60
    python benchmarks/verdicts.py --write                  and keep them on their page

Everything follows from the seed.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from precision import computing_in
from runner import Line, Named, Table, by_row, main
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

import revelu
from revelu import Domain, Network, zoo
from revelu.report.verdicts import verdict
from revelu.types import FloatArray

N_FRESH = 100_000
# Of a network that is refused, the share of wrong answers that a statement would have allowed.
ALLOWED = 1e-3
HIDDEN = ((8,), (32,), (100,), (8, 8), (16, 16), (25, 25), (8, 8, 8), (16, 12, 8))

Found = dict[str, Any]

ANOTHER, SWAPPED = "another model, 1% of requests", "swapped, 2%"


def trained(seed: int) -> tuple[Network, bool]:
    """Train a network of two to eight inputs; say whether it computes in float32."""
    rng = np.random.default_rng(seed)
    d, hidden = int(rng.integers(2, 9)), HIDDEN[seed % len(HIDDEN)]
    if (seed // 8) % 2:
        X, y = make_friedman1(600, n_features=max(d, 5), random_state=seed % 2**32)
        X = X[:, :d]
    else:
        X, y = load_diabetes(return_X_y=True)
        X = X[:, rng.permutation(10)[:d]]
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    model = MLPRegressor(hidden_layer_sizes=hidden, max_iter=400, random_state=seed % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return Network([W.T for W in model.coefs_], model.intercepts_), bool((seed // 16) % 2)


def small_network(_row: Named, seed: int, limit: float | None) -> Found:
    """Extract a trained network, and count wrong answers at fresh inputs."""
    network, is_float32 = trained(seed)
    ask = computing_in(network) if is_float32 else network
    recovery = revelu.extract(ask, dim_in=network.dim_in, seed=seed % 1000, max_seconds=limit)
    X = np.random.default_rng([seed, 1]).standard_normal((N_FRESH, network.dim_in))
    said, wrong = recovery.certificate, 1.0
    # Without a certificate: what answers of so many digits are told by.
    least = (1e-5 if is_float32 else 1e-6) * float(network(X).std())
    tolerance = least if said is None else said.tolerance
    if recovery.network is not None:
        apart = np.abs(recovery.network(X) - ask(X))
        wrong = float((apart > tolerance).any(axis=1).mean())
    return {
        "architecture": "-".join(map(str, network.architecture)),
        "float32": is_float32,
        "status": recovery.status.value,
        "wrong": wrong,
        "allowed": ALLOWED if said is None else said.share_wrong,
        "headline": verdict("extract", recovery.to_dict()).words,
        "queries": recovery.ledger.n_queries,
    }


def service(row: Named, seed: int, limit: float | None) -> Found:
    """Extract a service that sends requests to another model, or swaps answers, now and then."""
    swaps = row.name == SWAPPED
    one, other = (zoo.random_network([8, 12, 2], seed=seed + k) for k in (0, 500_000))
    rng, share = np.random.default_rng(seed), 0.02 if swaps else 0.01

    def ask(X: FloatArray) -> FloatArray:
        if rng.random() >= share:
            return one(X)
        return one(X)[::-1].copy() if swaps else other(X)

    try:
        found = revelu.extract(
            ask, dim_in=8, seed=seed % 1000, remote=True, rate="1000/s", max_seconds=limit
        )
    except revelu.TargetError as error:
        return {"status": "error", "statement": f"{error}"}
    said = found.certificate
    return {"status": found.status.value, "statement": "" if said is None else said.statement}


def made_table(seed: int) -> tuple[FloatArray, Callable[[FloatArray], FloatArray], str]:
    """Make four columns of numbers and two of few values, and what is served of them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(300, 900))
    X = rng.standard_normal((n, 4))
    law = ("normal", "mixture", "heavy tails")[seed % 3]
    if law == "mixture":
        X += np.where(rng.random((n, 1)) < 0.5, 3.0, -3.0) * rng.standard_normal(4)
    elif law == "heavy tails":
        X = rng.standard_t(2, (n, 4))
    sex, cat = rng.integers(0, 2, n), rng.integers(0, 3, n)
    network = zoo.random_network([6, 8, 1], seed=seed)
    how = ("step at a value", "step between", "slope at a value", "step at two", "none")[seed % 5]

    def ask(Z: FloatArray) -> FloatArray:
        Y = network(Z)[:, 0]
        more = {
            "step at a value": 3.0 * (Z[:, 4] == 1),
            "step between": 3.0 * (Z[:, 5] > 1.5),
            "slope at a value": Z[:, 0] * (Z[:, 5] == 2),
            "step at two": 2.0 * ((Z[:, 4] == 1) & (Z[:, 5] == 0)),
        }
        return Y + more.get(how, 0.0)

    return np.column_stack([X, sex, cat]), ask, f"{law}, {how}"


def table_of(_row: Named, seed: int, limit: float | None) -> Found:
    """Extract where a table is, and compare on its rows."""
    X, ask, kind = made_table(seed)
    names = ["a", "b", "c", "d", "sex", "cat"]
    domain = Domain.like(X, name="table.csv", names=names)
    found = revelu.extract(ask, dim_in=6, domain=domain, seed=seed % 1000, max_seconds=limit)
    wrong = 1.0
    if found.network is not None:
        y = ask(X)
        wrong = float((np.abs(found.network(X)[:, 0] - y) > 1e-6 * y.std()).mean())
    headline = verdict("extract", found.to_dict()).words
    return {"kind": kind, "status": found.status.value, "wrong": wrong, "headline": headline}


def network_lines(found: Mapping[Named, list[Found]]) -> Iterator[Line]:
    """Tell of them by depth and precision, and of all."""
    runs = [run for some in found.values() for run in some]
    kinds = sorted({kind_of(run) for run in runs})
    for depth, is_float32 in kinds:
        some = [run for run in runs if kind_of(run) == (depth, is_float32)]
        yield network_line(f"{depth} hidden, {'float32' if is_float32 else 'float64'}", some)
    if runs:
        yield network_line("all", runs)


def kind_of(run: Found) -> tuple[int, bool]:
    """Hidden layers, and whether it computes in float32."""
    return run["architecture"].count("-") - 1, run["float32"]


def network_line(name: str, runs: list[Found]) -> Line:
    """How many are certified, or refused, and rightly."""
    certified = [run for run in runs if run["status"] == "recovered"]
    cut = [run for run in runs if run["status"] == "budget_exhausted"]
    refused = [run for run in runs if run["status"] not in {"recovered", "budget_exhausted"}]
    right = sum(run["wrong"] < ALLOWED / 10 for run in refused)
    over = sum(run["wrong"] > run["allowed"] for run in certified)
    return {
        "networks": name,
        "runs": f"{len(runs)}",
        "certified": f"{len(certified)}",
        "of these, said to differ somewhere": f"{sum(';' in r['headline'] for r in certified)}",
        "ended by the seconds": f"{len(cut)}",
        "refused, though under a tenth of 0.1% is wrong": f"{right}",
        "certified, though more is wrong than stated": f"{over}",
    }


def service_line(row: Named, runs: list[Found]) -> Line:
    """How a service's extractions end."""
    ends = [run["status"] for run in runs]
    certified = [run for run in runs if run["status"] == "recovered"]
    return {
        "service": row.name,
        "seeds": f"{len(runs)}",
        "certified": f"{len(certified)}",
        "and say in how many requests": f"{sum('requests' in r['statement'] for r in certified)}",
        "not deterministic": f"{ends.count('not_deterministic')}",
        "changed, while it was asked": f"{ends.count('error')}",
    }


def table_lines(found: Mapping[Named, list[Found]]) -> Iterator[Line]:
    """Tell of them by what is served."""
    runs = [run for some in found.values() for run in some]
    for what in sorted({run["kind"].split(", ")[1] for run in runs}):
        some = [run for run in runs if run["kind"].endswith(f", {what}")]
        certified = [run for run in some if run["status"] == "recovered"]
        named = sum("all with" in run["headline"] for run in some)
        yield {
            "served beside a network": what,
            "tables": f"{len(some)}",
            "certified": f"{len(certified)}",
            "of these, wrong on a row of the table": f"{sum(r['wrong'] > 0.0 for r in certified)}",
            "refused, with the values at which it is wrong": f"{named}",
        }


LIKE = {"first_seed": 61_000_000, "limit": 20.0}
NETWORKS = [Named("small_networks", 200)]
SERVICES = [Named(ANOTHER, 20), Named(SWAPPED, 20)]
TABLES = (
    Table("verdicts-networks", __doc__, NETWORKS, small_network, network_lines, **LIKE),
    Table("verdicts-services", __doc__, SERVICES, service, by_row(service_line), **LIKE),
    Table("verdicts-tables", __doc__, [Named("tables", 60)], table_of, table_lines, **LIKE),
)

if __name__ == "__main__":
    main(*TABLES)
