"""An audit in words: one line a kind of answers, and the ids of what was seen."""

from collections.abc import Mapping, Sequence
from typing import Any

from revelu.report.sections import CONCLUDED, UNFINISHED, Cell, Table, name_of
from revelu.report.verdicts import GIVEN_AWAY, NETWORK, is_open
from revelu.severity import ATLAS, OWASP, THEFT, severity_of_copy

MARKS = {
    CONCLUDED: "concluded from other answers, not seen behind these",
    UNFINISHED: "an attack was cut, or not made: more may be given away",
}
"""What follows a line, where its attack was not made on these answers to its end."""


def lines(account: Mapping[str, Any]) -> Table | None:
    """Return one line a defence in words: of answers, of queries, and of training where seen."""
    rows = account.get("rows")
    if not rows:
        return None
    said = [[Cell(name_of(row)), _cell(row)] for row in rows]
    said += [[Cell(name), Cell("not tried", "warn")] for name in account.get("missing") or ()]
    if (limit := account.get("limit")) is not None:
        text = f"helps below {limit:,} queries, counted over all who may work together"
        said.append([Cell("a limit of queries"), Cell(text)])
    if similar := (account.get("facts") or {}).get("similar neurons"):
        said.append([Cell("training: similar neurons"), Cell(f"{similar}", "bad")])
    return Table("What each kind of answers gives away", ("answers", "what they give away"), said)


def _cell(row: Mapping[str, Any]) -> Cell:
    tone = GIVEN_AWAY[row["recovered"]][1]
    is_unsure = row["cut"] or row.get("not_in_class") or row.get("undecided")
    tone = "warn" if is_unsure and tone == "good" else tone
    tone = "bad" if _share(row) is not None else tone
    marks = mark_of(row)
    note = ", ".join(MARKS[one] for one in marks)
    return Cell(words(row), tone, note=note, mark=f" {marks}" if marks else "")


def mark_of(row: Mapping[str, Any]) -> str:
    """Return the marks of a row, two at most; what is said why more may be there needs none."""
    is_cut = is_open(row) and was_tried(row) and not row.get("saturated")
    return CONCLUDED * bool(row["extrapolated"]) + UNFINISHED * is_cut


def was_tried(row: Mapping[str, Any]) -> bool:
    """Whether an attack was made that works on such answers, or another one tells of them.

    Of one that was cut, and says what was not tried, that is what is to be read.
    """
    is_left = row["cut"] and row["not_tried"] and _share(row) is None
    return row["recovered"] != "nothing" or (row["queries"] is not None and not is_left)


def words(row: Mapping[str, Any]) -> str:
    """Say what a kind of answers gives away, and for how many queries."""
    cost = "" if row["queries"] is None else f", for {row['queries']:,} queries"
    if row["recovered"] == "weights":
        return f"gives away the weights{cost}"
    # A better copy that was made of coarser answers took other queries.
    cost = "" if "fidelity" in (row.get("at_least") or {}) else cost
    if row["recovered"] == "function" or _share(row) is not None:
        return f"gives away a copy{_likeness(row)}{cost}"
    if row["recovered"] == "span":
        more = "; the target is saturated where more was asked" if row.get("saturated") else ""
        return f"gives away what it looks at{cost}{more}"
    if row.get("saturated"):
        return f"not known: the target is saturated where it was asked{cost}"
    if not was_tried(row):
        why = [*row["not_tried"], *row["notes"]]
        return f"not tried: {why[0]}" if why else "not tried"
    left = "".join(f"; not tried: {why}" for why in row["not_tried"][:1])
    return f"nothing found in {row['queries'] or 0:,} queries{left}"


def _share(row: Mapping[str, Any]) -> float | None:
    """Of a copy that is not the function, the share of the answers' variance that counts."""
    shares = [row.get(name) for name in ("fidelity", "fidelity_on_inputs")]
    best = max((share for share in shares if share is not None), default=0.0)
    return best if row["recovered"] not in NETWORK and severity_of_copy(best) else None


def _likeness(row: Mapping[str, Any]) -> str:
    """How good a copy is, in words that follow "a copy"."""
    share = _share(row) or row.get("fidelity")
    if share is not None:
        return f" that explains {_percent(share)} of the answers' variance"
    same = row.get("label_agreement")
    return "" if same is None else f" that names the same class for {_percent(same)} of inputs"


def _percent(share: float) -> str:
    """A share in percent; all is said of nothing less."""
    return "100%" if share == 1.0 else f"{min(share, 0.999):.1%}"


def ids(account: Mapping[str, Any]) -> str:
    """Name what was seen in the catalogues of MITRE and OWASP; empty where nothing was."""
    atlas = [f"{name} ({ATLAS[name]})" for name in account.get("atlas") or () if name in ATLAS]
    owasp = [f"{name} ({OWASP[name]})" for name in account.get("owasp") or () if name in OWASP]
    said = [f"MITRE ATLAS {', '.join(atlas)}"] if atlas else []
    said += [f"OWASP {', '.join(owasp)}"] if owasp else []
    return "; ".join(said)


def tried(account: Mapping[str, Any]) -> str:
    """Say what was tried, and for how much."""
    rows = account.get("rows") or []
    attacked = [row for row in rows if row["queries"] is not None and not row["implied_by"]]
    spent = f"{account.get('queries') or 0:,} queries"
    if (seconds := account.get("seconds")) is not None:
        spent += f" in {seconds:.0f} s"
    kinds = f"{len(attacked)} kind{'s' * (len(attacked) != 1)} of answers"
    return f"extraction by queries ({THEFT}) of {kinds}, for {spent}"


def marks(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return the marks that rows have, with what they mean."""
    seen = "".join(map(mark_of, rows))
    return [(one, text) for one, text in MARKS.items() if one in seen]
