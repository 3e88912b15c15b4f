"""``revelu compare``: the parameters of two files, aligned; or their answers, side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revelu.cli.command import Reading, command
from revelu.cli.domains import columns_of, domain_of
from revelu.cli.exit_codes import ExitCode
from revelu.cli.options import (
    Box,
    Columns,
    KeepDiscrete,
    Labels,
    Like,
    LinkName,
    Mean,
    Std,
    optional,
)
from revelu.errors import FormatError, InputError
from revelu.report.sections import facts
from revelu.shown import SCHEMA

if TYPE_CHECKING:
    from revelu.tasks.compare import Comparison
    from revelu.tasks.side_by_side import SideBySide


@dataclass
class Comparing(Reading):
    """Options of the comparison: where and how both are asked, if they are."""

    link: LinkName = "auto"
    like: Like = None
    columns: Columns = None
    mean: Mean = None
    std: Std = None
    keep_discrete: KeepDiscrete = False
    box: Box = None
    labels: Labels = False

    @property
    def is_of_answers(self) -> bool:
        """Whether they say how answers are compared, and not weights."""
        where = (self.like, self.columns, self.mean, self.std, self.box)
        named = any(given is not None for given in where)
        return named or self.keep_discrete or self.labels or self.link != "auto"


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
            help="Largest difference that counts as agreement, as a share of a neuron's weights, "
            "or of the largest answer.",
        ),
    ] = 1e-6,
    inputs: Annotated[
        Path | None,
        optional("Rows to compare answers on, in place of weights.", metavar="X.csv"),
    ] = None,
    output: Annotated[
        Path | None,
        optional(
            "Where to write the answers side by side, the worst rows first.",
            "--output",
            "-o",
            metavar="DIFF.csv",
        ),
    ] = None,
    *,
    reading: Comparing,
) -> ExitCode:
    """Compare the weights of A and B up to permutation, scales and free signs.

    Logits below a softmax are compared up to what is added to all of them.

    With --inputs, compare what A and B answer to the rows of a table.  With --like, --mean,
    --std, --box, --labels or --link, compare what they answer to 3,000 inputs drawn as these
    say.  With --link auto, answers are compared as they are.

    Example:
      revelu compare found.onnx model.onnx --tolerance 1e-4

    Example, of the answers:
      revelu compare old.pkl new.onnx --inputs table.csv -o diff.csv

    Exit codes:
      0  they agree
      1  they differ
      2  usage or bad input
    """
    from revelu.tasks.compare import compare as align

    kept: dict[Any, str] = dict.fromkeys((first, second), "is compared")
    kept |= {inputs: "holds the inputs", reading.like: "holds the data"}
    reading.reserve([output], kept, check=check_csv)
    if inputs is not None or reading.is_of_answers:
        return _of_answers(reading, first, second, inputs, tolerance, output)
    if output is not None:
        raise InputError("-o writes answers: say which rows to ask for, --inputs X.csv or --box")
    found = align(first, second, tolerance)
    reading.picture(found.first)
    account = _document(first, second, found)
    reading.show(account, facts("compare", account))
    return ExitCode.CERTIFIED if found.agree else ExitCode.NOT_CERTIFIED


def check_csv(path: Path) -> None:
    """Refuse what is no place for a table of answers."""
    if path.suffix.lower() != ".csv":
        raise FormatError(f"{path}: a table of answers ends in .csv")
    if not path.parent.is_dir():
        raise FormatError(f"{path}: the folder {path.parent} does not exist")


def _of_answers(
    reading: Comparing,
    first: str,
    second: str,
    inputs: Path | None,
    tolerance: float,
    output: Path | None,
) -> ExitCode:
    """Compare what two models answer, and write it."""
    from revelu.tasks.side_by_side import side_by_side

    reading.has_inputs = inputs is not None
    domain = domain_of(reading, reading.box)
    if inputs is not None and (domain is not None or reading.box is not None):
        raise InputError("--inputs has the rows that are asked: leave out what says where")
    with reading.timed():
        found = side_by_side(
            first,
            second,
            inputs,
            tolerance,
            domain=domain,
            box=None if domain is not None else reading.box,
            link=reading.link,
            labels=reading.labels,
            columns=columns_of(reading),
        )
    reading.write([output], found.save)
    account = _document_of_answers(first, second, found) | {"outputs": reading.written}
    account |= {"notes": list(found.notes), "warnings": list(reading.unwritten)}
    reading.show(account, facts("compare", account))
    return ExitCode.CERTIFIED if found.agree else ExitCode.NOT_CERTIFIED


def _document_of_answers(first: str, second: str, found: "SideBySide") -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "status": "agree" if found.agree else "differ",
        "files": [first, second],
        "tolerance": found.tolerance,
        "answers": found.to_dict(),
    }


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
        "up_to_shift": found.up_to_shift,
        "max_parameter_error": None if alignment is None else alignment.max_parameter_error,
        "worst_parameter": None if alignment is None else alignment.worst_parameter,
        "permutations": [] if alignment is None else [p.tolist() for p in alignment.permutations],
        "scales": [] if alignment is None else [s.tolist() for s in alignment.factors],
        "signs": [] if alignment is None else alignment.signs.astype(int).tolist(),
        "unmatched": [] if alignment is None else list(alignment.unmatched),
    }
