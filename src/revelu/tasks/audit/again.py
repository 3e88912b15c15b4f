"""Second looks of an audit: at what was cut, at what withstood, and behind labels."""

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from revelu.tasks.audit.defences import Defence
from revelu.tasks.audit.implied import with_implied
from revelu.tasks.audit.judging import DEAR
from revelu.tasks.audit.rows import NETWORK, ORDER, AuditRow
from revelu.tasks.audit.searches import better, joined

if TYPE_CHECKING:
    from revelu.tasks.audit.audit import _Audit

log = logging.getLogger(__name__)


def try_again(audit: "_Audit") -> None:
    """Give what time is left to attacks that were cut, the most promising first."""
    tried: set[int] = set()
    while places := [i for i in _cut(audit) if i not in tried]:
        # Where more was found the answers are worth more; of these the finest come first.
        audit.place = max(places, key=lambda i: ORDER.index(audit.rows[i].recovered))
        tried.add(audit.place)
        row, left = audit.rows[audit.place], audit.left()
        seconds = audit.allowed[row.defence].seconds
        if left.seconds < audit.worth_again * seconds:
            continue
        limits = replace(left, seconds=min(left.seconds, audit.again * seconds))
        log.info("%s: again, for %.0f seconds", row.defence, limits.seconds)
        again = audit.judged_row(audit.all[audit.place], limits)
        if ORDER.index(again.recovered) >= ORDER.index(row.recovered):
            audit.rows[audit.place] = again


def _cut(audit: "_Audit") -> list[int]:
    """Which attacks time, and not queries, ended before there was a network."""

    def is_short(row: AuditRow) -> bool:
        by_queries = row.finding is not None and row.finding.out_of_queries
        return row.cut and not (row.in_vain or by_queries) and row.defence in audit.allowed

    rows = with_implied(audit.judged, audit.makes)
    return [i for i, row in zip(sorted(audit.rows), rows, strict=True) if is_short(row)]


def doubt(audit: "_Audit") -> None:
    """Attack with other seeds what withstood, where the target is known to be a network.

    An attack is random, and misreads one time in many what answers are.  What can be made of
    most others comes first: where it falls, they need no second look.
    """
    for trial in range(1, audit.tries):
        audit.trial = trial
        for place in sorted(audit.rows, key=partial(_coarseness, audit), reverse=True):
            row, defence = audit.rows[place], audit.all[place]
            if not _withstood(audit, row, defence) or audit.broken_by(defence) is not None:
                continue
            audit.place, left = place, audit.left()
            if audit.is_over() or left.seconds < audit.needed[row.defence]:
                note = "withstood one attack; there was no time for another seed"
                audit.rows[place] = replace(row, cut=True, notes=(note, *row.notes))
                continue
            allowed = min(left.seconds, audit.allowed[row.defence].seconds)
            again = audit.judged_row(defence, replace(left, seconds=allowed))
            audit.rows[place] = better(row, again)


def look_behind_labels(audit: "_Audit") -> None:
    """Look for the network that labels show, in all that is left.

    It takes hundreds of labels a weight, so that its turn comes after all others'.
    """
    place = next((i for i in audit.rows if audit.all[i].leaves == "label"), None)
    if place is None or audit.rows[place].finding is None:
        return
    audit.place, known = place, audit.rows[place]
    is_network = any(row.recovered in NETWORK for row in audit.rows.values())
    found: AuditRow | None = None
    for trial in range(audit.tries if is_network else 1):
        if audit.is_over():
            break
        audit.trial = trial
        again, is_dear = _behind_labels(audit, place)
        found = again if found is None else better(found, again)
        audit.rows[place] = joined(known, found)
        if found.cut or is_dear or found.recovered in NETWORK:
            return
    if found is not None and found.tries < audit.tries and is_network:
        note = "withstood one attack; there was no time for another seed"
        audit.rows[place] = replace(audit.rows[place], cut=True, notes=(note, *known.notes))


def _behind_labels(audit: "_Audit", place: int) -> tuple[AuditRow, bool]:
    """Look for the network once; say, too, whether that took more labels than it is worth.

    It is then complete: another seed would take as many.
    """
    defence, left = replace(audit.all[place], leaves="labels"), audit.left()
    copies = [row.finding.copy for row in audit.rows.values() if row.finding is not None]
    weights = [copy.n_parameters for copy in copies if copy is not None]
    worth = max(audit.labels_each * weights[0], audit.labels_least) if weights else None
    if worth is None or (left.queries is not None and left.queries <= worth):
        return audit.judged_row(defence, left), False
    row = audit.judged_row(defence, replace(left, queries=worth))
    if row.finding is None or not row.finding.out_of_queries or row.recovered in NETWORK:
        return row, False
    ended = replace(row.finding, cut=False, out_of_queries=False)
    untried = (DEAR.format(n=worth),)
    return replace(row, cut=False, finding=ended, notes=(), not_tried=untried), True


def _coarseness(audit: "_Audit", place: int) -> float:
    shift = audit.rows[place].shift
    return np.inf if shift is None else shift


def _withstood(audit: "_Audit", row: AuditRow, defence: Defence) -> bool:
    """Whether an attack ended without what others have found."""
    if defence.name == "none" or row.cut or row.finding is None:
        return False
    found = any(other.recovered in NETWORK for other in audit.rows.values())
    wanted = NETWORK if defence.leaves == "numbers" else (*NETWORK, "span")
    return found and row.recovered not in wanted and defence.name in audit.took
