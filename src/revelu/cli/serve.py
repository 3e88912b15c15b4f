"""``revelu serve``: a file behind the Open Inference Protocol, to try an audit on."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from revelu.cli.failures import failures
from revelu.cli.logs import logs
from revelu.cli.options import AsJson, DimIn, Seed, Verbose, flag, optional
from revelu.cli.output import print_json
from revelu.errors import InputError
from revelu.shown import SCHEMA

if TYPE_CHECKING:
    from revelu.oracle.degradations import Degradation

LOOPBACK = "127.0.0.1"


def serve(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="demo:NAME, or a file that revelu reads; its name without the suffix "
            "is the model's.",
            show_default=False,
        ),
    ],
    port: Annotated[int, typer.Option(help="Port to listen at; 0 takes a free one.")] = 8080,
    host: Annotated[
        str, typer.Option(help="Address to listen at; any but the default lets other machines ask.")
    ] = LOOPBACK,
    round_: Annotated[
        int | None,
        optional(
            "Number of significant digits of the answers; default: all.", "--round", metavar="D"
        ),
    ] = None,
    float32: Annotated[bool, flag("Take inputs and give answers in float32.", "--float32")] = False,
    link: Annotated[
        str | None,
        optional(
            "Answer probabilities or another head, which LINK undoes: logit makes a sigmoid.",
            metavar="LINK",
        ),
    ] = None,
    labels: Annotated[bool, flag("Answer the number of the class alone.", "--labels")] = False,
    noise: Annotated[
        float | None,
        optional("Standard deviation of the noise to add to answers; default: none.", metavar="S"),
    ] = None,
    seed: Seed = 0,
    dim_in: DimIn = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
) -> None:
    """Serve MODEL by the Open Inference Protocol (version 2), until interrupted.

    Example:
      revelu serve demo:digits --round 4

    Exit codes:
      2  usage or bad input
      4  the model answers nonsense
    130  interrupted
    """
    running: list[Any] = []
    with (
        logs(verbose),
        failures(as_json=as_json, n_queries=lambda: sum(s.n_queries for s in running)),
    ):
        from revelu.adapters.opening import open_target
        from revelu.formats import suffixes
        from revelu.oracle import degrade
        from revelu.tasks.serve import ModelServer

        if not (model.startswith("demo:") or Path(model).suffix.lower() in suffixes()):
            known = ", ".join(suffixes())
            raise InputError(f"{model}: what is served is demo:NAME, or a file ending in {known}")
        target = open_target(model, dim_in)
        name = model.removeprefix("demo:") if model.startswith("demo:") else Path(model).stem
        is_single = float32 or getattr(target, "datatype", "FP64") == "FP32"
        server = ModelServer(
            degrade(target, *_degradations(link, round_, float32, labels, noise, seed)),
            target.dim_in,
            name,
            datatype="FP32" if is_single else "FP64",
            host=host,
            port=port,
        )
        running.append(server)
        with server:
            _announce(server.url, host, as_json=as_json)
            server.serve_forever()


def _degradations(
    link: str | None,
    digits: int | None,
    float32: bool,
    labels: bool,
    noise: float | None,
    seed: int,
) -> list["Degradation"]:
    """What a defender would do, in the order in which a server would."""
    from revelu.numerics.links import Link
    from revelu.oracle import Float32, Headed, Labels, Noisy, Rounded

    steps: list[Degradation] = []
    steps += [Headed(Link.named(link))] if link is not None else []
    steps += [Noisy(noise, seed)] if noise is not None else []
    steps += [Float32()] if float32 else []
    steps += [Rounded(digits)] if digits is not None else []
    return steps + ([Labels()] if labels else [])


def _announce(url: str, host: str, *, as_json: bool) -> None:
    if host != LOOPBACK:
        sys.stderr.write(f"revelu: whoever reaches {host} may ask this model\n")
    if as_json:
        print_json({"schema": SCHEMA, "status": "serving", "url": url})
    else:
        typer.echo(f"serving {url} (end with Ctrl-C)")
        sys.stdout.flush()
