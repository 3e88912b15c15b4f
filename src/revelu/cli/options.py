"""The arguments that commands share, as the command line knows them."""

from typing import Annotated, TypeAlias

import typer

Target: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="demo:NAME, a file ending in .onnx or .npz, or module:attribute (with --trust).",
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
