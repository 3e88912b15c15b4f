"""What follows from an audit: which answers still serve, and how many may be asked."""

from collections.abc import Sequence

from revelu.tasks.audit_rows import AuditRow

# Answers still serve where this share of classes stays, or, of one output, where they
# shift by no more than this share of their deviation.
_KEPT, _SHIFT = 0.999, 0.01

_ORDER = ("nothing", "span", "function", "weights")

_WORDS = {
    "weights": "the weights",
    "function": "a copy of the function",
    "span": "the span of the first layer",
    "nothing": "nothing by these attacks",
}

CAVEAT = (
    "what these attacks did not find, others may: a defence that holds here has been tried, "
    "not proved"
)


def advice(rows: Sequence[AuditRow], n_outputs: int, data: str) -> tuple[str, ...]:
    """Say what to answer, and where a limit on queries has to lie.

    Parameters
    ----------
    rows : sequence of AuditRow
    n_outputs : int
    data : str
        What the costs of defences were measured on.

    Returns
    -------
    tuple of str
    """
    if not rows:
        return ()
    said = [_coarsest(rows, n_outputs, data)]
    if n_outputs > 1 and (label := next((r for r in rows if r.defence == "labels"), None)):
        said.append(
            f"where the class is all that callers need, answer labels: they give away "
            f"{_WORDS[label.recovered]}{_but(label)}"
        )
    return (*said, _limit(rows), CAVEAT)


def serves(row: AuditRow, n_outputs: int) -> bool:
    """Whether answers behind a defence still serve as numbers."""
    if row.shift is None:
        return False
    if n_outputs > 1:
        return row.labels_kept is not None and row.labels_kept >= _KEPT
    return row.shift <= _SHIFT


def _coarsest(rows: Sequence[AuditRow], n_outputs: int, data: str) -> str:
    """The answers that cost callers least among those that give away least."""
    # The last of equals: the list goes from fine to coarse.
    usable = [row for row in rows if serves(row, n_outputs)]
    kept = "keep the class" if n_outputs > 1 else "keep to 1% of the deviation"
    if not usable:
        return f"no answer of numbers was seen to {kept} on {data}"
    best = min(reversed(usable), key=lambda row: _ORDER.index(row.recovered))
    share = f"{best.labels_kept:.1%} of classes" if n_outputs > 1 else f"shift {best.shift:.1g}"
    name = "the answers as they are" if best.defence == "none" else best.defence
    return (
        f"of the answers that {kept} on {data}, {name} ({share}) give away the least: "
        f"{_WORDS[best.recovered]}{_but(best)}"
    )


def _limit(rows: Sequence[AuditRow]) -> str:
    """Where extraction starts to work."""
    found = [r for r in rows if r.recovered in {"weights", "function"} and r.queries is not None]
    if not found:
        return "no limit on queries follows: no attack found a network"
    least = min(found, key=lambda r: r.queries or 0)
    name = "the answers as they are" if least.defence == "none" else least.defence
    return (
        f"extraction starts to work at about {least.queries:,} queries ({name}): a limit helps "
        "only below that, counted over all callers who may work together, and for good"
    )


def _but(row: AuditRow) -> str:
    limits = ", as far as the attack came in its time" if row.cut else ""
    return f"{limits} (extrapolated)" if row.extrapolated else limits
