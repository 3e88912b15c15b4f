"""What every kind of target is asked and what comes back: the same before and after a change.

    python benchmarks/envelope.py --list                       the targets
    python benchmarks/envelope.py --out before.json            ask all of them
    python benchmarks/envelope.py --out before.json --part 1/3 --only float32   some of them
    python benchmarks/envelope.py --out after.json --against before.json        and compare
    python benchmarks/envelope.py --seeds 20 --out after.json --against before.json

A change that moves or renames code asks the same: one seed, and the digests of all queries in
their order, of what came back, status, counts and error are equal to the last bit.  A change that
merges two ways of doing one thing asks something else: over ``--seeds`` of each target no
certified network is lost, the median of queries grows by 5% at most, the error of the worst seed
becomes three times as large at most, and processor time grows by a quarter at most.

Digests hold on one machine with one build of NumPy.  What was asked already is kept in ``--out``
and not asked again.  No run has a limit of time, which would make its queries depend on the clock.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import revelu
from revelu import Domain, Network, zoo
from revelu.certify.labels import predict_labels
from revelu.network import LayeredNetwork
from revelu.network.layers import Convolution, Dense, Layer, Pooling, Prelu, Relu
from revelu.oracle import Float32, InFloat32, Labels, Noisy, Rounded, degrade
from revelu.types import FloatArray

FIRST_SEED = 71_000_000
N_POINTS = 2_000
QUERIES, ERROR, SECONDS = 1.05, 3.0, 1.25
# Below this errors are those of rounding, and as good as equal.
EXACT = 1e-9
# Times of less than this are those of starting.
SHORTEST = 1.0

Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Run:
    """One target's outcome.

    Attributes
    ----------
    asked, found : str
        SHA-256 of all queries in their order, and of the arrays of what came back.
    status : str
    queries : int
    error : float
        Largest, over the standard deviation of the outputs; of labels the share that differs.
    seconds : float
        Of the processor.
    """

    asked: str
    found: str
    status: str
    queries: int
    error: float
    seconds: float = field(compare=False)


class Listened:
    """A target that takes down what it is asked."""

    def __init__(self, ask: Function, dim_in: int) -> None:
        self.ask, self.dim_in = ask, dim_in
        self.digest = hashlib.sha256()

    def __call__(self, X: FloatArray) -> FloatArray:
        """Answer, (n, d) -> (n, k)."""
        self.digest.update(repr(X.shape).encode())
        self.digest.update(np.ascontiguousarray(X, dtype="<f8").tobytes())
        return self.ask(X)


def leaky(widths: tuple[int, ...], seed: int) -> LayeredNetwork:
    rng = np.random.default_rng(seed)
    layers: list[Layer] = []
    for d, k in pairwise(widths):
        W, b = rng.standard_normal((k, d)) / np.sqrt(d), 0.3 * rng.standard_normal(k)
        layers += [Dense(W, b), Prelu(rng.uniform(0.05, 0.5, k))]
    return LayeredNetwork(layers[:-1])


def filters(seed: int, *, pool: str = "", is_leaky: bool = False) -> LayeredNetwork:
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((4, 1, 3, 3)) / 3.0
    convolution = Convolution(weights, 0.3 * rng.standard_normal(4), (1, 8, 8))
    layers: list[Layer] = [convolution]
    n = convolution.size_out
    layers.append(Prelu(np.full(n, 0.1)) if is_leaky else Relu())
    if pool:
        layers.append(Pooling(pool, convolution.shape_out, (2, 2), (2, 2)))
        n = layers[-1].size_out
    A = rng.standard_normal((5, n)) / np.sqrt(n)
    return LayeredNetwork([*layers, Dense(A, rng.standard_normal(5))])


def trained(name: str, hidden: tuple[int, ...], seed: int) -> Network:
    from trained import standardised, trained  # noqa: PLC0415 - needs scikit-learn

    return trained(*standardised(name, seed), hidden, seed)


def on_grid(spacing: float, ask: Function, X: FloatArray) -> FloatArray:
    return np.asarray(np.round(ask(X) / spacing) * spacing)


def extracted(ask: Function, dim_in: int, seed: int, **options: Any) -> Any:
    return revelu.extract(ask, seed=seed, checks=300, dim_in=dim_in, **options)


@dataclass(frozen=True)
class Target:
    """One line: a network, what its answers lose, and how it is asked.

    Attributes
    ----------
    name : str
    draw : callable, (seed) -> function with ``dim_in``
    law : callable, (function) -> function
    how : callable, (function, dim_in, seed) -> result
    """

    name: str
    draw: Callable[[int], Any]
    law: Callable[[Any], Function] = lambda network: network
    how: Callable[..., Any] = extracted

    def run(self, seed: int) -> Run:
        """Ask it, and hold what comes back against the truth."""
        truth = self.draw(seed)
        ask = self.law(truth)
        target = Listened(ask, truth.dim_in)
        start = time.process_time()
        found = self.how(target, truth.dim_in, seed)
        seconds = time.process_time() - start
        return Run(
            target.digest.hexdigest(),
            digest_of(found),
            found.status.value,
            found.ledger.n_queries,
            error_of(found, truth, ask, seed),
            seconds,
        )


def digest_of(found: Any) -> str:
    """SHA-256 of the arrays of a result."""
    network, span = getattr(found, "network", None), getattr(found, "span", None)
    arrays = [*getattr(network, "arrays", ()), getattr(span, "basis", None)]
    arrays += [getattr(found, name, None) for name in ("directions", "normals", "thresholds")]
    digest = hashlib.sha256()
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()


def error_of(found: Any, truth: Any, target: Function, seed: int) -> float:
    """Of fresh inputs; of labels the share that differs."""
    if getattr(found, "network", None) is None:
        return float("inf")
    X = np.random.default_rng([seed, 1]).standard_normal((N_POINTS, truth.dim_in))
    if found.classes:
        labels = predict_labels(found.network, np.array(found.classes), X)
        return float((labels != target(X)[:, 0]).mean())
    Y = truth(X)
    return float(np.abs(found.network(X) - Y).max() / max(float(Y.std()), np.finfo(float).tiny))


def in_domain(ask: Function, dim_in: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    low = rng.uniform(-1.0, 0.0, dim_in)
    return extracted(ask, dim_in, seed, domain=Domain.box(low, low + rng.uniform(0.5, 3.0, dim_in)))


def span_of(ask: Function, dim_in: int, seed: int, **options: Any) -> Any:
    return revelu.recover_span(ask, seed=seed, checks=100, dim_in=dim_in, **options)


@dataclass(frozen=True)
class Units:
    """Halfspaces, at least half a radian apart, and how their signs are put together."""

    W: FloatArray
    t: FloatArray
    put: Callable[[FloatArray], FloatArray]

    @property
    def dim_in(self) -> int:
        """Number of inputs."""
        return self.W.shape[1]

    def __call__(self, X: FloatArray) -> FloatArray:
        """Answer, (n, d) -> (n,) or (n, k)."""
        return self.put(X @ self.W.T - self.t)


def some_fire(Z: FloatArray) -> FloatArray:
    return (Z >= 0.0).any(axis=1).astype(float)


def units_and_product(Z: FloatArray) -> FloatArray:
    U = np.maximum(Z, 0.0)
    return np.asarray(1.0 + U.sum(axis=1) + U[:, 0] * U[:, 1])


def units(put: Callable[[FloatArray], FloatArray], d: int, k: int, seed: int) -> Units:
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((k, d))
    return Units(W / np.linalg.norm(W, axis=1)[:, None], rng.uniform(1.5, 2.5, k), put)


def rules_of(ask: Function, dim_in: int, seed: int) -> Any:
    return revelu.recover_halfspaces(ask, dim_in=dim_in, seed=seed, checks=100)


def lowest_of(ask: Function, dim_in: int, seed: int) -> Any:
    return revelu.recover_lowest_layer(ask, dim_in=dim_in, seed=seed, checks=100)


def learned(ask: Function, dim_in: int, seed: int, error: float = 0.0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20_000, dim_in))
    Y = ask(X)
    return revelu.learn(X, Y + error * rng.standard_normal(Y.shape), seed=seed)


def dense(*widths: int) -> Callable[[int], Network]:
    return lambda seed: zoo.random_network(widths, seed)


def of_zoo(draw: Callable[..., Network], *widths: int) -> Callable[[int], Network]:
    return lambda seed: draw(widths, seed=seed)


def single(network: Any) -> Function:
    return degrade(network, Float32())


def computed(network: Any) -> Function:
    return degrade(network, InFloat32())


def labels(network: Any) -> Function:
    return degrade(network, Labels())


boxed: Any = partial(extracted, box=(-1.0, 1.0))
by_labels: Any = partial(extracted, labels=True)


def rounded(digits: int) -> Any:
    return lambda network: degrade(network, Rounded(digits))


def noisy(network: Any) -> Function:
    return degrade(network, Noisy(1e-6, 1))


def grid(spacing: float) -> Any:
    return lambda network: partial(on_grid, spacing, network)


TARGETS: tuple[Target, ...] = (
    # One hidden layer.
    Target("10-8-1", dense(10, 8, 1)),
    Target("20-40-3", dense(20, 40, 3)),
    Target("5-30-2", dense(5, 30, 2)),
    Target("dead 8-10-2", of_zoo(zoo.with_dead_neurons, 8, 10, 2)),
    Target("duplicates 8-10-2", of_zoo(zoo.with_duplicates, 8, 10, 2)),
    Target("near duplicates 8-10-2", of_zoo(zoo.with_near_duplicates, 8, 10, 2)),
    Target("close kinks 8-10-2", of_zoo(zoo.with_close_kinks, 8, 10, 2)),
    Target("bumps 6-9-1", of_zoo(zoo.with_bumps, 6, 9, 1)),
    Target("clusters 6-8-1", of_zoo(zoo.with_clusters, 6, 8, 1)),
    Target("tiny 8-10-2", of_zoo(zoo.with_tiny_weights, 8, 10, 2)),
    Target("diabetes 16", partial(trained, "diabetes", (16,))),
    Target("polished 10-8-1", dense(10, 8, 1), how=partial(extracted, polish=True)),
    Target("box 6-12-2", dense(6, 12, 2), how=boxed),
    Target("domain 6-12-2", dense(6, 12, 2), how=in_domain),
    Target("float32 10-16-2", dense(10, 16, 2), computed),
    Target("float32 30-20-3", dense(30, 20, 3), single),
    Target("float32 box 6-10-2", dense(6, 10, 2), single, boxed),
    Target("float32 domain 6-10-2", dense(6, 10, 2), single, in_domain),
    Target("float32 diabetes 16", partial(trained, "diabetes", (16,)), computed),
    Target("6 digits 8-8-1", dense(8, 8, 1), rounded(6)),
    Target("4 digits 5-4-1", dense(5, 4, 1), rounded(4)),
    Target("noise 8-8-1", dense(8, 8, 1), noisy),
    Target("grid 2^-20 8-8-1", dense(8, 8, 1), grid(2.0**-20)),
    Target("grid 2^-31 8-8-2", dense(8, 8, 2), grid(2.0**-31)),
    # Two hidden layers and more.
    Target("10-8-5-1", dense(10, 8, 5, 1)),
    Target("20-15-10-3", dense(20, 15, 10, 3)),
    Target("6-10-6-2", dense(6, 10, 6, 2)),
    Target("4-8-6-2", dense(4, 8, 6, 2)),
    Target("8-6-5-4-2", dense(8, 6, 5, 4, 2)),
    Target("6-8-7-6-2", dense(6, 8, 7, 6, 2)),
    Target("box 8-6-4-2", dense(8, 6, 4, 2), how=boxed),
    Target("domain 4-6-5-2", dense(4, 6, 5, 2), how=in_domain),
    Target("float32 10-8-6-2", dense(10, 8, 6, 2), computed),
    Target("float32 20-10-10-3", dense(20, 10, 10, 3), single),
    Target("float32 6-8-5-2", dense(6, 8, 5, 2), computed),
    Target("float32 8-6-16-2", dense(8, 6, 16, 2), computed),
    Target("float32 8-6-5-4-2", dense(8, 6, 5, 4, 2), computed),
    Target("float32 box 8-5-4-2", dense(8, 5, 4, 2), computed, boxed),
    Target("grid 2^-31 8-6-4-1", dense(8, 6, 4, 1), grid(2.0**-31)),
    Target("9 digits 8-6-4-2", dense(8, 6, 4, 2), rounded(9)),
    Target("leaky 8-6-2", partial(leaky, (8, 6, 2))),
    Target("leaky 8-6-5-2", partial(leaky, (8, 6, 5, 2))),
    # Weights that are shared.
    Target("filters", filters),
    Target("filters, max", partial(filters, pool="max")),
    Target("filters, average", partial(filters, pool="average")),
    Target("leaky filters, max", partial(filters, pool="max", is_leaky=True)),
    Target("float32 filters", filters, single),
    # Labels.
    Target("labels 6-5-1", dense(6, 5, 1), labels, by_labels),
    Target("labels 10-16-1", dense(10, 16, 1), labels, by_labels),
    Target("labels 8-8-4", dense(8, 8, 4), labels, by_labels),
    Target("labels 2-6-3", dense(2, 6, 3), labels, by_labels),
    Target("labels 8-5-4-3", dense(8, 5, 4, 3), labels, by_labels),
    Target("labels 30-6-2", dense(30, 6, 2), labels, by_labels),
    # Spans, rules and samples.
    Target("span 20-4-1", dense(20, 4, 1), how=span_of),
    Target("span 12-5-4-2", dense(12, 5, 4, 2), how=span_of),
    Target("span float32 20-4-1", dense(20, 4, 1), single, span_of),
    Target("span labels 10-3-1", dense(10, 3, 1), labels, partial(span_of, labels=True)),
    Target("rules 8, 3", partial(units, some_fire, 8, 3), how=rules_of),
    Target("lowest layer 6, 3", partial(units, units_and_product, 6, 3), how=lowest_of),
    Target("samples 5-4-1", dense(5, 4, 1), how=learned),
    Target("noisy samples 4-3-1", dense(4, 3, 1), how=partial(learned, error=0.05)),
)


def runs_of(targets: list[Target], n_seeds: int, out: Path) -> dict[str, Run]:
    """Ask targets that the file does not have yet, and keep each at once."""
    kept = read(out)
    for target in targets:
        for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
            key = f"{target.name}, {seed}"
            if key not in kept:
                kept[key] = target.run(seed)
                print(f"{key}: {kept[key]}", flush=True)
                text = json.dumps({k: asdict(v) for k, v in kept.items()}, indent=1)
                out.write_text(text + "\n", encoding="utf-8")
    names = {target.name for target in targets}
    return {key: run for key, run in kept.items() if key.rpartition(", ")[0] in names}


def read(path: Path) -> dict[str, Run]:
    if not path.exists():
        return {}
    return {k: Run(**v) for k, v in json.loads(path.read_text(encoding="utf-8")).items()}


def unequal(before: dict[str, Run], after: dict[str, Run]) -> list[str]:
    """Say which runs are not the same to the last bit."""
    both = before.keys() & after.keys()
    return [
        f"{key}: {name} was {old[name]}, is {new[name]}"
        for key in sorted(both)
        for old, new in [(asdict(before[key]), asdict(after[key]))]
        for name in old
        if name != "seconds" and old[name] != new[name]
    ]


def worse(before: dict[str, Run], after: dict[str, Run]) -> list[str]:
    """Say which targets are worse than a merge may make them."""
    both = sorted(before.keys() & after.keys())
    said = []
    for name in dict.fromkeys(key.rpartition(", ")[0] for key in both):
        keys = [key for key in both if key.rpartition(", ")[0] == name]
        old, new = [before[key] for key in keys], [after[key] for key in keys]
        lost = [n for o, n in zip(old, new, strict=True) if o.status == "recovered" != n.status]
        said += [f"{name}: {len(lost)} no longer recovered"] if lost else []
        for what, most, least in (("queries", QUERIES, 0.0), ("seconds", SECONDS, SHORTEST)):
            a, b = (float(np.median([getattr(r, what) for r in runs])) for runs in (old, new))
            if b > most * max(a, least):
                said.append(f"{name}: median {what} {a:.4g} -> {b:.4g}")
        a, b = (max(r.error for r in runs) for runs in (old, new))
        if b > ERROR * max(a, EXACT):
            said.append(f"{name}: largest error {a:.2g} -> {b:.2g}")
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="name the targets, and end")
    parser.add_argument("--only", action="append", default=[], help="targets whose name has this")
    parser.add_argument("--part", default="1/1", help="i/n: every n-th target, from the i-th on")
    parser.add_argument("--seeds", type=int, default=1, help="of each target; one is digests")
    parser.add_argument("--out", type=Path, default=Path("envelope.json"), help="what was asked")
    parser.add_argument("--against", type=Path, help="an earlier run's --out")
    options = parser.parse_args()
    i, n = map(int, options.part.split("/"))
    only = options.only or [""]
    chosen = [t for t in TARGETS[i - 1 :: n] if any(part in t.name for part in only)]
    if options.list:
        print("\n".join(target.name for target in chosen))
        return
    runs = runs_of(chosen, options.seeds, options.out)
    if options.against is None:
        return
    before = {k: v for k, v in read(options.against).items() if k in runs}
    said = unequal(before, runs) if options.seeds == 1 else worse(before, runs)
    print("\n".join(said) or f"{len(before)} runs hold")
    sys.exit(bool(said) or not before)


if __name__ == "__main__":
    main()
