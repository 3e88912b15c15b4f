"""What became better or worse between two audits, by their rows as JSON has them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from revelu.tasks.audit.rows import NETWORK, ORDER

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """What became of one kind of answers.

    Attributes
    ----------
    defence : str
    direction : {"better", "worse", "unknown"}
        For the owner: better where less is given away, or the same for more queries;
        unknown where an attack was cut, or a defence is in one of the audits alone.
    was, now : str
        What is given away, in words.
    """

    defence: str
    direction: Literal["better", "worse", "unknown"]
    was: str
    now: str


def changes(old: Sequence[Row], new: Sequence[Row], *, alike: float = 1.1) -> list[Change]:
    """Compare the rows of two audits; those alike are left out.

    Parameters
    ----------
    alike : float
        Queries that differ by less than this factor are as many: attacks are random.
    """
    return list(_changes({row["defence"]: row for row in old}, new, alike))


def _changes(old: Mapping[str, Row], new: Sequence[Row], alike: float) -> Iterator[Change]:
    for row in new:
        before = old.get(row["defence"])
        direction = "unknown" if before is None else _direction(before, row, alike)
        if direction:
            was = "not audited" if before is None else _words(before)
            yield Change(row["defence"], direction, was, _words(row))
    gone = [name for name in old if name not in {row["defence"] for row in new}]
    for name in gone:
        yield Change(name, "unknown", _words(old[name]), "not audited")


def _direction(was: Row, now: Row, alike: float) -> Literal["better", "worse", "unknown", ""]:
    """Which way a row went; empty where it stayed."""
    before, after = (ORDER.index(row["recovered"]) for row in (was, now))
    # A row that was cut gives away at least what it shows.
    if after > before:
        return "worse" if is_judged(was) else "unknown"
    if not is_judged(now):
        return "" if not is_judged(was) and after == before else "unknown"
    if after < before:
        return "better"
    if not (was["queries"] and now["queries"]) or now["recovered"] not in NETWORK:
        return ""
    rate = now["queries"] / was["queries"]
    return "worse" if rate < 1.0 / alike else "better" if rate > alike else ""


def is_judged(row: Row) -> bool:
    """Whether a row says how much is given away."""
    return row["recovered"] in NETWORK or not row["cut"]


def _words(row: Row) -> str:
    text = f"{row['recovered']}" if is_judged(row) else f"{row['recovered']}, cut"
    return text if row["queries"] is None else f"{text} for {row['queries']:,} queries"


def exceeds(rows: Sequence[Row], kind: str) -> bool | None:
    """Whether the answers as they are give away at least ``kind``; None where that is not known.

    Nothing is known of a target that is no ReLU network, for these attacks are not of its kind, nor
    where an attack ended without a network, which does not show that there is none.
    """
    if not rows or rows[0]["defence"] != "none":
        return None
    first = rows[0]
    if ORDER.index(first["recovered"]) >= ORDER.index(kind):
        return True
    # Audits of versions before did not say whether the target is of the class.
    is_open = first.get("not_in_class") or first.get("undecided")
    return False if is_judged(first) and not is_open else None
