"""``revelu audit``: what a target gives away under each defence."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from revelu.cli.command import Asking, command
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.options import optional
from revelu.report.sections import audit_table


@command
def audit(
    inputs: Annotated[
        Path | None,
        optional("Inputs as users send them, one a row, to compare on.", metavar="X.csv"),
    ] = None,
    price: Annotated[float | None, optional("Price of a thousand queries.", metavar="P")] = None,
    *,
    asking: Asking,
) -> ExitCode:
    """Find out what TARGET gives away, as it is and under each defence.

    Example:
      revelu audit model.onnx --inputs X.csv --price 1.5 --report audit.html

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
    from revelu.formats.tables import read_named_table
    from revelu.oracle.column_names import NamedRows
    from revelu.tasks.audit.audit import audit as examine

    asking.reserve([], {inputs: "holds the inputs"})
    X = None if inputs is None else NamedRows(*read_named_table(inputs))
    with asking.opened() as oracle:
        found = examine(oracle, inputs=X, price=price, seed=asking.seed, progress=asking.line)
        found = asking.with_pictures(oracle, found, found.copy)
    account = asking.account(asking.target, found, found.fields())
    if found.error:
        account["status"] = "error"
        sys.stderr.write(f"revelu: {' '.join(found.error.split())}\n")
    table = audit_table(account, kept=False)
    asking.show(account, list(found.facts.items()), table, _lines(account))
    if found.error:
        return ExitCode.TARGET
    return ExitCode.CERTIFIED if found.status is None else of_status(found.status)


def _lines(account: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = account["rows"]
    lines = [("advice", text) for text in account["advice"]]
    if any(row["cut"] for row in rows):
        lines.append(("…", "the attack was cut by the time or the queries it had"))
    if any(row["extrapolated"] for row in rows):
        lines.append(("~", "extrapolated: not seen behind this defence"))
    return lines + ([("missing", ", ".join(account["missing"]))] if account["missing"] else [])
