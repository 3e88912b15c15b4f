"""``revelu export``: a pair of networks as checkers of equivalence take it."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from revelu.cli.command import Reading, command
from revelu.cli.exit_codes import ExitCode
from revelu.cli.options import optional
from revelu.errors import FormatError, InputError
from revelu.shown import SCHEMA


@command
def export(
    first: Annotated[
        str,
        typer.Argument(
            metavar="A", help="File of a network that revelu reads.", show_default=False
        ),
    ],
    second: Annotated[
        str,
        typer.Argument(metavar="B", help="File of another one.", show_default=False),
    ],
    box: Annotated[
        tuple[float, float],
        optional("Smallest and largest value of every input.", metavar="LO HI"),
    ],
    output: Annotated[
        Path | None,
        optional(
            "File to write A - B to, as one network: .onnx.", "--output", "-o", metavar="FILE"
        ),
    ] = None,
    vnnlib: Annotated[
        Path | None,
        optional("File to write the box and the question to.", metavar="FILE.vnnlib"),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(metavar="T", help="Smallest difference that a checker is to look for."),
    ] = 1e-6,
    *,
    reading: Reading,
) -> ExitCode:
    """Write A - B as one network, and the question whether it is 0 in a box.

    A checker that answers "unsat" has proved that outputs differ by less than --tolerance.

    Example:
      revelu export a.onnx b.onnx --box -1 1 -o pair.onnx --vnnlib pair.vnnlib

    Exit codes:
      0  written
      2  usage or bad input
    """
    import numpy as np

    from revelu.adapters import named_network
    from revelu.formats import check_writable
    from revelu.formats.vnnlib import dump
    from revelu.network.sums import difference_network

    lo, hi = box
    if not -np.inf < lo < hi < np.inf:
        raise InputError(f"--box {lo:g} {hi:g}: a box is two finite numbers, the smaller first")
    if not 0 < tolerance < np.inf:
        raise InputError(f"tolerance must be a positive number, got {tolerance!r}")
    if output is None and vnnlib is None:
        raise InputError("there is nothing to write: give -o FILE.onnx, --vnnlib FILE, or both")
    reading.reserve([output, vnnlib], dict.fromkeys((first, second), "is read"))
    if output is not None:
        check_writable(output)
    if vnnlib is not None and not vnnlib.parent.is_dir():
        raise FormatError(f"{vnnlib}: the folder {vnnlib.parent} does not exist")
    pair = difference_network(named_network(first), named_network(second))
    low, high = np.full(pair.dim_in, lo), np.full(pair.dim_in, hi)
    question = partial(dump, low=low, high=high, n_outputs=pair.dim_out, tolerance=tolerance)
    reading.write([output], pair.save)
    reading.write([vnnlib], question)
    reading.picture(pair)
    widths = "-".join(map(str, pair.architecture))
    account = {
        "schema": SCHEMA,
        "status": "written",
        "files": [first, second],
        "architecture": list(pair.architecture),
        "box": [lo, hi],
        "tolerance": tolerance,
        "outputs": reading.written,
    }
    rows = [
        ("network", f"{widths}, {pair.n_parameters:,} parameters"),
        ("asked", f"an input in [{lo:g}, {hi:g}] at which an output is {tolerance:g} or more"),
    ]
    reading.show(account, rows)
    return ExitCode.CERTIFIED
