"""An audit as SARIF 2.1.0, which code hosts show beside other findings."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from revelu._version import __version__
from revelu.report import audit_lines
from revelu.report.verdicts import verdict
from revelu.severity import ATLAS, OWASP
from revelu.shown import plain

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

# By what is given away: the name of the rule, what it says, and how grave it is of ten.
RULES = {
    "weights": ("ModelWeightsGivenAway", "The answers give away every weight of the model.", "9.1"),
    "function": ("ModelCopyGivenAway", "The answers give away a copy of the model.", "7.5"),
    "span": ("ModelSpanGivenAway", "The answers give away what the model looks at.", "4.3"),
    "nothing": ("ModelTheftTried", "Attacks by queries did not recover the model.", "0.0"),
}
LEVELS = {"critical": "error", "high": "error", "moderate": "warning", "low": "none"}

_CATALOGUES = {"MITRE ATLAS": ATLAS, "OWASP Machine Learning Security Top Ten": OWASP}


def sarif(account: Mapping[str, Any]) -> str:
    """Return the text of a SARIF log with one result: of the answers as they are.

    What they give away is a failure, what is not known is open, and where nothing was found the
    result is a pass.

    Parameters
    ----------
    account : mapping
        What ``--json`` prints.
    """
    driver = {
        "name": "revelu",
        "version": __version__,
        "rules": [_rule(key) for key in RULES],
        "supportedTaxonomies": [{"name": name} for name in _CATALOGUES],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"revelu audit/{account['target']}/"},
        "invocations": [_invocation(account)],
        "taxonomies": [_catalogue(name, ids) for name, ids in _CATALOGUES.items()],
        "results": [_result(account)] if account["rows"] else [],
        "columnKind": "unicodeCodePoints",
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(plain(log), allow_nan=False, ensure_ascii=True, indent=2) + "\n"


def _rule(key: str) -> dict[str, Any]:
    name, text, severity = RULES[key]
    return {
        "id": f"revelu/{key}",
        "name": name,
        "shortDescription": {"text": text},
        "defaultConfiguration": {"level": "error" if key in {"weights", "function"} else "warning"},
        "properties": {"tags": ["security", "model-theft"], "security-severity": severity},
    }


def _catalogue(name: str, ids: Mapping[str, str]) -> dict[str, Any]:
    taxa = [{"id": key, "name": text} for key, text in ids.items()]
    return {"name": name, "taxa": taxa}


def _invocation(account: Mapping[str, Any]) -> dict[str, Any]:
    said = [("error", account["error"])] if account.get("error") else []
    said += [("warning", text) for text in account.get("warnings") or ()]
    notes = [{"level": level, "message": {"text": f"{text}"}} for level, text in said]
    found: dict[str, Any] = {"executionSuccessful": account["status"] == "finished"}
    if account.get("command_line"):
        found["commandLine"] = f"{account['command_line']}"
    return found | ({"toolExecutionNotifications": notes} if notes else {})


def _result(account: Mapping[str, Any]) -> dict[str, Any]:
    """What the answers as they are give away, with what was tried behind each defence."""
    first = account["rows"][0]
    key = "function" if first["recovered"] == "nothing" and first["owasp"] else first["recovered"]
    level = LEVELS.get(account["severity"], "none")
    kind = "fail" if level != "none" else "pass" if account["severity"] == "low" else "open"
    target = f"{account['target']}"
    taxa = [
        {"id": one, "toolComponent": {"name": name}}
        for name, ids in _CATALOGUES.items()
        for one in ids
        if one in {*account["atlas"], *account["owasp"]}
    ]
    place = {"artifactLocation": {"uri": quote(target, safe="/:?=&.-_~")}}
    print_of = hashlib.sha256(f"{target}\0{key}".encode()).hexdigest()
    return {
        "ruleId": f"revelu/{key}",
        "ruleIndex": list(RULES).index(key),
        "kind": kind,
        "level": level,
        "message": {"text": _message(account)},
        "locations": [{"physicalLocation": {**place, "region": {"startLine": 1}}}],
        "partialFingerprints": {"revelu/target/v1": print_of},
        **({"taxa": taxa} if taxa else {}),
        "properties": {
            "severity": account["severity"],
            "queries": first["queries"],
            "limit": account["limit"],
            "defences": {row["defence"]: _told(row) for row in account["rows"][1:]},
        },
    }


def _message(account: Mapping[str, Any]) -> str:
    said = [verdict("audit", account).words, account["decision"] or ""]
    ids = audit_lines.ids(account)
    said += [f"tried: {audit_lines.tried(account)}", f"ids: {ids}" if ids else ""]
    return ". ".join(f"{text[:1].upper()}{text[1:]}" for text in said if text) + "."


def _told(row: Mapping[str, Any]) -> str:
    marks = [audit_lines.MARKS[one] for one in audit_lines.mark_of(row)]
    return " ".join([audit_lines.words(row), *(f"({text})" for text in marks)])
