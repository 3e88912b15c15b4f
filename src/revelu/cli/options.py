"""The arguments that commands share, as the command line knows them."""

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer


def optional(text: str, *names: str, **more: Any) -> Any:
    """Return an option that has no default to show."""
    return typer.Option(*names, help=text, show_default=False, **more)


def flag(text: str, *names: str) -> Any:
    """Return an option that takes no value: without an empty metavar the help shows it a type."""
    return typer.Option(*names, help=text, metavar="")


Target: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="demo:NAME, a file ending in .onnx, .npz, .safetensors, .pt, .skops or .toml, a "
        "folder of MLflow's or Hugging Face's, an address http(s)://..., or, with --trust, a "
        ".joblib, .pkl or module:attribute.",
        show_default=False,
    ),
]


def _whole(given: str) -> int:
    """A whole number, 1e5 among them."""
    try:
        value = float(given) if not given.lstrip("+-").isdecimal() else int(given)
    except ValueError:
        value = 0.5
    if not float(value).is_integer():
        raise typer.BadParameter(f"{given!r} is no whole number")
    return int(value)


Budget: TypeAlias = Annotated[
    int | None,
    optional("Most queries ever asked, all phases counted.", parser=_whole, metavar="N"),
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Decides every random choice.")]
DimIn: TypeAlias = Annotated[int | None, optional("Inputs of a target that does not say.")]
Outputs: TypeAlias = Annotated[
    list[Path] | None,
    optional(
        "Where to write it, .onnx, .npz, .safetensors or .pt; may be given again.",
        "--output",
        "-o",
        metavar="FILE",
    ),
]
Force: TypeAlias = Annotated[
    bool, flag("Let what is not certified replace a file, too.", "--force")
]
Box: TypeAlias = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LO HI", help="No coordinate of a query leaves it."),
]
Labels: TypeAlias = Annotated[
    bool, flag("Use class labels alone: the largest answer, or the sign.", "--labels")
]
InputName: TypeAlias = Annotated[
    str | None, optional("Which of several inputs varies; several, by commas, vary together.")
]
OutputName: TypeAlias = Annotated[
    str | None, optional("Which of several outputs is read, or method of a scikit-learn model.")
]
ImageShape: TypeAlias = Annotated[
    str | None, optional("Inputs are images of this height, width and channels.", metavar="HxWxC")
]
InputShape: TypeAlias = Annotated[
    str | None, optional("Shape of one row of a file, where it does not say.", metavar="1x8x8")
]
Activation: TypeAlias = Annotated[
    str | None, optional("What is between the layers of a state dict.", metavar="relu")
]
Fixed: TypeAlias = Annotated[
    Path | None,
    optional(
        "Where inputs, or columns that are no numbers, stay: a table or .npz.", metavar="DATA"
    ),
]
Like: TypeAlias = Annotated[
    Path | None,
    optional("Ask where these rows are: a .csv, .npy, .npz or .parquet.", metavar="DATA.csv"),
]
Columns: TypeAlias = Annotated[
    str | None, optional("Columns of --like, by name or number.", metavar="A,B,...")
]
Mean: TypeAlias = Annotated[
    str | None, optional("Ask around here: a number, or a file with one a column.", metavar="M")
]
Std: TypeAlias = Annotated[
    str | None, optional("And so far: a number, or a file with one a column.", metavar="S")
]
KeepDiscrete: TypeAlias = Annotated[
    bool, flag("Hold columns of few values, such as one-hot ones.", "--keep-discrete")
]
LinkName: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="LINK",
        help="What undoes the target's head: auto, none, logit, softmax, log-softmax, log, log1p, "
        "atanh, with a scale as in logit*100.",
    ),
]
Report: TypeAlias = Annotated[
    Path | None, optional("Write the account as a page, with pictures.", metavar="FILE.html")
]

AsJson: TypeAlias = Annotated[bool, flag("Print one JSON object on standard output.", "--json")]
AsCsv: TypeAlias = Annotated[bool, flag("Print tables as CSV on standard output.", "--csv")]
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
Quiet: TypeAlias = Annotated[bool, flag("No progress, and only the verdict.", "--quiet", "-q")]
