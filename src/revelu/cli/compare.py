"""``revelu compare``: the parameters of two files, aligned."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from revelu.cli.command import Reading, command
from revelu.cli.exit_codes import ExitCode
from revelu.report.sections import facts
from revelu.shown import SCHEMA

if TYPE_CHECKING:
    from revelu.tasks.compare import Comparison


@command
def compare(
    first: Annotated[
        str,
        typer.Argument(
            metavar="A", help="File of a network that revelu reads.", show_default=False
        ),
    ],
    second: Annotated[
        str,
        typer.Argument(
            metavar="B", help="File of another one, such as the truth.", show_default=False
        ),
    ],
    tolerance: Annotated[
        float,
        typer.Option(
            metavar="T",
            help="Largest difference that counts as agreement, as a share of a neuron's weights.",
        ),
    ] = 1e-6,
    *,
    reading: Reading,
) -> ExitCode:
    """Compare the weights of A and B up to permutation, scales and free signs.

    Example:
      revelu compare found.onnx model.onnx --tolerance 1e-4

    Exit codes:
      0  they agree
      1  they differ
      2  usage or bad input
    """
    from revelu.tasks.compare import compare as align

    reading.reserve([], dict.fromkeys((first, second), "is compared"))
    found = align(first, second, tolerance)
    reading.picture(found.first)
    account = _document(first, second, found)
    reading.show(account, facts("compare", account))
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
        "scales": [] if alignment is None else [s.tolist() for s in alignment.factors],
        "signs": [] if alignment is None else alignment.signs.astype(int).tolist(),
        "unmatched": [] if alignment is None else list(alignment.unmatched),
    }
