"""What audits say of models of other kinds, of served pipelines and of networks too deep to find.

    python benchmarks/audit_kinds.py others --lines FILE    forests, neighbours, smooth models
    python benchmarks/audit_kinds.py served --lines FILE    pipelines, beside extract
    python benchmarks/audit_kinds.py deep --lines FILE      networks that no method recovers
    python benchmarks/audit_kinds.py verdicts --lines FILE  audits, beside extract as they ask
    python benchmarks/audit_kinds.py ... --part 0/3         every third of them, from the first
    python benchmarks/audit_kinds.py others --write FILE    put FILE on its page

Callables in this process, marked as remote: what a served model answers.
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from page import keep
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
    make_friedman1,
)
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import revelu
from revelu.network.layered import LayeredNetwork
from revelu.network.layers import Convolution, Dense, Relu
from revelu.oracle import Oracle
from revelu.tasks.audit import audit as audits

SEEDS = (61_000_001, 61_000_002, 61_000_003)
SEEDS_OF_VERDICTS = (8_670_000, 8_670_001, 8_670_002)

# Of an audit, and of an extraction beside it; of verdicts, of computing.
SECONDS = {"others": 20.0, "served": 20.0, "deep": 20.0, "verdicts": 60.0}

# Of the seconds of an audit of a served model, what the search for a network may take.
OF_SEARCH = 0.75 * 0.7

CLASSES = {"wine": load_wine, "iris": load_iris, "breast cancer": load_breast_cancer}
NUMBERS = {"diabetes": load_diabetes, "linnerud": load_linnerud}

HEADS = {
    "others": "| model | data | seed | severity | looks like | agree | s |",
    "served": "| pipeline | seed | audit | extract | rows of weights | agree | s |",
    "deep": "| network | seed | severity | fidelity of the copy | queries | agree | s |",
    "verdicts": "| target | seed | severity | extract | queries | rows cut | agree | CPU s |",
}


@dataclass(frozen=True)
class Target:
    """A model, what it answers, and the data it is asked like."""

    name: str
    data: str
    ask: Callable[[Any], Any]
    dim_in: int
    like: Any = None
    kind: str = ""


def _data(name: str) -> tuple[Any, Any]:
    if name == "friedman":
        return make_friedman1(400, 8, random_state=0)
    load = {**CLASSES, **NUMBERS, "digits": load_digits}[name]
    X, y = load(return_X_y=True)
    return X, y[:, 0] if y.ndim > 1 else y


def others() -> Iterator[Target]:
    """The forty: trees of six kinds on three data sets each, neighbours, smooth models."""
    classifiers = {
        "random forest": RandomForestClassifier(100, random_state=0),
        "extra trees": ExtraTreesClassifier(100, random_state=0),
        "boosted trees": GradientBoostingClassifier(random_state=0),
        "neighbours": KNeighborsClassifier(),
    }
    regressors = {
        "random forest": RandomForestRegressor(100, random_state=0),
        "extra trees": ExtraTreesRegressor(100, random_state=0),
        "boosted trees": GradientBoostingRegressor(random_state=0),
        "neighbours": KNeighborsRegressor(),
    }
    smooth = {
        "tanh network": MLPRegressor(
            hidden_layer_sizes=(20,), activation="tanh", max_iter=500, random_state=0
        ),
        "logistic network": MLPRegressor(
            hidden_layer_sizes=(20, 10), activation="logistic", max_iter=500, random_state=0
        ),
        "support vectors": SVR(C=10.0),
        "Gaussian process": GaussianProcessRegressor(
            RBF(3.0), alpha=0.1, optimizer=None, normalize_y=True
        ),
    }
    for (name, model), data in itertools.product(classifiers.items(), [*CLASSES, "digits"]):
        X, y = _data(data)
        kind = "nearest neighbours" if name == "neighbours" else "trees"
        ask = model.__class__(**model.get_params()).fit(X, y).predict_proba
        yield Target(f"{name}, classes", data, ask, X.shape[1], X, kind)
    for (name, model), data in itertools.product(regressors.items(), ["diabetes", "linnerud"]):
        yield _regressor(name, model, data)
    for (name, model), data in itertools.product(smooth.items(), ["diabetes", "friedman"]):
        yield _regressor(name, make_pipeline(StandardScaler(), model), data, "smooth")
    for name, data in itertools.product(
        ["random forest", "extra trees", "boosted trees", "neighbours"], ["friedman"]
    ):
        yield _regressor(name, regressors[name], data)
    for data in [*CLASSES, "digits"]:
        X, y = _data(data)
        model = make_pipeline(
            StandardScaler(),
            MLPClassifier(hidden_layer_sizes=(15,), activation="tanh", random_state=0),
        )
        yield Target(
            "tanh network, classes", data, model.fit(X, y).predict_proba, X.shape[1], X, "smooth"
        )


def _regressor(name: str, model: Any, data: str, kind: str = "") -> Target:
    X, y = _data(data)
    kind = kind or ("nearest neighbours" if name == "neighbours" else "trees")
    return Target(f"{name}, numbers", data, clone(model).fit(X, y).predict, X.shape[1], X, kind)


def served() -> Iterator[Target]:
    """The forty pipelines: two widths on five data sets, their answers in four ways each."""
    ways: dict[str, Callable[[Any], Any]] = {
        "4 decimals": lambda Y: np.round(Y, 4),
        "5 decimals": lambda Y: np.round(Y, 5),
        "6 decimals": lambda Y: np.round(Y, 6),
        "8 decimals in float32": lambda Y: np.round(Y, 8).astype(np.float32),
    }
    for data, width in itertools.product([*CLASSES, "diabetes", "friedman"], [5, 10]):
        X, y = _data(data)
        make = MLPClassifier if data in CLASSES else MLPRegressor
        model = make_pipeline(
            StandardScaler(), make(hidden_layer_sizes=(width,), max_iter=500, random_state=0)
        )
        model.fit(X, y if data in CLASSES else (y - y.mean()) / y.std())
        answer = model.predict_proba if data in CLASSES else model.predict
        for way, how in ways.items():
            name = f"{X.shape[1]}-{width}, {way}"
            yield Target(name, data, lambda Z, a=answer, h=how: h(a(Z)), X.shape[1], X)


def deep() -> Iterator[Target]:
    """The twenty: convolutions on padded convolutions, and five hidden layers."""
    for i in range(10):
        rng = np.random.default_rng([61, i])
        c = Convolution(
            rng.normal(size=(4, 1, 3, 3)) / 3,
            0.3 * rng.normal(size=4),
            (1, 8, 8),
            pads=(1, 1, 1, 1),
        )
        d = Convolution(
            rng.normal(size=(4, 4, 3, 3)) / 6,
            0.3 * rng.normal(size=4),
            c.shape_out,
            pads=(1, 1, 1, 1),
        )
        top = Dense(rng.normal(size=(5, d.size_out)) / d.size_out**0.5, rng.normal(size=5))
        yield Target(
            f"two padded convolutions, {i}", "", LayeredNetwork([c, Relu(), d, Relu(), top]), 64
        )
    for i in range(10):
        widths = [12, 40, 30, 30, 20, 20, 3]
        network = revelu.zoo.random_network(widths, seed=6_100 + i)
        answer = (lambda Z, n=network: n(Z).astype(np.float32)) if i % 2 else network
        yield Target("-".join(map(str, widths)) + (", float32" if i % 2 else ""), "", answer, 12)


def verdicts() -> Iterator[Target]:
    """The forty: pipelines of five data sets, answering in eight ways."""
    ways: dict[str, Callable[[Any], Any]] = {
        "float64": lambda Y: Y,
        "float32": lambda Y: np.asarray(Y, dtype=np.float32),
        "6 decimals": lambda Y: np.round(Y, 6),
        "5 decimals": lambda Y: np.round(Y, 5),
        "4 decimals": lambda Y: np.round(Y, 4),
    }
    for data in [*CLASSES, "diabetes", "friedman"]:
        X, y = _data(data)
        is_class = data in CLASSES
        y = y if is_class else (y - y.mean()) / y.std()

        def answer(widths: tuple[int, ...], X: Any = X, y: Any = y, by: bool = is_class) -> Any:
            make = MLPClassifier if by else MLPRegressor
            model = make(hidden_layer_sizes=widths, max_iter=500, random_state=0)
            fitted = make_pipeline(StandardScaler(), model).fit(X, y)
            return fitted.predict_proba if by else fitted.predict

        one, two = answer((10,)), answer((6, 4))
        of_two = answer((10,), y=np.asarray(y == y[0] if is_class else y > 0), by=True)
        asked = {name: lambda Z, a=one, how=how: how(a(Z)) for name, how in ways.items()}
        asked |= {"two layers": two, "two layers, float32": lambda Z, a=two: np.float32(a(Z))}
        asked["sigmoid"] = lambda Z, a=of_two: a(Z)[:, 1]
        for name, ask in asked.items():
            yield Target(f"{data}, {name}", data, ask, X.shape[1], X)


def _audited(target: Target, seed: int, seconds: float) -> tuple[Any, float]:
    domain = None if target.like is None else revelu.Domain.like(target.like)
    began = time.monotonic()
    found = revelu.audit(
        target.ask, dim_in=target.dim_in, domain=domain, seed=seed, max_seconds=seconds, remote=True
    )
    return found, time.monotonic() - began


def of_others(target: Target, seed: int) -> str:
    """Whether severity is unknown, and the kind named."""
    found, took = _audited(target, seed, SECONDS["others"])
    said = found.looks_like.split(":")[0].split(",")[0]
    ok = found.severity == "unknown" and target.kind.split()[-1] in found.looks_like
    return _line(target.name, target.data, seed, found.severity, said or "-", _yes(ok), took)


def of_served(target: Target, seed: int) -> str:
    """Whether no row has weights where an extraction is not certified."""
    found, took = _audited(target, seed, SECONDS["served"])
    alone = revelu.extract(
        target.ask,
        dim_in=target.dim_in,
        domain=revelu.Domain.like(target.like),
        seed=seed,
        max_seconds=SECONDS["served"],
        remote=True,
    )
    certified = alone.status is revelu.Status.RECOVERED
    weights = sum(row.recovered == "weights" for row in found.rows)
    # What is implied by a row that was measured has that row's certificate.
    vouched = any(
        row.certified and (row.from_copy or (row.extrapolated and not row.implied_by))
        for row in found.rows
    )
    ok = (certified or not weights) and not vouched
    said = found.severity + (", the same" if certified == (found.severity == "critical") else "")
    name, status = f"{target.data} {target.name}", alone.status.value
    return _line(name, seed, said, status, weights, _yes(ok), took)


def of_deep(target: Target, seed: int) -> str:
    """Whether nothing low is said, and copies over 90% are grave."""
    found, took = _audited(target, seed, SECONDS["deep"])
    first = found.rows[0]
    share = first.fidelity
    near = share is not None and share >= 0.9
    ok = found.severity != "low" and (not near or found.severity in {"high", "critical"})
    shown = "-" if share is None else f"{share:.1%}"
    queries = "-" if first.queries is None else f"{first.queries:,}"
    return _line(target.name, seed, found.severity, shown, queries, _yes(ok), took)


def of_verdicts(target: Target, seed: int) -> str:
    """Whether the audit's first row is certified where an extraction is, of as good a network."""
    began, domain = time.process_time(), revelu.Domain.like(target.like)
    found = revelu.audit(target.ask, dim_in=target.dim_in, domain=domain, seed=seed, remote=True)
    took, first = time.process_time() - began, found.rows[0]
    oracle = Oracle(
        target.ask,
        target.dim_in,
        domain=domain,
        is_remote=True,
        max_seconds=OF_SEARCH * SECONDS["verdicts"],
        clock=time.process_time,
    )
    alone = revelu.extract(oracle, seed=seed)
    certified = alone.status is revelu.Status.RECOVERED
    ok = certified == (first.certified and first.recovered in {"weights", "function"})
    ok &= found.severity != "low"
    queries = "-" if first.queries is None else f"{first.queries:,}"
    cut = sum(row.cut for row in found.rows)
    status = alone.status.value
    return _line(target.name, seed, found.severity, status, queries, cut, _yes(ok), took)


def _is_kept(lines: Path | None, target: Target, seed: int) -> bool:
    """Whether a file of lines has the audit of a target by a seed."""
    kept = lines.read_text(encoding="utf-8") if lines is not None and lines.exists() else ""
    told = (f"{target.name} |", f"| {seed} |", target.data)
    return any(all(part in line for part in told) for line in kept.splitlines())


def _line(*cells: Any) -> str:
    shown = (f"{cell:.1f}" if isinstance(cell, float) else f"{cell}" for cell in cells)
    return f"| {' | '.join(shown)} |"


def _yes(ok: bool) -> str:
    return "yes" if ok else "NO"


TABLES = {
    "others": (others, of_others),
    "served": (served, of_served),
    "deep": (deep, of_deep),
    "verdicts": (verdicts, of_verdicts),
}


def main() -> None:
    """Print, or keep, a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--part", default="0/1", help="i/n: each nth audit, from the ith")
    parser.add_argument("--lines", type=Path, help="append the lines to this file")
    parser.add_argument("--write", type=Path, help="keep the lines of this file on the page")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    make, judged = TABLES[options.table]
    seeds = SEEDS[:1] if options.table == "deep" else SEEDS
    seeds = SEEDS_OF_VERDICTS if options.table == "verdicts" else seeds
    if options.table == "verdicts":
        audits._Audit = partial(audits._Audit, seconds=SECONDS["verdicts"])  # noqa: SLF001
    if options.write:
        lines = sorted(set(options.write.read_text(encoding="utf-8").splitlines()))
        agree = sum("| yes |" in line for line in lines)
        head = HEADS[options.table]
        table = "\n".join([head, "|" + "---|" * (head.count("|") - 1), *lines])
        n_all, shown = len(list(make())) * len(seeds), ", ".join(f"{s:,}" for s in seeds)
        note = f"{agree} of {len(lines)} as they are to be; {len(lines)} of {n_all} measured."
        note += f"  {SECONDS[options.table]:.0f} seconds an audit; seeds {shown}."
        keep(f"audit_{options.table}", f"{table}\n\n{note}")
        return
    first, step = map(int, options.part.split("/"))
    # All targets by the first seed, then all by the next; what a file has is not measured again.
    jobs = [(target, seed) for seed in seeds for target in make()]
    for target, seed in jobs[first::step]:
        if _is_kept(options.lines, target, seed):
            continue
        line = judged(target, seed)
        print(line, flush=True)
        if options.lines is not None:
            with options.lines.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")


if __name__ == "__main__":
    main()
