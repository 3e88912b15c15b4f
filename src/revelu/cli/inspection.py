"""``revelu inspect``: what a file of a network holds."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revelu.cli.command import Reading, command
from revelu.cli.exit_codes import ExitCode
from revelu.cli.options import flag
from revelu.shown import SCHEMA

if TYPE_CHECKING:
    from rich.text import Text

    from revelu.network import Network
    from revelu.types import FloatArray

_NONE = (
    "the file keeps none: extract -o FILE.npz writes them, of a network whose layers are dense and "
    "that is certified"
)


@command
def inspect(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A file that revelu reads.", show_default=False),
    ],
    errors: Annotated[
        bool, flag("Print standard errors of all weights, too, where they are kept.", "--errors")
    ] = False,
    *,
    reading: Reading,
) -> ExitCode:
    """Say what the network of a file is, where it comes from, and how well its weights are known.

    Filters of a convolution are drawn, each on a scale of its own; --report has them in colours.

    A file of another program is read as `revelu extract FILE` reads it; nothing in it is run.

    Example:
      revelu inspect found.npz --errors

    Example, of a pickle of scikit-learn:
      revelu inspect old.pkl

    Exit codes:
      0  the file holds a network
      2  usage or bad input
    """
    from revelu import load
    from revelu.formats import heads_of, kept_of, load_arrays, suffixes
    from revelu.network import LayeredNetwork
    from revelu.numerics.digits import digits_in_words
    from revelu.recovery import READ, digits_by_array, told_errors

    reading.reserve([], {file: "is looked at"})
    path = Path(file)
    network, kept, heads = load(file), kept_of(path), heads_of(path)
    has_arrays = path.suffix.lower() in suffixes() and not isinstance(network, LayeredNetwork)
    known = load_arrays(path).errors if has_arrays else None
    digits = None if known is None else digits_by_array(network, known)
    reading.picture(network)
    account = {
        "schema": SCHEMA,
        "status": "finished",
        "files": [file],
        "architecture": list(network.architecture),
        "parameters": network.n_parameters,
        "certified": network.certified,
        "method": READ if kept.words else None,
        "read_from": kept.words or None,
        "head": list(heads),
        "classes": list(kept.classes),
        "columns": list(kept.columns),
        "box": None if kept.box is None else list(kept.box),
        **told_errors(known, digits),
    }
    rows = [("network", f"{network!r}".strip("<>")), ("certified", _mark(network))]
    said = {
        "read from": kept.words,
        "head": " and ".join(heads),
        "classes": ", ".join(map(str, kept.classes)),
        "columns": ", ".join(kept.columns),
        "box": "" if kept.box is None else "asked only in [{:g}, {:g}]".format(*kept.box),
    }
    rows += [(name, text) for name, text in said.items() if text]
    if digits is not None:
        rows.append(("digits", digits_in_words(digits)))
    if errors:
        rows += [("errors", _NONE)] if known is None else _lines(network, known)
    reading.show(account, rows, _filters(network))
    return ExitCode.CERTIFIED


def _filters(network: "Network") -> "Text | None":
    """The filters that read an image, as small pictures; None of other networks."""
    from rich.text import Text

    from revelu.network import LayeredNetwork
    from revelu.report.shades import filters_in_shades
    from revelu.tasks.report_data import ReportData

    kernels = network.filters if isinstance(network, LayeredNetwork) else None
    if kernels is None:
        return None
    encoding, width = getattr(sys.stdout, "encoding", None), shutil.get_terminal_size().columns
    return Text(filters_in_shades(kernels, encoding, width, ReportData.most_images))


def _mark(network: "Network") -> str:
    """Whether fresh queries have vouched for it."""
    return {True: "yes", False: "no", None: "the file does not say"}[network.certified]


def _lines(
    network: "Network", errors: "list[tuple[FloatArray, FloatArray]]"
) -> list[tuple[str, Any]]:
    """A row of weights a line, each with its error, rows of hidden neurons of norm 1."""
    import numpy as np

    unit = network.with_unit_rows()
    layers = [*zip(unit.weights, unit.biases, strict=True)]
    layers += [] if unit.skip is None else [unit.skip]
    lines = []
    for i, ((W, b), (dW, db)) in enumerate(zip(layers, errors, strict=True)):
        name = "skip" if i == len(unit.weights) else f"layer {i + 1}"
        values, known = np.column_stack([W, b]), np.column_stack([dW, db])
        for j, (row, of_row) in enumerate(zip(values, known, strict=True)):
            shown = [_with_error(v, e) for v, e in zip(row, of_row, strict=True)]
            lines.append((f"{name}, {j}", "  ".join(shown)))
    return lines


def _with_error(value: float, error: float) -> str:
    """A number and its error: ``0.4142 ± 1.2e-07``; what nothing tells is ``?``."""
    return f"{value:.6g} ± {error:.1e}" if error < float("inf") else "?"
