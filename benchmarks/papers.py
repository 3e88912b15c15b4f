"""Figures that papers print, in the papers' own terms, with ours beside each.

    python benchmarks/papers.py             print the table: measured rows, and kept ones quoted
    python benchmarks/papers.py --quick     one network a measured row, ten seconds each
    python benchmarks/papers.py --write     keep it
    python benchmarks/papers.py --results FILE   go on where an earlier run stopped

A printed line says what its figure counts: the attacks of the field recover a layer's signatures
(rows up to sign and scale), then the signs, then the last layer, and many figures are of one of
these stages.  Ours are end to end: every query of every network, failed ones counted.  Rows that
other tables have measured are quoted from results/, with the command that measures them again.

A second table says for which stage ours asked: where a query comes from says it, by the module of
the search, and the phase of the ledger.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from page import RESULTS, once, present

import revelu
from revelu.oracle import Oracle
from revelu.types import FloatArray

FIRST_SEED = 71_000_000
# Of computing, for each network that is measured here.
MAX_SECONDS = 60.0
QUICK_SECONDS = 10.0


@dataclass(frozen=True)
class Printed:
    """What a publication prints of a target.

    Attributes
    ----------
    by : str
        Authors and year; the page has the publications in full.
    told : bool
        Whether the attack is given the widths.
    counts : str
        The stage that queries and time are of.
    queries, seconds, outcome : str
        As printed; ``-`` where nothing is.
    program : str
        What could be run of theirs here.
    """

    by: str
    told: bool
    counts: str
    queries: str = "-"
    seconds: str = "-"
    outcome: str = "-"
    program: str = "not run"


@dataclass(frozen=True)
class Target:
    """A network that papers print figures of.

    Attributes
    ----------
    name : str
        Its widths, or what is known of them.
    printed : tuple of Printed
    kept : str
        Where ours is kept: the table of results/, whose row has this name, and the columns of
        networks, of those that came back, of queries (a power of 2, or queries a parameter) and
        of seconds.
    widths : tuple of int
        Of what is measured here instead.
    """

    name: str
    printed: tuple[Printed, ...]
    kept: tuple[str, ...] = ()
    widths: tuple[int, ...] = ()
    n_networks: int = 3


CARLINI = "Carlini et al. 2020"
END_TO_END = "end to end"
ON_NO_INDEX = "public, on no package index; not run"
A_LAYER = "public, a layer at a time; not run"
CARLINI_KEPT = ("carlini20", "networks", "certified", "queries, median", "CPU s, median")
DEEP_KEPT = (
    *("deep", "networks", "exact"),
    *("queries / parameter, median, most", "CPU seconds, median, most"),
)
LABELS_KEPT = (
    *("labels", "networks", "recovered"),
    *("queries / parameter, median, most (bar)", "CPU seconds, median, most (bar)"),
)


def _carlini(name: str, queries: str, outcome: str, seconds: str = "-") -> Target:
    line = Printed(CARLINI, True, END_TO_END, queries, seconds, outcome, ON_NO_INDEX)
    return Target(name, (line,), kept=CARLINI_KEPT)


TARGETS = (
    _carlini("784-32-1", "2^19.2 ‡", "weights to 2^-30.2 ‡"),
    _carlini("784-128-1", "2^21.5", "function to 2^-25", "under an hour"),
    _carlini("10-10-10-1", "2^16.0 ‡", "weights to 2^-36.0 ‡"),
    _carlini("10-20-20-1", "2^17.1 ‡", "weights to 2^-37.0 ‡"),
    _carlini("80-40-20-1", "2^18.5", "function to 2^-40.4"),
    Target(
        "40-20-10-10-1",
        (
            Printed(
                CARLINI,
                True,
                END_TO_END,
                "2^17.8 ‡",
                outcome="weights to 2^-27.1 ‡",
                program=ON_NO_INDEX,
            ),
        ),
        kept=DEEP_KEPT,
    ),
    Target(
        "784-8-8-1",
        (
            Printed(
                "Kurian and Aysu 2025, trained on MNIST",
                True,
                "layer 1 alone",
                "2^16.1 §",
                "525 §",
                "layer 1 §",
                A_LAYER,
            ),
        ),
        widths=(784, 8, 8, 1),
    ),
    Target(
        "784-32-16-10, trained on MNIST",
        (
            Printed(
                "Foerster et al. 2024, of 16,721 parameters",
                True,
                END_TO_END,
                seconds="5,880",
                outcome="two hidden layers, trained on MNIST",
                program=A_LAYER,
            ),
        ),
        kept=DEEP_KEPT,
    ),
    Target(
        "784-8x8-1",
        (
            Printed(
                "Liu et al. 2026, trained on CIFAR-10",
                True,
                "signatures, layer by layer",
                outcome="eight layers, each to 95% of the input space",
            ),
        ),
        widths=(784, *[8] * 8, 1),
        n_networks=2,
    ),
    Target(
        "784-32-10 trained on MNIST",
        (
            Printed(
                "Chen et al. 2024, of 100,000 parameters, labels",
                True,
                END_TO_END,
                seconds="several hours",
                outcome="one core",
            ),
        ),
        kept=LABELS_KEPT,
    ),
)

# Networks of which stages are counted, and how many of each.
STAGED = (
    *((784, 32, 1), (784, 128, 1), (10, 10, 10, 1), (10, 20, 20, 1), (80, 40, 20, 1)),
    *((40, 20, 10, 10, 1), (784, 8, 8, 1)),
)
N_STAGED = 5

# Stages by what asks, from the innermost on; what else a search asks is for signatures.
SIGNS = ("revelu.recover.signs", "revelu.recover.deep.layer_rows")
LAST = (
    *("revelu.recover.deep.output_layer", "revelu.recover.deep.answers"),
    *("revelu.recover.deep.climb", "revelu.recover.refine"),
)
STAGES = ("signatures", "signs", "last layer and fits", "noise", "repairs", "certificate")
BY_PHASE = {"noise": "noise", "repair": "repairs", "verify": "certificate"}

HEAD_OF_STAGES = (
    "| target | widths told | networks | failed | "
    + " | ".join(STAGES)
    + " | all | printed, of all |\n"
    + "|---" * 12
    + "|"
)

HEAD = (
    "| target | by | widths told | what is counted | networks | failed | queries | seconds "
    "| outcome | again, or what could be run |\n" + "|---" * 10 + "|"
)


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    status: str
    queries: int
    cpu: float
    error: float


def one(widths: tuple[int, ...], seed: int, seconds: float) -> Run:
    """Extract one network with its widths told, and hold it against its truth."""
    truth = revelu.zoo.random_network(list(widths), seed=seed)
    oracle = Oracle(truth, widths[0], max_seconds=seconds, clock=time.process_time)
    cpu = time.process_time()
    found = revelu.extract(oracle, seed=seed, widths=widths)
    cpu = time.process_time() - cpu
    is_alike = found.network is not None and found.network.architecture == widths
    error = revelu.align(found.network, truth).max_parameter_error if is_alike else np.inf
    return Run(found.status.value, found.ledger.n_queries, cpu, min(error, 1e300))


class Staged:
    """A target that counts for which stage it is asked."""

    def __init__(self, truth: revelu.Network, seconds: float) -> None:
        self.truth, self.counts = truth, Counter[str]()
        self.oracle = Oracle(self._ask, truth.dim_in, max_seconds=seconds, clock=time.process_time)

    def _ask(self, X: FloatArray) -> FloatArray:
        self.counts[self._stage()] += len(X)
        return self.truth(X)

    def _stage(self) -> str:
        phase = self.oracle.current_phase
        if phase in BY_PHASE:
            return BY_PHASE[phase]
        frame = sys._getframe(2)  # noqa: SLF001 - what asks is on the stack alone
        while frame.f_back is not None:
            name = frame.f_globals.get("__name__", "")
            if name.startswith((*SIGNS, *LAST)):
                return "signs" if name.startswith(SIGNS) else "last layer and fits"
            if name.startswith("revelu.recover."):
                break
            frame = frame.f_back
        return "last layer and fits" if phase == "polish" else "signatures"


def staged(widths: tuple[int, ...], seed: int, seconds: float) -> dict[str, object]:
    """Extract one network, its widths not told, and count its queries by stage."""
    target = Staged(revelu.zoo.random_network(list(widths), seed=seed), seconds)
    found = revelu.extract(target.oracle, seed=seed)
    counts = {stage: target.counts[stage] for stage in STAGES}
    if sum(counts.values()) != found.ledger.n_queries:
        raise ValueError(f"{widths}, seed {seed}: queries without a stage")
    return {"status": found.status.value, **counts}


def stages(widths: tuple[int, ...], runs: list[dict[str, object]]) -> str:
    """Render a line of stages; medians of the networks that came back."""
    done = [run for run in runs if run["status"] == "recovered"]
    counts = np.array([[run[stage] for stage in STAGES] for run in done or runs], dtype=float)
    name = "-".join(map(str, widths))
    (told,) = [said for target in TARGETS if target.name == name for said in target.printed]
    return _line(
        name,
        "no",
        f"{len(runs)}",
        f"{len(runs) - len(done)}",
        *map(_power, np.median(counts, axis=0)),
        _power(np.median(counts.sum(axis=1))),
        f"{told.queries} ({told.counts})",
    )


def _power(n: float) -> str:
    return f"2^{np.log2(n):.1f}" if n >= 1.0 else "0"


def measured(target: Target, runs: list[Run]) -> str:
    """Render a line of ours that was measured here."""
    done = [run for run in runs if run.status == "recovered"]
    counted = done or runs
    queries = np.log2(np.median([run.queries for run in counted]))
    outcome = f"weights to 2^{np.log2(max(run.error for run in done)):.1f}" if done else "nothing"
    return _line(
        target.name,
        "revelu",
        "yes",
        f"{END_TO_END}, with the certificate",
        f"{len(runs)}",
        f"{len(runs) - len(done)}",
        f"2^{queries:.1f}",
        f"{np.median([run.cpu for run in counted]):.1f}",
        outcome,
        "`revelu bench papers`",
    )


def quoted(target: Target) -> str:
    """Render a line of ours from results/, as it was kept."""
    table, *columns = target.kept
    content = json.loads((RESULTS / f"{table}.json").read_text(encoding="utf-8"))
    (cells,) = (
        dict(zip(part["columns"], cells, strict=True))
        for part in content["tables"]
        for cells in part["rows"]
        if cells[0] == target.name and not {"printed", "revelu, polished"} & {*cells}
    )
    networks, came_back, queries, cpu = (cells[column] for column in columns)
    n, n_done = int(networks), int(came_back.split()[0])
    if not queries.startswith("2^"):
        a_parameter = float(queries.split(",")[0])
        size = int(cells["parameters"].replace(",", "")) if "parameters" in cells else _size(target)
        queries = f"2^{np.log2(a_parameter * size):.1f}"
    return _line(
        target.name,
        "revelu",
        "no",
        END_TO_END,
        f"{n}",
        f"{n - n_done}",
        queries,
        cpu.split(",")[0],
        "certified" if table == "carlini20" else f"{columns[1]}",
        f"`revelu bench {table}`",
    )


def _size(target: Target) -> int:
    """Parameters of a network that is named by its widths."""
    widths = [int(width) for width in re.findall(r"\d+", target.name)]
    return sum((m + 1) * k for m, k in pairwise(widths))


def printed(target: Target) -> Iterator[str]:
    """Render what is printed of a target."""
    for said in target.printed:
        yield _line(
            target.name,
            f"printed: {said.by}",
            "yes" if said.told else "no",
            said.counts,
            *("-", "-"),
            said.queries,
            said.seconds,
            said.outcome,
            said.program,
        )


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one network a measured row")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--results", type=Path, help="where the runs are, and are added")
    parser.add_argument("--tables", type=Path, help="write the table here, as JSON")
    parser.add_argument("--write", action="store_true", help="keep it on its page and in results/")
    options = parser.parse_args()
    seconds = QUICK_SECONDS if options.quick else MAX_SECONDS
    text = [HEAD]
    for target in TARGETS:
        if target.widths:
            n = 1 if options.quick else target.n_networks
            runs = [
                Run(
                    **once(
                        options.results,
                        target.name,
                        seed,
                        lambda seed, target=target: asdict(one(target.widths, seed, seconds)),
                    )
                )
                for seed in range(options.first_seed, options.first_seed + n)
            ]
            text.append(measured(target, runs))
        else:
            text.append(quoted(target))
        text += printed(target)
        print(text[-1], file=sys.stderr, flush=True)
    text += ["", HEAD_OF_STAGES]
    for widths in STAGED:
        runs = [
            once(
                options.results,
                f"stages of {'-'.join(map(str, widths))}",
                seed,
                lambda seed, widths=widths: staged(widths, seed, seconds),
            )
            for seed in range(
                options.first_seed, options.first_seed + (1 if options.quick else N_STAGED)
            )
        ]
        text.append(stages(widths, runs))
        print(text[-1], file=sys.stderr, flush=True)
    note = (
        "Queries are medians of the networks that came back, or of all where none did. *printed*: "
        "as the publication says, not run here; ‡ quoted second-hand from its table, § from the "
        "log in its repository.\n\n"
        f"revelu {revelu.__version__}, NumPy {np.__version__}, measured rows with seeds from "
        f"{options.first_seed}, {seconds:.0f} CPU s at most each."
    )
    present("papers", "\n".join(text) + f"\n\n{note}", write=options.write, tables=options.tables)


if __name__ == "__main__":
    main()
