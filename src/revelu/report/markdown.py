"""An audit as Markdown, for the summary of a job or a comment on a change."""

import re
from collections.abc import Mapping
from typing import Any

from revelu.report import audit_lines
from revelu.report.verdicts import verdict

# What would be more than text: a target may call itself anything.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")


def markdown(account: Mapping[str, Any]) -> str:
    """Return the verdict, the decision, one line a kind of answers, and advice.

    Parameters
    ----------
    account : mapping
        What ``--json`` prints.
    """
    words = verdict("audit", account).words
    said = [f"## {_text(account['target'])}: {_text(words)}", ""]
    if account["decision"]:
        said += [f"**Decision:** {_text(account['decision'])}.", ""]
    if account.get("error"):
        said += [f"**Stopped:** {_text(account['error'])}", ""]
    said += [f"Ids: {_text(ids)}. " if (ids := audit_lines.ids(account)) else ""]
    said[-1] += f"Tried: {_text(audit_lines.tried(account))}."
    table = audit_lines.lines(account)
    if table is not None:
        said += ["", f"| {' | '.join(table.columns)} |", "|---|---|"]
        said += [
            f"| {' | '.join(_text(f'{cell.text}{cell.mark}') for cell in row)} |"
            for row in table.rows
        ]
        said += [
            "",
            *(f"{_text(one)}: {text}." for one, text in audit_lines.marks(account["rows"])),
        ]
    said += ["", *(f"- {_text(text)}." for text in account["advice"])]
    said += [f"- Warning: {_text(text)}." for text in account.get("warnings") or ()]
    return "\n".join(said).rstrip() + "\n"


def _text(value: Any) -> str:
    """A value on one line, none of which means anything to Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(f"{value}".split()))
