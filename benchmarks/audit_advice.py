"""The advice of audits against what each row shows that is attacked alone until it ends.

Twenty small targets that had no part in making the audit.  Each is audited as the command does it,
rows that coarser ones tell of left out; then every kind of answers is attacked by itself, with up
to three other seeds, another draw of the noise and no share of any time, and what follows of these
rows is put beside the audit's conclusion.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from runner import Line, shape

import revelu
from revelu.numerics.links import NONE, SOFTMAX
from revelu.oracle import Float32, Labels, Oracle, Rounded, degrade, softmax
from revelu.tasks.audit.attack import Finding, Limits, attack, explains
from revelu.tasks.audit.conclusion import Conclusion, concluded
from revelu.tasks.audit.defences import Defence, defences
from revelu.tasks.audit.reference import Reference
from revelu.tasks.audit.rows import NETWORK, ORDER, AuditRow
from revelu.tasks.audit.searches import joined

# Seconds of computing for each attack on its own: more than any needs to come to its end.
ALONE = 600.0

# What is asked, and its number of inputs; made of a seed.
Asked = tuple[Callable[[Any], Any], int]
Made = tuple[str, Callable[[int], Asked]]


def zoo(*widths: int, kind: str = "random") -> Made:
    """One of the zoo."""
    words = "" if kind == "random" else f", {kind.replace('_', ' ')}"
    make = revelu.zoo.KINDS[kind]
    return shape(widths) + words, lambda seed: (make(list(widths), seed=seed), widths[0])


def behind(*widths: int, words: str, how: Callable[[revelu.Network], Any]) -> Made:
    """One whose answers are degraded."""

    def make(seed: int) -> Asked:
        return how(revelu.zoo.random_network(list(widths), seed=seed)), widths[0]

    return f"{shape(widths)}, {words}", make


def probabilities(truth: revelu.Network) -> Callable[[Any], Any]:
    """Answer probabilities in place of logits."""
    return lambda X: softmax(truth(X))


def random_answers(seed: int) -> Asked:
    """What has no law."""
    return revelu.zoo.OUTSIDE["random_answers"]([5, 3], seed=seed), 5


TARGETS: tuple[Made, ...] = (
    zoo(6, 3, 1),
    zoo(8, 4, 1),
    zoo(12, 5, 1),
    zoo(4, 2, 2),
    zoo(5, 3, 3),
    zoo(8, 4, 3),
    zoo(10, 3, 4),
    zoo(16, 4, 5),
    zoo(20, 5, 3),
    zoo(3, 5, 2),
    zoo(9, 5, 3, kind="dead_neurons"),
    zoo(7, 4, kind="affine"),
    zoo(6, 1, kind="affine"),
    behind(8, 3, 3, words="probabilities", how=probabilities),
    behind(6, 2, 2, words="probabilities", how=probabilities),
    behind(8, 4, 1, words="float32", how=lambda f: degrade(f, Float32())),
    behind(8, 4, 3, words="3 digits", how=lambda f: degrade(f, Rounded(3))),
    behind(10, 3, 1, words="2 digits", how=lambda f: degrade(f, Rounded(2))),
    behind(10, 3, 3, words="labels", how=lambda f: degrade(f, Labels())),
    ("5-3, random answers", random_answers),
)


def alone(made: Asked, defence: Defence, known: Reference, seed: int, tries: int = 3) -> AuditRow:
    """What attacks on one kind of answers find at best that share their time with none."""
    row = once(made, defence, known, seed)
    for i in range(1, tries):
        if row.recovered in NETWORK or defence.leaves == "top":
            break
        row = max(row, once(made, defence, known, seed + i), key=lambda r: ORDER.index(r.recovered))
    return row


def once(made: Asked, defence: Defence, known: Reference, seed: int) -> AuditRow:
    """What one attack finds."""
    ask, dim_in = made
    oracle = Oracle(degrade(ask, *defence.degradations), dim_in)

    def likeness(found: Finding) -> float | None:
        return None if found.copy is None else known.likeness(found.copy, found.classes)

    def attacked(leaves: str) -> AuditRow:
        found = attack(
            oracle,
            oracle,
            leaves,
            Limits(ALONE, None),
            seed,
            lambda found: explains(likeness(found)),
            lambda _event: None,
        )
        return AuditRow(defence.name, found.kind(likeness(found)), cut=found.cut)

    row = attacked(defence.leaves)
    return joined(row, attacked("labels")) if defence.leaves == "label" else row


def words(found: Conclusion) -> str:
    """A conclusion as the table has it."""
    return found.kind if found.best is None else f"{found.best.defence} {found.kind}"


def level(row: AuditRow) -> str:
    """Whether there was a network, a span or nothing."""
    return "network" if row.recovered in NETWORK else row.recovered


@dataclass(frozen=True)
class Advised:
    """A line: one of the targets."""

    place: int
    networks: int = 1

    @property
    def name(self) -> str:
        """The target's, told from those of the other table."""
        return f"advice, {TARGETS[self.place][0]}"


def one(row: Advised, seed: int, _limit: float | None) -> Line:
    """Audit one target, and attack each kind of its answers alone."""
    name, make = TARGETS[row.place]
    made = ask, dim_in = make(seed)
    cpu = [time.process_time()]
    found = revelu.audit(ask, dim_in=dim_in, seed=seed)
    cpu.append(time.process_time())
    X = np.random.default_rng(seed).standard_normal((1000, dim_in))
    Y = np.asarray(ask(X)).reshape(1000, -1)
    is_classifier = found.facts["answers"] == "probabilities"
    known = Reference(X, Y, SOFTMAX if is_classifier else NONE)
    listed = defences(known.deviation, Y.shape[1], seed + 1, probabilities=is_classifier)
    tried = [alone(made, defence, known, seed + 1000) for defence in listed]
    # What a defence costs is no matter of attacks.
    rows = [
        replace(row, labels_kept=said.labels_kept, shift=said.shift)
        for row, said in zip(tried, found.rows, strict=True)
    ]
    cpu.append(time.process_time())
    said, follows = concluded(found.rows, Y.shape[1]), concluded(rows, Y.shape[1])
    pairs = list(zip(found.rows, rows, strict=True))
    others = [f"{a.defence}: {level(a)}, {level(b)}" for a, b in pairs if level(a) != level(b)]
    alike = "; ".join([f"{len(rows) - len(others)} of {len(rows)}", *others])
    agrees = "yes" if words(said) == words(follows) else "NO"
    agrees = "inconclusive" if said.kind == "inconclusive" else agrees
    if any(row.cut for row in rows):
        agrees += ", alone cut"
    took = " and ".join(f"{b - a:.0f}" for a, b in pairwise(cpu))
    return {
        "": f"{row.place}",
        "target": name,
        "advice": words(said),
        "attacked alone": words(follows),
        "rows alike": alike,
        "agree": agrees,
        "CPU s, audit and alone": took,
    }


def note(found: Mapping[Advised, list[Line]]) -> str:
    """How many agree."""
    agree = sum(runs[0]["agree"] == "yes" for runs in found.values())
    return f"{agree} of {len(found)} agree."
