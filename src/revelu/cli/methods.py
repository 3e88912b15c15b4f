"""``revelu methods``: the table of methods, and which comes after which."""

from typing import Any

from revelu.cli.command import check_form
from revelu.cli.failures import failures
from revelu.cli.options import AsCsv, AsJson
from revelu.cli.output import print_json
from revelu.cli.tables import show, show_csv, table
from revelu.shown import SCHEMA


def methods(
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """List the methods of `extract`: what each is for, from which answers, at which cost.

    Example:
      revelu methods
    """
    with failures(as_json=as_json):
        check_form(as_json=as_json, as_csv=as_csv)
        rows = _rows()
        if as_json:
            print_json({"schema": SCHEMA, "methods": rows})
            return
        columns = ("method", "for", "answers", "in a box", "queries a parameter", "after")
        found = table("Methods", columns, [_cells(row) for row in rows])
        if as_csv:
            show_csv(found)
            return
        show(found)
        print("auto, the default, chooses by the noise it measures, and goes on as listed.")  # noqa: T201


def _rows() -> list[dict[str, Any]]:
    """What JSON has of each method."""
    from revelu.recover.table import AFTER, METHODS

    return [
        {
            "name": method.name,
            "purpose": method.purpose,
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


def _cells(row: dict[str, Any]) -> list[str]:
    """What people read of a method."""
    before = dict.fromkeys(said.partition(":")[0] for said in row["after"])
    answers, box = ", ".join(row["answers"]), "yes" if row["box"] else "no"
    return [row["name"], row["purpose"], answers, box, row["cost"], ", ".join(before)]
