"""``revelu obfuscate``: inputs beyond recognition that a target answers as before."""

import csv
import io
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revelu.cli.command import Asking, command
from revelu.cli.domains import columns_of
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.options import Force, flag, optional
from revelu.errors import FormatError, InputError
from revelu.report.sections import facts

if TYPE_CHECKING:
    from revelu.tasks.obfuscate import AnswersApart, Obfuscation
    from revelu.types import FloatArray


@command
def obfuscate(
    inputs: Annotated[Path, optional("Table of the inputs to change, one a row.", metavar="X.csv")],
    output: Annotated[
        Path, optional("File to write the changed inputs to.", "--output", "-o", metavar="Y.csv")
    ],
    force: Force = False,
    norm: Annotated[
        float,
        typer.Option(metavar="R", help="Length of the noise, as a multiple of each input's norm."),
    ] = 10.0,
    box: Annotated[
        tuple[float, float] | None,
        optional(
            "Smallest and largest value of the changed inputs; default: no limits.", metavar="LO HI"
        ),
    ] = None,
    png: Annotated[
        Path | None,
        optional(
            "File to draw the inputs to, before and after, as square images (needs matplotlib).",
            metavar="GRID.png",
        ),
    ] = None,
    known: Annotated[
        Path | None,
        optional(
            "File with the span, as `revelu span` wrote it; default: it is recovered.",
            "--span",
            metavar="FILE.npz",
        ),
    ] = None,
    labels: Annotated[bool, flag("Recover the span from class labels alone.", "--labels")] = False,
    *,
    asking: Asking,
) -> ExitCode:
    """Change inputs inside the null space of TARGET's first layer, and ask it again.

    Example:
      revelu obfuscate model.onnx --inputs X.csv -o Y.csv

    Exit codes:
      0  finished, and every label is as before
      1  finished, but a label changed, or the span was found in part
      2  usage or bad input; a first layer that leaves no null space
      3  budget or time exhausted
      4  target unreachable, or it answered nonsense
    130  interrupted
    """
    from revelu.formats.tables import read_rows
    from revelu.oracle.column_names import NamedRows
    from revelu.tasks.job import rows_for
    from revelu.tasks.obfuscate import obfuscate_target

    asking.reserve([output, png], {inputs: "holds the inputs", known: "is the span"})
    _check_outputs(output, png)
    names, table = read_rows(inputs, columns_of(asking))
    asking.has_inputs = True
    with asking.opened() as oracle:
        X = rows_for(NamedRows(names, table, f"{inputs}"), oracle, box)
        done = obfuscate_target(
            oracle,
            X,
            span=known,
            norm=norm,
            box=box,
            labels=labels,
            seed=asking.seed,
            progress=asking.line,
        )
    answers, code = done.answers, of_status(done.recovery.status)
    if answers is not None:
        succeeded = not code and bool(answers.same.all())
        write = partial(asking.write, certified=succeeded, force=force)
        write([output], lambda path: _write(path, done.outputs, names))
        write([png], lambda path: _draw(path, X, done.outputs, answers))
    asking.picture(done.recovery.span)
    account = asking.account(asking.target, done.recovery, done.recovery.fields())
    account |= _figures(done)
    rows = [("span", f"{account['rank']} of {account['inputs']} directions")]
    asking.show(account, rows, facts("obfuscate", account))
    changed = answers is not None and not answers.same.all()
    return ExitCode.NOT_CERTIFIED if changed and not code else code


def _check_outputs(output: Path, png: Path | None) -> None:
    """Refuse what cannot be written before anything is asked."""
    if output.suffix.lower() not in {".npy", ".csv"}:
        raise FormatError(f"{output}: inputs are written as .csv or .npy")
    if not output.parent.is_dir():
        raise FormatError(f"{output}: the folder {output.parent} does not exist")
    if png is not None:
        from revelu.formats.pictures import check_picture

        check_picture(png)


def _write(path: Path, Y: "FloatArray", names: Sequence[str]) -> None:
    """Write a table as it came: with the names of its columns, every number to the last bit."""
    import numpy as np

    from revelu.formats.arrays import replace_file

    if path.suffix.lower() == ".csv":
        are_names = len(names) == Y.shape[1] and list(names) != [f"{i}" for i in range(len(names))]
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerows([names] if are_names else [])
        rows.writerows([repr(float(y)) for y in row] for row in Y)
        replace_file(path, text.getvalue().encode("utf-8"))
        return
    buffer = io.BytesIO()
    np.save(buffer, Y)
    replace_file(path, buffer.getvalue())


def _figures(done: "Obfuscation") -> dict[str, Any]:
    import numpy as np

    answers = done.answers
    if answers is None:
        return {"changed_labels": None, "largest_change": None, "largest_correlation": None}
    return {
        "inputs_changed": len(done.outputs),
        "changed_labels": int((~answers.same).sum()),
        "largest_change": answers.largest_change,
        "largest_correlation": float(np.abs(answers.correlations).max(initial=0.0)),
    }


def _draw(
    path: Path, X: "FloatArray", Y: "FloatArray", answers: "AnswersApart", most_columns: int = 10
) -> None:
    """Originals above, changed ones below, each with its label and confidence."""
    from revelu.formats.pictures import draw_grid

    side = math.isqrt(X.shape[1])
    if side * side != X.shape[1]:
        raise InputError(f"a picture needs square images; inputs have {X.shape[1]} numbers")
    m = min(len(X), most_columns)
    titles = [
        [
            f"{place} {i}\n{_title(*said)}"
            for i, said in enumerate(zip(row[:m], sure[:m], strict=True))
        ]
        for place, row, sure in zip(
            ("row", "changed"), answers.labels, answers.confidences, strict=True
        )
    ]
    draw_grid(path, [X[:m], Y[:m]], titles, (side, side))


def _title(label: float, confidence: float) -> str:
    return f"{label:g}" if math.isnan(confidence) else f"{label:g}: {confidence:.1%}"
