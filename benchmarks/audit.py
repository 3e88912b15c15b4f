"""The audit's verdicts against what extraction then does, and the time of a whole audit.

    python benchmarks/audit.py                    twenty targets, and the advice of twenty others
    python benchmarks/audit.py --quick            five of them, in a minute
    python benchmarks/audit.py --table audit      without the advice
    python benchmarks/audit.py --row wine         rows whose name has this
    python benchmarks/audit.py --write            and keep them on their page

Of each target two rows are tried again, by ``extract`` and ``recover_span`` with another
seed and another draw of the noise: the answers as they are, and one defence, each in turn.
What is said to be weights is compared with the weights, and spans with spans.  Says nothing
and cut: it judges nothing, and does not count as agreeing, whatever the second try does.
"""

import contextlib
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import audit_advice
import numpy as np
from runner import Line, Table, by_row, main, shape
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

# Seconds of computing for an audit of a target, and for each search of a second try.
SECONDS, AGAIN = 90.0, 40.0
audits._Audit = partial(audits._Audit, seconds=SECONDS)  # noqa: SLF001

# These end soon.
QUICK = (2, 5, 12, 15, 17)

COPY, SPAN_ANGLE = 0.99, 0.01


@dataclass(frozen=True)
class Target:
    """A target, its inputs, and what is true of it."""

    ask: Callable[[Any], Any]
    dim_in: int
    truth: Any = None


def network(widths: list[int], seed: int, kind: str = "random") -> revelu.Network:
    return revelu.zoo.KINDS[kind](widths, seed=seed)


# A name, and what makes a target of a seed.
Made = tuple[str, Callable[[int], Target]]

# Data that come with scikit-learn, and the shape of what is trained on them.
TASKS: dict[str, tuple[Callable[[], Any], tuple[int, int, int]]] = {
    "diabetes": (lambda: load_diabetes(return_X_y=True), (10, 5, 1)),
    "wine": (lambda: load_wine(return_X_y=True), (13, 6, 3)),
    "digits": (lambda: load_digits(return_X_y=True, n_class=3), (64, 8, 3)),
}


def trained(task: str) -> Made:
    """A scikit-learn model, trained: a regressor, or a classifier that tells probabilities."""
    load, widths = TASKS[task]

    def make(seed: int) -> Target:
        X, y = load()
        if classifies := np.issubdtype(y.dtype, np.integer):
            model = MLPClassifier(random_state=seed, max_iter=200, tol=1e-3, alpha=1.0)
        else:
            model = MLPRegressor(random_state=seed, max_iter=300, tol=1e-3)
            y = (y - y.mean()) / y.std()
        model.set_params(hidden_layer_sizes=widths[1:-1])
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        (W, A), (b, c) = ([a.T for a in model.coefs_], model.intercepts_)
        truth = revelu.Network([W, A], [b, c])
        ask = (lambda Z: softmax(truth(Z))) if classifies else truth
        return Target(ask, X.shape[1], truth)

    return f"{shape(widths)}, trained on {task}", make


def zoo(*widths: int, kind: str = "random") -> Made:
    """One of the zoo."""

    def make(seed: int) -> Target:
        truth = network(list(widths), seed, kind)
        return Target(truth, widths[0], truth)

    return shape(widths) + ("" if kind == "random" else f", {kind.replace('_', ' ')}"), make


def behind(*widths: int, name: str, how: tuple[Any, ...]) -> Made:
    """One whose answers are degraded."""

    def make(seed: int) -> Target:
        truth = network(list(widths), seed)
        return Target(degrade(truth, *how), widths[0], truth)

    return f"{shape(widths)}, {name}", make


def probabilities(seed: int) -> Target:
    """One that answers probabilities."""
    truth = network([8, 4, 3], seed)
    return Target(lambda X: softmax(truth(X)), 8, truth)


def outside(kind: str, *widths: int) -> Made:
    """What is no network of ReLUs."""

    def make(seed: int) -> Target:
        ask = revelu.zoo.OUTSIDE[kind](list(widths), seed=seed)
        truth = network(list(widths), seed) if kind == "tanh" else None
        return Target(ask, widths[0], truth)

    return f"{shape(widths)}, {kind}", make


TARGETS = (
    trained("diabetes"),
    trained("wine"),
    zoo(20, 8, 5),
    zoo(64, 16, 10),
    zoo(10, 6, 1),
    zoo(5, 12, 3),
    zoo(10, 6, 5, 3),
    zoo(12, 8, 6, 1),
    zoo(20, 6, 5, 4, 3),
    zoo(30, 5, 5, 5, 2),
    zoo(10, 12, 3, kind="clusters"),
    zoo(9, 5, 3, kind="dead_neurons"),
    zoo(7, 4, kind="affine"),
    outside("tanh", 12, 3, 2),
    outside("square", 6, 4),
    outside("random_answers", 5, 3),
    ("8-4-3, probabilities", probabilities),
    behind(20, 4, 3, name="labels", how=(Labels(),)),
    behind(8, 4, 3, name="float32, 3 digits", how=(Float32(), Rounded(3))),
    trained("digits"),
)


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


@dataclass(frozen=True)
class Row:
    """A line: one of the targets."""

    place: int
    networks: int = 1

    @property
    def name(self) -> str:
        """The target's."""
        return TARGETS[self.place][0]


def one(row: Row, seed: int, _limit: float | None) -> Line:
    """Audit one target, and try two rows again."""
    place, (name, make) = row.place, TARGETS[row.place]
    target = make(seed)
    cpu = time.process_time()
    found = revelu.audit(target.ask, dim_in=target.dim_in, seed=seed)
    X = np.random.default_rng(seed).standard_normal((1000, target.dim_in))
    Y = np.asarray(target.ask(X)).reshape(1000, -1)
    deviation = float(np.sqrt(Y.var(axis=0).mean()))
    is_classifier = found.facts["answers"] == "probabilities"
    listed = defences(deviation, Y.shape[1], seed + 1, probabilities=is_classifier)
    tried = [listed[i] for i in (0, 1 + place % (len(listed) - 1))]
    cells: list[str] = []
    ended = "yes"
    for defence in tried:
        attacked = next(r for r in found.rows if r.defence == defence.name)
        does, was_cut = again(target, defence, seed + 1000)
        has_network = attacked.recovered in {"weights", "function"}
        says = "network" if has_network else attacked.recovered
        if attacked.cut and says == "nothing":
            # It says that it has not come to an end, and nothing else.
            ended = "cut" if ended == "yes" else ended
        elif says != does:
            ended = "NO"
        off = error(target, attacked)
        mark = ", cut" * attacked.cut + ", implied" * attacked.extrapolated
        cells.append(f"{attacked.recovered}{mark}; {does}{', cut' * was_cut}")
        cells.append("-" if off is None else f"{off:.1e}")
    return {
        "": f"{place}",
        "target": name,
        "as it is: says, does": cells[0],
        "error of weights or span": cells[1],
        "defence tried": tried[1].name,
        "says, does": cells[2],
        "error of weights or span then": cells[3],
        "agree": ended,
        "CPU s": f"{time.process_time() - cpu:.0f}",
    }


def line(_row: Row | audit_advice.Advised, runs: list[Line]) -> Line:
    """What one target gave."""
    return runs[0]


def note(found: Mapping[Row, list[Line]]) -> str:
    """How many agree, and what limits them."""
    lines = [runs[0] for runs in found.values()]
    agree, cut = (sum(line["agree"] == word for line in lines) for word in ("yes", "cut"))
    nothing = sum(line["agree"] == "cut" and "; nothing" in line["says, does"] for line in lines)
    return (
        f"{agree} of {len(lines)} agree in both rows; in {cut} an attack was cut and said so, and "
        f"the second try found nothing in {nothing} of these.  {SECONDS:.0f} seconds an audit, "
        f"{AGAIN:.0f} for each search of a second try."
    )


TABLE = Table(
    "audit",
    __doc__,
    [Row(place) for place in range(len(TARGETS))],
    one,
    by_row(line),
    first_seed=32_000_000,
    apart=1,
    named_by=2,
    quick=lambda row: row.place in QUICK,
    note=note,
)

ADVICE = Table(
    "advice",
    audit_advice.__doc__,
    [audit_advice.Advised(place) for place in range(len(audit_advice.TARGETS))],
    audit_advice.one,
    by_row(line),
    first_seed=36_000_000,
    apart=1,
    named_by=2,
    note=audit_advice.note,
)

if __name__ == "__main__":
    main(TABLE, ADVICE)
