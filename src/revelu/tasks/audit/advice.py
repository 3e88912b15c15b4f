"""What follows from an audit: which answers still serve, and how many may be asked."""

from collections.abc import Sequence

from revelu.tasks.audit.rows import AuditRow

ORDER = ("nothing", "span", "function", "weights")

_WORDS = {
    "weights": "the weights",
    "function": "a copy of the function",
    "span": "the span of the first layer",
    "nothing": "nothing by these attacks",
}

_UNKNOWN = "what they give away is not known, for the attack was cut"

CAVEAT = (
    "what these attacks did not find, others may: a defence that holds here has been tried, "
    "not proved"
)


def advice(rows: Sequence[AuditRow], n_outputs: int, data: str) -> tuple[str, ...]:
    """Say what to answer, and where a limit on queries has to lie.

    Parameters
    ----------
    data : str
        What the costs of defences were measured on.
    """
    if not rows:
        return ()
    said = [_coarsest(rows, n_outputs, data)]
    if n_outputs > 1 and (label := next((r for r in rows if r.defence == "labels"), None)):
        given = f"they give away {_WORDS[label.recovered]}" if is_judged(label) else _UNKNOWN
        text = "where the class is all that callers need, answer labels: "
        said.append(f"{text}{given}{_mark(label)}")
    said.append(_limit(rows))
    if digits := _by_digits(rows):
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


def _coarsest(rows: Sequence[AuditRow], n_outputs: int, data: str) -> str:
    """The answers that cost callers least among those that give away least."""
    kept = "keep the class" if n_outputs > 1 else "keep to 1% of the deviation"
    usable = [row for row in rows if serves(row, n_outputs)]
    if not usable:
        return f"no answer of numbers was seen to {kept} on {data}"
    judged = [row for row in usable if is_judged(row)]
    unknown = ", ".join(_name(row) for row in usable if not is_judged(row))
    cut = f"; attacks on {unknown} were cut, and judge nothing" if unknown else ""
    if not judged:
        return f"no attack on answers that {kept} on {data} came to an end{cut}"
    # The last of equals: the list goes from fine to coarse.
    best = min(reversed(judged), key=lambda row: ORDER.index(row.recovered))
    share = f"{best.labels_kept:.1%} of classes" if n_outputs > 1 else f"shift {best.shift:.1g}"
    return (
        f"of the answers that {kept} on {data}, {_name(best)} ({share}) give away the least: "
        f"{_WORDS[best.recovered]}{_mark(best)}{cut}"
    )


def _by_digits(rows: Sequence[AuditRow]) -> str:
    """What answers give away of which digits are taken: the finest first, equals together."""
    given: dict[str, list[str]] = {}
    for row in rows:
        if row.defence == "float32" or row.defence.endswith(" digits"):
            what = _WORDS[row.recovered] + _mark(row) if is_judged(row) else _UNKNOWN
            given.setdefault(what, []).append(row.defence)
    parts = []
    for what, names in given.items():
        if what is _UNKNOWN:
            parts.append(f"what {_listed(names)} give away is not known, for attacks were cut")
        else:
            verb = "give" if len(names) > 1 or names[0] != "float32" else "gives"
            parts.append(f"{_listed(names)} {verb} away {what}")
    return "; ".join(parts)


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def is_judged(row: AuditRow) -> bool:
    """Whether a row says how much is given away: what was found, or that nothing is."""
    return row.recovered in {"weights", "function"} or not row.cut


def _limit(rows: Sequence[AuditRow]) -> str:
    """Where extraction starts to work."""
    found = [r for r in rows if r.recovered in {"weights", "function"} and r.queries is not None]
    if not found:
        return "no limit on queries follows: no attack found a network"
    least = min(found, key=lambda r: r.queries or 0)
    return (
        f"extraction starts to work at about {least.queries:,} queries ({_name(least)}): a limit "
        "helps only below that, counted over all callers who may work together, and for good"
    )


def _name(row: AuditRow) -> str:
    return "the answers as they are" if row.defence == "none" else row.defence


def _mark(row: AuditRow) -> str:
    return " (extrapolated)" if row.extrapolated else ""
