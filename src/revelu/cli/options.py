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
        help="What to ask: demo:NAME, a file ending in .onnx, .npz, .safetensors, .pt, .skops, "
        ".pkl, .joblib or .toml, an MLflow or Hugging Face folder, or an address "
        "http(s)://...; with --trust also module:attribute.",
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
    optional(
        "Most queries the run may ask, those of the certificate included; no limit by default.",
        parser=_whole,
        metavar="N",
    ),
]
Seed: TypeAlias = Annotated[
    int, typer.Option(help="A whole number that fixes every random choice.")
]
DimIn: TypeAlias = Annotated[
    int | None, optional("Numbers in one input, for a target that does not say.")
]
Outputs: TypeAlias = Annotated[
    list[Path] | None,
    optional(
        "File to write the network to: .onnx, .npz, .safetensors or .pt; may be given again.",
        "--output",
        "-o",
        metavar="FILE",
    ),
]
Force: TypeAlias = Annotated[
    bool, flag("Replace existing files even by a network that is not certified.", "--force")
]
KeepUncertified: TypeAlias = Annotated[
    bool,
    flag(
        "Write also a network that is wrong at most inputs, by more than a tenth of what varies.",
        "--keep-uncertified",
    ),
]
Box: TypeAlias = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="LO HI",
        help="Smallest and largest value of every number of a query; default: no limits.",
    ),
]
Labels: TypeAlias = Annotated[
    bool,
    flag(
        "Use class labels alone: which answer is largest, or the sign of a single one.", "--labels"
    ),
]
InputName: TypeAlias = Annotated[
    str | None,
    optional(
        "Name of the input that revelu varies, for a target of several; names "
        "joined by commas vary together."
    ),
]
OutputName: TypeAlias = Annotated[
    str | None,
    optional(
        "Name of the output to read, for a target of several; for scikit-learn, the method to call."
    ),
]
ImageShape: TypeAlias = Annotated[
    str | None,
    optional(
        "Treat inputs as images of this height, width and number of channels.", metavar="HxWxC"
    ),
]
InputShape: TypeAlias = Annotated[
    str | None,
    optional(
        "Shape of one input of a file or a function that does not say, such as 1x8x8.",
        metavar="1x8x8",
    ),
]
Activation: TypeAlias = Annotated[
    str | None,
    optional(
        "Activation between the layers of a state dict, which does not name it; relu is known.",
        metavar="relu",
    ),
]
Fixed: TypeAlias = Annotated[
    Path | None,
    optional(
        "File with the values of inputs that do not vary, such as columns of "
        "words: a table or .npz.",
        metavar="DATA",
    ),
]
Like: TypeAlias = Annotated[
    Path | None,
    optional(
        "Draw queries from the normal law with this table's mean and covariance: "
        "a .csv, .npy, .npz "
        "or .parquet.",
        metavar="DATA.csv",
    ),
]
Columns: TypeAlias = Annotated[
    str | None,
    optional(
        "Columns of --like and --inputs that are inputs, by name or number from 0; default: all.",
        metavar="A,B,...",
    ),
]
Mean: TypeAlias = Annotated[
    str | None,
    optional(
        "Mean of the queries: one number, or a file with one number a column; default: 0.",
        metavar="M",
    ),
]
Std: TypeAlias = Annotated[
    str | None,
    optional(
        "Standard deviation of the queries: one number, or a file with one a column; default: 1.",
        metavar="S",
    ),
]
KeepDiscrete: TypeAlias = Annotated[
    bool,
    flag("Keep columns of few values, such as one-hot columns, at one value.", "--keep-discrete"),
]
LinkName: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="LINK",
        help="Function that undoes the target's last step: none, logit, softmax, log-softmax, log, "
        "log1p or atanh, with a factor as in logit*100; auto looks for it.",
    ),
]
Report: TypeAlias = Annotated[
    Path | None, optional("Write the results as one HTML page, with pictures.", metavar="FILE.html")
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
        help="Write a log to standard error; -vv writes more.",
        show_default=False,
    ),
]
Quiet: TypeAlias = Annotated[
    bool, flag("Print only the verdict, and no progress.", "--quiet", "-q")
]
