"""``revelu compare``: the parameters of two files, aligned."""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from revelu.cli.exit_codes import ExitCode
from revelu.cli.failures import failures
from revelu.cli.options import AsJson, Quiet, Report
from revelu.cli.output import SCHEMA, print_json
from revelu.cli.reporting import Reporting

if TYPE_CHECKING:
    from revelu.tasks.compare import Comparison

# Numbers of a layer that people are shown; JSON has them all.
_MOST_SHOWN = 24


def compare(
    first: Annotated[
        str,
        typer.Argument(metavar="A", help="A file that revelu reads.", show_default=False),
    ],
    second: Annotated[
        str,
        typer.Argument(metavar="B", help="Another one, such as the truth.", show_default=False),
    ],
    tolerance: Annotated[
        float,
        typer.Option(metavar="T", help="Largest difference, relative to a neuron's weights."),
    ] = 1e-6,
    report: Report = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare the weights of A and B up to permutation, scales and free signs.

    Exit codes:
      0  they agree
      1  they differ
      2  usage or bad input
    """
    with failures(as_json=as_json):
        from revelu.tasks.compare import compare as align

        reporting = Reporting("compare", report, first, second)
        found = align(first, second, tolerance)
        account = reporting.of_network(_document(first, second, found), found.first)
        if as_json:
            print_json(account)
        else:
            _print(first, second, found, verdict_only=quiet)
    raise typer.Exit(ExitCode.CERTIFIED if found.agree else ExitCode.NOT_CERTIFIED)


def _document(first: str, second: str, found: "Comparison") -> dict[str, Any]:
    alignment = found.alignment
    return {
        "schema": SCHEMA,
        "status": "agree" if found.agree else "differ",
        "files": [first, second],
        "architectures": [list(n.architecture) for n in (found.first, found.second)],
        "tolerance": found.tolerance,
        "max_relative_error": found.max_relative_error,
        "reason": found.reason,
        "max_parameter_error": None if alignment is None else alignment.max_parameter_error,
        "worst_parameter": None if alignment is None else alignment.worst_parameter,
        "permutations": [] if alignment is None else [p.tolist() for p in alignment.permutations],
        "scales": [] if alignment is None else [s.tolist() for s in alignment.scales],
        "signs": [] if alignment is None else alignment.signs.astype(int).tolist(),
        "unmatched": [] if alignment is None else list(alignment.unmatched),
    }


def _print(first: str, second: str, found: "Comparison", *, verdict_only: bool) -> None:
    console = Console(highlight=False, soft_wrap=verdict_only)
    verdict = ("they agree", "bold green") if found.agree else ("they differ", "bold red")
    console.print(Text.assemble(f"{first}, {second}: ", verdict))
    if verdict_only:
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in _rows(found):
        table.add_row(label, Text(text))
    console.print(table)


def _rows(found: "Comparison") -> list[tuple[str, str]]:
    """Label and text of each line."""
    widths = " and ".join("-".join(map(str, n.architecture)) for n in (found.first, found.second))
    rows = [("networks", widths)]
    rows += [("because", found.reason)] if found.reason else []
    alignment = found.alignment
    if alignment is None:
        return rows
    if not alignment.unmatched:
        worst = alignment.worst_parameter or "none"
        error = f"{alignment.max_parameter_error:.2g}"
        rows.append(("worst", f"{worst}, off by {error}, in weight rows of norm 1"))
        rows.append(("relative", f"{found.max_relative_error:.2g} of a neuron's weights at most"))
    rows += [("unmatched", _side(name)) for name in alignment.unmatched[:_MOST_SHOWN]]
    for i, (order, scales) in enumerate(zip(alignment.permutations, alignment.scales, strict=True)):
        rows.append((f"order {i}", _numbers(order, "d")))
        rows.append((f"scales {i}", _numbers(scales, ".4g")))
    if len(alignment.signs):
        rows.append(("signs", _numbers(alignment.signs, "+.0f")))
    return rows


def _numbers(values: np.ndarray, kind: str) -> str:
    shown = " ".join(format(v, kind) for v in values[:_MOST_SHOWN].tolist())
    return f"{shown} ... ({len(values):,} in all)" if len(values) > _MOST_SHOWN else shown


def _side(name: str) -> str:
    """An unmatched neuron, named by its file."""
    return name.replace("recovered: ", "A ").replace("truth: ", "B ")
