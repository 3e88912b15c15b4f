"""``revelu span``: the directions of its input that a target looks at."""

from pathlib import Path
from typing import Annotated

import typer

from revelu.cli.command import Asking, command
from revelu.cli.exit_codes import ExitCode, of_status
from revelu.cli.options import Force, flag, optional
from revelu.errors import FormatError
from revelu.report.summary import parts_of
from revelu.status import Status


@command
def span(
    output: Annotated[
        Path | None,
        optional("File to write the basis of the span to.", "--output", "-o", metavar="FILE.npz"),
    ] = None,
    force: Force = False,
    labels: Annotated[
        bool, flag("Use class labels, or answers of 0 and 1, alone.", "--labels")
    ] = False,
    method: Annotated[
        str, typer.Option(help="auto, or at_once, which asks a single round and needs --neurons.")
    ] = "auto",
    neurons: Annotated[
        int | None, optional("Number of neurons of the first layer, for --method at_once.")
    ] = None,
    plot: Annotated[
        Path | None,
        optional("File to draw the singular values to (needs matplotlib).", metavar="FILE.png"),
    ] = None,
    checks: Annotated[
        int,
        typer.Option(
            help="Number of fresh inputs that the certificate moves inside the null space."
        ),
    ] = 1000,
    *,
    asking: Asking,
) -> ExitCode:
    """Recover the row span of the first layer of TARGET, of any depth and activation.

    Example:
      revelu span model.onnx -o span.npz

    Exit codes:
      0  finished: fresh moves inside the null space change no answer
      1  finished, with a part of it or nothing; the evidence says why
      2  usage or bad input
      3  budget or time exhausted
      4  target unreachable, or it answered nonsense
    130  interrupted
    After 1 and 3, what was found, if anything, is still written; it replaces no file
    without --force.
    """
    from revelu.formats import check_writable
    from revelu.formats.pictures import check_picture
    from revelu.tasks.span import recover_span

    asking.reserve([output, plot])
    if output is not None:
        if output.suffix.lower() != ".npz":
            raise FormatError(f"{output}: a span is an .npz archive")
        check_writable(output)
    if plot is not None:
        check_picture(plot)
    with asking.opened() as oracle:
        found = recover_span(
            oracle,
            labels=labels,
            seed=asking.seed,
            method=method,
            neurons=neurons,
            checks=checks,
            progress=asking.line,
        )
    if found.span.rank or not asking.was_interrupted:
        # A span of no direction is nothing that another one may be lost for.
        certified = found.status is Status.RECOVERED and found.span.rank > 0
        asking.write([output], found.span.save, certified=certified, force=force)
        asking.write([plot], found.span.plot, certified=certified, force=force)
    asking.picture(found.span)
    account = asking.account(asking.target, found, found.fields())
    asking.show(account, *parts_of(found, account))
    return of_status(found.status)
