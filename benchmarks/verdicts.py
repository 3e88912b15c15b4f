"""Verdicts against the truth: small trained networks, services of two models, tables.

    python benchmarks/verdicts.py                          print all three (two hours)
    python benchmarks/verdicts.py --table networks --networks 60
    python benchmarks/verdicts.py --table services
    python benchmarks/verdicts.py --table tables --write   keep it on its page

Everything follows from the seed.  Runs that are in --results are not made again.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from page import once, present, records
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

import revelu
from revelu import Domain, Network, zoo
from revelu._version import __version__
from revelu.report.verdicts import verdict
from revelu.types import FloatArray

FIRST_SEED = 61_000_000
N_FRESH = 100_000
# Of a network that is refused, the share of wrong answers that a statement would have allowed.
ALLOWED = 1e-3
HIDDEN = ((8,), (32,), (100,), (8, 8), (16, 16), (25, 25), (8, 8, 8), (16, 12, 8))

Found = dict[str, Any]


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


def in_float32(network: Network) -> Callable[[FloatArray], FloatArray]:
    """The function of a network that computes in float32."""
    layers = [(W.astype(np.float32).T, b.astype(np.float32)) for W, b in _layers(network)]

    def ask(X: FloatArray) -> FloatArray:
        H = X.astype(np.float32)
        for W, b in layers[:-1]:
            H = np.maximum(H @ W + b, 0)
        return H @ layers[-1][0] + layers[-1][1]

    return ask


def _layers(network: Network) -> zip:
    return zip(network.weights, network.biases, strict=True)


def small_network(seed: int, limit: float) -> Found:
    """Extract a trained network, and count wrong answers at fresh inputs."""
    network, is_float32 = trained(seed)
    ask = in_float32(network) if is_float32 else network
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


def service(seed: int, limit: float, *, swaps: bool) -> Found:
    """Extract a service that sends requests to another model, or swaps answers, now and then."""
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


def table_of(seed: int, limit: float) -> Found:
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


def of_small_networks(given: argparse.Namespace) -> None:
    """Tell of them by depth and precision."""
    n = 200 if given.networks is None else given.networks
    for i in range(n):
        once(
            given.results,
            "small_networks",
            given.first_seed + i,
            lambda seed: small_network(seed, given.limit),
        )
    runs = [run["found"] for run in _runs(given, "small_networks")]
    kinds = sorted({(run["architecture"].count("-") - 1, run["float32"]) for run in runs})
    lines = []
    for depth, is_float32 in kinds:
        some = [
            run
            for run in runs
            if (run["architecture"].count("-") - 1, run["float32"]) == (depth, is_float32)
        ]
        certified = [run for run in some if run["status"] == "recovered"]
        cut = [run for run in some if run["status"] == "budget_exhausted"]
        refused = [run for run in some if run["status"] not in {"recovered", "budget_exhausted"}]
        right = sum(run["wrong"] < ALLOWED / 10 for run in refused)
        over = sum(run["wrong"] > run["allowed"] for run in certified)
        told = sum(";" in run["headline"] for run in certified)
        lines.append(
            [
                f"{depth} hidden, {'float32' if is_float32 else 'float64'}",
                *map(str, (len(some), len(certified), told, len(cut), right, over)),
            ]
        )
    total = [sum(int(line[i]) for line in lines) for i in range(1, 7)]
    lines.append(["all", *map(str, total)])
    columns = (
        "networks",
        "runs",
        "certified",
        "of these, said to differ somewhere",
        "ended by the seconds",
        "refused, though under a tenth of 0.1% is wrong",
        "certified, though more is wrong than stated",
    )
    present("verdicts-networks", _markdown(columns, lines, given), write=given.write, tables=None)


def of_services(given: argparse.Namespace) -> None:
    """Tell of them by what they do."""
    n, lines = 20 if given.networks is None else given.networks, []
    for name, swaps in (("another model, 1% of requests", False), ("swapped, 2%", True)):
        runs = [
            once(
                given.results,
                name,
                given.first_seed + i,
                lambda seed, swaps=swaps: service(seed, given.limit, swaps=swaps),
            )
            for i in range(n)
        ]
        ends = [run["status"] for run in runs]
        certified = [run for run in runs if run["status"] == "recovered"]
        say = sum("requests" in run["statement"] for run in certified)
        row = (n, len(certified), say, ends.count("not_deterministic"), ends.count("error"))
        lines.append([name, *map(str, row)])
    columns = (
        "service",
        "seeds",
        "certified",
        "and say in how many requests",
        "not deterministic",
        "changed, while it was asked",
    )
    present("verdicts-services", _markdown(columns, lines, given), write=given.write, tables=None)


def of_tables(given: argparse.Namespace) -> None:
    """Tell of them by what is served."""
    n = 60 if given.networks is None else given.networks
    for i in range(n):
        once(
            given.results,
            "tables",
            given.first_seed + i,
            lambda seed: table_of(seed, given.limit),
        )
    runs = [run["found"] for run in _runs(given, "tables")]
    lines = []
    for what in sorted({run["kind"].split(", ")[1] for run in runs}):
        some = [run for run in runs if run["kind"].endswith(f", {what}")]
        certified = [run for run in some if run["status"] == "recovered"]
        wrong = sum(run["wrong"] > 0.0 for run in certified)
        named = sum("all with" in run["headline"] for run in some)
        lines.append([what, *map(str, (len(some), len(certified), wrong, named))])
    columns = (
        "served beside a network",
        "tables",
        "certified",
        "of these, wrong on a row of the table",
        "refused, with the values at which it is wrong",
    )
    present("verdicts-tables", _markdown(columns, lines, given), write=given.write, tables=None)


def _runs(given: argparse.Namespace, row: str) -> list[Found]:
    return [run for run in records(given.results) if run["row"] == row]


def _markdown(columns: tuple[str, ...], lines: list[list[str]], given: argparse.Namespace) -> str:
    rows = [list(columns), ["---"] * len(columns), *lines]
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    said = f"revelu {__version__}, NumPy {np.__version__}, seeds from {given.first_seed:,}"
    return f"{text}\n\n{said}, at most {given.limit:g} seconds a run."


TABLES = {"networks": of_small_networks, "services": of_services, "tables": of_tables}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--table", action="append", choices=TABLES, help="all without")
    options.add_argument("--networks", type=int, help="runs of a table; 0: earlier ones")
    options.add_argument("--first-seed", type=int, default=FIRST_SEED)
    options.add_argument("--limit", type=float, default=20.0, help="seconds of a run")
    options.add_argument("--results", type=Path, default=Path("verdicts.jsonl"))
    options.add_argument("--write", action="store_true", help="keep them on their page")
    given = options.parse_args()
    for name in given.table or TABLES:
        TABLES[name](given)


if __name__ == "__main__":
    main()
