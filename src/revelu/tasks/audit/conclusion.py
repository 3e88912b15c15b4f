"""What the rows of an audit decide: which defence helps, where any does."""

from collections.abc import Sequence
from dataclasses import dataclass

from revelu.severity import SEVERITY, severity_of_copy
from revelu.tasks.audit.rows import NETWORK, AuditRow

WORDS = {
    "weights": "the weights",
    "function": "a copy of the function",
    "span": "the span of the first layer",
    "nothing": "nothing by these attacks",
}

# Defences that leave no numbers to speak of.
WITHHELD = ("top-1 probability", "labels")

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
        Defences that decide, and whose attack was cut or not begun: what is concluded is said of
        the others.
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
    it shows: it is called neither the best nor one that does not help, and keeps no other row
    from being called so.
    """
    if not rows:
        return Conclusion("inconclusive")
    first, usable = rows[0], [row for row in rows if serves(row, n_outputs)]
    is_open = first.not_in_class or (first.undecided and not first.cut)
    if first.recovered == "nothing" and is_open and not first.saturated:
        return Conclusion("inconclusive", undecided=first)
    if first.is_judged and first.recovered == "nothing":
        return Conclusion("nothing given")
    others = [row for row in usable if row is not first]
    names = [name_of(row) for row in others if not is_known(row)]
    unknown = (*names, *(name for name in missing if name not in WITHHELD))
    if not first.is_judged:
        return Conclusion("inconclusive", unknown=(name_of(first), *unknown))
    tried = [row for row in others if is_known(row)]
    if unknown and not tried:
        return Conclusion("inconclusive", unknown=unknown)
    if not usable:
        return Conclusion("none serves")
    # The last of equals: the list goes from fine to coarse.
    best = min(reversed([first, *tried]), key=level)
    if level(best) < level(first):
        return Conclusion("helps", best, unknown)
    # A defence that was never tried may be the one that helps.
    is_whole = all(name in WITHHELD for name in missing)
    return Conclusion("none helps" if is_whole else "inconclusive", unknown=unknown)


def level(row: AuditRow) -> int:
    """How much a row gives away; weights and a copy that is nearly the function count as one.

    A copy that explains less, and still more than it lacks, counts as the span does.
    """
    of_copy = severity_of_copy(row.fidelity)
    if row.recovered in NETWORK or of_copy == SEVERITY["function"]:
        return 2
    return 1 if row.recovered == "span" or of_copy else 0


def is_known(row: AuditRow) -> bool:
    """Whether a row says how much is given away, or that there is no more to give away."""
    return row.is_judged or level(row) == 2


def given(row: AuditRow) -> str:
    """What a row gives away, in words that follow "away"."""
    if row.recovered not in NETWORK and severity_of_copy(row.fidelity):
        return f"a copy that explains {row.fidelity:.1%}"
    return WORDS[row.recovered]


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


def decision(found: Conclusion, rows: Sequence[AuditRow], n_outputs: int) -> str:
    """Say in a sentence what an owner is to decide; empty without a row."""
    if not rows:
        return ""
    first = rows[0]
    share = first.fidelity
    copied = f", and a copy of {share:.1%} was made" if severity_of_copy(share) else ""
    if found.undecided is not None:
        none = "the target is none of the networks" if first.not_in_class else "no network"
        seen = f"{none} that these attacks recover{'' if first.not_in_class else ' was found'}"
        return f"not known: {seen}{copied}"
    if found.kind == "nothing given":
        return "no defence is needed against these attacks"
    if found.kind == "inconclusive":
        return f"not known yet: {_unknown(found)}{copied}"
    label = next((row for row in rows if row.defence == "labels"), None)
    is_less = label is not None and label.is_judged and level(label) < level(first)
    besides = ["labels alone"] if is_less and n_outputs > 1 else []
    if (least := cheapest(rows)) is not None:
        besides.append(f"limits below {least.queries:,} queries")
    if found.best is not None:
        name, one = found.best.defence, is_one([found.best.defence])
        said = f"{name} {'helps: it gives' if one else 'help: they give'} away {given(found.best)}"
        said += f"; so do {listed(besides)}" if besides else ""
    else:
        of = "of numbers " if is_less and n_outputs > 1 else ""
        said = f"no defence {of}that was tried helps"
        said += f"; {listed(besides)} do" if besides else ""
    return f"{said}; {_unknown(found)}" if found.unknown else said


def _unknown(found: Conclusion, most: int = 3) -> str:
    """What is not known, by the names of ``most`` kinds of answers, or their number."""
    names = found.unknown
    if names[0] == "the answers as they are":
        # Nothing is concluded of the others before that is known.
        names = names[:1]
    if len(names) > most:
        return f"what {len(names)} kinds of answers give away is not known"
    return f"what {listed(names)} {verb(names)} away is not known"


def cheapest(rows: Sequence[AuditRow]) -> AuditRow | None:
    """Return the row that gave away a network for the fewest queries: a limit has to lie below."""
    found = [row for row in rows if row.recovered in NETWORK and row.queries is not None]
    # Of equals the one that was attacked, and not what follows from it.
    return min(found, key=lambda row: (row.queries or 0, row.implied_by), default=None)


def so_far(found: Conclusion, rows: Sequence[AuditRow], run_again: str = "") -> str:
    """Say what is known where the rows do not tell which defence helps; empty where nothing is.

    What was found is given away whatever else was cut.  That a defence gives away less is said of
    attacks that came to their end, on it and on the answers as they are.
    """
    if found.kind != "inconclusive" or not rows or rows[0].recovered == "nothing":
        return ""
    first, *others = rows
    what = "every weight" if first.recovered == "weights" else given(first)
    least = "" if first.is_judged else " at least"
    parts = [f"the answers as they are give away {what}{least}{mark(first)}"]
    # What gives away as much helps no one, whether its answers still serve or not.
    numeric = [row for row in others if row.defence not in WITHHELD]
    if first.is_judged and (vain := [r.defence for r in numeric if level(r) >= level(first)]):
        parts.append(f"{listed(vain)} {'does' if is_one(vain) else 'do'} not help")
    again = f": run again with {run_again}" if run_again else ""
    return "; ".join([*parts, f"which defence helps is not known yet{again}"])


def verb(names: Sequence[str]) -> str:
    """Return "give", in the number of its subjects."""
    return "gives" if is_one(names) else "give"


def is_one(names: Sequence[str]) -> bool:
    """Whether names are the subject of a verb in the singular, as digits are not."""
    return len(names) == 1 and names[0].startswith(("float32", "noise", "grid", "top-1"))


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def name_of(row: AuditRow) -> str:
    """Return what sentences call the answers of a row."""
    return "the answers as they are" if row.defence == "none" else row.defence


def mark(row: AuditRow) -> str:
    """Return what sentences add to what was not seen behind a defence itself."""
    return " (extrapolated)" if row.extrapolated else ""
