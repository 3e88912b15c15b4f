"""``revelu methods``: the table of methods, and which comes after which."""

from typing import Any

from rich.console import Console
from rich.table import Table

from revelu.cli.failures import failures
from revelu.cli.options import AsJson
from revelu.cli.output import SCHEMA, print_json


def methods(
    as_json: AsJson = False,
) -> None:
    """List the methods of `extract`: what they recover, from which answers, at which cost."""
    with failures(as_json=as_json):
        from revelu.recover.table import AFTER, METHODS

        rows: list[dict[str, Any]] = [
            {
                "name": method.name,
                "hidden": list(method.hidden),
                "answers": sorted(law.value for law in method.answers),
                "box": method.box,
                "cost": method.cost,
                "after": sorted(
                    f"{first}: {why.value}"
                    for (first, why), then in AFTER.items()
                    if then == method.name
                ),
            }
            for method in METHODS
        ]
        if as_json:
            print_json({"schema": SCHEMA, "methods": rows})
            return
        table = Table(box=None, padding=(0, 2, 0, 0))
        titles = ("method", "hidden layers", "answers", "in a box", "queries a parameter", "after")
        for title in titles:
            # On a narrow terminal the other columns fold, and names stay whole.
            table.add_column(title, no_wrap=title in {"method", "after"})
        for method, row in zip(METHODS, rows, strict=True):
            fewest, most = method.hidden
            depth = f"{fewest} or more" if most is None else f"{most}"
            table.add_row(
                method.name,
                depth,
                ", ".join(row["answers"]),
                "yes" if method.box else "no",
                method.cost,
                "\n".join(dict.fromkeys(said.partition(":")[0] for said in row["after"])),
            )
        console = Console(highlight=False)
        console.print(table)
        console.print("auto, the default, chooses by the noise it measures, and goes on as listed.")
