"""``revelu demos``: the targets that come along."""

from revelu.cli.command import check_form
from revelu.cli.failures import failures
from revelu.cli.options import AsCsv, AsJson
from revelu.cli.output import print_json
from revelu.cli.tables import show, show_csv, table
from revelu.shown import SCHEMA


def demos(
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """List the demo targets, each a network trained on real data.

    Example:
      revelu demos
    """
    with failures(as_json=as_json):
        from revelu import adapters

        check_form(as_json=as_json, as_csv=as_csv)
        found = {f"demo:{name}": text for name, text in adapters.demos().items()}
        if as_json:
            print_json({"schema": SCHEMA, "demos": found})
        elif as_csv:
            show_csv(table("Demos", ("target", "is"), list(found.items())))
        else:
            show(list(found.items()))
