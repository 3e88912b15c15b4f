"""Results as people look at them in Python: a card of a notebook, a picture, a page."""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

from revelu.errors import FormatError, InputError, MissingExtraError
from revelu.formats.arrays import replace_file
from revelu.network import Network
from revelu.network.span import Span
from revelu.report import sections
from revelu.report.page import page
from revelu.report.pictures import Picture, check_drawable, pictures
from revelu.report.summary import summary
from revelu.report.verdicts import verdict
from revelu.shown import Shown
from revelu.tasks.report_data import ReportData

_TONES = {"good": "#19683a", "warn": "#855400", "bad": "#ad2119"}


@dataclass(frozen=True)
class Plot:
    """A picture by itself, which a notebook shows.

    Attributes
    ----------
    title : str
    svg : str
    alternative : str
        What it shows, in words.
    """

    title: str
    svg: str
    alternative: str

    def __repr__(self) -> str:
        return f"<Plot: {self.title}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as ``.svg``.

        Raises
        ------
        FormatError
            If the suffix is another, or it cannot be written.
        """
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise FormatError(f"{path}: a plot ends in .svg")
        replace_file(path, self.svg.encode("utf-8"))


def lines(found: Shown) -> str:
    """Return what a command prints of a result, as far as it knows it."""
    account = {"warnings": [], "evidence": [], **found.to_dict()}
    if not account.get("queries"):
        # A certificate and samples have no ledger.
        account.pop("queries", None)
    return summary(found, account)


def write_page(found: Shown, path: str | PathLike[str]) -> None:
    """Write the page of a result."""
    path = Path(path)
    if path.suffix.lower() not in {".html", ".htm"}:
        raise FormatError(f"{path}: a report ends in .html")
    replace_file(path, page(found.told_by, _account(found)).encode("utf-8"))


def plot(found: Shown) -> Plot:
    """Draw the picture of a result that tells most."""
    check_drawable()
    drawn = pictures(_account(found))
    if not drawn:
        raise InputError(f"nothing to draw of {found!r}")
    return _alone(drawn[0])


def card(found: Shown) -> str:
    """Return a few lines of HTML, with a picture where one can be drawn."""
    account = _account(found)
    said = verdict(found.told_by, account)
    rows = sections.cards(account)
    statement = (account.get("certificate") or {}).get("statement")
    rows += [("certificate", statement)] if statement else []
    rows += [("evidence", text) for text in account["evidence"][:3]]
    cells = "".join(
        f'<tr><th style="text-align:left">{html.escape(label)}</th>'
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for label, text in rows
    )
    try:
        check_drawable()
        drawn = [_alone(picture) for picture in pictures(account)[:1]]
    except MissingExtraError:
        drawn = []
    figures = "".join(
        f"<figure>{p.svg}<figcaption>{html.escape(p.alternative)}</figcaption></figure>"
        for p in drawn
    )
    return (
        f'<div><p><b>{html.escape(type(found).__name__)}</b>: <b style="color:'
        f'{_TONES[said.tone]}">{html.escape(said.words)}</b></p><table>{cells}</table>{figures}</div>'
    )


def _account(found: Shown) -> dict[str, Any]:
    """Return what a page of a command has, as far as a result knows it."""
    account = {"target": "a target", "warnings": [], "evidence": [], **found.to_dict()}
    return account | {"figures": _figures(found, account)}


def _figures(found: Any, account: Mapping[str, Any]) -> dict[str, Any]:
    """What pictures show; none of it takes a query."""
    figures: dict[str, Any] = {}
    if account.get("certificate"):
        figures["agreement"] = account["certificate"]
    if account.get("at_risk"):
        told = account["exact"] or account["measured"]
        figures["conditions"] = told["conditions"]
    parts = [found, *(getattr(found, name, None) for name in ("network", "copy", "span"))]
    for part in parts:
        if isinstance(part, Network | Span):
            of_digits = ReportData().of_digits(getattr(found, "digits", None))
            return ReportData().of(part) | figures | of_digits
    return figures


def _alone(picture: Picture) -> Plot:
    """Give a picture the colours that a page's style sheet would: those of light paper."""
    sheet = resources.files("revelu.report").joinpath("page.css").read_text(encoding="utf-8")
    colours = dict(reversed(re.findall(r"--([\w-]+): (#\w+)", sheet)))
    svg = re.sub(r"var\(--([\w-]+)\)", lambda named: colours[named[1]], picture.svg)
    return Plot(picture.title, svg, picture.alternative)
