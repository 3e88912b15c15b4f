"""The advice of audits against what each row shows that is attacked alone until it ends.

Twenty small targets that had no part in making the audit.  Each is audited as the command does it,
rows that coarser ones tell of left out; then every kind of answers is attacked by itself, with up
to three other seeds, another draw of the noise and no share of any time, and what follows of these
rows is put beside the audit's conclusion.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

import revelu
from revelu.numerics.links import NONE, SOFTMAX
from revelu.oracle import Float32, Labels, Oracle, Rounded, degrade, softmax
from revelu.tasks.audit.advice import Conclusion, concluded
from revelu.tasks.audit.attack import Finding, Limits, attack, explains
from revelu.tasks.audit.audit import joined
from revelu.tasks.audit.defences import Defence, defences
from revelu.tasks.audit.rows import NETWORK, ORDER, AuditRow, Reference

FIRST_SEED = 36_000_000

# Seconds of computing for each attack on its own: more than any needs to come to its end.
ALONE = 600.0

HEAD = "| | target | advice | attacked alone | rows alike | agree | CPU s, audit and alone |"

Made = tuple[str, Callable[[Any], Any], int]


def targets() -> list[Callable[[int], Made]]:
    """The twenty, each from its seed: name, what is asked, number of inputs."""

    def zoo(*widths: int, kind: str = "random") -> Callable[[int], Made]:
        words = "" if kind == "random" else f", {kind.replace('_', ' ')}"
        name = "-".join(map(str, widths)) + words
        return lambda seed: (name, revelu.zoo.KINDS[kind](list(widths), seed=seed), widths[0])

    def behind(*widths: int, words: str, how: Any) -> Callable[[int], Made]:
        def make(seed: int) -> Made:
            truth = revelu.zoo.random_network(list(widths), seed=seed)
            return f"{'-'.join(map(str, widths))}, {words}", how(truth), widths[0]

        return make

    def probabilities(truth: revelu.Network) -> Callable[[Any], Any]:
        return lambda X: softmax(truth(X))

    def random_answers(seed: int) -> Made:
        return "5-3, random answers", revelu.zoo.OUTSIDE["random_answers"]([5, 3], seed=seed), 5

    return [
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
        random_answers,
    ]


def alone(made: Made, defence: Defence, known: Reference, seed: int, tries: int = 3) -> AuditRow:
    """What attacks on one kind of answers find at best that share their time with none."""
    row = once(made, defence, known, seed)
    for i in range(1, tries):
        if row.recovered in NETWORK or defence.leaves == "top":
            break
        row = max(row, once(made, defence, known, seed + i), key=lambda r: ORDER.index(r.recovered))
    return row


def once(made: Made, defence: Defence, known: Reference, seed: int) -> AuditRow:
    """What one attack finds."""
    _, ask, dim_in = made
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


def one(place: int, first_seed: int = FIRST_SEED) -> str:
    """Audit one target, and attack each kind of its answers alone."""
    seed = first_seed + place
    made = targets()[place](seed)
    name, ask, dim_in = made
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
    cells = [f"{place}", name, words(said), words(follows), alike, agrees, took]
    line = f"| {' | '.join(cells)} |"
    print(line, flush=True)
    return line
