"""One row of several searches: with other seeds, or for the span and for the network."""

from dataclasses import replace

from revelu.tasks.audit.rows import NETWORK, ORDER, AuditRow


def better(row: AuditRow, again: AuditRow) -> AuditRow:
    """Return what was found, of two attacks with other seeds, for the queries of both."""
    best = again if ORDER.index(again.recovered) > ORDER.index(row.recovered) else row
    queries, cost = _spent(row, again)
    blocked = row.saturated or again.saturated
    return replace(
        best,
        cut=best.cut or again.cut,
        saturated=blocked and best.recovered not in NETWORK,
        broke_off=best.broke_off or again.broke_off,
        queries=queries,
        cost=cost,
        tries=row.tries + 1,
    )


def joined(span: AuditRow, network: AuditRow) -> AuditRow:
    """Return what labels give away, of the searches for a span and for the network.

    Neither needs the other, so what is given away costs what the search for it took.
    """
    if network.recovered in NETWORK:
        return network
    best = max(span, network, key=lambda row: ORDER.index(row.recovered))
    ends = [row.finding for row in (span, network) if row.finding is not None]
    limited = any(found.out_of_queries for found in ends)
    how = "was cut" if network.cut else "ended without it"
    note = f"the search for the network {how} after {network.queries or 0:,} queries"
    alone = best.recovered != "nothing"
    queries, cost = (best.queries, best.cost) if alone else _spent(span, network)
    return replace(
        best,
        cut=span.cut or network.cut,
        broke_off=span.broke_off or network.broke_off,
        queries=queries,
        cost=cost,
        tries=network.tries,
        not_tried=network.not_tried,
        notes=tuple(dict.fromkeys((*span.notes, note, *network.notes))),
        finding=best.finding and replace(best.finding, out_of_queries=limited),
    )


def _spent(*rows: AuditRow) -> tuple[int | None, float | None]:
    """Return the queries and the cost of several attacks."""
    asked = [row.queries for row in rows if row.queries is not None]
    costs = [row.cost for row in rows if row.cost is not None]
    return sum(asked) if asked else None, sum(costs) if costs else None
