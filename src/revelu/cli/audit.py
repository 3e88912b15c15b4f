"""``revelu audit``: what a target gives away under each defence."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from revelu.cli.command import Asking, command
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.tasks.audit.rows import Audit, document_rows

_STYLES = {"weights": "bold red", "function": "red", "span": "yellow", "nothing": "green"}


@command
def audit(
    inputs: Annotated[
        Path | None,
        typer.Option(
            metavar="X.npy",
            help="Inputs as users send them, one a row, to compare on.",
            show_default=False,
        ),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(metavar="P", help="Price of a thousand queries.", show_default=False),
    ] = None,
    *,
    asking: Asking,
) -> ExitCode:
    """Find out what TARGET gives away, as it is and under each defence.

    Without --max-seconds an audit ends after some eight minutes: the rows share the time,
    and say where they were cut.  Of a served model only the answers as they are are
    attacked; other rows are extrapolated.

    Exit codes:
      0  finished
      2  usage or bad input
      3  budget or time exhausted
      4  target unreachable, or it stopped answering or answered nonsense
    130  interrupted
    After 3 and 4 the rows that are done are printed.
    """
    from revelu.formats.inputs import read_inputs
    from revelu.tasks.audit.audit import audit as examine

    asking.reserve([], {inputs: "holds the inputs"})
    X = None if inputs is None else read_inputs(inputs)
    with asking.opened() as oracle:
        found = examine(oracle, inputs=X, price=price, seed=asking.seed, progress=asking.line)
        found = asking.with_pictures(oracle, found, found.copy)
    own = {
        "error": found.error or None,
        "inputs": found.dim_in,
        "answers": found.dim_out,
        "served": found.served,
        "facts": found.facts,
        "rows": document_rows(found.rows),
        "missing": list(found.missing),
        "advice": list(found.advice),
    }
    account = asking.account(asking.target, found, own)
    if found.error:
        account["status"] = "error"
        sys.stderr.write(f"revelu: {' '.join(found.error.split())}\n")
    table = [_table(found)] if found.rows else []
    asking.show(account, list(found.facts.items()), *table, _lines(account))
    if found.error:
        return ExitCode.TARGET
    return ExitCode.CERTIFIED if found.status is None else of_status(found.status)


def _table(found: Audit) -> Table:
    """One row a defence."""
    on_inputs = any(row.label_agreement_on_inputs is not None for row in found.rows)
    priced = any(row.cost is not None for row in found.rows)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("answers", "recovered", "fidelity", "labels"):
        table.add_column(heading, no_wrap=True)
    for heading in ("fidelity, given", "labels, given") if on_inputs else ():
        table.add_column(heading, no_wrap=True)
    table.add_column("queries", justify="right", no_wrap=True)
    if priced:
        table.add_column("cost", justify="right", no_wrap=True)
    for row in found.rows:
        name = "as they are" if row.defence == "none" else row.defence
        marks = ("~" if row.extrapolated else "") + ("…" if row.cut else "")
        # Nothing found in a part of the time is no good news.
        style = _STYLES["span" if row.cut and row.recovered == "nothing" else row.recovered]
        cells: list[str | Text] = [name, Text(row.recovered + marks, style)]
        cells += [share(row.fidelity), share(row.label_agreement)]
        if on_inputs:
            cells += [share(row.fidelity_on_inputs), share(row.label_agreement_on_inputs)]
        cells.append("-" if row.queries is None else f"{row.queries:,}")
        if priced:
            cells.append("-" if row.cost is None else f"{row.cost:,.2f}")
        table.add_row(*cells)
    return table


def share(value: float | None) -> str:
    """A share in per cent; 100% is said of nothing less."""
    if value is None:
        return "-"
    if value < 0.0:
        return "< 0%"
    shown = f"{value:.2%}"
    return "> 99.99%" if shown == "100.00%" and value < 1.0 else shown


def _lines(account: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = account["rows"]
    lines = [("advice", text) for text in account["advice"]]
    if any(row["cut"] for row in rows):
        lines.append(("…", "the attack was cut by the time or the queries it had"))
    if any(row["extrapolated"] for row in rows):
        lines.append(("~", "extrapolated: not seen behind this defence"))
    return lines + ([("missing", ", ".join(account["missing"]))] if account["missing"] else [])
