"""The audit's verdicts against what extraction then does, and the time of a whole audit.

    python benchmarks/audit.py                    twenty targets (half an hour)
    python benchmarks/audit.py --quick            five of them, in a minute
    python benchmarks/audit.py --only 3 --only 7  these of them
    python benchmarks/audit.py --mnist            the audit of demo:mnist, row by row
    python benchmarks/audit.py ... --lines FILE   and keep the lines in FILE
    python benchmarks/audit.py --write FILE       put FILE on its page
    python benchmarks/audit.py --advice ...       the advice of twenty small targets instead

Of each target two rows are tried again, by ``extract`` and ``recover_span`` with another
seed and another draw of the noise: the answers as they are, and one defence, each in turn.
What is said to be weights is compared with the weights, and spans with spans.  Says nothing
and cut: it judges nothing, and does not count as agreeing, whatever the second try does.
"""

import argparse
import contextlib
import os
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import audit_advice
import numpy as np
from page import keep
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor

import revelu
from revelu.errors import LimitReachedError
from revelu.oracle import Float32, Labels, Oracle, Rounded, degrade, softmax
from revelu.tasks.audit import audit as audits
from revelu.tasks.audit.attack import is_known
from revelu.tasks.audit.defences import Defence, defences
from revelu.tasks.audit.rows import AuditRow

FIRST_SEED = 32_000_000

# Seconds of computing for an audit of a target, and for each search of a second try.
SECONDS, AGAIN = 90.0, 40.0
audits._Audit = partial(audits._Audit, seconds=SECONDS)  # noqa: SLF001

# These end soon.
QUICK = (2, 5, 12, 15, 17)

COPY, SPAN_ANGLE = 0.99, 0.01

HEAD = (
    "| | target | as it is: says, does | error of weights or span | defence tried "
    "| says, does | error of weights or span | agree | CPU s |"
)


@dataclass(frozen=True)
class Target:
    """A target, its inputs, and what is true of it."""

    name: str
    ask: Callable[[Any], Any]
    dim_in: int
    truth: Any = None


def network(widths: list[int], seed: int, kind: str = "random") -> revelu.Network:
    return revelu.zoo.KINDS[kind](widths, seed=seed)


def trained(task: str) -> Callable[[int], Target]:
    """A scikit-learn model, trained: a regressor, or a classifier that tells probabilities."""

    def make(seed: int) -> Target:
        load, width = TASKS[task]
        X, y = load()
        if classifies := np.issubdtype(y.dtype, np.integer):
            model = MLPClassifier(random_state=seed, max_iter=200, tol=1e-3, alpha=1.0)
        else:
            model = MLPRegressor(random_state=seed, max_iter=300, tol=1e-3)
            y = (y - y.mean()) / y.std()
        model.set_params(hidden_layer_sizes=(width,))
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        (W, A), (b, c) = ([a.T for a in model.coefs_], model.intercepts_)
        truth = revelu.Network([W, A], [b, c])
        ask = (lambda Z: softmax(truth(Z))) if classifies else truth
        shape = "-".join(map(str, truth.architecture))
        return Target(f"{shape}, trained on {task}", ask, X.shape[1], truth)

    return make


# Data that come with scikit-learn, and how many neurons to train on them.
TASKS: dict[str, tuple[Callable[[], Any], int]] = {
    "diabetes": (lambda: load_diabetes(return_X_y=True), 5),
    "wine": (lambda: load_wine(return_X_y=True), 6),
    "digits": (lambda: load_digits(return_X_y=True, n_class=3), 8),
}


def targets() -> list[Callable[[int], Target]]:
    """The twenty, each from its seed."""

    def zoo(widths: list[int], kind: str = "random") -> Callable[[int], Target]:
        def make(seed: int) -> Target:
            truth = network(widths, seed, kind)
            shown = "" if kind == "random" else f", {kind.replace('_', ' ')}"
            return Target(f"{'-'.join(map(str, widths))}{shown}", truth, widths[0], truth)

        return make

    def behind(widths: list[int], name: str, *how: Any) -> Callable[[int], Target]:
        def make(seed: int) -> Target:
            truth = network(widths, seed)
            shown = f"{'-'.join(map(str, widths))}, {name}"
            return Target(shown, degrade(truth, *how), widths[0], truth)

        return make

    def probabilities(seed: int) -> Target:
        truth = network([8, 4, 3], seed)
        return Target("8-4-3, probabilities", lambda X: softmax(truth(X)), 8, truth)

    def outside(kind: str, widths: list[int]) -> Callable[[int], Target]:
        def make(seed: int) -> Target:
            ask = revelu.zoo.OUTSIDE[kind](widths, seed=seed)
            truth = network(widths, seed) if kind == "tanh" else None
            return Target(f"{'-'.join(map(str, widths))}, {kind}", ask, widths[0], truth)

        return make

    return [
        trained("diabetes"),
        trained("wine"),
        zoo([20, 8, 5]),
        zoo([64, 16, 10]),
        zoo([10, 6, 1]),
        zoo([5, 12, 3]),
        zoo([10, 6, 5, 3]),
        zoo([12, 8, 6, 1]),
        zoo([20, 6, 5, 4, 3]),
        zoo([30, 5, 5, 5, 2]),
        zoo([10, 12, 3], "clusters"),
        zoo([9, 5, 3], "dead_neurons"),
        zoo([7, 4], "affine"),
        outside("tanh", [12, 3, 2]),
        outside("square", [6, 4]),
        outside("random_answers", [5, 3]),
        probabilities,
        behind([20, 4, 3], "labels", Labels()),
        behind([8, 4, 3], "float32, 3 digits", Float32(), Rounded(3)),
        trained("digits"),
    ]


def again(target: Target, defence: Defence, seed: int) -> tuple[str, bool]:
    """What extraction and the search for a span do behind a defence, and whether time ended it."""
    ask = degrade(target.ask, *defence.degradations)
    oracles: list[Oracle] = []

    def oracle() -> Oracle:
        oracles.append(Oracle(ask, target.dim_in, max_seconds=AGAIN, clock=time.process_time))
        return oracles[-1]

    if defence.leaves == "numbers":
        found: revelu.Recovery | None = None
        with contextlib.suppress(LimitReachedError):
            found = revelu.extract(oracle(), seed=seed, checks=1000)
        was_cut = is_over(oracles[0])
        if found is not None and found.status is revelu.Status.RECOVERED:
            return "network", False
        if found is not None and found.details.get("first_layer") is not None:
            return "span", was_cut
        rejected = None if found is None else found.details.get("rejected", found.network)
        details = {} if found is None else found.details
        if rejected is not None and fidelity(target, rejected, details) >= COPY:
            return "network", was_cut
    if defence.leaves == "label":
        found = revelu.extract(oracle(), labels=True, seed=seed, checks=1000)
        if found.certificate is not None and found.certificate.passed:
            return "network", False
    span = revelu.recover_span(oracle(), labels=defence.leaves == "label", seed=seed, checks=300)
    proper = 0 < span.span.rank < target.dim_in
    return "span" if proper and is_known(span) else "nothing", any(map(is_over, oracles))


def is_over(oracle: Oracle) -> bool:
    """Whether an oracle's time is over."""
    try:
        oracle.check_time()
    except LimitReachedError:
        return True
    return False


def fidelity(target: Target, copy: revelu.Network, details: Any) -> float:
    """Share of the variance of the undefended answers that a copy explains."""
    X = np.random.default_rng(7).standard_normal((4000, target.dim_in))
    Y, copied = target.ask(X), copy(X)
    if details.get("probabilities"):
        logits = copied if copied.shape[1] == Y.shape[1] else np.pad(copied, ((0, 0), (0, 1)))
        copied = softmax(logits)
    return float(1.0 - np.square(copied - Y).sum() / np.square(Y - Y.mean(axis=0)).sum())


def error(target: Target, row: AuditRow) -> float | None:
    """How far weights or a span are from the truth."""
    # Labels leave a factor open, and rows of outputs to which one number is added.
    if target.truth is None or row.finding is None or row.finding.classes:
        return None
    if row.recovered == "weights" and row.finding.copy is not None:
        truth, copy = target.truth, row.finding.copy
        if row.finding.network is not None and row.finding.network.details.get("probabilities"):
            truth, copy = (revelu.network.to_log_ratios(n) for n in (truth, copy))
        return float(revelu.align(copy, truth).max_parameter_error)
    span = row.finding.span
    if row.recovered == "span" and span is not None and span.span.rank:
        return float(span.span.angles(target.truth.weights[0]).max())
    return None


def one(place: int, first_seed: int) -> str:
    """Audit one target, and try two rows again."""
    seed = first_seed + place
    target = targets()[place](seed)
    cpu = time.process_time()
    found = revelu.audit(target.ask, dim_in=target.dim_in, seed=seed)
    X = np.random.default_rng(seed).standard_normal((1000, target.dim_in))
    Y = np.asarray(target.ask(X)).reshape(1000, -1)
    deviation = float(np.sqrt(Y.var(axis=0).mean()))
    probabilities = found.facts["answers"] == "probabilities"
    listed = defences(deviation, Y.shape[1], seed + 1, probabilities=probabilities)
    cells: list[str] = []
    ended = "yes"
    for i in (0, 1 + place % (len(listed) - 1)):
        row = next(r for r in found.rows if r.defence == listed[i].name)
        does, was_cut = again(target, listed[i], seed + 1000)
        says = "network" if row.recovered in {"weights", "function"} else row.recovered
        if row.cut and says == "nothing":
            # It says that it has not come to an end, and nothing else.
            ended = "cut" if ended == "yes" else ended
        elif says != does:
            ended = "NO"
        off = error(target, row)
        mark = ", cut" * row.cut + ", implied" * row.extrapolated
        words = f"{row.recovered}{mark}; {does}{', cut' * was_cut}"
        cells += [listed[i].name] * (i > 0)
        cells += [words, "-" if off is None else f"{off:.1e}"]
    cpu = time.process_time() - cpu
    line = f"| {place} | {target.name} | {' | '.join(cells)} | {ended} | {cpu:.0f} |"
    print(line, flush=True)
    return line


def mnist() -> list[str]:
    """The audit of demo:mnist, a line a row as it ends."""
    lines: list[str] = []
    began, last = time.process_time(), {"place": ""}

    def listen(event: Any) -> None:
        place = event.message.split(",")[0]
        if place != last["place"]:
            last["place"] = place
            print(f"{place}: {time.process_time() - began:.0f} CPU s", flush=True)

    wall = time.monotonic()
    found = revelu.audit("demo:mnist", seed=FIRST_SEED, progress=listen)
    cpu, wall = time.process_time() - began, time.monotonic() - wall
    for row in found.rows:
        parts = (row.fidelity, row.label_agreement)
        shown = " | ".join("-" if part is None else f"{part:.4%}" for part in parts)
        cut = ", cut" if row.cut else ""
        lines.append(f"| {row.defence} | {row.recovered}{cut} | {shown} | {row.queries:,} |")
    load = os.getloadavg()[0]
    lines.append(f"CPU seconds: {cpu:.0f}; {wall:.0f} s by the clock at a load of {load:.0f}.")
    print("\n".join(lines), flush=True)
    return lines


def advice(options: argparse.Namespace) -> None:
    """Print, or put on its page, the table of advice."""
    seed = audit_advice.FIRST_SEED if options.first_seed is None else options.first_seed
    if options.write is None:
        for place in options.only or range(len(audit_advice.targets())):
            append(options.lines, audit_advice.one(place, seed))
        return
    lines = options.write.read_text(encoding="utf-8").splitlines()
    lines = sorted(set(lines), key=lambda line: int(line.split("|")[1]))
    agree = sum("| yes |" in line for line in lines)
    table = "\n".join([audit_advice.HEAD, "|" + "---|" * 7, *lines])
    note = f"{agree} of {len(lines)} agree.  Seeds from {seed:,}."
    keep("advice", f"{table}\n\n{note}")


def append(path: Path | None, line: str) -> None:
    """Keep a line in a file, where one is wanted."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def main() -> None:
    """Print, and perhaps keep, the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, action="append", help="these targets, from 0")
    parser.add_argument("--quick", action="store_true", help="five of them, in a minute")
    parser.add_argument("--mnist", action="store_true", help="the audit of demo:mnist instead")
    parser.add_argument("--advice", action="store_true", help="what follows of small targets")
    parser.add_argument("--first-seed", type=int, default=None)
    parser.add_argument("--lines", type=Path, help="append the lines to this file")
    parser.add_argument("--write", type=Path, help="keep the lines of this file on the page")
    options = parser.parse_args()
    if options.advice:
        advice(options)
        return
    first_seed = FIRST_SEED if options.first_seed is None else options.first_seed
    if options.write:
        lines = sorted(
            set(options.write.read_text(encoding="utf-8").splitlines()),
            key=lambda line: int(line.split("|")[1]),
        )
        agree, cut = (sum(f"| {word} |" in line for line in lines) for word in ("yes", "cut"))
        nothing = sum("| cut |" in line and "; nothing" in line.split("|")[6] for line in lines)
        table = "\n".join([HEAD, "|" + "---|" * 9, *lines])
        versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
        counted = (
            f"{agree} of {len(lines)} agree in both rows; in {cut} an attack was cut and said so"
        )
        notes = [
            f"{counted}, and the second try found nothing in {nothing} of these.",
            f"{SECONDS:.0f} seconds an audit, {AGAIN:.0f} for each search of a second try.",
            f"Seeds from {FIRST_SEED:,}; {versions}, one BLAS thread.",
        ]
        keep("audit", f"{table}\n\n{'  '.join(notes)}")
        return
    if options.mnist:
        lines = mnist()
    else:
        lines = []
        for place in options.only or (QUICK if options.quick else range(len(targets()))):
            lines.append(one(place, first_seed))
            append(options.lines, lines[-1])


if __name__ == "__main__":
    main()
