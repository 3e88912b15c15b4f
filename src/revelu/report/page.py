"""An account as one self-contained page.

What is in an account may come from a target, a server or a file name: the template escapes
everything but the pictures, which :mod:`revelu.report.pictures` makes itself.  The page's own
policy forbids scripts and everything from elsewhere.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from revelu.extras import import_extra
from revelu.report import audit_lines, sections
from revelu.report.pictures import pictures
from revelu.report.verdicts import verdict


def check_installed() -> None:
    """Check that pages can be drawn.

    Raises
    ------
    MissingExtraError
        If Jinja2 or matplotlib is not installed.
    """
    _template()
    import_extra("matplotlib.figure", "reports need matplotlib", "report")


def page(command: str, account: Mapping[str, Any]) -> str:
    """Draw an account.

    Parameters
    ----------
    command : str
        The command that it is of.
    account : mapping
        What ``--json`` prints, with ``figures`` where there are pictures.

    Returns
    -------
    str
        An HTML document.

    Raises
    ------
    MissingExtraError
        If Jinja2 or matplotlib is not installed.
    """
    read = (
        sections.audit_table,
        sections.changes_table,
        sections.conditions_table,
        sections.halfspaces_table,
    )
    method = [("method", account["method"])] if account.get("method") else []
    drawn = pictures(account)
    return str(
        _template().render(
            command=command,
            target=_target(account),
            verdict=verdict(command, account),
            account=account,
            cards=sections.cards(account),
            lines=audit_lines.lines(account),
            marks=audit_lines.marks(account.get("rows") or []),
            ids=audit_lines.ids(account),
            tried=audit_lines.tried(account) if account.get("rows") else "",
            facts=[*sections.facts(command, account), *method],
            tables=[table for table in (make(account) for make in read) if table],
            ledger=sections.ledger_table(account),
            certificate=(account.get("certificate") or {}).get("statement"),
            pictures=[picture for picture in drawn if not picture.folded],
            folded=[picture for picture in drawn if picture.folded],
            origin=sections.origin(account),
            is_certain=account.get("status") in {"recovered", "finished", "agree"},
            unfinished=sections.unfinished(account),
            remarks=sections.notes_on_rows(account),
            note=(account.get("figures") or {}).get("note"),
            fields=[(name, _shown(value)) for name, value in account.items() if name != "figures"],
        )
    )


def _target(account: Mapping[str, Any]) -> str:
    subject = account.get("file") or account.get("target")
    return " and ".join(account["files"]) if subject is None else f"{subject}"


def _shown(value: Any, longest: int = 20_000) -> str:
    """A field of the account as JSON, all of it; arrays that would fill the page are left out."""
    text = json.dumps(value, default=_plain, ensure_ascii=False)
    if len(text) <= longest:
        return text
    return f"left out here: {len(text):,} characters, which --json prints"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    item = value.item() if hasattr(value, "item") else value
    return item if isinstance(item, int | float) and math.isfinite(item) else str(item)


def _template() -> Any:
    jinja2 = import_extra("jinja2", "reports need Jinja2", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("revelu.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")
