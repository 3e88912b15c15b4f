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
Budget: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Most queries ever asked, all phases counted.", show_default=False),
]
MaxSeconds: TypeAlias = Annotated[
    float | None,
    typer.Option(
        help="Ask nothing later than this; computing may go on.",
        show_default=False,
    ),
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Decides every random choice.")]
DimIn: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Inputs of a target that does not say.", show_default=False),
]
Journal: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Keep every answer here, and ask for none that is here already.",
        show_default=False,
    ),
]
Workers: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Requests at a time.", show_default=False),
]
Dask: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Ask from a Dask cluster.", show_default=False),
]
Batch: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Most rows of one request; 1,024 by default.", show_default=False),
]
Rate: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="N/s", help="Most requests to a served model, per s, min or h.", show_default=False
    ),
]
InputName: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Input of a served model that does not say.", show_default=False),
]
OutputName: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Output of a served model that has several.", show_default=False),
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
Trust: TypeAlias = Annotated[
    bool,
    typer.Option("--trust", metavar="", help="Open a target even though that executes its code."),
]
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
