"""``revelu demos``: the targets that come along."""

from rich.console import Console
from rich.table import Table

from revelu.cli.failures import failures
from revelu.cli.options import AsJson
from revelu.cli.output import SCHEMA, print_json


def demos(
    as_json: AsJson = False,
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
