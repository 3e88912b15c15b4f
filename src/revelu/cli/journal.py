"""``revelu journal``: what a journal is of."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from revelu.cli.failures import failures
from revelu.cli.options import AsJson
from revelu.cli.output import print_json
from revelu.cli.tables import show as show_rows
from revelu.errors import InputError
from revelu.shown import SCHEMA

journal = typer.Typer(name="journal", help="Look into the file that --journal names.")


@journal.callback()
def _journal() -> None:
    """Keep the name of the command, of which there is one."""


@journal.command()
def show(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What --journal named.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Show the target of a journal, what it was asked and when.

    Example:
      revelu journal show run.db
    """
    with failures(as_json=as_json):
        from revelu.oracle.journal import shown_date
        from revelu.oracle.snapshot import summary_of

        if not file.is_file():
            raise InputError(f"{file}: there is no such file")
        summary = summary_of(file)
    if as_json:
        print_json({"schema": SCHEMA, "journal": str(file), **dataclasses.asdict(summary)})
        return
    phases = ", ".join(f"{name} {n:,}" for name, n in summary.by_phase.items())
    rows = {
        **{name.replace("_", " "): value for name, value in summary.facts.items()},
        "queries": f"{summary.n_queries:,} in {summary.n_batches:,} batches",
        "by phase": phases or "none",
        "first answer": shown_date(summary.first),
        "last answer": shown_date(summary.last),
        "size": f"{summary.n_bytes:,} bytes",
    }
    show_rows(list(rows.items()))
