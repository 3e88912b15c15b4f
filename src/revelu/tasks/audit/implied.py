"""What one row says of another: finer answers can be made as coarse as others."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from revelu.tasks.audit.rows import NETWORK, ORDER, AuditRow

Makes = Callable[[str, str], bool]
"""Whether answers behind the one defence can be made to be those behind the other."""


def broken_by(defence: str, rows: Iterable[AuditRow], makes: Makes) -> AuditRow | None:
    """Return a row that gives away all there is, and whose answers can be made of a defence's."""
    all_known = (row for row in rows if row.recovered == "weights" and not row.implied_by)
    return next((row for row in all_known if makes(defence, row.defence)), None)


def with_implied(rows: Sequence[AuditRow], makes: Makes) -> list[AuditRow]:
    """Return rows of which none gives away less than coarser answers that can be made of its own.

    Rows are what attacks found, and those that stood for it without an attack.  What was
    extrapolated is no more than a copy has shown, and raises none that was measured.
    """
    return [_with_better_copies(_raised(row, rows, makes), rows, makes) for row in rows]


# How like a copy is to the target, by what is seen of it.
_LIKENESS = ("fidelity", "label_agreement", "fidelity_on_inputs", "label_agreement_on_inputs")


def _with_better_copies(row: AuditRow, rows: Sequence[AuditRow], makes: Makes) -> AuditRow:
    """A row with the best copies that were made of answers which can be made of its own.

    An attack is random, and one on coarser answers may end with the better copy.
    """
    below = _below(row, rows, makes)
    shown, at_least, error = dict[str, Any](), dict[str, str](), row.error
    for name in _LIKENESS:
        own = getattr(row, name)
        tried = [r for r in below if getattr(r, name) is not None]
        best = max(tried, key=attrgetter(name), default=None)
        if best is None or (own is not None and own >= getattr(best, name)):
            continue
        shown[name], at_least[name] = getattr(best, name), best.defence
        error = best.error if name == "fidelity" else error
    return replace(row, **shown, at_least=at_least, error=error) if shown else row


def _below(row: AuditRow, rows: Sequence[AuditRow], makes: Makes) -> list[AuditRow]:
    """Rows that tell of one, whose answers can be made of its own."""
    below = [r for r in rows if not r.implied_by and makes(row.defence, r.defence)]
    return [r for r in below if not (row.is_measured and r.extrapolated)]


def _raised(row: AuditRow, rows: Sequence[AuditRow], makes: Makes) -> AuditRow:
    """A row with what those below it give away, where that is more."""
    below = _below(row, rows, makes)
    more = [r for r in below if ORDER.index(r.recovered) > ORDER.index(row.recovered)]
    if not more:
        return row
    best = min(more, key=lambda r: (-ORDER.index(r.recovered), r.error or 0.0))
    note = f"{best.defence} can be made of these answers, and gave away the {best.recovered}"
    own = "the attack on these answers themselves " + _end(row)
    return replace(
        best,
        defence=row.defence,
        cut=best.cut or (row.cut and best.recovered not in NETWORK),
        saturated=row.saturated and best.recovered not in NETWORK,
        not_in_class=row.not_in_class,
        broke_off=row.broke_off,
        extrapolated=True,
        from_copy=best.extrapolated,
        certified=best.certified and not best.extrapolated,
        implied_by=best.defence,
        not_tried=row.not_tried,
        labels_kept=row.labels_kept,
        shift=row.shift,
        seconds=best.seconds,
        notes=(note, *(() if row.finding is None else (own,)), *row.notes),
    )


def _end(row: AuditRow) -> str:
    what = "found nothing" if row.recovered == "nothing" else f"found the {row.recovered} alone"
    return f"{what} before it was cut" if row.cut else what


def with_its_class(first: AuditRow, defence: str) -> AuditRow:
    """The row of the larger of two probabilities, by that of the answers as they are.

    Whoever is told which class it is of has both; the larger one alone was not attacked.
    """
    note = "of two classes the larger probability, with its class beside it, is the whole answer"
    untried = ("an attack on the larger probability without its class",)
    return replace(
        first,
        defence=defence,
        certified=False,
        extrapolated=True,
        not_tried=untried,
        notes=(note,),
    )
