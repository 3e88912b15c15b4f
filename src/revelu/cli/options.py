"""The arguments that commands share, as the command line knows them."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Target: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="demo:NAME, a file ending in .onnx, .npz, .safetensors or .pt, the address "
        "http(s)://HOST/v2/models/NAME, or, with --trust, a .joblib or module:attribute.",
        show_default=False,
    ),
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Decides every random choice.")]
DimIn: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Inputs of a target that does not say.", show_default=False),
]
Outputs: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write it, .onnx, .npz, .safetensors or .pt; may be given again.",
        show_default=False,
    ),
]
Box: TypeAlias = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LO HI", help="No coordinate of a query leaves it."),
]
Report: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.html",
        help="Write the account as a page, with pictures.",
        show_default=False,
    ),
]

# Flags take no value: without an empty metavar the help shows them a type.
AsJson: TypeAlias = Annotated[
    bool,
    typer.Option("--json", metavar="", help="Print one JSON object on standard output."),
]
Verbose: TypeAlias = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        metavar="",
        help="Log to standard error; -vv more.",
        show_default=False,
    ),
]
Quiet: TypeAlias = Annotated[
    bool,
    typer.Option("--quiet", "-q", metavar="", help="No progress, and only the verdict."),
]
