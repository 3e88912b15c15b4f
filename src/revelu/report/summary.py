"""An account in a few lines, for terminals and for Python's ``str``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from revelu.report import audit_lines
from revelu.report.sections import (
    Table,
    audit_table,
    conditions_table,
    facts,
    halfspaces_table,
    not_tried,
    thief,
)
from revelu.report.terminal import Rows, plain_text
from revelu.report.verdicts import verdict
from revelu.status import Status

if TYPE_CHECKING:
    from revelu.network import Network
    from revelu.recovery import Recovery


def summary(found: Any, account: Mapping[str, Any], width: int = 80) -> str:
    """Return the lines that a command prints of what it found, as far as a result knows them.

    Parameters
    ----------
    found : Shown
    account : mapping
        Its own.
    width : int
        Most characters of a line.
    """
    first = Text(f"{type(found).__name__}: {verdict(found.told_by, account).words}")
    return plain_text([first, *parts_of(found, account), ending(account)], width)


def parts_of(
    found: Any, account: Mapping[str, Any], *, details: bool = False
) -> list[Table | Rows | None]:
    """Return what stands between the verdict on a result and what it cost.

    Parameters
    ----------
    found : Shown
    account : mapping
        Its own.
    details : bool
        Of an audit, add the table of all that was measured.
    """
    if "normals" in account:
        return [_certificate(account), halfspaces_table(account, 12)]
    if found.told_by == "audit":
        return [*_audit_in_short(account), *(_audit_in_full(account) if details else ())]
    if found.told_by == "diagnose":
        return [conditions_table(account), facts("diagnose", account)]
    if hasattr(found, "network"):
        return [rows_of(found)]
    return [_certificate(account), facts(found.told_by, account)]


def _certificate(account: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The statement of a certificate, and the largest change or error on which it rests."""
    certificate = account.get("certificate")
    if certificate is None:
        return []
    rows = [("certificate", f"{certificate['statement']}")]
    if certificate.get("max_change") is not None:
        rows.append(("largest change", f"{certificate['max_change']:.2g} of an answer"))
    elif "combine" not in account and certificate["n_checks"]:
        rows.append(("largest error", f"{certificate['max_abs_error']:.2g} on fresh checks"))
    return rows


def rows_of(recovery: "Recovery") -> list[tuple[str, str]]:
    """Return what people are told of a network and of its certificate."""
    rows = []
    if recovery.network is not None:
        rows.append(("network", _describe(recovery.network, recovery.status)))
    certificate = recovery.certificate
    if certificate is not None:
        rows.append(("certificate", certificate.statement))
    if recovery.classes or recovery.class_names:
        names = recovery.class_names or tuple(f"{label:g}" for label in recovery.classes)
        more = f", ... ({len(names):,})" if len(names) > 24 else ""
        rows.append(("classes", ", ".join(names[:24]) + more))
    if recovery.classes:
        return rows
    if certificate is not None and certificate.n_checks and recovery.ledger.n_queries:
        on = "that fresh check" if certificate.n_checks == 1 else "those fresh checks"
        # Answers that lack digits err themselves.
        own = ", the target's own errors included" if recovery.method == "fit" else ""
        rows.append(("largest error", f"{certificate.max_abs_error:.2g} on {on}{own}"))
    if told := recovery.digits_in_words:
        rows.append(("digits", told))
    return rows


def _describe(network: "Network", status: Status) -> str:
    """Widths, and whether there is a skip; in words where no neuron is hidden."""
    if hasattr(network, "describe"):  # of layers that are not all dense
        shape = network.describe()
    elif any(network.architecture[1:-1]):
        skip = " with an affine skip" if network.skip is not None else ""
        shape = "-".join(map(str, network.architecture)) + skip
    elif status is Status.RECOVERED:
        shape = "affine (0 hidden neurons)"
    else:
        yet = " yet" if status is Status.BUDGET_EXHAUSTED else ""
        return f"nothing recovered{yet}: an affine map without a hidden neuron"
    return f"{shape}, {network.n_parameters:,} parameters"


def ending(account: Mapping[str, Any]) -> Rows:
    """What an account cost, what is to be said of it, and what was written."""
    rows = []
    if "queries" in account and "samples" not in account:
        rounds = f"{account['rounds']:,} round{'s' * (account['rounds'] != 1)}"
        asked = f"{account['queries']:,} in {rounds}"
        purposes = _purposes(account)
        rows.append(("queries", f"{asked} ({purposes})" if purposes else asked))
    rows += [("time", f"{account['seconds']:.1f} s")] if "seconds" in account else []
    rows += [("note", text) for text in account.get("notes", ())]
    rows += [("evidence", text) for text in account.get("evidence", ())]
    rows += [("warning", text) for text in account.get("warnings", ())]
    mark = " (not certified)" if account.get("certified") is False else ""
    return rows + [("written", f"{path}{mark}") for path in account.get("outputs", ())]


def _purposes(account: Mapping[str, Any]) -> str:
    """What the queries of each phase were for; of those that find it, how many a parameter."""
    if "taken" in account:  # by a probe, which measures nothing
        return ""
    spent = {phase: n for phase, n in account["by_phase"].items() if n}
    recovers = "certified" in account
    words = {"recover": "to recover" if recovers else "to look for it"}
    words |= {"repair": "to repair", "polish": "to refine"}
    searching = [f"{spent[phase]:,} {text}" for phase, text in words.items() if phase in spent]
    parts = [f"{spent['noise']:,} to measure the noise"] if "noise" in spent else []
    if searching:
        n = sum(spent.get(phase, 0) for phase in words)
        known = account.get("certified") and account.get("parameters")
        rate = f", {n / account['parameters']:.2f} a parameter" if known else ""
        parts.append(", ".join(searching) + rate)
    if "verify" in spent:
        parts.append(f"{spent['verify']:,} to {'certify' if recovers else 'compare'}")
    return "; ".join(parts)


def _audit_in_short(account: Mapping[str, Any]) -> list[Table | Rows | None]:
    """The decision, one line a kind of answers, and advice."""
    rows = account["rows"]
    said = {
        "decision": account["decision"],
        "a thief needs": thief(account),
        "ids": audit_lines.ids(account),
        "so far": account["so_far"],
        "missing": ", ".join(account["missing"]),
    }
    following = [("advice", text) for text in account["advice"]]
    for change in account["changes"] or ():
        text = f"{change['defence']}: {change['was']} before, {change['now']} now"
        following.append((change["direction"], text))
    if account["changes"] == []:
        following.append(("baseline", "no row became better or worse"))
    above = [(label, f"{text}") for label, text in said.items() if text]
    return [above, audit_lines.lines(account), [*audit_lines.marks(rows), *following]]


def _audit_in_full(account: Mapping[str, Any]) -> list[Table | Rows | None]:
    """What the target is, all that was measured, and what was not tried."""
    said = [*account["facts"].items(), ("compared on", account["compared_on"])]
    untried = [("not tried", text) for text in not_tried(account)]
    return [[(a, f"{b}") for a, b in said if b], audit_table(account, kept=False), untried]
