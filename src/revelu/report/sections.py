"""The sections of a page: tables and sentences, read off an account."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from revelu.report.verdicts import GIVEN_AWAY


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
    mark : str
        What a terminal shows in the place of the note.
    """

    text: str
    tone: str = ""
    share: float | None = None
    number: bool = False
    note: str = ""
    mark: str = ""


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


def audit_table(account: Mapping[str, Any], *, kept: bool = True) -> Table | None:
    """One row a defence.

    Parameters
    ----------
    account : mapping
    kept : bool
        Add how many classes the defence itself leaves as they were.
    """
    rows = account.get("rows")
    if not rows:
        return None
    shown: list[tuple[str, Callable[[Mapping[str, Any]], Cell]]] = [
        ("answers", lambda row: Cell(name_of(row))),
        ("recovered", _recovered),
        ("fidelity", lambda row: _share(row["fidelity"])),
        ("labels", lambda row: _share(row["label_agreement"])),
    ]
    if any(row["label_agreement_on_inputs"] is not None for row in rows):
        shown.append(("fidelity, given", lambda row: _share(row["fidelity_on_inputs"])))
        shown.append(("labels, given", lambda row: _share(row["label_agreement_on_inputs"])))
    shown.append(("queries", lambda row: _number(row["queries"], ",d")))
    if any(row["cost"] is not None for row in rows):
        shown.append(("cost", lambda row: _number(row["cost"], ",.2f")))
    if kept:
        shown.append(("class kept by the defence", lambda row: _share(row["labels_kept"])))
    return Table(
        "What each kind of answers gives away",
        [heading for heading, _ in shown],
        [[cell(row) for _, cell in shown] for row in rows],
    )


def name_of(row: Mapping[str, Any]) -> str:
    """Return what tables call the answers of a row."""
    return "as they are" if row["defence"] == "none" else f"{row['defence']}"


def _recovered(row: Mapping[str, Any]) -> Cell:
    tone = GIVEN_AWAY[row["recovered"]][1]
    # Nothing found in a part of the time is no good news.
    tone = "warn" if row["cut"] and tone == "good" else tone
    words = {"certified": "certified", "extrapolated": "extrapolated", "cut": "cut short"}
    note = ", ".join(said for name, said in words.items() if row[name])
    mark = "~" * row["extrapolated"] + "…" * row["cut"]
    return Cell(row["recovered"], tone, note=note, mark=mark)


def _share(value: float | None) -> Cell:
    """A share, with a bar; 100% is said of nothing less."""
    if value is None:
        return Cell("-", number=True)
    shown = f"{value:.2%}"
    if value < 0.0:
        shown = "< 0%"
    elif shown == "100.00%" and value < 1.0:
        shown = "> 99.99%"
    return Cell(shown, share=min(max(value, 0.0), 1.0), number=True)


def _number(value: float | None, form: str) -> Cell:
    return Cell("-" if value is None else format(value, form), number=True)


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
    """The conditions of a diagnosis, with their delta in every set of figures."""
    if "at_risk" not in account:
        return None
    after = (account["perturbation"] or {}).get("after")
    sets = {
        "by queries": account["measured"],
        "from weights": account["exact"],
        "perturbed": after,
    }
    columns = {
        heading: {c["name"]: c for c in figures["conditions"]}
        for heading, figures in sets.items()
        if figures is not None
    }
    if not columns:
        return None
    told = columns.get("from weights") or columns["by queries"]
    rows = [
        [
            Cell(f"{c['number']} {name.replace('_', ' ')}"),
            *(_condition(figures.get(name)) for figures in columns.values()),
            Cell(c["text"]),
        ]
        for name, c in told.items()
    ]
    return Table("Conditions of regularity", ("condition", *columns, "what was seen"), rows)


def _condition(seen: Mapping[str, Any] | None) -> Cell:
    if seen is None or seen["holds"] is None:
        return Cell("-")
    if not seen["holds"]:
        return Cell("fails", "bad")
    if seen["delta"] is None:
        return Cell("holds", "good")
    return Cell(f"{'<= ' if seen['at_most'] else ''}{seen['delta']:.2g}", "good")


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
