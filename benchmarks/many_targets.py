"""Ten thousand targets: none may be silently wrong, hang, or raise what is no ReveluError.

    python benchmarks/many_targets.py --results runs.jsonl --seconds 600   # again for more
    python benchmarks/many_targets.py --results runs.jsonl --write         # the rest, the table

Target i is drawn from seed i alone: any kind of the zoo, in the class or outside it, 1 to 100
inputs, 0 to 60 neurons, 1 to 12 outputs, at times in units of up to 1e12 or down to 1e-12,
with hyperplanes as near as 1e-12 and as far as 1e6.  Nothing but the target is given.

Wrong and silent: called recovered, while of 4,000 fresh inputs more differ by over the
certificate's tolerance than twice what it allows.  Hung: over 120 CPU seconds.  Warnings count
as crashes.
"""

import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from runner import Line, Named, Table, main

import revelu
from revelu.errors import ReveluError
from revelu.network import zoo
from revelu.types import FloatArray

CPU_LIMIT = 120.0

# Fresh inputs, and how many times the certificate's share of them may be off.
N_FRESH = 4_000
SLACK = 2.0

FAULTS = ("wrong and silent", "hung", "crashed")

Function = Callable[[np.ndarray], np.ndarray]
Check = Callable[[revelu.Recovery], str]
Attack = Callable[[int], dict[str, object]]


class HungError(BaseException):
    """The CPU seconds allowed are over; nothing in the library may catch it."""


@dataclass(frozen=True)
class Target:
    """What is asked, and how it was made."""

    kind: str
    widths: tuple[int, ...]
    function: Function
    input_scale: float = 1.0
    output_scale: float = 1.0

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Answer, in the units drawn."""
        return self.output_scale * self.function(X / self.input_scale)


def draw(seed: int) -> Target:
    """The target of a seed."""
    rng = np.random.default_rng(seed)
    d = int(np.rint(np.exp(rng.uniform(0.0, np.log(100.0)))))
    m = max(int(np.rint(np.exp(rng.uniform(np.log(0.5), np.log(60.4))))), 1)
    k = int(rng.choice([1, 1, 2, 3, int(rng.integers(4, 13))]))
    kinds = [*zoo.KINDS, "two_hidden", *zoo.OUTSIDE]
    while True:
        kind = str(rng.choice(kinds))
        try:
            function = _function(kind, (d, m, k), rng)
        except revelu.InputError:  # the layer is too narrow for this kind
            continue
        break
    scales = [1.0, 1.0]
    if rng.random() < 0.3:
        scales[int(rng.integers(2))] = 10.0 ** rng.uniform(-12.0, 12.0)
    return Target(kind, (d, m, k), function, *scales)


def _function(kind: str, widths: tuple[int, int, int], rng: np.random.Generator) -> Function:
    """A function of that kind; what makes it hard is drawn, too."""
    d, m, k = widths
    seed = int(rng.integers(2**31))
    if kind in zoo.OUTSIDE:
        return zoo.OUTSIDE[kind]([d, m, k], seed=seed)
    if kind == "two_hidden":
        first = min(m, d)
        return zoo.random_network([d, first, int(rng.integers(1, 21)), k], seed=seed)
    if kind in {"affine", "constant"}:  # no neuron
        return zoo.KINDS[kind]([d, k], seed=seed)
    if kind == "sign_ambiguous":
        return zoo.sign_ambiguous(min(max(d, 2), 40), seed=seed)
    gap = 10.0 ** rng.uniform(-12.0, -1.0)
    options = {
        "near_duplicates": {"gap": gap},
        "close_kinks": {"gap": gap},
        "cancelling_pairs": {"gap": gap},
        "tiny_weights": {"size": gap},
        "clusters": {"angle": gap},
        "bumps": {"width": 10.0 ** rng.uniform(-5.0, 0.0)},
        "far_biases": {"scale": 10.0 ** rng.uniform(0.0, 6.0)},
    }
    return partial(zoo.KINDS[kind], **options.get(kind, {}))([d, m, k], seed=seed)


def dim_in(target: Target) -> int:
    """How many inputs it has."""
    function = target.function
    return function.dim_in if isinstance(function, revelu.Network) else target.widths[0]


def one(seed: int) -> dict[str, object]:
    """Extract one target and judge what came back."""
    return judged(draw(seed), seed)


def judged(
    target: Target, seed: int, also: Check | None = None, **options: Any
) -> dict[str, object]:
    """Extract a target and judge what came back; ``also`` names a fault of another kind."""
    run: dict[str, object] = {
        "seed": seed,
        "kind": target.kind,
        "widths": target.widths,
        "scales": [target.input_scale, target.output_scale],
    }
    cpu = time.process_time()
    verdict = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            recovery = revelu.extract(target, dim_in=dim_in(target), seed=seed, **options)
        run["status"] = recovery.status.value
        run["queries"] = recovery.ledger.n_queries
        if recovery.status is revelu.Status.RECOVERED and (share := _wrong(recovery, target, seed)):
            verdict = "wrong and silent"
            run["share"] = share
        elif also is not None:
            verdict = also(recovery)
    except ReveluError as error:
        run["status"] = f"{type(error).__name__}: {error}"[:200]
    except HungError:
        verdict = "hung"
    except Exception:  # noqa: BLE001 - what is looked for
        verdict = "crashed"
        run["traceback"] = traceback.format_exc()[-1500:]
    run["verdict"] = verdict
    run["cpu"] = round(time.process_time() - cpu, 2)
    return run


def _wrong(recovery: revelu.Recovery, target: Target, seed: int) -> float:
    """The share of fresh inputs that differ, where it is more than was certified; else 0."""
    if recovery.network is None:
        return 1.0
    X = np.random.default_rng([seed, 1]).standard_normal((N_FRESH, recovery.network.dim_in))
    return wrong_share(recovery, X, target(X).reshape(N_FRESH, -1))


def wrong_share(recovery: revelu.Recovery, X: FloatArray, Y: FloatArray) -> float:
    """The share of inputs whose answers differ, where it is more than was certified; else 0."""
    certificate, network = recovery.certificate, recovery.network
    if certificate is None or network is None:
        return 1.0
    errors = np.abs(network(X) - Y).max(axis=1)
    share = float((errors > certificate.tolerance).mean())
    allowed = 1.0 - (1.0 - certificate.confidence) ** (1.0 / max(certificate.n_checks, 1))
    return share if share > SLACK * allowed else 0.0


def limit_cpu(seconds: float) -> None:
    """Raise HungError when the process has computed for so long; 0 takes the limit back."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGVTALRM, _hung)
        # Again and again: what is raised while an object is finalised is lost.
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0 if seconds else 0.0)


def _hung(*_: object) -> None:
    raise HungError


def within_limit(
    _row: Named, seed: int, limit: float | None = CPU_LIMIT, one: Attack = one
) -> dict[str, object]:
    """Attack one target, for so many CPU seconds at most."""
    limit_cpu(limit or 0.0)
    run = one(seed)
    limit_cpu(0.0)
    return run


def by_kind(
    found: Mapping[Named, list[dict[str, object]]], faults: Sequence[str] = FAULTS
) -> Iterator[Line]:
    """Count by kind."""
    runs = [run for some in found.values() for run in some]
    for kind in [*sorted({str(run["kind"]) for run in runs}), *(["all"] * bool(runs))]:
        rows = [r for r in runs if kind in ("all", r["kind"])]
        statuses = Counter(str(r.get("status", "")) for r in rows)
        known = {status: n for status, n in statuses.items() if status in set(revelu.Status)}
        others = "; ".join(
            f"{n} {status}" for status, n in sorted(known.items()) if status != "recovered"
        )
        cpu = [float(str(r["cpu"])) for r in rows]
        yield {
            "kind": kind,
            "targets": f"{len(rows):,}",
            "recovered": f"{statuses['recovered']:,}",
            "said to be something else, or left": others or "-",
            "refused": f"{sum(': ' in status for status in statuses.elements())}",
            **{fault: f"{sum(r['verdict'] == fault for r in rows)}" for fault in faults},
            "CPU s, median, largest": f"{np.median(cpu):.2f}, {max(cpu):.0f}",
        }


def table_of(
    mark: str,
    about: str,
    n_targets: int,
    one: Attack,
    first_seed: int,
    faults: Sequence[str] = FAULTS,
) -> Table[Named, dict[str, object]]:
    """The table of so many targets, each drawn from its seed, that are attacked by ``one``."""
    return Table(
        mark,
        about,
        [Named("targets", n_targets)],
        partial(within_limit, one=one),
        partial(by_kind, faults=faults),
        first_seed=first_seed,
        limit=CPU_LIMIT,
        note=lambda found: f"{sum(map(len, found.values())):,} of {n_targets:,} targets run.",
    )


TABLE = table_of("many_targets", __doc__, 10_000, one, 20_000_000)

if __name__ == "__main__":
    main(TABLE)
