"""What follows from an audit: which answers still serve, and how many may be asked."""

import math
from collections.abc import Sequence

from revelu.tasks.audit.conclusion import (
    WITHHELD,
    WORDS,
    Conclusion,
    cheapest,
    concluded,
    given,
    is_known,
    is_one,
    level,
    listed,
    mark,
    name_of,
    serves,
    verb,
)
from revelu.tasks.audit.rows import NETWORK, AuditRow

CAVEAT = (
    "what these attacks did not find, others may: a defence that holds here has been tried, "
    "not proved"
)


def advice(
    rows: Sequence[AuditRow],
    n_outputs: int,
    data: str,
    missing: Sequence[str] = (),
    run_again: str = "",
    looks_like: str = "",
    *,
    most: int = 3,
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
    most : int
        Sentences, which are read in a minute; what else is known of a defence is in its row.
    """
    if not rows:
        return ()
    found = concluded(rows, n_outputs, missing)
    said = [_of_numbers(found, rows, n_outputs, data, run_again)]
    if found.undecided is not None:
        said = [_of_others(found.undecided, rows, looks_like)]
    classes = [row for row in rows if row.defence == "labels"]
    said += [_of_labels(row, rows[0]) for row in classes if n_outputs > 1 and not found.undecided]
    return tuple([*said, _limit(rows), CAVEAT][:most])


def _of_numbers(
    found: Conclusion, rows: Sequence[AuditRow], n_outputs: int, data: str, run_again: str
) -> str:
    """Which answers cost callers least among those that give away least."""
    kept = "keep the class" if n_outputs > 1 else "keep to 1% of the deviation"
    match found.kind:
        case "nothing given":
            return f"the answers as they are give away {WORDS['nothing']}: no defence is needed"
        case "none serves":
            return f"no answer of numbers was seen to {kept} on {data}"
        case "inconclusive":
            again = f": run again with {run_again}" if run_again else ""
            return f"inconclusive{again}; {_not_known(found.unknown, rows)}"
    again = f": run again with {run_again}" if run_again else ""
    rest = f"; {_not_known(found.unknown, rows)}{again}" if found.unknown else ""
    if found.best is not None:
        best = found.best
        share = f"{best.labels_kept:.1%} of classes" if n_outputs > 1 else f"shift {best.shift:.1g}"
        return (
            f"of the answers that {kept} on {data}, {name_of(best)} ({share}) give away the least: "
            f"{given(best)}{mark(best)}{rest}"
        )
    if rows[0].finding is not None and rows[0].finding.classes:
        return (
            "no digits and no noise hide labels, for who rounds has these again: they give away "
            f"{WORDS[rows[0].recovered]}"
        )
    if found.unknown:
        return f"none of the numeric defences that were tried to their end helps{rest}"
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


def _not_known(names: Sequence[str], rows: Sequence[AuditRow]) -> str:
    """Of which answers it is not known what they give away, and why."""
    blocked = {name_of(row) for row in rows if row.saturated}
    reasons = {
        "the target is saturated where these were asked": [n for n in names if n in blocked],
        "attacks were cut or not made": [n for n in names if n not in blocked],
    }
    return "; ".join(
        f"what {listed(those)} {verb(those)} away is not known, for {reason}"
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
    names = [name_of(row) for row in rows if row.saturated]
    if not names:
        return ""
    place = f"the inputs {where}" if is_given else "N(0, I)"
    other = "another domain" if is_given else "a domain"
    return (
        f"the target is saturated on {place}: {listed(names)} tell no inputs apart there, and "
        f"what they would give away where it decides is not known; say by {other} where that is "
        "(--like DATA)"
    )


def _what_all_give(rows: Sequence[AuditRow], n_outputs: int, kept: str) -> str:
    """What numbers give away behind each defence, where none helps; and what labels leave."""
    usable = [row for row in rows if serves(row, n_outputs)]
    kinds = dict.fromkeys(given(row) for row in usable if is_known(row))
    text = f"all that {kept} give away {' or '.join(kinds)}"
    label = next((row for row in rows if row.defence == "labels"), None)
    if label is not None and label.is_judged:
        same = label.recovered in NETWORK
        text += ", and so do labels" if same else f"; labels leave {WORDS[label.recovered]}"
    # What is given away behind these may be less, and no one is served by that.
    rest = [row for row in rows[1:] if row not in usable and row.defence not in WITHHELD]
    if others := [row.defence for row in rest if level(row) < level(rows[0])]:
        text += f"; {listed(others)} {'does' if is_one(others) else 'do'} not {kept}"
    return text


def _of_labels(row: AuditRow, first: AuditRow) -> str:
    """Whether answers that are the class alone hide what the answers as they are give away.

    They are advised after an attack that came to its end, and found less, alone.
    """
    found = f"{WORDS[row.recovered]}{mark(row)}"
    if not row.is_judged:
        least = "" if row.recovered == "nothing" else f"they give away {found}, and "
        what = "whether they give away more" if least else "what they give away"
        return f"labels alone are not advised: {least}{what} is not known"
    cost = "" if row.queries is None else f" for {row.queries:,} queries"
    if first.is_judged and level(row) >= level(first) > 0:
        before = "" if first.queries is None else f", where numbers do for {first.queries:,}"
        return f"labels alone are no defence: they give away {found}{cost}{before}"
    text = "where the class is all that callers need, answer labels: they give away "
    searches = f"{row.tries} searches" if row.tries > 1 else "a search"
    untried = f"; not tried: {'; '.join(row.not_tried)}" if row.not_tried else ""
    return f"{text}{found}{cost}, and {searches} for the network found none{untried}"


def _limit(rows: Sequence[AuditRow]) -> str:
    """Where extraction starts to work."""
    least = cheapest(rows)
    if least is None:
        unfinished = any(not row.is_judged for row in rows)
        yet = " before attacks were cut" if unfinished else ""
        return f"no limit on queries follows: no attack found a network{yet}"
    return (
        f"extraction starts to work at about {least.queries:,} queries ({name_of(least)}): a limit "
        "helps only below that, counted over all callers who may work together, and for good"
    )


def rounded_up(number: float) -> int:
    """Return a whole number of two digits and zeros that is no less."""
    step = int(10.0 ** max(len(f"{int(number)}") - 2, 0))
    return math.ceil(number / step) * step
