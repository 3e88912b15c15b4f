"""The sections of a page: tables and sentences, read off an account."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TONES = {"weights": "bad", "function": "bad", "span": "warn", "nothing": "good"}


@dataclass(frozen=True)
class Table:
    """A table of a page; the first cell of a row is its heading.

    Attributes
    ----------
    caption : str
    columns : sequence of str
    rows : sequence of sequence of Cell
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence["Cell"]]


@dataclass(frozen=True)
class Cell:
    """A cell.

    Attributes
    ----------
    text : str
    tone : str
        ``good``, ``warn`` or ``bad`` for a mark; else empty.
    share : float or None
        Of a bar, 0 to 1.
    number : bool
        Set to the right.
    note : str
        In small print below.
    """

    text: str
    tone: str = ""
    share: float | None = None
    number: bool = False
    note: str = ""


def cards(account: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The figures that are seen first: a label and a value each."""
    found = []
    if account.get("architecture"):
        found.append(("network", "-".join(map(str, account["architecture"]))))
    if account.get("parameters"):
        found.append(("parameters", f"{account['parameters']:,}"))
    if account.get("rank") is not None:
        found.append(("directions", f"{account['rank']:,} of {account['inputs']:,}"))
    elif account.get("inputs") is not None and "rows" in account:
        found.append(("inputs, outputs", f"{account['inputs']:,}, {account['answers']:,}"))
    if account.get("normals") is not None:
        found.append(("halfspaces", f"{len(account['normals']):,}"))
    if account.get("samples") is not None:
        found.append(("samples", f"{account['samples']:,}"))
    certificate = account.get("certificate") or {}
    if certificate.get("n_checks"):
        key = "max_abs_error" if "max_abs_error" in certificate else "max_change"
        label = "largest error" if key == "max_abs_error" else "largest change"
        found.append((label, f"{certificate[key]:.2g}"))
    if account.get("queries"):
        found.append(("queries", f"{account['queries']:,}"))
    if account.get("seconds") is not None:
        found.append(("time", _duration(account["seconds"])))
    return found


def audit_table(account: Mapping[str, Any]) -> Table | None:
    """One row a defence."""
    rows = account.get("rows")
    if not rows:
        return None
    given = any(row["label_agreement_on_inputs"] is not None for row in rows)
    priced = any(row["cost"] is not None for row in rows)
    columns = ["answers", "recovered", "fidelity", "same class"]
    columns += ["fidelity, given", "same class, given"] if given else []
    columns += ["queries"] + (["cost"] if priced else []) + ["class kept by the defence"]
    return Table(
        "What each kind of answers gives away",
        columns,
        [_audit_row(row, given=given, priced=priced) for row in rows],
    )


def _audit_row(row: Mapping[str, Any], *, given: bool, priced: bool) -> list[Cell]:
    name = "as they are" if row["defence"] == "none" else row["defence"]
    tone = _TONES[row["recovered"]]
    marks = [
        "certified" if row["certified"] else "",
        "extrapolated" if row["extrapolated"] else "",
        "cut short" if row["cut"] else "",
    ]
    cells = [
        Cell(name),
        # Nothing found in a part of the time is no good news.
        Cell(
            row["recovered"],
            "warn" if row["cut"] and tone == "good" else tone,
            note=", ".join(m for m in marks if m),
        ),
        _share(row["fidelity"]),
        _share(row["label_agreement"]),
    ]
    if given:
        cells += [_share(row["fidelity_on_inputs"]), _share(row["label_agreement_on_inputs"])]
    cells.append(_number(row["queries"], ",d"))
    cells += [_number(row["cost"], ",.2f")] if priced else []
    return [*cells, _share(row["labels_kept"])]


def _share(value: float | None) -> Cell:
    """A share, with a bar; 100% is said of nothing less."""
    if value is None:
        return Cell("–", number=True)
    shown = "< 0%" if value < 0 else f"{value:.2%}"
    if shown == "100.00%":
        shown = "100%" if value >= 1.0 else "> 99.99%"
    return Cell(shown, share=min(max(value, 0.0), 1.0), number=True)


def _number(value: float | None, form: str) -> Cell:
    return Cell("–" if value is None else format(value, form), number=True)


def ledger_table(account: Mapping[str, Any]) -> Table | None:
    """Queries by phase."""
    by_phase = {name: n for name, n in (account.get("by_phase") or {}).items() if n}
    total = sum(by_phase.values())
    if not total:
        return None
    words = {
        "noise": "measure how exact the answers are",
        "recover": "find",
        "repair": "look for what a failed check showed to be missing",
        "polish": "refine",
        "verify": "certify and compare, on fresh inputs",
    }
    rows = [
        [
            Cell(name),
            Cell(words.get(name, "")),
            Cell(f"{n:,}", number=True),
            Cell(f"{n / total:.0%}", share=n / total, number=True),
        ]
        for name, n in by_phase.items()
    ]
    rounds = f" in {account['rounds']:,} rounds" if account.get("rounds") else ""
    caption = f"{total:,} queries{rounds}, by phase"
    return Table(caption, ("phase", "to", "queries", "share"), rows)


def conditions_table(account: Mapping[str, Any]) -> Table | None:
    """The conditions of a diagnosis."""
    figures = (account.get("exact") or account.get("measured")) if "at_risk" in account else None
    if not figures:
        return None
    way = "from the weights" if account.get("exact") else "by queries"
    rows = [
        [
            Cell(f"{c['number']} {c['name'].replace('_', ' ')}"),
            Cell(*_CONDITION[c["holds"]]),
            Cell("–" if c["delta"] is None else f"{c['delta']:.2g}", number=True),
            Cell(c["text"]),
        ]
        for c in figures["conditions"]
    ]
    return Table(f"Conditions of regularity, {way}", ("condition", "", "delta", "seen"), rows)


_CONDITION = {True: ("holds", "good"), False: ("fails", "bad"), None: ("not known", "")}


def halfspaces_table(account: Mapping[str, Any]) -> Table | None:
    """Thresholds, each with its error."""
    if account.get("normals") is None:
        return None
    columns = ("halfspace", "threshold", "its error", "angle's error, rad")
    values = zip(account["thresholds"], account["threshold_errors"], account["errors"], strict=True)
    rows = [
        [
            Cell(f"{i}"),
            *(_number(v, form) for v, form in zip(row, (".6g", ".1g", ".1g"), strict=True)),
        ]
        for i, row in enumerate(values)
    ]
    return Table("Halfspaces", columns, rows)


def facts(command: str, account: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What else there is to say, a label and a sentence each."""
    found = list((account.get("facts") or {}).items())
    if command == "compare":
        widths = ("-".join(map(str, a)) for a in account["architectures"])
        found += [("networks", " and ".join(widths)), ("because", account["reason"])]
        found += [
            ("worst parameter", account["worst_parameter"] or ""),
            ("error there", _significant(account["max_parameter_error"])),
            ("relative to its neuron", _significant(account["max_relative_error"])),
            ("unmatched", ", ".join(account["unmatched"])),
        ]
    if account.get("expected_angle") is not None and account.get("rank"):
        found.append(("angle", f"about {account['expected_angle']:.1g} rad off"))
    if command == "obfuscate" and account.get("largest_change") is not None:
        found.append(("largest change", f"{account['largest_change']:.2g} of an answer"))
        found.append(("correlation", f"{account['largest_correlation']:.2f} at most"))
    if account.get("noise") and not isinstance(account["noise"], Mapping):
        found.append(("noise", f"{account['noise']:.2g}"))
    if account.get("method"):
        found.append(("method", account["method"]))
    return [(label, text) for label, text in found if text]


def notes_on_rows(account: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """What was seen of each defence."""
    rows = account.get("rows") or []
    return [(row["defence"], list(row["notes"])) for row in rows if row["notes"]]


def _significant(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
