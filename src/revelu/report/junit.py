"""An audit as JUnit's XML, which pipelines show as tests."""

import math
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from revelu.report import audit_lines
from revelu.report.sections import name_of
from revelu.report.verdicts import verdict

# What XML 1.0 allows of no document.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(account: Mapping[str, Any]) -> str:
    """Return the text of a report with one test case a kind of answers.

    The answers as they are fail where ``--fail-on`` says so, and are an error where what it asks
    cannot be told; with ``--fail-on worse`` so do, and are, each row that became worse, and each
    of which that is not known.  What was not tried is skipped.

    Parameters
    ----------
    account : mapping
        What ``--json`` prints.
    """
    cases = [_case(account, row) for row in account["rows"]]
    cases += [_missing(account, name) for name in account["missing"]]
    counts = {
        name: sum(case.find(tag) is not None for case in cases)
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    seconds = account.get("seconds") or 0.0
    suite = _element(
        "testsuite",
        name=f"revelu audit {account['target']}",
        timestamp=f"{account.get('date') or '1970-01-01'}"[:10] + "T00:00:00",
        hostname="localhost",
        tests=len(cases),
        **counts,
        time=_time(seconds),
    )
    told = {
        "severity": account["severity"],
        "decision": account["decision"] or "",
        "atlas": " ".join(account["atlas"]),
        "owasp": " ".join(account["owasp"]),
        "tried": audit_lines.tried(account),
    }
    properties = ET.SubElement(suite, "properties")
    properties.extend(_element("property", name=name, value=text) for name, text in told.items())
    suite.extend(cases)
    ET.SubElement(suite, "system-out").text = _clean(verdict("audit", account).words)
    ET.SubElement(suite, "system-err").text = _clean("\n".join(account.get("warnings") or ()))
    of_all = {"tests": len(cases), "failures": counts["failures"], "errors": counts["errors"]}
    suites = _element("testsuites", name="revelu audit", **of_all, time=_time(seconds))
    suites.append(suite)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def _case(account: Mapping[str, Any], row: Mapping[str, Any]) -> ET.Element:
    case = _named(account, name_of(row), row["seconds"] or 0.0)
    words = audit_lines.words(row)
    kind = _end(account, row)
    if kind:
        case.append(_element(kind, message=words, type=f"revelu.{row['recovered']}"))
    elif not audit_lines.was_tried(row):
        case.append(_element("skipped", message=words))
    marks = [audit_lines.MARKS[one] for one in audit_lines.mark_of(row)]
    ET.SubElement(case, "system-out").text = _clean("\n".join([words, *marks, *row["notes"]]))
    return case


def _end(account: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """``failure``, ``error`` or nothing, as ``--fail-on`` says of a row."""
    asked = account["fail_on"] or {}
    ways = {c["defence"]: c["direction"] for c in account["changes"] or ()}
    if "worse" in asked and (way := ways.get(row["defence"])) in {"worse", "unknown"}:
        return "failure" if way == "worse" else "error"
    of_first = {name: fails for name, fails in asked.items() if name != "worse"}
    if row["defence"] != "none" or not of_first:
        return ""
    return "failure" if True in of_first.values() else "error" if None in of_first.values() else ""


def _missing(account: Mapping[str, Any], name: str) -> ET.Element:
    case = _named(account, name, 0.0)
    case.append(_element("skipped", message="not tried: the audit ended before"))
    return case


def _named(account: Mapping[str, Any], name: str, seconds: float) -> ET.Element:
    of = f"revelu.audit.{account['target']}"
    return _element("testcase", name=name, classname=of, time=_time(seconds))


def _element(tag: str, **attributes: Any) -> ET.Element:
    return ET.Element(tag, {name: _clean(f"{value}") for name, value in attributes.items()})


def _time(seconds: float) -> str:
    return f"{seconds if math.isfinite(seconds) else 0.0:.3f}"


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
