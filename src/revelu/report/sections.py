"""The sections of a page: tables and sentences, read off an account."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from revelu.report.verdicts import GIVEN_AWAY

# What follows what was concluded from other answers, and what was cut.
CONCLUDED, UNFINISHED = "~", "…"


@dataclass(frozen=True)
class Table:
    """A table of a page; the first cell of a row is its heading.

    Attributes
    ----------
    caption : str
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
    if "rows" in account:
        return _cards_of_audit(account)
    found = []
    if account.get("architecture"):
        found.append(("network", "-".join(map(str, account["architecture"]))))
    if account.get("parameters"):
        found.append(("parameters", f"{account['parameters']:,}"))
    if account.get("rank") is not None:
        found.append(("directions", f"{account['rank']:,} of {account['inputs']:,}"))
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
    found += _purposes(account)
    if account.get("seconds") is not None:
        found.append(("time", _duration(account["seconds"])))
    return found


def _purposes(account: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What of the queries found a network, and what certified it, where there is one."""
    by_phase, parameters = account.get("by_phase") or {}, account.get("parameters")
    if not parameters:
        return []
    n = sum(by_phase.get(phase, 0) for phase in ("recover", "repair", "polish"))
    rate = f", {n / parameters:.2f} a parameter" if account.get("certified") else ""
    spent = [("of these to recover", f"{n:,}{rate}")] if n else []
    n = by_phase.get("verify", 0)
    return spent + ([("to certify", f"{n:,}")] if n else [])


def _cards_of_audit(account: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a thief needs; not what the audit took, which stands below."""
    row = _taken_first(account)
    found = []
    if row is not None:
        found.append(("a thief needs", f"{row['queries']:,} queries"))
        if row["seconds"] is not None:
            found.append(("and this time", _duration(row["seconds"])))
        if row["cost"] is not None:
            found.append(("in your price", f"about {row['cost']:.2g}"))
    if account.get("inputs") is not None:
        found.append(("inputs, outputs", f"{account['inputs']:,}, {account['answers']:,}"))
    return found


def thief(account: Mapping[str, Any]) -> str:
    """Say what someone needs to take what the answers as they are give away."""
    row = _taken_first(account)
    if row is None:
        return ""
    what = {"weights": "the weights", "function": "a copy", "span": "the span"}[row["recovered"]]
    text = f"{row['queries']:,} queries"
    if row["seconds"] is not None:
        text += f", {_duration(row['seconds'])}"
    if row["cost"] is not None:
        text += f", about {row['cost']:.2g} in your price"
    return f"{text} for {what}"


def _taken_first(account: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The row of the answers as they are, where something was found for a known cost."""
    is_one = not (account.get("changed") or account.get("contradicted"))
    row = account["rows"][0] if account["rows"] and is_one else None
    found = row is not None and row["recovered"] != "nothing" and row["queries"] is not None
    return row if found else None


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
        ("fidelity", lambda row: _likeness(row, "fidelity")),
    ]

    def add(heading: str, name: str, *, wanted: bool = False) -> None:
        if wanted or any(row[name] is not None for row in rows):
            shown.append((heading, lambda row: _likeness(row, name)))

    # Where a constant names all classes there are no shares of them: a warning says so.
    has_classes = (account.get("answers") or 1) > 1
    is_given = any(row["fidelity_on_inputs"] is not None for row in rows)
    add("same class", "label_agreement", wanted=has_classes)
    add("fidelity, given", "fidelity_on_inputs")
    add("same class, given", "label_agreement_on_inputs", wanted=has_classes and is_given)
    shown.append(("queries", lambda row: _number(row["queries"], ",d")))
    if any(row["cost"] is not None for row in rows):
        shown.append(("cost", lambda row: _number(row["cost"], ",.2f")))
    if kept:
        add("class kept by the defence", "labels_kept")
    columns = [_barred([cell(row) for row in rows]) for _, cell in shown]
    return Table(
        "All that was measured",
        [heading for heading, _ in shown],
        list(zip(*columns, strict=True)),
    )


def _barred(cells: list[Cell], visible: float = 0.01) -> list[Cell]:
    """Cells of a column, with bars where some differ by what is ``visible`` of their length."""
    shares = [cell.share for cell in cells if cell.share is not None]
    if shares and max(shares) - min(shares) >= visible:
        return cells
    return [replace(cell, share=None) for cell in cells]


def name_of(row: Mapping[str, Any]) -> str:
    """Return what tables call the answers of a row."""
    return "as they are" if row["defence"] == "none" else f"{row['defence']}"


def _recovered(row: Mapping[str, Any]) -> Cell:
    tone, text = GIVEN_AWAY[row["recovered"]][1], f"{row['recovered']}"
    # Nothing found in a part of the time is no good news.
    is_open = row["cut"] or row.get("not_in_class") or row.get("undecided")
    tone = "warn" if is_open and tone == "good" else tone
    is_blocked = bool(row.get("saturated"))
    text = "undecided" if is_blocked and text == "nothing" else text
    words = {"certified": "certified", "extrapolated": "extrapolated"}
    if implied := row.get("implied_by"):
        far = ", which is extrapolated" if row.get("from_copy") else ""
        words["extrapolated"] = f"implied by {implied}{far}"
    words |= {"saturated": "saturated"} if is_blocked else {"cut": "cut short"}
    told = [said for name, said in words.items() if row[name]]
    if (digits := row.get("digits")) is not None:
        told.append(f"{digits:.0f} digits of the weights")
    sign = CONCLUDED * bool(row["extrapolated"]) + UNFINISHED * bool(row["cut"])
    return Cell(text, tone, note=", ".join(told), mark=sign)


def _likeness(row: Mapping[str, Any], name: str) -> Cell:
    """How like a copy is, marked where it was made of coarser answers."""
    cell = _share(row[name])
    source = (row.get("at_least") or {}).get(name)
    return (
        cell if source is None else replace(cell, mark=CONCLUDED, note=f"of the copy from {source}")
    )


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
            Cell(_seen(c, columns.get("by queries", {}).get(name))),
        ]
        for name, c in told.items()
    ]
    return Table("Conditions of regularity", ("condition", *columns, "what was seen"), rows)


def _seen(told: Mapping[str, Any], asked: Mapping[str, Any] | None) -> str:
    """What was seen of a condition, and why queries say otherwise where they do."""
    if asked is None or None in (asked["holds"], told["holds"]) or asked["holds"] == told["holds"]:
        return f"{told['text']}"
    seen = f"queries see pieces by their answers alone: {asked['text']}"
    return f"{told['text']}; {seen}"


def _condition(seen: Mapping[str, Any] | None) -> Cell:
    if seen is None or seen["holds"] is None:
        return Cell("-")
    if not seen["holds"]:
        return Cell("fails", "bad")
    if seen["delta"] is None:
        return Cell("holds", "good")
    return Cell(f"{'<= ' if seen['at_most'] else ''}{seen['delta']:.2g}", "good")


def halfspaces_table(account: Mapping[str, Any], most: int | None = None) -> Table | None:
    """Thresholds of the first halfspaces, with what they and the angles are off by at most."""
    if not account.get("normals"):
        return None
    columns = ("halfspace", "threshold", "off by at most (95%)", "its angle, rad (95%)")
    values = zip(account["thresholds"], account["threshold_bounds"], account["bounds"], strict=True)
    rows = [
        [Cell(f"{i}"), _number(t, ".6g"), _number(off, ".2g"), _number(angle, ".2g")]
        for i, (t, off, angle) in enumerate(values)
    ]
    if most is not None and len(rows) > most:
        rows[most:] = [[Cell(f"and {len(rows) - most} more"), Cell(""), Cell(""), Cell("")]]
    return Table("Halfspaces", columns, rows)


def facts(command: str, account: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What else there is to say, a label and a sentence each."""
    found = list((account.get("facts") or {}).items())
    if command == "compare":
        found += _of_comparison(account)
    if command == "diagnose" and "top_layers" in account:
        found += _of_diagnosis(account)
    # A span of all directions has none to be off by.
    is_part = 0 < (account.get("rank") or 0) < account.get("inputs", float("inf"))
    if account.get("expected_angle") is not None and is_part:
        found.append(("angle", f"about {account['expected_angle']:.1g} rad off"))
    if command == "obfuscate" and account.get("largest_change") is not None:
        found.append(("largest change", f"{account['largest_change']:.2g} of an answer"))
        found.append(("correlation", f"{account['largest_correlation']:.2f} at most"))
    if command == "learn" and account.get("noise"):
        found.append(("noise", f"{account['noise']:.2g}"))
    return found


_UP_TO_SHIFT = "compared up to what is added to all of them, which the softmax does not show"


def _of_comparison(account: Mapping[str, Any], most: int = 24) -> list[tuple[str, str]]:
    """Where two networks differ; of a layer its first numbers."""
    if (answers := account.get("answers")) is not None:
        worst = ", ".join(f"{row}" for row in answers["worst_rows"])
        digests = [("SHA-256", f"{digest} {name}") for name, digest in answers["sha256"].items()]
        return [("answers", answers["statement"]), ("worst rows", worst), *digests]
    widths = ("-".join(map(str, a)) for a in account["architectures"])
    rows = [("networks", " and ".join(widths))]
    rows += [("because", account["reason"])] if account["reason"] else []
    rows += [("logits", _UP_TO_SHIFT)] if account["up_to_shift"] else []
    unmatched = account["unmatched"]
    if (error := account["max_parameter_error"]) is not None and not unmatched:
        worst = f"{account['worst_parameter'] or 'none'}, off by {error:.2g}"
        rows.append(("worst", f"{worst}, in weight rows of norm 1"))
        relative = f"{account['max_relative_error']:.2g} of a neuron's weights at most"
        rows.append(("relative", relative))
    for name in unmatched[:most]:
        # Named by its file.
        rows.append(("unmatched", name.replace("recovered: ", "A ").replace("truth: ", "B ")))

    def shown(values: Sequence[float], form: str) -> str:
        text = " ".join(format(v, form) for v in values[:most])
        return f"{text} ... ({len(values):,} in all)" if len(values) > most else text

    for i, order in enumerate(account["permutations"]):
        rows.append((f"order {i}", shown(order, "d")))
        rows.append((f"scales {i}", shown(account["scales"][i], ".4g")))
    return rows + ([("signs", shown(account["signs"], "+d"))] if account["signs"] else [])


def _of_diagnosis(account: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What it is, what the theorems ask beside regularity, and what smoothing did."""
    rows = [("asked", f"inputs {account['domain']}"), *_of_kind(account)]
    kind = account["kind"]
    if account["delta"] == 0.0 and kind is not None and kind["extract_with"] is not None:
        rows.append(("not regular", _ONLY_SUFFICIENT))
    if (top := account["top_layers"]) is not None:
        state = "vanish somewhere" if top["gradients_vanish"] else "never vanish"
        text = (
            f"gradients {state} (margin {top['margin']:.2g}); of random weights of such widths "
            f"they do not with probability {top['probability']:.3g}"
        )
        rows.append(("top layers", text))
    if (changed := account["perturbation"]) is not None:
        text = (
            f"delta {changed['before']['delta']:.2g} before, {changed['after']['delta']:.2g} "
            f"after noise of {changed['amplitude']:g} (in proofs: {changed['lemma_amplitude']:.1g})"
        )
        if changed["failure_bound"] is not None:
            text += f"; the chance of less is at most {changed['failure_bound']:.2g}"
        rows.append(("perturbed", text))
    counts = [f"theorem {name[-1]}: {n:,.0f}" for name, n in account["query_counts"].items() if n]
    if counts:
        rows.append(("theorems", f"{', '.join(counts)} queries, were every constant 1"))
    return rows


def _of_kind(account: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a target is, how that was seen, and what to extract it with."""
    if (kind := account["kind"]) is None:
        return []
    named = {"hidden_layers": "hidden layers", "units": "units", "structure": "structure"}
    function = kind["function"]
    said = [f"{'step' if function == 'steps' else function} function"]
    said += [f"{heading}: {kind[name]}" for name, heading in named.items()]
    if function == "steps" and kind.get("steps", "unknown") != "unknown":
        said.insert(1, f"as of {'trees' if kind['steps'] == 'trees' else 'nearest neighbours'}")
    if (filters := kind["filters"]) is not None:
        said.append(_of_filters(filters))
    # What ended the diagnosis is told below, as its evidence.
    told = [text for text in kind["evidence"] if text not in account["evidence"]]
    seen = f"{'; '.join(told) or 'the evidence below'} ({kind['queries']:,} queries)"
    rows = [("kind", "; ".join(said)), ("told by", seen)]
    if kind["extract_with"] is None:
        return [*rows, ("next", "no method recovers such a function")]
    following = " ".join(filter(None, (_extraction(account), kind["extract_with"])))
    if (n := kind["extract_queries"]) is not None:
        following += f" (some {n:,} queries or more, and the certificate's)"
    return [*rows, ("next", following)]


_ONLY_SUFFICIENT = (
    "a condition of the theorems fails, and theirs are sufficient: that alone does not stop revelu "
    "extract, whose methods need less and whose certificate says whether the network was found"
)
_OWN_OPTIONS = ("--perturb", "--output", "-o", "--report")
_OWN_FLAGS = ("--json", "--csv")


def _extraction(account: Mapping[str, Any]) -> str:
    """The command that extracts what a command has diagnosed, without what is the latter's own."""
    words = shlex.split(account.get("command_line") or "revelu diagnose TARGET")
    _, *given = words[words.index("diagnose") :] if "diagnose" in words else ("", "TARGET")
    advised = (account["kind"]["extract_with"] or "").split()
    own = {*_OWN_OPTIONS, *(word for word in advised if word.startswith("--"))}
    kept, is_value = list[str](), False
    for word in given:
        option = word.partition("=")[0]
        if not (is_value or option in own or option in _OWN_FLAGS):
            kept.append(word)
        is_value = word in own and word != "--labels"
    return shlex.join(["revelu", "extract", *kept])


def _of_filters(filters: Mapping[str, Any]) -> str:
    """Filters, and what pools them."""

    def size(name: str) -> str:
        return "unknown" if filters[name] is None else "x".join(map(str, filters[name]))

    said = f"{filters['number']} filters or more of {size('window')}, stride {size('strides')}"
    if filters["slopes"] is not None:
        said += f", slopes {', '.join(f'{slope:.3g}' for slope in filters['slopes'])}"
    if (pooling := filters["pooling"]) is None:
        return f"{said}, pooling none"
    return f"{said}, pooling {pooling} of {size('pooling_window')}"


def notes_on_rows(account: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """What was seen of each defence, and what was not tried."""
    seen = {
        name_of(row): [*row["notes"], *(f"not tried: {text}" for text in row["not_tried"])]
        for row in account.get("rows") or []
    }
    return [(name, notes) for name, notes in seen.items() if notes]


def unfinished(account: Mapping[str, Any]) -> str:
    """Why an audit decides less than it might."""
    rows = account.get("rows") or []
    blocked = any(row.get("saturated") for row in rows)
    cut = account.get("missing") or any(row["cut"] and not row.get("saturated") for row in rows)
    said = ["the target is saturated where it was asked"] if blocked else []
    return ", and ".join([*said, "attacks were cut"] if cut or not said else said)


def not_tried(account: Mapping[str, Any]) -> list[str]:
    """What was not tried, each with the rows that it holds of."""
    names: dict[str, list[str]] = {}
    for row in account["rows"]:
        for text in row["not_tried"]:
            names.setdefault(text, []).append(row["defence"])
    return [f"{', '.join(rows)}: {text}" for text, rows in names.items()]


def changes_table(account: Mapping[str, Any]) -> Table | None:
    """What became better or worse since the baseline."""
    if not account.get("changes"):
        return None
    tones = {"better": "good", "worse": "bad", "unknown": "warn"}
    rows = [
        [
            Cell(c["defence"]),
            Cell(c["direction"], tones[c["direction"]]),
            Cell(c["was"]),
            Cell(c["now"]),
        ]
        for c in account["changes"]
    ]
    return Table("Since the baseline", ("answers", "became", "before", "now"), rows)


def origin(account: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Which target was asked, how and when, and by which versions."""
    found = [("date", account.get("date")), ("command", account.get("command_line"))]
    found += list((account.get("identity") or {}).items())
    versions = ", ".join(f"{name} {v}" for name, v in (account.get("versions") or {}).items())
    seed = account.get("seed")
    found += [("versions", versions), ("seed", None if seed is None else f"{seed}")]
    return [(name, f"{text}") for name, text in found if text]


def _duration(seconds: float) -> str:
    if seconds < 1.0:
        return "under 1 s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
