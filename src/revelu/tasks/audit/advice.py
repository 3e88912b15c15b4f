"""What follows from an audit: which answers still serve, and how many may be asked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from revelu.tasks.audit.rows import NETWORK, AuditRow

_WORDS = {
    "weights": "the weights",
    "function": "a copy of the function",
    "span": "the span of the first layer",
    "nothing": "nothing by these attacks",
}

# Defences that leave no numbers to speak of.
WITHHELD = ("top-1 probability", "labels")

CAVEAT = (
    "what these attacks did not find, others may: a defence that holds here has been tried, "
    "not proved"
)


CHANGED = (
    "the target changed while it was audited, so that the rows are of no one model and nothing "
    "follows from them: audit it again, with a new journal"
)


NO_ONE_MODEL = (
    "the target answers as more than one model, so that the rows are of no one model and nothing "
    "follows from them: see that every request reaches the same model, and audit it again"
)


@dataclass(frozen=True)
class Conclusion:
    """What rows say of the defences that leave numbers.

    Attributes
    ----------
    kind : str
        ``nothing given`` by the answers as they are, ``helps``, ``none helps``, ``none serves``
        or ``inconclusive``.
    best : AuditRow or None
        The defence to take, where one helps.
    unknown : tuple of str
        Defences that decide, and whose attack was cut or not begun.
    undecided : AuditRow or None
        The answers as they are, where nothing was found that tells what they give away, as the
        target is none of the networks that are looked for, or it was not seen why an attack ended
        without one: no other row tells then what helps.
    """

    kind: str
    best: AuditRow | None = None
    unknown: tuple[str, ...] = ()
    undecided: AuditRow | None = None


def concluded(rows: Sequence[AuditRow], n_outputs: int, missing: Sequence[str] = ()) -> Conclusion:
    """Say which defence helps, from attacks that came to an end alone.

    Of the answers that still serve, those help that give away less than the answers as they are;
    weights and a copy of the function count as one.  A row that was cut may give away more than
    it shows, so that none with it is called the best, nor all others the worst.
    """
    if not rows:
        return Conclusion("inconclusive")
    first, usable = rows[0], [row for row in rows if serves(row, n_outputs)]
    is_open = first.not_in_class or (first.undecided and not first.cut)
    if first.recovered == "nothing" and is_open and not first.saturated:
        return Conclusion("inconclusive", undecided=first)
    if first.is_judged and first.recovered == "nothing":
        return Conclusion("nothing given")
    decisive = [first, *(row for row in usable if row is not first)]
    unknown = [_name(row) for row in decisive if not row.is_judged]
    unknown += [name for name in missing if name not in WITHHELD]
    if unknown:
        return Conclusion("inconclusive", unknown=tuple(unknown))
    if not usable:
        return Conclusion("none serves")
    # The last of equals: the list goes from fine to coarse.
    best = min(reversed(usable), key=_level)
    return Conclusion("helps", best) if _level(best) < _level(first) else Conclusion("none helps")


def _level(row: AuditRow) -> int:
    return ("nothing", "span").index(row.recovered) if row.recovered not in NETWORK else 2


def advice(
    rows: Sequence[AuditRow],
    n_outputs: int,
    data: str,
    missing: Sequence[str] = (),
    run_again: str = "",
    looks_like: str = "",
) -> tuple[str, ...]:
    """Say what to answer, and where a limit on queries has to lie.

    Parameters
    ----------
    data : str
        What the costs of defences were measured on.
    missing : sequence of str
        Defences that were not judged.
    run_again : str
        What would bring attacks to their end that were cut.
    looks_like : str
        What the target looks like where no network was found.
    """
    if not rows:
        return ()
    found = concluded(rows, n_outputs, missing)
    said = [_of_numbers(found, rows, n_outputs, data, run_again)]
    if found.undecided is not None:
        said = [_of_others(found.undecided, rows, looks_like)]
    classes = [row for row in rows if row.defence == "labels"]
    said += [_of_labels(row, rows[0]) for row in classes if n_outputs > 1 and not found.undecided]
    said += [_of_top(row) for row in rows[1:] if row.defence == WITHHELD[0] and _level(rows[0])]
    said.append(_limit(rows))
    if not found.undecided and (digits := _by_digits(rows)):
        said.append(digits)
    return (*said, CAVEAT)


def serves(row: AuditRow, n_outputs: int, *, kept: float = 0.999, shift: float = 0.01) -> bool:
    """Whether answers behind a defence still serve as numbers.

    Parameters
    ----------
    kept : float
        Of several outputs, the share of classes that has to stay.
    shift : float
        Of one output, the most that answers may shift by, over their deviation.
    """
    if row.shift is None:
        return False
    if n_outputs > 1:
        return row.labels_kept is not None and row.labels_kept >= kept
    return row.shift <= shift


def _of_numbers(
    found: Conclusion, rows: Sequence[AuditRow], n_outputs: int, data: str, run_again: str
) -> str:
    """Which answers cost callers least among those that give away least."""
    kept = "keep the class" if n_outputs > 1 else "keep to 1% of the deviation"
    match found.kind:
        case "nothing given":
            return f"the answers as they are give away {_WORDS['nothing']}: no defence is needed"
        case "none serves":
            return f"no answer of numbers was seen to {kept} on {data}"
        case "inconclusive":
            again = f": run again with {run_again}" if run_again else ""
            return f"inconclusive{again}; {_not_known(found.unknown, rows)}"
    if found.best is not None:
        best = found.best
        share = f"{best.labels_kept:.1%} of classes" if n_outputs > 1 else f"shift {best.shift:.1g}"
        return (
            f"of the answers that {kept} on {data}, {_name(best)} ({share}) give away the least: "
            f"{_WORDS[best.recovered]}{_mark(best)}"
        )
    if rows[0].finding is not None and rows[0].finding.classes:
        return (
            "no digits and no noise hide labels, for who rounds has these again: they give away "
            f"{_WORDS[rows[0].recovered]}"
        )
    return f"none of these numeric defences helps: {_what_all_give(rows, n_outputs, kept)}"


def _of_others(row: AuditRow, rows: Sequence[AuditRow], looks_like: str) -> str:
    """What attacks on networks say where they found none, and the best copy that they made."""
    seems = f"; it looks like {looks_like}" if looks_like else ""
    if row.not_in_class:
        said = (
            "not known: these attacks are those of ReLU networks, and the target is none that they "
            f"recover{seems}; copies trained on its answers were not tried, and a student may come "
            "near, for how many queries is not known here"
        )
    else:
        said = (
            "not known: the attack on the answers as they are ended without a network, which does "
            f"not show that there is none{seems}"
        )
    parts = [
        f"{share:.1%} {of}"
        for share, of in (
            (row.fidelity, "of the answers' variance"),
            (row.label_agreement, "of the classes"),
        )
        if share is not None and share > 0.0
    ]
    if not parts:
        return said
    source = row.at_least.get("fidelity", row.defence)
    made = next((r for r in rows if r.defence == source), row)
    cost = "" if made.queries is None else f", for {made.queries:,} queries"
    return f"{said}; a copy that explains {' and '.join(parts)} was made{cost}"


def so_far(found: Conclusion, rows: Sequence[AuditRow], n_outputs: int, run_again: str = "") -> str:
    """Say what is known where the rows do not tell which defence helps; empty where nothing is.

    What was found is given away whatever else was cut.  That a defence gives away less is said of
    attacks that came to their end, on it and on the answers as they are.
    """
    if found.kind != "inconclusive" or not rows or rows[0].recovered == "nothing":
        return ""
    first, *others = rows
    what = "every weight" if first.recovered == "weights" else _WORDS[first.recovered]
    least = "" if first.is_judged else " at least"
    parts = [f"the answers as they are give away {what}{least}{_mark(first)}"]
    # What gives away as much helps no one, whether its answers still serve or not.
    numeric = [row for row in others if row.defence not in WITHHELD]
    if first.is_judged and (vain := [r.defence for r in numeric if _level(r) >= _level(first)]):
        parts.append(f"{_listed(vain)} {'does' if _is_one(vain) else 'do'} not help")
    usable = [row for row in others if serves(row, n_outputs)]
    ended = [row for row in usable if first.is_judged and row.is_judged]
    less = [row for row in ended if _level(row) < _level(first)]
    parts += [f"{row.defence} {_verb([row.defence])} away {_WORDS[row.recovered]}" for row in less]
    unknown = "whether another helps more" if less else "which defence helps"
    again = f": run again with {run_again}" if run_again else ""
    return "; ".join([*parts, f"{unknown} is not known yet{again}"])


def _not_known(names: Sequence[str], rows: Sequence[AuditRow]) -> str:
    """Of which answers it is not known what they give away, and why."""
    blocked = {_name(row) for row in rows if row.saturated}
    reasons = {
        "the target is saturated where these were asked": [n for n in names if n in blocked],
        "attacks were cut or not made": [n for n in names if n not in blocked],
    }
    return "; ".join(
        f"what {_listed(those)} {_verb(those)} away is not known, for {reason}"
        for reason, those in reasons.items()
        if those
    )


def saturation(rows: Sequence[AuditRow], where: str, *, is_given: bool) -> str:
    """Warn of rows whose attack saw nothing; empty where there are none.

    Parameters
    ----------
    where : str
        What the inputs are drawn from, in words that follow "inputs".
    is_given : bool
        Whether that is a domain which was given.
    """
    names = [_name(row) for row in rows if row.saturated]
    if not names:
        return ""
    place = f"the inputs {where}" if is_given else "N(0, I)"
    other = "another domain" if is_given else "a domain"
    return (
        f"the target is saturated on {place}: {_listed(names)} tell no inputs apart there, and "
        f"what they would give away where it decides is not known; say by {other} where that is "
        "(--like DATA)"
    )


def _what_all_give(rows: Sequence[AuditRow], n_outputs: int, kept: str) -> str:
    """What numbers give away behind each defence, where none helps; and what labels leave."""
    usable = [row for row in rows if serves(row, n_outputs)]
    kinds = dict.fromkeys(_WORDS[row.recovered] for row in usable)
    text = f"all that {kept} give away {' or '.join(kinds)}"
    # What is given away behind these may be less, and no one is served by that.
    rest = [row for row in rows[1:] if row not in usable and row.defence not in WITHHELD]
    if others := [row.defence for row in rest if _level(row) < _level(rows[0])]:
        text += f"; {_listed(others)} {'does' if _is_one(others) else 'do'} not {kept}"
    label = next((row for row in rows if row.defence == "labels"), None)
    if label is None or not label.is_judged:
        return text
    if label.recovered in NETWORK:
        return f"{text}, and so do labels"
    return f"{text}; labels leave {_WORDS[label.recovered]}"


def _of_top(row: AuditRow) -> str:
    """Why the largest probability alone is no defence to take, whatever it gives away.

    It keeps no class, and what was looked for behind it is less than behind other answers.
    """
    if row.recovered in NETWORK:
        return "the top-1 probability is no defence: of two classes it tells all, beside its class"
    given = f"gives away {_WORDS[row.recovered]}" if row.is_judged else "was not seen to an end"
    return (
        f"the top-1 probability {given}, and is not advised: alone it does not say the class, and "
        "behind it a span was looked for, no network"
    )


def _of_labels(row: AuditRow, first: AuditRow) -> str:
    """Whether answers that are the class alone hide what the answers as they are give away.

    They are advised after an attack that came to its end, and found less, alone.
    """
    given = f"{_WORDS[row.recovered]}{_mark(row)}"
    if not row.is_judged:
        least = "" if row.recovered == "nothing" else f"they give away {given}, and "
        what = "whether they give away more" if least else "what they give away"
        return f"labels alone are not advised: {least}{what} is not known"
    cost = "" if row.queries is None else f" for {row.queries:,} queries"
    if first.is_judged and _level(row) >= _level(first) > 0:
        before = "" if first.queries is None else f", where numbers do for {first.queries:,}"
        return f"labels alone are no defence: they give away {given}{cost}{before}"
    text = "where the class is all that callers need, answer labels: they give away "
    searches = f"{row.tries} searches" if row.tries > 1 else "a search"
    untried = f"; not tried: {'; '.join(row.not_tried)}" if row.not_tried else ""
    return f"{text}{given}{cost}, and {searches} for the network found none{untried}"


def _by_digits(rows: Sequence[AuditRow]) -> str:
    """What answers give away of which digits are taken: the finest first, equals together."""
    given: dict[str, list[str]] = {}
    for row in rows:
        if row.defence == "float32" or row.defence.endswith(" digits"):
            given.setdefault(_WORDS[row.recovered] if row.is_judged else "", []).append(row.defence)
    parts = []
    for what, names in given.items():
        verb = _verb(names)
        if what:
            parts.append(f"{_listed(names)} {verb} away {what}")
        else:
            parts.append(f"what {_listed(names)} {verb} away is not known")
    return "; ".join(parts)


def _verb(names: Sequence[str]) -> str:
    return "gives" if _is_one(names) else "give"


def _is_one(names: Sequence[str]) -> bool:
    """Whether names are the subject of a verb in the singular, as digits are not."""
    return len(names) == 1 and names[0].startswith(("float32", "noise"))


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _limit(rows: Sequence[AuditRow]) -> str:
    """Where extraction starts to work."""
    found = [r for r in rows if r.recovered in NETWORK and r.queries is not None]
    if not found:
        unfinished = any(not row.is_judged for row in rows)
        yet = " before attacks were cut" if unfinished else ""
        return f"no limit on queries follows: no attack found a network{yet}"
    # Of equals the one that was attacked, and not what follows from it.
    least = min(found, key=lambda r: (r.queries or 0, r.implied_by))
    return (
        f"extraction starts to work at about {least.queries:,} queries ({_name(least)}): a limit "
        "helps only below that, counted over all callers who may work together, and for good"
    )


def _name(row: AuditRow) -> str:
    return "the answers as they are" if row.defence == "none" else row.defence


def _mark(row: AuditRow) -> str:
    return " (extrapolated)" if row.extrapolated else ""


def rounded_up(number: float) -> int:
    """Return a whole number of two digits and zeros that is no less."""
    step = int(10.0 ** max(len(f"{int(number)}") - 2, 0))
    return math.ceil(number / step) * step
