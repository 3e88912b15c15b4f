"""``revelu journal``: what a journal is of."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from revelu.cli.failures import failures
from revelu.cli.options import AsJson
from revelu.cli.output import print_json
from revelu.cli.tables import show as show_rows
from revelu.errors import InputError
from revelu.shown import SCHEMA


class _Shown(TyperGroup):
    """Commands of a journal, of which ``show`` may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what names no command for the file to show."""
        asks_for_help = {"-h", "--help"} & set(args[:1])
        if args and args[0] not in self.commands and not asks_for_help:
            args = ["show", *args]
        return super().parse_args(ctx, args)


journal = typer.Typer(
    name="journal", cls=_Shown, help="Look into the file that --journal names: journal FILE."
)


@journal.callback()
def _journal() -> None:
    """Keep the name of the command, of which there is one."""


@journal.command()
def show(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file that --journal named.", show_default=False),
    ],
    as_json: AsJson = False,
) -> None:
    """Show the target of a journal, what it was asked and when.

    Example:
      revelu journal run.db
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
