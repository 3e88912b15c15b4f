"""``revelu compare``: the parameters of two files, aligned."""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from revelu.cli.command import Reading, command
from revelu.cli.exit_codes import ExitCode
from revelu.cli.output import SCHEMA

if TYPE_CHECKING:
    from revelu.tasks.compare import Comparison


@command
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
    *,
    reading: Reading,
) -> ExitCode:
    """Compare the weights of A and B up to permutation, scales and free signs.

    Exit codes:
      0  they agree
      1  they differ
      2  usage or bad input
    """
    from revelu.tasks.compare import compare as align

    reading.reserve([], dict.fromkeys((first, second), "is compared"))
    found = align(first, second, tolerance)
    reading.picture(found.first)
    reading.show(_document(first, second, found), _rows(found))
    return ExitCode.CERTIFIED if found.agree else ExitCode.NOT_CERTIFIED


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


def _rows(found: "Comparison", most: int = 24) -> list[tuple[str, str]]:
    """Label and text of each line, of a layer so many numbers at most: JSON has them all."""
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
    rows += [("unmatched", _side(name)) for name in alignment.unmatched[:most]]
    for i, (order, scales) in enumerate(zip(alignment.permutations, alignment.scales, strict=True)):
        rows.append((f"order {i}", _numbers(order, "d", most)))
        rows.append((f"scales {i}", _numbers(scales, ".4g", most)))
    if len(alignment.signs):
        rows.append(("signs", _numbers(alignment.signs, "+.0f", most)))
    return rows


def _numbers(values: np.ndarray, kind: str, most: int) -> str:
    shown = " ".join(format(v, kind) for v in values[:most].tolist())
    return f"{shown} ... ({len(values):,} in all)" if len(values) > most else shown


def _side(name: str) -> str:
    """An unmatched neuron, named by its file."""
    return name.replace("recovered: ", "A ").replace("truth: ", "B ")
