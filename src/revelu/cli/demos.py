"""``revelu demos``: the targets that come along."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from revelu.cli.failures import failures
from revelu.cli.output import SCHEMA, print_json


def demos(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output.")
    ] = False,
) -> None:
    """List the demo targets, each a network trained on real data."""
    with failures(as_json=as_json):
        from revelu import adapters

        found = {f"demo:{name}": text for name, text in adapters.demos().items()}
        if as_json:
            print_json({"schema": SCHEMA, "demos": found})
            return
        table = Table.grid(padding=(0, 2))
        for target, text in found.items():
            table.add_row(target, text)
        Console(highlight=False).print(table)
